"""davit finds the daemon of this machine by itself, through its admin.kubeconfig."""

import json
import os
import subprocess

import pytest

from peers import folder_of
from runs import Davit, davit_path

MANIFEST = """\
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: gpu}
spec: {selectors: [{cel: {expression: 'device.driver == "gpu.example.com"'}}]}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: c1}
spec: {devices: {requests: [{name: r0, exactly: {deviceClassName: gpu}}]}}
"""


@pytest.fixture
def daemon(procs, short_dir):
    folders = {name: os.path.join(short_dir, name) for name in ("k", "s", "r")}
    words = ["--kubelet-dir", folders["k"], "--state-dir", folders["s"],
             "--runtime-dir", folders["r"], "--node-name", "n1", "--listen", "127.0.0.1:0",
             "--cri", "none"]
    program = os.path.join(folder_of("DAVIT_BUILD"), "davitd")
    proc = procs.start(program, *words, ready="ready")
    proc.state_dir = folders["s"]
    yield proc
    if proc.is_alive:
        assert proc.stop() == 0, proc.describe()


@pytest.mark.parametrize("environment", ["", "/no/such/file"])
def test_the_daemon_of_this_machine(daemon, short_dir, environment):
    davit = Davit(environment, short_dir)

    def ok(*words, **options):
        return davit.ok(*words, "--state-dir", daemon.state_dir, env={"KUBECONFIG": environment},
                        **options)

    assert ok("apply", "-f", "-", stdin=MANIFEST) == (
        "deviceclass/gpu created\nresourceclaim/c1 created\n")
    assert ok("apply", "-f", "-", stdin=MANIFEST) == (
        "deviceclass/gpu unchanged\nresourceclaim/c1 unchanged\n")
    assert ok("get", "claims", "--no-headers").split()[0] == "c1"
    assert json.loads(ok("get", "class/gpu", "-o", "json"))["kind"] == "DeviceClass"
    assert "    Class:        gpu\n" in ok("describe", "claim", "c1")
    assert ok("delete", "-f", "-", stdin=MANIFEST) == (
        "deviceclass/gpu deleted\nresourceclaim/c1 deleted\n")


def test_a_daemon_that_has_ended(daemon, short_dir):
    assert daemon.stop() == 0
    done = Davit("", short_dir).run("get", "claims", "--state-dir", daemon.state_dir,
                                    env={"KUBECONFIG": ""})
    assert done.returncode == 4
    assert "no API server answers at https://127.0.0.1:" in done.stderr
    assert f"{daemon.state_dir}/admin.kubeconfig; start davitd" in done.stderr


@pytest.mark.release
def test_davit_loads_few_libraries_to_start():
    """Libcurl and what it brings along come when an API is asked, and not before."""
    if "asan" in folder_of("DAVIT_BUILD"):
        pytest.skip("a sanitizer brings libraries of its own")
    listed = subprocess.run(["ldd", davit_path()], capture_output=True, text=True, check=True).stdout.splitlines()
    assert len(listed) <= 22, listed
    assert not [line for line in listed if "curl" in line or "ldap" in line or "krb5" in line]
