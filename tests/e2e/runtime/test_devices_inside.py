"""Devices of both sample drivers, seen from inside of containers."""

import os

import pytest
from bound_pods import DEV, GPU, allocate, make_claim
from procs import until
from runtime_nodes import WAIT_S, container, pod
from servers import CLAIMS


@pytest.fixture
def equipped(make_node):
    node = make_node().start()
    node.start_plugin("--devices", "/dev/full", "--env", "GIVEN")
    return node.start_driver(node.kubeconfig)


def claim_of(node, name, pod_name):
    make_claim(node.api(), name)
    allocate(node.api(), name, pod_name)


def test_a_container_sees_what_it_was_given(equipped):
    """Also the init container that asks for the same claim; not the one that asks for nothing."""
    node = equipped
    asks = {"resources": {"claims": [{"name": "g"}], "limits": {DEV: "1"}}}
    show = "env | grep -e GIVEN -e SAMPLE_ | sort; ls -l /dev/full"
    node.add(pod("p", container(script=f"{show}; sleep 1000", **asks),
                 container("other", f"{show}; echo none; sleep 1000"),
                 initContainers=[container("first", "env | grep SAMPLE_",
                                           resources={"claims": [{"name": "g"}]})],
                 resourceClaims=[{"name": "g", "resourceClaimName": "c"}]))
    claim_of(node, "c", "p")
    status = node.wait_phase("p", "Running")["status"]
    until(lambda: "SAMPLE_" in node.log("p"), WAIT_S, f"its devices: {node.log('p')}")
    assert "GIVEN=" in node.log("p")
    assert "SAMPLE_" in node.log("p", "first")
    until(lambda: node.log("p", "other").endswith("none"), WAIT_S, "the other")
    assert "SAMPLE_" not in node.log("p", "other") and "GIVEN" not in node.log("p", "other")
    told = next(one for one in status["containerStatuses"] if one["name"] == "main")
    assert {one["name"] for one in told["allocatedResourcesStatus"]} == {DEV, "claim:g"}
    node.wait_states(c="prepared")
    node.delete("p")
    node.wait_gone("p")
    assert node.states() == {}
    assert GPU and CLAIMS and os


def devices_ready(status):
    """The condition that tells of devices, as (status, reason)."""
    return next(((one["status"], one.get("reason")) for one in status.get("conditions", ())
                 if one["type"] == "davit.node/DevicesReady"), None)


def test_a_pod_says_that_it_has_its_devices_while_it_runs(equipped):
    node = equipped
    node.add(pod("p", container(script="sleep 1", resources={"limits": {DEV: "1"}}),
                 restartPolicy="Never"))
    node.wait_status("p", lambda s: devices_ready(s) == ("True", None), "it has its devices")
    status = node.wait_phase("p", "Succeeded")["status"]
    assert devices_ready(status) == ("False", "DevicesReleased")


def test_a_node_has_each_of_its_addresses_once(node):
    def addresses():
        answer = node.api().ask("GET", "/api/v1/nodes/n1")
        return [one["address"] for one in answer.doc["status"].get("addresses", ())
                if one["type"] == "InternalIP"] if answer.status == 200 else []

    node.add(pod("p"))
    hosts = node.wait_phase("p", "Running")["status"]["hostIPs"]
    assert addresses() == [one["ip"] for one in hosts]
    node.kill()
    node.start()
    node.add(pod("next"))
    node.wait_phase("next", "Running")
    assert addresses() == [one["ip"] for one in hosts]


def test_devices_are_free_only_after_the_container_has_ended(equipped):
    """It ignores SIGTERM for its grace period; the next pod for the same device waits that long."""
    node = equipped
    asks = {"resources": {"limits": {DEV: "1"}}}
    script = "trap '' TERM; echo up; while :; do sleep 0.1; done"
    node.add(pod("first", container(script=script, **asks)))
    node.wait_phase("first", "Running")
    until(lambda: node.log("first") == "up", WAIT_S, "it ignores SIGTERM")
    node.delete("first")
    node.add(pod("next", container(**asks)))
    while node.pod("first"):
        if node.phase("next") == "Running":
            assert ("first", "main", 0) not in node.containers() or \
                node.containers()[("first", "main", 0)] == "EXITED"
    node.wait_phase("next", "Running")
