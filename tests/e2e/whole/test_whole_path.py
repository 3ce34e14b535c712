"""From a manifest to a pod with devices, and back: what kubectl, davit and PodResources show."""

import json

import pytest

from nodes import run_davit
from procs import until
from servers import CLAIMS, NODES, PODS, merge_patch
from whole_nodes import (
    CLASSES, DEV, GPU, RULES, TEMPLATES, WAIT_S, claim, condition, device_class, devices_of, get,
    held, items, manifest, pod, reasons, rule, template, wait_gone, wait_ready, wait_reason,
    wait_unscheduled,
)

pytestmark = pytest.mark.release


def test_a_pod_gets_what_its_template_says_and_gives_it_back(node, driver, kubectl):
    node.start_plugin(4)
    api = node.api()
    until(lambda: get(api, NODES, "n1")["status"]["capacity"].get(DEV) == "4", WAIT_S, "capacity")
    kubectl("apply", "-f", "-", stdin=manifest(
        device_class(), template(count=2), pod("p1", of_template="one", limits={DEV: 1})))
    kubectl("wait", "--for=condition=davit.node/DevicesReady", "pod/p1", f"--timeout={WAIT_S}s")

    row = kubectl.rows("pod", "p1", "-o", "wide")[1]
    assert (row[1], row[2], "n1" in row) == ("0/1", "NoContainerRuntime", True), row
    made = items(api, CLAIMS)
    assert len(made) == 1 and made[0]["metadata"]["name"].startswith("p1-t-")
    assert len(devices_of(made[0])) == 2 and set(held(api)) == set(devices_of(made[0]))
    assert made[0]["status"]["reservedFor"][0]["name"] == "p1"
    if not kubectl.is_old:  # which knows no such resource
        assert "allocated,reserved" in kubectl("get", "resourceclaims")
    wait_reason(api, "p1", "Scheduled")
    assert "Scheduled" in kubectl("get", "events")
    assert "p1-t-" in kubectl("get", "pod", "p1", "-o", "yaml")

    uid = made[0]["metadata"]["uid"]
    assert set(driver.prepared()) == {uid} and len(driver.specs()) == 1
    options = json.loads(node.davit("options", "p1", "-c", "a", "-o", "json").stdout)
    assert len([name for name in json.dumps(options).split('"') if name.startswith(GPU)]) >= 2
    shown = node.podres_list()
    assert [one.name for one in shown] == ["p1"]
    container = shown[0].containers[0]
    assert [one.resource_name for one in container.devices] == [DEV]
    assert container.dynamic_resources[0].claim_name == made[0]["metadata"]["name"]
    assert len(container.dynamic_resources[0].claim_resources) == 2

    kubectl("delete", "pod", "p1")
    wait_gone(api, PODS, "p1")
    until(lambda: items(api, CLAIMS) == [], WAIT_S, "the claim is gone")
    assert driver.prepared() == {} and driver.specs() == {}
    assert list(node.podres_list()) == []


def test_a_claim_is_shared_by_two_pods_until_both_are_gone(api, driver):
    api.must("POST", CLASSES, device_class())
    api.must("POST", CLAIMS, claim("c1"))
    for name in ("p1", "p2"):
        api.must("POST", PODS, pod(name, of_claim="c1"))
    wait_ready(api, "p1", "p2")
    one = get(api, CLAIMS, "c1")
    assert sorted(who["name"] for who in one["status"]["reservedFor"]) == ["p1", "p2"]
    assert list(driver.prepared()) == [one["metadata"]["uid"]]
    api.must("DELETE", f"{PODS}/p1")
    wait_gone(api, PODS, "p1")
    until(lambda: len(get(api, CLAIMS, "c1")["status"]["reservedFor"]) == 1, WAIT_S, "one is left")
    assert devices_of(get(api, CLAIMS, "c1")) == devices_of(one) and len(driver.prepared()) == 1
    api.must("DELETE", f"{PODS}/p2")
    until(lambda: devices_of(get(api, CLAIMS, "c1")) == [], WAIT_S, "the claim is deallocated")
    until(lambda: not get(api, CLAIMS, "c1")["metadata"].get("finalizers"), WAIT_S,
          "the finalizer goes with a write of its own")
    assert driver.prepared() == {}


def test_a_pod_runs_as_soon_as_what_it_waits_for_comes(node, api):
    api.must("POST", PODS, pod("p1", of_template="one"))
    wait_unscheduled(api, "p1", 'the resourceclaim for "t" is not created yet')
    api.must("POST", TEMPLATES, template())
    wait_unscheduled(api, "p1", "device class gpu does not exist")
    api.must("POST", CLASSES, device_class())
    wait_unscheduled(api, "p1", "cannot allocate all claims")
    wait_reason(api, "p1", "FailedScheduling")
    node.start_driver(1)
    wait_ready(api, "p1")


def test_a_pod_waits_for_a_claim_by_name_and_for_its_node(api, driver):
    api.must("POST", CLASSES, device_class())
    merge_patch(api, f"{NODES}/n1", {"spec": {"unschedulable": True}})
    api.must("POST", PODS, pod("p1", of_claim="c1"))
    wait_unscheduled(api, "p1", 'resourceclaim "c1" not found')
    api.must("POST", CLAIMS, claim("c1"))
    wait_unscheduled(api, "p1", "1 node(s) were unschedulable")
    merge_patch(api, f"{NODES}/n1", {"spec": {"unschedulable": None}})
    wait_ready(api, "p1")


def test_a_pod_that_fits_nowhere_says_why(node, driver, kubectl):
    api = node.api()
    kubectl("apply", "-f", "-", stdin=manifest(
        device_class(), template(count=9), pod("p1", of_template="one"),
        pod("p2", limits={"example.com/none": 1}), pod("p3", nodeSelector={"zone": "far"})))
    found = wait_unscheduled(api, "p1", "0/1 nodes are available: 1 cannot allocate all claims")
    assert found["reason"] == "Unschedulable"
    wait_unscheduled(api, "p2", "1 Insufficient example.com/none")
    wait_unscheduled(api, "p3", "1 node(s) didn't match Pod's node affinity/selector")
    for name in ("p1", "p2", "p3"):
        wait_reason(api, name, "FailedScheduling")
    assert "FailedScheduling" in kubectl("describe", "pod", "p1")
    assert kubectl.rows("pod", "p1")[1][2] == "Pending"
    explained = run_davit("explain", "pod", "p1", "--kubeconfig", node.kubeconfig).stdout
    assert "device-0" in explained and "9" in explained, explained


def test_a_class_serves_an_extended_resource(api, driver):
    api.must("POST", CLASSES, device_class(extendedResourceName="example.com/gpu"))
    api.must("POST", PODS, pod("p1", limits={"example.com/gpu": 2}))
    wait_ready(api, "p1")
    status = get(api, PODS, "p1")["status"]["extendedResourceClaimStatus"]
    one = get(api, CLAIMS, status["resourceClaimName"])
    assert len(devices_of(one)) == 2 and list(driver.prepared()) == [one["metadata"]["uid"]]
    api.must("POST", PODS, pod("p2", limits={"example.com/gpu": 3}))
    wait_unscheduled(api, "p2", "cannot allocate all claims")
    api.must("DELETE", f"{PODS}/p1")
    wait_ready(api, "p2")
    assert len(held(api)) == 3


def test_a_taint_rule_evicts_a_running_pod(node, driver, kubectl):
    api = node.api()
    kubectl("apply", "-f", "-", stdin=manifest(
        device_class(), template(), pod("p1", of_template="one", terminationGracePeriodSeconds=5)))
    kubectl("wait", "--for=condition=davit.node/DevicesReady", "pod/p1", f"--timeout={WAIT_S}s")
    (device,) = held(api)
    with api.watch(f"{PODS}?fieldSelector=metadata.name%3Dp1") as watch:
        api.must("POST", RULES, rule("r1", driver=GPU, device=device.split("/")[1]))
        last = watch.until(lambda event: event["type"] == "DELETED")[-1]["object"]
    target = condition(last, "DisruptionTarget")
    assert target["status"] == "True" and target["reason"] == "DeletionByDeviceTaintManager"
    wait_reason(api, "p1", "DeviceTaintManagerEviction")
    until(lambda: held(api) == {} and driver.prepared() == {}, WAIT_S, "nothing is held")
    until(lambda: condition(get(api, RULES, "r1"), "EvictionInProgress").get("reason")
          == "Completed", WAIT_S, f"the rule says so: {get(api, RULES, 'r1')}")
    # The next one gets another device.
    api.must("POST", PODS, pod("p2", of_template="one"))
    wait_ready(api, "p2")
    assert set(held(api)) != {device}


def test_a_claim_that_is_deleted_stays_while_it_is_used(api, driver):
    api.must("POST", CLASSES, device_class())
    api.must("POST", CLAIMS, claim("c1"))
    api.must("POST", PODS, pod("p1", of_claim="c1"))
    wait_ready(api, "p1")
    api.must("DELETE", f"{CLAIMS}/c1")
    one = get(api, CLAIMS, "c1")
    assert one["metadata"]["deletionTimestamp"] and devices_of(one)
    api.must("POST", PODS, pod("p2", of_claim="c1"))
    wait_unscheduled(api, "p2", 'resourceclaim "c1" is being deleted')
    assert get(api, CLAIMS, "c1") and len(driver.prepared()) == 1
    api.must("DELETE", f"{PODS}/p1")
    wait_gone(api, CLAIMS, "c1")
    assert driver.prepared() == {}
    wait_unscheduled(api, "p2", 'resourceclaim "c1" not found')


def test_a_pod_that_names_its_node_gets_its_devices_there(api, driver):
    api.must("POST", CLASSES, device_class())
    api.must("POST", CLAIMS, claim("c1"))
    api.must("POST", TEMPLATES, template())
    api.must("POST", PODS, pod("p1", of_claim="c1", of_template="one", nodeName="n1"))
    wait_ready(api, "p1")
    assert len(held(api)) == 2 and len(driver.prepared()) == 2


def test_pods_that_name_what_is_not_there_say_so(api, driver):
    api.must("POST", CLASSES, device_class())
    api.must("POST", TEMPLATES, template("classless", of_class="nowhere"))
    api.must("POST", PODS, pod("p1", of_claim="none"))
    api.must("POST", PODS, pod("p2", of_template="none"))
    api.must("POST", PODS, pod("p3", of_template="classless"))
    api.must("POST", PODS, pod("p4", nodeName="nowhere"))
    wait_unscheduled(api, "p1", 'resourceclaim "none" not found')
    wait_unscheduled(api, "p2", 'the resourceclaim for "t" is not created yet')
    wait_reason(api, "p2", "FailedResourceClaimCreation")
    wait_unscheduled(api, "p3", "device class nowhere does not exist")
    assert get(api, PODS, "p4")["status"]["phase"] == "Pending"
    assert "Scheduled" not in reasons(api, "p4") and held(api) == {}
