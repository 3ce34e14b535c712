"""EndpointSlices of services with a selector: made by the controllers, and kept to be what pods say."""

import pytest
from procs import until
from servers import CORE, PATIENCE_S, PODS, ApiNode

SERVICES = f"{CORE}/namespaces/default/services"
SLICES = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices"
OF_WEB = f"{SLICES}?labelSelector=kubernetes.io/service-name=web"


@pytest.fixture
def new_node():
    def make(procs, root, *options):
        return ApiNode(procs, root, "--roles", "api,control", *options)

    return make


def make_pod(api, name, address, port=8080, is_ready=True):
    api.must("POST", PODS, {"metadata": {"name": name, "labels": {"app": "web"}}, "spec": {
        "nodeName": "elsewhere", "containers": [{"name": "c", "image": "i", "ports": [
            {"name": "http", "containerPort": port}]}]}})
    set_status(api, name, address, is_ready)


def set_status(api, name, address, is_ready):
    api.must("PATCH", f"{PODS}/{name}/status", {"status": {
        "phase": "Running", "podIP": address, "podIPs": [{"ip": address}],
        "conditions": [{"type": "Ready", "status": str(is_ready)}]}},
        Content_Type="application/strategic-merge-patch+json")


def endpoints(api):
    """{(address, port): whether it is ready}"""
    return {(one["addresses"][0], slice_["ports"][0]["port"]): one["conditions"]["ready"]
            for slice_ in api.must("GET", OF_WEB)["items"] for one in slice_["endpoints"]}


def wait_for(api, wanted):
    until(lambda: endpoints(api) == wanted, PATIENCE_S, lambda: f"{endpoints(api)}, not {wanted}")


def test_slices_follow_pods_and_services(node, api):
    make_pod(api, "a", "10.1.0.1")
    api.must("POST", SERVICES, {"metadata": {"name": "web"}, "spec": {
        "selector": {"app": "web"}, "ports": [{"name": "http", "port": 80, "targetPort": "http"}]}})
    wait_for(api, {("10.1.0.1", 8080): True})
    make_pod(api, "b", "10.1.0.2", is_ready=False)
    make_pod(api, "c", "10.1.0.3", port=9090)  # the same name is another port here
    wait_for(api, {("10.1.0.1", 8080): True, ("10.1.0.2", 8080): False, ("10.1.0.3", 9090): True})
    set_status(api, "b", "10.1.0.2", True)
    api.must("DELETE", f"{PODS}/c?gracePeriodSeconds=0")
    wait_for(api, {("10.1.0.1", 8080): True, ("10.1.0.2", 8080): True})
    (slice_,) = api.must("GET", OF_WEB)["items"]
    assert slice_["metadata"]["ownerReferences"][0]["kind"] == "Service"
    assert slice_["endpoints"][0]["targetRef"]["kind"] == "Pod"

    # What somebody changes is put right, also after a restart.
    api.must("DELETE", f"{SLICES}/{slice_['metadata']['name']}")
    wait_for(api, {("10.1.0.1", 8080): True, ("10.1.0.2", 8080): True})
    node.kill()
    node.start()
    api = node.api()
    set_status(api, "a", "10.1.0.9", True)
    wait_for(api, {("10.1.0.9", 8080): True, ("10.1.0.2", 8080): True})

    # Another selector, another set of pods; without the service nothing is left.
    api.must("PATCH", f"{SERVICES}/web", {"spec": {"selector": {"app": "other"}}},
             Content_Type="application/merge-patch+json")
    wait_for(api, {})
    api.must("DELETE", f"{SERVICES}/web")
    until(lambda: not api.must("GET", OF_WEB)["items"], PATIENCE_S, "the slices are gone")
