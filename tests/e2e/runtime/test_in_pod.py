"""A program in a pod uses the API as in any cluster: it finds address, certificate and token by itself, has the
rights of its service account, and none any more when the pod is gone."""

import base64
import json
import os

import pytest
from kubectls import find_kubectl
from procs import until
from runtime_nodes import WAIT_S, RuntimeNode, container, pod

ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"
RBAC = "/apis/rbac.authorization.k8s.io/v1/namespaces/default"
REVIEWS = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
SCRIPT = (f"/k/kubectl auth whoami -o json | tr -d '\\n '; echo; /k/kubectl get configmaps -o name; "
          f"/k/kubectl get secrets -o name 2>&1; cat {ACCOUNT}/token; echo; echo end; sleep 1000")


@pytest.fixture
def new_node(containerd):
    """With the controllers, who make what pods use the API with."""
    def make(procs, root, *options):
        return RuntimeNode(procs, root, containerd, *options, roles="api,control,node")

    return make


def make_reader(api):
    api.must("POST", "/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": "reader"}})
    api.must("POST", f"{RBAC}/roles", {"metadata": {"name": "read"}, "rules": [
        {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list"]}]})
    api.must("POST", f"{RBAC}/rolebindings", {
        "metadata": {"name": "read"}, "subjects": [{"kind": "ServiceAccount", "name": "reader"}],
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "read"}})


def test_a_client_in_a_pod_needs_no_configuration(node):
    program = os.path.realpath(find_kubectl("new"))
    api = node.api()
    make_reader(api)
    node.add(pod("p", container(script=SCRIPT, volumeMounts=[{"name": "k", "mountPath": "/k/kubectl"}],
                                env=[{"name": "HOME", "value": "/tmp"}]),
                 serviceAccountName="reader", hostNetwork=True,
                 volumes=[{"name": "k", "hostPath": {"path": program}}]))
    node.wait_phase("p", "Running")
    until(lambda: node.log("p").endswith("end"), WAIT_S, node.log("p"))
    lines = node.log("p").splitlines()
    assert len(lines) == 5, lines
    who, maps, secrets, token, _ = lines
    user = json.loads(who)["status"]["userInfo"]
    assert user["username"] == "system:serviceaccount:default:reader"
    assert user["extra"]["authentication.kubernetes.io/pod-name"] == ["p"]
    assert user["extra"]["authentication.kubernetes.io/node-name"] == ["n1"]
    assert maps == "configmap/kube-root-ca.crt"
    assert "cannot list resource" in secrets
    claims = json.loads(base64.urlsafe_b64decode(token.split(".")[1] + "=="))
    assert claims["kubernetes.io"]["warnafter"] - claims["iat"] == 3607

    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    assert node.api(token=token).ask("POST", REVIEWS, review).status == 201
    api.must("DELETE", "/api/v1/namespaces/default/pods/p?gracePeriodSeconds=0")
    until(lambda: api.ask("GET", "/api/v1/namespaces/default/pods/p").status == 404, WAIT_S, "gone")
    node.api(token=token).refused(401, "POST", REVIEWS, review)
