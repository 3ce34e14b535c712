"""kubectl changes things: create, apply, edit, label, patch, replace, delete, cordon, drain.

Exit codes are those that it ends with against a cluster.
"""

import json
import os
import stat

import pytest

from kubectls import wait_row

CLASS = """
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: gpu}
spec: {selectors: [{cel: {expression: 'device.driver == "gpu.example.com"'}}]}
"""
CLAIM = """
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: c1, labels: {a: b}}
spec: {devices: {requests: [{name: r0, exactly: {deviceClassName: gpu}}]}}
"""
POD = """
apiVersion: v1
kind: Pod
metadata: {name: p1, labels: {a: b}}
spec:
  containers: [{name: c, image: i, resources: {claims: [{name: x}]}}]
  resourceClaims: [{name: x, resourceClaimName: c1}]
"""
ALL = "---".join([CLASS, CLAIM, POD])
HELD = CLAIM.replace("labels: {a: b}", "finalizers: [example.com/held]")
MAP = """
apiVersion: v1
kind: ConfigMap
metadata: {name: m}
data: {one: '1', two: '2'}
"""


def field(kubectl, resource, name, path):
    return kubectl("get", resource, name, "-o", f"jsonpath={{{path}}}")


def test_what_exists_is_not_created_again(kubectl):
    assert "pod/p1 created" in kubectl("create", "-f", "-", stdin=ALL)
    assert "AlreadyExists" in kubectl("create", "-f", "-", stdin=ALL, status=1)
    kubectl("create", "namespace", "ns2")
    kubectl("create", "configmap", "m", "--from-literal=k=v", "-n", "ns2")
    kubectl("create", "secret", "generic", "s", "--from-literal=k=v", "-n", "ns2")
    assert kubectl("get", "cm", "m", "-n", "ns2", "-o", "jsonpath={.data.k}") == "v"
    assert "not found" in kubectl("create", "-f", "-", "-n", "nowhere", stdin=MAP, status=1)
    assert "created (dry run)" in kubectl("create", "cm", "dry", "--dry-run=client")
    kubectl("create", "cm", "dry", "--dry-run=server")
    kubectl("get", "cm", "dry", status=1)


def test_bad_objects_are_refused_with_their_reason(kubectl):
    for text, part in (
        (CLAIM.replace("deviceClassName: gpu", "deviceClassName: -x-"), "Invalid value"),
        (CLAIM.replace("deviceClassName: gpu", "count: 2"), "deviceClassName"),
        (CLAIM.replace("name: c1", "name: C_1"), "metadata.name"),
        (POD.replace("resourceClaimName: c1", "source: {resourceClaimName: c1}"), "source"),
        (CLAIM.replace("devices:", "nope: 1, devices:"), "nope"),
        ("apiVersion: nope/v1\nkind: Nope\nmetadata: {name: x}", "no matches for kind"),
        ("apiVersion: v1\nkind: [Pod", "error"),
    ):
        assert part in kubectl("create", "-f", "-", stdin=text, status=1), text


def test_applied_changes_arrive_and_no_more(kubectl):
    assert "pod/p1 created" in kubectl("apply", "-f", "-", stdin=ALL)
    assert "pod/p1 unchanged" in kubectl("apply", "-f", "-", stdin=ALL)
    kubectl("label", "pod", "p1", "mine=1")
    changed = ALL.replace("{a: b}", "{c: d}")
    text = kubectl("apply", "-f", "-", stdin=changed)
    assert "pod/p1 configured" in text and "c1 configured" in text
    assert json.loads(field(kubectl, "pod", "p1", ".metadata.labels")) == {"c": "d", "mine": "1"}
    assert kubectl("diff", "-f", "-", stdin=changed) == ""
    assert "+    e: f" in kubectl("diff", "-f", "-", status=1,
                                  stdin=changed.replace("{c: d}", "{c: d, e: f}"))
    image = changed.replace("image: i,", "image: j,")
    kubectl("apply", "-f", "-", stdin=image)
    assert field(kubectl, "pod", "p1", ".spec.containers[0].image") == "j"
    moved = image.replace("resourceClaimName: c1", "resourceClaimName: c2")
    assert "Forbidden" in kubectl("apply", "-f", "-", stdin=moved, status=1)
    kubectl("apply", "-f", "-", stdin=MAP)
    kubectl("apply", "-f", "-", stdin=MAP.replace("one: '1', ", ""))
    assert json.loads(field(kubectl, "cm", "m", ".data")) == {"two": "2"}


def test_appliers_own_their_fields(kubectl):
    def apply(manager, text, *words, status=0):
        return kubectl("apply", "--server-side", f"--field-manager={manager}", "-f", "-", *words,
                       stdin=text, status=status)

    assert "serverside-applied" in apply("one", MAP)
    apply("one", MAP)
    other = MAP.replace("one: '1', two: '2'", "one: '9', three: '3'")
    text = apply("two", other, status=1)
    assert "conflict" in text and ".data.one" in text
    assert json.loads(field(kubectl, "cm", "m", ".data")) == {"one": "1", "two": "2"}
    apply("two", other, "--force-conflicts")
    assert json.loads(field(kubectl, "cm", "m", ".data")) == {"one": "9", "two": "2", "three": "3"}
    apply("two", other.replace("three: '3'", "four: '4'"))
    assert json.loads(field(kubectl, "cm", "m", ".data")) == {"one": "9", "two": "2", "four": "4"}
    for text in (CLASS, CLAIM, POD):
        apply("one", text)
        apply("one", text)
    apply("two", POD.replace("{a: b}", "{x: why}"))
    assert json.loads(field(kubectl, "pod", "p1", ".metadata.labels")) == {"a": "b", "x": "why"}


def editor(folder, name, command):
    path = os.path.join(folder, name)
    with open(path, "w", encoding="utf-8") as script:
        script.write(f"#!/bin/sh\n{command}\n")
    os.chmod(path, stat.S_IRWXU)
    return {"EDITOR": path, "KUBE_EDITOR": path, "TMPDIR": folder}


def test_objects_are_edited(kubectl, short_dir):
    kubectl("create", "-f", "-", stdin=ALL)
    better = editor(short_dir, "better", "sed -i 's/a: b/a: edited/' \"$1\"")
    for thing in ("pod/p1", "resourceclaim/c1"):
        assert "edited" in kubectl("edit", thing, env=better)
        assert kubectl("get", thing, "-o", "jsonpath={.metadata.labels.a}") == "edited"
    same = editor(short_dir, "same", "true")
    assert "no changes made" in kubectl("edit", "pod", "p1", env=same)
    worse = editor(short_dir, "worse", "sed -i 's/deviceClassName: .*/deviceClassName: x/' \"$1\"")
    kubectl("edit", "resourceclaim", "c1", env=worse, status=1)  # immutable
    fails = editor(short_dir, "fails", "exit 1")
    kubectl("edit", "pod", "p1", env=fails, status=1)


def test_labels_and_annotations_are_set_and_taken_away(kubectl):
    kubectl("create", "-f", "-", stdin=ALL)
    for thing in ("pod/p1", "deviceclass/gpu"):
        for verb, path in (("label", "labels"), ("annotate", "annotations")):
            kubectl(verb, thing, "x=1", "y=2")
            kubectl(verb, thing, "x=2", status=1)
            kubectl(verb, thing, "x=2", "--overwrite")
            kubectl(verb, thing, "y-")
            found = json.loads(kubectl("get", thing, "-o", f"jsonpath={{.metadata.{path}}}"))
            assert found.get("x") == "2" and "y" not in found
    kubectl("label", "pods", "--all", "all=1")
    kubectl("label", "pods", "-l", "all=1", "picked=1")
    assert field(kubectl, "pod", "p1", ".metadata.labels.picked") == "1"
    kubectl("label", "pod", "p1", "bad label=1", status=1)
    kubectl("label", "pod", "p1", "good=not!good", status=1)
    kubectl("label", "pod", "p1", "z=1", "--resource-version=1", status=1)


PATCHES = [
    ("strategic", '{"metadata":{"labels":{"k":"1"}}}', "1"),
    ("merge", '{"metadata":{"labels":{"k":"2"}}}', "2"),
    ("json", '[{"op":"replace","path":"/metadata/labels/k","value":"3"}]', "3"),
    ("merge", '{"metadata":{"labels":{"k":null}}}', ""),
    ("json", '[{"op":"add","path":"/metadata/labels/k","value":"5"}]', "5"),
    ("strategic", '{"metadata":{"labels":{"$patch":"replace","k":"6"}}}', "6"),
]


def test_patches_of_all_types_are_taken(kubectl):
    kubectl("create", "-f", "-", stdin=ALL)
    for thing in ("pod/p1", "resourceclaim/c1"):
        for kind, patch, value in PATCHES:
            kubectl("patch", thing, f"--type={kind}", "-p", patch)
            assert kubectl("get", thing, "-o", "jsonpath={.metadata.labels.k}") == value, patch
        assert "no change" in kubectl("patch", thing, "-p", PATCHES[-1][1])
    kubectl("patch", "pod", "p1", "-p", '{"spec":{"containers":[{"name":"c","image":"new"}]}}')
    assert field(kubectl, "pod", "p1", ".spec.containers[*].image") == "new"
    for kind, patch in (
        ("json", '[{"op":"test","path":"/metadata/name","value":"zz"}]'),
        ("json", '[{"op":"remove","path":"/spec/nope"}]'),
        ("json", '[{"op":"nope","path":"/a"}]'),
        ("merge", '{"metadata":{"name":"zz"}}'),
        ("merge", '{"metadata":{"resourceVersion":"1"}}'),
        ("merge", '{"metadata":{"uid":"zz"}}'),
        ("merge", '{"spec":{"nodeName":7}}'),
        ("merge", "[1]"),
        ("merge", "{"),
        ("strategic", '{"spec":{"containers":[{"image":"x"}]}}'),
        ("strategic", '{"spec":{"containers":null}}'),
    ):
        kubectl("patch", "pod", "p1", f"--type={kind}", "-p", patch, status=1)
    if not kubectl.is_old:
        kubectl("patch", "pod", "p1", "--subresource=status", "-p", '{"status":{"message":"m"}}')
        assert field(kubectl, "pod", "p1", ".status.message") == "m"


def test_objects_are_replaced(kubectl):
    kubectl("replace", "-f", "-", stdin=MAP, status=1)  # not there yet
    kubectl("create", "-f", "-", stdin=MAP)
    old = kubectl("get", "cm", "m", "-o", "json")
    kubectl("replace", "-f", "-", stdin=MAP.replace("one: '1', ", ""))
    assert json.loads(field(kubectl, "cm", "m", ".data")) == {"two": "2"}
    assert "modified" in kubectl("replace", "-f", "-", stdin=old, status=1)  # from before
    uid = field(kubectl, "cm", "m", ".metadata.uid")
    kubectl("replace", "--force", "-f", "-", stdin=MAP)
    assert field(kubectl, "cm", "m", ".metadata.uid") != uid


def test_what_is_deleted_is_gone(kubectl):
    kubectl("create", "-f", "-", stdin=ALL)
    assert 'pod "p1" deleted' in kubectl("delete", "pod", "p1")
    kubectl("get", "pod", "p1", status=1)
    kubectl("delete", "pod", "p1", status=1)
    kubectl("delete", "pod", "p1", "--ignore-not-found")
    kubectl("delete", "-f", "-", stdin=ALL, status=1)  # the pod is gone already
    for name in "uvwx":
        kubectl("create", "cm", name)
    kubectl("label", "cm", "u", "v", "pick=1")
    kubectl("delete", "cm", "-l", "pick=1")
    assert kubectl("get", "cm", "-o", "name").split() == ["configmap/w", "configmap/x"]
    kubectl("delete", "cm", "--all")
    assert "No resources found" in kubectl("get", "cm")
    kubectl("delete", "cm", status=1)  # which?


def test_finalizers_hold_what_is_deleted(kubectl, procs):
    kubectl("create", "-f", "-", stdin=HELD)
    kubectl("delete", "resourceclaim", "c1", "--timeout=200ms", status=1)  # waits in vain
    assert kubectl.rows("resourceclaim", "c1")[1][1].startswith("deleted")
    kubectl("delete", "resourceclaim", "c1", "--wait=false")
    waiting = kubectl.start(procs, "delete", "resourceclaim", "c1")
    wait_row(waiting, "resourceclaim.resource.k8s.io", '"c1"', "deleted")
    kubectl("patch", "resourceclaim", "c1", "--type=merge", "-p",
            '{"metadata":{"finalizers":["example.com/held","example.com/new"]}}', status=1)
    kubectl("patch", "resourceclaim", "c1", "--type=merge", "-p",
            '{"metadata":{"finalizers":null}}')
    assert waiting.wait() == 0, waiting.describe()
    kubectl("get", "resourceclaim", "c1", status=1)


def test_pods_go_with_grace_or_without(kubectl):
    bound = POD.replace("spec:\n", "spec:\n  nodeName: n1\n")
    for name in ("p1", "p2", "p3"):
        kubectl("create", "-f", "-", stdin=bound.replace("name: p1", f"name: {name}"))
    kubectl("delete", "pod", "p1", "--wait=false")  # its node has to stop it first
    assert field(kubectl, "pod", "p1", ".metadata.deletionGracePeriodSeconds") == "30"
    assert kubectl.rows("pod", "p1")[1][2] == "Terminating"
    kubectl("delete", "pod", "p1", "--grace-period=5", "--wait=false")
    assert field(kubectl, "pod", "p1", ".metadata.deletionGracePeriodSeconds") == "5"
    kubectl("delete", "pod", "p1", "--force", "--grace-period=0")
    kubectl("get", "pod", "p1", status=1)
    kubectl("delete", "pod", "p2", "--now", "--wait=false")
    assert field(kubectl, "pod", "p2", ".metadata.deletionGracePeriodSeconds") == "1"
    kubectl("delete", "pods", "--all", "--force", "--grace-period=0")
    assert "No resources found" in kubectl("get", "pods")


def test_a_namespace_takes_all_with_it(kubectl):
    kubectl("create", "namespace", "ns2")
    kubectl("apply", "-n", "ns2", "-f", "-", stdin=ALL)
    kubectl("delete", "namespace", "ns2", "--timeout=60s")
    kubectl("get", "namespace", "ns2", status=1)
    assert "No resources found" in kubectl("get", "pods", "-A")
    kubectl("delete", "namespace", "default", status=1)


def test_a_node_is_cordoned_and_drained(kubectl):
    kubectl("create", "-f", "-", 
            stdin='{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "w1"}}')
    kubectl("cordon", "w1")
    assert "SchedulingDisabled" in kubectl("get", "node", "w1")
    assert "already cordoned" in kubectl("cordon", "w1")
    kubectl("uncordon", "w1")
    kubectl("cordon", "nope", status=1)
    bound = POD.replace("spec:\n", "spec:\n  nodeName: w1\n")
    kubectl("create", "-f", "-", stdin=bound)
    kubectl("create", "-f", "-", stdin=bound.replace("name: p1", "name: p2").replace("w1", "w2"))
    assert "use --force" in kubectl("drain", "w1", status=1)
    text = kubectl("drain", "w1", "--force", "--grace-period=0", "--timeout=60s")
    assert "evicting pod default/p1" in text or kubectl.is_old  # which looks for policy/v1beta1
    assert kubectl("get", "pods", "-o", "name").split() == ["pod/p2"]
    kubectl("taint", "node", "w1", "k=v:NoSchedule")
    assert field(kubectl, "node", "w1", ".spec.taints[*].key").split()[-1] == "k"
    kubectl("taint", "node", "w1", "k-")
    kubectl("delete", "node", "w1")


@pytest.mark.parametrize("version", ["v1beta1", "v1beta2"])
def test_older_versions_are_taken_and_shown(kubectl, version):
    text = CLAIM.replace("/v1\n", f"/{version}\n")
    if version == "v1beta1":
        text = text.replace("exactly: {deviceClassName: gpu}", "deviceClassName: gpu")
    kubectl("apply", "-f", "-", stdin=text)
    kubectl("apply", "-f", "-", stdin=text.replace("a: b", "a: c"))
    new = kubectl.json("resourceclaims.v1.resource.k8s.io", "c1")
    assert new["spec"]["devices"]["requests"][0]["exactly"]["deviceClassName"] == "gpu"
    assert new["metadata"]["labels"] == {"a": "c"}
    old = kubectl.json("resourceclaims.v1beta1.resource.k8s.io", "c1")
    assert old["spec"]["devices"]["requests"][0]["deviceClassName"] == "gpu"
    kubectl("delete", "-f", "-", stdin=text)
