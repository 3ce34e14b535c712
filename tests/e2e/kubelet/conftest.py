"""A node that serves an API of its own, beside the one that it belongs to."""

import pytest
from bound_pods import PodNode
from node_apis import KubeletNode


@pytest.fixture
def new_node():
    return PodNode


@pytest.fixture
def kubelet(node, procs, short_dir):
    made = KubeletNode(procs, short_dir, node)
    made.start()
    yield made
    made.close()
