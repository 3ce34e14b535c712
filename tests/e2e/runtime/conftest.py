"""A node whose pods run on a private containerd."""

import pytest
from kubectls import Kubectl, find_kubectl
from runtime_nodes import RuntimeNode


@pytest.fixture
def new_node(containerd):
    def make(procs, root, *options, **named):
        return RuntimeNode(procs, root, containerd, *options, **named)

    return make


@pytest.fixture
def kubectl(node, short_dir):
    return Kubectl(find_kubectl("new"), node.kubeconfig, short_dir, is_old=False)
