"""kill -9 of davitd at random moments under load: nothing acknowledged is lost, nothing is held
twice, nothing stays taken for good."""

import os
import random
import threading
import time

import grpc
import pytest

from nodes import held, pod
from procs import kill_rounds

pytestmark = pytest.mark.release

GPU = "example.com/gpu"
N_DEVICES = 24
N_CLIENTS = 4


class Client(threading.Thread):
    """Admits and releases pods of its own until it is told to stop; keeps what was acknowledged."""

    def __init__(self, node, number, acknowledged, lock):
        super().__init__(daemon=True)
        self.node = node
        self.number = number
        self.acknowledged = acknowledged  # uid -> ids
        self.unsure = set()  # uids whose last call got no answer
        self.lock = lock
        self.history = {}  # uid -> the last answer about it, for the report
        self.stopping = False
        self.n_done = 0

    def run(self):
        chance = random.Random(self.number * 7919 + os.getpid())
        count = 0
        while not self.stopping:
            mine = [u for u in list(self.acknowledged) if u.startswith(f"c{self.number}-")]
            try:
                if mine and chance.random() < 0.5:
                    uid = chance.choice(mine)
                    self.unsure.add(uid)
                    answer = self.node.release(uid)
                    self.history[uid] = f"released: {answer.was_known}"
                    with self.lock:
                        self.acknowledged.pop(uid, None)
                    self.unsure.discard(uid)
                else:
                    count += 1
                    uid = f"c{self.number}-{time.monotonic_ns()}-{count}"
                    self.unsure.add(uid)
                    made = pod(uid, ("main", {GPU: chance.choice([1, 2])}), uid=uid)
                    answer = self.node.admit(made, timeout=5)
                    self.history[uid] = f"admitted: {answer.admitted} {answer.message}"
                    if answer.admitted:
                        with self.lock:
                            self.acknowledged[uid] = set(held(answer)["main"][GPU])
                    self.unsure.discard(uid)
                self.n_done += 1
            except (grpc.RpcError, ValueError):
                return  # the daemon is gone, or the channel was closed


def check(node, acknowledged, unsure, history):
    """What the daemon holds now against what it acknowledged."""
    listed = node.resources()[GPU]
    held_now = {}
    for device, seen in listed.items():
        assert len(seen.holders) <= 1, f"{device} is held by {list(seen.holders)}"
        for holder in seen.holders:
            held_now.setdefault(holder.pod.uid, set()).add(device)
    for uid, ids in acknowledged.items():
        if uid not in unsure:
            assert held_now.get(uid) == ids, f"{uid}: {held_now.get(uid)} instead of {ids}"
    known = {p.pod.uid for p in node.status().pods}
    for uid in held_now:
        assert uid in known, f"devices of {uid}, which is no pod here"
        assert uid in acknowledged or uid in unsure, f"{uid} holds devices; {history.get(uid)}"
    return held_now


def test_kill_at_random_moments(node, plugins):
    plugin = plugins(node, GPU, [f"g{i}" for i in range(N_DEVICES)]).register()
    node.wait_devices(GPU, N_DEVICES)
    acknowledged = {}
    lock = threading.Lock()
    chance = random.Random()
    n_calls = 0
    started = time.monotonic()
    for _ in range(kill_rounds()):
        clients = [Client(node, i, acknowledged, lock) for i in range(N_CLIENTS)]
        for client in clients:
            client.start()
        time.sleep(chance.uniform(0.01, 0.08))
        node.proc.kill()
        for client in clients:
            client.stopping = True
        node.disconnect()
        for client in clients:
            client.join(20)
            assert not client.is_alive()
        n_calls += sum(client.n_done for client in clients)
        unsure = set().union(*(client.unsure for client in clients))
        plugin.stop()
        node.start()
        plugin.serve().register()
        node.wait_devices(GPU, N_DEVICES)
        history = {u: h for client in clients for u, h in client.history.items()}
        held_now = check(node, acknowledged, unsure, history)
        for uid in unsure:  # whatever became of it: it is released, or was never there
            node.release(uid)
            acknowledged.pop(uid, None)
        acknowledged = {u: held_now[u] for u in acknowledged}
    for uid in list(acknowledged):
        node.release(uid)
    assert not any(d.holders for d in node.resources()[GPU].values())
    everything = node.admit(pod("all", ("main", {GPU: N_DEVICES})))
    assert everything.admitted, everything.message  # no device was lost for good
    print(
        f"kill -9: {kill_rounds()} rounds, {n_calls} calls answered, no device held twice, "
        f"no acknowledged allocation lost, no device lost for good, "
        f"{time.monotonic() - started:.1f} s"
    )
