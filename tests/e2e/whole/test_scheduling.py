"""Pods that look at each other, and pods that make room: on a davitd that does everything."""

import pytest
from procs import until
from servers import CLAIMS, PODS
from whole_nodes import (CLASSES, claim, condition, device_class, get, held, items, pod, reasons, wait_gone, wait_ready,
                         wait_unscheduled)

NODES = "/api/v1/nodes"
PRIORITIES = "/apis/scheduling.k8s.io/v1/priorityclasses"
WAIT_S = 60


def other_node(name, zone):
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, "zone": zone}},
        "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "110"}},
    }


def priority(name, value, **more):
    return {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name},
            "value": value, **more}


def app(name, label, **spec):
    one = pod(name, **spec)
    one["metadata"]["labels"] = {"app": label}
    return one


def apart(label):
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
        {"labelSelector": {"matchLabels": {"app": label}}, "topologyKey": "zone"}]}}


def spread(label):
    return [{"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule",
             "labelSelector": {"matchLabels": {"app": label}}}]


def place(api, name):
    return get(api, PODS, name)["spec"].get("nodeName", "")


def zones(api, label):
    """How many pods with that label are in each zone."""
    of_node = {one["metadata"]["name"]: one["metadata"].get("labels", {}).get("zone") for one in items(api, NODES)}
    found = [of_node[one["spec"]["nodeName"]] for one in items(api, PODS)
             if one["metadata"].get("labels", {}).get("app") == label and one["spec"].get("nodeName")]
    return sorted(found.count(zone) for zone in set(found))


def test_pods_are_kept_apart_and_spread_over_nodes(node):
    api = node.api()
    for i in range(4):
        api.must("POST", NODES, other_node(f"m{i}", f"z{i // 2}"))
    for i in range(3):
        api.must("POST", PODS, app(f"a{i}", "a", affinity=apart("a"), nodeSelector={"kubernetes.io/hostname": f"m{i}"}))
    wait_unscheduled(api, "a1", "node(s) didn't match pod anti-affinity rules")
    until(lambda: place(api, "a0") == "m0" and place(api, "a2") == "m2", WAIT_S, "two of them are placed")
    api.must("DELETE", f"{PODS}/a0?gracePeriodSeconds=0")
    until(lambda: place(api, "a1") == "m1", WAIT_S, "the third has its turn")
    for i in range(6):
        api.must("POST", PODS, app(f"s{i}", "s", topologySpreadConstraints=spread("s")))
    until(lambda: zones(api, "s") == [3, 3], WAIT_S, "three in each zone")


@pytest.fixture
def preempting(make_node):
    made = make_node("--preempt-devices").start()
    api = made.api()
    api.must("POST", CLASSES, device_class())
    api.must("POST", PRIORITIES, priority("low", 10))
    api.must("POST", PRIORITIES, priority("high", 1000))
    made.start_driver(4)
    return made


def test_devices_go_to_the_pod_of_higher_priority(preempting):
    api = preempting.api()
    for name, count in (("c1", 2), ("c2", 2), ("c3", 3)):
        api.must("POST", CLAIMS, claim(name, count=count))
    for name, of_claim in (("a", "c1"), ("b", "c2")):
        api.must("POST", PODS, pod(name, of_claim=of_claim, priorityClassName="low"))
    wait_ready(api, "a", "b")
    api.must("POST", PODS, pod("p", of_claim="c3", priorityClassName="high"))
    wait_ready(api, "p")
    wait_gone(api, PODS, "a", "b")
    assert set(held(api).values()) == {"c3"}, held(api)
    assert "Preempted" in reasons(api, "a") and "Preempted" in reasons(api, "b")
    assert "Preempting" in reasons(api, "p")
    # One that is as important waits, and harms nobody.
    api.must("POST", CLAIMS, claim("c4", count=2))
    api.must("POST", PODS, pod("q", of_claim="c4", priorityClassName="high"))
    wait_unscheduled(api, "q", "cannot allocate all claims")
    assert not get(api, PODS, "p")["metadata"].get("deletionTimestamp")


@pytest.mark.release
def test_a_kill_between_victims_leaves_nothing_behind(preempting):
    api = preempting.api()
    for i in range(4):
        api.must("POST", CLAIMS, claim(f"c{i}"))
        api.must("POST", PODS, pod(f"a{i}", of_claim=f"c{i}", priorityClassName="low"))
    wait_ready(api, *(f"a{i}" for i in range(4)))
    api.must("POST", CLAIMS, claim("all", count=4))
    api.must("POST", PODS, pod("p", of_claim="all", priorityClassName="high"))
    until(lambda: any(one["metadata"].get("deletionTimestamp") for one in items(api, PODS)) or len(items(api, PODS)) < 5,
          WAIT_S, "a victim goes")
    preempting.kill()
    preempting.start()
    api = preempting.api()
    wait_ready(api, "p")
    assert condition(get(api, PODS, "p"), "PodScheduled")["status"] == "True"
    wait_gone(api, PODS, *(f"a{i}" for i in range(4)))
    assert set(held(api).values()) == {"all"}, held(api)
