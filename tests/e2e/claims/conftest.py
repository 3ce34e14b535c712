"""A node that prepares claims for each test, and drivers that are not ours."""

import glob
import os
import shutil
import sys
import tempfile

import pytest

HERE = os.path.dirname(__file__)
for folder in ("node", "api"):
    sys.path.insert(0, os.path.join(HERE, os.pardir, folder))
sys.path.insert(0, HERE)

from claim_nodes import GPU, ClaimNode  # noqa: E402
from python_driver import ClaimReader, Driver  # noqa: E402
from slow_node import LongProcs, SlowNode  # noqa: E402


def check_logs(folder):
    """A sanitizer's report counts as a failure, whatever the test saw."""
    for path in sorted(glob.glob(os.path.join(folder, "*-davitd.log"))):
        with open(path, encoding="utf-8", errors="replace") as log:
            text = log.read()
        for sign in ("Sanitizer", "runtime error:", "Assertion"):
            assert sign not in text, f"{path}:\n{text[-8000:]}"


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
        shutil.rmtree(folder)


@pytest.fixture
def make_node(procs, short_dir):
    """Makes nodes; those that still run when the test is over have to stop cleanly."""
    made = []

    def make(*options):
        made.append(ClaimNode(procs, short_dir, *options))
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
def api(node):
    return node.api()


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
