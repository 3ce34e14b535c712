"""A device that a device plugin and a DRA driver both offer is given once."""

import json
import os
import stat

import pytest

from bound_pods import GPU, allocate, bound, events, make_claim, wait_devices, wait_reason
from claim_nodes import WAIT_S
from procs import until
from python_driver import ClaimReader, Driver
from servers import PODS


@pytest.fixture
def device(short_dir):
    """A node of its own; nobody opens it."""
    path = os.path.join(short_dir, "card0")
    try:
        os.mknod(path, stat.S_IFCHR | 0o600, os.makedev(241, 77))
    except PermissionError:
        pytest.skip("no device nodes can be made here")
    return path


@pytest.fixture
def driver(device):
    made = []

    def make(node):
        one = Driver(node.kubelet_dir, node.cdi_dir, GPU, ClaimReader(node.kubeconfig))

        def write_spec(path, text, put=one.write_spec):
            spec = json.loads(text)
            for given in spec["devices"]:
                given["containerEdits"]["deviceNodes"] = [{"path": device}]
            put(path, json.dumps(spec))

        one.write_spec = write_spec
        made.append(one.serve())
        node.wait_connected(GPU)
        return one

    yield make
    for one in made:
        one.stop()


@pytest.mark.parametrize("mode", ["on", "warn"])
def test_one_device_in_two_worlds(make_node, device, driver, mode):
    node = make_node("--ledger", mode).start()
    api = node.api()
    driver(node)
    node.start_plugin("--devices", device)
    until(lambda: node.resource("example.com/dev").allocatable == 1, WAIT_S, "the device")
    api.must("POST", PODS, bound("p1", devices=1))
    wait_devices(api, "p1")
    make_claim(api, "c1")
    api.must("POST", PODS, bound("p2", claim="c1"))
    allocate(api, "c1", "p2")
    if mode == "warn":
        wait_devices(api, "p2")
        assert "given twice" in node.proc.log
        return
    wait_reason(api, "p2", "DeviceInUse")
    (message,) = {text for reason, text in events(api, "p2") if reason == "DeviceInUse"}
    for word in ("241:77", "default/p1", "resource example.com/dev", "default/p2", GPU):
        assert word in message, message
    # The pod that waits is in the lists, by its name and with the reason; its claim is not left prepared.
    # While it is tried once more, it is being admitted.
    def is_waiting():
        (waiting,) = [one for one in node.status().pods if one.pod.name == "p2"]
        return ((waiting.state, waiting.reason) == ("retrying", "DeviceInUse") and
                "default/p1" in waiting.awaited and waiting.since_ms > 0)

    def is_shown():
        shown = node.davit("status").stdout
        return "retrying" in shown and "DeviceInUse" in shown

    until(is_waiting, WAIT_S, "p2 to be told as waiting")
    until(is_shown, WAIT_S, "p2 to be shown as waiting")
    until(lambda: "prepared" not in node.davit("claim", "list").stdout, WAIT_S, "c1 to be unprepared")
    api.must("DELETE", f"{PODS}/p1?gracePeriodSeconds=0")
    wait_devices(api, "p2")
