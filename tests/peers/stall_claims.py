"""Rows of bench_stall.py: a pod with as many claims as fit into a request, which all exist."""

import json
import os

from claim_nodes import allocation, pod, reserved
from procs import until
from python_driver import Device, Driver
from servers import CLAIMS, PODS, RESOURCE, merge_patch
from stall_lists import in_threads

PATIENCE_S = 300
DRIVER = "gpu.example.com"
N_CLAIMS = 20000


def names():
    return [f"c{i}" for i in range(N_CLAIMS)]


def make_claims(world):
    """Allocated and reserved for the pod of the uid uid-big, a device for each."""

    def make(number):
        name = f"c{number}"
        requests = [{"name": "r0", "exactly": {"deviceClassName": "gpu"}}]
        doc = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim",
               "metadata": {"name": name}, "spec": {"devices": {"requests": requests}}}
        world.api.must("POST", CLAIMS, doc)
        doc["status"] = {"allocation": allocation((DRIVER, f"d-{name}")),
                         "reservedFor": reserved("uid-big")}
        world.api.must("PUT", f"{CLAIMS}/{name}/status", doc)

    in_threads(world, make, N_CLAIMS)


def serve_driver(world):
    """One that has a CDI device for each claim, in two specs: one may not have so many."""
    folder = os.path.join(world.folder, "cdi")
    os.makedirs(folder, exist_ok=True)
    for half in range(2):
        spec = {"cdiVersion": "0.6.0", "kind": f"{DRIVER}/gpu{half}",
                "devices": [{"name": name, "containerEdits": {"env": [f"{name}=1"]}}
                            for name in names()[half::2]]}
        with open(os.path.join(folder, f"gpu{half}.json"), "w", encoding="ascii") as file:
            json.dump(spec, file)
    driver = Driver(world.node.kubelet_dir, folder, DRIVER)
    driver.devices_of = lambda claim: [
        Device("r0", "n1", f"d-{claim.name}",
               [f"{DRIVER}/gpu{int(claim.name[1:]) % 2}={claim.name}"])]
    driver.write_spec = lambda path, text: None
    world.started.append(driver.serve())
    until(lambda: driver.is_registered, PATIENCE_S, "the driver is registered")
    world.driver = driver


def big_pod():
    return pod("big", {name: name for name in names()})


def admit(world):
    answer = world.node.admit(big_pod(), wait=PATIENCE_S, timeout=PATIENCE_S)
    assert answer.admitted, answer


def prepare_world(world):
    make_claims(world)
    serve_driver(world)


def options(world):
    world.node.container_options("uid-big", "main")


def list_claims(world):
    pb = world.node.pb
    listed = world.node.call("ListClaims", pb.ListClaimsRequest(), pb.ListClaimsResponse)
    assert len(listed.claims) == N_CLAIMS


def show_page(world):
    assert len(json.loads(world.api.ask("GET", "/davit/v1/node").body)["claims"]) == N_CLAIMS


def podres_get(world):
    request = world.node.podres.GetPodResourcesRequest(pod_name="big", pod_namespace="default")
    world.node.podres_call("Get", request, world.node.podres.GetPodResourcesResponse)


def make_template(world):
    world.api.must("POST", f"{RESOURCE}/v1/deviceclasses", {
        "apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": "gpu"},
        "spec": {}})
    requests = [{"name": "r0", "exactly": {"deviceClassName": "gpu"}}]
    world.api.must("POST", CLAIMS.replace("resourceclaims", "resourceclaimtemplates"), {
        "apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaimTemplate",
        "metadata": {"name": "t"}, "spec": {"spec": {"devices": {"requests": requests}}}})


def generated_pod():
    doc = big_pod()
    del doc["metadata"]["uid"], doc["spec"]["nodeName"]
    doc["metadata"]["name"] = "generated"
    doc["spec"]["resourceClaims"] = [
        {"name": name, "resourceClaimTemplateName": "t"} for name in names()]
    return doc


def generate(world):
    """A pod whose claims are all made from a template."""
    world.api.must("POST", PODS, generated_pod())
    until(lambda: claim_statuses(world), PATIENCE_S, "the claims of the pod")


def claim_statuses(world):
    return world.api.must("GET", f"{PODS}/generated")["status"].get("resourceClaimStatuses")


def generate_again(world):
    """Its claims are deleted, and made again under other names."""
    old = claim_statuses(world)
    world.api.must("DELETE", CLAIMS)
    until(lambda: claim_statuses(world)[-1] != old[-1], PATIENCE_S, "other claims")


def delete_generated(world):
    """Its claims go one by one."""
    world.api.must("DELETE", f"{PODS}/generated")
    until(lambda: not world.api.must("GET", f"{CLAIMS}?limit=1")["items"], PATIENCE_S,
          "the end of the claims")


def groups(row):
    many = f"{N_CLAIMS} claims"
    yield "podclaims", [
        row(f"a pod of {many} is admitted", admit, prepare_world),
        row("davit.node tells what its container gets", options),
        row("davit.node tells of it", lambda w: w.node.status()),
        row("davit.node lists its claims", list_claims),
        row("the page shows it", show_page),
        row("PodResources tells of it", podres_get),
        row("it is released", lambda w: w.node.release("uid-big")),
    ], "--roles", "api,node"  # controllers would take the reservations of a pod they do not know
    yield "generated", [
        row(f"a pod of {many} from a template", generate, make_template),
        row("another look at it", lambda w: merge_patch(
            w.api, f"{PODS}/generated", {"metadata": {"labels": {"a": "b"}}})),
        row("deletion of all its claims", generate_again),
        row("its deletion", delete_generated),
    ]
