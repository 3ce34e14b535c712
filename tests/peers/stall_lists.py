"""Rows of bench_stall.py: many objects, read, watched and deleted."""

import functools
import threading

from servers import CLAIMS, CORE, MAPS, PODS, RESOURCE, claim, config_map, merge_patch
from stall_objects import ask, map_of, pod, slice_of, with_meta

N_CLAIMS = 30000
N_DEPENDANTS = 10000
N_WATCHES = 600
N_PODS = 10000
N_WRITERS = 4
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
PARTIAL = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"
PROTOBUF = "application/vnd.kubernetes.protobuf"


def in_threads(world, act, n):
    """act(number) for all numbers under n."""

    def run(first):
        for number in range(first, n, N_WRITERS):
            act(number)
        world.api.disconnect()

    threads = [threading.Thread(target=run, args=(first,)) for first in range(N_WRITERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def make_many(world, path, make, n):
    in_threads(world, lambda number: world.api.must("POST", path, make(number)), n)


def make_claims(world):
    make_many(world, CLAIMS, lambda i: claim(f"c{i}", labels={"k": f"v{i % 10}"}), N_CLAIMS)


def list_all(world, path, **fields):
    connection, answer = world.api.open("GET", path, **fields)
    while answer.read(1 << 20):
        pass
    connection.close()


def list_pages(world, path):
    token = ""
    for _ in range(20):
        page = world.api.must("GET", f"{path}?limit=500&continue={token}")
        token = page["metadata"].get("continue")
        if not token:
            break


def open_watches(world):
    """Watches of one large object, which nobody reads from while it changes."""
    ask(world, "POST", MAPS, map_of("watched", 9, 100000))
    world.watches = []
    for _ in range(N_WATCHES):
        connection, answer = world.api.open(
            "GET", f"{MAPS}?watch=true&fieldSelector=metadata.name%3Dwatched&resourceVersion=0")
        assert answer.status == 200
        world.watches.append((connection, answer))


def change_watched(world):
    merge_patch(world.api, f"{MAPS}/watched", {"data": {"k000000": "w"}})
    ask(world, "GET", "/healthz", None)


def close_watches(world):
    for connection, _ in world.watches:
        connection.close()
    ask(world, "GET", "/healthz", None)


def fill_history(world):
    for number in range(200):
        merge_patch(world.api, f"{MAPS}/watched", {"metadata": {"labels": {"n": f"{number}"}}})


def make_dependants(world):
    owner = world.api.must("POST", MAPS, config_map("owner"))
    reference = [{"apiVersion": "v1", "kind": "ConfigMap", "name": "owner",
                  "uid": owner["metadata"]["uid"]}]
    make_many(world, MAPS, lambda i: config_map(f"d{i}", ownerReferences=reference), N_DEPENDANTS)


def wait_gone(world, path):
    # The certificate that every namespace has is no part of it.
    others = "fieldSelector=metadata.name%21%3Dkube-root-ca.crt"
    while world.api.must("GET", f"{path}?limit=1&{others}")["items"]:
        pass


def delete_owner(world):
    ask(world, "DELETE", f"{MAPS}/owner", None)
    wait_gone(world, MAPS)


def make_space(world):
    ask(world, "POST", f"{CORE}/namespaces",
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "many"}})
    make_many(world, f"{CORE}/namespaces/many/configmaps", lambda i: config_map(f"m{i}"),
              N_DEPENDANTS)


def delete_space(world):
    ask(world, "DELETE", f"{CORE}/namespaces/many", None)
    wait_gone(world, f"{CORE}/namespaces/many/configmaps")


def storm(n, method, path, body=None):
    def act(world):
        for _ in range(n):
            ask(world, method, path, body)

    return act


def access_review():
    return {"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": {"verb": "get", "resource": "pods"}}}


def make_slices(world):
    def make(i):
        doc = slice_of(f"s{i}", 128, 16)
        doc["spec"]["pool"] |= {"name": f"p{i}"}
        return doc

    make_many(world, f"{RESOURCE}/v1/resourceslices", make, 200)


def groups(row):
    part = functools.partial
    yield "claims", [
        row(f"list of {N_CLAIMS} claims", lambda w: list_all(w, CLAIMS), make_claims),
        row("list of them as a table", lambda w: list_all(w, CLAIMS, Accept=TABLE)),
        row("list of their metadata", lambda w: list_all(w, CLAIMS, Accept=PARTIAL)),
        row("list of them as protobuf", lambda w: list_all(w, CLAIMS, Accept=PROTOBUF)),
        row("list of them indented", lambda w: list_all(w, f"{CLAIMS}?pretty=true")),
        row("list by a label", lambda w: list_all(w, f"{CLAIMS}?labelSelector=k%3Dv1")),
        row("list by a field", lambda w: list_all(w, f"{CLAIMS}?fieldSelector=metadata.name%3Dc1")),
        row("list in pages", part(list_pages, path=CLAIMS)),
        row("list of an old version", lambda w: list_all(
            w, f"{CLAIMS}?resourceVersionMatch=Exact&resourceVersion=20000")),
        row("watch from now on", lambda w: w.api.watch(CLAIMS, Connection="close").close()),
        row("restart with all of them", lambda w: w.restart()),
        row("delete the collection", lambda w: ask(w, "DELETE", CLAIMS, None)),
    ]
    yield "watches", [
        row(f"{N_WATCHES} watches of an object of 900 kB", change_watched, open_watches),
        row("end of all of them", close_watches),
        row("watch from an old version", lambda w: w.api.watch(
            f"{MAPS}?resourceVersion=10&timeoutSeconds=1").close(), fill_history),
    ]
    yield "deletions", [  # of their own: they wait until no ConfigMap is left
        row("delete an owner of 10,000", delete_owner, make_dependants),
        row("delete a namespace of 10,000", delete_space, make_space),
    ]
    yield "others", [
        row("list of 10,000 pods", lambda w: list_all(w, PODS), lambda w: make_many(
            w, PODS, lambda i: pod(f"p{i}", schedulingGates=[{"name": "g"}]), N_PODS)),
        row("2,000 pods that no node takes", lambda w: make_many(
            w, PODS, lambda i: pod(f"q{i}", nodeSelector={"a": "b"}), 2000)),
        row("200 slices of 128 devices", lambda w: list_all(
            w, f"{RESOURCE}/v1/resourceslices"), make_slices),
        row("a pod of 2,000 labels", lambda w: ask(w, "POST", PODS, with_meta(
            pod("l"), labels={f"k{i}": "v" for i in range(2000)}))),
        row("OpenAPI v2, 20 times", storm(20, "GET", "/openapi/v2")),
        row("OpenAPI v3, 20 times", storm(20, "GET", "/openapi/v3/api/v1")),
        row("discovery, 100 times", storm(100, "GET", "/apis")),
        row("300 access reviews", storm(
            300, "POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
            access_review())),
        row("metrics, 20 times", storm(20, "GET", "/metrics")),
    ]
