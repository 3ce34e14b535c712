"""A node that prepares claims for each test, and drivers that are not ours."""

import os
import shutil
import tempfile

import pytest
from claim_nodes import GPU, ClaimNode
from procs import check_logs
from python_driver import ClaimReader, Driver
from slow_node import LongProcs, SlowNode


@pytest.fixture(scope="session", autouse=True)
def slow(request):
    """Runs beside all tests of this folder, if the one that looks at it is among them."""
    if not any("slow" in item.fixturenames and item.path.name == "test_claim_slow.py"
               for item in request.session.items):
        yield None
        return
    folder = tempfile.mkdtemp(prefix="dvs-")
    os.mkdir(os.path.join(folder, "n"))
    procs = LongProcs(folder)
    made = SlowNode(procs, folder)
    try:
        yield made.begin()
        made.end()
        check_logs(folder)
    finally:
        procs.close()
        shutil.rmtree(folder, ignore_errors=True)  # a process that ends may still write


@pytest.fixture
def new_node():
    return ClaimNode


@pytest.fixture
def make_driver(make_node):
    """Makes drivers of a node that end with the test, before the node does. None of them may have
    been asked twice for the same at the same time."""
    made = []

    def make(node, name=GPU, reads=True, **options):
        reader = ClaimReader(node.kubeconfig) if reads else None
        made.append(Driver(node.kubelet_dir, node.cdi_dir, name, reader, **options))
        return made[-1]

    yield make
    for driver in made:
        driver.stop()
    assert not any(driver.overlaps for driver in made), [driver.overlaps for driver in made]


@pytest.fixture
def driver(node, make_driver):
    """One that serves and is connected."""
    made = make_driver(node).serve()
    node.wait_connected(GPU)
    return made
