"""The calls of davit.node.v1 that davit run makes, on another gRPC stack: leases of devices that the
test names, one at a time each, for tests of what is done with a grant."""

import os
import threading
import time
from concurrent import futures

import grpc
import protos

METHOD = "/davit.node.v1.Node/"


def is_there(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as stat:
            return stat.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


class Lease:
    def __init__(self, number, request):
        self.id = f"l-{number}"
        self.request = request
        self.pid = request.owner.pid
        self.unit = request.owner.unit
        self.is_held = False
        self.end = ""  # why it was ended
        self.is_given = False


class LeaseServer:
    """`grant` is what a lease gets besides its id."""

    def __init__(self, folder, grant=None, n_devices=1):
        self.pb = protos.load("davit_node_v1")
        self.socket = os.path.join(folder, "leases.sock")
        self.grant = grant or {}
        self.n_devices = n_devices
        self.refusal = None  # (code, message)
        self.warning_ms = 0  # not 0: told behind the grant
        self.may_move = True
        self.leases = []
        self.ended = []
        self.changed = threading.Condition()
        self.server = grpc.server(futures.ThreadPoolExecutor(max_workers=16))
        self.server.add_generic_rpc_handlers((self._handlers(),))
        self.server.add_insecure_port("unix:" + self.socket)
        self.server.start()

    def close(self):
        self.server.stop(None).wait()

    def _handlers(self):
        pb = self.pb

        def unary(handle, request):
            return grpc.unary_unary_rpc_method_handler(
                handle, request_deserializer=request.FromString,
                response_serializer=lambda message: message.SerializeToString())

        handlers = {
            "TakeLease": grpc.unary_stream_rpc_method_handler(
                self._take, request_deserializer=pb.TakeLeaseRequest.FromString,
                response_serializer=lambda message: message.SerializeToString()),
            "GiveLease": unary(self._give, pb.GiveLeaseRequest),
            "RenewLease": unary(self._renew, pb.RenewLeaseRequest),
            "EndLease": unary(self._end, pb.EndLeaseRequest),
            "ListLeases": unary(self._list, pb.ListLeasesRequest),
        }
        return grpc.method_handlers_generic_handler("davit.node.v1.Node", handlers)

    @property
    def held(self):
        return [lease for lease in self.leases if lease.is_held]

    def _sweep(self):
        """Ends the leases of processes that are gone."""
        for lease in self.held:
            if not lease.unit and not is_there(lease.pid):
                lease.is_held, lease.end = False, "OwnerEnded"

    def _take(self, request, context):
        pb = self.pb
        if self.refusal:
            context.abort(*self.refusal)
        with self.changed:
            lease = Lease(len(self.leases) + 1, request)
            self.leases.append(lease)
        while context.is_active():
            with self.changed:
                self._sweep()
                if len(self.held) < self.n_devices:
                    lease.is_held = True
                    break
                holder = self.held[0]
                wait = request.wait_seconds if request.HasField("wait_seconds") else None
                if wait == 0:
                    context.abort(grpc.StatusCode.DEADLINE_EXCEEDED, "0 of 1 wanted are free")
                news = pb.LeaseNews(waiting=pb.LeaseWaiting(
                    place=1, n_waiting=1, short_of="example.com/gpu", n_wanted=1, n_free=0, has_count=True,
                    holders=[pb.LeaseHolder(name=os.path.basename(holder.request.command[0]),
                                            lease=holder.id, user="ada", pid=holder.pid,
                                            since_ms=int(time.time() * 1000) - 130 * 60000)]))
            yield news
            with self.changed:
                self.changed.wait(0.02)
        if not lease.is_held:
            return
        yield pb.LeaseNews(granted=pb.LeaseGrant(
            lease=pb.Lease(id=lease.id, state="held", owner=request.owner,
                           resources=[pb.ResourceDevices(resource="example.com/gpu",
                                                         device_ids=["g0"])]),
            **self.grant))
        if self.warning_ms:
            yield pb.LeaseNews(warning=pb.LeaseWarning(
                ends_ms=int(time.time() * 1000) + self.warning_ms, reason="MaxTime"))
        while context.is_active() and lease.is_held:
            with self.changed:
                self._sweep()
                self.changed.wait(0.02)
        if context.is_active():
            yield pb.LeaseNews(ended=pb.LeaseEnd(reason=lease.end or "Given"))

    def _find(self, name, context):
        for lease in self.held:
            if lease.id == name:
                return lease
        return context.abort(grpc.StatusCode.NOT_FOUND, f"there is no lease {name}")

    def _give(self, request, context):
        with self.changed:
            lease = self._find(request.id, context)
            lease.is_held, lease.is_given = False, True
            self.changed.notify_all()
        return self.pb.GiveLeaseResponse()

    def _renew(self, request, context):
        with self.changed:
            lease = self._find(request.id, context)
            if not self.may_move and request.HasField("owner"):
                context.abort(grpc.StatusCode.PERMISSION_DENIED, "not yours")
            if request.HasField("owner"):
                lease.pid, lease.unit = request.owner.pid, request.owner.unit
        return self.pb.RenewLeaseResponse(lease=self.pb.Lease(id=lease.id))

    def _end(self, request, context):
        with self.changed:
            lease = self._find(request.id, context)
            lease.is_held, lease.end = False, "EndedByAdmin"
            self.ended.append((request.id, request.reason))
            self.changed.notify_all()
        return self.pb.EndLeaseResponse()

    def _list(self, request, context):
        with self.changed:
            self._sweep()
            return self.pb.ListLeasesResponse(leases=[
                self.pb.Lease(id=lease.id, state="held", user="ada",
                              command=lease.request.command,
                              resources=[self.pb.ResourceDevices(resource="example.com/gpu",
                                                                 device_ids=["g0"])],
                              since_ms=int(time.time() * 1000) - 61000)
                for lease in self.held])
