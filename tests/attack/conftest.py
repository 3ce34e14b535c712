"""A davitd with all roles under attack."""

import pytest
from servers import ApiNode


@pytest.fixture
def new_node():
    return ApiNode
