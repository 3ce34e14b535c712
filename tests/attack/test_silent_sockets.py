"""Sockets in plugins_registry that accept and say nothing, or that nobody listens on: whoever is
good does not wait for them."""

import os
import socket
import subprocess
import sys
import time

import grpc
import pytest

from procs import until
from registrar import Registrar

N_SILENT = 1000
# So many resources there may be, and a process may have in the making.
N_RESOURCES = 1024
N_REGISTRATIONS = 2000
PATIENCE_S = 60
# Before, it was over a minute. Seconds are what remains on a loaded machine.
SOON_S = 20

# A process of its own, as an attacker is; listens on many sockets and never reads.
SILENT = """
import resource, socket, sys
folder, n = sys.argv[1], int(sys.argv[2])
_, most = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
made = []
for number in range(n):
    one = socket.socket(socket.AF_UNIX)
    one.bind(f"{folder}/silent-{number}.sock")
    one.listen(16)
    made.append(one)
print("there", flush=True)
sys.stdin.read()
"""


class Silent:
    """Processes that share the silent sockets between them."""

    def __init__(self, folder, n_processes=1):
        self.procs = []
        for number in range(n_processes):
            own = os.path.join(folder, str(number)) if n_processes > 1 else folder
            os.makedirs(own, exist_ok=True)
            self.procs.append(
                subprocess.Popen(
                    [sys.executable, "-c", SILENT, own, str(N_SILENT // n_processes)],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                )
            )
        for proc in self.procs:
            assert proc.stdout.readline() == b"there\n"

    def stop(self):
        for proc in self.procs:
            proc.stdin.close()
            proc.wait(PATIENCE_S)
            proc.stdout.close()


@pytest.fixture
def silent():
    made = []

    def make(*args):
        made.append(Silent(*args))
        return made[-1]

    yield make
    for one in made:
        one.stop()


def registry(node):
    path = os.path.join(node.kubelet_dir, "plugins_registry")
    os.makedirs(path, exist_ok=True)
    return path


def register_one(node, name):
    """How long a good driver waits for its registration."""
    good = Registrar(os.path.join(registry(node), f"{name}.sock"), f"{name}.example.com",
                     kind="DRAPlugin", versions=("v1.DRAPlugin",)).serve()
    start = time.monotonic()
    try:
        until(lambda: good.is_registered, PATIENCE_S, "the good driver's registration")
        return time.monotonic() - start
    finally:
        good.stop()


@pytest.mark.parametrize("n_processes", [1, 10])
def test_silent_sockets_do_not_delay_a_newcomer(make_node, silent, n_processes):
    node = make_node().start()
    silent(registry(node), n_processes)
    until(lambda: len(node.plugins()) >= N_SILENT, PATIENCE_S, "all sockets are seen")
    assert register_one(node, "first") < SOON_S
    assert register_one(node, "second") < SOON_S
    assert node.proc.is_alive


def test_silent_sockets_do_not_delay_a_driver_at_the_start(make_node, silent):
    """All are there already: no order of the directory helps."""
    node = make_node()
    silent(registry(node))
    good = Registrar(os.path.join(registry(node), "good.sock"), "good.example.com",
                     kind="DRAPlugin", versions=("v1.DRAPlugin",)).serve()
    try:
        node.start()
        start = time.monotonic()
        until(lambda: good.is_registered, PATIENCE_S, "the good driver's registration")
        assert time.monotonic() - start < SOON_S
    finally:
        good.stop()


def test_dead_sockets_do_not_delay_a_driver(make_node):
    node = make_node()
    for number in range(N_SILENT):
        dead = socket.socket(socket.AF_UNIX)
        dead.bind(os.path.join(registry(node), f"dead-{number}.sock"))
        dead.close()
    node.start()
    until(lambda: len(node.plugins()) >= N_SILENT, PATIENCE_S, "all sockets are seen")
    assert register_one(node, "good") < SOON_S


def test_registrations_of_silent_endpoints_are_bounded(make_node, plugins):
    """Each would hold a connection: one process has so many, and others are served meanwhile."""
    node = make_node().start()
    path = os.path.join(node.plugin_dir, "silent.sock")
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    listener.listen(4096)
    pb = plugins(node, "example.com/one", ["d1"]).pb
    # Several connections: one has a bound of its own.
    channels = [
        grpc.insecure_channel(f"unix:{node.kubelet_sock}",
                              options=[("grpc.use_local_subchannel_pool", 1)])
        for _ in range(4)
    ]
    registers = [
        channel.unary_unary(
            "/v1beta1.Registration/Register",
            request_serializer=pb.RegisterRequest.SerializeToString,
            response_deserializer=pb.Empty.FromString)
        for channel in channels
    ]
    calls = [
        registers[number % len(registers)].future(
            pb.RegisterRequest(version="v1beta1", endpoint="silent.sock",
                               resource_name=f"example.com/r{number}"),
            timeout=PATIENCE_S, wait_for_ready=True)
        for number in range(N_REGISTRATIONS)
    ]
    try:
        n_open = 0
        while not all(call.done() for call in calls):
            n_open = max(n_open, len(os.listdir(f"/proc/{node.proc.pid}/fd")))
            time.sleep(0.05)
        assert n_open < N_RESOURCES + 200
        assert all(call.exception() for call in calls)
        assert node.resources() == {}
    finally:
        for channel in channels:
            channel.close()
        listener.close()
