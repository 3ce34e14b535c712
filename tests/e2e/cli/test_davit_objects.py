"""The verbs for objects, over TLS against the embedded API: what people do all day."""

import http.client
import json
import os
import re
import signal
import ssl

import pytest

from procs import until
from runs import davit_path, run_on_terminal, write_config

MANIFEST = """\
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: gpu}
spec: {selectors: [{cel: {expression: 'device.driver == "gpu.example.com"'}}]}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: c1, labels: {tier: fast}}
spec: {devices: {requests: [{name: r0, exactly: {deviceClassName: gpu}}]}}
---
apiVersion: v1
kind: Pod
metadata: {name: p1, labels: {a: b}}
spec:
  containers: [{name: c, image: i, resources: {claims: [{name: x}]}}]
  resourceClaims: [{name: x, resourceClaimName: c1}]
"""

SLICE = """\
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: s1}
spec:
  driver: gpu.example.com
  nodeName: n1
  pool: {name: n1, generation: 1, resourceSliceCount: 1}
  devices: [{name: g0, attributes: {model: {string: big}}, capacity: {memory: {value: 8Gi}}}]
"""

EVENT = """\
apiVersion: v1
kind: Event
metadata: {name: e1, namespace: default}
type: Warning
reason: Stuck
message: no device is left
source: {component: sched}
firstTimestamp: "2026-01-01T00:00:00Z"
lastTimestamp: "2026-01-01T00:00:00Z"
count: 1
involvedObject: {kind: ResourceClaim, namespace: default, name: c1, uid: UID}
"""


@pytest.fixture
def full(real):
    real.ok("apply", "-f", "-", stdin=MANIFEST)
    return real


def test_apply_creates_changes_and_leaves_alone(real):
    assert real.ok("apply", "-f", "-", stdin=MANIFEST).splitlines() == [
        "deviceclass/gpu created", "resourceclaim/c1 created", "pod/p1 created"]
    assert real.ok("apply", "-f", "-", stdin=MANIFEST).splitlines() == [
        "deviceclass/gpu unchanged", "resourceclaim/c1 unchanged", "pod/p1 unchanged"]
    changed = MANIFEST.replace("tier: fast", "tier: slow")
    assert real.ok("apply", "-f", "-", "--dry-run", stdin=changed).splitlines() == [
        "deviceclass/gpu unchanged (dry run)", "resourceclaim/c1 configured (dry run)",
        "pod/p1 unchanged (dry run)"]
    assert "fast" in real.ok("get", "claim", "c1", "-o", "yaml")
    assert "resourceclaim/c1 configured" in real.ok("apply", "-f", "-", stdin=changed)
    assert "slow" in real.ok("get", "claim", "c1", "-o", "yaml")
    new = MANIFEST.replace("name: p1", "name: p2")
    assert "pod/p2 created (dry run)" in real.ok("apply", "-f", "-", "--dry-run=server", stdin=new)
    assert "p2" not in real.ok("get", "pods")


def test_apply_of_folders_and_lists(real, short_dir):
    folder = os.path.join(short_dir, "objects")
    os.mkdir(folder)
    for name, text in (("2.yaml", MANIFEST), ("1.yml", SLICE), ("notes.txt", "no objects")):
        with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
            file.write(text)
    assert real.ok("apply", "-f", folder, "-f", "objects/1.yml").splitlines() == [
        "resourceslice/s1 created", "deviceclass/gpu created", "resourceclaim/c1 created",
        "pod/p1 created", "resourceslice/s1 unchanged"]
    everything = real.ok("get", "claims,pods", "-o", "json")
    assert json.loads(everything)["kind"] == "List"
    real.ok("delete", "pods,claims", "--all")
    cleaned = json.loads(everything)
    for item in cleaned["items"]:
        for name in ("uid", "resourceVersion", "creationTimestamp", "generation"):
            item["metadata"].pop(name, None)
        item.pop("status", None)
    assert real.ok("apply", "-f", "-", stdin=json.dumps(cleaned)).splitlines() == [
        "resourceclaim/c1 created", "pod/p1 created"]


def test_apply_goes_on_after_failures(real):
    bad = "\n---\n".join([
        "apiVersion: resource.k8s.io/v1\nkind: ResourceClam\nmetadata: {name: x}",
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: BAD_NAME}",
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: good}\ndata: {a: b}",
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: typo}\ndatum: {a: b}",
        "a: [",
    ])
    done = real.run("apply", "-f", "-", stdin=bad)
    assert (done.returncode, done.stdout) == (1, "configmap/good created\n"), done
    lines = done.stderr.splitlines()
    assert "-, document 1: line 1, column 1: there is no kind ResourceClam" in lines[0]
    assert "did you mean ResourceClaim?" in lines[0]
    assert lines[1].startswith("davit: -, document 2, line 7: ") and "BAD_NAME" in lines[1]  # where the name is
    assert lines[2].startswith("davit: -, document 4, line 17: ") and "datum" in lines[2]
    assert lines[3].startswith("davit: -, document 5: line ")


def test_apply_says_where_in_the_file_a_value_is_wrong(real):
    pod = """apiVersion: v1
kind: Pod
metadata: {name: p}
spec:
  containers:
  - name: a
    image: i
    resources: {limits: {cpu: %s}}
"""
    done = real.run("apply", "-f", "-", stdin=pod % "abc")
    assert done.returncode == 1 and done.stderr.startswith(
        "davit: -, document 1: Pod p: line 8, column 31: spec.containers[0].resources.limits.cpu: "), done
    done = real.run("apply", "-f", "-", stdin=pod % "-1")
    assert done.returncode == 1 and done.stderr.startswith("davit: -, document 1, line 8: "), done
    done = real.run("apply", "-f", "-", stdin=pod % "1" + "  - {name: a, image: j}\n")
    assert done.returncode == 1 and "duplicate entries" in done.stderr, done
    assert done.stderr.startswith("davit: -, document 1, line 5: "), done  # where the list is
    done = real.run("apply", "-f", "-", stdin=pod % "1" + "  hostz:\n\n  - {ip: 1.2.3.4}\n")
    assert done.returncode == 1 and "hostz" in done.stderr, done
    assert done.stderr.startswith("davit: -, document 1, line 9: "), done  # the key's, not its value's


def test_conflicts_of_managers_are_told_and_forced(full, api_server):
    # Somebody else takes the label over.
    context = ssl.create_default_context(cafile=api_server.ca)
    peer = http.client.HTTPSConnection(api_server.url[8:], context=context, timeout=20)
    peer.request(
        "PATCH",
        "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims/c1"
        "?fieldManager=other&force=true",
        body=json.dumps({"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim",
                         "metadata": {"name": "c1", "labels": {"tier": "theirs"}}}),
        headers={"Authorization": "Bearer admintoken",
                 "Content-Type": "application/apply-patch+yaml"},
    )
    assert peer.getresponse().status == 200
    peer.close()
    done = full.run("apply", "-f", "-", stdin=MANIFEST)
    assert done.returncode == 1 and "pod/p1 unchanged" in done.stdout, done
    assert "-, document 2, line 6: " in done.stderr and "(Conflict)" in done.stderr
    assert "--force-conflicts" in done.stderr
    done = full.run("apply", "-f", "-", "--force-conflicts", stdin=MANIFEST)
    assert done.returncode == 0 and "resourceclaim/c1 configured" in done.stdout, done


def test_get_prints_tables(full):
    full.ok("apply", "-f", "-", stdin=SLICE)
    lines = full.ok("get", "claims").splitlines()
    assert lines[0].split() == ["NAME", "STATE", "AGE"]
    assert lines[1].split()[:2] == ["c1", "pending"] and re.fullmatch(r"\d+s", lines[1].split()[2])
    assert full.ok("get", "claims", "--no-headers").splitlines()[0].split()[0] == "c1"
    lines = full.ok("get", "po", "-A", "-o", "wide").splitlines()
    assert lines[0].startswith("NAMESPACE   NAME   READY") and "NOMINATED NODE" in lines[0]
    assert lines[1].split()[:2] == ["default", "p1"]
    tables = full.ok("get", "all").split("\n\n")
    assert [table.splitlines()[1].split()[0] for table in tables] == [
        "pod/p1", "resourceclaim/c1", "resourceslice/s1", "deviceclass/gpu"]
    assert full.ok("get", "claim/c1", "pod/p1", "-o", "name") == "resourceclaim/c1\npod/p1\n"
    assert full.ok("get", "claims", "-l", "tier in (fast,slow)", "-oname") == "resourceclaim/c1\n"
    assert full.ok("get", "slices", "--field-selector", "spec.nodeName=n1", "-oname") == (
        "resourceslice/s1\n")


def test_get_prints_objects_as_kubectl_does(full):
    one = json.loads(full.ok("get", "claim", "c1", "-o", "json"))
    assert one["kind"] == "ResourceClaim" and "managedFields" not in one["metadata"]
    assert list(one) == sorted(one)
    whole = json.loads(full.ok("get", "claim", "c1", "-o", "json", "--show-managed-fields"))
    assert whole["metadata"]["managedFields"][0]["manager"] == "davit"
    several = json.loads(full.ok("get", "claims,pods", "-o", "json"))
    assert several["kind"] == "List" and several["apiVersion"] == "v1"
    assert [item["kind"] for item in several["items"]] == ["ResourceClaim", "Pod"]
    yaml = pytest.importorskip("yaml", reason="needs python3-yaml")
    assert yaml.safe_load(full.ok("get", "claim", "c1", "-o", "yaml")) == one


def test_what_is_not_there(full):
    for words, message in (
        (["get", "slices"], "No resources found\n"),
        (["get", "templates"], "No resources found in default namespace.\n"),
        (["get", "templates", "-n", "ml"], "No resources found in ml namespace.\n"),
        (["get", "templates", "--context", "ml"], "No resources found in ml namespace.\n"),
        (["get", "templates", "-A"], "No resources found\n"),
        (["describe", "nodes"], "No resources found\n"),
    ):
        done = full.run(*words)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", message), words
    assert json.loads(full.ok("get", "nodes", "-o", "json"))["items"] == []
    done = full.run("get", "claims", "nope", "c1")
    assert done.returncode == 1 and "c1" in done.stdout
    assert done.stderr == (
        'davit: resourceclaims.resource.k8s.io "nope" not found (NotFound)\n')
    assert full.run("describe", "pod", "nope").returncode == 1


def test_describe_shows_an_object_with_its_events(full):
    uid = json.loads(full.ok("get", "claim", "c1", "-o", "json"))["metadata"]["uid"]
    full.ok("apply", "-f", "-", stdin=EVENT.replace("UID", uid))
    text = full.ok("describe", "claim", "c1")
    assert "Labels:           tier=fast\n" in text and "State:            pending\n" in text
    assert re.search(r"Events:\n  Type +Reason +Age +From +Message\n  Warning +Stuck +\S+ +sched +"
                     r"no device is left\n", text)
    text = full.ok("describe", "pod/p1", "class/gpu")
    assert "Claim:        x\n" in text and "\n\n\nName:             gpu\n" in text
    assert text.count("Events:           <none>\n") == 2


def test_delete(full):
    done = full.run("delete", "claim", "c1", "nope")
    assert (done.returncode, done.stdout) == (1, "resourceclaim/c1 deleted\n")
    assert 'resourceclaims.resource.k8s.io "nope" not found' in done.stderr
    assert full.ok("delete", "claim", "nope", "--ignore-not-found") == ""
    assert full.ok("delete", "pods", "-l", "a=b", "--dry-run") == "pod/p1 deleted (dry run)\n"
    assert full.ok("delete", "pods", "-l", "a=b") == "pod/p1 deleted\n"
    done = full.run("delete", "pods", "--all")
    assert (done.returncode, done.stdout) == (0, "")
    assert full.ok("delete", "-f", "-", "--ignore-not-found", stdin=MANIFEST) == (
        "deviceclass/gpu deleted\n")


def test_delete_waits_and_names_finalizers(real):
    held = ("apiVersion: v1\nkind: ConfigMap\n"
            "metadata: {name: held, finalizers: [example.com/hold]}\n")
    real.ok("apply", "-f", "-", stdin=held)
    done = real.run("delete", "cm", "held", "--timeout", "1")
    assert (done.returncode, done.stdout) == (1, "configmap/held deleted\n"), done
    assert 'configmap/held is still there; it waits for its finalizers ["example.com/hold"]' in (
        done.stderr)
    shown = run_on_terminal(["delete", "cm", "held", "--timeout", "1", "--kubeconfig", real.config])
    assert "gone ... 0 of 1 (configmap/held)" in shown and "\r\033[K" in shown.rpartition("davit:")[0], shown
    assert real.ok("delete", "cm", "held", "--wait=false") == "configmap/held deleted\n"


def test_watch_prints_changes_as_they_come(full, procs):
    watch = procs.start(davit_path(), "watch", "claims", "--no-headers",
                        env={"KUBECONFIG": full.config})
    named = procs.start(davit_path(), "get", "claim", "c2", "-w", "-o", "name",
                        env={"KUBECONFIG": full.config})
    until(lambda: len(watch.lines) == 1, 10, "what is there")
    full.ok("apply", "-f", "-", stdin=MANIFEST.replace("name: c1", "name: c2"))
    until(lambda: len(watch.lines) == 2, 10, "what comes")
    until(lambda: len(named.lines) == 1, 10, "the same of one object")
    full.ok("delete", "claim", "c2")
    until(lambda: len(watch.lines) == 3, 10, "what goes")
    assert [line.split()[0] for line in watch.lines] == ["c1", "c2", "c2"]
    until(lambda: len(named.lines) == 2, 10, "that it goes")
    assert named.lines == ["resourceclaim/c2"] * 2
    watch.signal(signal.SIGINT)
    assert watch.wait(10) == -signal.SIGINT


def test_a_watch_ends_with_the_server(full, procs, api_server):
    watch = procs.start(davit_path(), "watch", "claims", env={"KUBECONFIG": full.config})
    until(lambda: len(watch.lines) == 2, 10, "what is there")
    assert api_server.stop() == 0
    assert watch.wait(20) == 4, watch.describe()
    assert "no API server answers at" in watch.log


# ---- who asks, and whom


def test_rights_and_identities(full, api_server, short_dir):
    def config(name, token, **cluster):
        return write_config(os.path.join(short_dir, name), api_server.url, token=token, **cluster)

    ca = {"certificate-authority": api_server.ca}
    done = full.run("get", "pods", config=config("bad", "wrong", **ca))
    assert done.returncode == 1 and "(Unauthorized)" in done.stderr
    assert "does not know the token or certificate in" in done.stderr
    done = full.run("apply", "-f", "-", stdin=MANIFEST, config=config("viewer", "viewertoken", **ca))
    assert (done.returncode, done.stdout) == (1, "") and done.stderr.count("(Forbidden)") == 3
    done = full.run("get", "pods", config=config("untrusted", "admintoken"))
    assert done.returncode == 4 and "is not who it should be" in done.stderr
    assert "certificate-authority in" in done.stderr


def test_where_the_server_is_looked_for(full, api_server, short_dir):
    state = os.path.join(short_dir, "state")
    os.mkdir(state)
    nothing = {"KUBECONFIG": ""}
    done = full.run("get", "pods", "--state-dir", state, env=nothing)
    assert (done.returncode, done.stdout) == (4, "")
    assert f"{state}/admin.kubeconfig" in done.stderr and "--kubeconfig" in done.stderr
    done = full.run("get", "pods", "--state-dir", state, env={"KUBECONFIG": "/no/a:/no/b"})
    assert done.returncode == 4 and "KUBECONFIG names no file that is there" in done.stderr
    assert "p1" in full.ok("get", "pods", env={"KUBECONFIG": f"/no/a:{full.config}"})
    assert "p1" in full.ok("get", "pods", "--kubeconfig", full.config, env=nothing)
    os.symlink(full.config, os.path.join(state, "admin.kubeconfig"))
    assert "p1" in full.ok("get", "pods", "--state-dir", state, env=nothing)
    assert "p1" in full.ok("get", "pods", "--state-dir", state, env={"KUBECONFIG": "/no/a"})
    done = full.run("get", "pods", "--kubeconfig", "/no/such")
    assert done.returncode == 1 and "/no/such" in done.stderr
    done = full.run("get", "pods", "--context", "nope")
    assert done.returncode == 1 and 'no context "nope"' in done.stderr
    gone = write_config(os.path.join(short_dir, "gone"), "https://127.0.0.1:1")
    done = full.run("get", "pods", config=gone)
    assert done.returncode == 4 and "no API server answers at https://127.0.0.1:1" in done.stderr
    assert gone in done.stderr


def test_a_pod_of_an_old_shape_is_told_what_to_write(full):
    old = MANIFEST.replace("resourceClaimName: c1", "source: {resourceClaimName: c1}")
    done = full.run("apply", "-f", "-", stdin=old.replace("name: p1", "name: p2"))
    assert done.returncode == 1 and "-, document 3: Pod p2: line 16, column 38: " in done.stderr, done
    assert "was removed in v1.31; write resourceClaimName or" in done.stderr


@pytest.mark.parametrize("word, meant", [
    ("gte", "get"), ("expalin", "explain"), ("tokens", "token"), ("cd", "cdi"), ("delte", "delete")])
def test_verbs_that_were_mistyped(real, word, meant):
    done = real.run(word, "pods")
    assert (done.returncode, done.stdout) == (2, "")
    assert f'no verb "{word}"; did you mean {meant}?' in done.stderr
