"""examples/driver.yaml as its user applies it: a DaemonSet brings the driver up, with the rights of its own account and
no more; a pod gets a device from it; and nothing is left when the manifest is deleted."""

import json
import os
import subprocess
import time
from pathlib import Path

import pytest
from peers import folder_of
from procs import until
from runtime_nodes import WAIT_S, RuntimeNode, container

pytestmark = pytest.mark.release
ROOT = Path(__file__).resolve().parents[3]
MANIFEST = ROOT / "examples/driver.yaml"
NAMESPACE = "davit-sample"
DAEMON_SET = "daemonset/davit-sample-kubeletplugin"
ACCOUNT = "davit-sample-kubeletplugin"
SLICES = "/apis/resource.k8s.io/v1/resourceslices"


@pytest.fixture(scope="module")
def image(tmp_path_factory):
    build = folder_of("DAVIT_BUILD")
    if "asan" in build:
        pytest.skip("the image is of the programs that are shipped")
    path = tmp_path_factory.mktemp("image") / "davit.tar"
    subprocess.run([ROOT / "tools/image", "--programs", build, path], check=True, timeout=300)
    return path


@pytest.fixture
def new_node(containerd):
    def make(procs, root, *options):
        return RuntimeNode(procs, root, containerd, *options, roles="api,control,sched,node")

    return make


@pytest.fixture
def installed(image, node, kubectl, tmp_path):
    """The manifest, for the directories of this node, applied; returns its file."""
    node.runtime.ctr("images", "import", str(image))
    text = MANIFEST.read_text(encoding="utf-8")
    for place, folder in (("/var/lib/kubelet", node.kubelet_dir), ("/var/run/cdi", node.cdi_dir)):
        assert place in text
        text = text.replace(place, folder)
    assert "args: [" in text
    text = text.replace("args: [", f"args: [--kubelet-dir={node.kubelet_dir}, --cdi-dir={node.cdi_dir}, ")
    path = tmp_path / "driver.yaml"
    path.write_text(text, encoding="utf-8")
    kubectl("apply", "-f", str(path))
    roll_out(kubectl)
    return path


def roll_out(kubectl):
    kubectl("rollout", "status", "-n", NAMESPACE, DAEMON_SET, f"--timeout={WAIT_S}s")


def devices(node):
    return sorted(device["name"] for one in node.api().must("GET", SLICES)["items"] for device in one["spec"]["devices"])


def driver_pods(node):
    listed = node.api().must("GET", f"/api/v1/namespaces/{NAMESPACE}/pods")["items"]
    return [pod for pod in listed if "deletionTimestamp" not in pod["metadata"]]


def wants_device(name):
    """A pod that the scheduler places, with a claim of its own."""
    return {"metadata": {"name": name}, "spec": {
        "terminationGracePeriodSeconds": 2, "restartPolicy": "Never",
        "resourceClaims": [{"name": "device", "resourceClaimTemplateName": "one"}],
        "containers": [container(script="env | grep -c ^DAVIT_SAMPLE; exec sleep 1000",
                                 resources={"claims": [{"name": "device"}]})]}}


def make_template(node):
    node.api().must("POST", "/apis/resource.k8s.io/v1/namespaces/default/resourceclaimtemplates", {
        "metadata": {"name": "one"}, "spec": {"spec": {"devices": {"requests": [
            {"name": "r", "exactly": {"deviceClassName": "sample.davit.example"}}]}}}})


def test_a_driver_comes_with_its_manifest_and_goes_with_it(installed, node, kubectl):
    until(lambda: len(devices(node)) == 4, WAIT_S, lambda: devices(node))
    make_template(node)
    node.add(wants_device("p"))
    node.wait_phase("p", "Running")
    claim, = node.api().must("GET", "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims")["items"]
    result, = claim["status"]["allocation"]["devices"]["results"]
    assert result["driver"] == "sample.davit.example" and result["pool"] == node.name, result

    node.delete("p")
    node.wait_gone("p")
    kubectl("delete", "-f", str(installed), f"--timeout={WAIT_S}s")
    assert node.api().ask("GET", f"/api/v1/namespaces/{NAMESPACE}").status == 404
    until(lambda: not node.containers(), WAIT_S, node.containers)
    until(lambda: not devices(node), WAIT_S, lambda: devices(node))
    assert not os.listdir(os.path.join(node.kubelet_dir, "plugins_registry"))
    kinds = "clusterroles,clusterrolebindings,validatingadmissionpolicies,validatingadmissionpolicybindings,deviceclasses,controllerrevisions"
    left = kubectl("get", kinds, "-A", "-o", "name")
    assert "davit-sample" not in left and "sample.davit.example" not in left, left


def test_its_account_may_write_slices_of_its_own_node_alone(installed, node, kubectl):
    pod, = driver_pods(node)
    token = kubectl("create", "token", ACCOUNT, "-n", NAMESPACE, "--bound-object-kind=Pod",
                    f"--bound-object-name={pod['metadata']['name']}").strip()
    inside = node.api(token=token)

    def publish(node_name):
        return inside.ask("POST", SLICES, {"metadata": {"generateName": "more-"}, "spec": {
            "driver": "more.davit.example", "nodeName": node_name,
            "pool": {"name": "more", "generation": 1, "resourceSliceCount": 1}}})

    made = publish(node.name)
    assert made.status == 201, made
    refused = publish("elsewhere")
    assert refused.status == 422, refused
    assert "may not write slices of node elsewhere" in refused.doc["message"]
    assert inside.ask("DELETE", f"{SLICES}/{made.doc['metadata']['name']}").status == 200
    assert inside.ask("GET", "/api/v1/secrets").status == 403
    unbound = node.api(token=kubectl("create", "token", ACCOUNT, "-n", NAMESPACE).strip())
    refused = unbound.ask("POST", SLICES, {"metadata": {"name": "x"}, "spec": {
        "driver": "more.davit.example", "nodeName": node.name,
        "pool": {"name": "more", "generation": 1, "resourceSliceCount": 1}}})
    assert refused.status in (403, 422), refused


def test_a_new_version_comes_before_the_old_one_goes(installed, node, kubectl):
    """And claims stay prepared; kill -9 of davitd in the middle changes nothing of that."""
    until(lambda: len(devices(node)) == 4, WAIT_S, lambda: devices(node))
    make_template(node)
    node.add(wants_device("p"))
    node.wait_phase("p", "Running")
    old, = driver_pods(node)
    patch = {"spec": {"template": {"metadata": {"annotations": {"version": "2"}}}}}
    kubectl("patch", "-n", NAMESPACE, DAEMON_SET, "-p", json.dumps(patch))
    time.sleep(0.5)  # somewhere in the middle
    node.kill()
    node.start()
    roll_out(kubectl)
    new, = driver_pods(node)
    assert new["metadata"]["uid"] != old["metadata"]["uid"]
    assert new["metadata"]["annotations"]["version"] == "2"
    assert node.phase("p") == "Running"
    kubectl("rollout", "undo", "-n", NAMESPACE, DAEMON_SET)
    roll_out(kubectl)
    last, = driver_pods(node)
    assert "version" not in last["metadata"].get("annotations", {})
    until(lambda: len(devices(node)) == 4, WAIT_S, lambda: devices(node))
    node.add(wants_device("q"))
    node.wait_phase("q", "Running")
