"""A second node, whose agent is a davitd of its own, and what happens when it is gone for good."""

import os
import signal
import time

import pytest

from nodes import run_davit
from procs import until
from servers import CLAIMS, NODES, PODS, SLICES
from whole_nodes import (
    CLASSES, GPU, TEMPLATES, WAIT_S, AgentNode, condition, device_class, devices_of, get, held, items,
    pod, template, wait_gone, wait_ready, wait_unscheduled,
)

pytestmark = pytest.mark.release

# After which a node is taken for lost that does not renew its lease.
SILENT_S = 40


def make_kubeconfig(node, folder, *words):
    path = os.path.join(folder, f"{'-'.join(words).strip('-')}.kubeconfig")
    done = run_davit("token", "create", *words, "--write-kubeconfig", path,
                     "--kubeconfig", node.kubeconfig)
    assert done.returncode == 0, done
    return path


@pytest.fixture
def agent(node, procs, short_dir):
    """n2, with a driver of 2 devices."""
    made = AgentNode(procs, os.path.join(short_dir, "n2"), "n2",
                     make_kubeconfig(node, short_dir, "--node", "n2"))
    made.start()
    made.driver = made.start_driver(
        2, kubeconfig=make_kubeconfig(node, short_dir, "--driver", GPU, "--node", "n2"))
    yield made
    if made.proc.is_alive:
        assert made.stop() == 0, made.proc.describe()


def vanish(agent):
    """As if its machine had lost power."""
    agent.kill()
    agent.driver.proc.kill()


def test_pods_run_where_the_devices_are(api, agent):
    api.must("POST", CLASSES, device_class())
    api.must("POST", TEMPLATES, template())
    for name in ("p1", "p2"):
        api.must("POST", PODS, pod(name, of_template="one"))
    wait_ready(api, "p1", "p2")
    assert {get(api, PODS, name)["spec"]["nodeName"] for name in ("p1", "p2")} == {"n2"}
    assert set(held(api)) == {"n2/device-0", "n2/device-1"} and len(agent.driver.prepared()) == 2
    api.must("POST", PODS, pod("p3", of_template="one"))
    wait_unscheduled(api, "p3", "2 cannot allocate all claims")
    api.must("DELETE", f"{PODS}/p1")
    wait_gone(api, PODS, "p1")
    wait_ready(api, "p3")
    assert len(held(api)) == 2 and len(agent.driver.prepared()) == 2


def test_what_a_node_had_that_is_gone_is_given_up_by_force(api, agent):
    api.must("POST", CLASSES, device_class())
    api.must("POST", TEMPLATES, template())
    api.must("POST", PODS, pod("p1", of_template="one"))
    wait_ready(api, "p1")
    vanish(agent)
    api.must("DELETE", f"{PODS}/p1")
    time.sleep(2)  # its grace is over, and nobody there says that it has ended
    assert get(api, PODS, "p1")["metadata"]["deletionTimestamp"] and len(held(api)) == 1
    api.must("DELETE", f"{PODS}/p1", {"gracePeriodSeconds": 0})
    wait_gone(api, PODS, "p1")
    until(lambda: items(api, CLAIMS) == [], WAIT_S, "its claim is gone")
    # What the driver published goes with the node, when that is deleted.
    assert [one["spec"]["nodeName"] for one in items(api, SLICES)] == ["n2"]
    api.must("DELETE", f"{NODES}/n2")
    until(lambda: items(api, SLICES) == [], WAIT_S, "its slices are gone")
    api.must("POST", PODS, pod("p2", of_template="one"))
    wait_unscheduled(api, "p2", "0/1 nodes are available: 1 cannot allocate all claims")
    assert held(api) == {} and devices_of(items(api, CLAIMS)[0]) == []


def ready_of(api, name):
    return condition(get(api, NODES, name), "Ready").get("status")


def taints_of(api, name):
    return [one["key"] for one in get(api, NODES, name)["spec"].get("taints", [])]


def test_nothing_is_scheduled_to_a_node_that_is_silent(api, agent):
    api.must("POST", CLASSES, device_class())
    api.must("POST", TEMPLATES, template())
    until(lambda: ready_of(api, "n2") == "True", WAIT_S, "n2 is ready")
    agent.proc.signal(signal.SIGSTOP)
    try:
        until(lambda: ready_of(api, "n2") == "Unknown", SILENT_S + WAIT_S, "n2 is unknown")
        assert taints_of(api, "n2") == ["node.kubernetes.io/unreachable"]
        api.must("POST", PODS, pod("p1", of_template="one"))
        wait_unscheduled(api, "p1", "node.kubernetes.io/unreachable")
        assert held(api) == {}
        assert ready_of(api, "n1") == "True" and taints_of(api, "n1") == []
    finally:
        agent.proc.signal(signal.SIGCONT)
    until(lambda: ready_of(api, "n2") == "True" and taints_of(api, "n2") == [], WAIT_S,
          f"n2 is ready again: {get(api, NODES, 'n2')}")
    wait_ready(api, "p1")
    assert get(api, PODS, "p1")["spec"]["nodeName"] == "n2"
