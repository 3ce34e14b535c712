"""What helm 4 asks of an API, call by call: discovery, server-side apply with strict fields, releases as
Secrets, upgrades that leave something out, and an end of which nothing is left."""

import base64
import gzip
import json

from kubepb import MEDIA_TYPE, TYPES, make, unwrap, wrap
from procs import until
from servers import CORE, PATIENCE_S

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


# ---- releases, as the typed client of helm keeps them ----


def send_secret(api, method, path, version, status, packed):
    message = make("Secret", metadata={"name": f"sh.helm.release.v1.drv.v{version}", "labels": {
        "owner": "helm", "name": "drv", "status": status, "version": str(version)}},
        data={"release": packed}, type="helm.sh/release.v1")
    answer = api.ask(method, path, wrap("v1", "Secret", message), Content_Type=MEDIA_TYPE,
                     Accept=f"{MEDIA_TYPE},application/json")
    assert answer.status in (200, 201), answer


def test_releases_come_and_go_in_protobuf(api):
    packed = base64.b64encode(gzip.compress(bytes(range(256)) * 2000) + b"x" * 700_000)
    send_secret(api, "POST", SECRETS, 1, "pending-install", packed)
    send_secret(api, "PUT", f"{SECRETS}/sh.helm.release.v1.drv.v1", 1, "deployed", packed)
    answer = api.ask("GET", f"{SECRETS}?labelSelector=owner%3Dhelm%2Cstatus%3Ddeployed",
                     Accept=f"{MEDIA_TYPE},application/json")
    version, kind, raw = unwrap(answer.body)
    assert (version, kind) == ("v1", "SecretList")
    (found,) = TYPES["SecretList"].FromString(raw).items
    assert found.type == "helm.sh/release.v1"
    assert found.data["release"] == packed
    api.must("DELETE", f"{SECRETS}/sh.helm.release.v1.drv.v1")
    assert not api.must("GET", f"{SECRETS}?labelSelector=owner%3Dhelm")["items"]


# ---- a chart with all kinds, from its installation to its end ----

JOBS = "/apis/batch/v1/namespaces/default/jobs"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
ADMISSION = "/apis/admissionregistration.k8s.io/v1"
TEMPLATE = {"metadata": {"labels": {"app": "drv"}},
            "spec": {"containers": [{"name": "main", "image": "i:1"}]}}


def chart():
    """(path, object) in the order in which helm installs kinds."""
    selector = {"matchLabels": {"app": "drv"}}
    rules = [{"apiGroups": [""], "resources": ["nodes"], "verbs": ["get"]}]
    account = [{"kind": "ServiceAccount", "name": "drv", "namespace": "default"}]
    ref = {"apiGroup": "rbac.authorization.k8s.io", "name": "drv"}
    policy = {"matchConstraints": {"resourceRules": [{
        "apiGroups": ["resource.k8s.io"], "apiVersions": ["v1"], "operations": ["CREATE"],
        "resources": ["resourceslices"]}]}, "validations": [{"expression": "true"}]}
    apps = "/apis/apps/v1/namespaces/default"
    batch = {"template": {"spec": {**TEMPLATE["spec"], "restartPolicy": "Never"}}}
    kinds = [
        ("/apis/scheduling.k8s.io/v1/priorityclasses", "PriorityClass", {"value": 5}),
        (f"{CORE}/namespaces/default/resourcequotas", "ResourceQuota",
         {"spec": {"hard": {"pods": "500"}}}),
        (f"{CORE}/namespaces/default/serviceaccounts", "ServiceAccount", {}),
        (SECRETS, "Secret", {"stringData": {"a": "b"}}),
        (f"{CORE}/namespaces/default/configmaps", "ConfigMap", {"data": {"a": "b"}}),
        (f"{RBAC}/clusterroles", "ClusterRole", {"rules": rules}),
        (f"{RBAC}/clusterrolebindings", "ClusterRoleBinding",
         {"roleRef": {**ref, "kind": "ClusterRole"}, "subjects": account}),
        (f"{RBAC}/namespaces/default/roles", "Role", {"rules": rules}),
        (f"{RBAC}/namespaces/default/rolebindings", "RoleBinding",
         {"roleRef": {**ref, "kind": "Role"}, "subjects": account}),
        (SERVICES, "Service", {"spec": {"selector": {"app": "drv"}, "ports": [{"port": 80}]}}),
        (SETS, "DaemonSet", {"spec": {"selector": selector, "template": TEMPLATE}}),
        (f"{apps}/deployments", "Deployment",
         {"spec": {"selector": selector, "template": TEMPLATE}}),
        (JOBS, "Job", {"spec": batch}),
        ("/apis/resource.k8s.io/v1/deviceclasses", "DeviceClass",
         {"spec": {"selectors": [{"cel": {"expression": "device.driver == 'd.example'"}}]}}),
        (f"{ADMISSION}/validatingadmissionpolicies", "ValidatingAdmissionPolicy", {"spec": policy}),
    ]
    for path, kind, rest in kinds:
        version = path.split("/namespaces")[0].removeprefix("/apis/").removeprefix("/api/")
        version = "/".join(version.split("/")[:1 if path.startswith(CORE) else 2])
        yield path, {"apiVersion": version, "kind": kind, "metadata": {
            "name": "drv", "labels": LABELS, "annotations": RELEASE}, **rest}


def test_a_chart_is_installed_again_and_removed(api):
    for path, body in chart():
        api.refused(404, "GET", f"{path}/drv")  # helm asks whose it is
        assert apply(api, path, body)["kind"] == body["kind"]
    before = {}
    # The server itself writes two statuses, soon after the objects came.
    policy = f"{ADMISSION}/validatingadmissionpolicies/drv"
    quota = f"{CORE}/namespaces/default/resourcequotas/drv"
    until(lambda: "observedGeneration" in api.must("GET", policy).get("status", {}), PATIENCE_S,
          "the policy is compiled")
    until(lambda: "used" in api.must("GET", quota).get("status", {}), PATIENCE_S,
          "what the quota is for is counted")
    for path, body in chart():
        found = api.must("GET", f"{path}/drv")
        assert found["metadata"]["labels"]["app.kubernetes.io/managed-by"] == "Helm"
        before[path] = found["metadata"]["resourceVersion"]
    for path, body in chart():  # an upgrade that changes nothing
        again = apply(api, path, body)
        assert again["metadata"]["resourceVersion"] == before[path], again
    for path, _ in reversed(list(chart())):
        api.must("DELETE", f"{path}/drv", {"propagationPolicy": "Background"})
    for path, _ in chart():
        api.refused(404, "GET", f"{path}/drv")


def test_a_roll_back_is_what_was_there_before(api):
    first = driver("i:1", [{"name": "A", "value": "1"}], [{"containerPort": 80}],
                   [{"key": "gpu", "operator": "Exists"}])
    before = apply(api, SETS, first)["spec"]
    apply(api, SETS, driver("i:2", [{"name": "B", "value": "2"}], [], []))
    assert apply(api, SETS, first, force=True)["spec"] == before


def test_an_old_release_is_upgraded_by_a_three_way_patch(api):
    """As helm 3 does: what was in the old manifest and is not in the new one is named as deleted."""
    api.must("POST", SETS, driver("i:1", [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}],
                                  [{"containerPort": 80}], []))
    patch = {"spec": {"template": {"spec": {
        "$setElementOrder/containers": [{"name": "plugin"}],
        "containers": [{"name": "plugin", "image": "i:2",
                        "$setElementOrder/env": [{"name": "B"}],
                        "env": [{"name": "A", "$patch": "delete"}, {"name": "B", "value": "3"}],
                        "ports": [{"containerPort": 80, "$patch": "delete"}]}]}}}}
    answer = api.ask("PATCH", f"{SETS}/drv", patch,
                     Content_Type="application/strategic-merge-patch+json")
    assert answer.status == 200, answer
    (container,) = answer.doc["spec"]["template"]["spec"]["containers"]
    assert (container["image"], container["env"]) == ("i:2", [{"name": "B", "value": "3"}])
    assert "ports" not in container


def test_what_helm_takes_over_from_an_update_is_a_conflict_until_forced(api):
    api.must("POST", SETS + "?fieldManager=kubectl-create", driver("i:1", [], [], []))
    answer = apply(api, SETS, driver("i:2", [], [], []), status=409)
    (cause,) = answer["details"]["causes"]
    assert cause["field"] == '.spec.template.spec.containers[name="plugin"].image'
    assert cause["message"].startswith('conflict with "kubectl-create" using apps/v1')
    made = apply(api, SETS, driver("i:2", [], [], []), force=True)
    assert made["spec"]["template"]["spec"]["containers"][0]["image"] == "i:2"


def test_a_job_of_a_release_cannot_get_another_template(api):
    body = dict(chart())[JOBS]
    made = apply(api, JOBS, body)
    assert made["spec"]["template"]["metadata"]["labels"]["job-name"] == "drv"
    body["spec"]["template"]["spec"]["containers"][0]["image"] = "i:2"
    answer = apply(api, JOBS, body, status=422)
    assert "spec.template" in answer["message"] and "field is immutable" in answer["message"]
    message = make("Job", metadata={"name": "typed"}, spec={"completions": 2, "template": {
        "spec": {"containers": [{"name": "c", "image": "i"}], "restartPolicy": "Never"}}})
    answer = api.ask("POST", JOBS, wrap("batch/v1", "Job", message), Content_Type=MEDIA_TYPE,
                     Accept=f"{MEDIA_TYPE},application/json")
    assert answer.status == 201, answer
    assert api.must("GET", f"{JOBS}/typed")["spec"]["completions"] == 2
