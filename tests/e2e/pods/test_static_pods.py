"""Static pods: a file in a folder is a pod of this node, and the API shows it."""

import json
import os
import subprocess

import pytest
import yaml

from bound_pods import DEV, GPU, PodNode, has_devices, status_of, wait_devices, wait_phase
from claim_nodes import WAIT_S
from procs import until
from servers import PODS, merge_patch

MIRROR = "kubernetes.io/config.mirror"
HASH = "kubernetes.io/config.hash"


def manifest(name, devices=1, **spec):
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {
        "containers": [{"name": "main", "image": "x",
                        "resources": {"limits": {DEV: str(devices)}}}], **spec}}


class Folder:
    """Files are written as a careful person does: aside, and moved into their place."""

    def __init__(self, path):
        self.path = path
        os.mkdir(path)

    def put(self, name, doc):
        text = doc if isinstance(doc, str) else json.dumps(doc)
        aside = os.path.join(self.path, f".{name}")
        with open(aside, "w", encoding="utf-8") as file:
            file.write(text)
        os.rename(aside, os.path.join(self.path, name))

    def remove(self, name):
        os.unlink(os.path.join(self.path, name))


@pytest.fixture(name="folder")
def fixture_folder(short_dir):
    return Folder(os.path.join(short_dir, "m"))


@pytest.fixture(name="node")
def fixture_node(make_node, folder):
    made = make_node("--pod-manifest-path", folder.path)
    assert isinstance(made, PodNode)
    return made.start()


def mirror(api, name):
    answer = api.ask("GET", f"{PODS}/{name}")
    return answer.doc if answer.status == 200 else None


def container_of(api):
    (one,) = status_of(api, "web-n1").get("containerStatuses") or [{"ready": False}]
    return one


def looks_at(node):
    return [line for line in node.davit("status").stdout.splitlines()
            if line.startswith("look at")]


def test_a_file_is_a_pod(node, folder):
    api = node.api()
    node.start_plugin()
    folder.put("web.yaml", yaml.safe_dump(manifest("web")))
    wait_devices(api, "web-n1")
    shown = mirror(api, "web-n1")
    meta = shown["metadata"]
    assert meta["annotations"][MIRROR] == meta["annotations"][HASH] != meta["uid"], meta
    assert meta["annotations"]["kubernetes.io/config.source"] == "file", meta
    assert (meta["ownerReferences"][0]["kind"], meta["ownerReferences"][0]["name"]) == ("Node", "n1")
    assert {"operator": "Exists", "effect": "NoExecute"} in shown["spec"]["tolerations"]
    assert shown["status"]["phase"] == "Pending" and node.pods_here() == {"web-n1"}
    with subprocess.Popen(["sleep", "600"]) as process:
        done = node.davit("container", "started", "web-n1", "main", "--pid", str(process.pid))
        assert done.returncode == 0, done
        wait_phase(api, "web-n1", "Running")
        process.kill()
    folder.remove("web.yaml")
    until(lambda: mirror(api, "web-n1") is None, WAIT_S, "the mirror to go")
    until(lambda: node.pods_here() == set(), WAIT_S, "the devices to be given back")


def test_deleting_the_mirror_does_not_stop_the_pod(node, folder):
    api = node.api()
    node.start_plugin()
    folder.put("web.json", manifest("web"))
    wait_devices(api, "web-n1")
    uid = mirror(api, "web-n1")["metadata"]["uid"]
    assert api.ask("DELETE", f"{PODS}/web-n1").status == 200
    until(lambda: (mirror(api, "web-n1") or {"metadata": {"uid": uid}})["metadata"]["uid"] != uid,
          WAIT_S, "another mirror")
    wait_devices(api, "web-n1")
    assert node.pods_here() == {"web-n1"}
    merge_patch(api, f"{PODS}/web-n1/status", {"status": {"phase": "Failed"}})  # nor does a lie
    with subprocess.Popen(["sleep", "600"]) as process:
        node.davit("container", "started", "web-n1", "main", "--pid", str(process.pid))
        until(lambda: container_of(api)["ready"], WAIT_S, "the truth")
        assert node.pods_here() == {"web-n1"}
        process.kill()


def test_a_changed_file_is_another_pod(node, folder):
    """The old one ends first: both want all devices."""
    api = node.api()
    node.start_plugin()
    folder.put("web.yaml", manifest("web", devices=4))
    wait_devices(api, "web-n1")
    before = mirror(api, "web-n1")["metadata"]["annotations"][HASH]
    with subprocess.Popen(["sleep", "600"]) as process:
        node.davit("container", "started", "web-n1", "main", "--pid", str(process.pid))
        wait_phase(api, "web-n1", "Running")
        folder.put("web.yaml", manifest("web", devices=3))
        until(lambda: len(node.status().pods) == 1, WAIT_S, "one of them")
        assert mirror(api, "web-n1")["metadata"]["annotations"][HASH] == before
        process.kill()
    until(lambda: (mirror(api, "web-n1") or {}).get("metadata", {}).get("annotations", {})
          .get(HASH, before) != before, WAIT_S, "the mirror of the new one")
    wait_devices(api, "web-n1")
    until(lambda: sum(len(d.holders) for d in node.resource(DEV).devices) == 3, WAIT_S,
          "the devices of the new one")


def test_a_crash_changes_nothing(node, folder):
    api = node.api()
    node.start_plugin()
    folder.put("a.yaml", manifest("a"))
    folder.put("b.yaml", manifest("b"))
    wait_devices(api, "a-n1")
    wait_devices(api, "b-n1")
    uid = mirror(api, "a-n1")["metadata"]["uid"]
    node.kill()
    folder.remove("b.yaml")
    folder.put("c.yaml", manifest("c"))
    node.start()
    api = node.api()
    wait_devices(api, "c-n1")
    until(lambda: mirror(api, "b-n1") is None, WAIT_S, "b to go")
    assert mirror(api, "a-n1")["metadata"]["uid"] == uid and has_devices(api, "a-n1")
    until(lambda: node.pods_here() == {"a-n1", "c-n1"}, WAIT_S, "those of the folder")


@pytest.mark.parametrize("policy,code,phase", [("Never", 0, "Succeeded"), ("Never", 5, "Failed")])
def test_one_that_has_ended_stays_so(node, folder, policy, code, phase):
    api = node.api()
    node.start_plugin()
    folder.put("job.yaml", manifest("job", restartPolicy=policy))
    wait_devices(api, "job-n1")
    done = node.davit("container", "ended", "job-n1", "main", "--exit-code", str(code))
    assert done.returncode == 0, done
    wait_phase(api, "job-n1", phase)
    node.kill()
    node.start()
    api = node.api()
    assert api.ask("DELETE", f"{PODS}/job-n1").status == 200
    wait_phase(api, "job-n1", phase)  # in a new mirror
    assert node.pods_here() == set()


def test_what_is_wrong_is_named_and_nothing_else_notices(node, folder):
    api = node.api()
    node.start_plugin()
    folder.put("good.yaml", manifest("good"))
    folder.put("bad.yaml", "{]")
    folder.put("kind.yaml", "apiVersion: v1\nkind: Service\nmetadata: {name: x}\n")
    folder.put("claims.yaml", manifest("claims", resourceClaims=[
        {"name": "g", "resourceClaimTemplateName": GPU}]))
    folder.put("secret.yaml", manifest("secret", volumes=[
        {"name": "v", "secret": {"secretName": "s"}}]))
    folder.put("twin.yaml", manifest("good"))
    folder.put("invalid.yaml", manifest("Not_A_Name"))
    os.mkfifo(os.path.join(folder.path, "pipe"))
    os.mkdir(os.path.join(folder.path, "sub"))
    wait_devices(api, "good-n1")
    wrong = {"bad.yaml": "", "kind.yaml": "Pod", "claims.yaml": "resourceclaims",
             "secret.yaml": "secrets", "twin.yaml": "good.yaml", "invalid.yaml": "metadata.name",
             "pipe": "is no file"}

    def all_named():
        lines = looks_at(node)
        return all(any(f"/{name}:" in line and text in line for line in lines)
                   for name, text in wrong.items()) and len(lines) == len(wrong)

    until(all_named, WAIT_S, "all of them to be named")
    folder.put("good.yaml", "{]")  # what is wrong does not stop what runs
    until(lambda: any("good.yaml" in line.split(":")[0] for line in looks_at(node)), WAIT_S,
          "the file that was good")
    assert node.pods_here() == {"good-n1"}
    for name in (*wrong, "good.yaml"):
        folder.remove(name)
    until(lambda: looks_at(node) == [] and node.pods_here() == set(), WAIT_S, "an empty folder")


def test_a_folder_that_comes_later(make_node, short_dir):
    path = os.path.join(short_dir, "later")
    node = make_node("--pod-manifest-path", path).start()
    api = node.api()
    node.start_plugin()
    Folder(path).put("web.yaml", manifest("web"))
    wait_devices(api, "web-n1")
    node.stop()
    node.options.remove("--pod-manifest-path")
    node.options.remove(path)
    node.start()  # without the option there are no static pods
    api = node.api()
    until(lambda: status_of(api, "web-n1") is None and node.pods_here() == set(), WAIT_S,
          "it to be gone")
