"""A node with plugins, drivers, pods and claims, and a browser that looks at it."""

import ctypes
import fcntl
import os
import shutil
import socket
import struct
import tempfile

import pytest
from browsers import WAIT_S, Browser
from built import need_ui
from claim_nodes import ClaimNode
from peers import folder_of
from procs import Procs, until


class Sample:
    """A sample driver and its control socket."""

    def __init__(self, proc, control):
        self.proc = proc
        self.control = control

    def must(self, line):
        with socket.socket(socket.AF_UNIX) as client:
            client.settimeout(WAIT_S)
            client.connect(self.control)
            client.sendall(f"{line}\n".encode())
            answer = client.makefile().readline()
        assert answer.startswith("ok"), f"{line}: {answer}"


class UiNode(ClaimNode):
    def url(self, token=None):
        scheme = "http" if self.is_plain else "https"
        fragment = f"#token={token}" if token else ""
        return f"{scheme}://127.0.0.1:{self.port}/ui{fragment}"

    def add_plugin(self, resource, n, *options):
        control = os.path.join(self.root, f"c-{resource.replace('/', '-')}")
        program = os.path.join(folder_of("DAVIT_BUILD"), "drivers", "davit-sample-device-plugin")
        proc = self.procs.start(
            program, "--resource", resource, "--virtual", n, "--kubelet-dir", self.kubelet_dir,
            "--control", control, *options,
        )
        self.wait_devices(resource, n, timeout_s=WAIT_S)
        return Sample(proc, control)

    def add_driver(self, driver, n, *options):
        control = os.path.join(self.root, f"c-{driver}")
        program = os.path.join(folder_of("DAVIT_BUILD"), "drivers", "davit-sample-dra-driver")
        proc = self.procs.start(
            program, "--driver", driver, "--node", "n1", "--kubeconfig", self.kubeconfig,
            "--kubelet-dir", self.kubelet_dir, "--cdi-dir", self.cdi_dir, "--control", control,
            "--devices", n, *options,
        )
        self.wait_connected(driver)
        until(lambda: os.path.exists(control), WAIT_S, f"the control socket of {driver}")
        return Sample(proc, control)


CLONE_NEWNET = 0x40000000
SIOCSIFFLAGS = 0x8914
IFF_UP = 1


def _system(name, *args):
    libc = ctypes.CDLL(None, use_errno=True)
    if getattr(libc, name)(*args) != 0:
        raise OSError(ctypes.get_errno(), name)


@pytest.fixture(scope="session")
def network():
    """A network namespace with nothing but a loopback interface: a browser drops its connections
    (ERR_NETWORK_CHANGED) whenever a container of another test brings an interface or takes it."""
    home = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
    try:
        _system("unshare", CLONE_NEWNET)
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
            fcntl.ioctl(any_socket, SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", IFF_UP))
        made = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
        _system("setns", home, CLONE_NEWNET)
    except OSError:  # not root
        made = os.dup(home)
    yield home, made
    os.close(home)
    os.close(made)


@pytest.fixture(scope="module", autouse=True)
def in_network(network):
    """This process and all that it starts."""
    home, made = network
    _system("setns", made, CLONE_NEWNET)
    yield
    _system("setns", home, CLONE_NEWNET)


@pytest.fixture(scope="module")
def browser(in_network):
    """One for all tests of a file: each opens a page in a profile of its own."""
    folder = tempfile.mkdtemp(prefix="dvb-")
    procs = Procs(folder)
    try:
        yield Browser(procs)
    finally:
        procs.close()
        shutil.rmtree(folder, ignore_errors=True)  # a process that ends may still write


@pytest.fixture
def new_node():
    need_ui()
    return UiNode


@pytest.fixture
def api(node):
    """As the admin, once the node is known there."""
    made = node.api()
    until(lambda: made.ask("GET", "/api/v1/nodes/n1").status == 200, WAIT_S, "the Node n1")
    return made
