"""A davitd with all roles under attack. These tests run in every build: what an attacker gets depends
on how the compiler laid things out."""

from pathlib import Path

import pytest
from servers import ApiNode


def pytest_collection_modifyitems(items):
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent):
            item.add_marker(pytest.mark.release)


@pytest.fixture
def new_node():
    return ApiNode
