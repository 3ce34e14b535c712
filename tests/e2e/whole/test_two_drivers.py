"""Two sample drivers on one node: what they publish names no device twice, so the node gives both."""

import pytest
from dra_kubelet import Driver
from procs import until
from servers import CLAIMS, PODS, RESOURCE
from whole_nodes import CLASSES, GPU, WAIT_S, claim, device_class, items, pod, program, wait_ready

pytestmark = pytest.mark.release
NIC = "nic.example.com"


def start_other(node):
    control = f"{node.root}/c-nic"
    proc = node.procs.start(
        program("davit-sample-dra-driver"), "--driver", NIC, "--node", node.name, "--kubeconfig", node.kubeconfig,
        "--kubelet-dir", node.kubelet_dir, "--cdi-dir", node.cdi_dir, "--control", control, "--devices", "4",
        ready="registered")
    proc.wait_line(f"published {node.name}", WAIT_S)
    return Driver(proc, control, node.cdi_dir)


def test_two_drivers_share_no_uuid_and_no_pci_address(node, driver):
    api = node.api()
    other = start_other(node)
    slices = until(lambda: {one["spec"]["driver"]: one["spec"]["devices"] for one in
                            items(api, f"{RESOURCE}/v1/resourceslices")}, WAIT_S, "the slices")
    assert {name: len(devices) for name, devices in slices.items()} == {GPU: 4, NIC: 4}
    for attribute in ("uuid", "resource.kubernetes.io/pciBusID"):
        values = [device["attributes"][attribute]["string"] for devices in slices.values() for device in devices]
        assert len(set(values)) == 8, values

    # The first device of each, to two pods: with one address they would be one device.
    api.must("POST", CLASSES, device_class())
    api.must("POST", CLASSES, {"metadata": {"name": "nic"}, "spec": {"selectors": [
        {"cel": {"expression": f'device.driver == "{NIC}"'}}]}})
    for name in ("gpu", "nic"):
        api.must("POST", CLAIMS, claim(name, of_class=name))
        api.must("POST", PODS, pod(f"with-{name}", of_claim=name))
    for name in ("gpu", "nic"):
        wait_ready(api, f"with-{name}")

    # What is wrong with one is said in a whole sentence.
    other.must("health device-3 unhealthy the fan is slow, and the card hot")
    until(lambda: "the fan is slow, and the card hot" in node.davit("devices", NIC, "-o", "wide").stdout, WAIT_S,
          lambda: node.davit("devices", NIC, "-o", "wide").stdout)
