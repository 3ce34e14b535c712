"""Who waits for whom is said: a driver that is gone, and a call that nobody answers."""

import json
import threading
import time

import pytest

from bound_pods import DEV, bound, wait_devices, wait_phase
from driver_nodes import (  # noqa: F401  # pylint: disable=unused-import
    DRIVER, WAIT_S, fixture_claim_node, fixture_driver, make_pod_with_claim, wait_condition)
from nodes import run_davit
from procs import until
from servers import PODS


@pytest.fixture(name="gate")
def fixture_gate():
    """What hangs until the test is over."""
    opened = threading.Event()
    yield opened
    opened.set()


def davit(node, *words):
    done = node.davit(*words)
    assert done.returncode == 0, done
    return done.stdout


def get(node, *words):
    done = run_davit("get", *words, "--kubeconfig", node.kubeconfig)
    assert done.returncode == 0, done
    return done.stdout


def wait_call(node, name, method):
    """The call, as the status tells of it."""
    def find():
        return [one for one in node.status().calls if (one.name, one.method) == (name, method)]

    until(find, WAIT_S, f"{method} of {name}; last {node.status().calls}")
    return find()[0]


def test_a_pod_that_waits_for_a_driver_that_is_gone_says_so(claim_node, driver):
    api = claim_node.api()
    driver.stop()
    until(lambda: not claim_node.is_connected(DRIVER), WAIT_S, "the driver to be gone")
    make_pod_with_claim(api, "p1", "c1")
    wait_condition(api, "p1", "WaitingForDevices", f"driver {DRIVER}")
    claim_node.wait_awaited("p1", f"driver {DRIVER}")
    listed = davit(claim_node, "claim", "list")
    assert "c1" in listed and f"waits for driver {DRIVER}" in listed, listed
    shown = davit(claim_node, "status")
    assert "default" in shown and f"driver {DRIVER}" in shown, shown
    assert "WaitingForDevices" in get(claim_node, "pods")
    claim = claim_node.claims()["c1"]
    assert claim.state == "wanted" and [one.name for one in claim.pods] == ["p1"], claim
    assert 0 < claim.since_ms <= time.time() * 1000 + 1000
    document = api.must("GET", "/davit/v1/node")
    assert f"driver {DRIVER}" in json.dumps(document), document
    driver.serve()
    wait_devices(api, "p1", WAIT_S)
    assert "waits for" not in davit(claim_node, "claim", "list")
    assert "WaitingForDevices" not in get(claim_node, "pods")


def test_a_driver_that_does_not_answer_is_named(claim_node, driver, gate):
    api = claim_node.api()
    driver.before = lambda kind, claims: gate.wait(WAIT_S)
    began = time.time()
    make_pod_with_claim(api, "p1", "c1")
    call = wait_call(claim_node, DRIVER, "NodePrepareResources")
    assert call.pod.name == "p1" and list(call.claims) == ["default/c1"], call
    assert call.type == "DRAPlugin" and call.socket == driver.socket, call
    assert (began - 5) * 1000 <= call.since_ms <= (time.time() + 1) * 1000
    shown = davit(claim_node, "status")
    for word in (DRIVER, "NodePrepareResources", "default/p1", "default/c1"):
        assert word in shown, shown
    listed = davit(claim_node, "claim", "list")
    assert f"driver {DRIVER} to answer NodePrepareResources since 20" in listed, listed
    assert "NodePrepareResources" in json.dumps(api.must("GET", "/davit/v1/node"))
    wait_condition(api, "p1", "WaitingForDevices", f"driver {DRIVER} to answer", "since 20")
    gate.set()
    wait_devices(api, "p1", WAIT_S)
    assert not claim_node.status().calls


def test_a_driver_that_does_not_unprepare_is_named(claim_node, driver, gate):
    api = claim_node.api()
    make_pod_with_claim(api, "p1", "c1")
    wait_devices(api, "p1", WAIT_S)
    driver.before = lambda kind, claims: gate.wait(WAIT_S)
    api.must("DELETE", f"{PODS}/p1")
    call = wait_call(claim_node, DRIVER, "NodeUnprepareResources")
    assert call.pod.name == "p1" and list(call.claims) == ["default/c1"], call
    assert "NodeUnprepareResources" in davit(claim_node, "claim", "list")
    gate.set()
    wait_phase(api, "p1", None, WAIT_S)


def test_a_plugin_that_does_not_answer_is_named(claim_node, plugins, gate):
    api = claim_node.api()
    plugin = plugins(claim_node, DEV, ["d0"], pre_start=True)

    def hang(ids):
        gate.wait(WAIT_S)
        return plugin.answer_with_env(ids)

    plugin.answer = hang
    plugin.register()
    until(lambda: DEV in claim_node.resources(), WAIT_S, "the plugin's devices")
    api.must("POST", PODS, bound("p1", devices=1))
    call = wait_call(claim_node, DEV, "Allocate")
    assert (call.pod.name, call.container, call.type) == ("p1", "main", "DevicePlugin"), call
    shown = davit(claim_node, "status")
    assert "Allocate" in shown and DEV in shown and "default/p1" in shown, shown
    wait_condition(api, "p1", "WaitingForDevices", f"the plugin of {DEV} to answer Allocate")
    gate.set()
    wait_devices(api, "p1", WAIT_S)


def test_a_start_that_a_plugin_does_not_answer_is_named(claim_node, plugins, gate):
    api = claim_node.api()
    plugin = plugins(claim_node, DEV, ["d0"], pre_start=True)
    plugin.on_start = lambda ids: gate.wait(WAIT_S)
    plugin.register()
    until(lambda: DEV in claim_node.resources(), WAIT_S, "the plugin's devices")
    api.must("POST", PODS, bound("p1", devices=1))
    wait_devices(api, "p1", WAIT_S)
    uid = api.must("GET", f"{PODS}/p1")["metadata"]["uid"]
    starts = threading.Thread(target=lambda: claim_node.container_options(uid, "main"), daemon=True)
    starts.start()
    call = wait_call(claim_node, DEV, "PreStartContainer")
    assert call.pod.name == "p1" and call.container == "main", call
    gate.set()
    starts.join(WAIT_S)
    assert not starts.is_alive()


def test_a_plugin_that_never_lists_is_named(claim_node, plugins, gate):
    plugin = plugins(claim_node, DEV, ["d0"])
    listed = plugin.list_message
    plugin.list_message = lambda: gate.wait(WAIT_S) and listed()
    plugin.register()
    call = wait_call(claim_node, DEV, "ListAndWatch")
    assert call.socket == plugin.socket and not call.HasField("pod"), call
    assert "ListAndWatch" in davit(claim_node, "status")
    gate.set()
    until(lambda: not claim_node.status().calls, WAIT_S, "the list")
