"""Rows of bench_stall.py: the node's own API, with pods as large as they may be."""

import functools
import re

from procs import until
from servers import PODS, Api
from stall_lists import make_many
from stall_objects import pod

PATIENCE_S = 120
N_PODS = 40
VALUE = "v" * 90_000  # 20 of them in a pod
N_READERS = 8


def large_pod(number):
    env = [{"name": f"E{i}", "value": VALUE} for i in range(20)]
    return pod(f"large{number}", {"env": env}, nodeName="n1")


def make_pods(world):
    make_many(world, PODS, large_pod, N_PODS)
    until(lambda: len(world.node.status().pods) == N_PODS, PATIENCE_S, "the pods on n1")


def open_own_api(world):
    found = re.search(r"the node's own API serves.*\bport=(\d+)", world.node.proc.log)
    return Api(int(found.group(1)), world.node.context(), world.node.token)


def read(n, world):
    """Has n clients read the list at the same time."""
    opened = [open_own_api(world).open("GET", "/pods") for _ in range(n)]
    for connection, answer in opened:
        n_bytes = sum(iter(lambda: len(answer.read(1 << 20)), 0))
        assert answer.status == 200 and n_bytes > N_PODS * 20 * len(VALUE), (answer, n_bytes)
        connection.close()


def leave(world):
    for connection, answer in [open_own_api(world).open("GET", "/pods") for _ in range(N_READERS)]:
        answer.read(1)
        connection.close()


def groups(row):
    part = functools.partial
    yield "node-api", [
        row(f"the node's list of {N_PODS} pods of 1.8 MB", part(read, 1), make_pods),
        row(f"{N_READERS} read it", part(read, N_READERS)),
        row(f"{N_READERS} leave in the middle of it", leave),
    ], "--node-listen", "127.0.0.1:0"
