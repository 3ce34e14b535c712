"""Leases that are asked for while the machine boots: what is not there yet is waited for."""

import os
import subprocess

import pytest

from leases import Taking, leases
from peers import folder_of
from procs import until
from whole_nodes import CLASSES, DEV, WAIT_S, WholeNode, device_class


class BootingNode(WholeNode):
    """For this davitd the machine was booted 20 seconds ago."""

    def start(self, *more, ready=True):
        with open("/proc/uptime", encoding="ascii") as file:
            offset = 20 - int(float(file.read().split()[0]))
        words = ["unshare", "-T", "--fork", "--kill-child", "--boottime", str(offset)]
        if subprocess.run([*words, "true"], capture_output=True, check=False).returncode != 0:
            pytest.skip("there are no time namespaces here")
        self.proc = self.procs.start(
            *words, os.path.join(folder_of("DAVIT_BUILD"), "davitd"), "--kubelet-dir",
            self.kubelet_dir, "--state-dir", self.state_dir, "--runtime-dir", self.runtime_dir,
            "--node-name", "n1", "--listen", self.listen, "--cri", self.cri, *self.options, *more,
            ready="ready" if ready else None)
        return self

    def close(self):
        if self.proc and self.proc.is_alive:
            self.kill()


@pytest.fixture
def new_node():
    return BootingNode


def test_what_comes_later_is_waited_for(node):
    # A resource by a word, of a plugin that nobody has seen yet; a class that is not there yet; and
    # conditions about attributes that are not known yet.
    plain = Taking(node, resources=[node.pb.LeaseResource(resource="dev")])
    named = Taking(node, resources=[node.pb.LeaseResource(resource=DEV)])
    of_class = Taking(node, devices=[node.pb.LeaseDevices(device_class="gpu", where=["index >= 0"])])
    assert "nothing here is called" in plain.next("waiting").awaited
    assert "gpu" in of_class.next("waiting").awaited
    assert named.next("waiting").short_of == DEV
    impatient = Taking(node, wait_seconds=0, resources=[node.pb.LeaseResource(resource="dev")])
    assert impatient.failure().code().name == "UNAVAILABLE"
    brief = Taking(node, wait_seconds=1, resources=[node.pb.LeaseResource(resource="dev")])
    assert brief.failure().code().name == "UNAVAILABLE"
    node.start_plugin(2)
    assert plain.next("granted", WAIT_S) and named.next("granted", WAIT_S)
    node.api().must("POST", CLASSES, device_class())
    node.start_driver(1)
    assert of_class.next("granted", WAIT_S)
    gone = Taking(node, resources=[node.pb.LeaseResource(resource="tpu")])
    gone.next("waiting")
    gone.cancel()
    until(lambda: len(leases(node)) == 3, WAIT_S, "nothing else is there")
