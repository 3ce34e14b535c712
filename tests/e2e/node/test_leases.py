"""Leases: devices for processes without pods. They are taken in turn, held by their owner, and given back
when that ends, whatever was killed meanwhile."""

import os
import random
import signal

import grpc
import pytest

from leases import (Taking, end, end_process, give, held_ids, ids_of, leases, sleeper, start_holder,
                    wait_free, want)
from nodes import pod
from procs import until

GPU = "example.com/gpu"
NIC = "example.com/nic"


@pytest.fixture
def gpus(node, plugins):
    plugin = plugins(node, GPU, ["g0", "g1", "g2", "g3"], pre_start=True)
    plugin.register()
    node.wait_devices(GPU, 4)
    return plugin


def test_a_lease_has_what_its_owner_needs_and_ends_with_it(node, gpus):
    owner = sleeper()
    taking = Taking(node, **want(node, GPU, 2, command=["train.py", "--fast"],
                                 owner=node.pb.LeaseOwner(pid=owner.pid)))
    granted = taking.next("granted")
    assert granted.lease.state == "held" and granted.lease.is_own
    assert list(granted.lease.command) == ["train.py", "--fast"]
    assert len(ids_of(granted.lease)) == 2 and ids_of(granted.lease) == held_ids(node, GPU)
    assert len(granted.envs) > 0
    assert len(gpus.started) == 1  # PreStartContainer, as for a pod
    assert [p.name for p in node.podres_list()] == [f"lease-{granted.lease.id}"]
    end_process(owner)
    assert taking.next("ended").reason == "OwnerEnded"
    wait_free(node, GPU)


def test_pods_and_leases_never_have_the_same_device(node, gpus):
    assert node.admit(pod("p1", ("main", {GPU: 3}))).admitted
    taking = Taking(node, **want(node, GPU, 2))
    waiting = taking.next("waiting")
    assert (waiting.n_wanted, waiting.n_free, waiting.place) == (2, 1, 1)
    assert [h.name for h in waiting.holders] == ["default/p1"]
    one = Taking(node, **want(node, GPU, 1, wait_seconds=0))
    # It may not pass the one that waits, although one device is free.
    assert one.failure().code() == grpc.StatusCode.DEADLINE_EXCEEDED
    node.release("uid-p1")
    lease = taking.next("granted").lease
    assert ids_of(lease) == held_ids(node, GPU)
    assert not node.admit(pod("p2", ("main", {GPU: 3})), wait=0).admitted
    give(node, lease.id)
    assert held_ids(node, GPU) == []
    assert node.admit(pod("p2", ("main", {GPU: 4}))).admitted


@pytest.mark.parametrize("request_of, code, text", [
    (lambda node: want(node, GPU, 5), "FAILED_PRECONDITION", "there are 4"),
    (lambda node: want(node, "example.com/gpus"), "FAILED_PRECONDITION", f"did you mean {GPU}?"),
    (lambda node: {}, "INVALID_ARGUMENT", "nothing is asked for"),
    (lambda node: want(node, GPU, owner=node.pb.LeaseOwner(pid=4194304)), "INVALID_ARGUMENT",
     "there is no process"),
    (lambda node: want(node, GPU, owner=node.pb.LeaseOwner(pid=os.getpid(), start_time=1)),
     "INVALID_ARGUMENT", "is another one by now"),
    (lambda node: want(node, GPU, owner=node.pb.LeaseOwner(cgroup="../x")), "INVALID_ARGUMENT",
     "is no control group"),
    (lambda node: {"devices": [node.pb.LeaseDevices(device_class="gpu.example.com")]},
     "FAILED_PRECONDITION", "there is no device class"),
])
def test_what_can_never_be_had_is_refused_at_once(node, gpus, request_of, code, text):
    error = Taking(node, **request_of(node)).failure()
    assert error.code().name == code and text in error.details(), error.details()
    assert leases(node) == [] and held_ids(node, GPU) == []


def test_a_word_stands_for_the_one_that_it_fits(node, plugins, gpus):
    lease = Taking(node, **want(node, "gpu", 2)).next("granted").lease
    assert [r.resource for r in lease.resources] == [GPU] and len(ids_of(lease)) == 2
    give(node, lease.id)
    error = Taking(node, **want(node, "tpu")).failure()
    assert error.code().name == "INVALID_ARGUMENT"
    assert error.details() == f'nothing here is called "tpu"; there is {GPU}'
    one = node.pb.LeaseDevices(device_class="gpu", where=["memory >= 40Gi"])
    error = Taking(node, devices=[one]).failure()
    assert error.code().name == "INVALID_ARGUMENT" and "about devices of classes" in error.details()
    plugins(node, "other.example.com/gpu", ["o0"]).register()
    node.wait_devices("other.example.com/gpu", 1)
    error = Taking(node, **want(node, "gpu")).failure()
    assert error.code().name == "INVALID_ARGUMENT"
    assert error.details() == f'"gpu" may be {GPU}, other.example.com/gpu: say which'
    assert leases(node) == []


def test_who_leaves_the_queue_leaves_nothing(node, gpus):
    held = Taking(node, **want(node, GPU, 4))
    held.next("granted")
    first, second = (Taking(node, **want(node, GPU, 1)) for _ in range(2))
    assert {first.next("waiting").place, second.next("waiting").place} == {1, 2}
    first.cancel()
    until(lambda: [x.state for x in leases(node)] == ["held", "waiting"], 20, "one waits")
    give(node, leases(node)[0].id)
    assert len(ids_of(second.next("granted").lease)) == 1
    assert len(held_ids(node, GPU)) == 1


def test_a_lease_ends_at_its_time_with_a_warning_and_signals(node, gpus):
    owner = sleeper()
    taking = Taking(node, **want(node, GPU, 1, max_seconds=2, grace_seconds=1,
                                 owner=node.pb.LeaseOwner(pid=owner.pid)))
    lease = taking.next("granted").lease
    assert taking.next("warning").ends_ms == lease.ends_ms
    assert taking.next("ended").reason == "MaxTime"
    assert owner.wait(20) == -signal.SIGTERM
    wait_free(node, GPU)


def test_the_same_key_gives_the_same_lease_over_a_restart(node, plugins, gpus):
    owner = sleeper()
    asked = want(node, GPU, 1, key="once", owner=node.pb.LeaseOwner(pid=owner.pid))
    lease = Taking(node, **asked).next("granted").lease
    node.kill()
    node.start()
    gpus.stop()
    gpus.serve().register()
    again = Taking(node, **asked).next("granted").lease
    assert again.id == lease.id and ids_of(again) == ids_of(lease)
    assert len(leases(node)) == 1
    end_process(owner)
    wait_free(node, GPU)


def test_nobody_survives_a_boot(make_node, plugins, short_dir):
    boot_id = os.path.join(short_dir, "boot_id")
    with open(boot_id, "w", encoding="utf-8") as file:
        file.write("11111111-1111-1111-1111-111111111111\n")
    node = make_node("--boot-id-file", boot_id).start()
    plugin = plugins(node, GPU, ["g0"])
    plugin.register()
    node.wait_devices(GPU, 1)
    owner = sleeper()
    Taking(node, **want(node, GPU, owner=node.pb.LeaseOwner(pid=owner.pid))).next("granted")
    node.kill()
    with open(boot_id, "w", encoding="utf-8") as file:
        file.write("22222222-2222-2222-2222-222222222222\n")
    node.start()
    plugin.stop()
    plugin.serve().register()
    wait_free(node, GPU)  # the owner's number is that of another process by now
    end_process(owner)


def test_kills_of_the_holder_of_davitd_and_of_both(node, gpus):
    """No lease without its owner, no owner without its device, nothing held twice."""
    chance = random.Random(os.getpid())
    holders = {}  # id of a lease -> its process and devices
    for _ in range(int(os.environ.get("DAVIT_LEASE_KILLS", "6"))):
        while len(holders) < 3:
            holder = start_holder(node, GPU)
            word, lease, ids = holder.stdout.readline().split()
            assert word == "granted"
            holders[lease] = (holder, ids)
        what = chance.choice(["holder", "davitd", "both"])
        if what != "holder":
            node.kill()
        if what != "davitd":
            gone = chance.choice(list(holders))
            end_process(holders.pop(gone)[0])
        if what != "holder":
            node.start()
            gpus.stop()
            gpus.serve().register()
        expected = {lease: ids for lease, (_, ids) in holders.items()}
        until(lambda want=expected: {x.id: ",".join(ids_of(x)) for x in leases(node)} == want, 30,
              f"after {what}: {expected}")
        for device in node.resources()[GPU].values():
            assert len(device.holders) <= 1
        until(lambda want=expected: held_ids(node, GPU) == sorted(want.values()), 30, "devices")
    for holder, _ in holders.values():
        end_process(holder)
    wait_free(node, GPU)


POLICY = """
mode: enforce
leases:
- name: students
  by: [{uid: 4001}, {uid: 4002}]
  resources: [example.com/gpu]
  devices: 2
  maxTime: 1h
- name: operators
  by: [{group: 4009}]
  admin: true
"""


def test_users_have_their_quotas_and_their_own_leases(make_node, plugins, short_dir):
    policy = os.path.join(short_dir, "policy.yaml")
    with open(policy, "w", encoding="utf-8") as file:
        file.write(POLICY)
    os.chmod(short_dir, 0o755)
    node = make_node("--policy", policy, "--group", "4000").start()
    for resource in (GPU, NIC):
        plugins(node, resource, ["d0", "d1", "d2", "d3"]).register()
        node.wait_devices(resource, 4)

    def take(uid, resource=GPU, count=1, wait="-", groups=(4000,)):
        return start_holder(node, resource, count, wait, uid, groups)

    stranger = take(4003, groups=(4005,), wait=1)  # not in the group: it cannot connect at all
    first = take(4001)
    word, lease, _ = first.stdout.readline().split()
    assert word == "granted"
    seen = leases(node)[0]
    assert (seen.uid, seen.ends_ms - seen.since_ms) == (4001, 3600 * 1000)
    too_many = take(4001, count=3)
    assert "rule students allows 2 devices" in too_many.stdout.readline()
    other = take(4001, resource=NIC)
    assert "no rule allows uid 4001" in other.stdout.readline()
    second = take(4001)
    assert second.stdout.readline().startswith("granted")
    third = take(4001)  # both of its devices are held: it waits, and others do not wait for it
    assert third.stdout.readline().startswith("waiting 1")
    neighbour = take(4002, count=2)
    assert neighbour.stdout.readline().startswith("granted")
    end(node, lease, "maintenance")  # root may, with a reason
    told = iter(third.stdout.readline, "")  # that it waits it may be told more than once
    assert next(line for line in told if not line.startswith("waiting")).startswith("granted")
    with pytest.raises(grpc.RpcError) as error:
        end(node, leases(node)[0].id, "")
    assert error.value.code() == grpc.StatusCode.INVALID_ARGUMENT
    for process in (first, too_many, other, second, third, neighbour):
        end_process(process)
    wait_free(node, GPU)
    end_process(stranger)
