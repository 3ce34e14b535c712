"""Devices that `davit admit` gave away count in the scheduler, and what others hold is waited for."""

import json

import pytest

from bound_pods import (DEV, PodNode, SecondNode, bound, phase_of, status_of, wait_devices,
                        wait_phase)
from driver_nodes import DRIVER, WAIT_S, TimedDriver, wait_condition
from procs import until
from servers import CLAIMS, NODES, PODS


@pytest.fixture(name="whole")
def fixture_whole(procs, short_dir):
    """All roles: API, node, controllers and scheduler."""
    made = []

    def make(*options):
        node = PodNode(procs, short_dir, *options)
        at = node.options.index("--roles")
        del node.options[at:at + 2]
        node.start()
        made.append(node)
        return node

    yield make
    for node in made:
        node.close()


def by_hand(name, devices):
    return {"apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": name, "namespace": "default", "uid": f"uid-{name}"},
            "spec": {"containers": [{"name": "c", "resources": {"limits": {DEV: str(devices)}}}]}}


def unbound(name, devices):
    pod = bound(name, devices=devices)
    del pod["spec"]["nodeName"]
    return pod


def allocatable(api, node="n1"):
    answer = api.ask("GET", f"{NODES}/{node}")
    return answer.doc["status"].get("allocatable", {}).get(DEV) if answer.status == 200 else None


def wait_allocatable(api, wanted, node="n1"):
    until(lambda: allocatable(api, node) == str(wanted), WAIT_S,
          f"{wanted} of {node}; last {allocatable(api, node)}")


def scheduled_of(api, name):
    for one in (status_of(api, name) or {}).get("conditions", ()):
        if one["type"] == "PodScheduled":
            return one["status"], one.get("message", "")
    return None, ""


def test_what_was_admitted_by_hand_counts_in_the_scheduler(whole):
    node = whole()
    api = node.api()
    node.start_plugin()
    wait_allocatable(api, 4)
    assert node.admit(by_hand("hand", 3)).admitted
    wait_allocatable(api, 1)
    api.must("POST", PODS, unbound("p2", 2))
    until(lambda: scheduled_of(api, "p2")[0] == "False", WAIT_S, "p2 to be unschedulable")
    assert f"Insufficient {DEV}" in scheduled_of(api, "p2")[1]
    api.must("POST", PODS, unbound("p1", 1))
    wait_devices(api, "p1", WAIT_S)
    assert phase_of(api, "p2") == "Pending"
    node.release("uid-hand")
    wait_devices(api, "p2", WAIT_S)
    wait_allocatable(api, 4)


def test_a_bound_pod_waits_for_what_others_hold(whole):
    node = whole()
    api = node.api()
    node.start_plugin()
    wait_allocatable(api, 4)
    assert node.admit(by_hand("hand", 3)).admitted
    api.must("POST", PODS, bound("p1", devices=2))
    wait_condition(api, "p1", "WaitingForDevices", f"2 devices of {DEV}")
    assert phase_of(api, "p1") == "Pending"
    assert node.pods()["p1"][0] == "waiting"
    assert "2 devices of" in node.davit("status").stdout
    node.stop()  # and it waits on; the plugin comes back by itself
    node.start()
    api = node.api()
    wait_condition(api, "p1", "WaitingForDevices")
    node.release("uid-hand")
    wait_devices(api, "p1", WAIT_S)


def test_many_admitted_by_hand_while_pods_come(whole):
    """Whoever is first: in the end all of the API run, and none has failed."""
    node = whole()
    api = node.api()
    node.start_plugin("--virtual", "8")
    wait_allocatable(api, 8)
    for i in range(6):
        node.admit(by_hand(f"hand{i}", 1))  # refused when a pod of the API was first
        api.must("POST", PODS, unbound(f"p{i}", 1))
    for i in range(6):
        node.release(f"uid-hand{i}")
    for i in range(6):
        wait_devices(api, f"p{i}", WAIT_S)
    items = api.must("GET", PODS)["items"]
    assert {one["status"]["phase"] for one in items} == {"Pending"}, json.dumps(items)


def make_claim(api, name):
    api.must("POST", CLAIMS, {"metadata": {"name": name}, "spec": {"devices": {"requests": [
        {"name": "r", "exactly": {"deviceClassName": "gpu"}}]}}})


def with_claim(name, claim):
    pod = bound(name, claim=claim)
    del pod["spec"]["nodeName"]
    return pod


def test_a_device_that_is_not_given_back_is_not_given_again(whole):
    """The pod is gone by force, and its driver does not let go of what it prepared."""
    node = whole()
    api = node.api()
    driver = TimedDriver(node)
    driver.serve()
    node.wait_connected(DRIVER)
    driver.api.publish(DRIVER, "n1", ["device-0"])
    api.must("POST", "/apis/resource.k8s.io/v1/deviceclasses",
             {"metadata": {"name": "gpu"}, "spec": {}})
    make_claim(api, "c1")
    api.must("POST", PODS, with_claim("p1", "c1"))
    wait_devices(api, "p1", WAIT_S)
    driver.is_broken = True
    api.must("DELETE", f"{PODS}/p1?gracePeriodSeconds=0")
    make_claim(api, "c2")
    api.must("POST", PODS, with_claim("p2", "c2"))
    until(lambda: scheduled_of(api, "p2")[0] == "False", WAIT_S, "p2 to be unschedulable")
    until(lambda: driver.n_calls("unprepare") >= 3, WAIT_S, "attempts to unprepare")
    assert node.states() == {"c1": "unpreparing"}
    assert api.must("GET", f"{CLAIMS}/c1")["status"].get("allocation")
    assert len(driver.times) == 1  # nobody else's was prepared
    driver.is_broken = False
    wait_devices(api, "p2", WAIT_S)
    driver.stop()


def test_strictly_it_fails_as_in_the_reference(whole):
    node = whole("--strict")
    api = node.api()
    node.start_plugin()
    wait_allocatable(api, 4)
    assert node.admit(by_hand("hand", 3)).admitted
    api.must("POST", PODS, bound("p1", devices=2))
    wait_phase(api, "p1", "Failed", WAIT_S)
    assert status_of(api, "p1")["reason"] == "UnexpectedAdmissionError"
    assert allocatable(api) == "4"


def test_a_second_node_over_tls(whole, procs, short_dir):
    node = whole()
    api = node.api()
    second = SecondNode(procs, short_dir, node)
    second.start()
    second.start_plugin()
    wait_allocatable(api, 4, "n2")
    assert second.admit(by_hand("hand", 3)).admitted
    wait_allocatable(api, 1, "n2")
    api.must("POST", PODS, bound("p1", node="n2", devices=2))
    wait_condition(api, "p1", "WaitingForDevices", f"2 devices of {DEV}")
    second.release("uid-hand")
    wait_devices(api, "p1", WAIT_S)
    wait_allocatable(api, 4, "n2")
    second.disconnect()
    assert second.stop() == 0, second.proc.describe()
