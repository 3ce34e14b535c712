"""Namespaces that hold their pods to a standard: who makes them hears of it."""

import pytest

NAMESPACE = "strict"
PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
LABEL = "pod-security.kubernetes.io/"
SETS = f"/apis/apps/v1/namespaces/{NAMESPACE}/daemonsets"


def namespace(**labels):
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {
        "name": NAMESPACE, "labels": {LABEL + name.replace("_", "-"): value for name, value in labels.items()}}}


def pod(name, **context):
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
            "spec": {"containers": [{"name": "plugin", "image": "i", "securityContext": context}]}}


@pytest.mark.parametrize("label,value,why", [
    ("enforce", "some", "must be one of privileged, baseline, restricted"),
    ("warn_version", "1.30", 'must be "latest" or "v1.x"')])
def test_labels_that_mean_nothing_are_refused(api, label, value, why):
    status, doc = api.ask("POST", "/api/v1/namespaces", namespace(**{label: value}))
    assert status == 422
    cause, = doc["details"]["causes"]
    assert cause["field"] == f"metadata.labels[{LABEL}{label.replace('_', '-')}]" and why in cause["message"]


def test_pods_that_violate_the_standard_are_refused(api):
    api.must("POST", "/api/v1/namespaces", namespace(enforce="baseline", warn="restricted", warn_version="v1.30"))
    status, doc = api.ask("POST", PODS, pod("p", privileged=True))
    assert status == 403 and doc["reason"] == "Forbidden"
    assert doc["message"] == (
        'pods "p" is forbidden: violates PodSecurity "baseline:latest": privileged '
        '(container "plugin" must not set securityContext.privileged=true)')
    connection, answer = api.open("POST", PODS, pod("q", allowPrivilegeEscalation=False, runAsNonRoot=True,
                                                    capabilities={"drop": ["ALL"]}))
    answer.read()
    assert answer.status == 201
    assert answer.headers["Warning"] == (
        '299 - "would violate PodSecurity \\"restricted:v1.30\\": seccompProfile (pod or container \\"plugin\\" must '
        'set securityContext.seccompProfile.type to \\"RuntimeDefault\\" or \\"Localhost\\")"')
    connection.close()


def test_templates_are_taken_with_a_warning(api):
    """It is their pods that are refused: a chart installs, and says in events why nothing runs."""
    api.must("POST", "/api/v1/namespaces", namespace(enforce="baseline", warn="baseline"))
    connection, answer = api.open("POST", SETS, {
        "apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "d"},
        "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": {
            "metadata": {"labels": {"a": "b"}}, "spec": pod("p", privileged=True)["spec"]}}})
    answer.read()
    assert answer.status == 201
    assert "would violate PodSecurity" in answer.headers["Warning"]
    connection.close()
