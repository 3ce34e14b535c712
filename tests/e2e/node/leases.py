"""Leases by davit.node.v1: a caller that takes one and listens, as `davit run` does."""

import queue
import subprocess
import sys
import threading

import grpc

from nodes import UNLIMITED
from procs import until

# What it does is told by its arguments: the socket, the user's number, the resource, how many, and how
# long to wait. It prints the id of its lease and its devices, and stays until its input ends.
HOLDER = """
import os, sys
sys.path[:0] = {path!r}
uid = int(sys.argv[2])
if uid:
    os.setgroups([int(g) for g in sys.argv[6].split(",") if g])
    os.setgid(uid)
    os.setuid(uid)
import grpc, protos
pb = protos.load("davit_node_v1")
request = pb.TakeLeaseRequest(command=["holder"], key=sys.argv[7],
    resources=[pb.LeaseResource(resource=sys.argv[3], count=int(sys.argv[4]))])
if sys.argv[5] != "-":
    request.wait_seconds = int(sys.argv[5])
channel = grpc.insecure_channel("unix:" + sys.argv[1])
take = channel.unary_stream("/davit.node.v1.Node/TakeLease",
    request_serializer=pb.TakeLeaseRequest.SerializeToString,
    response_deserializer=pb.LeaseNews.FromString)
try:
    for news in take(request, wait_for_ready=True):
        if news.HasField("granted"):
            lease = news.granted.lease
            print("granted", lease.id, ",".join(sorted(
                i for r in lease.resources for i in r.device_ids)), flush=True)
            break
        print("waiting", news.waiting.place, flush=True)
except grpc.RpcError as error:
    print("failed", error.code().name, error.details(), flush=True)
sys.stdin.read()
"""


def start_holder(node, resource, count=1, wait="-", uid=0, groups=(), key=""):
    """A process that takes a lease, and is its owner."""
    path = [p for p in sys.path if p]
    return subprocess.Popen(
        [sys.executable, "-B", "-c", HOLDER.format(path=path), node.socket, str(uid), resource,
         str(count), str(wait), ",".join(map(str, groups)), key],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


class Taking:
    """A TakeLease call whose news are kept."""

    def __init__(self, node, **request):
        self.pb = node.pb
        self.news = queue.Queue()
        self.error = None
        self.channel = grpc.insecure_channel(f"unix:{node.socket}", options=UNLIMITED)
        take = self.channel.unary_stream(
            "/davit.node.v1.Node/TakeLease",
            request_serializer=self.pb.TakeLeaseRequest.SerializeToString,
            response_deserializer=self.pb.LeaseNews.FromString)
        self.call = take(self.pb.TakeLeaseRequest(**request), wait_for_ready=True)
        self.thread = threading.Thread(target=self._read, daemon=True)
        self.thread.start()

    def _read(self):
        try:
            for one in self.call:
                self.news.put(one)
        except grpc.RpcError as error:
            self.error = error
        self.news.put(None)

    def next(self, kind, timeout=60):
        """The next news of that kind."""
        while True:
            one = self.news.get(timeout=timeout)
            assert one is not None, f"no {kind}: {self.error}"
            if one.HasField(kind):
                return getattr(one, kind)

    def failure(self, timeout=60):
        self.thread.join(timeout)
        assert self.error is not None
        return self.error

    def cancel(self):
        self.call.cancel()
        self.thread.join(20)
        self.channel.close()


def want(node, resource, count=1, **more):
    return {"resources": [node.pb.LeaseResource(resource=resource, count=count)], **more}


def leases(node):
    return list(node.call("ListLeases", node.pb.ListLeasesRequest(),
                          node.pb.ListLeasesResponse).leases)


def give(node, lease):
    return node.call("GiveLease", node.pb.GiveLeaseRequest(id=lease), node.pb.GiveLeaseResponse)


def end(node, lease, reason):
    return node.call("EndLease", node.pb.EndLeaseRequest(id=lease, reason=reason),
                     node.pb.EndLeaseResponse)


def renew(node, lease, **more):
    return node.call("RenewLease", node.pb.RenewLeaseRequest(id=lease, **more),
                     node.pb.RenewLeaseResponse).lease


def ids_of(lease):
    return sorted(i for r in lease.resources for i in r.device_ids)


def held_ids(node, resource):
    return sorted(i for i, d in node.resources()[resource].items() if d.holders)


def wait_free(node, resource, timeout_s=60):
    until(lambda: not leases(node) and not held_ids(node, resource), timeout_s, "no lease is left")


def sleeper():
    """A process that only is there, as the owner of leases."""
    return subprocess.Popen(["sleep", "600"], stdin=subprocess.DEVNULL)


def end_process(process):
    process.kill()
    process.wait()
    for stream in (process.stdin, process.stdout):
        if stream:
            stream.close()
