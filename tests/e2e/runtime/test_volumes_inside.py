"""Volumes and the service account, seen from inside of a container."""

import base64
import os

from procs import until
from runtime_nodes import WAIT_S, container, pod

ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"


def test_volumes_of_all_kinds(node, short_dir):
    node.add({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m"},
              "data": {"k": "from-map"}}, "configmaps")
    node.add({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"},
              "data": {"k": base64.b64encode(b"from-secret").decode()}}, "secrets")
    volumes = [
        {"name": "map", "configMap": {"name": "m"}},
        {"name": "secret", "secret": {"secretName": "s", "defaultMode": 0o400}},
        {"name": "me", "downwardAPI": {"items": [
            {"path": "name", "fieldRef": {"fieldPath": "metadata.name"}}]}},
        {"name": "memory", "emptyDir": {"medium": "Memory", "sizeLimit": "1Mi"}},
        {"name": "host", "hostPath": {"path": os.path.join(short_dir, "h"),
                                      "type": "DirectoryOrCreate"}}]
    mounts = [{"name": one["name"], "mountPath": f"/{one['name']}"} for one in volumes]
    mounts.append({"name": "host", "mountPath": "/part", "subPath": "sub"})
    script = ("cat /map/k /secret/k /me/name; grep -c ' /memory tmpfs ' /proc/mounts; "
              "echo $FROM_MAP $FROM_SECRET; echo seen >/host/out; echo in >/part/file; sleep 1000")
    node.add(pod("p", container(
        script=script, volumeMounts=mounts,
        env=[{"name": "FROM_MAP", "valueFrom": {"configMapKeyRef": {"name": "m", "key": "k"}}},
             {"name": "FROM_SECRET",
              "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}]), volumes=volumes))
    node.wait_phase("p", "Running")
    expected = ["from-mapfrom-secretp1", "from-map from-secret"]
    until(lambda: node.log("p").splitlines() == expected, WAIT_S, lambda: node.log("p"))
    until(lambda: os.path.exists(os.path.join(short_dir, "h", "sub", "file")), WAIT_S, "subPath")
    node.delete("p")
    node.wait_gone("p")
    assert os.listdir(os.path.join(node.kubelet_dir, "pods")) == []


def test_a_volume_that_is_not_there_yet(node):
    """The pod waits, says why, and starts when the object comes."""
    node.add(pod("p", container(volumeMounts=[{"name": "v", "mountPath": "/v"}]),
                 volumes=[{"name": "v", "configMap": {"name": "late"}}]))
    text = 'MountVolume.SetUp failed for volume "v" : configmap "late" not found'
    until(lambda: ("FailedMount", text) in node.events("p"), WAIT_S, node.events("p"))
    assert node.phase("p") == "Pending" and not node.sandboxes()


def test_the_token_of_the_service_account(make_node):
    node = make_node()
    node.options[node.options.index("--roles") + 1] = "api,control,sched,node"
    node.start()
    until(lambda: node.api().ask(
        "GET", "/api/v1/namespaces/default/serviceaccounts/default").status == 200, WAIT_S,
        "the default account")
    node.add(pod("p", container(
        script=f"cd {ACCOUNT} && cat namespace && echo && wc -c <token && sleep 1000")))
    node.wait_phase("p", "Running")
    until(lambda: node.log("p").splitlines()[:1] == ["default"], WAIT_S, lambda: node.log("p"))
    assert int(node.log("p").splitlines()[1]) > 20


def test_a_volume_that_the_runtime_cannot_mount(node):
    """containerd 1.6 does not know images as volumes: the pod says what it takes."""
    node.add(pod("p", container(volumeMounts=[{"name": "v", "mountPath": "/v"}]),
                 volumes=[{"name": "v", "image": {"reference": "davit.test/busybox:1"}}]))
    until(lambda: any("image volumes need containerd 2.1" in message
                      for reason, message in node.events("p") if reason == "FailedMount"),
          WAIT_S, "an event")
    assert node.phase("p") == "Pending"
