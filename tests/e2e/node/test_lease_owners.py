"""Who holds a lease: processes, control groups and units, and from one to the other."""

import contextlib
import glob
import os
import subprocess
import sys

import grpc
import pytest

from leases import (Taking, end, end_process, held_ids, leases, renew, sleeper, start_holder,
                    wait_free, want)
from procs import until

GPU = "example.com/gpu"


@pytest.fixture
def gpus(node, plugins):
    plugin = plugins(node, GPU, ["g0", "g1"])
    plugin.register()
    node.wait_devices(GPU, 2)
    return plugin


def hierarchy():
    """Where control groups may be made: version 2, or any of version 1."""
    roots = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified", *sorted(glob.glob("/sys/fs/cgroup/*"))]
    for root in roots:
        if os.access(f"{root}/cgroup.procs", os.W_OK):
            return root
    pytest.skip("no control groups can be made here")


@contextlib.contextmanager
def group(path):
    """A control group; what it was made in is left as it was."""
    made = []
    whole = hierarchy()
    try:
        for part in path.split("/"):
            whole = f"{whole}/{part}"
            if not os.path.isdir(whole):
                os.mkdir(whole)
                made.append(whole)
        yield whole
    finally:
        for one in reversed(made):
            until(lambda path=one: not os.path.isdir(path) or remove(path), 20, f"{one} is empty")


def remove(path):
    try:
        os.rmdir(path)
        return True
    except OSError:  # a process that was killed is in it for a moment
        return False


def enter(path, process):
    with open(f"{path}/cgroup.procs", "w", encoding="ascii") as file:
        file.write(str(process.pid))


def take(node, process, **more):
    taking = Taking(node, **want(node, GPU, owner=node.pb.LeaseOwner(pid=process.pid), **more))
    return taking, taking.next("granted").lease


def restart(node, gpus):
    node.kill()
    node.start()
    gpus.stop()
    gpus.serve().register()
    node.wait_devices(GPU, 2)


def test_a_lease_moves_to_another_process(node, gpus):
    first, second = sleeper(), sleeper()
    _, lease = take(node, first, max_seconds=3600)
    moved = renew(node, lease.id, keeps_end=True, owner=node.pb.LeaseOwner(pid=second.pid))
    assert (moved.owner.pid, moved.ends_ms) == (second.pid, lease.ends_ms)
    end_process(first)
    # It is on the disk: davitd is killed right after its answer.
    restart(node, gpus)
    assert [x.owner.pid for x in leases(node)] == [second.pid]
    assert len(held_ids(node, GPU)) == 1
    end_process(second)
    wait_free(node, GPU)


def test_a_new_end_is_on_the_disk_when_it_is_told(node, gpus):
    owner = sleeper()
    _, lease = take(node, owner)
    assert lease.ends_ms == 0
    renewed = renew(node, lease.id, max_seconds=7200)
    node.kill()
    node.start()
    assert [x.ends_ms for x in leases(node)] == [renewed.ends_ms] != [0]
    end(node, lease.id, "no more")
    node.kill()  # an end that has begun goes on
    node.start()
    gpus.stop()
    gpus.serve().register()
    wait_free(node, GPU)
    owner.wait(20)
    end_process(owner)


def test_a_lease_moves_to_a_control_group_and_ends_with_it(node, gpus):
    first, second = sleeper(), sleeper()
    with group(f"davit-test-{os.getpid()}") as path:
        enter(path, second)
        taking, lease = take(node, first)
        moved = renew(node, lease.id, keeps_end=True, owner=node.pb.LeaseOwner(cgroup=path))
        assert moved.owner.pid == 0
        assert os.path.join("/sys/fs/cgroup", moved.owner.cgroup) == path
        end_process(first)
        restart(node, gpus)
        assert [x.owner.cgroup for x in leases(node)] == [moved.owner.cgroup]
        end_process(second)
        wait_free(node, GPU)
        taking.cancel()


def test_a_unit_holds_a_lease_until_it_stays_empty(node, gpus):
    """The control group is what systemd has of a service; what starts and stops it does not matter."""
    first, second = sleeper(), sleeper()
    unit = f"davit-test-{os.getpid()}.service"
    with group(f"system.slice/{unit}") as path:
        enter(path, second)
        taking, lease = take(node, first)
        moved = renew(node, lease.id, keeps_end=True, owner=node.pb.LeaseOwner(unit=unit))
        assert moved.owner.unit == unit
        end_process(first)
        third = sleeper()
        end_process(second)  # empty for a moment, as between two commands of a service
        enter(path, third)
        assert len(held_ids(node, GPU)) == 1
        end_process(third)
        assert taking.next("ended").reason == "OwnerEnded"
        wait_free(node, GPU)


@pytest.mark.parametrize("owner, text", [
    ({"pid": 4194304}, "there is no process"),
    ({"pid": 1, "start_time": 1}, "is another one by now"),
    ({"pid": 1, "unit": "x.service"}, "only one of them"),
    ({"cgroup": "davit-no-such-group"}, "there is no control group"),
    ({"unit": "davit-no-such-unit.service"}, "does not run"),
])
def test_a_wrong_owner_changes_nothing(node, gpus, owner, text):
    process = sleeper()
    _, lease = take(node, process)
    with pytest.raises(grpc.RpcError) as error:
        renew(node, lease.id, max_seconds=60, owner=node.pb.LeaseOwner(**owner))
    assert error.value.code() == grpc.StatusCode.INVALID_ARGUMENT
    assert text in error.value.details()
    assert [(x.owner.pid, x.ends_ms) for x in leases(node)] == [(process.pid, 0)]
    end_process(process)
    wait_free(node, GPU)


# Moves the lease argv[4] to the process, group or unit of argv[5:7], as user argv[2] in group argv[3].
MOVER = """
import os, sys
sys.path[:0] = {path!r}
os.setgroups([int(sys.argv[3])])
os.setgid(int(sys.argv[2]))
os.setuid(int(sys.argv[2]))
import grpc, protos
pb = protos.load("davit_node_v1")
renew = grpc.insecure_channel("unix:" + sys.argv[1]).unary_unary("/davit.node.v1.Node/RenewLease",
    request_serializer=pb.RenewLeaseRequest.SerializeToString,
    response_deserializer=pb.RenewLeaseResponse.FromString)
value = int(sys.argv[6]) if sys.argv[5] == "pid" else sys.argv[6]
try:
    renew(pb.RenewLeaseRequest(id=sys.argv[4], keeps_end=True,
                               owner=pb.LeaseOwner(**{{sys.argv[5]: value}})), wait_for_ready=True)
    print("moved")
except grpc.RpcError as error:
    print(error.code().name, error.details())
"""


def test_users_move_their_leases_to_what_is_theirs(make_node, plugins, short_dir):
    os.chmod(short_dir, 0o755)
    node = make_node("--group", "4000").start()
    gpu = plugins(node, GPU, ["g0"])
    gpu.register()
    node.wait_devices(GPU, 1)

    def move(uid, lease, kind, value):
        mover = MOVER.format(path=[p for p in sys.path if p])
        done = subprocess.run([sys.executable, "-B", "-c", mover, node.socket, str(uid), "4000",
                               lease, kind, str(value)],
                              stdout=subprocess.PIPE, text=True, timeout=60, check=True)
        return done.stdout.strip()

    def sleeper_of(uid):
        return subprocess.Popen(["sleep", "600"], user=uid, stdin=subprocess.DEVNULL)

    holder = start_holder(node, GPU, uid=4001, groups=(4000,))
    word, lease, _ = holder.stdout.readline().split()
    assert word == "granted"
    own, others = sleeper_of(4001), sleeper_of(4002)
    assert "is that of user 4002" in move(4001, lease, "pid", others.pid)
    assert move(4002, lease, "pid", others.pid).startswith("PERMISSION_DENIED lease")
    assert move(4001, lease, "unit", "ssh.service").startswith("PERMISSION_DENIED owner")
    with group(f"davit-test-{os.getpid()}") as path:
        assert move(4001, lease, "cgroup", path).startswith("PERMISSION_DENIED owner")
    assert move(4001, lease, "pid", own.pid) == "moved"
    end_process(holder)
    assert [x.owner.pid for x in leases(node)] == [own.pid]
    end_process(own)
    wait_free(node, GPU)
    end_process(others)
