"""Pools of other nodes: no driver publishes into them, and what an administrator does is told."""

import os
import time

import pytest

from nodes import run_davit
from procs import until
from servers import CLAIMS, NODES, PATIENCE_S, PODS, RESOURCE, SLICES, claim, device_slice
from test_access import make_token

DRIVER = "gpu.example.com"
CLASSES = f"{RESOURCE}/v1/deviceclasses"


def slice_in(name, node_name, pool, generation=1, **spec):
    made = device_slice(name, node_name)
    made["spec"] |= {"pool": {"name": pool, "generation": generation, "resourceSliceCount": 1},
                     **spec}
    return made


def driver_of(node, name, *pools):
    """Requests as the driver of a node, with pools that are named otherwise."""
    words = [word for pool in pools for word in ("--pool", pool)]
    return node.api(token=make_token(node, "--driver", DRIVER, "--node", name, *words))


@pytest.fixture
def drivers(node, api):
    """Requests as the drivers of two nodes."""
    made = {}
    for name in ("worker-1", "worker-2"):
        api.must("POST", NODES, {"metadata": {"name": name}, "status": {
            "allocatable": {"pods": "10"}}})
        made[name] = driver_of(node, name)
    return made


def pending_reasons(api, name):
    status = api.must("GET", f"{PODS}/{name}").get("status", {})
    return [one.get("message", "") for one in status.get("conditions", [])]


def make_pod_for(api, name):
    """A pod that wants a device of the driver, wherever."""
    api.must("POST", CLASSES, {"metadata": {"name": "gpu"}, "spec": {"selectors": [
        {"cel": {"expression": f'device.driver == "{DRIVER}"'}}]}})
    api.must("POST", CLAIMS, claim("c"))
    api.must("POST", PODS, {"metadata": {"name": name}, "spec": {
        "containers": [{"name": "c", "image": "i", "resources": {"claims": [{"name": "r"}]}}],
        "resourceClaims": [{"name": "r", "resourceClaimName": "c"}]}})


def test_a_driver_does_not_wait_for_a_node_that_comes_later(node, drivers, api):
    """Under the name that its pool will have; nor under any other that could be a node's."""
    first = drivers["worker-1"]
    counters = {"devices": None, "sharedCounters": [
        {"name": "c", "counters": {"x": {"value": "1"}}}]}
    for pool in ("worker-3", "worker-3/gpus", "worker-1-3", "worker-1.zone", "worker-10", "gpus"):
        for more in ({}, counters):
            body = slice_in("x", "worker-1", pool, 99, **more)
            for method, path, kind in (
                    ("POST", SLICES, "application/json"),
                    ("POST", SLICES + "?dryRun=All", "application/json"),
                    ("PATCH", f"{SLICES}/x?fieldManager=x", "application/apply-patch+yaml")):
                doc = first.refused(403, method, path, body, Content_Type=kind)
                assert f'pool "{pool}" is not named after node "worker-1"' in doc["message"], doc
                assert "davit token create --pool" in doc["message"], doc
    api.must("POST", NODES, {"metadata": {"name": "worker-3"}, "status": {
        "allocatable": {"pods": "10"}}})
    driver_of(node, "worker-3").must("POST", SLICES, slice_in("own", "worker-3", "worker-3"))
    make_pod_for(api, "p")
    until(lambda: api.must("GET", f"{PODS}/p")["spec"].get("nodeName") == "worker-3", PATIENCE_S,
          "the pod on its node")


def test_a_pool_of_another_node_is_known_when_nobody_has_looked_for_long(drivers, api):
    api.must("POST", SLICES, slice_in("own", "worker-1", "shared"))
    # Until slices are packed: the scheduler rests two to four seconds after it was used, and one
    # later they are rows. Nothing tells of it; on a slow machine this shows less, and is still true.
    time.sleep(6)
    doc = drivers["worker-2"].refused(403, "POST", SLICES, slice_in("x", "worker-2", "shared"))
    assert 'pool "shared" is of node "worker-1" (slice "own")' in doc["message"], doc
    api.must("GET", f"{SLICES}/own")


def test_a_token_is_for_the_pools_that_it_was_made_for(node, drivers, api):
    """As of drivers whose pools have the same name on every node, and of those without a node."""
    given = driver_of(node, "worker-1", "pool0", "pool1")
    for name in ("pool0", "pool1", "worker-1", "worker-1/numa0"):
        given.must("POST", SLICES, slice_in(name.replace("/", "-"), "worker-1", name))
    given.refused(403, "POST", SLICES, slice_in("x", "worker-1", "pool2"))
    doc = driver_of(node, "worker-2", "pool0").refused(
        403, "POST", SLICES, slice_in("x", "worker-2", "pool0"))
    assert 'pool "pool0" is of node "worker-1" (slice "pool0")' in doc["message"], doc
    network = node.api(token=make_token(node, "--driver", DRIVER, "--all-nodes", "--pool", "net"))
    wide = {"nodeName": None, "allNodes": True}
    network.must("POST", SLICES, slice_in("net", None, "net", **wide))
    for pool in ("worker-3", "nets"):
        doc = network.refused(403, "POST", SLICES, slice_in("x", None, pool, **wide))
        assert "none of those that the token is for" in doc["message"], doc
    listed = run_davit("token", "list", "--kubeconfig", node.kubeconfig).stdout
    assert "pool pool0; pool pool1" in listed, listed
    # It lasts.
    token = given.token
    node.stop()
    node.start()
    again = node.api(token=token)
    again.must("POST", SLICES, slice_in("again", "worker-1", "pool1"))
    again.refused(403, "POST", SLICES, slice_in("x", "worker-1", "pool2"))


def test_pools_of_tokens_that_are_wrong_are_refused(node, api):
    body = {"driver": DRIVER, "node": "worker-1"}
    for wrong in ({"pools": "a"}, {"pools": [1]}, {"pools": [""]}, {"pools": ["a b"]},
                  {"pools": ["gpus/*"]}, {"pools": ["a"] * 33}):
        doc = api.refused(400, "POST", "/davit/v1/tokens", {**body, **wrong})
        assert doc["message"].startswith("pools: "), doc
    for other in ({"node": "worker-1"}, {"admin": "ada"}):
        api.refused(400, "POST", "/davit/v1/tokens", {**other, "pools": ["a"]})
    done = run_davit("token", "create", "--node", "n", "--pool", "a", "--kubeconfig",
                     node.kubeconfig)
    assert done.returncode == 2 and "--pool is for drivers" in done.stderr, done


def test_a_driver_publishes_no_pool_of_another_node(node, drivers, api):
    first = driver_of(node, "worker-1", "gpus-of-2", "worker-2", "nics")
    second = driver_of(node, "worker-2", "gpus-of-2")
    second.must("POST", SLICES, slice_in("second", "worker-2", "gpus-of-2"))
    rows = [
        (slice_in("x", "worker-1", "gpus-of-2"), 'pool "gpus-of-2" is of node "worker-2"'),
        (slice_in("x", "worker-1", "gpus-of-2", 99), 'slice "second"'),
        (slice_in("x", "worker-1", "worker-2"), "has the name of another node"),
    ]
    for body, why in rows:
        for method, path in (("POST", SLICES), ("POST", SLICES + "?dryRun=All")):
            doc = first.refused(403, method, path, body)
            assert why in doc["message"] and doc["reason"] == "Forbidden", doc
        doc = first.refused(403, "PATCH", f"{SLICES}/x?fieldManager=x", body,
                            Content_Type="application/apply-patch+yaml")
        assert why in doc["message"], doc
    # Its own are free, as are pools of that name of another driver.
    first.must("POST", SLICES, slice_in("a", "worker-1", "worker-1"))
    first.must("POST", SLICES, slice_in("b", "worker-1", "worker-1/extra"))
    api.must("POST", SLICES, slice_in("c", "worker-2", "nics", driver="nic.example.com"))
    first.must("POST", SLICES, slice_in("d", "worker-1", "nics"))
    # A slice does not change its pool later.
    moved = first.must("GET", f"{SLICES}/a")
    moved["spec"]["pool"]["name"] = "gpus-of-2"
    first.refused(422, "PUT", f"{SLICES}/a", moved)


def test_a_nodes_own_name_is_its_own(drivers, api):
    """Whoever took it first, by mistake or before the node was known."""
    api.must("POST", SLICES, slice_in("squatter", "worker-1", "worker-2"))
    drivers["worker-2"].must("POST", SLICES, slice_in("own", "worker-2", "worker-2"))


def test_a_node_publishes_no_pool_of_another_node(node, drivers, api):
    """The node's own token reaches no further than its drivers'."""
    worker = node.api(token=make_token(node, "--node", "worker-1"))
    driver_of(node, "worker-2", "gpus-of-2").must(
        "POST", SLICES, slice_in("second", "worker-2", "gpus-of-2"))
    spoiler = slice_in("x", "worker-1", "gpus-of-2", 99, devices=None, sharedCounters=[
        {"name": "c", "counters": {"x": {"value": "1"}}}])
    for body in (spoiler, slice_in("x", "worker-1", "gpus-of-2", 99)):
        for path in (SLICES, SLICES + "?dryRun=All"):
            doc = worker.refused(403, "POST", path, body)
            assert 'pool "gpus-of-2" is of node "worker-2" (slice "second")' in doc["message"], doc
        worker.refused(403, "PATCH", f"{SLICES}/x?fieldManager=x", body,
                       Content_Type="application/apply-patch+yaml")
    # Its own are free, and what is in a pool of the node is kept up to date.
    worker.must("POST", SLICES, slice_in("a", "worker-1", "worker-1"))
    worker.must("POST", SLICES, slice_in("b", "worker-1", "gpus-of-1"))
    for name in ("a", "b"):
        newer = worker.must("GET", f"{SLICES}/{name}")
        newer["spec"]["pool"]["generation"] = 2
        worker.must("PUT", f"{SLICES}/{name}", newer)


@pytest.mark.parametrize("who", ["--driver", "--node"])
def test_a_squatter_changes_its_slice_no_more(node, drivers, api, who):
    """Of a node that comes later: by the Node, or by the slice that is in its own pool."""
    names = ("worker-3", "worker-4", "free")
    if who == "--node":
        first = node.api(token=make_token(node, "--node", "worker-1"))
    else:
        first = driver_of(node, "worker-1", *names)
    for name in names:
        first.must("POST", SLICES, slice_in(name, "worker-1", name))
    api.must("POST", NODES, {"metadata": {"name": "worker-3"}})
    driver_of(node, "worker-4").must("POST", SLICES, slice_in("own", "worker-4", "worker-4"))
    for name, why in (("worker-3", "has the name of another node"),
                      ("worker-4", 'is of node "worker-4" (slice "own")')):
        path = f"{SLICES}/{name}"
        newer = first.must("GET", path)
        newer["spec"]["pool"]["generation"] = 99
        patch = {"spec": {"pool": {"generation": 99}}}
        for method, body, kind in (("PUT", newer, "application/json"),
                                   ("PATCH", patch, "application/merge-patch+json")):
            doc = first.refused(403, method, path, body, Content_Type=kind)
            assert why in doc["message"], doc
        assert api.must("GET", path)["spec"]["pool"]["generation"] == 1
        first.must("DELETE", path)
    newer = first.must("GET", f"{SLICES}/free")
    newer["spec"]["pool"]["generation"] = 2
    first.must("PUT", f"{SLICES}/free", newer)


def test_a_pool_for_all_nodes_is_no_nodes(drivers, api):
    api.must("POST", SLICES, {**slice_in("all", None, "net"), "spec": {
        **slice_in("all", None, "net")["spec"], "nodeName": None, "allNodes": True}})
    doc = drivers["worker-1"].refused(403, "POST", SLICES, slice_in("x", "worker-1", "net"))
    assert "not of this node alone" in doc["message"], doc


def test_an_administrators_mistake_is_named(node, drivers, api):
    """A slice with counters is for every node, and its newer generation hides the others."""
    for name in ("worker-1", "worker-2"):
        drivers[name].must("POST", SLICES, slice_in(name, name, name))
    api.must("POST", CLASSES, {"metadata": {"name": "gpu"}, "spec": {"selectors": [
        {"cel": {"expression": f'device.driver == "{DRIVER}"'}}]}})
    api.must("POST", SLICES, slice_in("spoiler", "worker-1", "worker-2", 99, devices=None,
                                      sharedCounters=[{"name": "c", "counters": {
                                          "x": {"value": "1"}}}]))
    api.must("POST", CLAIMS, claim("c"))
    done = run_davit("explain", "claim", "c", "--node", "worker-2", "--kubeconfig",
                     node.kubeconfig)
    assert done.returncode == 3, done
    assert "pool gpu.example.com/worker-2 is also that of slice spoiler of node worker-1" \
        in done.stdout, done.stdout


def test_the_pod_says_which_slice_it_is(node, drivers, api):
    drivers["worker-2"].must("POST", SLICES, slice_in("own", "worker-2", "worker-2"))
    api.must("POST", SLICES, slice_in("spoiler", "worker-1", "worker-2", 99, devices=None,
                                      sharedCounters=[{"name": "c", "counters": {
                                          "x": {"value": "1"}}}]))
    make_pod_for(api, "p")
    why = "pool gpu.example.com/worker-2 is also that of slice spoiler of node worker-1"

    until(lambda: any(why in text for text in pending_reasons(api, "p")), PATIENCE_S, "a condition that names it")

    def events():
        items = api.must("GET", f"{os.path.dirname(PODS)}/events")["items"]
        return [event["message"] for event in items]

    until(lambda: any(why in text for text in events()), PATIENCE_S, "an event that names it")
    # Once it is gone the pod is scheduled.
    api.must("DELETE", f"{SLICES}/spoiler")
    until(lambda: api.must("GET", f"{PODS}/p")["spec"].get("nodeName") == "worker-2", PATIENCE_S,
          "the pod on its node")
