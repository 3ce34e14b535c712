"""Selectors that cost as much as the API admits, on many devices: the daemon answers meanwhile."""

import json
import threading
import time

import pytest

from procs import until
from servers import CLAIMS, NODES, PODS, RESOURCE, SLICES

PATIENCE_S = 60
# The loop was held for 11 s by one such request, and for minutes by 32.
LONGEST_GAP_S = 2.0
N_SLICES = 8
N_DEVICES = 128
SIXTEEN = "[0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15]"


def costly(number):
    """Nearly a million units on each device, and false on all; another one for each number."""
    return (f"{SIXTEEN}.all(a, {SIXTEEN}.all(b, {SIXTEEN}.all(c, [0,1,2,3,4,5,6,7].all(d,"
            f" a + b + c + d >= 0)))) && device.attributes['gpu.example.com'].index == {-number}")


def many_devices(number):
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": f"s{number}"},
        "spec": {
            "driver": "gpu.example.com",
            "nodeName": "far",
            "pool": {"name": "far", "generation": 1, "resourceSliceCount": N_SLICES},
            "devices": [{"name": f"d{number}-{i}", "attributes": {"index": {"int": i}}}
                        for i in range(N_DEVICES)],
        },
    }


def costly_claim(name, n_requests):
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": name},
        "spec": {"devices": {"requests": [
            {"name": f"r{i}", "exactly": {
                "deviceClassName": "gpu",
                "selectors": [{"cel": {"expression": costly(i + 1)}}]}}
            for i in range(n_requests)]}},
    }


def pod(name, claim=None):
    spec = {"containers": [{"name": "c", "image": "pause"}], "nodeSelector": {"place": "far"}}
    if claim:
        spec["resourceClaims"] = [{"name": "e", "resourceClaimName": claim}]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


class Watcher(threading.Thread):
    """Asks for /healthz over and over, and keeps the longest time that an answer took."""

    def __init__(self, node):
        super().__init__(daemon=True)
        self.api = node.api()
        self.longest_s = 0.0
        self.n_answers = 0
        self.is_over = threading.Event()

    def run(self):
        while not self.is_over.is_set():
            begin = time.monotonic()
            if self.api.ask("GET", "/healthz").status == 200:
                self.n_answers += 1
            self.longest_s = max(self.longest_s, time.monotonic() - begin)
            self.is_over.wait(0.01)

    def end(self):
        self.is_over.set()
        self.join(PATIENCE_S)
        assert not self.is_alive(), "an answer is still being waited for"


@pytest.fixture
def far(api):
    """A node with a thousand devices."""
    api.must("POST", NODES, {"apiVersion": "v1", "kind": "Node",
                             "metadata": {"name": "far", "labels": {"place": "far"}}})
    status = {"status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "110"}}}
    api.must("PATCH", f"{NODES}/far/status", json.dumps(status),
             Content_Type="application/merge-patch+json")
    api.must("POST", f"{RESOURCE}/v1/deviceclasses", {
        "apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": "gpu"},
        "spec": {}})
    for number in range(N_SLICES):
        api.must("POST", SLICES, many_devices(number))


def said_of(api, name):
    conditions = api.must("GET", f"{PODS}/{name}")["status"].get("conditions", [])
    return next((c.get("message", "") for c in conditions if c["type"] == "PodScheduled"), "")


@pytest.mark.parametrize("n_requests", [1, 32])
def test_other_requests_are_answered_while_it_is_tried(node, api, far, n_requests):
    watcher = Watcher(node)
    watcher.start()
    try:
        api.must("POST", CLAIMS, costly_claim("costly", n_requests))
        api.must("POST", PODS, pod("greedy", "costly"))
        message = until(lambda: said_of(api, "greedy"), PATIENCE_S, "a word about the pod")
        assert "the search was given up at its limit of cost" in message, message
        api.must("POST", PODS, pod("modest"))
        until(lambda: api.must("GET", f"{PODS}/modest")["spec"].get("nodeName") == "far",
              PATIENCE_S, "another pod to be bound")
    finally:
        watcher.end()
    assert watcher.n_answers > 0
    assert watcher.longest_s < LONGEST_GAP_S


def test_it_stops_while_it_is_tried(node, api, far):
    api.must("POST", CLAIMS, costly_claim("costly", 32))
    api.must("POST", PODS, pod("greedy", "costly"))
    begin = time.monotonic()
    assert node.stop() == 0
    assert time.monotonic() - begin < PATIENCE_S


@pytest.mark.parametrize("expression", [
    "[1]" + ".map(x, {x: x})" * 60 + ".size() > 0",
    "optional.of(1)" + ".optMap(x, x)" * 60 + ".hasValue()",
])
def test_a_selector_that_doubles_when_it_is_compiled_is_refused(node, api, expression):
    """Some hundred bytes, whose types or macros double with each call: compiling had no end."""
    claim = costly_claim("bomb", 1)
    claim["spec"]["devices"]["requests"][0]["exactly"]["selectors"][0]["cel"]["expression"] = (
        expression)
    answer = api.ask("POST", CLAIMS, claim)
    assert answer.status == 422, answer
    assert "too large" in answer.doc["message"], answer
    assert api.ask("GET", "/healthz").status == 200


def test_values_inside_values_are_not_compared_for_ever(node, api, far):
    """A comparison that costs next to nothing by the API's count, of 10^12 elements."""
    nested = "[[1]]" + ".map(x, [x,x,x,x,x,x,x,x,x,x])" * 12
    claim = costly_claim("nested", 1)
    claim["spec"]["devices"]["requests"][0]["exactly"]["selectors"][0]["cel"]["expression"] = (
        f"{nested} == {nested}")
    watcher = Watcher(node)
    watcher.start()
    try:
        api.must("POST", CLAIMS, claim)
        api.must("POST", PODS, pod("greedy", "nested"))
        message = until(lambda: said_of(api, "greedy"), PATIENCE_S, "a word about the pod")
        assert "cost limit exceeded" in message or "given up" in message, message
    finally:
        watcher.end()
    assert watcher.longest_s < LONGEST_GAP_S
