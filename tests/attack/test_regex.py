"""Regular expressions that a driver publishes as attributes, and that a selector then matches with:
one never ended, others would take years. Each is evaluated by the scheduler, again after a restart."""

import json

import pytest

from nodes import run_davit
from procs import until
from servers import CLAIMS, NODES, PODS, RESOURCE, SLICES, merge_patch

# A loaded machine is slow, not broken.
WAIT_S = 60
DRIVER = "gpu.example.com"
TEXT = "a" * 63 + "!"
# Attribute (at most 64 bytes): what the pod says; None: the device is taken.
PATTERNS = {
    "\\pé": "invalid character class range",
    "\\P𝒳": "invalid character class range",
    "[a\\pK]": "invalid character class range",
    "a\\p": "invalid character class range",
    "[[:" * 20: "missing closing ]",
    "(a{1000}){1000}": "invalid repeat count",
    "(" * 64: "missing closing )",
    "(a+)+$": "",
    "(a|aa)+$": "",
    "^(a|a?)+$": "",
    "^(\\w+\\s?)*$": "",
    "a{1,300}a{1,300}$": "",
    "((((((a{0,3}){0,3}){0,3}){0,3}){0,3}){0,3})$": "",
    "(a+)+!$": None,
}


def selector(text):
    return {"cel": {"expression": text}}


def make_pod(api, name, *expressions):
    """A pod with a claim for one device on which all of them hold."""
    request = {"name": "r", "exactly": {
        "deviceClassName": "gpu", "selectors": [selector(one) for one in expressions]}}
    api.must("POST", CLAIMS, {
        "apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": {"name": name},
        "spec": {"devices": {"requests": [request]}}})
    resources = {"claims": [{"name": "c"}]}
    api.must("POST", PODS, {
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
        "spec": {"containers": [{"name": "a", "image": "x", "resources": resources}],
                 "resourceClaims": [{"name": "c", "resourceClaimName": name}]}})


def make_world(node, api):
    """A second node, whose driver publishes a device for each pattern with its own token."""
    room = {"cpu": "64", "memory": "64Gi", "pods": "100"}
    api.must("POST", NODES, {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n2"}})
    answer = merge_patch(api, f"{NODES}/n2/status", {"status": {
        "capacity": room, "allocatable": room,
        "conditions": [{"type": "Ready", "status": "True", "reason": "Test"}]}})
    assert answer.status == 200, answer
    api.must("POST", f"{RESOURCE}/v1/deviceclasses", {
        "apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": "gpu"},
        "spec": {"selectors": [selector(f'device.driver == "{DRIVER}"')]}})
    done = run_davit("token", "create", "--driver", DRIVER, "--node", "n2",
                     "--kubeconfig", node.kubeconfig, timeout=WAIT_S)
    assert done.returncode == 0, done
    devices = [
        {"name": f"d{number}",
         "attributes": {"number": {"int": number}, "pattern": {"string": pattern}}}
        for number, pattern in enumerate(PATTERNS)]
    node.api(token=done.stdout.strip()).must("POST", SLICES, {
        "apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": {"name": "n2-1"},
        "spec": {"driver": DRIVER, "nodeName": "n2", "devices": devices,
                 "pool": {"name": "n2", "generation": 1, "resourceSliceCount": 1}}})


def make_pods(api, prefix):
    """One for each pattern."""
    mine = f'device.attributes["{DRIVER}"]'
    for number in range(len(PATTERNS)):
        make_pod(api, f"{prefix}{number}",
                 f'{mine}.number == {number} && "{TEXT}".matches({mine}.pattern)')


def wait_tried(api, name, words=""):
    """Until it is scheduled, or says why not with these words; what it says, or "scheduled"."""
    def told():
        found = api.must("GET", f"{PODS}/{name}")
        if found["spec"].get("nodeName"):
            return "scheduled"
        said = [one.get("message", "") for one in found.get("status", {}).get("conditions", [])
                if one["type"] == "PodScheduled" and one["status"] == "False"]
        return said and words in said[0] and said[0]

    return until(told, WAIT_S, f"{name} is tried, and says {words!r}")


def check_pods(api, prefix):
    for number, words in enumerate(PATTERNS.values()):
        name = f"{prefix}{number}"
        if words is None:
            until(lambda n=name: wait_tried(api, n) == "scheduled", WAIT_S, f"{name} is scheduled")
        else:
            assert wait_tried(api, name, words) != "scheduled", name


def test_a_pattern_of_a_driver_cannot_stall_the_scheduler(node, api):
    make_world(node, api)
    make_pods(api, "p")
    check_pods(api, "p")
    assert node.stop() == 0, node.proc.describe()
    node.start()
    api = node.api()
    check_pods(api, "p")
    # The good one is taken by now: each new pod is tried, and none finds a device.
    make_pods(api, "q")
    for number, words in enumerate(PATTERNS.values()):
        assert wait_tried(api, f"q{number}", words or "") != "scheduled", number
    assert api.ask("GET", "/readyz").status == 200


@pytest.mark.parametrize("pattern", ["(a|aa)+$", "a{1,200}a{1,200}$", "(a{1,1000})$"])
def test_a_long_text_cannot_either(node, api, pattern):
    """There are thousands of places where a match may start, each as bad as the one before."""
    make_world(node, api)
    make_pod(api, "p", f'!{json.dumps(TEXT * 120)}.matches("{pattern}")')
    wait_tried(api, "p")
    make_pod(api, "q", f'"{TEXT}".matches("!$")')
    until(lambda: wait_tried(api, "q") == "scheduled", WAIT_S, "q is scheduled")
    assert api.ask("GET", "/readyz").status == 200
