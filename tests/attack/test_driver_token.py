"""A driver's token in the wrong hands; tokens that are wider, without a node, or for others."""

import json

import pytest

from nodes import run_davit
from servers import (CLAIMS, CORE, MAPS, NODES, PODS, RESOURCE, SLICES, claim, config_map,
                     device_slice)
from test_access import make_token

DRIVER = "gpu.example.com"
TOKENS = "/davit/v1/tokens"
EVENTS = f"{CORE}/namespaces/default/events"
ACCOUNTS = f"{CORE}/namespaces/default/serviceaccounts"
MERGE = {"Content_Type": "application/merge-patch+json"}
APPLY = {"Content_Type": "application/apply-patch+yaml"}


@pytest.fixture
def driver(node):
    def make(*words):
        return node.api(token=make_token(node, "--driver", DRIVER, *words))

    return make


def allocate(api, name, driver_name=DRIVER, node_name="worker-1"):
    api.must("POST", CLAIMS, claim(name))
    allocation = {"devices": {"results": [{"request": "r", "driver": driver_name, "pool": "p",
                                           "device": "d"}]}}
    if node_name:
        allocation["nodeSelector"] = {"nodeSelectorTerms": [{"matchFields": [
            {"key": "metadata.name", "operator": "In", "values": [node_name]}]}]}
    answer = api.ask("PATCH", f"{CLAIMS}/{name}/status",
                     json.dumps({"status": {"allocation": allocation}}), **MERGE)
    assert answer.status == 200, answer


def test_claims_are_those_that_are_allocated_to_it(driver, api):
    api.must("POST", NODES, {"metadata": {"name": "worker-1"}})
    allocate(api, "own")
    allocate(api, "elsewhere", node_name="worker-2")
    allocate(api, "anothers", "nic.example.com")
    allocate(api, "anywhere", node_name=None)
    api.must("POST", CLAIMS, claim("free"))
    thief = driver("--node", "worker-1")
    devices = {"status": {"devices": [{"driver": DRIVER, "pool": "p", "device": "d"}]}}
    for name in ("own", "anywhere"):
        thief.must("GET", f"{CLAIMS}/{name}")
        answer = thief.ask("PATCH", f"{CLAIMS}/{name}/status", json.dumps(devices), **MERGE)
        assert answer.status == 200, answer
    for name in ("elsewhere", "anothers", "free"):
        thief.refused(403, "GET", f"{CLAIMS}/{name}")
        thief.refused(403, "PATCH", f"{CLAIMS}/{name}/status", devices, **MERGE)
    thief.refused(404, "GET", f"{CLAIMS}/gone")
    for path in (CLAIMS, f"{RESOURCE}/v1/resourceclaims", f"{CLAIMS}?watch=true",
                 f"{CLAIMS}?fieldSelector=metadata.name%3Down"):
        thief.refused(403, "GET", path)
    many = {"status": {"devices": [{"driver": DRIVER, "pool": "p", "device": f"d{number}"}
                                   for number in range(20000)]}}
    thief.refused(403, "PATCH", f"{CLAIMS}/own/status", many, **MERGE)


def event(name, **more):
    return {"metadata": {"name": name, "namespace": "default"}, "reason": "Test", "message": "m",
            "type": "Normal", "involvedObject": {"kind": "Pod", "namespace": "default",
                                                 "name": "p"}, **more}


def test_events_are_its_own(driver, node, api):
    first, second = driver("--node", "worker-1"), driver("--node", "worker-2")
    other = node.api(token=make_token(node, "--driver", "nic.example.com", "--node", "worker-1"))
    api.must("POST", EVENTS, event("admins"))
    made = first.must("POST", EVENTS, event("own"))
    assert made["metadata"]["annotations"] == {
        "davit.dev/written-by": f"davit:driver:{DRIVER}@worker-1"}
    for who in (second, other):
        who.refused(403, "PATCH", f"{EVENTS}/own", {"message": "x"}, **MERGE)
        who.refused(403, "PUT", f"{EVENTS}/own", {**made, "message": "x"})
    for who in (first, second, other):
        who.refused(403, "PATCH", f"{EVENTS}/admins", {"message": "x"}, **MERGE)
        who.refused(403, "DELETE", f"{EVENTS}/own")
        who.refused(403, "GET", f"{EVENTS}/own")
    first.refused(403, "PATCH", f"{EVENTS}/own", {"metadata": {"annotations": {
        "davit.dev/written-by": "davit:driver:nic.example.com@worker-1"}}}, **MERGE)
    first.refused(403, "PATCH", f"{EVENTS}/new?fieldManager=x", {
        "apiVersion": "v1", "kind": "Event", **event("new")}, **APPLY)
    # A name that it claims to be is not believed.
    forged = event("forged")
    forged["metadata"]["annotations"] = {"davit.dev/written-by": "davit:driver:nic.example.com@x"}
    made = first.must("POST", EVENTS, forged)
    assert made["metadata"]["annotations"]["davit.dev/written-by"].endswith("@worker-1")
    large = event("large", message="m" * 900)
    large["metadata"]["annotations"] = {"x": "y" * 40000}
    answer = first.ask("POST", EVENTS, large)
    if answer.status == 201:  # else it is too large for a driver's token
        assert "davit.dev/written-by" in answer.doc["metadata"]["annotations"]
        second.refused(403, "PATCH", f"{EVENTS}/large", {"message": "x"}, **MERGE)
    # The recorders of clients: a patch of the count, or the whole.
    assert first.ask("PATCH", f"{EVENTS}/own", '{"count": 2}', **MERGE).status == 200
    whole = event("own", count=3)
    assert first.ask("PUT", f"{EVENTS}/own", whole).status == 200
    assert first.ask("PATCH", f"{EVENTS}/own", '{"count": 4}', **MERGE).status == 200


def test_a_token_is_widened_verb_by_verb(driver, node, api):
    api.must("POST", NODES, {"metadata": {"name": "worker-2"}})
    api.must("POST", f"{CORE}/namespaces/default/secrets", {"metadata": {"name": "s"}})
    api.must("POST", MAPS, config_map("m"))
    wide = driver("--node", "worker-1", "--also", "pods: get,list,watch", "--also",
                  "resourceclaims: list", "--also", "nodes: list")
    narrow = driver("--node", "worker-1")
    for path in (PODS, f"{CORE}/pods", CLAIMS, NODES):
        wide.must("GET", path)
        narrow.refused(403, "GET", path)
    with wide.watch(PODS):
        pass
    for path in (f"{NODES}/worker-2", f"{NODES}?watch=true", f"{CLAIMS}?watch=true", MAPS,
                 f"{CORE}/secrets", f"{CORE}/namespaces/default/secrets/s"):
        wide.refused(403, "GET", path)
    wide.refused(403, "DELETE", PODS)
    wide.refused(403, "POST", PODS, {"metadata": {"name": "p"}, "spec": {
        "containers": [{"name": "c", "image": "i"}]}})
    rules = wide.must("POST", "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews", {
        "apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectRulesReview",
        "spec": {"namespace": "default"}})["status"]["resourceRules"]
    assert {"verbs": ["get", "list", "watch"], "apiGroups": [""], "resources": ["pods"]} in rules
    assert {"verbs": ["list"], "apiGroups": ["resource.k8s.io"],
            "resources": ["resourceclaims"]} in rules
    listed = run_davit("token", "list", "--kubeconfig", node.kubeconfig).stdout
    assert "pods: get,list,watch; resourceclaims: list; nodes: list" in listed, listed
    # It lasts.
    before = wide.token
    node.stop()
    node.start()
    again = node.api(token=before)
    again.must("GET", PODS)
    again.refused(403, "GET", MAPS)


BAD_RULES = [
    ("pods", "is not RESOURCE: VERBS"), (": get", "is not RESOURCE: VERBS"), ("pods:", "no verbs"),
    ("pods: delete", 'not "delete"'), ("pods: *", 'not "*"'), ("pods: get,patch", 'not "patch"'),
    ("secrets: get", "reads secrets"), ("gpus: get", 'no resource "gpus" is served'),
    ("*: get", "is served"), ("pods/log: get", 'have no "log"'), ("pods.apps: get", "is served"),
    ("serviceaccounts/token: get", 'have no "token"'), ("pods: get" + " " * 300, "bytes"),
    ("pods: get,\x00", "not"),
]


def test_rules_that_are_wrong_are_refused(api):
    body = {"driver": DRIVER, "node": "worker-1"}
    before = api.must("GET", TOKENS)
    for rule, why in BAD_RULES:
        doc = api.refused(400, "POST", TOKENS, {**body, "also": ["nodes: list", rule]})
        assert why in doc["message"], doc
    for wrong in ({"also": "pods: get"}, {"also": [1]}, {"also": ["pods: get"] * 33},
                  {"allNodes": True}, {"allNodes": "true"}, {"node": "", "allNodes": False}):
        api.refused(400, "POST", TOKENS, {**body, **wrong})
    for wrong in ({"admin": "a", "also": ["pods: get"]}, {"node": "n", "also": ["pods: get"]},
                  {"allNodes": True}, {"node": "n", "allNodes": True}, {"admin": "x" * 300},
                  {"admin": "a", "allNodes": True}):
        api.refused(400, "POST", TOKENS, wrong)
    assert api.must("GET", TOKENS) == before


def test_the_command_line_says_what_is_wrong(node):
    for words, why in ((("--admin", "a", "--also", "pods: get"), "--also is for drivers"),
                       (("--node", "n", "--also", "pods: get"), "--also is for drivers"),
                       (("--driver", DRIVER, "--node", "n", "--all-nodes"), "a token is for"),
                       (("--all-nodes",), "a token is for"), (("--driver", DRIVER), "a token is")):
        done = run_davit("token", "create", *words, "--kubeconfig", node.kubeconfig)
        assert done.returncode == 2 and why in done.stderr, done
    done = run_davit("token", "create", "--driver", DRIVER, "--all-nodes", "--also",
                     "secrets: get", "--kubeconfig", node.kubeconfig)
    assert done.returncode == 1 and "no driver's token reads secrets" in done.stderr, done


def wide_slice(name, pool="net", **spec):
    made = device_slice(name)
    del made["spec"]["nodeName"]
    made["spec"] |= {"pool": {"name": pool, "generation": 1, "resourceSliceCount": 1}, **spec}
    return made


def selector(**term):
    return {"nodeSelectorTerms": [term]}


def test_devices_without_a_node(driver, api):
    for name in ("worker-1", "worker-2"):
        api.must("POST", NODES, {"metadata": {"name": name}})
    api.must("POST", SLICES, device_slice("gpus", "worker-1"))
    thief = driver("--all-nodes")
    rack = selector(matchExpressions=[{"key": "rack", "operator": "In", "values": ["a"]}])
    thief.must("POST", SLICES, wide_slice("a", allNodes=True))
    thief.must("POST", SLICES, wide_slice("b", "rack-a", nodeSelector=rack))
    own = "?fieldSelector=spec.driver%3Dgpu.example.com"
    assert len(thief.must("GET", SLICES + own)["items"]) == 3
    named = selector(matchFields=[{"key": "metadata.name", "operator": "In",
                                   "values": ["worker-1"]}])
    device = {"name": "d", "nodeName": "worker-1"}
    for body in (device_slice("x", "worker-1"), wide_slice("x", nodeSelector=named),
                 wide_slice("x", perDeviceNodeSelection=True, devices=[device]),
                 wide_slice("x", "worker-1", allNodes=True), wide_slice("x", "worker-2",
                                                                        allNodes=True),
                 wide_slice("x", allNodes=True, driver="nic.example.com")):
        thief.refused(403, "POST", SLICES, body)
    for method, path in (("DELETE", f"{SLICES}/gpus"), ("GET", f"{SLICES}/gpus"),
                         ("GET", SLICES), ("GET", f"{NODES}/worker-1"), ("GET", NODES),
                         ("DELETE", SLICES), ("GET", "/davit/v1/node")):
        thief.refused(403, method, path)
    # A driver of a node does not touch them.
    driver("--node", "worker-1").refused(403, "DELETE", f"{SLICES}/a")
    thief.must("DELETE", f"{SLICES}/a")


def test_a_token_for_others_is_not_for_us(node, api):
    api.must("POST", ACCOUNTS, {"metadata": {"name": "a"}})
    head = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest"}

    def make(*audiences):
        spec = {"audiences": list(audiences)} if audiences else {}
        doc = api.must("POST", f"{ACCOUNTS}/a/token", {**head, "spec": spec})
        return doc["status"]["token"]

    def review(token, *audiences):
        return api.must("POST", "/apis/authentication.k8s.io/v1/tokenreviews", {
            "apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview",
            "spec": {"token": token, "audiences": list(audiences)}})["status"]

    ours = "https://kubernetes.default.svc"
    vault, both, plain = make("vault"), make("vault", ours), make()
    for _ in range(2):
        assert node.api(token=vault).ask("GET", "/api").status == 401
        assert node.api(token=both).ask("GET", "/api").status == 200
        assert node.api(token=plain).ask("GET", "/api").status == 200
        node.stop()
        node.start()
        api = node.api()
    assert "authenticated" not in review(vault) and review(vault)["error"]
    assert review(vault, "vault", "other")["audiences"] == ["vault"]
    assert review(both)["audiences"] == [ours]
    assert "authenticated" not in review(plain, "vault")
    api.refused(422, "POST", f"{ACCOUNTS}/a/token", {**head, "spec": {
        "audiences": ["x" * 5000]}})
    api.refused(422, "POST", f"{ACCOUNTS}/a/token", {**head, "spec": {"audiences": ["x"] * 33}})
    api.refused(400, "POST", f"{ACCOUNTS}/a/token", {**head, "spec": {"boundObjectRef": {
        "apiVersion": "v1", "kind": "ConfigMap", "name": "m"}}})
