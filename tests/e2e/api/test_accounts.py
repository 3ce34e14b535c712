"""Service accounts: what namespaces and pods get to use the API with, and that it works."""

import pytest

from procs import until
from servers import CORE, PATIENCE_S, PODS, ApiNode

SECRETS_PATH = "/var/run/secrets/kubernetes.io/serviceaccount"
REVIEWS = "/apis/authentication.k8s.io/v1/selfsubjectreviews"


class ApiWithControllers(ApiNode):
    def __init__(self, procs, root, *options):
        super().__init__(procs, root, "--roles", "api,control", *options)


@pytest.fixture
def new_node():
    return ApiWithControllers


def api_access(made):
    """The volume that the API adds."""
    return [volume for volume in made["spec"].get("volumes", [])
            if volume["name"].startswith("kube-api-access-")]


def pod(name, **spec):
    return {"metadata": {"name": name},
            "spec": {"containers": [{"name": "c", "image": "i"}], **spec}}


def token_for(made, account="default", namespace="default"):
    path = f"{CORE}/namespaces/{namespace}/serviceaccounts/{account}/token"
    return path, {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest",
                  "spec": {"expirationSeconds": 3607, "boundObjectRef": {
                      "kind": "Pod", "apiVersion": "v1", "name": made["metadata"]["name"],
                      "uid": made["metadata"]["uid"]}}}


def wait_for(api, path, status=200):
    until(lambda: api.ask("GET", path).status == status, PATIENCE_S, path)


def test_every_namespace_has_what_its_pods_need(node, api):
    api.must("POST", f"{CORE}/namespaces", {"metadata": {"name": "team"}})
    for namespace in ("default", "kube-system", "team"):
        base = f"{CORE}/namespaces/{namespace}"
        wait_for(api, f"{base}/serviceaccounts/default")
        wait_for(api, f"{base}/configmaps/kube-root-ca.crt")
        found = api.must("GET", f"{base}/configmaps/kube-root-ca.crt")
        assert found["data"] == {"ca.crt": node.ca}
    api.must("DELETE", f"{CORE}/namespaces/team")
    wait_for(api, f"{CORE}/namespaces/team", 404)


def test_a_pod_gets_a_volume_with_a_token(api):
    made = api.must("POST", PODS, pod("p"))
    (volume,) = api_access(made)
    assert made["spec"]["serviceAccountName"] == "default"
    assert made["spec"]["containers"][0]["volumeMounts"] == [
        {"name": volume["name"], "readOnly": True, "mountPath": SECRETS_PATH}]
    api.refused(403, "POST", PODS, pod("q", serviceAccountName="nobody"))
    assert not api_access(api.must("POST", PODS, pod("r", automountServiceAccountToken=False)))


def test_the_token_is_the_pods_until_it_is_gone(node, api):
    wait_for(api, f"{CORE}/namespaces/default/serviceaccounts/default")
    made = api.must("POST", PODS, pod("p", nodeName="elsewhere"))
    token = api.must("POST", *token_for(made))["status"]["token"]
    inside = node.api(token=token)
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    user = inside.must("POST", REVIEWS, review)["status"]["userInfo"]
    assert user["username"] == "system:serviceaccount:default:default"
    assert user["extra"]["authentication.kubernetes.io/pod-name"] == ["p"]
    assert inside.ask("GET", "/version").status == 200
    inside.refused(403, "GET", PODS)
    api.must("DELETE", f"{PODS}/p?gracePeriodSeconds=0")
    inside.refused(401, "POST", REVIEWS, review)
