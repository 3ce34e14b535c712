"""A containerd of one's own, in a folder: python3 containerd.py FOLDER prints its socket and waits.

It lives in namespaces for processes and mounts that end with their first process, which ends with
whoever started it. So nothing is left of its shims, containers, mounts and networks, however the
end comes; cgroups and the folder are cleaned by a process that waits for it. All its files are in
the folder; of the machine only cgroups and, in the network, pairs of interfaces are used.

Mounts that others make in the folder are seen by its containers: davitd's volumes have to be there.
"""

import ctypes
import glob
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time

import busybox_image
from procs import until

try:
    from cri_client import Cri, RpcError
except ImportError:  # whoever starts it by hand needs no client
    Cri = None

START_S = 60
STOP_S = 30
NAMESPACE = "k8s.io"
PROGRAMS = ("containerd", "ctr", "runc", "busybox", "unshare", "nsenter", "/usr/lib/cni/ptp")

CONFIG = """
version = 2
root = "{folder}/root"
state = "{folder}/state"
disabled_plugins = [
  "io.containerd.snapshotter.v1.aufs", "io.containerd.snapshotter.v1.btrfs",
  "io.containerd.snapshotter.v1.devmapper", "io.containerd.snapshotter.v1.zfs",
  "io.containerd.internal.v1.opt", "io.containerd.tracing.processor.v1.otlp",
  "io.containerd.internal.v1.tracing"]
[grpc]
  address = "{socket}"
[ttrpc]
  address = "{folder}/ttrpc.sock"
[plugins."io.containerd.grpc.v1.cri"]
  restrict_oom_score_adj = true
  disable_apparmor = true
  netnsmounts_under_state_dir = true
  enable_cdi = true
  cdi_spec_dirs = ["{shared}/cdi"]
  sandbox_image = "{pause}"
  {cri}
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "{folder}/cni"
"""

# What runs first in the namespaces, and last. containerd's shims keep their sockets in
# /run/containerd, and CNI its notes in /var/lib/cni, whatever they are told. ptp wants the machine
# to forward packets, and believes that it does. What ends is waited for.
FIRST = """
mount -t tmpfs tmpfs /run/containerd && mount -t tmpfs tmpfs /var/lib/cni || exit 1
echo 1 >{folder}/forward && mount --bind {folder}/forward /proc/sys/net/ipv4/ip_forward || exit 1
{mount}
echo ready
while :; do sleep 1000 & wait $!; done
"""
# They stay as empty folders: to remove one would take away what is mounted there in the namespaces
# of another containerd.
PLACES = ("/run/containerd", "/var/lib/cni")

PR_SET_PDEATHSIG = 1


def _die_with_parent():
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def why_not():
    """What is missing for containers on this machine; None: nothing."""
    if os.geteuid() != 0:
        return "containers need root"
    for program in PROGRAMS:
        if subprocess.run(["which", program], stdout=subprocess.DEVNULL, check=False).returncode:
            return f"{program} is not installed (Debian: containerd, containernetworking-plugins)"
    return None


def mounts_under(folder):
    """Where something is mounted in the folder, the innermost first."""
    with open("/proc/self/mountinfo", encoding="utf-8") as table:
        places = [line.split()[4].encode().decode("unicode_escape") for line in table]
    return [place for place in reversed(places) if f"{place}/".startswith(f"{folder}/")]


def unmount_all(folder):
    for place in mounts_under(folder):
        subprocess.run(["umount", "-l", place], check=False, stderr=subprocess.DEVNULL)


class Containerd:
    """`socket` is where it serves CRI, `image` the name of an image with busybox that it has.

    `folder` must be a short path, and is bound to itself while this lives."""

    image = "davit.test/busybox:1"

    def __init__(self, folder, config="", cri="", disk_bytes=0):
        self.shared = os.path.realpath(folder)
        self.folder = os.path.join(self.shared, "containerd")
        self.socket = os.path.join(self.folder, "c.sock")
        self.config = config  # more lines of config.toml
        self.cri_config = cri  # more lines of its part for CRI
        self.disk_bytes = disk_bytes  # of a disk of its own for images and containers; 0: none
        self._first = self._runtime = self._cleaner = None
        self._clients = []

    def start(self):
        number = os.getpid()
        os.makedirs(os.path.join(self.folder, "cni"))
        with open(os.path.join(self.folder, "config.toml"), "w", encoding="utf-8") as file:
            file.write(CONFIG.format(folder=self.folder, shared=self.shared,
                                     socket=self.socket, pause=busybox_image.PAUSE,
                                     cri=self.cri_config) + self.config)
        network = {"cniVersion": "0.4.0", "name": "davit-test", "plugins": [{
            "type": "ptp", "ipam": {
                "type": "host-local", "dataDir": os.path.join(self.folder, "addresses"),
                "ranges": [[{"subnet": f"10.{100 + number // 256 % 100}.{number % 256}.0/24"}]]}}]}
        with open(os.path.join(self.folder, "cni", "10-davit.conflist"), "w",
                  encoding="utf-8") as file:
            json.dump(network, file)
        self._share()
        self._enter()
        self._run()
        archive = os.path.join(self.folder, "image.tar")
        busybox_image.write(archive, self.image)
        self.ctr("images", "import", archive)
        # The service for pods learns of it a moment later, and then says so on the image.
        until(lambda: self.ctr("images", "ls").count("io.cri-containerd.image=managed") >= 2,
              START_S, "containerd knows its images")
        return self

    def _share(self):
        """What the namespaces leave is removed by a process that outlives us."""
        self._cleaner = subprocess.Popen(
            [sys.executable, "-B", __file__, "--clean", self.shared], stdin=subprocess.PIPE,
            start_new_session=True)
        for place in PLACES:
            os.makedirs(place, exist_ok=True)
        subprocess.run(["mount", "--bind", self.shared, self.shared], check=True)
        subprocess.run(["mount", "--make-shared", self.shared], check=True)

    def _enter(self):
        """Makes the namespaces."""
        mount = f"mkdir {self.folder}/root && mount -t tmpfs -o size={self.disk_bytes} tmpfs " \
            f"{self.folder}/root || exit 1" if self.disk_bytes else ""
        self._first = subprocess.Popen(
            ["unshare", "--mount", "--propagation", "slave", "--pid", "--fork", "--kill-child",
             "--mount-proc", "busybox", "sh", "-c", FIRST.format(folder=self.folder, mount=mount)],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, preexec_fn=_die_with_parent)
        if self._first.stdout.readline() != b"ready\n":
            raise RuntimeError("no namespaces for containerd")

    @staticmethod
    def _child_of(pid):
        with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as children:
            return (children.read().split() or [None])[0]

    def _run(self):
        with open(os.path.join(self.folder, "log"), "ab") as log:
            self._runtime = subprocess.Popen(
                ["nsenter", "--target", self._child_of(self._first.pid), "--mount", "--pid",
                 "containerd", "-c", os.path.join(self.folder, "config.toml")],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        until(self._serves, START_S, "containerd's pods")

    def _serves(self):
        """Whether it has found its pods again, which takes a moment longer than to answer."""
        assert self._runtime.poll() is None, self.log[-4000:]
        with socket.socket(socket.AF_UNIX) as listener:  # gRPC would wait a second between tries
            if listener.connect_ex(self.socket):
                return None
        if not Cri:
            return True
        client = Cri(self.socket)
        try:
            return client.call("ListPodSandbox")
        except RpcError:
            return None
        finally:
            client.close()

    @property
    def log(self):
        with open(os.path.join(self.folder, "log"), encoding="utf-8", errors="replace") as log:
            return log.read()

    @property
    def pid(self):
        return int(self._child_of(self._runtime.pid))

    def stop(self, number=signal.SIGKILL):
        """Ends containerd; its containers go on."""
        os.kill(self.pid, number)
        self._runtime.wait(STOP_S)

    def restart(self, number=signal.SIGKILL):
        self.stop(number)
        self._run()

    def reboot(self):
        """What was in memory is gone: processes, mounts, states; what is on the disk is not."""
        self._end()
        remove_cgroups(self.shared)
        shutil.rmtree(os.path.join(self.folder, "state"))
        self._enter()
        self._run()

    def freeze(self):
        """It hangs from now on, until `thaw`."""
        os.kill(self.pid, signal.SIGSTOP)

    def thaw(self):
        os.kill(self.pid, signal.SIGCONT)
        self._runtime.send_signal(signal.SIGCONT)  # nsenter stops with its child

    @property
    def enter(self):
        """The words before a command that is to run among its mounts."""
        return ["nsenter", "--target", self._child_of(self._first.pid), "--mount"]

    def ctr(self, *args):
        """What containerd's own tool prints, of the namespace that CRI uses."""
        done = subprocess.run(["ctr", "-a", self.socket, "-n", NAMESPACE, *args], check=False,
                              timeout=START_S, text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT)
        assert done.returncode == 0, f"ctr {args}: {done.stdout}"
        return done.stdout

    def cri(self):
        """A client of its CRI that is not ours."""
        self._clients.append(Cri(self.socket))
        return self._clients[-1]

    def containers(self):
        """The ids of all containers and sandboxes."""
        return self.ctr("containers", "ls", "-q").split()

    def tasks(self):
        """{id: "RUNNING" or "STOPPED"}"""
        rows = [line.split() for line in self.ctr("tasks", "ls").splitlines()[1:]]
        return {row[0]: row[2] for row in rows}

    def _end(self):
        for client in self._clients:
            client.close()
        if self._first:
            self._first.kill()  # the kernel ends all that is in its namespaces
            self._first.wait(STOP_S)
            self._first.stdout.close()
        if self._runtime:
            self._runtime.wait(STOP_S)

    def close(self):
        self._end()
        if self._cleaner:
            self._cleaner.communicate(timeout=STOP_S)


def _remove_cgroup(path, end):
    """Removes a group and those above it that are empty then; one that is in use stays."""
    while not os.path.ismount(path):
        try:
            os.rmdir(path)
        except OSError:
            if glob.glob(os.path.join(path, "*", "")) or time.monotonic() > end:
                return
            time.sleep(0.01)  # a process that was killed takes a moment to go
        else:
            path = os.path.dirname(path)


def remove_cgroups(folder):
    """Those of the containers, which the kernel leaves."""
    state = os.path.join(folder, "containerd", "state")
    tasks = glob.glob(os.path.join(state, "io.containerd.runtime.v2.task", "*", "*"))
    ids = set(map(os.path.basename, tasks))
    end = time.monotonic() + STOP_S / 2
    for path, folders, _ in os.walk("/sys/fs/cgroup"):
        for name in ids.intersection(folders):
            _remove_cgroup(os.path.join(path, name), end)


def clean(folder):
    """Removes what the kernel does not: cgroups, and mounts that were made in the folder."""
    remove_cgroups(folder)
    unmount_all(folder)
    shutil.rmtree(os.path.join(folder, "containerd"), ignore_errors=True)


def main(folder):
    reason = why_not()
    if reason:
        sys.exit(reason)
    runtime = Containerd(folder)
    try:
        runtime.start()
        print(runtime.socket, runtime.image, flush=True)
        sys.stdin.read()
    finally:
        runtime.close()


if __name__ == "__main__":
    if sys.argv[1] == "--clean":
        sys.stdin.read()
        clean(sys.argv[2])
    else:
        main(sys.argv[1])
