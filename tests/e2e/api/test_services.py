"""Services: kept with an address of their own, though nothing forwards to them; the one of the API itself;
and what is not taken."""

import re

import pytest
from procs import until
from servers import CORE, PATIENCE_S

SERVICES = f"{CORE}/namespaces/default/services"
SLICES = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices"
NETWORKING = "/apis/networking.k8s.io/v1/namespaces/default"


def service(name, **spec):
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": {
        "ports": [{"port": 80}], **spec}}


def test_the_api_has_a_service(api):
    """Its address and port are where it is really reached."""
    until(lambda: api.ask("GET", f"{SLICES}/kubernetes").status == 200, PATIENCE_S, "the slice")
    found = api.must("GET", f"{SERVICES}/kubernetes")
    assert found["spec"]["clusterIP"] == "127.0.0.1"
    assert found["spec"]["ports"] == [
        {"name": "https", "protocol": "TCP", "port": api.port, "targetPort": api.port}]
    (subset,) = api.must("GET", f"{CORE}/namespaces/default/endpoints/kubernetes")["subsets"]
    assert subset == {"addresses": [{"ip": "127.0.0.1"}],
                      "ports": [{"name": "https", "port": api.port, "protocol": "TCP"}]}
    behind = api.must("GET", f"{SLICES}/kubernetes")
    assert behind["metadata"]["labels"] == {"kubernetes.io/service-name": "kubernetes"}
    assert behind["endpoints"] == [{"addresses": ["127.0.0.1"], "conditions": {"ready": True}}]


def test_the_service_of_the_api_comes_back_and_follows_it(node, api):
    until(lambda: api.ask("GET", f"{SERVICES}/kubernetes").status == 200, PATIENCE_S, "the service")
    api.must("DELETE", f"{SERVICES}/kubernetes")
    until(lambda: api.ask("GET", f"{SERVICES}/kubernetes").status == 200, PATIENCE_S, "the service")
    node.stop()
    node.start()  # on another port
    api = node.api()

    def is_right():
        answer = api.ask("GET", f"{SERVICES}/kubernetes")
        return answer.status == 200 and answer.doc["spec"]["ports"][0]["port"] == api.port
    until(is_right, PATIENCE_S, "the new port")


def test_services_have_addresses_that_stay(api):
    made = [api.must("POST", SERVICES, service(f"s{number}")) for number in range(20)]
    addresses = [one["spec"]["clusterIP"] for one in made]
    assert len(set(addresses)) == 20
    assert all(re.fullmatch(r"10\.96\.\d+\.\d+", address) for address in addresses)
    assert made[0]["spec"] == {
        "clusterIP": addresses[0], "clusterIPs": [addresses[0]], "type": "ClusterIP",
        "sessionAffinity": "None", "internalTrafficPolicy": "Cluster", "ipFamilies": ["IPv4"],
        "ipFamilyPolicy": "SingleStack",
        "ports": [{"protocol": "TCP", "port": 80, "targetPort": 80}]}
    # Who does not know the address keeps it, and nobody changes it or takes another's.
    again = api.must("PUT", f"{SERVICES}/s0", service("s0", selector={"a": "b"}))
    assert again["spec"]["clusterIP"] == addresses[0]
    assert "may not change once set" in api.refused(
        422, "PUT", f"{SERVICES}/s0", service("s0", clusterIP="10.96.0.9"))["message"]
    assert "already allocated" in api.refused(
        422, "POST", SERVICES, service("t", clusterIP=addresses[1]))["message"]


def test_a_service_without_an_address(api):
    headless = api.must("POST", SERVICES, service("h", clusterIP="None"))["spec"]
    assert (headless["clusterIP"], headless["clusterIPs"]) == ("None", ["None"])
    other = api.must("POST", SERVICES, {"metadata": {"name": "e"}, "spec": {
        "type": "ExternalName", "externalName": "example.com"}})["spec"]
    assert "clusterIP" not in other


def test_ports_that_are_applied_need_not_name_their_protocol(api):
    """Server-side apply knows ports by number and protocol, which is TCP unless it is said."""
    words = f"{SERVICES}/s?fieldManager=helm&fieldValidation=Strict"

    def apply(*ports):
        return api.must("PATCH", words, {
            "apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"},
            "spec": {"ports": list(ports)}}, Content_Type="application/apply-patch+yaml")
    apply({"name": "a", "port": 80}, {"name": "b", "port": 81})
    made = apply({"name": "a", "port": 80, "targetPort": "web"})
    assert made["spec"]["ports"] == [
        {"name": "a", "protocol": "TCP", "port": 80, "targetPort": "web"}]


@pytest.mark.parametrize("resource,kind", [("networkpolicies", "NetworkPolicy"),
                                           ("ingresses", "Ingress")])
def test_what_would_have_no_effect_is_refused_with_a_reason(api, resource, kind):
    answer = api.refused(405, "POST", f"{NETWORKING}/{resource}", {
        "apiVersion": "networking.k8s.io/v1", "kind": kind, "metadata": {"name": "x"}})
    assert f"davit takes no {resource}" in answer["message"]
    assert "the chart's values" in answer["message"]
    assert not api.must("GET", f"{NETWORKING}/{resource}")["items"]
