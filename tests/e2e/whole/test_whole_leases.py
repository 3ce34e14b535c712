"""Leases of device classes: allocated from the scheduler's inventory, beside pods of the API."""

import pytest

from leases import Taking, end_process, give, leases, sleeper
from procs import until
from servers import CLAIMS, PODS
from whole_nodes import (CLASSES, WAIT_S, device_class, devices_of, held, items, pod, template,
                         wait_ready, TEMPLATES)

pytestmark = pytest.mark.release


def want(node, count=1, **more):
    return {"devices": [node.pb.LeaseDevices(device_class="gpu", count=count, **more)]}


def is_fine(node, request):
    taking = Taking(node, dry_run=True, **request)
    taking.thread.join(WAIT_S)
    return taking.error is None


def wait_known(node):
    until(lambda: is_fine(node, want(node)), WAIT_S, "the class is known")


def test_words_and_resources_stand_for_classes(node, driver):
    api = node.api()
    one = device_class()
    one["metadata"]["name"] = "gpu.example.com"
    one["spec"]["extendedResourceName"] = "example.com/fast"
    api.must("POST", CLASSES, one)
    wait_known(node)
    owner = sleeper()
    for request in ({"resources": [node.pb.LeaseResource(resource="gpu", count=2)]},
                    {"resources": [node.pb.LeaseResource(resource="fast", count=2)]},
                    {"resources": [node.pb.LeaseResource(resource="gpu.example.com", count=2)]},
                    {"resources": [node.pb.LeaseResource(resource="example.com/fast", count=2)]},
                    want(node, 2, where=['device.driver != ""'])):
        lease = Taking(node, owner=node.pb.LeaseOwner(pid=owner.pid),
                       **request).next("granted").lease
        assert [c.device_class for c in lease.claims] == ["gpu.example.com"] * 2
        give(node, lease.id)
    end_process(owner)
    api.must("POST", CLASSES, device_class())
    until(lambda: not is_fine(node, {"resources": [node.pb.LeaseResource(resource="gpu")]}), WAIT_S,
          "both classes are known")
    error = Taking(node, resources=[node.pb.LeaseResource(resource="gpu")]).failure()
    assert error.code().name == "INVALID_ARGUMENT", error.details()
    assert "class gpu" in error.details() and "class gpu.example.com" in error.details()
    assert is_fine(node, want(node))  # the class that is called so
    until(lambda: not leases(node) and len(driver.prepared()) == 0, WAIT_S, "nothing is left")


def test_a_class_is_leased_from_the_same_inventory_as_pods(node, driver):
    api = node.api()
    api.must("POST", CLASSES, device_class())
    api.must("POST", TEMPLATES, template(count=2))
    api.must("POST", PODS, pod("p1", of_template="one"))
    wait_ready(api, "p1")
    owner = sleeper()
    taking = Taking(node, owner=node.pb.LeaseOwner(pid=owner.pid), **want(node, 2))
    granted = taking.next("granted")
    claims = [c for c in items(api, CLAIMS) if c["metadata"]["name"] == f"lease-{granted.lease.id}"]
    assert len(claims) == 1 and len(devices_of(claims[0])) == 2
    assert claims[0]["status"]["reservedFor"][0]["resource"] == "leases"
    assert len(set(held(api))) == len(held(api)) == 4  # the pod's two and the lease's two
    assert len(granted.lease.claims) == 2 and len(granted.cdi_devices) >= 1
    assert len(driver.prepared()) == 2
    waiting = Taking(node, **want(node, 1))
    assert waiting.next("waiting").short_of == "gpu"
    end_process(owner)
    lease = waiting.next("granted").lease
    give(node, lease.id)
    until(lambda: leases(node) == [] and len(driver.prepared()) == 1, WAIT_S, "only the pod is left")
    until(lambda: len(items(api, CLAIMS)) == 1, WAIT_S, "the claims of leases are gone")


def test_more_than_exist_and_bad_selectors_are_refused_at_once(node, driver):
    node.api().must("POST", CLASSES, device_class())
    wait_known(node)
    error = Taking(node, **want(node, 5)).failure()
    assert error.code().name == "FAILED_PRECONDITION" and "never" in error.details()
    error = Taking(node, **want(node, where=["nosuchthing >= 40Gi"])).failure()
    assert error.code().name == "INVALID_ARGUMENT" and "character 1" in error.details()
