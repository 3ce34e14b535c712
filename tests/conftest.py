"""What all suites share: folders short enough for sockets, processes, peers.

DAVIT_BUILD   the Meson build folder
DAVIT_PEERS   the folder that tests/peers/build filled
"""

import os
import shutil
import signal
import sys
import tempfile

import pytest

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "e2e"))

from peers import PeerServers, folder_of  # noqa: E402
from procs import Procs  # noqa: E402


# Who runs the tests in the background of a shell has these ignored, and so would have the programs
# that tests start.
for ignored in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):
    if signal.getsignal(ignored) == signal.SIG_IGN:
        signal.signal(ignored, signal.SIG_DFL)


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
