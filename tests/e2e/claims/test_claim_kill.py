"""kill -9 of davitd at random moments, under load, with a driver that counts: in the end every
prepared claim is in use by a pod that is here, every other one was unprepared, and the driver was
never called for a claim that was not on the disk."""

import os
import random
import shutil
import sqlite3
import threading
import time

import grpc
import pytest

from claim_nodes import GPU, NIC, WAIT_S, make_claim, pod
from procs import kill_rounds, until

pytestmark = pytest.mark.release

N_CLIENTS = 3
N_SLOTS = 4  # pods of a client, each with a claim of its own
N_SHARED = 2  # claims of all pods
SETTLE_EVERY = 5
PREPARING, PREPARED, UNPREPARING = 1, 2, 3


class Records:
    """What davitd has on the disk. It locks its file while it runs, so a copy is looked at; a copy
    that was taken while the file was tidied up may be torn, and is taken again."""

    def __init__(self, node, folder):
        self.path = os.path.join(node.state_dir, "state.db")
        self.copy = os.path.join(folder, "copy.db")

    def _rows(self):
        for end in ("", "-wal"):
            shutil.copyfile(self.path + end, self.copy + end)
        seen = sqlite3.connect(self.copy)
        try:
            seen.execute("PRAGMA synchronous=OFF")  # it is a copy
            seen.execute("PRAGMA locking_mode=EXCLUSIVE")
            return dict(seen.execute('SELECT k, v FROM "claims"'))
        finally:
            seen.close()

    @staticmethod
    def _phase(rows, claim):
        """Of the record of this very claim; None: there is none."""
        value = rows.get(f"c{claim.namespace}\0\1{claim.name}\0\1".encode(), b"")
        head = b"\1\n" + bytes([len(claim.uid)]) + claim.uid.encode() + b"\x10"
        return value[len(head)] if value.startswith(head) else None

    def phases(self, claims, expected):
        """Of each; looked at again if they are not what is expected."""
        found = []
        for _ in range(5):
            try:
                rows = self._rows()
                found = [self._phase(rows, claim) for claim in claims]
                if all(phase in expected for phase in found):
                    break
            except (sqlite3.DatabaseError, OSError):
                pass
            time.sleep(0.002)
        return found


class Counter:
    """Looks for the record of each claim that a driver is asked for. One call at a time, as most
    drivers have it; what it has begun it finishes, also for a davitd that is dead by then."""

    PHASES = {"prepare": (PREPARING, PREPARED), "unprepare": (UNPREPARING,)}

    def __init__(self, driver, records):
        self.driver = driver
        self.records = records
        self.lock = threading.Lock()
        self.unrecorded = []
        self.n_claims = 0
        driver.before = self.before
        driver.after = self.after

    def before(self, kind, claims):
        self.lock.acquire()
        is_there = self.driver.caller.is_there
        found = self.records.phases(claims, self.PHASES[kind]) if is_there() else []
        if not is_there():  # the next davitd may have written since
            self.lock.release()
            raise RuntimeError("nobody is there")
        self.n_claims += len(claims)
        if len(found) != len(claims) or not all(one in self.PHASES[kind] for one in found):
            self.unrecorded.append((kind, [str(claim) for claim in claims], found))

    def after(self, kind, claims):
        self.lock.release()


class Slot:
    """A pod that comes and goes. `is_here` as it was last told; None: the call got no answer. Once
    its release has begun, it may have given up some of its claims."""

    def __init__(self, name, claims):
        self.pod = pod(name, claims)
        self.uid = self.pod["metadata"]["uid"]
        self.claims = set(claims.values())
        self.is_here = False
        self.is_whole = False


class Client(threading.Thread):
    """Admits and releases its pods until davitd is gone."""

    def __init__(self, node, slots):
        super().__init__(daemon=True)
        self.node = node
        self.slots = slots
        self.counts = {"admitted": 0, "released": 0, "refused": 0}
        self.start()

    def _turn(self, slot, releases):
        before, slot.is_here, slot.is_whole = slot.is_here, None, False
        try:
            if releases:
                self.node.release(slot.uid)
                slot.is_here = False
                self.counts["released"] += 1
            else:
                slot.is_here = self.node.admit(slot.pod, timeout=WAIT_S).admitted
                slot.is_whole = slot.is_here
                self.counts["admitted" if slot.is_here else "refused"] += 1
        except grpc.RpcError as error:
            if error.code() in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED):
                raise
            slot.is_here = before  # it said why not
            self.counts["refused"] += 1

    def run(self):
        chance = random.Random()
        try:
            while True:
                slot = chance.choice(self.slots)
                self._turn(slot, slot.is_here or (slot.is_here is None and chance.random() < 0.5))
        except (grpc.RpcError, ValueError):
            pass  # davitd is gone, or the channel was closed


def make_slots(api):
    """A client's pods; the claims are there once and for all."""
    names = [[f"p{i}-{k}" for k in range(N_SLOTS)] for i in range(N_CLIENTS)]
    everybody = sum(names, [])
    uids = {}
    for name in everybody:
        drivers = [(GPU, name), (NIC, name)] if name.endswith("0") else [(GPU, name)]
        uids[f"c-{name}"] = make_claim(api, f"c-{name}", *drivers, pods=[name])
    for i in range(N_SHARED):
        uids[f"shared-{i}"] = make_claim(api, f"shared-{i}", (GPU, f"s{i}"), pods=everybody)
    slots = [[Slot(name, {"own": f"c-{name}", "shared": f"shared-{k % N_SHARED}"})
              for k, name in enumerate(of)] for of in names]
    return slots, uids


def check_pods(node, slots):
    """What was told is true after the crash as well."""
    here = {one.pod.uid for one in node.status().pods}
    for slot in slots:
        if slot.is_here is not None:
            assert (slot.uid in here) == slot.is_here, f"{slot.uid}: told {slot.is_here}"


def disorder(node, drivers, uids):
    """What is not as it should be, once what a crash left unfinished is finished; empty: nothing."""
    claims = node.claims()
    here = {one.pod.uid for one in node.status().pods}
    found = []
    for name, claim in claims.items():
        users = {one.uid for one in claim.pods}
        if claim.uid != uids[name] or claim.state != "prepared" or not users or users - here:
            found.append(f"{name} is {claim.state} for {users}")
    for driver in drivers:
        recorded = {one.uid for one in claims.values()
                    if driver.name in (of.name for of in one.drivers)}
        prepared = driver.prepared()
        if prepared != recorded:
            found.append(f"{driver.name} has {prepared - recorded} too many, "
                         f"lacks {recorded - prepared}")
    return found


def settle(node, drivers, slots, uids):
    """Until all is in order; then the pods that were admitted have what they were told."""
    try:
        until(lambda: not disorder(node, drivers, uids), WAIT_S, "order")
    except TimeoutError:
        pytest.fail(f"{disorder(node, drivers, uids)}; pods: {node.pods()}")
    claims = node.claims()
    for slot in slots:
        if slot.is_whole:
            for name in slot.claims:
                users = {one.uid for one in claims[name].pods} if name in claims else set()
                assert slot.uid in users, f"{name} is for {users}, not for {slot.uid}"


@pytest.mark.timeout(300)  # on a machine with other things to do
def test_kill_at_random_moments(node, api, driver, make_driver, short_dir):
    drivers = [driver, make_driver(node, NIC).serve()]
    node.wait_connected(NIC)
    slots_of, uids = make_slots(api)
    slots = sum(slots_of, [])
    for one in drivers:
        one.api = None  # it knows its devices
    counters = [Counter(one, Records(node, os.path.join(short_dir, one.name))) for one in drivers]
    for one in drivers:
        os.mkdir(os.path.join(short_dir, one.name))
    counts = {}
    chance = random.Random()
    began = time.monotonic()
    for number in range(kill_rounds()):
        if number % 4:  # else in the middle of its start
            for one in drivers:
                node.wait_connected(one.name)
        clients = [Client(node, of) for of in slots_of]
        time.sleep(chance.uniform(0.002, 0.08))
        node.proc.kill()
        node.disconnect()
        for client in clients:
            client.join(WAIT_S)
            assert not client.is_alive()
            for what, n in client.counts.items():
                counts[what] = counts.get(what, 0) + n
        node.start()
        check_pods(node, slots)
        if number % SETTLE_EVERY == 0:
            settle(node, drivers, slots, uids)
            node.stop()  # which also tidies up its file
            node.start()
    settle(node, drivers, slots, uids)
    for slot in slots:
        node.release(slot.uid)
    assert node.claims() == {} and node.pods() == {}
    assert not any(one.prepared() for one in drivers)
    for one in drivers:
        one.overlaps.clear()  # a call of a davitd that was killed, and one of the next
    assert not any(counter.unrecorded for counter in counters), [c.unrecorded for c in counters]
    assert counts["admitted"] > 0 and counts["released"] > 0, counts
    n_calls = sum(len(one.calls) for one in drivers)
    n_claims = sum(counter.n_claims for counter in counters)
    print(
        f"kill -9: {kill_rounds()} rounds, {counts['admitted']} pods admitted, "
        f"{counts['released']} released, {n_calls} driver calls for {n_claims} claims, "
        f"no claim leaked, no call without a record, {time.monotonic() - began:.1f} s"
    )
