"""davit-sample-dra-driver on an API, with a kubelet in another language.

The API is davitd's, of which the driver knows only the kubeconfig; the kubelet here is its own, over
another directory and another node, so that davitd's node side has no part in it."""

import os

import pytest
from dra_kubelet import DRIVER, NODE, Driver, Kubelet
from peers import folder_of
from servers import ApiNode


@pytest.fixture
def new_node():
    return ApiNode


@pytest.fixture
def cluster(node):
    """A davitd with its API, and a Node there."""
    node.api().must("POST", "/api/v1/nodes", {"metadata": {"name": NODE}})
    return node


@pytest.fixture
def api(cluster):
    return cluster.api()


@pytest.fixture
def kubelet(short_dir):
    made = Kubelet(os.path.join(short_dir, "other"))
    yield made
    made.close()


@pytest.fixture
def make_driver(procs, short_dir, cluster, kubelet):
    """Starts drivers; those that still run when the test is over have to stop cleanly."""
    made = []

    def make(*options, ready="ready"):
        control = os.path.join(short_dir, f"c{len(made)}")
        program = os.path.join(folder_of("DAVIT_BUILD"), "drivers", "davit-sample-dra-driver")
        proc = procs.start(
            program, "--driver", DRIVER, "--node", NODE, "--kubeconfig", cluster.kubeconfig,
            "--kubelet-dir", kubelet.folder, "--cdi-dir", os.path.join(short_dir, "cdi"),
            "--control", control, *options, ready=ready,
        )
        made.append(Driver(proc, control, os.path.join(short_dir, "cdi")))
        return made[-1]

    yield make
    for driver in made:
        if driver.proc.is_alive:
            assert driver.proc.stop() == 0, driver.proc.describe()
