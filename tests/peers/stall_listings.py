"""Rows of bench_stall.py: those who watch the node's own lists, which are sent whole after every
change: davit.node.v1 and the page's feed."""

import contextlib
import functools
import socket
import threading

import grpc

from nodes import UNLIMITED
from procs import until
from stall_devices import RESOURCE, LazyBytes, flip, plug

PATIENCE_S = 120
N_DEVICES = 100_000
N_WATCHES = 8
FEED = "/davit/v1/node"


class Reader:
    """Reads a stream and counts its parts, in a thread of its own."""

    def __init__(self, parts, stop):
        self.n = 0
        self.stop = stop
        self.parts = parts
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        try:
            for part in self.parts:
                self.n += len(part) > 2  # not the pulse of a feed
        except (grpc.RpcError, OSError):
            pass  # its end


def watch_devices(world, number):
    """Half of them watch one resource, the others all."""
    channel = grpc.insecure_channel(f"unix:{world.node.socket}", options=UNLIMITED)
    request = world.node.pb.ListDevicesRequest(resource=RESOURCE if number % 2 else "")
    parts = channel.unary_stream(
        "/davit.node.v1.Node/WatchDevices",
        request_serializer=type(request).SerializeToString,
        response_deserializer=LazyBytes.FromString,
    )(request)
    return Reader(parts, channel.close)


def watch_page(world, _number):
    connection, answer = world.node.api().open("GET", f"{FEED}?watch=true")
    return Reader(iter(answer.readline, b""), lambda: hang_up(connection))


def hang_up(connection):
    """Also while another thread reads."""
    with contextlib.suppress(OSError):
        connection.sock.shutdown(socket.SHUT_RDWR)


def begin(start, world):
    """As many watches as N_WATCHES, at once, until each has got its first list."""
    world.readers = [start(world, number) for number in range(N_WATCHES)]
    world.started += world.readers
    until(lambda: all(reader.n >= 1 for reader in world.readers), PATIENCE_S, "the first lists")


def change(world, ill):
    """Something changes, and all who watch have heard of it."""
    before = [reader.n for reader in world.readers]
    flip(world, ill)
    until(lambda: all(reader.n > n for reader, n in zip(world.readers, before)), PATIENCE_S,
          "the lists after a change")


def end(world):
    for reader in world.readers:
        reader.stop()


def get_node(world):
    assert len(world.api.ask("GET", FEED).body) > N_DEVICES


def groups(row):
    part = functools.partial
    yield "listings", [
        row(f"{N_WATCHES} watch {N_DEVICES} devices", part(begin, watch_devices),
            part(plug, N_DEVICES)),
        row("one of them falls ill", part(change, ill=1)),
        row("all of them fall ill", part(change, ill=N_DEVICES)),
        row("who watches goes", end),
        row("the node as JSON", get_node),
        row(f"{N_WATCHES} pages are opened", part(begin, watch_page)),
        row("one device is well again", part(change, ill=N_DEVICES - 1)),
        row("all are well again", part(change, ill=0)),
        row("the pages are closed", end),
    ]
