"""A davitd with its API for each test, and the clients of it. It is the API alone: no node runs the
pods that tests make, and nobody else changes objects."""

import os

import pytest
from disks import Tmpfs
from servers import ApiNode


class ApiAlone(ApiNode):
    def __init__(self, procs, root, *options):
        super().__init__(procs, root, "--roles", "api", *options)


@pytest.fixture
def new_node():
    return ApiAlone


@pytest.fixture
def small_disk(disk, short_dir):
    """For the state; ask for it before the node, which has to end first."""
    return disk(Tmpfs, os.path.join(short_dir, "s"), "size=4m")
