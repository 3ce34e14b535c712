"""What a pod that gets no devices is told about them, in its condition and in its event."""

import pytest

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
