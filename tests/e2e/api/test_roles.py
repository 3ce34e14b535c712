"""Roles and bindings: what kubectl makes of them, and who may give rights to whom."""

import pytest

from procs import until
from servers import CORE, NODES, PATIENCE_S, PODS, ApiNode

RBAC = "/apis/rbac.authorization.k8s.io/v1"
ROLES = f"{RBAC}/namespaces/default/roles"
BINDINGS = f"{RBAC}/namespaces/default/rolebindings"


class ApiWithControllers(ApiNode):
    def __init__(self, procs, root, *options):
        super().__init__(procs, root, "--roles", "api,control", *options)


@pytest.fixture
def new_node():
    return ApiWithControllers


def act_as(user, *groups):
    return {"Impersonate_User": user} | ({"Impersonate_Group": groups[0]} if groups else {})


def bind(api, name, role, user, path=BINDINGS):
    api.must("POST", path, {
        "metadata": {"name": name}, "roleRef": {"kind": "ClusterRole", "name": role},
        "subjects": [{"kind": "User", "name": user}]})


def test_kubectl_asks_what_it_may(kubectl):
    kubectl("create", "clusterrole", "pod-reader", "--verb=get,list", "--resource=pods")
    kubectl("create", "rolebinding", "jane", "--clusterrole=pod-reader", "--user=jane")
    kubectl("create", "clusterrolebinding", "sa", "--clusterrole=view",
            "--serviceaccount=default:default")
    assert "yes" in kubectl("auth", "can-i", "list", "pods", "--as=jane")
    assert "no" in kubectl("auth", "can-i", "delete", "pods", "--as=jane", status=1)
    assert "no" in kubectl("auth", "can-i", "list", "pods", "--as=jane", "-n", "kube-system",
                           status=1)
    account = "--as=system:serviceaccount:default:default"
    assert "yes" in kubectl("auth", "can-i", "watch", "resourceclaims.resource.k8s.io", account)
    assert "no" in kubectl("auth", "can-i", "get", "secrets", account, status=1)
    rules = kubectl("auth", "can-i", "--list", "--as=jane")
    assert "pods" in rules and "[get list]" in rules and "/apis/*" in rules
    kubectl("get", "pods", "--as=jane")
    assert 'User "jane" cannot list resource "secrets"' in kubectl("get", "secrets", "--as=jane",
                                                                   status=1)


def test_nobody_gives_what_it_has_not(api):
    bind(api, "editor", "admin", "jane")
    rule = {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}
    jane = act_as("jane")
    api.must("POST", ROLES, {"metadata": {"name": "fine"}, "rules": [rule]}, **jane)
    status = api.refused(403, "POST", ROLES, {
        "metadata": {"name": "more"}, "rules": [rule | {"resources": ["nodes"]}]}, **jane)
    assert status["message"] == (
        'roles.rbac.authorization.k8s.io "more" is forbidden: user "jane" '
        '(groups=["system:authenticated"]) is attempting to grant RBAC permissions not currently '
        'held:\n{APIGroups:[""], Resources:["nodes"], Verbs:["get"]}')
    wanted = {"metadata": {"name": "b"}, "roleRef": {"kind": "ClusterRole",
                                                      "name": "cluster-admin"}}
    api.refused(403, "POST", BINDINGS, wanted, **jane)
    api.refused(404, "POST", BINDINGS, wanted | {"roleRef": {"kind": "Role", "name": "gone"}},
                **jane)
    api.must("POST", BINDINGS, wanted | {"roleRef": {"kind": "Role", "name": "fine"}}, **jane)
    # What an apply would create needs the right to create.
    api.must("POST", f"{RBAC}/clusterroles", {"metadata": {"name": "patcher"}, "rules": [
        {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["patch", "get"]}]})
    bind(api, "patcher", "patcher", "joe")
    path = f"{CORE}/namespaces/default/configmaps/m?fieldManager=t"
    applied = '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"m"}}'
    options = {"Content_Type": "application/apply-patch+yaml"}
    status = api.refused(403, "PATCH", path, applied, **options, **act_as("joe"))
    assert "cannot create resource" in status["message"]
    assert api.ask("PATCH", path, applied, **options).status == 201
    assert api.ask("PATCH", path, applied, **options, **act_as("joe")).status == 200


def rules_of(api, name):
    return api.must("GET", f"{RBAC}/clusterroles/{name}")["rules"]


def test_roles_are_made_of_others(api):
    rule = {"apiGroups": ["example.com"], "resources": ["things"], "verbs": ["get"]}
    api.must("POST", f"{RBAC}/clusterroles", {
        "metadata": {"name": "things",
                     "labels": {"rbac.authorization.k8s.io/aggregate-to-view": "true"}},
        "rules": [rule]})
    for name in ("view", "edit", "admin"):
        until(lambda n=name: rule in rules_of(api, n), PATIENCE_S, f"{name} has it")
    api.must("DELETE", f"{RBAC}/clusterroles/things")
    until(lambda: rule not in rules_of(api, "admin"), PATIENCE_S, "admin has it no more")


def test_what_always_exists_comes_back_at_a_start(node, api):
    discovery = f"{RBAC}/clusterrolebindings/system:discovery"
    basic = f"{RBAC}/clusterroles/system:basic-user"
    own = {"apiGroups": ["x"], "resources": ["y"], "verbs": ["z"]}
    api.must("DELETE", discovery)
    role = api.must("GET", basic)
    api.must("PUT", basic, role | {"rules": [own]})
    api.refused(403, "GET", "/apis", **act_as("jane"))
    node.stop()
    node.start()
    api = node.api()
    api.must("GET", discovery)
    assert api.must("GET", basic)["rules"] == [own, *role["rules"]]
    api.must("GET", "/apis", **act_as("jane"))


def test_reviews_say_which_binding_allows_it(api):
    bind(api, "b", "view", "jane")
    attributes = {"namespace": "default", "verb": "get", "resource": "pods"}
    review = {"spec": {"user": "jane", "resourceAttributes": attributes}}
    path = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
    assert api.must("POST", path, review)["status"] == {
        "allowed": True,
        "reason": 'RBAC: allowed by RoleBinding "b/default" of ClusterRole "view" to User "jane"'}
    local = "/apis/authorization.k8s.io/v1/namespaces/kube-system/localsubjectaccessreviews"
    api.refused(400, "POST", local, review)
    rules = api.must("POST", "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews",
                     {"spec": {"namespace": "kube-system"}}, **act_as("jane"))["status"]
    assert not rules["incomplete"] and len(rules["resourceRules"]) == 2, rules


def test_an_account_may_act_as_the_node_of_its_pod_for_some_requests(node, api):
    for name in ("n1", "n2"):
        api.must("POST", NODES, {"metadata": {"name": name}})
    until(lambda: api.ask("GET", f"{CORE}/namespaces/default/serviceaccounts/default").status == 200,
          PATIENCE_S, "the account")
    pod = api.must("POST", PODS, {"metadata": {"name": "p"}, "spec": {
        "nodeName": "n1", "containers": [{"name": "c", "image": "i"}]}})
    token = api.must("POST", f"{CORE}/namespaces/default/serviceaccounts/default/token", {
        "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest",
        "spec": {"boundObjectRef": {"kind": "Pod", "apiVersion": "v1", "name": "p",
                                    "uid": pod["metadata"]["uid"]}}})["status"]["token"]
    inside = node.api(token=token)
    own = act_as("system:node:n1")
    status = inside.refused(403, "GET", f"{NODES}/n1", **own)
    assert "cannot impersonate-on:associated-node:get" in status["message"]
    api.must("POST", f"{RBAC}/clusterroles", {"metadata": {"name": "as-node"}, "rules": [
        {"apiGroups": ["authentication.k8s.io"], "resources": ["nodes"],
         "verbs": ["impersonate:associated-node"]},
        {"apiGroups": [""], "resources": ["nodes"],
         "verbs": ["impersonate-on:associated-node:get"]}]})
    api.must("POST", f"{RBAC}/clusterrolebindings", {
        "metadata": {"name": "as-node"}, "roleRef": {"kind": "ClusterRole", "name": "as-node"},
        "subjects": [{"kind": "ServiceAccount", "name": "default", "namespace": "default"}]})
    assert inside.must("GET", f"{NODES}/n1", **own)["metadata"]["name"] == "n1"
    inside.refused(403, "GET", f"{NODES}/n2", **own)  # the node itself may not see it
    inside.refused(403, "GET", f"{NODES}/n2", **act_as("system:node:n2"))
    inside.refused(403, "GET", f"{PODS}?fieldSelector=spec.nodeName%3Dn1", **own)
    inside.refused(403, "GET", f"{NODES}/n1", **own, Impersonate_Group="system:masters")
    inside.refused(403, "GET", f"{NODES}/n1")
