"""Nodes whose pods come from the API, with both sample drivers."""

import glob
import os
import sys

import pytest

HERE = os.path.dirname(__file__)
for folder in ("node", "api", "claims"):
    sys.path.insert(0, os.path.join(HERE, os.pardir, folder))
sys.path.insert(0, HERE)

from bound_pods import PodNode, SecondNode  # noqa: E402
from kubectls import Kubectl, find_kubectl  # noqa: E402


def check_logs(folder):
    """A sanitizer's report counts as a failure, whatever the test saw."""
    for path in sorted(glob.glob(os.path.join(folder, "*-davit*.log"))):
        with open(path, encoding="utf-8", errors="replace") as log:
            text = log.read()
        for sign in ("Sanitizer", "runtime error:", "Assertion"):
            assert sign not in text, f"{path}:\n{text[-8000:]}"


@pytest.fixture
def make_node(procs, short_dir):
    """Makes nodes; those that still run when the test is over have to stop cleanly."""
    made = []

    def make(*options):
        made.append(PodNode(procs, short_dir, *options))
        return made[-1]

    yield make
    for node in made:
        node.disconnect()
        if node.proc and node.proc.is_alive:
            assert node.stop() == 0, node.proc.describe()
    check_logs(short_dir)


@pytest.fixture
def node(make_node):
    return make_node().start()


@pytest.fixture
def second(node, procs, short_dir):
    """Another node of the same API, over TLS, with a token of its own."""
    made = SecondNode(procs, short_dir, node)
    made.start()
    yield made
    made.disconnect()
    if made.proc.is_alive:
        assert made.stop() == 0, made.proc.describe()


@pytest.fixture
def kubectl(node, short_dir):
    return Kubectl(find_kubectl("new"), node.kubeconfig, short_dir, is_old=False)
