"""What a pod that gets no devices is told about them, in its condition and in its event."""

import pytest

from nodes import run_davit
from procs import until
from servers import CLAIMS, PODS
from whole_nodes import (
    CLASSES, EVENTS, GPU, WAIT_S, claim, device_class, items, pod, wait_unscheduled,
)

pytestmark = pytest.mark.release

REFUSED = "0/1 nodes are available: 1 cannot allocate all claims. still not schedulable"
MISS = "r: 1 wanted, 4 looked at: memory = 16Gi, wanted >= 40Gi (device-0 on n1)"


def choosy_claim(name):
    one = claim(name)
    one["spec"]["devices"]["requests"][0]["exactly"]["selectors"] = [{"cel": {"expression":
        f'device.capacity["{GPU}"].memory.compareTo(quantity("40Gi")) >= 0'}}]
    return one


def make_pods(api, *names):
    api.must("POST", CLASSES, device_class())
    for name in names:
        api.must("POST", CLAIMS, choosy_claim(f"c-{name}"))
        api.must("POST", PODS, pod(name, of_claim=f"c-{name}"))


def failures(api, name):
    """What the events say of why the pod is not scheduled."""
    return [one["message"] for one in items(api, EVENTS)
            if one["involvedObject"]["name"] == name and one["reason"] == "FailedScheduling"]


def wait_told(api, name, text):
    found = wait_unscheduled(api, name, text)
    assert (found["message"], found["reason"]) == (text, "Unschedulable")
    until(lambda: text in failures(api, name), WAIT_S, f"{name} has an event that says {text!r}")


def test_a_pod_is_told_what_the_nearest_device_lacks(node, driver, kubectl):
    api = node.api()
    assert driver
    make_pods(api, "p1", "p2")
    for name in ("p1", "p2"):
        wait_told(api, name, f"{REFUSED}. {MISS}")
    assert MISS in " ".join(kubectl("describe", "pod", "p1").split())


def test_strictly_a_pod_is_told_what_the_reference_tells(make_node):
    node = make_node("--strict").start()
    node.start_driver(4)
    api = node.api()
    make_pods(api, "p1")
    wait_told(api, "p1", REFUSED)
    assert failures(api, "p1") == [REFUSED]


# What keeps a pod from a node, and the sentence about it.
REASONS = {
    "plugin": (pod("plugin", limits={"example.com/none": 2}), "pod wants example.com/none: 2, no node has any"),
    "cpu": (pod("cpu", limits={"cpu": "4000"}), "pod wants cpu: 4000, most on a node is "),
    "zone": (pod("zone", nodeSelector={"zone": "far"}), "pod wants a node with zone=far, n1 has no such label"),
    "affinity": (pod("affinity", affinity={"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {
        "nodeSelectorTerms": [{"matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd"]}]}]}}}),
        "pod wants a node with disk In [ssd], n1 has no such label"),
}


def test_events_explain_top_and_the_page_say_the_same(node):
    api = node.api()
    for made, _ in REASONS.values():
        api.must("POST", PODS, made)
    for name, (_, sentence) in REASONS.items():
        message = wait_unscheduled(api, name, sentence)["message"]
        assert message.startswith("0/1 nodes are available: 1 "), message
        until(lambda: message in failures(api, name), WAIT_S, f"{name} has an event that says {message!r}")
        told = message.partition("no new claims to deallocate. ")[2]
        done = run_davit("explain", "pod", name, "--kubeconfig", node.kubeconfig)
        assert done.returncode == 3 and told in done.stdout, (told, done)
        page = api.must("GET", f"/davit/v1/explain/pods/default/{name}")
        assert page["summary"] == told, (told, page)
    shown = node.davit("top", "--once", "--state-dir", node.state_dir).stdout
    assert "pod wants example.com/none: 2" in shown, shown
