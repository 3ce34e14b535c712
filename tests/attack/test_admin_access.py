"""Admin access to devices that others use: only where the namespace allows to ask for it."""

import json

from procs import until
from servers import CORE, PATIENCE_S, RESOURCE, merge_patch

LABEL = "resource.kubernetes.io/admin-access"
WHY = (f"admin access to devices requires the `{LABEL}: true` label on the containing namespace")
SPACES = f"{CORE}/namespaces"
APPLY = {"Content_Type": "application/apply-patch+yaml"}


def requests(version):
    plain = {"name": "p", "exactly": {"deviceClassName": "gpu"}}
    wish = {"name": "r", "exactly": {"deviceClassName": "gpu", "adminAccess": True}}
    if version == "v1beta1":
        return [{"name": "p", "deviceClassName": "gpu"},
                {"name": "r", "deviceClassName": "gpu", "adminAccess": True}]
    return [plain, wish]


def bodies(version, name="c"):
    spec = {"devices": {"requests": requests(version)}}
    head = {"apiVersion": f"resource.k8s.io/{version}", "metadata": {"name": name}}
    return (("resourceclaims", "spec", {**head, "kind": "ResourceClaim", "spec": spec}),
            ("resourceclaimtemplates", "spec.spec",
             {**head, "kind": "ResourceClaimTemplate", "spec": {"spec": spec}}))


def set_label(api, space, value):
    answer = merge_patch(api, f"{SPACES}/{space}", {"metadata": {"labels": {LABEL: value}}})
    assert answer.status == 200, answer


def check(doc, field):
    assert doc["reason"] == "Invalid", doc
    cause = doc["details"]["causes"][0]
    assert cause == {"reason": "FieldValueForbidden", "message": f"Forbidden: {WHY}",
                     "field": field}, doc
    assert f"{field}: Forbidden: {WHY}" in doc["message"]


def test_claims_and_templates_need_the_label(api):
    api.must("POST", SPACES, {"metadata": {"name": "a"}})
    for value in (None, "false", "True", ""):
        set_label(api, "a", value)
        for version in ("v1", "v1beta1", "v1beta2"):
            for resource, spec, body in bodies(version):
                path = f"{RESOURCE}/{version}/namespaces/a/{resource}"
                field = f"{spec}.devices.requests[1].adminAccess"
                check(api.refused(422, "POST", path, body), field)
                check(api.refused(422, "POST", path + "?dryRun=All", body), field)
                check(api.refused(422, "PATCH", path + "/c?fieldManager=x", json.dumps(body),
                                  **APPLY), field)
    set_label(api, "a", "true")
    for number, version in enumerate(("v1", "v1beta1", "v1beta2")):
        for resource, _, body in bodies(version, f"c{number}"):
            api.must("POST", f"{RESOURCE}/{version}/namespaces/a/{resource}", body)
    # What is there may be changed without it.
    set_label(api, "a", None)
    for resource in ("resourceclaims", "resourceclaimtemplates"):
        answer = merge_patch(api, f"{RESOURCE}/v1/namespaces/a/{resource}/c0",
                             {"metadata": {"labels": {"a": "b"}}})
        assert answer.status == 200, answer


def test_a_status_does_not_grant_it_without_the_label(api):
    api.must("POST", SPACES, {"metadata": {"name": "a", "labels": {LABEL: "true"}}})
    claims = f"{RESOURCE}/v1/namespaces/a/resourceclaims"
    api.must("POST", claims, bodies("v1")[0][2])
    result = {"driver": "gpu.example.com", "pool": "p", "device": "d"}
    patch = {"status": {"allocation": {"devices": {"results": [
        {**result, "request": "p"}, {**result, "device": "e", "request": "r",
                                     "adminAccess": True}]}}}}
    set_label(api, "a", None)
    answer = merge_patch(api, f"{claims}/c/status", patch)
    assert answer.status == 422, answer
    check(answer.doc, "status.allocation.devices.results[1].adminAccess")
    set_label(api, "a", "true")
    assert merge_patch(api, f"{claims}/c/status", patch).status == 200
    set_label(api, "a", None)
    answer = merge_patch(api, f"{claims}/c/status", {"metadata": {"labels": {"a": "b"}}})
    assert answer.status == 200, answer


def test_claims_from_templates_need_it_too(api):
    """A template from a time when it was allowed is of no use later."""
    api.must("POST", SPACES, {"metadata": {"name": "a", "labels": {LABEL: "true"}}})
    api.must("POST", f"{RESOURCE}/v1/namespaces/a/resourceclaimtemplates", bodies("v1")[1][2])
    set_label(api, "a", None)
    api.must("POST", f"{SPACES}/a/pods", {"metadata": {"name": "p"}, "spec": {
        "containers": [{"name": "c", "image": "i"}],
        "resourceClaims": [{"name": "r", "resourceClaimTemplateName": "c"}]}})

    def events():
        items = api.must("GET", f"{SPACES}/a/events")["items"]
        return [event["message"] for event in items if event["involvedObject"]["name"] == "p"]

    until(lambda: any(WHY in text for text in events()), PATIENCE_S, "an event that says why")
    assert api.must("GET", f"{RESOURCE}/v1/namespaces/a/resourceclaims")["items"] == []
    set_label(api, "a", "true")
    until(lambda: api.must("GET", f"{RESOURCE}/v1/namespaces/a/resourceclaims")["items"],
          PATIENCE_S, "the claim, once it is allowed")
