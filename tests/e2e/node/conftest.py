"""A node and its plugins for each test."""

import pytest
from nodes import Node


@pytest.fixture
def new_node():
    return Node
