"""Nodes with drivers and plugins on grpcio whose manners a test chooses, and the pods for them."""

import time

import pytest

from bound_pods import DEVICES_READY, PodNode, allocate, bound, make_claim, status_of
from procs import until
from python_driver import ClaimReader, Driver
from servers import PODS

DRIVER = "gpu.example.com"
# A loaded machine is slow, not broken.
WAIT_S = 60


class TimedDriver(Driver):
    """Knows when it was asked, and can be told to refuse."""

    def __init__(self, node, name=DRIVER):
        super().__init__(node.kubelet_dir, node.cdi_dir, name, ClaimReader(node.kubeconfig))
        self.times = []  # of Prepare
        self.is_broken = False
        self.before = self.look

    def look(self, kind, claims):
        if kind == "prepare":
            self.times.append(time.monotonic())
        if self.is_broken:
            raise RuntimeError(f"attempt {len(self.calls)} at {time.time()}: no GPU today")


@pytest.fixture(name="claim_node")
def fixture_claim_node(procs, short_dir):
    """The API and a node; nobody schedules."""
    made = PodNode(procs, short_dir).start()
    yield made
    made.disconnect()
    if made.proc.is_alive:
        assert made.stop() == 0, made.proc.describe()


@pytest.fixture(name="driver")
def fixture_driver(claim_node):
    """Registered, and connected."""
    made = TimedDriver(claim_node)
    made.serve()
    claim_node.wait_connected(DRIVER)
    yield made
    made.stop()


def conditions_of(api, name):
    """(reason, message, since) of the pod's DevicesReady."""
    for one in (status_of(api, name) or {}).get("conditions", ()):
        if one["type"] == DEVICES_READY:
            return one.get("reason", ""), one.get("message", ""), one.get("lastTransitionTime")
    return None


def wait_condition(api, name, reason, *words):
    def has_it():
        found = conditions_of(api, name)
        return found and found[0] == reason and all(word in found[1] for word in words)

    until(has_it, WAIT_S, f"{name}: {reason}, {words}; last {status_of(api, name)}")
    return conditions_of(api, name)


def make_pod_with_claim(api, name, claim, device="device-0"):
    make_claim(api, claim)
    api.must("POST", PODS, bound(name, claim=claim))
    allocate(api, claim, name, device=device)
