"""Admission policies: those that drivers ship, with real tokens, and all ways to write an object."""

import pytest

from procs import until
from servers import CORE, PATIENCE_S, PODS, ApiNode

ADMISSION = "/apis/admissionregistration.k8s.io/v1"
POLICIES = f"{ADMISSION}/validatingadmissionpolicies"
BINDINGS = f"{ADMISSION}/validatingadmissionpolicybindings"
MAPS = f"{CORE}/namespaces/default/configmaps"
SLICES = "/apis/resource.k8s.io/v1/resourceslices"
ACCOUNTS = f"{CORE}/namespaces/default/serviceaccounts"

# As the charts of DRA drivers have it.
VENDOR = """
apiVersion: v1
kind: ServiceAccount
metadata: {name: driver, namespace: default}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: driver}
rules:
- apiGroups: [resource.k8s.io]
  resources: [resourceslices]
  verbs: [get, list, watch, create, update, patch, delete]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: driver}
subjects: [{kind: ServiceAccount, name: driver, namespace: default}]
roleRef: {kind: ClusterRole, name: driver, apiGroup: rbac.authorization.k8s.io}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: resourceslices-policy-driver}
spec:
  failurePolicy: Fail
  matchConstraints:
    resourceRules:
    - apiGroups: [resource.k8s.io]
      apiVersions: [v1, v1beta1, v1beta2]
      operations: [CREATE, UPDATE, DELETE]
      resources: [resourceslices]
  matchConditions:
  - name: isRestrictedUser
    expression: >-
      request.userInfo.username == "system:serviceaccount:default:driver"
  variables:
  - name: userNodeName
    expression: >-
      request.userInfo.extra[?'authentication.kubernetes.io/node-name'][0].orValue('')
  - name: objectNodeName
    expression: >-
      (request.operation == "DELETE" ? oldObject : object).spec.?nodeName.orValue("")
  validations:
  - expression: variables.userNodeName != ""
    message: >-
      no node association found for user, this user must run in a pod on a node and
      ServiceAccountTokenPodNodeInfo must be enabled
  - expression: variables.userNodeName == variables.objectNodeName
    messageExpression: >-
      "this user running on node '"+variables.userNodeName+"' may not modify " +
      (variables.objectNodeName == "" ? "cluster resourceslices" :
      "resourceslices on node '"+variables.objectNodeName+"'")
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: resourceslices-policy-driver}
spec:
  policyName: resourceslices-policy-driver
  validationActions: [Deny]
"""


class ApiWithControllers(ApiNode):
    def __init__(self, procs, root, *options):
        super().__init__(procs, root, "--roles", "api,control", *options)


@pytest.fixture
def new_node():
    return ApiWithControllers


def policy(name="p", expression="object.metadata.name != 'bad'", resources=("configmaps",),
           operations=("*",), groups=("",), **spec):
    return {"metadata": {"name": name}, "spec": {
        "matchConstraints": {"resourceRules": [{
            "apiGroups": groups, "apiVersions": ["*"], "operations": operations,
            "resources": resources}]},
        "validations": [{"expression": expression, "message": "no"}]} | spec}


def binding(name="b", policy_name="p", actions=("Deny",), **spec):
    return {"metadata": {"name": name}, "spec": {"policyName": policy_name,
                                                 "validationActions": actions} | spec}


def slice_of(name, node):
    return {"metadata": {"name": name}, "spec": {
        "driver": "gpu.example.com", "pool": {"name": f"pool{node}", "resourceSliceCount": 1},
        "devices": [{"name": "gpu-0"}]} | ({"nodeName": node} if node else {"allNodes": True})}


def token_on(api, node):
    """A token of the driver's account, for a pod on that node."""
    api.must("POST", f"{CORE}/nodes", {"metadata": {"name": node}})
    pod = api.must("POST", PODS, {"metadata": {"name": f"on-{node}"}, "spec": {
        "serviceAccountName": "driver", "nodeName": node,
        "containers": [{"name": "c", "image": "i"}]}})
    return api.must("POST", f"{ACCOUNTS}/driver/token", {
        "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {
            "boundObjectRef": {"kind": "Pod", "apiVersion": "v1", "name": f"on-{node}",
                               "uid": pod["metadata"]["uid"]}}})["status"]["token"]


def test_a_driver_writes_slices_of_its_own_node_only(kubectl, api, node):
    kubectl("apply", "-f", "-", stdin=VENDOR)
    assert "resourceslices-policy-driver" in kubectl("get", "validatingadmissionpolicies")
    on_n1 = node.api(token=token_on(api, "n1"))
    made = on_n1.must("POST", SLICES, slice_of("mine", "n1"))
    made["spec"]["pool"]["generation"] = 2
    on_n1.must("PUT", f"{SLICES}/mine", made)
    status = on_n1.refused(422, "POST", SLICES, slice_of("theirs", "n2"))
    assert status["message"] == (
        'resourceslices.resource.k8s.io "theirs" is forbidden: ValidatingAdmissionPolicy '
        "'resourceslices-policy-driver' with binding 'resourceslices-policy-driver' denied "
        "request: this user running on node 'n1' may not modify resourceslices on node 'n2'")
    assert status["reason"] == "Invalid" and len(status["details"]["causes"]) == 1
    status = on_n1.refused(422, "POST", SLICES, slice_of("all", ""))
    assert "may not modify cluster resourceslices" in status["message"]
    api.must("POST", SLICES, slice_of("theirs", "n2"))  # an administrator is not restricted
    on_n1.refused(422, "DELETE", f"{SLICES}/theirs")
    on_n1.must("DELETE", f"{SLICES}/mine")
    on_n2 = node.api(token=token_on(api, "n2"))
    on_n2.must("DELETE", f"{SLICES}/theirs")
    unbound = node.api(token=api.must("POST", f"{ACCOUNTS}/driver/token", {
        "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest",
        "spec": {}})["status"]["token"])
    unbound.refused(422, "POST", SLICES, slice_of("none", "n1"))
    # An older version is held against the same policy.
    beta = slice_of("beta", "n2") | {"apiVersion": "resource.k8s.io/v1beta1",
                                     "kind": "ResourceSlice"}
    beta["spec"]["devices"] = [{"name": "gpu-0", "basic": {}}]
    on_n1.refused(422, "POST", SLICES.replace("/v1/", "/v1beta1/"), beta)
    kubectl("delete", "-f", "-", stdin=VENDOR)
    assert api.must("GET", POLICIES)["items"] == []


def test_all_ways_to_write_are_judged(api):
    for name in ("good", "bad"):
        api.must("POST", MAPS, {"metadata": {"name": name, "labels": {"a": "b"}}})
    api.must("POST", POLICIES, policy(
        expression="(object == null ? oldObject : object).metadata.name != 'bad'"))
    api.must("POST", MAPS, {"metadata": {"name": "free"}})  # nothing binds the policy yet
    api.must("POST", BINDINGS, binding())
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "bad"}, "data": {"x": "y"}}
    merge = {"Content_Type": "application/merge-patch+json"}
    apply = {"Content_Type": "application/apply-patch+yaml"}
    for name, code in (("good", 200), ("bad", 422)):
        body["metadata"]["name"] = name
        assert api.ask("PUT", f"{MAPS}/{name}", body).status == code
        assert api.ask("PATCH", f"{MAPS}/{name}", '{"data":{"x":"z"}}', **merge).status == code
        assert api.ask("PATCH", f"{MAPS}/{name}?fieldManager=t&force=true", body,
                       **apply).status == code
        assert api.ask("PATCH", f"{MAPS}/{name}?dryRun=All", '{"data":{"x":"w"}}',
                       **merge).status == code
        assert api.ask("DELETE", f"{MAPS}/{name}?dryRun=All").status == code
    assert api.ask("DELETE", f"{MAPS}?labelSelector=a%3Db").status == 422
    api.must("GET", f"{MAPS}/bad")
    api.must("DELETE", f"{BINDINGS}/b")  # at once
    api.must("DELETE", f"{MAPS}/bad")


def test_subresources_and_connections_are_judged(api):
    api.must("POST", f"{CORE}/nodes", {"metadata": {"name": "n1"}})
    pod = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    api.must("POST", PODS, pod)
    api.must("POST", POLICIES, policy(
        expression="request.subResource == 'binding' ? object.target.name == 'n1' : "
                   "request.subResource == 'exec' ? object.command[0] != 'rm' : "
                   "request.subResource != 'eviction'", resources=("pods/*",),
        matchConditions=[{"name": "sub", "expression": "has(request.subResource)"}]))
    api.must("POST", BINDINGS, binding())
    target = {"metadata": {"name": "p"}, "target": {"kind": "Node", "name": "n2"}}
    api.refused(422, "POST", f"{PODS}/p/binding", target)
    api.refused(422, "POST", f"{PODS}/p/eviction", {"metadata": {"name": "p"}})
    api.refused(422, "POST", f"{PODS}/p/exec?command=rm&stdout=true")
    assert api.ask("POST", f"{PODS}/p/exec?command=ls&stdout=true").status == 400  # it has no node
    target["target"]["name"] = "n1"
    api.must("POST", f"{PODS}/p/binding", target)


def test_failures_warn_or_refuse_as_bound(api):
    api.must("POST", POLICIES, policy(expression="object.data.x == 'y'"))
    api.must("POST", BINDINGS, binding(actions=("Warn", "Audit")))
    answer = api.ask("POST", MAPS, {"metadata": {"name": "m"}})
    assert answer.status == 201
    assert answer.fields["warning"] == (
        '299 - "Validation failed for ValidatingAdmissionPolicy \'p\' with binding \'b\': '
        'expression \'object.data.x == \\"y\\"\' resulted in error: no such key: data"'
        .replace('\\"y\\"', "'y'"))


def test_parameters_decide(api):
    limits = {"metadata": {"name": "limits", "labels": {"role": "limit"}}, "data": {"max": "1"}}
    api.must("POST", MAPS, limits)
    api.must("POST", POLICIES, policy(
        expression="!has(object.data) || object.data.size() <= int(params.data.max)",
        resources=("secrets",), paramKind={"apiVersion": "v1", "kind": "ConfigMap"}))
    api.must("POST", BINDINGS, binding(paramRef={"name": "limits",
                                                 "parameterNotFoundAction": "Deny"}))
    secrets = f"{CORE}/namespaces/default/secrets"
    two = {"metadata": {"name": "s"}, "stringData": {"a": "1", "b": "2"}}
    api.refused(422, "POST", secrets, two)
    api.must("PUT", f"{MAPS}/limits", limits | {"data": {"max": "2"}})
    api.must("POST", secrets, two)
    api.must("DELETE", f"{MAPS}/limits")
    status = api.refused(422, "POST", secrets, two | {"metadata": {"name": "s2"}})
    assert "no params found for policy binding with `Deny`" in status["message"]
    api.must("DELETE", f"{BINDINGS}/b")
    for name, most in (("one", "1"), ("nine", "9")):
        api.must("POST", MAPS, limits | {"metadata": {"name": name, "labels": {"role": "limit"}},
                                         "data": {"max": most}})
    api.must("POST", BINDINGS, binding(paramRef={
        "selector": {"matchLabels": {"role": "limit"}}, "parameterNotFoundAction": "Deny"}))
    api.refused(422, "POST", secrets, two | {"metadata": {"name": "s3"}})
    api.must("DELETE", f"{MAPS}/one")
    api.must("POST", secrets, two | {"metadata": {"name": "s3"}})


def test_what_takes_long_is_bounded_and_asks_the_authorizer(api):
    """The loop answers others while a worker evaluates, which comes back with its question."""
    expression = ("lists.range(100).all(a, lists.range(100).all(b, a + b >= 0)) && "
                  "authorizer.requestResource.check('approve').allowed()")
    api.must("POST", POLICIES, policy(expression=expression))
    api.must("POST", BINDINGS, binding())
    api.must("POST", MAPS, {"metadata": {"name": "m"}})
    api.refused(403, "POST", MAPS, {"metadata": {"name": "n"}}, Impersonate_User="jane")
    rbac = "/apis/rbac.authorization.k8s.io/v1/namespaces/default"
    api.must("POST", f"{rbac}/roles", {"metadata": {"name": "maps"}, "rules": [
        {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["create"]}]})
    api.must("POST", f"{rbac}/rolebindings", {
        "metadata": {"name": "maps"}, "roleRef": {"kind": "Role", "name": "maps"},
        "subjects": [{"kind": "User", "name": "jane"}]})
    api.refused(422, "POST", MAPS, {"metadata": {"name": "n"}}, Impersonate_User="jane")
    api.must("PUT", f"{POLICIES}/p", policy(
        expression="lists.range(1000).all(a, lists.range(1000).all(b, a + b >= 0))"))
    status = api.refused(422, "POST", MAPS, {"metadata": {"name": "n"}})
    assert "actual cost limit exceeded" in status["message"]


def test_a_policy_that_is_wrong_is_refused_and_none_is_about_policies(api):
    status = api.refused(422, "POST", POLICIES, policy(expression="object.x =="))
    assert status["details"]["causes"][0]["field"] == "spec.validations[0].expression"
    api.must("POST", POLICIES, policy(expression="false", groups=("*",), resources=("*",)))
    api.must("POST", BINDINGS, binding())
    api.refused(422, "POST", MAPS, {"metadata": {"name": "m"}})
    until(lambda: api.must("GET", f"{POLICIES}/p")["status"].get("observedGeneration") == 1,
          PATIENCE_S, "a status")
    api.must("DELETE", f"{BINDINGS}/b")
    api.must("DELETE", f"{POLICIES}/p")
    api.must("POST", MAPS, {"metadata": {"name": "m"}})


def test_policies_survive_a_restart(api, node):
    api.must("POST", POLICIES, policy())
    api.must("POST", BINDINGS, binding())
    node.stop()
    node.start()
    api = node.api()
    api.refused(422, "POST", MAPS, {"metadata": {"name": "bad"}})
    api.must("POST", MAPS, {"metadata": {"name": "good"}})
