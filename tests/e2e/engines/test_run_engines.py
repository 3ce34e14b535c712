"""davit run with container engines that run here: what their containers see is looked at from inside."""

import json
import os
import shlex
import shutil
import signal
import subprocess
import uuid

import busybox_image
import pytest
from bundles import Bundle
from lease_server import is_there
from procs import until
from test_run_plain import davit, start

IMAGE = "localhost/davit-busybox:1"
# A device that reads as zeros, a variable, and a mount: what each container is to have.
LOOK = "head -c 2 /dev/gpu0 | od -An -tx1; echo $GPU $DAVIT_LEASE; cat /data/file"
SEEN = " 00 00\nyes l-1\nfrom the host\n"


def works(*words, **options):
    try:
        return subprocess.run(words, capture_output=True, timeout=60, check=False,
                              **options).returncode == 0
    except FileNotFoundError:
        return False


@pytest.fixture
def granted(leases, device, short_dir):
    """A server whose leases have the device, a variable and a mount."""
    folder = os.path.join(short_dir, "data")
    os.mkdir(folder)
    with open(os.path.join(folder, "file"), "w", encoding="utf-8") as file:
        file.write("from the host\n")
    pb = leases.pb
    leases.grant = {
        "envs": [pb.KeyValue(key="GPU", value="yes")],
        "devices": [pb.DeviceNode(host_path=device, container_path="/dev/gpu0", permissions="rw")],
        "mounts": [pb.Mount(host_path=folder, container_path="/data", read_only=True)],
    }
    return leases


@pytest.fixture
def write_spec(short_dir, device):
    """Writes a CDI spec with the device vendor.com/gpu=0."""
    def write(folder, **edits):
        os.makedirs(folder, exist_ok=True)
        spec = {"cdiVersion": "0.5.0", "kind": "vendor.com/gpu", "devices": [{
            "name": "0", "containerEdits": {
                "deviceNodes": [{"path": "/dev/gpu0", "hostPath": device}],
                "env": ["GPU=cdi"], **edits}}]}
        with open(os.path.join(folder, "vendor.json"), "w", encoding="utf-8") as file:
            json.dump(spec, file)
        return folder

    return write


class Podman:
    def __init__(self, folder):
        self.folder = folder
        self.command = ["podman", "--root", f"{folder}/root", "--runroot", f"{folder}/run",
                        "--storage-driver", "vfs", "--cgroup-manager", "cgroupfs",
                        "--events-backend", "file", "--tmpdir", f"{folder}/tmp", "--runtime", "runc"]
        # Networks are not the point; higher limits than these cannot be set in every place.
        self.options = ["--rm", "--network=none", "--pull=never",
                        "--ulimit=nofile=1024:1024", "--ulimit=nproc=1024:1024"]

    def run(self, *words):
        return subprocess.run([*self.command, *words], capture_output=True, text=True, timeout=100,
                              check=False)


@pytest.fixture(scope="module")
def podman():
    if not shutil.which("podman"):
        pytest.skip("podman is not installed")
    folder = f"/tmp/dvpod-{uuid.uuid4().hex[:8]}"
    os.mkdir(folder)
    made = Podman(folder)
    busybox_image.write(f"{folder}/image.tar", IMAGE)
    loaded = made.run("load", "-i", f"{folder}/image.tar")
    tried = made.run("run", *made.options, IMAGE, "true")
    if loaded.returncode or tried.returncode:
        shutil.rmtree(folder, ignore_errors=True)
        pytest.skip(f"podman runs no containers here: {loaded.stderr} {tried.stderr}")
    yield made
    made.run("rm", "-af", "-t", "0")
    made.run("system", "reset", "-f")
    mounts = os.path.join(folder, "root", "overlay")
    subprocess.run(["umount", "-R", mounts], capture_output=True, check=False)
    shutil.rmtree(folder, ignore_errors=True)


# crun does not start where control groups of both versions are mounted: it gets a view with those of
# version 2 alone, and leaves them be.
CRUN = """#!/bin/sh
exec unshare -m sh -c 'umount -R /sys/fs/cgroup && mount -t cgroup2 none /sys/fs/cgroup &&
    exec /usr/bin/crun --cgroup-manager=disabled "$@"' sh "$@"
"""


def program_that_works(name, folder, path):
    """The engine, or a script of its name that makes it work here."""
    if works(name, "run", "-b", path, f"dv-{uuid.uuid4()}"):
        return name
    if name == "crun" and shutil.which(name):
        name = os.path.join(folder, "crun")
        with open(name, "w", encoding="utf-8") as file:
            file.write(CRUN)
        os.chmod(name, 0o755)
        if works(name, "run", "-b", path, f"dv-{uuid.uuid4()}"):
            return name
    return None


@pytest.fixture(params=["runc", "crun"])
def bundle(request, short_dir):
    """A bundle, and the program that runs it."""
    made = Bundle(os.path.join(short_dir, "bundle"))
    config = made.config
    config["process"]["terminal"] = False
    config["process"]["args"] = ["sh", "-c", LOOK]
    config["root"]["readonly"] = False
    os.makedirs(os.path.join(made.path, "rootfs", "bin"), exist_ok=True)
    for name in ("head", "od", "cat", "sleep", "echo"):
        os.symlink("sh", os.path.join(made.path, "rootfs", "bin", name))
    config["process"]["args"] = ["true"]
    os.symlink("sh", os.path.join(made.path, "rootfs", "bin", "true"))
    with open(made.config_path, "w", encoding="utf-8") as file:
        json.dump(config, file)
    made.program = program_that_works(request.param, short_dir, made.path)
    if not made.program:
        pytest.skip(f"{request.param} runs no containers here")
    return made


def set_line(bundle, line):
    config = bundle.config
    config["process"]["args"] = ["sh", "-c", line]
    with open(bundle.config_path, "w", encoding="utf-8") as file:
        json.dump(config, file)
    return config


def test_bundles_are_run_with_a_config_of_their_own(granted, bundle, short_dir, monkeypatch):
    monkeypatch.setenv("TMPDIR", short_dir)
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    before = set_line(bundle, LOOK)
    done = davit(granted, "run", "--gpu", "1", "--", bundle.program, "run", "--bundle", bundle.path,
                 f"dv-{uuid.uuid4()}")
    assert (done.stdout, done.returncode) == (SEEN, 0), done
    assert bundle.config == before
    assert not [name for name in os.listdir(short_dir) if name.startswith("davit-run-")]
    assert not granted.held


def test_a_container_in_the_background_keeps_the_lease(granted, bundle):
    set_line(bundle, "sleep 100")
    name = f"dv-{uuid.uuid4()}"
    done = subprocess.run(
        [os.path.join(os.environ["DAVIT_BUILD"], "davit"), "run", "--socket", granted.socket, "--gpu",
         "1", "--", bundle.program, "run", "-d", "-b", bundle.path, name],
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=60,
        check=False)
    try:
        assert done.returncode == 0
        lease, = granted.held
        assert is_there(lease.pid) and lease.pid != lease.request.owner.pid
    finally:
        subprocess.run([bundle.program, "delete", "-f", name], capture_output=True, check=False)
    until(lambda: not is_there(lease.pid), 20, "the container's end")
    assert "no leases" in davit(granted, "leases").stderr


def test_podman_gets_options(granted, podman):
    done = davit(granted, "run", "--gpu", "1", "--", *podman.command, "run", *podman.options, IMAGE,
                 "sh", "-c", LOOK, timeout=60)
    assert (done.stdout, done.returncode) == (SEEN, 0), done
    assert not granted.held


def test_podman_takes_cdi_devices_by_name(leases, podman, write_spec, short_dir):
    """Where the spec is in a folder that podman knows; elsewhere it is expanded."""
    folder = write_spec(os.path.join(short_dir, "cdi"))
    leases.grant = {"cdi_devices": ["vendor.com/gpu=0"]}
    words = ["--gpu", "1", "--cdi-dirs", folder, "--", *podman.command, "run", *podman.options, IMAGE,
             "sh", "-c", "echo $GPU; head -c 1 /dev/gpu0 | od -An -tx1"]
    done = davit(leases, "run", *words, timeout=60)
    assert (done.stdout, done.returncode) == ("cdi\n 00\n", 0), done
    shown = davit(leases, "run", "--print", *words, timeout=60).stdout
    assert f"--device {os.path.dirname(folder)}/gpu0:/dev/gpu0:rwm" in shown
    etc = "/etc/cdi"
    name = f"davit-test-{uuid.uuid4().hex}.json"
    had = os.path.isdir(etc)
    os.makedirs(etc, exist_ok=True)
    shutil.copy(os.path.join(folder, "vendor.json"), os.path.join(etc, name))
    try:
        words[3] = etc
        shown = davit(leases, "run", "--print", *words, timeout=60).stdout
        assert "run --device vendor.com/gpu=0 --env DAVIT_LEASE" in shown
        done = davit(leases, "run", *words, timeout=60)
        assert (done.stdout, done.returncode) == ("cdi\n 00\n", 0), done
    finally:
        os.remove(os.path.join(etc, name))
        if not had:
            os.rmdir(etc)


def test_a_hook_that_podman_cannot_be_told_names_the_setting(leases, podman, write_spec, short_dir):
    folder = write_spec(os.path.join(short_dir, "cdi"),
                        hooks=[{"hookName": "createContainer", "path": "/bin/true"}])
    leases.grant = {"cdi_devices": ["vendor.com/gpu=0"]}
    done = davit(leases, "run", "--gpu", "1", "--cdi-dirs", folder, "--", *podman.command, "run",
                 IMAGE, "true", timeout=60)
    assert done.returncode == 3
    assert "wants the hook /bin/true (createContainer)" in done.stderr
    assert "the spec in /etc/cdi or /var/run/cdi" in done.stderr
    assert not leases.held


def test_a_podman_container_in_the_background_keeps_the_lease(granted, podman):
    done = davit(granted, "run", "--gpu", "1", "--", *podman.command, "run", *podman.options, "-d",
                 IMAGE, "sleep", "100", timeout=60)
    assert done.returncode == 0, done
    lease, = granted.held
    assert is_there(lease.pid) and lease.pid != lease.request.owner.pid
    podman.run("rm", "-f", "-t", "0", done.stdout.strip())
    until(lambda: not is_there(lease.pid), 20, "the container's end")


def test_the_lease_is_the_containers_when_its_client_is_killed(granted, podman):
    proc = start(granted, "run", "--gpu", "1", "--", *podman.command, "run", *podman.options,
                 "--name", "dv-killed", IMAGE, "sleep", "100")
    try:
        until(lambda: granted.held and granted.held[0].pid != granted.held[0].request.owner.pid, 30,
              "the lease to be the container's")
        os.kill(granted.held[0].request.owner.pid, signal.SIGKILL)
        assert proc.wait(20) == 137
        assert is_there(granted.held[0].pid)
    finally:
        podman.run("rm", "-f", "-t", "0", "dv-killed")


def test_a_process_can_be_alone_with_its_device(granted, device):
    """Isolated, nothing but the device and what every program expects is in /dev, and it stays so."""
    place = os.path.join(os.path.dirname(device), "place")
    os.mkdir(place)
    granted.grant["mounts"][0].container_path = place
    done = davit(granted, "run", "--gpu", "1", "--isolate", "--", "sh", "-c",
                 f"PLACE={place}; ls /dev | tr '\\n' ' '; head -c 2 /dev/gpu0 | od -An -tx1; cat $PLACE/file; "
                 "mknod /tmp/made-by-davit c 1 5 2>/dev/null && echo made; "
                 "mount -t devtmpfs x /mnt 2>/dev/null && echo mounted; "
                 "touch /dev/more 2>/dev/null && echo touched; echo $GPU; id -u")
    if "user namespace" in done.stderr:
        pytest.skip(done.stderr)
    assert done.returncode == 0, done
    names, seen = done.stdout.split("  00 00\n")
    assert set(names.split()) <= {"null", "zero", "full", "random", "urandom", "tty", "pts", "shm",
                                  "mqueue", "fd", "stdin", "stdout", "stderr", "ptmx", "gpu0", "console"}
    assert {"null", "gpu0", "urandom"} <= set(names.split())
    assert seen == f"from the host\nyes\n{os.getuid()}\n"


# What somebody tries who wants more than the leased device; each prints a word when it works.
ESCAPES = """
umount -l /dev && echo unmounted
umount -l /dev/gpu0 && echo uncovered
head -c 1 %s >/dev/null && echo elsewhere
mount -o remount,bind,dev / && head -c 1 %s >/dev/null && echo remounted
mount --bind / /mnt && ls /mnt/dev/kmsg && echo bound
unshare -Urm sh -c 'umount -l /dev && echo nested; mount -t devtmpfs x /mnt && echo devtmpfs'
for process in /proc/[0-9]*; do ls $process/root/dev/kmsg && echo through $process; done
nsenter -t 1 -m true && echo entered
echo tried
"""


@pytest.mark.parametrize("uid", [0, 65534])
def test_nothing_leads_out_of_isolation(granted, short_dir, device, uid):
    del granted.grant["mounts"]
    os.chmod(short_dir, 0o755)
    os.chmod(granted.socket, 0o777)
    program = os.path.join(os.environ["DAVIT_BUILD"], "davit")
    who = ["setpriv", "--reuid", str(uid), "--regid", str(uid), "--clear-groups"]
    if not works(*who, program, "version"):
        pytest.skip("another user cannot run this davit")
    done = subprocess.run(
        [*who, program, "run", "--socket", granted.socket, "--gpu", "1", "--isolate", "--", "sh", "-c",
         f"exec 2>/dev/null; head -c 1 /dev/gpu0 | od -An -tx1; {ESCAPES % (device, device)}"],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False)
    if "user namespace" in done.stderr:
        pytest.skip(done.stderr)
    assert done.stdout == " 00\ntried\n", done


@pytest.mark.parametrize("uid", [0, 65534])
def test_an_isolated_process_can_have_terminals(granted, short_dir, uid):
    del granted.grant["mounts"]
    os.chmod(short_dir, 0o755)
    os.chmod(granted.socket, 0o777)
    program = os.path.join(os.environ["DAVIT_BUILD"], "davit")
    who = ["setpriv", "--reuid", str(uid), "--regid", str(uid), "--clear-groups"]
    if not works(*who, program, "version"):
        pytest.skip("another user cannot run this davit")
    inner = [*who, program, "run", "--socket", granted.socket, "--gpu", "1", "--isolate", "--", "sh",
             "-c", "tty; script -qec 'tty >/dev/null && echo another' /dev/null </dev/null"]
    done = subprocess.run(["script", "-qec", shlex.join(inner), "/dev/null"],
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60,
                          check=False)
    if "user namespace" in done.stdout:
        pytest.skip(done.stdout)
    lines = done.stdout.split()
    assert lines[-2].startswith("/dev/") and lines[-1] == "another", done


def test_anybody_can_be_isolated(granted, short_dir, device):
    """Also a user who is not root."""
    del granted.grant["mounts"]
    for path in (short_dir, os.path.join(short_dir, "data")):
        os.chmod(path, 0o755)
    os.chmod(granted.socket, 0o777)
    program = os.path.join(os.environ["DAVIT_BUILD"], "davit")
    if not works("setpriv", "--reuid", "65534", "--clear-groups", program, "version"):
        pytest.skip("another user cannot run this davit")
    done = subprocess.run(
        ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", program, "run",
         "--socket", granted.socket, "--gpu", "1", "--isolate", "--", "sh", "-c",
         "id -u; ls /dev/gpu0; head -c 1 /dev/gpu0 | od -An -tx1; ls /dev/kmsg 2>/dev/null"],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False)
    if "sysctl" in done.stderr:
        pytest.skip(done.stderr)
    assert done.stdout == "65534\n/dev/gpu0\n 00\n", done
