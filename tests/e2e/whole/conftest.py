"""A davitd that does everything for each test, and its drivers."""

import glob
import os
import sys

import pytest

HERE = os.path.dirname(__file__)
for folder in ("node", "api", "dra_driver"):
    sys.path.insert(0, os.path.join(HERE, os.pardir, folder))
sys.path.insert(0, HERE)

from kubectls import OLD, Kubectl, find_kubectl  # noqa: E402
from whole_nodes import WholeNode  # noqa: E402


def check_logs(folder):
    """A sanitizer's report counts as a failure, whatever the test saw."""
    for path in sorted(glob.glob(os.path.join(folder, "**", "*.log"), recursive=True)):
        with open(path, encoding="utf-8", errors="replace") as log:
            text = log.read()
        for sign in ("Sanitizer", "runtime error:", "Assertion"):
            assert sign not in text, f"{path}:\n{text[-8000:]}"


@pytest.fixture
def node(procs, short_dir):
    made = WholeNode(procs, short_dir).start()
    yield made
    made.disconnect()
    if made.proc.is_alive:
        assert made.stop() == 0, made.proc.describe()
    check_logs(short_dir)


@pytest.fixture
def api(node):
    return node.api()


@pytest.fixture
def driver(node):
    """With 4 devices."""
    return node.start_driver(4)


@pytest.fixture(params=["old", "new"])
def kubectl(request, node, short_dir):
    """Debian's kubectl, which is old, and the one that is installed here."""
    program = find_kubectl(request.param)
    return Kubectl(program, node.kubeconfig, short_dir, is_old=request.param == OLD)
