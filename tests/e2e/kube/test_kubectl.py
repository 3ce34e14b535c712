"""kubectl, unmodified, against the embedded API."""

import json
import os
import shutil
import subprocess

import pytest

pytestmark = pytest.mark.skipif(not shutil.which("kubectl"), reason="kubectl is not there")

MANIFEST = """
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: gpu}
spec: {selectors: [{cel: {expression: 'device.driver == "gpu.example.com"'}}]}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: c1}
spec: {devices: {requests: [{name: r0, exactly: {deviceClassName: gpu}}]}}
---
apiVersion: v1
kind: Pod
metadata: {name: p1, labels: {a: b}}
spec:
  containers: [{name: c, image: i, resources: {claims: [{name: x}]}}]
  resourceClaims: [{name: x, resourceClaimName: c1}]
"""


@pytest.fixture
def kubectl(server, short_dir):
    config = os.path.join(short_dir, "config")
    with open(config, "w", encoding="utf-8") as file:
        json.dump({
            "apiVersion": "v1", "kind": "Config", "current-context": "c",
            "clusters": [{"name": "d", "cluster": {"server": f"https://127.0.0.1:{server.port}",
                                                   "certificate-authority": server.ca}}],
            "users": [{"name": "a", "user": {"token": "admintoken"}}],
            "contexts": [{"name": "c", "context": {"cluster": "d", "user": "a"}}],
        }, file)

    def run(*args, stdin=None, status=0):
        result = subprocess.run(["kubectl", *args], input=stdin, capture_output=True, text=True,
                                timeout=60, env={**os.environ, "KUBECONFIG": config,
                                                 "HOME": short_dir})
        assert result.returncode == status, result.stdout + result.stderr
        return result.stdout + result.stderr
    return run


def test_objects_are_created_changed_and_deleted(kubectl):
    assert "pod/p1 created" in kubectl("create", "-f", "-", stdin=MANIFEST)
    kubectl("create", "-f", "-", stdin=MANIFEST, status=1)  # they exist
    kubectl("apply", "-f", "-", stdin=MANIFEST)
    changed = MANIFEST.replace("a: b", "a: c")
    assert "pod/p1 configured" in kubectl("apply", "-f", "-", stdin=changed)
    assert "pod/p1 unchanged" in kubectl("apply", "-f", "-", stdin=changed)
    kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", stdin=changed)
    kubectl("label", "pod", "p1", "x=y")
    kubectl("annotate", "pod", "p1", "x=y")
    kubectl("patch", "pod", "p1", "--type=merge", "-p", '{"metadata":{"labels":{"m":"1"}}}')
    kubectl("patch", "pod", "p1", "--type=json", "-p",
            '[{"op":"add","path":"/metadata/labels/j","value":"1"}]')
    labels = json.loads(kubectl("get", "pod", "p1", "-o", "jsonpath={.metadata.labels}"))
    assert labels == {"a": "c", "x": "y", "m": "1", "j": "1"}
    kubectl("delete", "pod", "p1", "--wait=true")
    kubectl("get", "pod", "p1", status=1)
    kubectl("delete", "-f", "-", "--ignore-not-found", stdin=MANIFEST)


def test_objects_are_shown(kubectl):
    kubectl("create", "-f", "-", stdin=MANIFEST)
    assert kubectl("get", "resourceclaims").splitlines()[1].split()[:2] == ["c1", "pending"]
    assert "NOMINATED NODE" in kubectl("get", "pods", "-o", "wide")
    assert kubectl("get", "po,ns", "-A", "-o", "name").splitlines()[0] == "pod/p1"
    assert "kind: ResourceClaim" in kubectl("get", "resourceclaim", "c1", "-o", "yaml")
    assert "Device Class Name:  gpu" in kubectl("describe", "resourceclaim", "c1")
    assert "Status:" in kubectl("describe", "pod", "p1")
    kubectl("wait", "pod", "p1", "--for=jsonpath={.status.phase}=Pending", "--timeout=10s")


def test_what_there_is_can_be_found(kubectl):
    assert "v1.36.4-davit" in kubectl("version")
    assert "resourceslices" in kubectl("api-resources")
    assert "The devices that are wanted." in kubectl("explain", "resourceclaim.spec.devices")
    assert kubectl("auth", "can-i", "delete", "pods").strip() == "yes"
    assert "admin" in kubectl("auth", "whoami")


def test_unknown_fields_are_refused_by_the_server(kubectl):
    text = kubectl("create", "-f", "-", status=1,
                   stdin=MANIFEST.replace("requests:", "nope: 1, requests:"))
    assert 'unknown field "spec.devices.nope"' in text


def test_a_node_is_cordoned_and_drained(kubectl):
    kubectl("create", "-f", "-", stdin='{"apiVersion":"v1","kind":"Node","metadata":{"name":"n"}}')
    kubectl("cordon", "n")
    assert kubectl("get", "node", "n", "-o", "jsonpath={.spec.unschedulable}") == "true"
    kubectl("uncordon", "n")
