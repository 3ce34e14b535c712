"""A davitd that does everything for each test, and its drivers."""

import pytest
from whole_nodes import WholeNode


@pytest.fixture
def new_node():
    return WholeNode


@pytest.fixture
def driver(node):
    """With 4 devices."""
    return node.start_driver(4)
