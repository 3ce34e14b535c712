"""Nodes whose pods come from the API, with both sample drivers."""

import pytest
from bound_pods import PodNode, SecondNode
from kubectls import Kubectl, find_kubectl


@pytest.fixture
def new_node():
    return PodNode


@pytest.fixture
def second(node, procs, short_dir):
    """Another node of the same API, over TLS, with a token of its own."""
    made = SecondNode(procs, short_dir, node)
    made.start()
    yield made
    made.close()


@pytest.fixture
def kubectl(node, short_dir):
    return Kubectl(find_kubectl("new"), node.kubeconfig, short_dir, is_old=False)
