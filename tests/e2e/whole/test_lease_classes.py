"""Leases of device classes wait in turn: who holds what they want, and whom they do not hold up."""

import pytest

from leases import Taking, end_process, give, leases, sleeper
from machine import NULL, Machine
from procs import until
from servers import PODS
from whole_nodes import (CLASSES, GPU, TEMPLATES, WAIT_S, WholeNode, device_class, get, pod, template,
                         wait_ready)

pytestmark = pytest.mark.release
N_OFFERS = 7


def want(node, of_class, count=1, **more):
    return {"devices": [node.pb.LeaseDevices(device_class=of_class, count=count, **more)]}


def test_who_waits_for_a_class_is_told_what_is_free_and_who_has_the_rest(node, driver):
    api = node.api()
    api.must("POST", CLASSES, device_class())
    other = device_class("fast")
    other["spec"]["selectors"] = [{"cel": {"expression": "true"}}]
    api.must("POST", CLASSES, other)
    api.must("POST", TEMPLATES, template(count=2))
    api.must("POST", PODS, pod("p1", of_template="one"))
    wait_ready(api, "p1")
    owner = sleeper()
    # The devices are the same, whatever the class is called.
    held = Taking(node, owner=node.pb.LeaseOwner(pid=owner.pid), command=["/opt/train.py", "--all"],
                  **want(node, "fast")).next("granted").lease
    taking = Taking(node, **want(node, "gpu", 3))
    waiting = taking.next("waiting")
    assert (waiting.short_of, waiting.has_count) == ("gpu", True)
    assert (waiting.n_free, waiting.n_wanted, waiting.place) == (1, 3, 1)
    assert {(h.name, h.n_devices) for h in waiting.holders} == {("train.py", 1), ("default/p1", 2)}
    # It may not pass the one before, although a device is free.
    error = Taking(node, wait_seconds=0, **want(node, "gpu")).failure()
    assert "1 of 1 wanted gpu are free, but others come before" in error.details()
    shown = node.davit("leases").stdout
    assert "waits for 3 gpu (place 1)" in shown
    assert all(one.since_ms > 0 for one in leases(node))  # one that waits: when it asked
    give(node, held.id)
    until(lambda: taking.next("waiting").n_free == 2, WAIT_S, "two are free")
    api.must("DELETE", f"{PODS}/p1")
    assert len(taking.next("granted", WAIT_S).lease.claims) == 3
    end_process(owner)


def test_who_waits_is_asked_for_again_when_the_class_has_more_devices(node, driver):
    """A class that others have made wider while somebody waits."""
    api = node.api()
    path = f'device.attributes["{GPU}"].index'
    one = device_class("some", selectors=[{"cel": {"expression": f"{path} < 1"}}])
    api.must("POST", CLASSES, one)
    until(lambda: is_fine(node, want(node, "some")), WAIT_S, "the class is known")
    held = Taking(node, **want(node, "some")).next("granted").lease
    taking = Taking(node, **want(node, "some"))
    assert taking.next("waiting").n_free == 0
    one = get(api, CLASSES, "some")
    one["spec"]["selectors"][0]["cel"]["expression"] = f"{path} < 2"
    api.must("PUT", f"{CLASSES}/some", one)
    assert taking.next("granted").lease.claims[0].device != held.claims[0].device


@pytest.fixture
def offering(procs, short_dir):
    """A node with offers of one device each."""
    machine = Machine(short_dir)
    options = []
    for i in range(N_OFFERS):
        machine.node(f"port{i}", (NULL[0], 50 + max(i, 1)))  # the first two are the same device
        options += ["--offer", f"port{i}=/dev/port{i}"]
    node = WholeNode(procs, short_dir, "--dev-dir", machine.dev, "--sys-dir", machine.sys, *options)
    node.start()
    api = node.api()
    for i in range(N_OFFERS):
        until(lambda name=f"port{i}": get(api, CLASSES, name), WAIT_S, "the class")
        until(lambda name=f"port{i}": is_fine(node, want(node, name)), WAIT_S, "its device")
    return node


def is_fine(node, request):
    taking = Taking(node, dry_run=True, **request)
    taking.thread.join(WAIT_S)
    return taking.error is None


def test_who_waits_for_one_offer_does_not_hold_up_the_others(offering):
    first = Taking(offering, **want(offering, "port0")).next("granted").lease
    waiting = Taking(offering, **want(offering, "port0"))
    assert waiting.next("waiting").place == 1
    assert Taking(offering, wait_seconds=0, **want(offering, "port2")).next("granted")
    give(offering, first.id)
    assert waiting.next("granted")


def test_what_a_driver_refuses_is_tried_again(offering):
    """The device is free, but a container that has another one of its number could use it."""
    held = Taking(offering, **want(offering, "port0")).next("granted").lease
    taking = Taking(offering, **want(offering, "port1"))
    until(lambda: "default/lease-" + held.id in taking.next("waiting").awaited, WAIT_S, "why")
    give(offering, held.id)
    assert taking.next("granted", WAIT_S).lease.claims[0].device == "port1"


def test_however_many_classes_are_waited_for_each_has_its_turn(offering):
    held = [Taking(offering, **want(offering, f"port{i}")).next("granted").lease
            for i in range(1, N_OFFERS)]
    waiting = []
    for i in range(1, N_OFFERS):
        waiting.append(Taking(offering, **want(offering, f"port{i}")))
        waiting[-1].next("waiting")
    before = offering.proc.cpu_s()
    error = Taking(offering, wait_seconds=0, **want(offering, f"port{N_OFFERS - 1}")).failure()
    assert error.code().name == "DEADLINE_EXCEEDED"
    until(lambda: len(leases(offering)) == 2 * (N_OFFERS - 1), WAIT_S, "the others wait")
    give(offering, held[-1].id)
    assert waiting[-1].next("granted").lease.claims[0].device == f"port{N_OFFERS - 1}"
    # Nobody is asked about again and again while nothing changes.
    assert offering.proc.cpu_s() - before < 2
