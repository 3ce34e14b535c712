"""Pods of the API, `davit admit` and leases ask for the same devices at the same time: each device has
one holder, whoever that is, and everybody has had its turn in the end."""

import random
import threading
import time

import pytest

import nodes
from leases import Taking, give, leases
from machine import Machine
from procs import until
from servers import PODS
from whole_nodes import CLASSES, DEV, WAIT_S, WholeNode, get, items, pod, wait_gone

pytestmark = pytest.mark.release
N_DEVICES = 3
N_ROUNDS = 6
PORT = "davit.node/port"


@pytest.fixture
def node(procs, plugins, short_dir):
    machine = Machine(short_dir)
    for i in range(N_DEVICES):
        machine.node(f"port{i}", (1, 50 + i))
    made = WholeNode(procs, short_dir, "--dev-dir", machine.dev, "--sys-dir", machine.sys, "--offer",
                     "port=/dev/port*").start()
    plugins(made, DEV, [f"d{i}" for i in range(N_DEVICES)]).register()
    made.wait_devices(DEV, N_DEVICES)
    until(lambda: get(made.api(), CLASSES, "port"), WAIT_S, "the class")
    return made


def take_leases(node, who):
    """Takes leases of both kinds, one after the other, and gives them back."""
    chance = random.Random(who)
    for _ in range(N_ROUNDS):
        request = {"resources": [node.pb.LeaseResource(resource=DEV, count=chance.randint(1, 2))]}
        if chance.random() < 0.6:
            request["devices"] = [node.pb.LeaseDevices(device_class="port",
                                                       count=chance.randint(1, N_DEVICES))]
        taking = Taking(node, **request)
        lease = taking.next("granted", 60).lease
        time.sleep(chance.random() * 0.05)
        give(node, lease.id)
        taking.cancel()


def apply_pods(node, who):
    """Creates pods with limits of both kinds through the API, and deletes them when they are ready."""
    api = node.api()
    chance = random.Random(who)
    for i in range(N_ROUNDS):
        name = f"p{who}-{i}"
        api.must("POST", PODS, pod(name, limits={DEV: str(chance.randint(1, 2)), PORT: "1"}))
        until(lambda name=name: get(api, PODS, name)["spec"].get("nodeName"), 60, f"{name} is bound")
        time.sleep(chance.random() * 0.05)
        api.must("DELETE", f"{PODS}/{name}")
        wait_gone(api, PODS, name)


def admit_pods(node, who):
    for i in range(N_ROUNDS):
        uid = f"a{who}-{i}"
        if node.admit(nodes.pod(uid, ("main", {DEV: 1}), uid=uid), timeout=60).admitted:
            time.sleep(0.02)
        node.release(uid)


def test_nothing_has_two_holders(node):
    failures = []

    def guarded(work, who):
        try:
            work(node, who)
        except Exception as error:  # told by the test's own thread
            failures.append(f"{work.__name__} {who}: {error!r}")

    works = [take_leases] * 4 + [apply_pods] * 2 + [admit_pods] * 2
    threads = [threading.Thread(target=guarded, args=(work, i)) for i, work in enumerate(works)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        for name, device in node.resources()[DEV].items():
            assert len(device.holders) <= 1, f"{name}: {device.holders}"
        taken = [c.device for lease in leases(node) for c in lease.claims]
        assert len(set(taken)) == len(taken), taken
        time.sleep(0.01)
    assert not failures, failures
    until(lambda: not leases(node), WAIT_S, "no leases")
    until(lambda: not any(d.holders for d in node.resources()[DEV].values()), WAIT_S, "all are free")
    until(lambda: not items(node.api(), "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims"),
          WAIT_S, "no claims")
