"""davit-sample-dra-driver on an API, with a kubelet in another language.

The API is davitd's, of which the driver knows only the kubeconfig; the kubelet here is its own, over
another directory and another node, so that davitd's node side has no part in it."""

import glob
import os
import sys

import pytest

HERE = os.path.dirname(__file__)
for folder in ("node", "api"):
    sys.path.insert(0, os.path.join(HERE, os.pardir, folder))
sys.path.insert(0, HERE)

from dra_kubelet import DRIVER, NODE, Driver, Kubelet  # noqa: E402
from peers import folder_of  # noqa: E402
from servers import ApiNode  # noqa: E402


@pytest.fixture
def cluster(procs, short_dir):
    """A davitd with its API, and a Node there."""
    node = ApiNode(procs, short_dir).start()
    node.api().must("POST", "/api/v1/nodes", {"metadata": {"name": NODE}})
    yield node
    if node.proc.is_alive:
        assert node.stop() == 0, node.proc.describe()


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
    for path in sorted(glob.glob(os.path.join(short_dir, "*-davit-sample-dra-driver.log"))):
        with open(path, encoding="utf-8", errors="replace") as log:
            text = log.read()
        for sign in ("Sanitizer", "runtime error:", "Assertion"):
            assert sign not in text, f"{path}:\n{text[-8000:]}"
