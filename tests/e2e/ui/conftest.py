"""A node with plugins, drivers, pods and claims, and a browser that looks at it."""

import os
import shutil
import socket
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


@pytest.fixture(scope="session")
def browser():
    """One for all tests: each opens a page in a profile of its own."""
    folder = tempfile.mkdtemp(prefix="dvb-")
    procs = Procs(folder)
    try:
        yield Browser(procs)
    finally:
        procs.close()
        shutil.rmtree(folder)


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
