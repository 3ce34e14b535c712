"""What helm 4 asks of an API, call by call: discovery, server-side apply with strict fields, releases as
Secrets, upgrades that leave something out, and an end of which nothing is left."""

import base64
import gzip
import json

from servers import CORE

APPLY = "application/apply-patch+yaml"
SECRETS = f"{CORE}/namespaces/default/secrets"
SETS = "/apis/apps/v1/namespaces/default/daemonsets"
SERVICES = f"{CORE}/namespaces/default/services"
LABELS = {"app.kubernetes.io/managed-by": "Helm"}
RELEASE = {"meta.helm.sh/release-name": "drv", "meta.helm.sh/release-namespace": "default"}


def apply(api, path, body, manager="helm", force=False, status=200):
    words = f"?fieldManager={manager}&fieldValidation=Strict&force={str(force).lower()}"
    answer = api.ask("PATCH", f"{path}/{body['metadata']['name']}{words}", body, Content_Type=APPLY)
    assert answer.status in (status, 201), answer
    return answer.doc


def driver(image, env, ports, tolerations):
    return {"apiVersion": "apps/v1", "kind": "DaemonSet",
            "metadata": {"name": "drv", "labels": LABELS, "annotations": RELEASE},
            "spec": {"selector": {"matchLabels": {"app": "drv"}}, "template": {
                "metadata": {"labels": {"app": "drv"}},
                "spec": {"containers": [{"name": "plugin", "image": image, "env": env,
                                         "ports": ports}],
                         "tolerations": tolerations}}}}


def release(version, status):
    """As helm keeps it: packed JSON, in base64 twice."""
    packed = base64.b64encode(gzip.compress(json.dumps({"version": version}).encode()))
    return {"apiVersion": "v1", "kind": "Secret", "type": "helm.sh/release.v1",
            "metadata": {"name": f"sh.helm.release.v1.drv.v{version}", "labels": {
                "owner": "helm", "name": "drv", "status": status, "version": str(version)}},
            "data": {"release": base64.b64encode(packed).decode()}}


def test_capabilities_are_told_in_one_answer(api):
    answer = api.ask("GET", "/apis", Accept="application/json;g=apidiscovery.k8s.io;v=v2;"
                                            "as=APIGroupDiscoveryList,application/json")
    groups = {group["metadata"]["name"]: group["versions"] for group in answer.doc["items"]}
    kinds = {one["responseKind"]["kind"] for one in groups["discovery.k8s.io"][0]["resources"]}
    assert kinds == {"EndpointSlice"}
    assert "DaemonSet" in {one["responseKind"]["kind"] for one in groups["apps"][0]["resources"]}
    schema = api.must("GET", "/openapi/v3")["paths"]["apis/apps/v1"]["serverRelativeURL"]
    assert "DaemonSet" in json.dumps(api.must("GET", schema))


def test_releases_are_found_by_labels_and_replaced_without_a_version(api):
    for version in (1, 2):
        api.must("POST", SECRETS, release(version, "deployed"))
    old = release(1, "superseded")
    api.must("PUT", f"{SECRETS}/{old['metadata']['name']}", old)
    found = api.must("GET", f"{SECRETS}?labelSelector=name%3Ddrv%2Cowner%3Dhelm%2Cstatus%3Ddeployed")
    assert [one["metadata"]["name"] for one in found["items"]] == ["sh.helm.release.v1.drv.v2"]
    api.refused(409, "POST", SECRETS, release(2, "deployed"))


def test_an_upgrade_takes_back_what_it_no_longer_has(api):
    apply(api, SETS, driver("i:1", [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}],
                            [{"containerPort": 80}, {"containerPort": 81}],
                            [{"key": "gpu", "operator": "Exists"}]))
    apply(api, SERVICES, {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "drv"},
                          "spec": {"selector": {"app": "drv"}, "ports": [{"port": 8080}]}})
    # Somebody else has a variable of its own in the same container.
    apply(api, SETS, {"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "drv"},
                      "spec": {"template": {"spec": {"containers": [
                          {"name": "plugin", "env": [{"name": "C", "value": "3"}]}]}}}}, "ops")
    made = apply(api, SETS, driver("i:2", [{"name": "B", "value": "5"}], [{"containerPort": 81}], []))
    (container,) = made["spec"]["template"]["spec"]["containers"]
    assert container["image"] == "i:2"
    assert {one["name"]: one["value"] for one in container["env"]} == {"B": "5", "C": "3"}
    assert [one["containerPort"] for one in container["ports"]] == [81]
    assert "tolerations" not in made["spec"]["template"]["spec"]
    address = api.must("GET", f"{SERVICES}/drv")["spec"]["clusterIP"]
    again = apply(api, SERVICES, {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "drv"},
                                  "spec": {"selector": {"app": "drv"}, "ports": [{"port": 9090}]}})
    assert [one["port"] for one in again["spec"]["ports"]] == [9090]
    assert again["spec"]["clusterIP"] == address


def test_what_another_has_set_is_a_conflict_that_is_named(api):
    all_taints = [{"operator": "Exists"}]
    apply(api, SETS, driver("i:1", [{"name": "A", "value": "1"}], [], all_taints))
    theirs = driver("i:1", [{"name": "A", "value": "2"}], [], all_taints)
    answer = apply(api, SETS, theirs, "other", status=409)
    field = '.spec.template.spec.containers[name="plugin"].env[name="A"].value'
    assert [cause["field"] for cause in answer["details"]["causes"]] == [field]
    made = apply(api, SETS, theirs, "other", force=True)
    assert made["spec"]["template"]["spec"]["containers"][0]["env"][0]["value"] == "2"


def test_fields_that_nobody_knows_are_refused(api):
    body = driver("i:1", [], [], [])
    body["spec"]["template"]["spec"]["containers"][0]["imagee"] = "x"
    answer = api.ask("PATCH", f"{SETS}/drv?fieldManager=helm&fieldValidation=Strict", body,
                     Content_Type=APPLY)
    assert answer.status in (400, 500) and "imagee" in answer.doc["message"], answer
    api.refused(404, "GET", f"{SETS}/drv")
