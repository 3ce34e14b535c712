"""What is stored is read again, whatever was asked for; and a row that is not does no harm."""

import json
import os
import sqlite3
import struct

import pytest

from nodes import pod, run_davit

MAX = 2**63 - 1
PODS = "/api/v1/namespaces/default/pods"
WAIT_S = 60


def bound_pod(name, **spec):
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "finalizers": ["example.com/held"]},
        "spec": {"nodeName": "far", "containers": [{"name": "c", "image": "i"}], **spec},
    }


def restart(node):
    """From what is on the disk, as after a crash."""
    node.kill()
    node.start()
    return node.api()


@pytest.mark.parametrize("grace", [MAX, MAX - 1, 253402300800, 10**12, -1, -MAX - 1])
def test_a_deletion_with_any_grace_is_read_again(node, api, grace):
    api.must("POST", PODS, bound_pod("p"))
    answer = api.ask("DELETE", f"{PODS}/p", {"kind": "DeleteOptions", "apiVersion": "v1",
                                              "gracePeriodSeconds": grace})
    assert answer.status in (200, 202), answer
    before = api.must("GET", f"{PODS}/p")
    api = restart(node)
    assert api.must("GET", f"{PODS}/p") == before
    answer = api.ask("DELETE", f"{PODS}/p?gracePeriodSeconds=0")
    assert answer.status in (200, 202), answer


def test_a_pod_with_any_times_is_read_again(node, api):
    api.must("POST", PODS, bound_pod(
        "p", terminationGracePeriodSeconds=MAX, activeDeadlineSeconds=2**31 - 1,
        tolerations=[{"key": "k", "operator": "Exists", "effect": "NoExecute",
                      "tolerationSeconds": -MAX}]))
    assert api.ask("DELETE", f"{PODS}/p").status in (200, 202)
    api.must("POST", "/apis/coordination.k8s.io/v1/namespaces/default/leases", {
        "metadata": {"name": "l"},
        "spec": {"leaseDurationSeconds": 2**31 - 1, "acquireTime": "9999-12-31T23:59:59.999999Z",
                 "renewTime": "0001-01-01T00:00:00.000001Z", "leaseTransitions": 2**31 - 1}})
    api.must("POST", "/api/v1/namespaces/default/events", {
        "metadata": {"name": "e"}, "involvedObject": {"namespace": "default"},
        "count": 2**31 - 1, "firstTimestamp": "0001-01-01T00:00:00.5Z",
        "lastTimestamp": "9999-12-31T23:59:59Z"})
    paths = (f"{PODS}/p", "/apis/coordination.k8s.io/v1/namespaces/default/leases/l",
             "/api/v1/namespaces/default/events/e")
    before = [api.must("GET", path) for path in paths]
    api = restart(node)
    assert [api.must("GET", path) for path in paths] == before


# ---- rows that cannot be used ----


def seal(key, value):
    """The checksum at the end of a row, as src/store/store_batch.c has it."""
    a, b = len(key) + 1, len(value)
    for text in (key, value):
        text += bytes(-len(text) % 4)
        for (word,) in struct.iter_unpack("<I", text):
            a = (a + word) & 0xFFFFFFFF
            b = (b + a) & 0xFFFFFFFF
    return struct.pack("<II", a, b)


def database(node):
    return os.path.join(node.state_dir, "state.db")


def rows_of(node, space):
    sql = sqlite3.connect(database(node))
    with sql:
        rows = sql.execute(f'SELECT k, v FROM "{space}" ORDER BY i').fetchall()
    sql.close()
    return [(key, value[:-8]) for key, value in rows]


def put_row(node, space, key, value):
    """A row that davit did not write, with the right checksum."""
    sql = sqlite3.connect(database(node))
    with sql:
        sql.execute(f'REPLACE INTO "{space}" (k, v) VALUES (?, ?)', (key, value + seal(key, value)))
    sql.close()


def asides(node):
    sql = sqlite3.connect(database(node))
    with sql:
        rows = sql.execute("SELECT space, k, v FROM _set_aside ORDER BY i").fetchall()
    sql.close()
    return [(space, key, value[:-8]) for space, key, value in rows]


OBJECT = b'{"metadata":{"name":"bad","namespace":"default","resourceVersion":"7"%s}}'
BAD_ROWS = {
    "a time that is none": ("objects", b"Pod/default/bad", OBJECT % (
        b',"deletionTimestamp":"292277026596-12-04T15:30:07Z"')),
    "no JSON": ("objects", b"Pod/default/bad", b"{"),
    "nothing": ("objects", b"Pod/default/bad", b""),
    "another name": ("objects", b"Pod/default/bad", OBJECT.replace(b'"bad"', b'"other"') % b""),
    "a version beyond all": ("objects", b"Pod/default/bad", OBJECT.replace(
        b'"7"', b'"18446744073709551615"') % b""),
    "no version": ("objects", b"Pod/default/bad", OBJECT.replace(b'"7"', b'"x"') % b""),
    "an unknown kind": ("objects", b"Gadget/default/bad", b"{}"),
    "no kind": ("objects", b"x", b"{}"),
    "a counter that is no number": ("meta", b"version", b"many"),
    "a counter beyond all": ("meta", b"version", b"18446744073709551615"),
    "a token that is none": ("tokens", b"0123", b"[]"),
    "a token with a time that is none": (
        "tokens", b"4567", b'{"user":{},"created":1e99,"expires":0}'),
    "a pod that is none": ("pods", b"uid-x", b"{]"),
    "a pod of another shape": ("pods", b"uid-x", b'{"spec":{"containers":7}}'),
    "a device record": ("devices", b"auid\0\1main\0\1example.com/gpu\0\1", b"\1\xff"),
    "a record of a later version": ("devices", b"auid\0\1main\0\1example.com/gpu\0\1", b"\x09x"),
    "a record of no kind": ("devices", b"?", b"?"),
    "a claim record": ("claims", b"cns\0\1c\0\1", b"\1\xff"),
    "a claim record of a later version": ("claims", b"cns\0\1c\0\1", b"\2"),
    "health at no time": (
        "claims", b"hdriver\0\1pool/dev\0\1", b"\1\x20" + b"\xff" * 8 + b"\x7f"),
}


def test_rows_that_cannot_be_used_are_set_aside_and_named(node, api):
    api.must("POST", PODS, bound_pod("good"))
    good = api.must("GET", f"{PODS}/good")
    assert node.stop() == 0
    for space, key, value in BAD_ROWS.values():
        put_row(node, space, key, value)
    wanted = {(space, key) for space, key, _ in BAD_ROWS.values()}
    values = {(space, key): value for space, key, value in BAD_ROWS.values()}  # the last of each
    node.start()
    api = node.api()
    assert api.must("GET", f"{PODS}/good") == good
    notes = list(node.status().notes)
    for space, key in wanted:
        name = "".join(chr(c) if 32 <= c < 127 else "." for c in key)
        assert any(note.startswith(f"{space}: the row {name} ") for note in notes), (name, notes)
        assert f"{space}: the row {name} " in node.davit("status").stdout
        assert f"{space}: the row {name} " in node.proc.log
    metrics = api.ask("GET", "/metrics").body.decode()
    assert f'davit_state_events_total{{what="row_set_aside"}} {len(wanted)}' in metrics
    # The name is free, nothing is lost, and it is told again at the next start.
    api.must("POST", PODS, bound_pod("bad"))
    assert node.stop() == 0
    assert {(space, key): value for space, key, value in asides(node)} == values
    node.start()
    assert node.api().must("GET", f"{PODS}/bad")["metadata"]["name"] == "bad"
    assert len(node.status().notes) == len(wanted)


@pytest.mark.parametrize("what", BAD_ROWS)
def test_no_row_keeps_it_from_starting(make_node, what):
    node = make_node().start()
    assert node.stop() == 0
    put_row(node, *BAD_ROWS[what])
    node.start()
    assert len(node.status().notes) == 1
    assert node.stop() == 0
    assert asides(node) == [BAD_ROWS[what]]


def test_a_lost_pod_is_named_with_what_it_held(node, plugins):
    plugins(node, "example.com/gpu", ["g0", "g1"]).register()
    node.wait_devices("example.com/gpu", 2, WAIT_S)
    assert node.admit(pod("p", ("main", {"example.com/gpu": 2}))).admitted
    assert node.stop() == 0
    assert [key for key, _ in rows_of(node, "pods")] == [b"uid-p"]
    put_row(node, "pods", b"uid-p", b"{]")
    node.start()
    (note,) = node.status().notes
    assert "uid-p (it held example.com/gpu=g0 example.com/gpu=g1)" in note
    assert note in node.proc.log


def test_an_export_goes_past_what_it_cannot_read(node, plugins):
    plugins(node, "example.com/gpu", ["g0"]).register()
    node.wait_devices("example.com/gpu", 1, WAIT_S)
    assert node.admit(pod("p", ("main", {"example.com/gpu": 1}))).admitted
    assert node.stop() == 0
    for what in ("a device record", "a claim record"):
        put_row(node, *BAD_ROWS[what])
    before = rows_of(node, "devices"), rows_of(node, "claims")
    done = run_davit("state", "export", "--state-dir", node.state_dir,
                     "--kubelet-dir", node.kubelet_dir)
    assert done.returncode == 0, done
    lines = done.stderr.splitlines()
    for space, key in (("devices", "auid"), ("claims", "cns")):
        assert any(line.startswith(f"davit: {space}: the row {key}") and "cannot be used" in line
                   for line in lines), lines
    with open(os.path.join(node.plugin_dir, "kubelet_internal_checkpoint"),
              encoding="utf-8") as file:
        entries = json.load(file)["Data"]["PodDeviceEntries"]
    assert [entry["PodUID"] for entry in entries] == ["uid-p"]
    assert (rows_of(node, "devices"), rows_of(node, "claims")) == before  # it only reads
