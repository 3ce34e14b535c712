"""A runtime in trouble, and containers that make some: each pod says why, and others go on."""

import os
import subprocess

import pytest
from containerd import Containerd, why_not
from procs import until
from runtime_nodes import WAIT_S, RuntimeNode, container, pod

SMALL_DISK_BYTES = 64 << 20


def events_say(node, name, reason, text):
    until(lambda: any(one == reason and text in message for one, message in node.events(name)),
          WAIT_S, lambda: f"{reason} {text}: {node.events(name)}")


class TestFullDisk:
    """Of images and containers; davitd's own is another one."""

    @pytest.fixture
    def containerd(self, short_dir):
        reason = why_not()
        if reason:
            pytest.skip(reason)
        runtime = Containerd(short_dir, disk_bytes=SMALL_DISK_BYTES)
        try:
            yield runtime.start()
        finally:
            runtime.close()

    @pytest.fixture
    def new_node(self, containerd):
        return lambda procs, root, *options: RuntimeNode(procs, root, containerd, *options)

    def test_pods_wait_for_room(self, node):
        inside = node.runtime.enter
        filler = os.path.join(node.runtime.folder, "root", "filler")
        node.add(pod("before"))
        node.wait_phase("before", "Running")
        subprocess.run([*inside, "sh", "-c", f"cat /dev/zero >{filler} 2>/dev/null"], check=False)
        node.add(pod("p"))
        events_say(node, "p", "FailedCreatePodSandBox", "no space left on device")
        assert node.phase("p") == "Pending"
        assert node.containers() == {("before", "main", 0): "RUNNING"}
        assert node.phase("before") == "Running"
        subprocess.run([*inside, "rm", filler], check=True)
        node.wait_phase("p", "Running")
        node.delete("before")
        node.wait_gone("before")


def test_a_runtime_that_hangs_holds_up_pods_only(node):
    """The API answers meanwhile; afterwards all that was asked for is done, once."""
    node.add(pod("old"))
    node.wait_phase("old", "Running")
    node.runtime.freeze()
    try:
        node.add(pod("new"))
        node.delete("old")
        node.add({"metadata": {"name": "m"}, "data": {"k": "v"}}, "configmaps")
        assert node.phase("new") == "Pending"
        node.kill()
        node.start()
        assert node.phase("old") == "Running"
    finally:
        node.runtime.thaw()
    node.wait_phase("new", "Running")
    node.wait_gone("old")
    assert node.pod("new")["status"]["containerStatuses"][0]["restartCount"] == 0


def test_containers_that_misbehave(node):
    """One closes what it was given, one makes many processes, one ends at once again and again."""
    node.add(pod("closes", container(script="exec <&- >&- 2>&-; sleep 1000")))
    node.add(pod("forks", container(
        script="i=0; while [ $i -lt 200 ]; do sleep 1000 & i=$((i+1)); done; echo up; wait")))
    node.add(pod("ends", container(script="exit 1")))
    node.add(pod("ignores", container(script="trap '' TERM; while :; do sleep 0.1; done")))
    node.add(pod("talks", container(script="head -c 20000000 /dev/zero; echo; sleep 1000")))
    for name in ("closes", "forks", "ignores", "talks"):
        node.wait_phase(name, "Running")
    until(lambda: node.log("forks") == "up", WAIT_S, "its processes")
    node.wait_status("ends", lambda s: s["containerStatuses"][0]["restartCount"] > 0, "restarts")
    assert node.phase("ends") == "Running"
    for name in ("closes", "forks", "ends", "ignores", "talks"):
        node.delete(name)
    for name in ("closes", "forks", "ends", "ignores", "talks"):
        node.wait_gone(name)
    until(lambda: not node.containers() and not node.sandboxes(), WAIT_S, "nothing is left")


def test_a_thousand_variables(node):
    """They are seen inside as they were given, those that are made of others too."""
    env = [{"name": f"V{number}", "value": f"{number} $(V{number - 1})"[:40]}
           for number in range(1000)]
    node.add(pod("p", container(script="env | grep -c ^V; echo \"$V3\"; sleep 1000", env=env)))
    node.wait_phase("p", "Running")
    until(lambda: node.log("p").splitlines() == ["1000", "3 2 1 0 $(V-1)"], WAIT_S,
          lambda: node.log("p"))
