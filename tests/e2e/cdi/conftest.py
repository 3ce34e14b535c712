"""Bundles, and nodes whose pods' containers they are."""

import shutil

import pytest

from bundles import BUSYBOX, Bundle
from nodes import Node


@pytest.fixture
def new_node():
    return Node


@pytest.fixture
def bundle(tmp_path):
    for program in ("runc", BUSYBOX):
        if not shutil.which(program):
            pytest.skip(f"{program} is not installed (Debian: runc, busybox-static)")
    made = Bundle(tmp_path / "bundle")
    plain = made.run("echo plain")
    if plain.returncode != 0:
        pytest.skip(f"runc cannot run a container here: {plain.stderr.strip()}")
    return made
