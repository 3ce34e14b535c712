"""Admission webhooks: a real server over HTTPS that changes and refuses what clients write, and all that can go wrong
with one."""

import json
import os
import threading

import pytest
from kubernetes import client, config
from kubernetes.client.exceptions import ApiException
from webhook_server import Webhook, configuration, patch, webhook

from procs import until
from servers import CORE, MAPS, PATIENCE_S, PODS, config_map, merge_patch

ADMISSION = "/apis/admissionregistration.k8s.io/v1"
VALIDATING = f"{ADMISSION}/validatingwebhookconfigurations"
MUTATING = f"{ADMISSION}/mutatingwebhookconfigurations"
SLICES = "/apis/discovery.k8s.io/v1/namespaces/hooks/endpointslices"

# As the charts of DRA drivers have it: opaque configuration is checked before it is taken.
CLAIMS = """
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {{name: driver-webhook}}
webhooks:
- name: validate-resource-claim-parameters.gpu.example.com
  admissionReviewVersions: [v1]
  sideEffects: None
  failurePolicy: Fail
  clientConfig:
    caBundle: {bundle}
    service: {{name: hook, namespace: hooks, path: /validate-resource-claim-parameters, port: 443}}
  rules:
  - apiGroups: [resource.k8s.io]
    apiVersions: [v1, v1beta1, v1beta2]
    operations: [CREATE, UPDATE]
    resources: [resourceclaims, resourceclaimtemplates]
    scope: Namespaced
"""
CLAIM = """
apiVersion: resource.k8s.io/v1
kind: {kind}
metadata: {{name: {name}, namespace: default}}
spec: {{{spec}}}
"""
DEVICES = """devices: {{requests: [{{name: gpu, exactly: {{deviceClassName: gpu.example.com}}}}], config: [{{
  requests: [gpu], opaque: {{driver: gpu.example.com, parameters: {{sharing: {strategy}}}}}}}]}}"""


@pytest.fixture
def hook(tmp_path):
    made = Webhook(str(tmp_path))
    made.rules["/allow"] = lambda request: {"allowed": True}
    made.rules["/deny"] = lambda request: {"allowed": False, "status": {"code": 403, "message": "no"}}
    made.rules["/hang"] = made.hang
    yield made
    made.close()


def make_service(api, hook, ready=True):
    """The webhook behind a service, as its slice tells; nothing forwards to its address."""
    api.must("POST", f"{CORE}/namespaces", {"metadata": {"name": "hooks"}})
    api.must("POST", f"{CORE}/namespaces/hooks/services", {
        "metadata": {"name": "hook"}, "spec": {"ports": [
            {"name": "other", "port": 80}, {"name": "https", "port": 443, "targetPort": "webhook"}]}})
    return api.must("POST", SLICES, {
        "metadata": {"name": "hook-1", "labels": {"kubernetes.io/service-name": "hook"}},
        "addressType": "IPv4", "ports": [{"name": "other", "port": 1},
                                         {"name": "https", "port": hook.port}],
        "endpoints": [{"addresses": ["127.0.0.1"], "conditions": {"ready": ready}}]})


def test_a_drivers_webhook_refuses_bad_opaque_configuration(kubectl, api, hook):
    """Through kubectl, in the version that it writes and in an older one."""
    def check(request):
        spec = request["object"]["spec"]
        configs = spec.get("spec", spec)["devices"].get("config", [])
        bad = [one["opaque"]["parameters"] for one in configs
               if one["opaque"]["parameters"].get("sharing") not in ("TimeSlicing", "Exclusive")]
        if not bad:
            return {"allowed": True}
        return {"allowed": False, "status": {
            "code": 422, "reason": "Invalid", "message": f"1 configs failed to validate: {bad[0]}"}}

    hook.rules["/validate-resource-claim-parameters"] = check
    make_service(api, hook)
    kubectl("apply", "-f", "-", stdin=CLAIMS.format(bundle=hook.bundle))
    assert "driver-webhook" in kubectl("get", "validatingwebhookconfigurations")

    def text(kind, name, strategy):
        spec = DEVICES.format(strategy=strategy)
        return CLAIM.format(kind=kind, name=name, spec=f"spec: {{{spec}}}"
                            if kind == "ResourceClaimTemplate" else spec)

    for kind in ("ResourceClaim", "ResourceClaimTemplate"):
        kubectl("create", "-f", "-", stdin=text(kind, "good", "TimeSlicing"))
        refusal = kubectl("create", "-f", "-", stdin=text(kind, "bad", "Wishful"), status=1)
        # An old kubectl has no words of the server for what is invalid.
        assert "The request is invalid" in refusal or (
            'admission webhook "validate-resource-claim-parameters.gpu.example.com" denied the '
            "request: 1 configs failed to validate: {'sharing': 'Wishful'}") in refusal
    asked = hook.requests("/validate-resource-claim-parameters")
    assert [one["operation"] for one in asked] == ["CREATE"] * 4
    assert asked[0]["kind"] == {"group": "resource.k8s.io", "version": "v1", "kind": "ResourceClaim"}
    assert asked[0]["namespace"] == "default" and asked[0]["oldObject"] is None
    assert asked[0]["object"]["apiVersion"] == "resource.k8s.io/v1" and asked[0]["dryRun"] is False
    assert asked[0]["userInfo"]["username"] and asked[0]["options"]["kind"] == "CreateOptions"
    target, review = hook.seen[0]
    assert target.endswith("?timeout=10s")
    assert (review["kind"], review["apiVersion"]) == ("AdmissionReview", "admission.k8s.io/v1")
    kubectl("delete", "validatingwebhookconfiguration", "driver-webhook")
    kubectl("create", "-f", "-", stdin=text("ResourceClaim", "bad", "Wishful"))


def test_a_webhook_changes_a_pod_and_sees_what_it_has(node, api, hook):
    """Through the Python client; a container that is added gets the defaults, too."""
    hook.rules["/mutate"] = lambda request: patch(
        {"op": "add", "path": "/metadata/labels", "value": {"injected": "yes"}},
        {"op": "add", "path": "/spec/containers/-", "value": {"name": "sidecar", "image": "s:1"}})
    api.must("POST", MUTATING, configuration("m", webhook("m", hook.url("/mutate"), ("pods",),
                                                          operations=("CREATE",))))
    core = client.CoreV1Api(config.new_client_from_config(config_file=node.kubeconfig))
    made = core.create_namespaced_pod("default", client.V1Pod(
        metadata=client.V1ObjectMeta(name="p"),
        spec=client.V1PodSpec(containers=[client.V1Container(name="c", image="i")])))
    assert made.metadata.labels == {"injected": "yes"}
    assert [one.name for one in made.spec.containers] == ["c", "sidecar"]
    assert made.spec.containers[1].image_pull_policy == "IfNotPresent"
    assert core.read_namespaced_pod("p", "default").metadata.labels == {"injected": "yes"}
    seen = hook.requests("/mutate")[0]["object"]
    assert seen["spec"]["containers"][0]["terminationMessagePath"] == "/dev/termination-log"
    assert "status" in seen and seen["spec"]["restartPolicy"] == "Always"
    # What makes it another object stays as it is, and what is no pod any more is not written.
    for operation in ({"op": "replace", "path": "/metadata/name", "value": "q"},
                      {"op": "remove", "path": "/spec/nothing"},
                      {"op": "add", "path": "/spec", "value": 5}):
        hook.rules["/mutate"] = lambda request, operation=operation: patch(operation)
        with pytest.raises(ApiException) as caught:
            core.create_namespaced_pod("default", client.V1Pod(
                metadata=client.V1ObjectMeta(name="r"),
                spec=client.V1PodSpec(containers=[client.V1Container(name="c", image="i")])))
        assert caught.value.status == 500 and "Internal error occurred" in caught.value.body
    hook.rules["/mutate"] = lambda request: patch(
        {"op": "replace", "path": "/spec/containers/0/name", "value": "Not A Name"})
    api.refused(422, "POST", PODS, {"metadata": {"name": "r"}, "spec": {
        "containers": [{"name": "c", "image": "i"}]}})
    assert [one["metadata"]["name"] for one in api.must("GET", PODS)["items"]] == ["p"]


def test_webhooks_change_one_after_the_other_and_are_called_again(api, hook):
    def note(name):
        """Writes what it sees into what it leaves, once."""
        def rule(request):
            data = request["object"].get("data") or {}
            seen = "".join(sorted(data))
            return patch({"op": "add", "path": "/data", "value": data | {name: seen}}) \
                if name not in data else {"allowed": True}
        return rule

    for name in "abc":
        hook.rules[f"/{name}"] = note(name)
    api.must("POST", MUTATING, configuration(
        "2", webhook("c", hook.url("/c"), reinvocationPolicy="IfNeeded")))
    api.must("POST", MUTATING, configuration(
        "1", webhook("b", hook.url("/b"), reinvocationPolicy="IfNeeded"),
        webhook("a", hook.url("/a"))))
    made = api.must("POST", MAPS, {"metadata": {"name": "m"}})
    assert made["data"] == {"b": "", "a": "b", "c": "ab"}
    # The others have changed the object since b was called, nobody since c was.
    assert [target.split("?")[0] for target, _ in hook.seen] == ["/b", "/a", "/c", "/b"]
    hook.seen.clear()
    answer = merge_patch(api, f"{MAPS}/m", {"data": {"x": "y"}})
    assert answer.status == 200 and [target.split("?")[0] for target, _ in hook.seen] == [
        "/b", "/a", "/c"]
    request = hook.requests("/a")[0]
    assert request["operation"] == "UPDATE" and request["object"]["data"]["x"] == "y"
    assert "x" not in request["oldObject"]["data"]


def test_what_a_webhook_adds_is_not_the_clients(api, hook):
    """Neither of who creates an object, nor of who applies one: applying it again is no conflict."""
    hook.rules["/mutate"] = lambda request: patch(
        {"op": "add", "path": "/metadata/labels", "value": {"injected": "yes"}})
    api.must("POST", MUTATING, configuration("m", webhook("m", hook.url("/mutate"))))
    made = api.must("POST", f"{MAPS}?fieldManager=t", {"metadata": {"name": "made"}, "data": {"x": "y"}})
    assert made["metadata"]["labels"] == {"injected": "yes"}
    assert "injected" not in json.dumps(made["metadata"]["managedFields"])
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "applied"}, "data": {"x": "y"}}
    for _ in range(2):
        applied = api.must("PATCH", f"{MAPS}/applied?fieldManager=t", body,
                           Content_Type="application/apply-patch+yaml")
        assert applied["metadata"]["labels"] == {"injected": "yes"}
        assert "injected" not in json.dumps(applied["metadata"]["managedFields"])


WIDGETS = "/apis/example.com/v1/namespaces/default/widgets"
WIDGET = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
          "metadata": {"name": "widgets.example.com"},
          "spec": {"group": "example.com", "scope": "Namespaced",
                   "names": {"plural": "widgets", "kind": "Widget"},
                   "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {
                       "type": "object", "properties": {"spec": {"type": "object", "properties": {
                           "size": {"type": "integer", "maximum": 9}, "mode": {"type": "string"},
                           "colour": {"type": "string", "default": "grey"}}}}}}}]}}


def test_objects_of_kinds_that_definitions_make_are_reviewed(api, hook):
    """What a webhook makes of one is held against its schema: fields, defaults and limits."""
    api.must("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", WIDGET)
    until(lambda: api.ask("GET", WIDGETS).status == 200, PATIENCE_S, "the kind is served")
    rule = {"apiGroups": ["example.com"], "apiVersions": ["v1"], "resources": ["widgets"],
            "operations": ["CREATE", "UPDATE"]}
    hook.rules["/mutate"] = lambda request: patch(
        {"op": "add", "path": "/spec", "value": {"size": request["object"]["spec"]["size"] + 1,
                                                 "unknown": "x"}})
    hook.rules["/validate"] = lambda request: {
        "allowed": request["object"]["spec"].get("colour") == "grey" and "unknown" not in request["object"]["spec"]}
    api.must("POST", MUTATING, configuration("m", webhook("m", hook.url("/mutate"), rules=[rule])))
    api.must("POST", VALIDATING, configuration("v", webhook("v", hook.url("/validate"), rules=[rule])))
    widget = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": {"size": 1}}
    assert api.must("POST", WIDGETS, widget)["spec"] == {"size": 2, "colour": "grey"}
    changed = api.must("PATCH", f"{WIDGETS}/w", {"spec": {"size": 5, "colour": None}},
                       Content_Type="application/merge-patch+json")
    assert changed["spec"] == {"size": 6, "colour": "grey"}
    status = api.refused(422, "POST", WIDGETS, widget | {"metadata": {"name": "large"}, "spec": {"size": 9}})
    assert "spec.size" in status["message"] and "less than or equal to 9" in status["message"]
    (request, *_) = hook.requests("/mutate")
    assert request["resource"] == {"group": "example.com", "version": "v1", "resource": "widgets"}
    assert request["object"]["kind"] == "Widget" and request["object"]["spec"] == {"size": 1, "colour": "grey"}


def test_all_ways_to_write_are_reviewed(api, hook):
    api.must("POST", MAPS, {"metadata": {"name": "m", "labels": {"a": "b"}}})
    api.must("POST", VALIDATING, configuration(
        "v", webhook("v", hook.url("/deny"), ("configmaps", "pods/exec", "pods/binding"))))
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m"}, "data": {"x": "y"}}
    message = 'admission webhook "v.example.com" denied the request: no'
    assert api.refused(403, "POST", MAPS, config_map("n"))["message"] == message
    api.refused(403, "PUT", f"{MAPS}/m", body)
    assert merge_patch(api, f"{MAPS}/m", {"data": {"x": "z"}}).status == 403
    api.refused(403, "PATCH", f"{MAPS}/m?fieldManager=t&force=true", body,
                Content_Type="application/apply-patch+yaml")
    api.refused(403, "DELETE", f"{MAPS}/m")
    api.refused(403, "DELETE", f"{MAPS}?labelSelector=a%3Db")
    api.refused(403, "POST", f"{MAPS}?dryRun=All", config_map("n"))
    seen = hook.requests("/deny")
    assert [one["operation"] for one in seen] == [
        "CREATE", "UPDATE", "UPDATE", "UPDATE", "DELETE", "DELETE", "CREATE"]
    assert seen[4]["object"] is None and seen[4]["oldObject"]["metadata"]["name"] == "m"
    assert seen[6]["dryRun"] is True
    pod = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    api.must("POST", PODS, pod)
    api.refused(403, "POST", f"{PODS}/p/binding", {"metadata": {"name": "p"}, "target": {"name": "n"}})
    api.refused(403, "POST", f"{PODS}/p/exec?command=ls&stdout=true")
    binding, connect = hook.requests("/deny")[-2:]
    assert binding["subResource"] == "binding" and binding["object"]["target"]["name"] == "n"
    assert connect["operation"] == "CONNECT" and connect["object"]["command"] == ["ls"]
    assert api.must("GET", f"{MAPS}/m").get("data") is None


def test_a_webhook_is_never_asked_about_webhooks(api, hook):
    """So that one that refuses everything can be removed."""
    everything = webhook("v", hook.url("/deny"), ("*/*",), groups=("*",))
    api.must("POST", VALIDATING, configuration("v", everything))
    api.must("POST", MUTATING, configuration("m", everything))
    api.refused(403, "POST", MAPS, config_map("m"))
    api.must("DELETE", f"{MUTATING}/m")
    api.must("DELETE", f"{VALIDATING}/v")
    api.must("POST", MAPS, config_map("m"))
    assert {one["resource"]["resource"] for one in hook.requests("/deny")} == {"configmaps"}


def test_conditions_and_selectors_are_looked_at_first(api, hook):
    api.must("POST", VALIDATING, configuration("v", webhook(
        "v", hook.url("/deny"), objectSelector={"matchLabels": {"judged": "yes"}},
        matchConditions=[{"name": "not-free", "expression": "object.metadata.name != 'free'"}])))
    judged = {"labels": {"judged": "yes"}}
    api.must("POST", MAPS, {"metadata": {"name": "other"}})
    api.must("POST", MAPS, {"metadata": {"name": "free"} | judged})
    api.refused(403, "POST", MAPS, {"metadata": {"name": "bad"} | judged})
    made = api.must("GET", f"{VALIDATING}/v")
    made["webhooks"][0]["matchConditions"][0]["expression"] = "object.data.x == 'y'"
    made = api.must("PUT", f"{VALIDATING}/v", made)
    status = api.refused(403, "POST", MAPS, {"metadata": {"name": "m"} | judged})
    assert "no such key: data" in status["message"] and len(hook.requests("/deny")) == 1
    made["webhooks"][0]["failurePolicy"] = "Ignore"
    api.must("PUT", f"{VALIDATING}/v", made)
    api.must("POST", MAPS, {"metadata": {"name": "m"} | judged})


def test_what_cannot_be_asked_refuses_or_is_passed_over(api, hook, tmp_path):
    """Each with failurePolicy Fail, and with Ignore."""
    other = Webhook(str(tmp_path / "other") if os.mkdir(tmp_path / "other") is None else "",
                    names="DNS:elsewhere.example.com")
    good = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": {"allowed": True}}
    hook.rules |= {
        "/slow": hook.hang,
        "/error": lambda request: (500, b"out of order"),
        "/lost": lambda request: (404, b""),
        "/elsewhere": lambda request: (307, b""),
        "/garbage": lambda request: b"\x00\xff{{{",
        "/list": lambda request: b"[]",
        "/uid": lambda request: {"uid": "another", "allowed": True},
        "/bare": lambda request: json.dumps(good["response"]).encode(),
        "/patch": lambda request: patch({"op": "add", "path": "/data", "value": {}}),
        "/huge": lambda request: {"allowed": True, "warnings": ["x" * (7 << 20)]},
    }
    wrong_ca = hook.url("/allow") | {"caBundle": other.bundle}
    cases = [
        (hook.url("/slow"), "before the deadline"),
        (hook.url("/error"), 'an error on the server ("out of order") has prevented'),
        (hook.url("/lost"), "the server could not find the requested resource"),
        (hook.url("/elsewhere"), "the server responded with the status code 307"),
        (hook.url("/garbage"), "received invalid webhook response: "),
        (hook.url("/list"), "received invalid webhook response: "),
        (hook.url("/uid"), "received invalid webhook response: expected response.uid="),
        (hook.url("/bare"), "received invalid webhook response: webhook response was absent"),
        (hook.url("/patch"), "validating webhook may not return response.patch"),
        (hook.url("/huge"), "larger than"),
        (wrong_ca, "certificate"),
        (other.url("/allow"), "certificate"),
        (hook.url("/allow") | {"caBundle": ""}, "certificate"),
        ({"url": "https://127.0.0.1:1/", "caBundle": hook.bundle}, "Connection refused"),
        ({"service": {"name": "none", "namespace": "hooks"}}, 'service "none" not found'),
    ]
    for number, (place, words) in enumerate(cases):
        for policy in ("Fail", "Ignore"):
            name = f"{number}-{policy.lower()}"
            api.must("POST", VALIDATING, configuration(name, webhook(
                "v", place, failurePolicy=policy, timeoutSeconds=1)))
            if policy == "Ignore":
                api.must("POST", MAPS, config_map(name))
            else:
                status = api.refused(500, "POST", MAPS, config_map(name))
                assert status["reason"] == "InternalError" and status["message"].startswith(
                    'Internal error occurred: failed calling webhook "v.example.com": '), status
                assert words in status["message"], status
            api.must("DELETE", f"{VALIDATING}/{name}")
    other.close()


def test_a_service_is_its_ready_endpoints(api, hook):
    slice_ = make_service(api, hook, ready=False)
    api.must("POST", VALIDATING, configuration("v", webhook("v", hook.service("/deny"))))
    status = api.refused(500, "POST", MAPS, config_map("m"))
    assert 'no endpoints available for service "hook"' in status["message"]
    slice_["endpoints"][0]["conditions"]["ready"] = True
    api.must("PUT", f"{SLICES}/hook-1", slice_)
    api.refused(403, "POST", MAPS, config_map("m"))
    made = api.must("GET", f"{VALIDATING}/v")
    made["webhooks"][0]["clientConfig"]["service"]["port"] = 8443
    api.must("PUT", f"{VALIDATING}/v", made)
    status = api.refused(500, "POST", MAPS, config_map("m"))
    assert 'no service port 8443 found for service "hook"' in status["message"]


def test_warnings_and_dry_runs(api, hook):
    hook.rules["/warn"] = lambda request: {"allowed": True, "warnings": ["mind the gap"]}
    api.must("POST", VALIDATING, configuration("v", webhook("v", hook.url("/warn"))))
    answer = api.ask("POST", f"{MAPS}?dryRun=All", config_map("m"))
    assert answer.status == 201 and answer.fields["warning"] == '299 - "mind the gap"'
    assert hook.requests("/warn")[0]["dryRun"] is True
    assert api.ask("GET", f"{MAPS}/m").status == 404


def test_an_older_review_is_spoken(api, hook):
    api.must("POST", VALIDATING, configuration("v", webhook(
        "v", hook.url("/deny"), admissionReviewVersions=["v2", "v1beta1", "v1"])))
    api.refused(403, "POST", MAPS, config_map("m"))
    assert hook.seen[0][1]["apiVersion"] == "admission.k8s.io/v1beta1"


def test_writes_go_on_while_a_webhook_hangs(api, node, hook):
    """Of other objects, and of the same one: who waits for a webhook finds out when it comes back."""
    api.must("POST", MAPS, {"metadata": {"name": "same"}})
    api.must("POST", VALIDATING, configuration("v", webhook(
        "v", hook.url("/hang"), timeoutSeconds=30, objectSelector={"matchLabels": {"slow": "yes"}})))
    slow = {"metadata": {"name": "same", "labels": {"slow": "yes"}}}
    answers = []

    def ask(method, path, body):
        answers.append(node.api().ask(method, path, body))

    threads = [threading.Thread(target=ask, args=("PUT", f"{MAPS}/same", slow))]
    threads += [threading.Thread(target=ask, args=("POST", MAPS, {"metadata": {
        "name": f"slow-{i}", "labels": {"slow": "yes"}}})) for i in range(20)]
    for thread in threads:
        thread.start()
    until(lambda: len(hook.seen) == 21, PATIENCE_S, "the webhook is asked 21 times")
    for i in range(200):
        api.must("POST", MAPS, config_map(f"quick-{i}"))
    assert merge_patch(api, f"{MAPS}/same", {"data": {"x": "y"}}).status == 200
    assert len(answers) == 0
    hook.released.set()
    for thread in threads:
        thread.join(PATIENCE_S)
    assert sorted(one.status for one in answers) == [200] + [201] * 20
    # The update without a version began anew, on what the patch had left, and was asked about again.
    same = api.must("GET", f"{MAPS}/same")
    assert same["metadata"]["labels"] == {"slow": "yes"} and "data" not in same
    assert "x" in hook.requests("/hang")[-1]["oldObject"].get("data", {})


def test_a_request_takes_no_longer_than_its_client_waits(api, hook):
    api.must("POST", VALIDATING, configuration("v", webhook("v", hook.url("/hang"), timeoutSeconds=30)))
    status = api.refused(500, "POST", f"{MAPS}?timeout=1s", config_map("m"))
    assert "before the deadline" in status["message"]
    assert hook.seen[0][0] == "/hang?timeout=1s"


def test_who_leaves_waits_no_longer(api, hook):
    api.must("POST", VALIDATING, configuration("v", webhook("v", hook.url("/hang"), timeoutSeconds=30)))
    connection = api.connect()
    connection.request("POST", MAPS, json.dumps(config_map("m")),
                       api.fields({"Content_Type": "application/json"}))
    until(lambda: hook.seen, PATIENCE_S, "the webhook is asked")
    connection.close()
    assert hook.left.wait(PATIENCE_S)
    api.must("DELETE", f"{VALIDATING}/v")
    api.must("POST", MAPS, config_map("m"))  # nobody has written it


def test_a_stop_waits_for_no_webhook(node, api, hook):
    api.must("POST", VALIDATING, configuration("v", webhook("v", hook.url("/hang"), timeoutSeconds=30)))
    connection = api.connect()
    connection.request("POST", MAPS, json.dumps(config_map("m")),
                       api.fields({"Content_Type": "application/json"}))
    until(lambda: hook.seen, PATIENCE_S, "the webhook is asked")
    node.stop()
    answer = connection.getresponse()
    assert (answer.status, json.loads(answer.read())["message"]) == (503, "the server is shutting down")


@pytest.mark.release
def test_a_webhook_that_is_gone_stops_no_start(node, hook):
    """davitd is killed while it waits for one, starts again while there is none, and lets it be removed."""
    api = node.api()
    api.must("POST", VALIDATING, configuration("v", webhook(
        "v", hook.url("/hang"), ("*/*",), groups=("*",), timeoutSeconds=30)))
    connection = api.connect()
    connection.request("POST", MAPS, json.dumps(config_map("m")),
                       api.fields({"Content_Type": "application/json"}))
    until(lambda: hook.seen, PATIENCE_S, "the webhook is asked")
    node.kill()
    hook.close()
    node.start()
    api = node.api()
    assert api.ask("GET", f"{MAPS}/m").status == 404
    status = api.refused(500, "POST", MAPS, config_map("m"))
    assert "failed calling webhook" in status["message"]
    api.must("DELETE", f"{VALIDATING}/v")
    api.must("POST", MAPS, config_map("m"))
