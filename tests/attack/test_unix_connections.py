"""Processes that take every connection of a Unix socket and keep it: all others are served
meanwhile."""

import os
import subprocess
import sys

import pytest

from procs import until

N_IDLE = 1100  # a server has 1,024 places
PATIENCE_S = 60

# A process of its own, as an attacker is. It says so when all its connections are made, and keeps
# them until its input ends.
IDLE = """
import contextlib, resource, socket, sys
path, n, first = sys.argv[1], int(sys.argv[2]), bytes.fromhex(sys.argv[3])
_, most = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
made = []
for _ in range(n):
    one = socket.socket(socket.AF_UNIX)
    one.connect(path)
    with contextlib.suppress(ConnectionError):  # it has made room for another already
        one.sendall(first)
    made.append(one)
print("there", flush=True)
sys.stdin.read()
"""

HELLO = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0\0\0\x04\0\0\0\0\0"
BEGINNINGS = {"silent": b"", "hello": HELLO}


@pytest.fixture
def attack():
    """Starts processes that connect; they end with the test."""
    procs = []

    def start(path, first, n_processes):
        """Returns when every process has all its connections."""
        new = [
            subprocess.Popen(
                [sys.executable, "-c", IDLE, path, str(N_IDLE // n_processes), first.hex()],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            for _ in range(n_processes)
        ]
        procs.extend(new)
        for proc in new:
            assert proc.stdout.readline() == b"there\n"

    yield start
    for proc in procs:
        proc.stdin.close()
    for proc in procs:
        proc.wait(PATIENCE_S)
        proc.stdout.close()


def podres_sock(node):
    return os.path.join(node.kubelet_dir, "pod-resources", "kubelet.sock")


@pytest.mark.parametrize("n_processes", [1, 6])
@pytest.mark.parametrize("first", BEGINNINGS.values(), ids=BEGINNINGS.keys())
def test_idle_connections_lock_nobody_out(node, plugins, attack, first, n_processes):
    """They had every place for as long as they liked."""
    for path in (node.kubelet_sock, podres_sock(node), node.socket):
        attack(path, first, n_processes)
    plugin = plugins(node, "example.com/gpu", ["d1", "d2"])
    plugin.register(timeout=PATIENCE_S)
    done = node.davit("status", timeout=PATIENCE_S)
    assert done.returncode == 0, done
    assert len(node.podres_list()) == 0
    node.wait_devices("example.com/gpu", 2, PATIENCE_S)


def test_a_process_has_no_more_than_its_share(node, plugins, attack):
    """The rest of its connections are closed, and the daemon's descriptors with them."""

    def n_open():
        return len(os.listdir(f"/proc/{node.proc.pid}/fd"))

    before = n_open()
    attack(node.kubelet_sock, HELLO, 1)
    # Its turn comes after theirs: all are accepted then.
    plugins(node, "example.com/gpu", ["d1"]).register(timeout=PATIENCE_S)
    until(lambda: n_open() < before + 256 + 50, PATIENCE_S, "a quarter of the places is taken")
