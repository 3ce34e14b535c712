"""The example DRA driver of docs/write-a-driver.md, as a reader would try it; and the sample driver beside itself."""

import os

import pytest
from claim_nodes import make_claim
from claim_nodes import pod as claim_pod
from peers import folder_of
from procs import until

pytestmark = pytest.mark.release
SLICES = "/apis/resource.k8s.io/v1/resourceslices"


def attributes_of(api, driver):
    return [device["attributes"] for one in api.must("GET", SLICES)["items"] if one["spec"]["driver"] == driver
            for device in one["spec"]["devices"]]


def test_the_driver_of_the_guide_prepares_a_claim(node, api, procs):
    plugin_dir = os.path.join(node.kubelet_dir, "plugins", "node.example.com")
    assert not os.path.exists(plugin_dir)  # the library makes it
    procs.start(
        os.path.join(folder_of("DAVIT_BUILD"), "examples", "davit-example-dra"), "node.example.com", "null", "zero",
        env={"NODE_NAME": "n1", "KUBECONFIG": node.kubeconfig, "CDI_DIR": node.cdi_dir, "PLUGIN_DIR": plugin_dir,
             "REGISTRY_DIR": os.path.join(node.kubelet_dir, "plugins_registry")}, ready="registered",
    )
    until(lambda: api.must("GET", SLICES)["items"], 40, "slices")
    make_claim(api, "c", ("node.example.com", "zero"), pods=["p"])
    assert node.admit(claim_pod("p", {"dev": "c"})).admitted
    names = list(node.container_options("uid-p", "main").cdi_devices)
    assert len(names) == 1, names
    assert names[0].startswith("node.example.com/claim=")
    files = os.listdir(node.cdi_dir)
    assert len(files) == 1 and files[0].startswith("node.example.com-claim_"), files
    with open(os.path.join(node.cdi_dir, files[0]), encoding="utf-8") as file:
        assert '"/dev/zero"' in file.read()
    node.release("uid-p")
    until(lambda: not os.listdir(node.cdi_dir), 40, "the spec to be gone")


def test_two_sample_drivers_have_no_device_in_common(node, api):
    node_drivers = ("gpu.example.com", "nic.example.com")
    for driver in node_drivers:
        start_sample(node, driver)
    until(lambda: all(attributes_of(api, driver) for driver in node_drivers), 40, "slices of both")
    first, second = (attributes_of(api, driver) for driver in node_drivers)
    for name in ("uuid", "resource.kubernetes.io/pciBusID"):
        assert not {one[name]["string"] for one in first} & {one[name]["string"] for one in second}, name


def start_sample(node, driver):
    program = os.path.join(folder_of("DAVIT_BUILD"), "drivers", "davit-sample-dra-driver")
    node.procs.start(program, "--driver", driver, "--node", "n1", "--kubeconfig", node.kubeconfig, "--kubelet-dir",
                     node.kubelet_dir, "--cdi-dir", node.cdi_dir, "--devices", 3, ready="ready")
