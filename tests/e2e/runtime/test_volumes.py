"""Volumes as containers see them: what is in them, whose it is, and that nothing leads out."""

import base64
import os
from pathlib import Path

import pytest
from procs import until
from runtime_nodes import WAIT_S, RuntimeNode, container, pod

ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"


@pytest.fixture
def new_node(containerd):
    """With the controllers, who make what pods use the API with."""
    def make(procs, root, *options):
        return RuntimeNode(procs, root, containerd, *options, roles="api,control,node")

    return make


def mount(name, path, **fields):
    return {"name": name, "mountPath": path, **fields}


def config_map(node, name, **data):
    node.add({"metadata": {"name": name}, "data": data}, "configmaps")


def secret(node, name, **data):
    node.add({"metadata": {"name": name}, "data": {
        key: base64.b64encode(value.encode()).decode() for key, value in data.items()}}, "secrets")


def pod_dir(node, uid):
    return Path(node.kubelet_dir, "pods", uid)


def mounts_of(uid):
    """What is mounted in the directory of a pod."""
    lines = Path("/proc/self/mountinfo").read_text(encoding="utf-8").splitlines()
    return [line.split()[4] for line in lines if uid in line.split()[4]]


def test_all_kinds_of_volumes(node):
    config_map(node, "cm", a="AAA", b="BBB")
    secret(node, "s", k="hidden")
    shows = "; ".join([
        "stat -c '%a' /e", "stat -f -c %T /m", "cat /cm/a /cm/x/y", "cat /s/k",
        "stat -f -c %T /s", "cat /d/name", "cat /p/both", "cat /sub",
        "touch /cm/new 2>/dev/null || echo read-only", "sleep 1000"])
    uid = node.add(pod(
        "p", container(script=shows, volumeMounts=[
            mount("e", "/e"), mount("m", "/m"), mount("cm", "/cm"), mount("s", "/s"),
            mount("d", "/d"), mount("p", "/p"), mount("cm", "/sub", subPath="a"),
            mount("e", "/part", subPath="one/two")]),
        volumes=[
            {"name": "e", "emptyDir": {}},
            {"name": "m", "emptyDir": {"medium": "Memory", "sizeLimit": "1Mi"}},
            {"name": "cm", "configMap": {"name": "cm", "items": [
                {"key": "a", "path": "a"}, {"key": "b", "path": "x/y", "mode": 0o400}]}},
            {"name": "s", "secret": {"secretName": "s"}},
            {"name": "d", "downwardAPI": {"items": [
                {"path": "name", "fieldRef": {"fieldPath": "metadata.name"}}]}},
            {"name": "p", "projected": {"sources": [
                {"configMap": {"name": "cm", "items": [{"key": "a", "path": "both"}]}}]}},
        ]))
    node.wait_phase("p", "Running")
    wanted = ["777", "tmpfs", "AAABBBhiddentmpfs", "pAAAAAAread-only"]
    until(lambda: node.log("p").splitlines()[:4] == wanted, WAIT_S, f"{wanted}: {node.log('p')}")
    assert (pod_dir(node, uid) / "volumes/kubernetes.io~empty-dir/e/one/two").is_dir()
    node.delete("p")
    node.wait_gone("p")
    until(lambda: not pod_dir(node, uid).exists(), WAIT_S, "its directory is gone")
    assert not mounts_of(uid)


def test_what_is_missing_is_told_and_waited_for(node):
    node.add(pod("p", container(script="cat /v/k; echo; sleep 1000",
                                volumeMounts=[mount("v", "/v")]),
                 volumes=[{"name": "v", "secret": {"secretName": "late"}}]))
    wanted = ("FailedMount",
              'MountVolume.SetUp failed for volume "v" : secret "late" not found')
    until(lambda: wanted in node.events("p"), WAIT_S, "the event")
    assert node.phase("p") == "Pending"
    secret(node, "late", k="here")
    node.wait_phase("p", "Running")
    until(lambda: node.log("p") == "here", WAIT_S, "the secret")


def test_a_pod_has_what_it_uses_the_api_with(node):
    script = "echo $KUBERNETES_SERVICE_HOST:$KUBERNETES_SERVICE_PORT; " \
             f"cat {ACCOUNT}/namespace; echo; cat {ACCOUNT}/token; echo; cat {ACCOUNT}/ca.crt; " \
             "sleep 1000"
    node.add(pod("p", container(script=script, securityContext={"runAsUser": 1000})))
    node.wait_phase("p", "Running")
    until(lambda: "END CERTIFICATE" in node.log("p"), WAIT_S, "the files")
    address, namespace, token, *certificate = node.log("p").splitlines()
    assert address == f"127.0.0.1:{node.port}"
    assert namespace == "default"
    assert "\n".join(certificate) + "\n" == node.ca
    inside = node.api(token=token)
    user = inside.must("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", {
        "apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"})
    assert user["status"]["userInfo"]["username"] == "system:serviceaccount:default:default"
    assert token not in node.proc.log


def test_host_paths_are_made_and_checked(node, short_dir):
    made = os.path.join(short_dir, "h", "deep")
    file = os.path.join(short_dir, "file")
    Path(file).touch()
    node.add(pod("good", container(script="touch /h/seen; sleep 1000",
                                   volumeMounts=[mount("h", "/h")]),
                 volumes=[{"name": "h", "hostPath": {"path": made,
                                                     "type": "DirectoryOrCreate"}}]))
    node.add(pod("bad", container(volumeMounts=[mount("h", "/h")]),
                 volumes=[{"name": "h", "hostPath": {"path": file, "type": "Directory"}}]))
    node.wait_phase("good", "Running")
    until(lambda: os.path.exists(os.path.join(made, "seen")), WAIT_S, "the file")
    assert os.stat(made).st_mode & 0o7777 == 0o755
    wanted = ("FailedMount", 'MountVolume.SetUp failed for volume "h" : hostPath type check '
                             f"failed: {file} is not a directory")
    until(lambda: wanted in node.events("bad"), WAIT_S, "the event")


def test_a_link_does_not_lead_out_of_a_volume(node, short_dir):
    """The first container puts a link into the volume, and the second wants what it points to."""
    outside = Path(short_dir, "outside")
    outside.mkdir()
    (outside / "kept").touch()
    uid = node.add(pod(
        "p", container(volumeMounts=[mount("v", "/v", subPath="link")]),
        initContainers=[container("first", f"ln -s {outside} /v/link",
                                  volumeMounts=[mount("v", "/v")])],
        volumes=[{"name": "v", "emptyDir": {}}]))

    def waiting(status):
        states = status.get("containerStatuses") or [{}]
        return states[0].get("state", {}).get("waiting", {})

    node.wait_status("p", lambda s: waiting(s).get("reason") == "CreateContainerConfigError",
                     "the container is refused")
    assert "not within volume path" in waiting(node.pod("p")["status"])["message"]
    node.delete("p")
    node.wait_gone("p")
    until(lambda: not pod_dir(node, uid).exists(), WAIT_S, "its directory is gone")
    assert (outside / "kept").exists()


N_BYTES = 12000000  # more than a log may have


def test_a_log_that_grows_large_is_set_aside(node):
    """What the container prints afterwards is in a new file."""
    node.add(pod("p", container(
        script=f"yes 'a line of a log' | head -c {N_BYTES}; sleep 25; echo after; sleep 1000")))
    node.wait_phase("p", "Running")

    def aside():
        return list(Path(node.logs_dir).glob("default_p_*/main/0.log.*"))

    until(aside, WAIT_S, "the log is set aside")
    # Where the container prints slowly, it was in the middle of it: then the new log begins with the rest.
    until(lambda: node.log("p").endswith("after"), 2 * WAIT_S, lambda: f"the new log: {node.log('p')[-200:]}")
    assert len(node.log("p")) < N_BYTES / 2
    assert aside()  # of what is printed slowly, more than one


def test_a_config_map_that_vanishes_stops_nobody(node):
    """The files stay as they were, and a container that ends is started again."""
    config_map(node, "cm", k="kept")
    node.add(pod("p", container(script="cat /v/k; echo; sleep 5",
                                volumeMounts=[mount("v", "/v")]),
                 volumes=[{"name": "v", "configMap": {"name": "cm"}}]))
    node.wait_phase("p", "Running")
    assert node.api().ask("DELETE", "/api/v1/namespaces/default/configmaps/cm").status == 200
    wanted = ("FailedMount", 'MountVolume.SetUp failed for volume "v" : configmap "cm" not found')
    until(lambda: wanted in node.events("p"), WAIT_S, "the event")
    until(lambda: node.log("p", number=1) == "kept", WAIT_S, "it was started again")


def test_collectors_find_logs_by_links(node):
    """As in /var/log/containers; they go with the container, also when davitd was away."""
    links = Path(node.logs_dir).parent / "containers"
    node.add(pod("p", container(script="echo hello; sleep 1000")))
    node.add(pod("q", container(script="echo hello; sleep 1000")))
    names = {}
    for name in ("p", "q"):
        status = node.wait_phase(name, "Running")["status"]["containerStatuses"][0]
        names[name] = links / f"{name}_default_main-{status['containerID'].split('//')[1]}.log"
        until(lambda name=name: names[name].is_symlink() and "hello" in names[name].read_text(),
              WAIT_S, f"the link to the log of {name}")
    node.delete("p")
    node.wait_gone("p")
    until(lambda: not names["p"].is_symlink(), WAIT_S, "the link is gone")
    assert names["q"].is_symlink()
