"""What all suites share: folders short enough for sockets, processes, peers, nodes and their clients.

DAVIT_BUILD   the Meson build folder
DAVIT_PEERS   the folder that tests/peers/build filled

A folder whose tests need a node says of which kind, as the fixture `new_node`.
"""

import os
import shutil
import signal
import sys
import tempfile
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
# Helpers are imported by their names, which are used once; so they may build on each other.
E2E = HERE / "e2e"
sys.path[:0] = map(str, [E2E, *sorted(filter(Path.is_dir, E2E.iterdir())), HERE / "attack"])

from node_apis import KubeletNode  # noqa: E402
from peers import PeerServers, folder_of  # noqa: E402
from procs import Procs, check_logs  # noqa: E402

# Who runs the tests in the background of a shell has these ignored, and so would have the programs
# that tests start.
for ignored in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):
    if signal.getsignal(ignored) == signal.SIG_IGN:
        signal.signal(ignored, signal.SIG_DFL)


def pytest_addoption(parser):
    parser.addoption("--only", metavar="FILE",
                     help="a file with names of tests and of files with tests: no others are run")


def pytest_collection_modifyitems(config, items):
    path = config.getoption("--only")
    if not path:
        return
    chosen = set(Path(path).read_text(encoding="utf-8").splitlines())
    left_out = [item for item in items if not chosen & {item.nodeid, item.nodeid.split("::")[0]}]
    items[:] = [item for item in items if item not in set(left_out)]
    config.hook.pytest_deselected(items=left_out)


def make_short_dir():
    """Socket paths hold 107 bytes, which pytest's own folders are too long for."""
    return tempfile.mkdtemp(prefix="dve-")


@pytest.fixture
def short_dir():
    path = make_short_dir()
    yield path
    shutil.rmtree(path, ignore_errors=True)  # a process that ends may still write


@pytest.fixture
def procs(short_dir):
    started = Procs(short_dir)
    yield started
    started.close()


@pytest.fixture(scope="session")
def pb():
    """The messages of peer.proto."""
    sys.path.insert(0, os.path.join(folder_of("DAVIT_PEERS"), "python"))
    import peer_pb2

    return peer_pb2


@pytest.fixture(scope="module")
def peer_servers():
    folder = make_short_dir()
    servers = PeerServers(folder)
    try:
        yield servers
        servers.stop()
    finally:
        servers.procs.close()
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def make_node(new_node, procs, short_dir):
    """Makes nodes; those that still run when the test is over have to stop cleanly."""
    made = []

    def make(*options):
        made.append(new_node(procs, short_dir, *options))
        return made[-1]

    yield make
    for node in made:
        node.close()
    check_logs(short_dir)


@pytest.fixture
def node(make_node):
    return make_node().start()


@pytest.fixture
def kubelet(node, procs, short_dir):
    """Another node of the same API, which serves an API of its own as a kubelet does."""
    made = KubeletNode(procs, short_dir, node)
    made.start()
    yield made
    made.close()


@pytest.fixture
def api(node):
    """Requests as the admin."""
    return node.api()


@pytest.fixture
def api_server(procs, short_dir, request):
    """The embedded API alone, over TLS, with its tokens: tests/golden/api_server.c. Its further options are those of
    the test's marker `api_options`."""
    marker = request.node.get_closest_marker("api_options")
    ca = os.path.join(short_dir, "ca.crt")
    program = os.path.join(folder_of("DAVIT_BUILD"), "tests", "golden", "api_server")
    proc = procs.start(program, "--ca", ca, "--store", os.path.join(short_dir, "api.db"),
                       *(marker.args if marker else ()), ready="ready")
    proc.port = int(proc.lines[0])
    proc.url = f"https://127.0.0.1:{proc.port}"
    proc.ca = ca
    yield proc
    if proc.is_alive:
        assert proc.stop() == 0, proc.describe()


@pytest.fixture(params=[pytest.param("old", marks=pytest.mark.plain), "new"])
def kubectl(request, node, short_dir):
    """Debian's kubectl, which is old, and the one that is installed here."""
    from kubectls import OLD, Kubectl, find_kubectl

    program = find_kubectl(request.param)
    return Kubectl(program, node.kubeconfig, short_dir, is_old=request.param == OLD)


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
def containerd(short_dir):
    """A containerd of the test's own; ask for it before the node, which has to end first."""
    from containerd import Containerd, why_not

    reason = why_not()
    if reason:
        pytest.skip(reason)
    runtime = Containerd(short_dir)
    try:
        yield runtime.start()
    finally:
        runtime.close()


@pytest.fixture
def plugins():
    """Makes plugins that end with the test."""
    from plugin import Plugin

    made = []

    def make(node, resource, devices, **options):
        made.append(Plugin(node.plugin_dir, resource, devices, **options))
        return made[-1].serve()

    yield make
    for plugin in made:
        plugin.stop()
