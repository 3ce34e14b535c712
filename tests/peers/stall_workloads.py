"""Rows of bench_stall.py: workloads, services, policies and quotas, by the thousand."""

import functools
import http.client
import json
import threading
import time

from servers import CORE, MAPS, NODES, PODS

PATIENCE_S = 120
APPS = "/apis/apps/v1/namespaces/default"
SETS = f"{APPS}/replicasets"
DEPLOYMENTS = f"{APPS}/deployments"
DAEMONS = f"{APPS}/daemonsets"
SERVICES = f"{CORE}/namespaces/default/services"
POLICIES = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"
BINDINGS = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings"
MERGE = "application/merge-patch+json"
N_THREADS = 8
LABELS = {"app": "x"}
ALLOCATABLE = {"allocatable": {"cpu": "100k", "memory": "100Ti", "pods": "100k"}}


def many(world, n, make):
    """Asks `make(i)`, (method, path, document), for all numbers below n, several at a time."""
    failures = []

    def ask_some(first):
        api = world.node.api()
        for i in range(first, n, N_THREADS):
            method, path, doc = make(i)
            fields = {"Content_Type": MERGE} if method == "PATCH" else {}
            body = json.dumps(doc) if fields else doc
            try:
                answer = api.ask(method, path, body, **fields)
            except http.client.RemoteDisconnected:  # it was idle for too long
                answer = api.ask(method, path, body, **fields)
            if answer.status not in (200, 201):
                failures.append(answer)
                return
        api.disconnect()

    world.api.disconnect()  # it would be too long idle
    threads = [threading.Thread(target=ask_some, args=(i,)) for i in range(N_THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, failures[0]


def template(labels=None, **spec):
    return {"metadata": {"labels": labels or LABELS},
            "spec": {"terminationGracePeriodSeconds": 0, "containers": [{"name": "c", "image": "x"}], **spec}}


def workload(kind, name, labels=None, **spec):
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": name, "labels": labels or LABELS},
            "spec": {"selector": {"matchLabels": labels or LABELS}, "template": template(labels), **spec}}


def pod(name, labels=None, **spec):
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": labels or LABELS},
            "spec": {"terminationGracePeriodSeconds": 0, "containers": [{"name": "c", "image": "x"}], **spec}}


def node(name, **meta):
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, **meta}, "status": ALLOCATABLE}


def make_nodes(n, world):
    many(world, n, lambda i: ("POST", NODES, node(f"far-{i}", labels={"zone": f"z{i % 3}"})))


def n_pods(world):
    doc = world.api.must("GET", f"{PODS}?limit=1")
    return len(doc["items"]) + doc["metadata"].get("remainingItemCount", 0)


def wait_pods(world, is_enough):
    """Until there are enough, or as long as a row may take: what is measured is a turn."""
    end = time.monotonic() + PATIENCE_S
    while not is_enough(n_pods(world)) and time.monotonic() < end:
        time.sleep(0.2)


def grow(n, world):
    world.api.must("POST", DEPLOYMENTS, workload("Deployment", "big", replicas=100000))
    wait_pods(world, lambda found: found >= n)


def scale(name, n, world):
    world.api.must("PATCH", f"{DEPLOYMENTS}/{name}", json.dumps({"spec": {"replicas": n}}), Content_Type=MERGE)


def halt(n, world):
    """It grows no further."""
    scale("big", n, world)
    wait_pods(world, lambda found: found <= n)


def shrink(world):
    scale("big", 100, world)
    wait_pods(world, lambda found: found <= 100)


def drop_all(world):
    world.api.must("DELETE", f"{DEPLOYMENTS}/big")
    wait_pods(world, lambda found: found == 0)


def make_sets(n, world):
    many(world, n, lambda i: ("POST", SETS, workload("ReplicaSet", f"s{i}", replicas=0)))
    time.sleep(3)


def make_orphans(world):
    many(world, 200, lambda i: ("POST", PODS, pod(f"orphan-{i}", schedulingGates=[{"name": "a.b/c"}])))
    time.sleep(3)


def drop_sets(world):
    world.api.must("DELETE", SETS)
    world.api.must("DELETE", f"{PODS}?gracePeriodSeconds=0")
    wait_pods(world, lambda found: found == 0)


def service(name, selector=None):
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name},
            "spec": {"selector": selector or LABELS, "ports": [{"port": 80, "targetPort": 80}]}}


def make_addressed(n, world):
    """Pods on a node, each with an address."""
    many(world, n, lambda i: ("POST", PODS, pod(f"p{i}", nodeName="far-0")))
    many(world, n, lambda i: ("PATCH", f"{PODS}/p{i}/status", {"status": {
        "phase": "Running", "podIP": f"10.{i >> 16}.{i >> 8 & 255}.{i & 255}",
        "conditions": [{"type": "Ready", "status": "True"}]}}))


def serve(world):
    world.api.must("POST", SERVICES, service("all"))
    time.sleep(5)


def change_one(world):
    world.api.must("PATCH", f"{PODS}/p7/status", json.dumps({"status": {
        "conditions": [{"type": "Ready", "status": "False"}]}}), Content_Type=MERGE)
    time.sleep(3)


def make_services(n, world):
    many(world, n, lambda i: ("POST", SERVICES, service(f"s{i}", {"app": f"other-{i}"})))


def make_matching_services(n, world):
    many(world, n, lambda i: ("POST", SERVICES, service(f"m{i}")))
    time.sleep(5)


def add_pods(prefix, n, world):
    many(world, n, lambda i: ("POST", PODS, pod(f"{prefix}{i}", {"own": f"l{i}"}, nodeName="far-1")))
    time.sleep(1)


def flip(world):
    world.api.must("POST", DAEMONS, workload("DaemonSet", "flips"))
    for i in range(10):
        world.api.must("PATCH", f"{DAEMONS}/flips", json.dumps({"spec": {"template": {"metadata": {
            "annotations": {"flip": str(i)}}}}}), Content_Type=MERGE)
        time.sleep(1)


def flip_labels(world):
    many(world, 2000, lambda i: ("PATCH", f"{NODES}/far-{i}", {"metadata": {"labels": {"flip": "1"}}}))
    time.sleep(2)


def terms(prefix, n):
    """Each of another selector that matches nearly everything."""
    return [{"topologyKey": "zone", "labelSelector": {"matchExpressions": [
        {"key": f"{prefix}-{i}", "operator": "DoesNotExist"}]}} for i in range(n)]


def wary(name, i):
    """Prefers to be apart from nearly everybody, in a thousand ways."""
    return pod(f"{name}-{i}", affinity={"podAntiAffinity": {
        "preferredDuringSchedulingIgnoredDuringExecution": [
            {"weight": 1, "podAffinityTerm": one} for one in terms(f"{name}-{i}", 1000)]}})


def make_wary(name, n, world):
    many(world, n, lambda i: ("POST", PODS, wary(name, i)))
    time.sleep(5)


def make_low(n, world):
    """Pods of no priority, all on one node, which they fill."""
    world.api.must("POST", NODES, node("full") | {"status": {"allocatable": {
        "cpu": str(n), "memory": "100Ti", "pods": "100k"}}})
    cpu = {"resources": {"requests": {"cpu": "1"}}}
    many(world, n, lambda i: ("POST", PODS, pod(
        f"low{i}", nodeName="full", containers=[{"name": "c", "image": "x", **cpu}])))


def high(name, cpu="2", **more):
    return pod(name, priorityClassName="high", nodeSelector={"kubernetes.io/hostname": "full"}, **more,
               containers=[{"name": "c", "image": "x", "resources": {"requests": {"cpu": cpu}}}])


def add_class(world):
    world.api.must("POST", "/apis/scheduling.k8s.io/v1/priorityclasses", {
        "apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "high"}, "value": 1000})
    world.api.must("PATCH", f"{NODES}/full", json.dumps({"metadata": {"labels": {
        "kubernetes.io/hostname": "full"}}}), Content_Type=MERGE)


def preempt(world):
    world.api.must("POST", PODS, high("high"))
    time.sleep(10)


def preempt_many(n, world):
    many(world, n, lambda i: ("POST", PODS, high(f"high-{i}", "1")))
    time.sleep(15)


def quota(name, n, scope=None):
    spec = {"hard": {f"requests.example.com/r{i}": "1000000" for i in range(n - 1)} | {"pods": "1000000"}}
    if scope:
        spec["scopeSelector"] = {"matchExpressions": [
            {"scopeName": "PriorityClass", "operator": "In", "values": [f"{scope}-{i}" for i in range(255)] + ["high"]}]}
    return {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": name}, "spec": spec}


def add_quotas(n, n_resources, scope, world):
    for i in range(n):
        world.api.must("POST", f"{CORE}/namespaces/default/resourcequotas", quota(f"q{i}", n_resources, scope))
    time.sleep(10)


def grow_under_quotas(n, world):
    world.api.must("POST", SETS, workload("ReplicaSet", "limited", replicas=n))
    wait_pods(world, lambda found: found >= n)
    world.api.must("PATCH", f"{SETS}/limited", json.dumps({"spec": {"replicas": 0}}), Content_Type=MERGE)
    wait_pods(world, lambda found: found == 0)


def policy(name, expression, **more):
    return {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy",
            "metadata": {"name": name}, "spec": {
                "matchConstraints": {"resourceRules": [{
                    "apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"], "resources": ["secrets"]}]},
                "validations": [{"expression": expression}], **more}}


def bind(world, name, **spec):
    world.api.must("POST", BINDINGS, {
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": name}, "spec": {"policyName": name, "validationActions": ["Deny"], **spec}})


SIXTEEN = "[0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15]"
COSTLY = f"{SIXTEEN}.all(a, {SIXTEEN}.all(b, {SIXTEEN}.all(c, {SIXTEEN}.all(d, a + b + c + d >= 0))))"


def add_costly_policies(world):
    for i in range(20):
        world.api.must("POST", POLICIES, policy(f"costly-{i}", COSTLY))
        bind(world, f"costly-{i}")
    time.sleep(1)


def secret(name):
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}}


def write_secrets(prefix, n, world):
    many(world, n, lambda i: ("POST", f"{CORE}/namespaces/default/secrets", secret(f"{prefix}{i}")))


def add_params(n, world):
    many(world, n, lambda i: ("POST", MAPS, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {
        "name": f"param-{i}", "labels": LABELS}, "data": {"k": "v"}}))
    world.api.must("POST", POLICIES, policy("params", "!has(params.data.k) || params.data.k == 'v'", paramKind={
        "apiVersion": "v1", "kind": "ConfigMap"}))
    bind(world, "params", paramRef={"selector": {}, "parameterNotFoundAction": "Allow"})
    time.sleep(1)


def add_plain_policies(n, world):
    many(world, n, lambda i: ("POST", POLICIES, policy(f"plain-{i}", "true")))
    for i in range(n):
        bind(world, f"plain-{i}")


def groups(row):
    part = functools.partial
    yield "apps", [
        row("a Deployment of 100,000, up to 10,000 pods", part(grow, 10000), part(make_nodes, 20)),
        row("20,000 of them", part(wait_pods, is_enough=lambda found: found >= 20000)),
        row("down to 12,000", part(halt, 12000)),
        row("down to 100", shrink),
        row("it is deleted", drop_all),
    ]
    yield "sets", [
        row("3,000 ReplicaSets with one selector", part(make_sets, 3000)),
        row("200 pods that all of them may adopt", make_orphans),
        row("all of it is deleted", drop_sets),
    ]
    yield "services", [
        row("a service of 2,000 pods", serve, part(make_addressed, 2000)),
        row("one of them is not ready", change_one),
        row("3,000 services of other pods", part(make_services, 3000)),
        row("500 pods beside them", part(add_pods, "a", 500)),
        row("5 services of all pods", part(make_matching_services, 5)),
        row("500 pods beside them, too", part(add_pods, "b", 500)),
    ]
    yield "daemons", [
        row("a DaemonSet on 2,000 nodes flips each second", flip, part(make_nodes, 2000)),
        row("labels of 2,000 nodes", flip_labels),
    ]
    yield "terms", [
        row("30 pods with 1,000 terms each", part(make_wary, "a", 30), part(make_nodes, 200)),
        row("200 pods that they mean", part(add_pods, "plain", 200)),
        row("30 more with 1,000 terms", part(make_wary, "b", 30)),
    ]
    yield "preempt", [
        row("5,000 pods on a node", part(make_low, 5000)),
        row("one of higher priority", preempt, add_class),
        row("1,000 of higher priority", part(preempt_many, 1000)),
    ]
    yield "namespace_quotas", [
        row("16 quotas of 256 resources", part(add_quotas, 16, 256, None)),
        row("2,000 pods under them", part(grow_under_quotas, 2000)),
    ]
    yield "policies", [
        row("20 costly policies", part(write_secrets, "a", 20), add_costly_policies),
        row("1,000 parameters", part(write_secrets, "b", 20), part(add_params, 1000)),
    ]
    yield "many_policies", [
        row("1,000 policies", part(write_secrets, "c", 20), part(add_plain_policies, 1000)),
    ]
