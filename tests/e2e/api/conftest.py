"""A davitd with its API for each test, and the clients of it. It is the API alone: no node runs the
pods that tests make, and nobody else changes objects."""

import glob
import os
import sys

import pytest

HERE = os.path.dirname(__file__)
sys.path.insert(0, os.path.join(HERE, os.pardir, "node"))
sys.path.insert(0, HERE)

from disks import Tmpfs  # noqa: E402
from kubectls import OLD, Kubectl, find_kubectl  # noqa: E402
from servers import ApiNode  # noqa: E402


def check_logs(folder):
    """A sanitizer's report counts as a failure, whatever the test saw."""
    for path in sorted(glob.glob(os.path.join(folder, "*-davitd.log"))):
        with open(path, encoding="utf-8", errors="replace") as log:
            text = log.read()
        for sign in ("Sanitizer", "runtime error:", "Assertion"):
            assert sign not in text, f"{path}:\n{text[-8000:]}"


@pytest.fixture
def make_node(procs, short_dir):
    """Makes nodes; those that still run when the test is over have to stop cleanly."""
    made = []

    def make(*options):
        made.append(ApiNode(procs, short_dir, "--roles", "api", *options))
        return made[-1]

    yield make
    for node in made:
        if node.proc and node.proc.is_alive:
            assert node.stop() == 0, node.proc.describe()
    check_logs(short_dir)


@pytest.fixture
def node(make_node):
    return make_node().start()


@pytest.fixture
def api(node):
    """Requests as the admin."""
    return node.api()


@pytest.fixture
def small_disk(short_dir):
    """For the state; ask for it before the node, which has to end first."""
    disk = Tmpfs(os.path.join(short_dir, "s"), "size=4m").mount()
    yield disk
    disk.unmount()


@pytest.fixture(params=["old", "new"])
def kubectl(request, node, short_dir):
    """Debian's kubectl, which is old, and the one that is installed here."""
    program = find_kubectl(request.param)
    return Kubectl(program, node.kubeconfig, short_dir, is_old=request.param == OLD)
