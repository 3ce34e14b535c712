"""No driver or plugin is asked for a device that another pod has by another way."""

import pytest

from bound_pods import allocate, bound, events, make_claim, wait_devices
from driver_nodes import (  # noqa: F401  # pylint: disable=unused-import
    DRIVER, WAIT_S, fixture_claim_node, fixture_driver, wait_condition)
from procs import until
from servers import PODS

SLICES = "/apis/resource.k8s.io/v1/resourceslices"
UUID = "8f6a1e0c-1b2c-3d4e-5f60-718293a4b5c6"
PCI = "0000:3b:00.0"
RESOURCE = "example.com/dev"  # of bound()

# What a slice says of its device, and the id that a plugin has for the same one.
SAME = {
    "uuid": ({"uuid": {"string": f"GPU-{UUID}"}}, f"GPU-{UUID}"),
    "uuid of a share": ({"gpu.example.com/uuid": {"string": UUID.upper()}}, f"GPU-{UUID}::2"),
    "PCI address": ({"resource.kubernetes.io/pciBusID": {"string": PCI}}, PCI),
    "short PCI address": ({"resource.kubernetes.io/pciBusID": {"string": PCI}}, "3B:00.0"),
}


def publish(api, attributes):
    api.must("POST", SLICES, {
        "metadata": {"name": "s1"},
        "spec": {"driver": DRIVER, "nodeName": "n1",
                 "pool": {"name": "n1", "generation": 1, "resourceSliceCount": 1},
                 "devices": [{"name": "device-0", "attributes": attributes}]}})
    assert api.ask("GET", f"{SLICES}/s1").status == 200


@pytest.fixture(name="plugin")
def fixture_plugin(claim_node, plugins):
    def make(ids):
        one = plugins(claim_node, RESOURCE, ids).register()
        until(lambda: len(claim_node.resources().get(RESOURCE, ())) == len(ids), WAIT_S, "devices")
        return one

    return make


def start_claim_pod(api, name, claim):
    make_claim(api, claim)
    api.must("POST", PODS, bound(name, claim=claim))
    allocate(api, claim, name)


def check_words(api, pod, *words):
    """Both pods are named, and what they share."""
    found = [text for reason, text in events(api, pod) if reason == "DeviceInUse"]
    assert found and all(word in found[0] for word in words), found


@pytest.mark.parametrize("case", SAME)
def test_a_driver_is_not_asked_for_what_a_plugin_gave(claim_node, driver, plugin, case):
    api = claim_node.api()
    attributes, device = SAME[case]
    publish(api, attributes)
    plugin([device])
    api.must("POST", PODS, bound("p1", devices=1))
    wait_devices(api, "p1", WAIT_S)
    start_claim_pod(api, "p2", "c1")
    wait_condition(api, "p2", "DeviceInUse", "default/p1", RESOURCE, "default/p2", DRIVER)
    until(lambda: any(one[0] == "DeviceInUse" for one in events(api, "p2")), WAIT_S, "an event")
    check_words(api, "p2", "default/p1", "default/p2", DRIVER)
    assert driver.times == []
    api.must("DELETE", f"{PODS}/p1?gracePeriodSeconds=0")
    wait_devices(api, "p2", WAIT_S)
    assert len(driver.times) == 1


@pytest.mark.parametrize("case", SAME)
def test_a_plugin_is_not_asked_for_what_a_driver_gave(claim_node, driver, plugin, case):
    api = claim_node.api()
    attributes, device = SAME[case]
    publish(api, attributes)
    one = plugin([device])
    start_claim_pod(api, "p1", "c1")
    wait_devices(api, "p1", WAIT_S)
    api.must("POST", PODS, bound("p2", devices=1))
    wait_condition(api, "p2", "DeviceInUse", "default/p1", RESOURCE, "default/p2", DRIVER)
    assert one.allocated == []
    assert len(driver.times) == 1
    api.must("DELETE", f"{PODS}/p1?gracePeriodSeconds=0")
    wait_devices(api, "p2", WAIT_S)
    assert one.allocated == [[device]]


def test_another_device_is_chosen_without_asking_for_the_first(claim_node, driver, plugin):
    api = claim_node.api()
    publish(api, SAME["uuid"][0])
    one = plugin([f"GPU-{UUID}", "GPU-11111111-2222-3333-4444-555555555555"])
    start_claim_pod(api, "p1", "c1")
    wait_devices(api, "p1", WAIT_S)
    api.must("POST", PODS, bound("p2", devices=1))
    wait_devices(api, "p2", WAIT_S)
    assert one.allocated == [["GPU-11111111-2222-3333-4444-555555555555"]]
    assert len(driver.times) == 1


def test_two_at_once_do_not_both_pass(claim_node, driver, plugin):
    """While the driver works on it the plugin is not asked; when that fails it is."""
    api = claim_node.api()
    publish(api, SAME["PCI address"][0])
    one = plugin([PCI])
    look = driver.before
    release = []

    def hang(kind, claims):
        look(kind, claims)
        if kind == "prepare":
            until(lambda: release, WAIT_S, "the test")

    driver.before = hang
    start_claim_pod(api, "p1", "c1")
    until(lambda: driver.times, WAIT_S, "the driver is asked")
    api.must("POST", PODS, bound("p2", devices=1))
    wait_condition(api, "p2", "DeviceInUse", "default/p1")
    assert one.allocated == []
    api.must("DELETE", f"{PODS}/p1?gracePeriodSeconds=0")
    release.append(True)
    wait_devices(api, "p2", WAIT_S)
