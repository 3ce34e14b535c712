"""Users other than root at davit.sock: what they may call, and what a policy gives them."""

import os
import signal
import subprocess
import sys

import pytest

import protos
from leases import end_process, leases, start_holder, wait_free
from procs import until

GPU = "example.com/gpu"
GROUP = 4000
# Looking, and leases, which check themselves whose they are. Whatever else there is, and whatever
# comes, is root's.
FOR_ALL = {"ListDevices", "WatchDevices", "ListPlugins", "ListOffers", "Status", "WatchPods",
           "ListClaims", "WatchClaims", "TakeLease", "RenewLease", "GiveLease", "EndLease",
           "ListLeases", "WatchLeases"}

# Calls each of argv[4:] with an empty request as user argv[2] of group argv[3], and prints what is
# said; "Name=TEXT" sends the id and reason of EndLease.
CALLER = """
import os, sys
os.setgroups([int(g) for g in sys.argv[3].split(",")])
os.setgid(int(sys.argv[2]))
os.setuid(int(sys.argv[2]))
sys.path[:0] = {path!r}
import grpc, protos
pb = protos.load("davit_node_v1")
channel = grpc.insecure_channel("unix:" + sys.argv[1])
for word in sys.argv[4:]:
    name, _, lease = word.partition("=")
    request = b""
    if lease:
        request = pb.EndLeaseRequest(id=lease, reason="maintenance").SerializeToString()
    call = channel.unary_stream("/davit.node.v1.Node/" + name)(request, wait_for_ready=True)
    try:
        next(call, None)  # of a stream that goes on, the first is enough
        print(name, "OK", flush=True)
    except grpc.RpcError as error:
        print(name, error.code().name, error.details(), flush=True)
    call.cancel()
"""


def call_as(node, uid, groups, *words):
    """{method: the code}"""
    path = [p for p in sys.path if p]
    done = subprocess.run(
        [sys.executable, "-B", "-c", CALLER.format(path=path), node.socket, str(uid),
         ",".join(map(str, groups)), *words],
        stdout=subprocess.PIPE, text=True, timeout=100, check=True)
    return {line.split()[0]: line.split(maxsplit=1)[1] for line in done.stdout.splitlines()}


def write(path, text):
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def test_every_method_that_is_not_for_all_is_roots(make_node, short_dir):
    os.chmod(short_dir, 0o755)
    node = make_node("--group", str(GROUP)).start()
    service = protos.load("davit_node_v1").DESCRIPTOR.services_by_name["Node"]
    methods = [method.name for method in service.methods]
    assert FOR_ALL < set(methods)
    said = call_as(node, 4001, [GROUP], *methods)
    assert set(said) == set(methods)
    for name, text in said.items():
        is_denied = text.startswith("PERMISSION_DENIED") and "is for root" in text
        assert is_denied == (name not in FOR_ALL), (name, text)
    unknown = call_as(node, 4001, [GROUP], "NoSuchMethod")["NoSuchMethod"]
    assert unknown.startswith(("UNIMPLEMENTED", "PERMISSION_DENIED"))


RULES = """
mode: enforce
leases:
- name: students
  by: [{uid: 4001}, {uid: 4002}]
  resources: [example.com/gpu]
  devices: %s
- name: operators
  by: [{group: 4009}]
  admin: true
"""


@pytest.fixture
def ruled(make_node, plugins, short_dir):
    os.chmod(short_dir, 0o755)
    policy = os.path.join(short_dir, "policy.yaml")
    write(policy, RULES % 1)
    node = make_node("--policy", policy, "--group", str(GROUP)).start()
    node.policy = policy
    plugins(node, GPU, ["d0", "d1", "d2"]).register()
    node.wait_devices(GPU, 3)
    return node


def test_admins_end_leases_of_others_and_nobody_else_does(ruled):
    holder = start_holder(ruled, GPU, uid=4001, groups=(GROUP,))
    word, lease, _ = holder.stdout.readline().split()
    assert word == "granted"
    other = call_as(ruled, 4002, [GROUP], f"EndLease={lease}", f"GiveLease={lease}",
                    f"RenewLease={lease}")
    assert all(text.startswith("PERMISSION_DENIED") for text in other.values()), other
    assert [x.state for x in leases(ruled)] == ["held"]
    admin = call_as(ruled, 4005, [GROUP, 4009], f"GiveLease={lease}", f"EndLease={lease}")
    assert admin["GiveLease"].startswith("PERMISSION_DENIED")  # its owner would not be signalled
    assert admin["EndLease"] == "OK"
    wait_free(ruled, GPU)
    assert holder.wait(40) != 0
    end_process(holder)


def test_a_policy_with_a_mistake_leaves_the_old_one_in_force(ruled):
    def asks_for(count):
        process = start_holder(ruled, GPU, count, 0, uid=4001, groups=(GROUP,))
        line = process.stdout.readline()
        end_process(process)
        until(lambda: not leases(ruled), 20, "it is given back")
        return line

    assert "rule students allows 1 devices" in asks_for(2)
    write(ruled.policy, RULES % "many")
    ruled.proc.signal(signal.SIGHUP)
    until(lambda: "the policy is not taken" in ruled.proc.log, 20, "it was read")
    assert "line 7" in ruled.proc.log  # where "many" stands
    assert "rule students allows 1 devices" in asks_for(2)
    assert asks_for(1).startswith("granted")
    write(ruled.policy, RULES % 2)
    ruled.proc.signal(signal.SIGHUP)
    until(lambda: asks_for(2).startswith("granted"), 20, "the new policy is in force")
