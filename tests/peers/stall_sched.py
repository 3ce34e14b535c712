"""Rows of bench_stall.py: pods that are hard to place."""

import functools
import json

from procs import until
from servers import CLAIMS, NODES, PODS, RESOURCE, SLICES

PATIENCE_S = 120
N_NODES = 200
N_SLICES = 8
SIXTEEN = "[0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15]"


def costly(number):
    """Nearly a million units on each device, and false on all."""
    return (f"{SIXTEEN}.all(a, {SIXTEEN}.all(b, {SIXTEEN}.all(c, [0,1,2,3,4,5,6,7].all(d,"
            f" a + b + c + d >= 0)))) && device.driver == 'none-{number}'")


def nested(number):
    """Lists of lists that are one and the same: cheap by CEL's count, and without an end."""
    lists = f"[[{number}]]" + ".map(x, [x,x,x,x,x,x,x,x,x,x])" * 12
    return f"{lists} == {lists}"


def make_nodes(world):
    allocatable = {"status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "110"}}}
    for number in range(N_NODES):
        world.api.must("POST", NODES, {"apiVersion": "v1", "kind": "Node",
                                       "metadata": {"name": f"far-{number}"}})
        world.api.must("PATCH", f"{NODES}/far-{number}/status", json.dumps(allocatable),
                       Content_Type="application/merge-patch+json")
    world.api.must("POST", f"{RESOURCE}/v1/deviceclasses", {
        "apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": "gpu"},
        "spec": {}})
    for number in range(N_SLICES):
        world.api.must("POST", SLICES, {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceSlice",
            "metadata": {"name": f"s{number}"},
            "spec": {
                "driver": "gpu.example.com",
                "nodeName": "far-0",
                "pool": {"name": "far-0", "generation": 1, "resourceSliceCount": N_SLICES},
                "devices": [{"name": f"d{number}-{i}"} for i in range(128)],
            }})


def try_pod(name, spec, container, world):
    """Until something is said of it."""
    world.api.must("POST", PODS, {
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
        "spec": {"containers": [{"name": "c", "image": "pause", **container}], **spec}})

    def is_told():
        return world.api.must("GET", f"{PODS}/{name}")["status"].get("conditions")

    until(is_told, PATIENCE_S, f"a word about {name}")


def try_claim(name, selector, n_requests, world):
    world.api.must("POST", CLAIMS, {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": name},
        "spec": {"devices": {"requests": [
            {"name": f"r{i}", "exactly": {"deviceClassName": "gpu", "selectors": [
                {"cel": {"expression": selector(i)}}]}} for i in range(n_requests)]}},
    })
    try_pod(name, {"resourceClaims": [{"name": "e", "resourceClaimName": name}]}, {}, world)


def groups(row):
    part = functools.partial
    limits = {"resources": {"limits": {f"a.b/r{i}": "1" for i in range(40000)}}}
    tolerations = [{"key": f"k{i}", "operator": "Exists"} for i in range(30000)]
    yield "sched", [
        row("one costly selector on 1,024 devices", part(try_claim, "one", costly, 1), make_nodes),
        row("32 costly selectors on 1,024 devices", part(try_claim, "many", costly, 32)),
        row("a comparison without an end", part(try_claim, "nested", nested, 1)),
        row(f"40,000 limits on {N_NODES} nodes", part(try_pod, "limits", {}, limits)),
        row(f"30,000 tolerations on {N_NODES} nodes",
            part(try_pod, "tolerations", {"tolerations": tolerations, "nodeSelector": {"no": "no"}},
                 {})),
    ]
