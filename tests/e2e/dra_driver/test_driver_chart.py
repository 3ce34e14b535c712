"""A driver with the rights that its own manifest gives it, in the shape in which drivers are shipped:
a service account, a ClusterRole and its binding; its pod's token is all that the driver has."""

import base64
import json
import os
import subprocess

import pytest
from dra_kubelet import DRIVER, NODE, SLICES, device_names
from kubectls import Kubectl, find_kubectl
from procs import until
from servers import PATIENCE_S

NAMESPACE = "/api/v1/namespaces/drivers"
USER = "system:serviceaccount:drivers:sample-kubeletplugin"
MANIFEST = """
apiVersion: v1
kind: Namespace
metadata: {name: drivers}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: sample-kubeletplugin, namespace: drivers}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
# Charts put a namespace here, too; it means nothing.
metadata: {name: sample-kubeletplugin, namespace: drivers}
rules:
- apiGroups: [resource.k8s.io]
  resources: [resourceclaims]
  verbs: [get]
- apiGroups: [""]
  resources: [nodes]
  verbs: [get]
- apiGroups: [resource.k8s.io]
  resources: [resourceslices]
  verbs: [get, list, watch, create, update, patch, delete]
"""
BINDING = """
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: sample-kubeletplugin, namespace: drivers}
subjects:
- {kind: ServiceAccount, name: sample-kubeletplugin, namespace: drivers}
roleRef: {kind: ClusterRole, name: sample-kubeletplugin, apiGroup: rbac.authorization.k8s.io}
"""


@pytest.fixture
def chart(cluster, short_dir):
    """kubectl, as the administrator who installs the driver."""
    return Kubectl(find_kubectl("new"), cluster.kubeconfig, short_dir, is_old=False)


def token_of_pod(api):
    """The token of a pod of the driver on its node, as a projected volume would hold it."""
    pod = api.must("POST", f"{NAMESPACE}/pods", {
        "metadata": {"name": "plugin"},
        "spec": {"serviceAccountName": "sample-kubeletplugin", "nodeName": NODE,
                 "containers": [{"name": "plugin", "image": "i"}]}})
    return api.must("POST", f"{NAMESPACE}/serviceaccounts/sample-kubeletplugin/token", {
        "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest",
        "spec": {"boundObjectRef": {"kind": "Pod", "apiVersion": "v1", "name": "plugin",
                                    "uid": pod["metadata"]["uid"]}}})["status"]["token"]


def kubeconfig_of(cluster, token, folder):
    path = os.path.join(folder, "driver.kubeconfig")
    ca = base64.b64encode(cluster.ca.encode()).decode()
    with open(path, "w", encoding="ascii") as file:
        json.dump({"apiVersion": "v1", "kind": "Config", "current-context": "c",
                   "clusters": [{"name": "c", "cluster": {
                       "server": f"https://127.0.0.1:{cluster.port}",
                       "certificate-authority-data": ca}}],
                   "users": [{"name": "c", "user": {"token": token}}],
                   "contexts": [{"name": "c", "context": {"cluster": "c", "user": "c"}}]}, file)
    return path


CLAIMS = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims"
STATUS_RULES = f"""
- apiGroups: [resource.k8s.io]
  resources: [resourceclaims/status]
  verbs: [update, patch]
- apiGroups: [resource.k8s.io]
  resources: [resourceclaims/driver]
  resourceNames: [{DRIVER}]
  verbs: ["associated-node:update", "associated-node:patch"]
"""


def allocated(api, name, node):
    """A claim with a device of the driver on that node, and one of another driver."""
    made = api.must("POST", CLAIMS, {"metadata": {"name": name}, "spec": {"devices": {"requests": [
        {"name": "r", "exactly": {"deviceClassName": "c", "count": 2}}]}}})
    made["metadata"]["finalizers"] = ["resource.kubernetes.io/delete-protection"]
    made = api.must("PUT", f"{CLAIMS}/{name}", made)
    made["status"] = {"allocation": {
        "devices": {"results": [
            {"request": "r", "driver": DRIVER, "pool": node, "device": "device-0"},
            {"request": "r", "driver": "other.example.com", "pool": node, "device": "d"}]},
        "nodeSelector": {"nodeSelectorTerms": [{"matchFields": [
            {"key": "metadata.name", "operator": "In", "values": [node]}]}]}}}
    return api.must("PUT", f"{CLAIMS}/{name}/status", made)


def about(driver, pool):
    device = "device-0" if driver == DRIVER else "d"
    return {"status": {"devices": [{
        "driver": driver, "pool": pool, "device": device,
        "conditions": [{"type": "Ready", "status": "True", "reason": "Ok", "message": "",
                        "lastTransitionTime": "2024-01-01T00:00:00Z"}]}]}}


def new_slice(name):
    return {"metadata": {"name": name}, "spec": {
        "driver": DRIVER, "nodeName": NODE,
        "pool": {"name": "other", "generation": 1, "resourceSliceCount": 1}}}


def test_a_driver_publishes_with_its_own_account(cluster, api, chart, make_driver, short_dir):
    chart("apply", "-f", "-", stdin=MANIFEST + "---" + BINDING)
    token = token_of_pod(api)
    driver = make_driver("--devices", "2",
                         "--kubeconfig", kubeconfig_of(cluster, token, short_dir))
    driver.proc.wait_line(f"published {NODE}")
    assert device_names(api) == ["device-0", "device-1"]
    inside = cluster.api(token=token)
    assert inside.ask("GET", "/apis/resource.k8s.io/v1").status == 200
    for method, path, body in (
            ("GET", f"{NAMESPACE}/secrets", None),
            ("GET", "/api/v1/pods", None),
            ("GET", "/apis/resource.k8s.io/v1/resourceclaims", None),
            ("DELETE", f"/api/v1/nodes/{NODE}", None),
            ("DELETE", SLICES, None),
            ("POST", "/apis/resource.k8s.io/v1/deviceclasses", {"metadata": {"name": "c"}}),
            ("POST", "/apis/rbac.authorization.k8s.io/v1/clusterroles", {"metadata": {"name": "r"}}),
            ("GET", "/metrics", None)):
        status = inside.refused(403, method, path, body)
        assert f'User "{USER}" cannot' in status["message"], status


def test_without_a_binding_it_may_do_nothing(cluster, api, chart):
    chart("apply", "-f", "-", stdin=MANIFEST)
    inside = cluster.api(token=token_of_pod(api))
    status = inside.refused(403, "POST", SLICES, new_slice("s"))
    assert status["message"] == (
        f'resourceslices.resource.k8s.io is forbidden: User "{USER}" cannot create resource '
        '"resourceslices" in API group "resource.k8s.io" at the cluster scope')
    chart("apply", "-f", "-", stdin=BINDING)
    inside.must("POST", SLICES, new_slice("s"))
    chart("delete", "-f", "-", stdin=BINDING)
    inside.refused(403, "DELETE", f"{SLICES}/s")
    # A binding to a role that is gone says so.
    chart("apply", "-f", "-", stdin=BINDING)
    chart("delete", "clusterrole", "sample-kubeletplugin")
    status = inside.refused(403, "DELETE", f"{SLICES}/s")
    assert status["message"].endswith(
        'RBAC: clusterrole.rbac.authorization.k8s.io "sample-kubeletplugin" not found'), status


def test_the_account_goes_with_its_manifest(cluster, api, chart):
    chart("apply", "-f", "-", stdin=MANIFEST + "---" + BINDING)
    inside = cluster.api(token=token_of_pod(api))
    inside.must("POST", SLICES, new_slice("s"))
    api.must("DELETE", f"{NAMESPACE}/pods/plugin?gracePeriodSeconds=0")
    inside.refused(401, "GET", f"{SLICES}/s")
    chart("delete", "-f", "-", stdin=BINDING + "---" + MANIFEST)
    until(lambda: api.ask("GET", NAMESPACE).status == 404, PATIENCE_S, "the namespace is gone")
    found = subprocess.run([chart.program, "get", "clusterroles,clusterrolebindings", "-o", "name"],
                           env=chart.env, capture_output=True, text=True, check=True).stdout
    assert "sample-kubeletplugin" not in found


def test_it_writes_about_its_own_devices_on_its_own_node(cluster, api, chart):
    chart("apply", "-f", "-", stdin=MANIFEST + STATUS_RULES + "---" + BINDING)
    inside = cluster.api(token=token_of_pod(api))
    allocated(api, "here", NODE)
    allocated(api, "elsewhere", "another-node")

    def write(name, patch):
        return inside.ask("PATCH", f"{CLAIMS}/{name}/status", json.dumps(patch),
                          Content_Type="application/merge-patch+json")

    answer = write("here", about(DRIVER, NODE))
    assert answer.status == 200, answer
    assert answer.doc["status"]["devices"][0]["conditions"][0]["type"] == "Ready"
    for name, patch, field, right in (
            ("elsewhere", about(DRIVER, "another-node"), "status.devices",
             "arbitrary-node:patch resource \"resourceclaims/driver\""),
            ("here", about("other.example.com", NODE), "status.devices",
             "associated-node:patch resource \"resourceclaims/driver\""),
            ("here", {"status": {"reservedFor": [{"resource": "pods", "name": "x", "uid": "u"}]}},
             "status.allocation", "patch resource \"resourceclaims/binding\"")):
        answer = write(name, patch)
        assert answer.status == 422 and answer.doc["reason"] == "Invalid", answer
        causes = answer.doc["details"]["causes"]
        assert {(c["field"], c["reason"]) for c in causes} == {(field, "FieldValueForbidden")}, answer
        assert f'User "{USER}" cannot {right}' in answer.doc["message"], answer
    claim = inside.must("GET", f"{CLAIMS}/here")
    assert [d["driver"] for d in claim["status"]["devices"]] == [DRIVER]
    assert "devices" not in api.must("GET", f"{CLAIMS}/elsewhere")["status"]
