"""The cgroups of pods, on this machine's own cgroups: made with their limits, used, and removed."""

import glob
import os

import pytest
from procs import until
from runtime_nodes import WAIT_S, container, pod

CGROUPS = "/sys/fs/cgroup"
POD = "davit/kubepods/{}pod{}"


def groups(uid):
    """The directories of the pod's groups, in all hierarchies and classes."""
    return [path for pattern in ("", "*/") for above in ("*/", "")
            for path in glob.glob(f"{CGROUPS}/{above}davit/kubepods/{pattern}pod{uid}")]


def read(uid, level, *names):
    """The first of these files that is there: version 1 has its controllers apart."""
    for name in names:
        controller = name.split(".")[0]
        for above in (f"{controller}/", f"{controller},*/", ""):
            for path in glob.glob(f"{CGROUPS}/{above}{POD.format(level, uid)}/{name}"):
                with open(path, encoding="ascii") as file:
                    return file.read().strip()
    return None


@pytest.fixture(autouse=True)
def _writable():
    """Where cgroups cannot be made, pods run without; that is another test's business."""
    places = glob.glob(f"{CGROUPS}/memory") or [CGROUPS]
    if not os.access(places[0], os.W_OK):
        pytest.skip("no cgroups that can be written")


def test_a_pod_has_a_group_with_its_limits(node):
    limits = {"cpu": "500m", "memory": "64Mi"}
    one = node.add(pod("one", container(resources={"limits": limits})))
    two = node.add(pod("two", container(resources={"requests": {"cpu": "100m"}})))
    three = node.add(pod("three"))
    for name in ("one", "two", "three"):
        node.wait_phase(name, "Running")
    assert read(one, "", "memory.limit_in_bytes", "memory.max") == str(64 << 20)
    assert read(one, "", "cpu.cfs_quota_us", "cpu.max").split()[0] == "50000"
    assert read(one, "", "cpu.shares", "cpu.weight") in ("512", "20")
    assert read(two, "burstable/", "cpu.shares", "cpu.weight") in ("102", "4")
    assert read(three, "besteffort/", "cpu.shares", "cpu.weight") in ("2", "1")
    # its containers are in it
    inside = [name for path in groups(one) for name in os.listdir(path)
              if os.path.isdir(os.path.join(path, name))]
    assert set(inside) >= {node.pod("one")["status"]["containerStatuses"][0]["containerID"]
                           .removeprefix("containerd://")}
    for name, uid in (("one", one), ("two", two), ("three", three)):
        node.delete(name)
        node.wait_gone(name)
        until(lambda uid=uid: not groups(uid), WAIT_S, f"the groups of {name}: {groups(uid)}")


def test_a_group_that_was_left_over_goes(node):
    """davitd is killed, and the pod's object gone, before the group is removed."""
    uid = node.add(pod("p"))
    node.wait_phase("p", "Running")
    assert groups(uid)
    node.kill()
    node.start()
    node.delete("p", gracePeriodSeconds=0)
    until(lambda: not groups(uid), WAIT_S, "the groups of a pod that is gone")


def test_pods_run_without(make_node):
    node = make_node("--cgroup-root", "none").start()
    uid = node.add(pod("p"))
    node.wait_phase("p", "Running")
    assert not groups(uid)
