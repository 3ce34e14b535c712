"""Another scheduler on davitd's API, as a kube-scheduler is: it lists and watches all that it waits for,
allocates claims, binds pods, and learns from its watches when devices are free again."""

import pytest

from procs import until
from servers import CLAIMS, PODS, RESOURCE
from test_empty_kinds import EMPTY, plural
from whole_nodes import (
    CLASSES, GPU, TEMPLATES, WAIT_S, device_class, get, items, pod, template, wait_gone, wait_ready,
)

pytestmark = pytest.mark.release

# What its informers list, as streams that begin with a list.
KINDS = [
    "/api/v1/namespaces", "/api/v1/nodes", "/api/v1/pods", f"{RESOURCE}/v1/deviceclasses",
    f"{RESOURCE}/v1/resourceclaims", f"{RESOURCE}/v1/resourceslices",
    *(f"{group}/{plural(kind)}" for group, kinds in EMPTY.items() for kind in kinds),
]
AS_INFORMERS = ("allowWatchBookmarks=true&sendInitialEvents=true"
                "&resourceVersionMatch=NotOlderThan&timeoutSeconds=300")
FINALIZER = "resource.kubernetes.io/delete-protection"


def is_synced(event):
    annotations = event["object"]["metadata"].get("annotations", {})
    return event["type"] == "BOOKMARK" and "k8s.io/initial-events-end" in annotations


def schedule(api, name, node="n1"):
    """What a scheduler writes: the finalizer, the allocation with the reservation, the binding."""
    one = get(api, PODS, name)
    (entry,) = one["status"]["resourceClaimStatuses"]
    path = f"{CLAIMS}/{entry['resourceClaimName']}"
    claim = api.must("GET", path)
    claim["metadata"].setdefault("finalizers", []).append(FINALIZER)
    claim = api.must("PUT", path, claim)
    claim["status"] = {
        "allocation": {
            "devices": {"results": [
                {"request": "r", "driver": GPU, "pool": node, "device": "device-0"}]},
            "nodeSelector": {"nodeSelectorTerms": [{"matchFields": [
                {"key": "metadata.name", "operator": "In", "values": [node]}]}]},
        },
        "reservedFor": [{"resource": "pods", "name": name, "uid": one["metadata"]["uid"]}],
    }
    api.must("PUT", f"{path}/status", claim)
    api.must("POST", f"{PODS}/{name}/binding", {
        "apiVersion": "v1", "kind": "Binding",
        "metadata": {"name": name, "namespace": "default", "uid": one["metadata"]["uid"]},
        "target": {"apiVersion": "v1", "kind": "Node", "name": node}})
    return claim["metadata"]["name"]


def wait_generated(api, name):
    until(lambda: get(api, PODS, name)["status"].get("resourceClaimStatuses"), WAIT_S,
          f"the claim of {name}")


@pytest.fixture
def node(make_node):
    return make_node("--roles", "api,control,node").start()


def test_all_that_it_waits_for_is_there(node):
    for path in KINDS:
        with node.api().watch(f"{path}?{AS_INFORMERS}") as watch:
            watch.until(is_synced)


def test_pods_run_one_after_the_other_on_one_device(node):
    api = node.api()
    driver = node.start_driver(1)
    api.must("POST", CLASSES, device_class())
    api.must("POST", TEMPLATES, template())
    for name in ("p1", "p2"):
        api.must("POST", PODS, pod(name, of_template="one"))
        wait_generated(api, name)
    first = schedule(api, "p1")
    wait_ready(api, "p1")
    assert get(api, PODS, "p2")["spec"].get("nodeName") is None  # nobody else schedules
    with api.watch(f"{CLAIMS}?{AS_INFORMERS}") as watch:
        watch.until(is_synced)
        node.api().must("DELETE", f"{PODS}/p1")
        # A kube-scheduler looks for free devices when it sees a claim without its allocation: an
        # event of its own, because it does not look at what is deleted.
        freed = watch.until(lambda event: event["object"]["metadata"].get("name") == first
                            and "allocation" not in event["object"].get("status", {}))[-1]
        assert freed["type"] == "MODIFIED" and "reservedFor" not in freed["object"]["status"], freed
        gone = watch.until(lambda event: event["type"] == "DELETED")[-1]
        assert gone["object"]["metadata"]["name"] == first
    wait_gone(node.api(), PODS, "p1")
    assert driver.prepared() == {}
    api = node.api()
    second = schedule(api, "p2")
    wait_ready(api, "p2")
    assert [one["metadata"]["name"] for one in items(api, CLAIMS)] == [second]
