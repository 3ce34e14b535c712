"""Kinds that a kube-scheduler waits for: their lists are there, and always empty. Kinds of classic DRA,
which are not there: the answer says what to use instead."""

import pytest
from kubepb import MEDIA_TYPE, unwrap

EMPTY = {
    "/api/v1": ["PersistentVolume", "PersistentVolumeClaim", "ReplicationController"],
    "/apis/apps/v1": ["StatefulSet"],
    "/apis/batch/v1": ["CronJob"],
    "/apis/storage.k8s.io/v1": ["CSIDriver", "CSINode", "CSIStorageCapacity", "StorageClass",
                                "VolumeAttachment"],
}
NAMESPACED = {"PersistentVolumeClaim", "ReplicationController",
              "StatefulSet", "CronJob", "CSIStorageCapacity"}


def plural(kind):
    name = kind.lower()
    return name[:-1] + "ies" if name.endswith("y") else name + ("es" if name.endswith("s") else "s")


ALL = [(group, kind) for group, kinds in EMPTY.items() for kind in kinds]


def version_of(group):
    return group.removeprefix("/apis/").removeprefix("/api/")


def test_lists_are_empty_in_all_forms(api):
    for group, kind in ALL:
        paths = [f"{group}/{plural(kind)}"]
        if kind in NAMESPACED:
            paths.append(f"{group}/namespaces/default/{plural(kind)}")
        for path in paths:
            got = api.must("GET", path)
            assert (got["kind"], got["apiVersion"]) == (f"{kind}List", version_of(group))
            assert got["items"] == [] and int(got["metadata"]["resourceVersion"]) > 0, got
            # as client-go lists
            again = api.must("GET", f"{path}?limit=500&resourceVersion=0&fieldSelector=a.b%3Dc")
            assert again["items"] == []
            answer = api.ask("GET", path, Accept=f"{MEDIA_TYPE},application/json")
            assert answer.fields["Content-Type"].startswith(MEDIA_TYPE), answer
            assert unwrap(answer.body)[:2] == (version_of(group), f"{kind}List")
        table = api.must("GET", paths[0],
                         Accept="application/json;as=Table;v=v1;g=meta.k8s.io")
        assert (table["kind"], table["rows"]) == ("Table", []), table
        assert [c["name"] for c in table["columnDefinitions"]] == ["Name", "Age"]


def test_discovery_has_them_for_reading_only(api):
    groups = {group["name"]: group for group in api.must("GET", "/apis")["groups"]}
    for group, kinds in EMPTY.items():
        if group != "/api/v1":
            assert groups[group.split("/")[2]]["preferredVersion"]["version"] == "v1"
        found = {one["kind"]: one for one in api.must("GET", group)["resources"]
                 if one["kind"] in kinds}
        assert sorted(found) == sorted(kinds)
        for kind, one in found.items():
            assert one["verbs"] == ["get", "list", "watch"], one
            assert one["name"] == plural(kind) and one["namespaced"] == (kind in NAMESPACED)


@pytest.mark.parametrize("accept", ["application/json", f"{MEDIA_TYPE};stream=watch"])
def test_watches_tell_that_there_is_nothing(api, accept):
    """As client-go begins: the list as a stream, whose end is a bookmark."""
    for group, kind in ALL:
        path = (f"{group}/{plural(kind)}?watch=true&allowWatchBookmarks=true&sendInitialEvents=true"
                "&resourceVersionMatch=NotOlderThan&timeoutSeconds=1")
        connection, answer = api.open("GET", path, Accept=accept)
        assert answer.status == 200, answer.read()
        stream = answer.read()
        connection.close()
        assert stream.count(b"k8s.io/initial-events-end") == 1, stream
        assert kind.encode() in stream
        assert b"ADDED" not in stream and b"ERROR" not in stream
        assert stream.count(b"BOOKMARK") == 2, stream  # and one before the end


def test_an_old_watch_goes_on_from_any_version(api):
    connection, answer = api.open("GET", "/api/v1/watch/replicationcontrollers?resourceVersion=1"
                                  "&timeoutSeconds=1")
    assert answer.status == 200 and answer.read() == b""
    connection.close()


def test_nothing_can_be_written(api):
    for group, kind in ALL:
        scope = "/namespaces/default" if kind in NAMESPACED else ""
        path = f"{group}{scope}/{plural(kind)}"
        body = {"apiVersion": version_of(group), "kind": kind, "metadata": {"name": "a"}}
        for method, where in (("POST", path), ("PUT", f"{path}/a"), ("DELETE", f"{path}/a"),
                              ("DELETE", path)):
            status = api.refused(405, method, where, body)
            assert f"davit has no {plural(kind)}" in status["message"], status
        assert api.refused(404, "GET", f"{path}/a")["reason"] == "NotFound"
        api.refused(404, "GET", f"{path}/a/status")


def test_kubectl_sees_none(kubectl):
    for kind in ("replicationcontrollers", "storageclasses", "statefulsets"):
        assert "No resources found" in kubectl("get", kind)


CLASSIC = [
    ("v1alpha2", "resourceclasses", ""),
    ("v1alpha2", "podschedulingcontexts", "/namespaces/default"),
    ("v1alpha2", "resourceclaims", "/namespaces/default"),
    ("v1alpha2", "resourceclaimparameters", "/namespaces/default"),
    ("v1alpha1", "podschedulings", "/namespaces/default"),
    ("v1alpha3", "podschedulingcontexts", "/namespaces/default"),
    ("v1alpha3", "resourceclaims", "/namespaces/default"),
]


def test_classic_dra_is_refused_with_the_way_to_move(api):
    for version, resource, scope in CLASSIC:
        path = f"/apis/resource.k8s.io/{version}{scope}/{resource}"
        for method, where in (("POST", path), ("GET", path), ("GET", f"{path}/a")):
            status = api.refused(404, method, where, {} if method == "POST" else None)
            assert f"resource.k8s.io/{version}" in status["message"], status
            assert "DeviceClass" in status["message"] and "resource.k8s.io/v1" in status["message"]
    # what is no kind of any version is told as ever
    status = api.refused(404, "GET", "/apis/resource.k8s.io/v1/nonsense")
    assert status["message"] == "the server could not find the requested resource"
