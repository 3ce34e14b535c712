"""A node that serves an API of its own, beside the one that it belongs to."""

import pytest
from bound_pods import PodNode


@pytest.fixture
def new_node():
    return PodNode
