"""Rows of bench_stall.py: writes of large objects."""

import functools
import json

from servers import CLAIMS, CORE, MAPS, PODS, RESOURCE, claim, config_map

APPLY = "application/apply-patch+yaml"
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
JSON_PATCH = "application/json-patch+json"

N_ENV = 60000
N_MANY = 40000
N_OWNERS = 20000


def ask(world, method, path, body, **fields):
    """Sends it, whatever the answer: a refusal has to be as quick as the rest."""
    answer = world.api.ask(method, path, body, **fields)
    assert answer.status < 500 or answer.status == 504, answer
    return answer


def pod(name, container=None, **spec):
    one = {"name": "c", "image": "x", **(container or {})}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"containers": [one], **spec},
    }


def env_pod(name, n=N_ENV, value="v"):
    return pod(name, {"env": [{"name": f"E{i}", "value": value} for i in range(n)]})


def with_meta(doc, **meta):
    doc["metadata"] |= meta
    return doc


def create(path, make, world):
    ask(world, "POST", path, make())


def apply(path, make, manager, world):
    doc = make()
    path = f"{path}/{doc['metadata']['name']}?fieldManager={manager}&force=true"
    ask(world, "PATCH", path, json.dumps(doc), Content_Type=APPLY)


def patch(path, content_type, make, world):
    ask(world, "PATCH", path, json.dumps(make()), Content_Type=content_type)


def owners(n):
    return [
        {"apiVersion": "v1", "kind": "ConfigMap", "name": f"o{i}", "uid": f"u{i}"}
        for i in range(n)
    ]


def many():
    """What lists and maps of a pod may be long, by name."""
    numbers = range(N_MANY)
    return {
        "containers": lambda name: pod(
            name, containers=[{"name": f"c{i}", "image": "x"} for i in numbers]),
        "init containers": lambda name: pod(
            name, initContainers=[{"name": f"i{i}", "image": "x"} for i in numbers]),
        "limits": lambda name: pod(
            name, {"resources": {"limits": {f"a.b/r{i}": "1" for i in numbers}}}),
        "resourceClaims": lambda name: pod(
            name, resourceClaims=[{"name": f"c{i}", "resourceClaimName": "x"} for i in numbers]),
        "claims of a container": lambda name: pod(
            name, {"resources": {"claims": [{"name": f"c{i}"} for i in numbers]}},
            resourceClaims=[{"name": f"c{i}", "resourceClaimName": "x"} for i in numbers]),
        "volumes": lambda name: pod(
            name, volumes=[{"name": f"v{i}", "emptyDir": {}} for i in numbers]),
        "volume mounts": lambda name: pod(
            name, {"volumeMounts": [{"name": "v", "mountPath": f"/m{i}"} for i in numbers]},
            volumes=[{"name": "v", "emptyDir": {}}]),
        "ports": lambda name: pod(
            name, {"ports": [{"containerPort": i % 65535 + 1, "hostPort": i % 65535 + 1}
                             for i in numbers]}),
        "tolerations": lambda name: pod(
            name, tolerations=[{"key": f"k{i}", "operator": "Exists"} for i in numbers]),
        "scheduling gates": lambda name: pod(
            name, schedulingGates=[{"name": f"g{i}"} for i in numbers]),
        "host aliases": lambda name: pod(
            name, hostAliases=[{"ip": f"10.0.{i // 256}.{i % 256}"} for i in numbers]),
        "node selector": lambda name: pod(name, nodeSelector={f"k{i}": "v" for i in numbers}),
        "labels": lambda name: with_meta(pod(name), labels={f"k{i}": "v" for i in numbers}),
        "annotations": lambda name: with_meta(
            pod(name), annotations={f"k{i}": "v" for i in range(20000)}),
        "finalizers": lambda name: with_meta(
            pod(name), finalizers=[f"a.b/f{i}" for i in numbers]),
        "ownerReferences": lambda name: with_meta(pod(name), ownerReferences=owners(N_OWNERS)),
    }


def claim_requests(n):
    doc = claim("many-requests")
    doc["spec"]["devices"]["requests"] = [
        {"name": f"r{i}", "exactly": {"deviceClassName": "gpu"}} for i in range(n)
    ]
    return doc


def slice_of(name, n_devices, n_attributes=0):
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": name},
        "spec": {
            "driver": "gpu.example.com",
            "nodeName": "n1",
            "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1},
            "devices": [
                {"name": f"d{i}", "attributes": {f"a{k}": {"int": k} for k in range(n_attributes)}}
                for i in range(n_devices)
            ],
        },
    }


def map_of(name, n_keys, n_bytes):
    return config_map(name, {f"k{i:06}": "v" * n_bytes for i in range(n_keys)})


def operations(n):
    """Operations at the front and in the middle of a long list."""
    made = []
    for i in range(n):
        made.append({"op": "add", "path": "/spec/containers/0/env/0",
                     "value": {"name": f"N{i}", "value": "v"}})
        made.append({"op": "remove", "path": "/spec/containers/0/env/30000"})
    return made


def deep(n):
    return '{"a":' * n + "1" + "}" * n


def aliases():
    """A YAML document that names one list again and again."""
    lines = ["apiVersion: v1", "kind: ConfigMap", "metadata:", "  name: y", "x0: &x0 [a,a,a,a,a,a,a,a]"]
    lines += [f"x{i}: &x{i} [{','.join([f'*x{i - 1}'] * 8)}]" for i in range(1, 12)]
    return "\n".join(lines)


def groups(row):
    part = functools.partial
    env = f"{PODS}/env"
    yield "env", [
        row(f"create a pod of {N_ENV} env entries", part(create, PODS, lambda: env_pod("env"))),
        row("server-side apply of it", part(apply, PODS, lambda: env_pod("env"), "one")),
        row("apply of it again", part(apply, PODS, lambda: env_pod("env"), "one")),
        row("apply of it by another manager",
            part(apply, PODS, lambda: env_pod("env", value="w"), "two")),
        row("apply of a new pod of as many",
            part(apply, PODS, lambda: env_pod("env-applied"), "one")),
        row("update of it", lambda w: ask(w, "PUT", env, w.api.must("GET", env))),
        row("merge patch of it", part(patch, env, MERGE, lambda: env_pod("env"))),
        row("strategic patch of it", part(patch, env, STRATEGIC, lambda: env_pod("env", 59000))),
        row("json patch of it with 10,000 operations",
            part(patch, env, JSON_PATCH, lambda: operations(5000))),
        row("status patch of it", part(patch, f"{env}/status", MERGE,
                                       lambda: {"status": {"phase": "Running"}})),
        row("get of it", lambda w: ask(w, "GET", env, None)),
        row("get of it as a table", lambda w: ask(
            w, "GET", env, None, Accept="application/json;as=Table;v=v1;g=meta.k8s.io")),
        row("delete of it", lambda w: ask(w, "DELETE", env, None)),
    ]
    rows = []
    for number, (what, make) in enumerate(many().items()):
        name = f"many-{number}"
        rows.append(row(f"create: {what}", part(create, PODS, part(make, name))))
        rows.append(row(f"apply: {what}", part(apply, PODS, part(make, f"{name}-a"), "one")))
        rows.append(row(f"apply again: {what}", part(apply, PODS, part(make, f"{name}-a"), "one")))
    yield "lists", rows
    maps = f"{MAPS}/wide"
    yield "maps", [
        row("create a ConfigMap of 60,000 keys", part(create, MAPS, lambda: map_of("wide", 60000, 1))),
        row("merge patch of all its keys",
            part(patch, maps, MERGE, lambda: {"data": {f"k{i:06}": "w" for i in range(60000)}})),
        row("strategic patch of all its keys",
            part(patch, maps, STRATEGIC, lambda: {"data": {f"k{i:06}": "x" for i in range(60000)}})),
        row("merge patch that removes 30,000",
            part(patch, maps, MERGE, lambda: {"data": {f"k{i:06}": None for i in range(30000)}})),
        row("json patch that removes 10,000 keys", part(patch, maps, JSON_PATCH, lambda: [
            {"op": "remove", "path": f"/data/k{i:06}"} for i in range(30000, 40000)])),
        row("apply of 60,000 keys", part(apply, MAPS, lambda: map_of("wide2", 60000, 1), "one")),
        row("apply of them again", part(apply, MAPS, lambda: map_of("wide2", 60000, 1), "one")),
        row("create a ConfigMap of 1 MB", part(create, MAPS, lambda: map_of("large", 10, 100000))),
        row("create a ConfigMap of 3 MB", part(create, MAPS, lambda: map_of("larger", 30, 100000))),
        row("create: 20,000 ownerReferences",
            part(create, MAPS, lambda: with_meta(config_map("o"), ownerReferences=owners(N_OWNERS)))),
        row("apply: 20,000 ownerReferences",
            part(apply, MAPS, lambda: with_meta(config_map("oa"), ownerReferences=owners(N_OWNERS)),
                 "one")),
        row("apply again: 20,000 ownerReferences",
            part(apply, MAPS, lambda: with_meta(config_map("oa"), ownerReferences=owners(N_OWNERS)),
                 "one")),
        row("create: 100,000 unknown fields", lambda w: ask(
            w, "POST", f"{MAPS}?fieldValidation=Strict", config_map("u") | {f"x{i}": 1 for i in range(100000)})),
        row("create: deep JSON", lambda w: ask(
            w, "POST", MAPS, deep(100000), Content_Type="application/json")),
        row("create: a body of 3 MB of brackets", lambda w: ask(
            w, "POST", MAPS, "[" * 3000000, Content_Type="application/json")),
        row("create: YAML with aliases in aliases", lambda w: ask(
            w, "POST", MAPS, aliases(), Content_Type="application/yaml")),
        row("create: 2 MB of YAML", lambda w: ask(
            w, "POST", MAPS, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: yy}\ndata:\n"
            + "".join(f"  k{i}: v\n" for i in range(150000)), Content_Type="application/yaml")),
        row("create: a claim of 20,000 requests",
            part(create, CLAIMS, lambda: claim_requests(20000))),
        row("apply: a claim of 20,000 requests",
            part(apply, CLAIMS, lambda: claim_requests(20000), "one")),
        row("create: a slice of 20,000 devices", part(
            create, f"{RESOURCE}/v1/resourceslices", lambda: slice_of("s1", 20000))),
        row("create: a slice of 128 devices of 32 attributes", part(
            create, f"{RESOURCE}/v1/resourceslices", lambda: slice_of("s2", 128, 32))),
        row("review: 20,000 groups", lambda w: ask(
            w, "POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews",
            {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
             "spec": {"user": "x", "groups": [f"g{i}" for i in range(20000)],
                      "resourceAttributes": {"verb": "get", "resource": "pods"}}})),
        row("namespace of 40,000 labels", lambda w: ask(
            w, "POST", f"{CORE}/namespaces",
            {"apiVersion": "v1", "kind": "Namespace",
             "metadata": {"name": "ns", "labels": {f"k{i}": "v" for i in range(40000)}}})),
    ]
