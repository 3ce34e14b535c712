"""A restart of davitd leaves the slices of drivers that are there alone: nothing has to be published
again, and pods are scheduled at once."""

import os

import pytest

from claim_nodes import ClaimNode
from procs import until
from python_driver import ClaimReader, Driver
from servers import PODS, SLICES, device_slice

GPU = "gpu.example.com"
PATIENCE_S = 60
CLASSES = "/apis/resource.k8s.io/v1/deviceclasses"
TEMPLATES = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaimtemplates"


@pytest.fixture
def node(procs, short_dir):
    made = ClaimNode(procs, short_dir, roles="api,control,sched,node")
    yield made.start()
    made.disconnect()
    if made.proc.is_alive:
        assert made.stop() == 0, made.proc.describe()


@pytest.fixture
def driver(node):
    made = Driver(node.kubelet_dir, node.cdi_dir, GPU, ClaimReader(node.kubeconfig))
    yield made
    made.stop()


def slices(node):
    return {one["metadata"]["name"]: one["metadata"]["uid"]
            for one in node.api().must("GET", SLICES)["items"]}


def offer(node, n_devices=4):
    api = node.api()
    api.must("POST", SLICES, device_slice("mine", "n1", GPU, n_devices))
    api.must("POST", SLICES, device_slice("gone", "n1", "gone.example.com"))
    api.must("POST", CLASSES, {
        "apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": "gpu"},
        "spec": {"selectors": [{"cel": {"expression": f"device.driver == '{GPU}'"}}]}})
    api.must("POST", TEMPLATES, {
        "apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaimTemplate",
        "metadata": {"name": "one"},
        "spec": {"spec": {"devices": {"requests": [
            {"name": "r", "exactly": {"deviceClassName": "gpu"}}]}}}})


def create_pod(node, name):
    node.api().must("POST", PODS, {
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
        "spec": {"resourceClaims": [{"name": "g", "resourceClaimTemplateName": "one"}],
                 "containers": [{"name": "c", "image": "x",
                                 "resources": {"claims": [{"name": "g"}]}}]}})


def pod_of(node, name):
    return node.api().must("GET", f"{PODS}/{name}")


@pytest.mark.parametrize("ends", ["stop", "kill"])
@pytest.mark.parametrize("boots", [False, True], ids=["restart", "boot"])
def test_slices_stay_and_pods_are_scheduled(node, driver, ends, boots):
    driver.serve()
    node.wait_connected(GPU)
    offer(node)
    for number in range(3):
        before = slices(node)
        getattr(node, ends)()
        if boots:
            node.set_boot_id(f"boot-{number}")
        node.start()
        create_pod(node, f"p{number}")  # before the driver could publish anything again
        until(lambda name=f"p{number}": pod_of(node, name)["spec"].get("nodeName") == "n1",
              PATIENCE_S, "the pod to be scheduled")
        assert slices(node) == before
        node.wait_connected(GPU)
    assert slices(node) == before


def test_a_pod_is_scheduled_and_waits_for_a_driver_that_is_late(node, driver):
    driver.serve()
    node.wait_connected(GPU)
    offer(node)
    driver.stop()
    assert node.stop() == 0
    node.start()
    create_pod(node, "late")
    until(lambda: pod_of(node, "late")["spec"].get("nodeName") == "n1", PATIENCE_S, "scheduling")
    assert pod_of(node, "late")["status"]["phase"] == "Pending"
    assert set(slices(node)) == {"mine", "gone"}
    driver.serve()
    until(lambda: driver.n_calls("prepare") > 0, PATIENCE_S, "the claim to be prepared")
    assert os.path.exists(node.socket) and set(slices(node)) == {"mine", "gone"}


def test_what_no_driver_registers_for_goes_after_the_grace_period(node, driver):
    driver.serve()
    node.wait_connected(GPU)
    offer(node)
    assert node.stop() == 0
    node.start()
    node.wait_connected(GPU)
    until(lambda: "gone" not in slices(node), PATIENCE_S + 30, "the wipe")
    assert set(slices(node)) == {"mine"}
    assert f"spec.driver!={GPU}" in node.proc.log
