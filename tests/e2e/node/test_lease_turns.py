"""Whose turn it is when several could go at once, and what is left of a lease that ends."""

import os
import signal
import subprocess
import time

import grpc
import pytest

from leases import (Taking, end_process, give, held_ids, leases, renew, sleeper, start_holder,
                    wait_free, want)
from procs import until

GPU = "example.com/gpu"
GROUP = 4000
POLICY = """
mode: enforce
leases:
- name: students
  by: [{uid: 4001}, {uid: 4002}]
  resources: [example.com/gpu]
  devices: 2
  maxTime: 1h
"""


@pytest.fixture
def gpus(node, plugins):
    plugin = plugins(node, GPU, ["g0", "g1", "g2", "g3"])
    plugin.register()
    node.wait_devices(GPU, 4)
    return plugin


@pytest.fixture
def ruled(make_node, plugins, short_dir):
    os.chmod(short_dir, 0o755)
    policy = os.path.join(short_dir, "policy.yaml")
    with open(policy, "w", encoding="utf-8") as file:
        file.write(POLICY)
    node = make_node("--policy", policy, "--group", str(GROUP)).start()
    plugins(node, GPU, ["d0", "d1", "d2", "d3"]).register()
    node.wait_devices(GPU, 4)
    return node


def states(node):
    return sorted(x.state for x in leases(node) if x.uid == 4001)


def test_a_quota_holds_when_many_devices_become_free_at_once(ruled):
    all_of_them = Taking(ruled, **want(ruled, GPU, 4)).next("granted").lease
    waiting = [start_holder(ruled, GPU, uid=4001, groups=(GROUP,)) for _ in range(4)]
    for one in waiting:
        assert one.stdout.readline().startswith("waiting")
    give(ruled, all_of_them.id)
    until(lambda: states(ruled) == ["held", "held", "waiting", "waiting"], 20, "two are held")
    other = Taking(ruled, **want(ruled, GPU, 2))  # nobody waits for what a quota keeps back
    assert other.next("granted").lease.state == "held"
    assert states(ruled) == ["held", "held", "waiting", "waiting"]
    until(lambda: any("rule students allows 2 devices at once" in x.awaited for x in leases(ruled)),
          20, "they are told why")
    for one in waiting:
        end_process(one)


def test_renewals_do_not_make_a_lease_longer_than_the_policy_allows(ruled):
    holder = start_holder(ruled, GPU, uid=4001, groups=(GROUP,))
    assert holder.stdout.readline().startswith("granted")
    lease, = leases(ruled)
    renewer = os.path.join(os.environ["DAVIT_BUILD"], "davit")

    def renew_as_user(*words):
        return subprocess.run(["setpriv", "--reuid", "4001", "--regid", "4001", "--groups",
                               str(GROUP), renewer, "lease", "renew", lease.id, "--socket",
                               ruled.socket, *words], capture_output=True, text=True, timeout=60,
                              check=False)

    time.sleep(1.1)
    refused = renew_as_user("--max-time", "1h")
    assert refused.returncode != 0 and "with all renewals" in refused.stderr, refused
    assert renew_as_user().returncode == 0
    assert [x.ends_ms for x in leases(ruled)] == [lease.since_ms + 3600 * 1000]
    assert renew_as_user("--max-time", "10m").returncode == 0
    assert leases(ruled)[0].ends_ms < lease.ends_ms
    # Root may.
    assert renew(ruled, lease.id, max_seconds=7200).ends_ms > lease.ends_ms
    end_process(holder)
    wait_free(ruled, GPU)


def test_a_plugin_that_refuses_is_tried_again_after_a_pause(node, gpus):
    gpus.answer = lambda ids: "not today"
    taking = Taking(node, **want(node, GPU))
    waiting = taking.next("waiting")
    while "not today" not in waiting.awaited:
        waiting = taking.next("waiting")
    time.sleep(2)
    n_tried = len(gpus.allocated)
    assert 1 < n_tried < 8, n_tried
    # Others may try meanwhile, and so does it again.
    gpus.answer = gpus.answer_with_env
    other = Taking(node, **want(node, GPU)).next("granted").lease
    assert taking.next("granted").lease.id != other.id
    assert len(held_ids(node, GPU)) == 2


def test_what_the_owner_has_started_ends_with_the_lease(node, gpus):
    """A shell ends by SIGTERM at once, and what it runs in the foreground would stay."""
    def start(line):
        process = subprocess.Popen(["sh", "-c", line], stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, text=True)
        return process, [int(n) for n in process.stdout.readline().split()]

    def is_there(pid):
        try:
            with open(f"/proc/{pid}/stat", encoding="ascii") as file:
                return file.read().rsplit(")", 1)[1].split()[0] != "Z"
        except OSError:
            return False

    # One that goes, and one that must be killed; both were started by a child of the owner.
    owner, pids = start("sh -c 'sleep 600 & one=$!; sh -c \"trap : TERM; while :; do sleep 600; done\" &"
                        " echo $one $!; wait'")
    taking = Taking(node, **want(node, GPU, max_seconds=1, grace_seconds=2,
                                 owner=node.pb.LeaseOwner(pid=owner.pid)))
    lease = taking.next("granted").lease
    other = sleeper()  # not its child
    until(lambda: owner.poll() is not None, 20, "the shell has ended")
    assert owner.returncode == -signal.SIGTERM
    until(lambda: not is_there(pids[0]), 5, "one went")
    assert is_there(pids[1])
    assert held_ids(node, GPU) != []  # the other one still uses it
    assert [x.id for x in leases(node)] == [lease.id]
    assert taking.next("ended").reason == "MaxTime"
    assert not is_there(pids[1])
    assert other.poll() is None
    wait_free(node, GPU)
    end_process(other)
    end_process(owner)


def test_a_lease_that_has_ended_is_not_taken_again_by_its_key(node, gpus):
    owner = sleeper()
    asked = want(node, GPU, key="once", owner=node.pb.LeaseOwner(pid=owner.pid))
    lease = Taking(node, **asked).next("granted").lease
    again = Taking(node, only_attach=True, **asked)
    assert again.next("granted").lease.id == lease.id
    give(node, lease.id)
    assert again.next("ended").reason == "Given"
    error = Taking(node, only_attach=True, **asked).failure()
    assert error.code() == grpc.StatusCode.NOT_FOUND
    assert leases(node) == []
    end_process(owner)
