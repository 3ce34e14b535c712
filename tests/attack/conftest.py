"""A davitd under attack: what it serves, who attacks it, and a look at whether it still stands."""

import glob
import os
import sys

import pytest

E2E = os.path.join(os.path.dirname(__file__), os.pardir, "e2e")
for folder in ("pods", "claims", "api", "node"):
    sys.path.insert(0, os.path.join(E2E, folder))
sys.path.insert(0, os.path.dirname(__file__))

from plugin import Plugin  # noqa: E402
from servers import ApiNode  # noqa: E402


def check_logs(folder):
    """A sanitizer's report counts as a failure, whatever the test saw."""
    for path in sorted(glob.glob(os.path.join(folder, "*-davit*.log"))):
        with open(path, encoding="utf-8", errors="replace") as log:
            text = log.read()
        for sign in ("Sanitizer", "runtime error:", "Assertion"):
            assert sign not in text, f"{path}:\n{text[-8000:]}"


@pytest.fixture
def make_node(procs, short_dir):
    """Makes nodes with all roles; those that still run when the test is over have to stop cleanly."""
    made = []

    def make(*options):
        made.append(ApiNode(procs, short_dir, *options))
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
    """Requests as the admin."""
    return node.api()


@pytest.fixture
def disk(short_dir):
    """Mounts a disk; ask for it before the node, which has to end first."""
    made = []

    def make(kind, *args):
        made.append(kind(*args))
        return made[-1].mount()

    yield make
    for one in made:
        one.unmount()


@pytest.fixture
def plugins():
    """Makes plugins that end with the test."""
    made = []

    def make(node, resource, devices, **options):
        made.append(Plugin(node.plugin_dir, resource, devices, **options))
        return made[-1].serve()

    yield make
    for plugin in made:
        plugin.stop()
