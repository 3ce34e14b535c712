"""The private containerd itself: what other tests build on."""

import glob
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from containerd import mounts_under, why_not
from procs import until

HERE = Path(__file__).resolve().parent


def start_pod(runtime, uid, command, **fields):
    """(client, sandbox, container)"""
    cri = runtime.cri()
    config = cri.sandbox_config(uid, log_dir=os.path.join(runtime.shared, "logs", uid), **fields)
    sandbox = cri.run_sandbox(config)
    return cri, sandbox, cri.run_container(sandbox, config, "main", runtime.image, command)


def test_a_container_runs_in_a_network_of_its_own(containerd):
    forward = Path("/proc/sys/net/ipv4/ip_forward")
    before = forward.read_text(encoding="ascii")
    cri, sandbox, container = start_pod(containerd, "u1", ["sleep", "1000"])
    address = cri.call("PodSandboxStatus", pod_sandbox_id=sandbox).status.network.ip
    assert address.startswith("10.")
    assert address in cri.exec(container, "ip", "addr")[0]
    assert cri.exec(container, "sh", "-c", "exit 3") == ("", 3)
    assert forward.read_text(encoding="ascii") == before


def test_a_mount_of_the_host_is_seen_inside(containerd):
    folder = os.path.join(containerd.shared, "volume")
    os.mkdir(folder)
    subprocess.run(["mount", "-t", "tmpfs", "tmpfs", folder], check=True)
    Path(folder, "word").write_text("hello", encoding="ascii")
    cri = containerd.cri()
    config = cri.sandbox_config("u1")
    sandbox = cri.run_sandbox(config)
    mount = cri.pb.Mount(container_path="/v", host_path=folder)
    made = cri.run_container(sandbox, config, "main", containerd.image, ["sleep", "1000"],
                             mounts=[mount])
    assert cri.exec(made, "cat", "/v/word") == ("hello", 0)


def test_containers_go_on_while_containerd_restarts(containerd):
    cri, _, container = start_pod(containerd, "u1", ["sleep", "1000"])
    before = cri.exec(container, "cat", "/proc/1/stat")
    containerd.restart(signal.SIGKILL)
    cri = containerd.cri()
    assert cri.container(container).state == cri.pb.CONTAINER_RUNNING
    assert cri.exec(container, "cat", "/proc/1/stat")[0].split()[21] == before[0].split()[21]


@pytest.mark.skipif(why_not() is not None, reason=str(why_not()))
def test_nothing_is_left_when_its_owner_is_killed(short_dir):
    """Of processes, mounts and cgroups."""
    script = f"""
import sys, time
sys.path[:0] = {sys.path!r}
from containerd import Containerd
from test_containerd import start_pod
runtime = Containerd({short_dir!r}).start()
start_pod(runtime, "u1", ["sleep", "987654"])
print("ready", runtime.pid, *runtime.containers(), flush=True)
time.sleep(1000)
"""
    owner = subprocess.Popen([sys.executable, "-B", "-c", script], stdout=subprocess.PIPE,
                             text=True, env={**os.environ, "PYTHONPATH": str(HERE)})
    try:
        ready, pid, *ids = owner.stdout.readline().split()
        assert ready == "ready"
        processes = [int(entry) for entry in os.listdir("/proc") if entry.isdigit()
                     and namespace(entry) == namespace(pid)]
        assert len(processes) >= 4  # the first, containerd, a shim, a container
        assert all(cgroups_of(container) for container in ids)
    finally:
        owner.kill()
        owner.wait()
        owner.stdout.close()
    until(lambda: not any(os.path.exists(f"/proc/{pid}") for pid in processes), 60,
          "the end of all processes")
    until(lambda: not any(map(cgroups_of, ids)), 60, "the end of all cgroups")
    until(lambda: not mounts_under(short_dir), 60, "the end of all mounts")
    until(lambda: not os.path.exists(os.path.join(short_dir, "containerd")), 60, "the end of files")


def cgroups_of(container):
    return glob.glob(f"/sys/fs/cgroup/**/{container}", recursive=True)


def namespace(pid):
    try:
        return os.readlink(f"/proc/{pid}/ns/mnt")
    except OSError:
        return None
