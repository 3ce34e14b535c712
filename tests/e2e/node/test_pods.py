"""Pods: given up, asked for twice, released too early, in crowds, and when davitd ends."""

import json
import re
import signal
import threading
import time
from concurrent import futures

import grpc
import pytest

from nodes import held, pod
from procs import until

GPU = "example.com/gpu"
NIC = "example.com/nic"
STOP_S = 2


def holders(node):
    """{device: uid}, of all resources."""
    found = {}
    for devices in node.resources().values():
        for device, seen in devices.items():
            for holder in seen.holders:
                assert found.setdefault(device, holder.pod.uid) == holder.pod.uid
    return found


def states(node):
    return {p.pod.name: p.state for p in node.status().pods}


@pytest.fixture
def pool():
    with futures.ThreadPoolExecutor(64) as made:
        yield made


class Gate:
    """Allocate of the plugin waits until `open`; `n_waiting` calls do."""

    def __init__(self, plugin):
        self.plugin = plugin
        self.n_waiting = 0
        self._open = threading.Event()
        plugin.answer = self._answer

    def _answer(self, ids):
        self.n_waiting += 1
        self._open.wait(30)
        return self.plugin.answer_with_env(ids)

    def wait_for(self, n):
        until(lambda: self.n_waiting >= n, 10, f"{n} calls of Allocate")

    def open(self):
        self.plugin.answer = self.plugin.answer_with_env
        self._open.set()


@pytest.fixture
def gate(node, plugins):
    """A node with devices g0 to g7 behind a gate, and n0 and n1 that are free to take."""
    plugin = plugins(node, GPU, [f"g{i}" for i in range(8)]).register()
    plugins(node, NIC, ["n0", "n1"]).register()
    node.wait_devices(GPU, 8)
    node.wait_devices(NIC, 2)
    gate = Gate(plugin)
    yield gate
    gate.open()


def code_of(call, *args, **options):
    with pytest.raises(grpc.RpcError) as failed:
        call(*args, **options)
    return failed.value.code()


# ---- given up


def test_a_client_that_gives_up_waiting_leaves_nothing(node, plugins):
    plugin = plugins(node, GPU, ["g0"]).register()
    node.wait_devices(GPU, 1)
    plugin.stop()
    until(lambda: not node.resource(GPU).connected, 10, "the plugin to be missed")
    late = code_of(node.admit, pod("p", ("main", {GPU: 1})), timeout=0.4)
    assert late == grpc.StatusCode.DEADLINE_EXCEEDED
    until(lambda: states(node) == {}, 10, "the pod to be forgotten")
    plugin.serve().register()
    node.wait_devices(GPU, 1)
    assert plugin.allocated == [] and holders(node) == {}


def test_a_client_that_gives_up_in_the_second_container_gives_back_the_first(node, gate):
    asked = pod("p", ("a", {NIC: 2}), ("b", {GPU: 1}))
    assert code_of(node.admit, asked, timeout=0.5) == grpc.StatusCode.DEADLINE_EXCEEDED
    assert gate.n_waiting == 1
    until(lambda: states(node) == {}, 10, "the pod to be forgotten")
    assert holders(node) == {}
    assert node.admit(pod("q", ("main", {NIC: 2}))).admitted


def test_many_clients_that_give_up_leave_nothing(node, gate, pool):
    asked = [
        pool.submit(code_of, node.admit, pod(f"p{i}", ("main", {GPU: 1})), timeout=0.3 + i / 50)
        for i in range(8)
    ]
    assert {a.result() for a in asked} == {grpc.StatusCode.DEADLINE_EXCEEDED}
    until(lambda: states(node) == {}, 10, "the pods to be forgotten")
    gate.open()
    assert len(set(held(node.admit(pod("all", ("main", {GPU: 8}))))["main"][GPU])) == 8


def test_what_was_given_up_is_not_there_after_a_restart(node, gate):
    assert code_of(node.admit, pod("p", ("a", {NIC: 1}), ("b", {GPU: 1})), timeout=0.4)
    until(lambda: states(node) == {}, 10, "the pod to be forgotten")
    node.kill()
    node.start()
    assert states(node) == {} and holders(node) == {}


# ---- twice


def test_the_same_pod_twice_at_once_is_aborted(node, gate, pool):
    asked = pod("p", ("main", {GPU: 1}))
    first = pool.submit(node.admit, asked)
    gate.wait_for(1)
    assert states(node) == {"p": "admitting"}
    assert code_of(node.admit, asked) == grpc.StatusCode.ABORTED
    gate.open()
    assert first.result(10).admitted
    assert held(node.admit(asked)) == held(first.result())
    assert gate.n_waiting == 1


def test_a_release_while_admitting_is_aborted(node, gate, pool):
    first = pool.submit(node.admit, pod("p", ("main", {GPU: 1})))
    gate.wait_for(1)
    assert code_of(node.release, "uid-p") == grpc.StatusCode.ABORTED
    assert code_of(node.container_options, "uid-p", "main") == grpc.StatusCode.NOT_FOUND
    gate.open()
    assert first.result(10).admitted
    assert node.release("uid-p").was_known
    assert holders(node) == {}


@pytest.mark.parametrize(
    "containers",
    [
        [("main", {GPU: 2})],
        [("main", {GPU: 3, NIC: 1})],
        [("main", {NIC: 1})],
        [("main", {GPU: 1}), ("more", {GPU: 100})],
        [("main", {GPU: 1}), ("more", {GPU: 1}), ("most", {GPU: 100})],
        [("first", {NIC: 1}), ("main", {GPU: 2})],
    ],
    ids=["more", "more of both", "another", "too much", "some and too much", "a new one first"],
)
def test_other_requests_leave_the_pod_with_what_it_had(node, gate, containers):
    gate.open()
    first = node.admit(pod("p", ("main", {GPU: 1})))
    before = holders(node)
    again = node.admit(pod("p", *containers))
    if again.admitted:  # it held all that it still asks for
        expected = {d for by in held(again).values() for ids in by.values() for d in ids}
        assert set(holders(node)) == expected
        return
    assert again.reason == "UnexpectedAdmissionError"
    assert holders(node) == before
    assert states(node) == {"p": "admitted"}
    assert held(node.admit(pod("p", ("main", {GPU: 1})))) == held(first)
    assert node.admit(pod("rest", ("main", {GPU: 7, NIC: 2}))).admitted
    assert node.release("uid-p").was_known
    assert set(holders(node).values()) == {"uid-rest"}


def test_a_changed_amount_is_told(node, gate):
    gate.open()
    assert node.admit(pod("p", ("main", {GPU: 1}))).admitted
    refused = node.admit(pod("p", ("main", {GPU: 2})))
    assert (
        f'pod "uid-p" container "main" changed request for resource "{GPU}" from 1 to 2'
        in refused.message
    )


def test_a_client_that_gives_up_on_a_second_admission_changes_nothing(node, gate):
    assert node.admit(pod("p", ("main", {NIC: 1}))).admitted
    before = holders(node)
    asked = pod("p", ("main", {NIC: 1}), ("more", {GPU: 1}))
    assert code_of(node.admit, asked, timeout=0.4) == grpc.StatusCode.DEADLINE_EXCEEDED
    until(lambda: states(node) == {"p": "admitted"}, 10, "the pod to be as it was")
    assert holders(node) == before
    node.kill()
    node.start()
    assert holders(node) == before and states(node) == {"p": "admitted"}


# ---- names


def test_a_pod_without_a_uid_gets_one_and_keeps_it(node, gate):
    gate.open()
    asked = pod("p", ("main", {GPU: 1}))
    del asked["metadata"]["uid"]
    first = node.admit(asked)
    uid = first.pod.uid
    assert re.fullmatch(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}", uid)
    assert set(holders(node).values()) == {uid}
    again = node.admit(asked)
    assert again.pod.uid == uid and held(again) == held(first)
    node.stop()
    node.start()
    assert set(holders(node).values()) == {uid}
    assert node.release(uid).was_known
    asked["metadata"]["name"] = "other"
    assert node.admit(asked, wait=0).pod.uid != uid


def test_a_uid_belongs_to_one_pod(node):
    assert node.admit(pod("p", ("main", {}), uid="u")).admitted
    assert code_of(node.admit, pod("q", ("main", {}), uid="u")) == grpc.StatusCode.INVALID_ARGUMENT
    assert states(node) == {"p": "admitted"}


def release_by_name(node, name):
    ref = node.pb.PodRef(namespace="default", name=name)
    request = node.pb.ReleasePodRequest(pod=ref)
    return node.call("ReleasePod", request, node.pb.ReleasePodResponse)


def test_a_pod_made_anew_under_its_name_is_another(node, gate):
    """As a controller does it: the new one comes while the old one ends."""
    gate.open()
    assert node.admit(pod("p", ("main", {GPU: 1}), uid="old")).admitted
    assert node.admit(pod("p", ("main", {GPU: 1}), uid="new")).admitted
    assert sorted(holders(node).values()) == ["new", "old"]
    assert release_by_name(node, "p").was_known  # the newer one
    assert set(holders(node).values()) == {"old"}
    assert release_by_name(node, "p").was_known  # and then the name is the older one's again
    assert holders(node) == {}


def test_the_older_of_two_ends_first(node, gate):
    gate.open()
    assert node.admit(pod("p", ("main", {GPU: 1}), uid="old")).admitted
    assert node.admit(pod("p", ("main", {GPU: 1}), uid="new")).admitted
    assert node.release("old").was_known
    assert release_by_name(node, "p").was_known
    assert holders(node) == {}


def test_nobody_is_released_without_a_name(node):
    request = node.pb.ReleasePodRequest()
    answer = node.call("ReleasePod", request, node.pb.ReleasePodResponse)
    assert not answer.was_known


# ---- many


def test_hundreds_of_admissions_at_once_never_give_a_device_twice(node, plugins, pool):
    n_devices, n_pods = 200, 400
    plugins(node, GPU, [f"g{i}" for i in range(n_devices)]).register()
    node.wait_devices(GPU, n_devices)
    asked = [pool.submit(node.admit, pod(f"p{i}", ("main", {GPU: 1}))) for i in range(n_pods)]
    answers = [a.result(60) for a in asked]
    given = [held(a)["main"][GPU][0] for a in answers if a.admitted]
    assert len(given) == len(set(given)) == n_devices
    refused = [a for a in answers if not a.admitted]
    assert len(refused) == n_pods - n_devices
    assert all("Requested: 1, Available: 0" in a.message for a in refused)
    assert len(holders(node)) == n_devices
    admitted = [a.pod.uid for a in answers if a.admitted]
    released = [pool.submit(node.release, uid) for uid in admitted]
    assert all(r.result(60).was_known for r in released)
    assert holders(node) == {} and states(node) == {}


def test_admissions_and_releases_in_disorder(node, plugins, pool):
    plugins(node, GPU, [f"g{i}" for i in range(30)]).register()
    plugins(node, NIC, [f"n{i}" for i in range(30)]).register()
    node.wait_devices(GPU, 30)
    node.wait_devices(NIC, 30)

    def live(number):
        kept = None
        for i in range(12):
            name = f"p{number}-{i}"
            answer = node.admit(pod(name, ("a", {GPU: 1 + i % 3}), ("b", {NIC: 1, GPU: 1})))
            if answer.admitted and i % 4 == 3 and kept is None:
                kept = answer
            elif answer.admitted:
                assert node.release(f"uid-{name}").was_known
        return kept

    kept = [k for k in pool.map(live, range(16)) if k]
    expected = {}
    for answer in kept:
        for by in held(answer).values():
            for ids in by.values():
                for device in ids:
                    assert device not in expected
                    expected[device] = answer.pod.uid
    assert holders(node) == expected
    node.kill()
    node.start()
    assert holders(node) == expected


# ---- the end


def stop_in_time(node):
    started = time.monotonic()
    node.proc.signal(signal.SIGTERM)
    assert node.proc.wait(10) == 0, node.proc.describe()
    assert time.monotonic() - started < STOP_S


def outcome(future):
    """Its answer, or the code of its failure."""
    failed = future.exception(10)
    return failed.code() if isinstance(failed, grpc.RpcError) else future.result()


def test_pods_that_wait_are_answered_when_davitd_stops(node, plugins, pool):
    plugin = plugins(node, GPU, ["g0"]).register()
    node.wait_devices(GPU, 1)
    plugin.stop()
    until(lambda: not node.resource(GPU).connected, 10, "the plugin to be missed")
    asked = [pool.submit(node.admit, pod(f"p{i}", ("main", {GPU: 1})), wait=60) for i in range(5)]
    until(lambda: list(states(node).values()) == ["waiting"] * 5, 10, "five pods that wait")
    assert {p.awaited for p in node.status().pods} == {f"the plugin of {GPU}"}
    stop_in_time(node)
    ended = (grpc.StatusCode.CANCELLED, grpc.StatusCode.UNAVAILABLE)
    assert all(outcome(a) in ended for a in asked)
    node.start()
    assert states(node) == {}


def test_it_stops_at_once_when_nothing_runs(node):
    started = time.monotonic()
    assert node.stop() == 0
    assert time.monotonic() - started < STOP_S


def test_it_stops_in_time_while_calls_run(node, gate, pool, plugins):
    assert node.admit(pod("done", ("main", {NIC: 1}))).admitted
    leave = threading.Event()
    slow = plugins(node, "x.io/slow", ["s0"], pre_start=True).register()
    node.wait_devices("x.io/slow", 1)
    assert node.admit(pod("start", ("main", {"x.io/slow": 1}))).admitted
    slow.on_start = lambda ids: leave.wait(30)
    calls = [pool.submit(node.admit, pod(f"p{i}", ("main", {GPU: 1}))) for i in range(4)]
    calls.append(pool.submit(node.container_options, "uid-start", "main"))
    watch = grpc.insecure_channel(f"unix:{node.socket}")
    stream = watch.unary_stream(
        "/davit.node.v1.Node/WatchDevices",
        request_serializer=node.pb.ListDevicesRequest.SerializeToString,
        response_deserializer=node.pb.ListDevicesResponse.FromString,
    )(node.pb.ListDevicesRequest(), timeout=20)
    assert next(stream).resources
    gate.wait_for(4)
    until(lambda: slow.started, 10, "PreStartContainer")
    before = {d: u for d, u in holders(node).items() if u in ("uid-done", "uid-start")}
    stop_in_time(node)
    leave.set()
    gate.open()
    for call in calls:
        assert outcome(call) in (grpc.StatusCode.CANCELLED, grpc.StatusCode.UNAVAILABLE)
    with pytest.raises(grpc.RpcError):
        list(stream)
    watch.close()
    node.disconnect()
    node.start()
    assert holders(node) == before


def test_it_stops_in_time_under_load(node, plugins, pool):
    plugins(node, GPU, [f"g{i}" for i in range(50)]).register()
    node.wait_devices(GPU, 50)
    acknowledged = {}
    stopping = threading.Event()

    def live(number):
        for i in range(10000):
            name = f"p{number}-{i}"
            try:
                answer = node.admit(pod(name, ("main", {GPU: 1})))
                if answer.admitted:
                    acknowledged[answer.pod.uid] = set(held(answer)["main"][GPU])
                    if i % 2:
                        acknowledged.pop(answer.pod.uid)  # who knows what becomes of it
                        node.release(answer.pod.uid)
            except (grpc.RpcError, ValueError):
                assert stopping.is_set()
                return

    running = [pool.submit(live, n) for n in range(8)]
    until(lambda: len(acknowledged) > 20, 20, "some load")
    stopping.set()
    stop_in_time(node)
    node.disconnect()
    for one in running:
        one.result(20)
    node.start()
    found = {}
    for device, uid in holders(node).items():
        found.setdefault(uid, set()).add(device)
    for uid, ids in acknowledged.items():
        assert found.get(uid) == ids, uid


def test_a_large_pod_and_one_too_large(node):
    fat = pod("fat", *((f"c{i}", {}) for i in range(400)))
    assert len(node.admit(fat).containers) == 400
    fat = pod("fatter", ("main", {}))
    fat["metadata"]["annotations"] = {"x": "y" * (3 << 20)}
    assert len(json.dumps(fat)) > 3 << 20
    assert code_of(node.admit, fat) in (
        grpc.StatusCode.INVALID_ARGUMENT,
        grpc.StatusCode.RESOURCE_EXHAUSTED,
    )
    assert states(node) == {"fat": "admitted"}
