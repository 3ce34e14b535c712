"""Claims: registration, preparing, unpreparing, health, faults, restarts, rolling updates."""

import concurrent.futures
import os
import signal
import time

import grpc
import pytest

from dra_kubelet import CLAIMS, DRIVER, NODE, WAIT_S, make_claim
from peers import folder_of
from procs import until

pytestmark = pytest.mark.release


def cdi_name(claim, number):
    return f"{DRIVER}/claim={claim['metadata']['uid']}-{number}"


def is_prepared(answer, claim, *devices):
    """Whether the answer is for these devices, one for each request."""
    got = [
        (list(one.request_names), one.pool_name, one.device_name, list(one.cdi_device_ids))
        for one in answer.devices
    ]
    return answer.error == "" and got == [
        ([f"r{i}"], NODE, device, [cdi_name(claim, i)]) for i, device in enumerate(devices)
    ]


def test_it_says_who_it_is_and_is_told_what_became_of_it(make_driver, kubelet):
    driver = make_driver()
    (path,) = kubelet.sockets()
    assert os.path.basename(path) == f"{DRIVER}-reg.sock"
    info = kubelet.get_info(path)
    assert info.endpoint == os.path.join(kubelet.folder, "plugins", DRIVER, "dra.sock")
    assert list(info.supported_versions) == [
        "v1.DRAPlugin", "v1beta1.DRAPlugin", "v1.DRAResourceHealth", "v1alpha1.DRAResourceHealth",
    ]
    with pytest.raises(grpc.RpcError, match="no room"):
        kubelet.notify(path, "no room")
    kubelet.register()
    driver.proc.wait_line("registered")
    assert driver.proc.stop() == 0
    assert kubelet.sockets() == [] and not os.path.exists(info.endpoint)


@pytest.mark.parametrize("options, versions", [
    (["--versions", "v1"], ["v1.DRAPlugin"]),
    (["--versions", "v1beta1"], ["v1beta1.DRAPlugin"]),
    (["--one-socket"], ["v1.DRAPlugin", "v1beta1.DRAPlugin"]),
])
def test_only_what_is_offered_is_served(make_driver, kubelet, api, options, versions):
    make_driver("--no-health", *options)
    (path,) = kubelet.sockets()
    info = kubelet.get_info(path)
    assert list(info.supported_versions) == versions
    assert (info.endpoint == "") == ("--one-socket" in options)
    claim = make_claim(api, "c1", "device-0")
    client = kubelet.register()
    (answer,) = client.prepare(claim)
    assert is_prepared(answer, claim, "device-0")
    if len(versions) == 1:
        other = type(client)(client.path, "v1beta1" if client.version == "v1" else "v1")
        kubelet.clients.append(other)
        with pytest.raises(grpc.RpcError) as refused:
            other.prepare(claim)
        assert refused.value.code() == grpc.StatusCode.UNIMPLEMENTED


@pytest.mark.parametrize("version", ["v1", "v1beta1"])
def test_claims_are_prepared_and_unprepared(make_driver, kubelet, api, version):
    driver = make_driver()
    client = kubelet.register(version=version)
    one = make_claim(api, "c1", "device-0", "device-2")
    two = make_claim(api, "c2", "device-1", "device-3", config=[
        {"source": "FromClass", "opaque": {"driver": DRIVER, "parameters": {"a": "b\"c"}}},
        {"source": "FromClaim", "requests": ["r1"],
         "opaque": {"driver": DRIVER, "parameters": {"for": "another"}}},
        {"source": "FromClaim", "requests": ["r0"],
         "opaque": {"driver": DRIVER, "parameters": {"x": 1}}},
        {"source": "FromClaim", "opaque": {"driver": "other.example.com", "parameters": {}}},
    ])
    first, second = client.prepare(one, two)
    assert is_prepared(first, one, "device-0", "device-2")
    assert is_prepared(second, two, "device-1", "device-3")
    uids = [claim["metadata"]["uid"] for claim in (one, two)]
    assert driver.prepared() == {
        uids[0]: f"default/c1:{NODE}/device-0,{NODE}/device-2",
        uids[1]: f"default/c2:{NODE}/device-1,{NODE}/device-3",
    }
    spec = driver.specs()[uids[0]]
    assert spec["kind"] == f"{DRIVER}/claim"
    assert [device["name"] for device in spec["devices"]] == [f"{uids[0]}-0", f"{uids[0]}-1"]
    assert spec["devices"][1]["containerEdits"]["env"] == [f"SAMPLE_r1_1={NODE}/device-2"]
    env = driver.specs()[uids[1]]["devices"][0]["containerEdits"]["env"]
    assert env == [
        f"SAMPLE_r0_0={NODE}/device-1",
        'SAMPLE_CONFIG_r0_0_0_admin={"a":"b\\"c"}',
        'SAMPLE_CONFIG_r0_0_1_user={"x":1}',
    ]
    assert is_prepared(client.prepare(one)[0], one, "device-0", "device-2")  # again: the same
    api.must("DELETE", f"{CLAIMS}/c2")  # unprepare does not need the object
    assert [answer.error for answer in client.unprepare(two, one)] == ["", ""]
    assert [answer.error for answer in client.unprepare(two)] == [""]
    assert driver.prepared() == {} and driver.specs() == {}


def test_claims_that_are_not_ready_are_refused(make_driver, kubelet, api):
    driver = make_driver()
    client = kubelet.register()
    ready = make_claim(api, "c1", "device-0")
    bare = api.must("POST", CLAIMS, {"metadata": {"name": "c2"}, "spec": {"devices": {}}})
    replaced = {"metadata": dict(ready["metadata"], uid="11111111-0000-0000-0000-000000000000")}
    missing = {"metadata": {"namespace": "default", "name": "no", "uid": "u"}}
    for claim, text in ((bare, "claim default/c2 not allocated"),
                        (replaced, "claim default/c1 got replaced"),
                        (missing, "retrieve claim default/no: ")):
        with pytest.raises(grpc.RpcError, match=text):
            client.prepare(ready, claim) if claim is not replaced else client.prepare(claim)
    assert driver.calls()["prepare"] == 0 and driver.prepared() == {}


def test_a_claim_that_fails_leaves_the_others(make_driver, kubelet, api):
    driver = make_driver()
    client = kubelet.register()
    one, two = make_claim(api, "c1", "device-0"), make_claim(api, "c2", "device-1")
    driver.must("fail c1")
    first, second = client.prepare(one, two)
    assert "told to fail claim c1" in first.error and is_prepared(second, two, "device-1")
    assert "told to fail claim c1" in client.unprepare(one)[0].error
    driver.must("fail off")
    assert is_prepared(client.prepare(one)[0], one, "device-0")


def test_calls_wait_while_it_hangs(make_driver, kubelet, api):
    driver = make_driver()
    client = kubelet.register()
    one, two = make_claim(api, "c1", "device-0"), make_claim(api, "c2", "device-1")
    driver.must("hang")
    with concurrent.futures.ThreadPoolExecutor() as pool:
        waiting = [pool.submit(client.prepare, one), pool.submit(client.prepare, two)]
        until(lambda: driver.calls()["prepare"] == 1, WAIT_S, "the first call")
        time.sleep(0.2)
        assert driver.calls()["held"] == 1  # one after the other
        with pytest.raises(grpc.RpcError):
            client.unprepare(one, timeout_s=0.2)
        driver.must("hang off")
        assert is_prepared(waiting[0].result()[0], one, "device-0")
        assert is_prepared(waiting[1].result()[0], two, "device-1")
    assert driver.calls()["unprepare"] == 0  # nobody waited for it any more
    assert len(driver.prepared()) == 2


def test_parallel_calls_overlap_unless_they_are_about_the_same_claim(make_driver, kubelet, api):
    driver = make_driver("--parallel")
    client = kubelet.register()
    one, two = make_claim(api, "c1", "device-0"), make_claim(api, "c2", "device-1")
    driver.must("hang")
    with concurrent.futures.ThreadPoolExecutor() as pool:
        waiting = [pool.submit(client.prepare, claim) for claim in (one, two, one)]
        until(lambda: driver.calls()["held"] == 2, WAIT_S, "two calls at a time")
        time.sleep(0.2)
        assert driver.calls()["held"] == 2
        driver.must("hang off")
        for future in waiting:
            assert future.result()[0].error == ""


@pytest.mark.parametrize("version", ["v1", "v1alpha1"])
def test_health_flips_are_told(make_driver, kubelet, version):
    driver = make_driver("--devices", "2")
    lists = kubelet.register().watch_health(version)
    healthy, unhealthy = 1, 2

    def wait_for(wanted):
        while (got := lists.get(timeout=WAIT_S)) != wanted:
            assert got is not None

    wait_for({"device-0": (healthy, ""), "device-1": (healthy, "")})
    driver.must("health device-1 unhealthy too_hot")
    wait_for({"device-0": (healthy, ""), "device-1": (unhealthy, "too_hot")})
    driver.must("health device-1 healthy")
    wait_for({"device-0": (healthy, ""), "device-1": (healthy, "")})
    driver.must("health device-0 unknown")
    wait_for({"device-0": (0, ""), "device-1": (healthy, "")})
    driver.proc.stop()
    while lists.get(timeout=WAIT_S) is not None:
        pass


@pytest.mark.parametrize("when, kind", [
    (when, kind) for when in ("start", "before", "after") for kind in ("prepare", "unprepare")
])
def test_nothing_is_lost_when_it_dies_in_a_call(make_driver, kubelet, api, when, kind):
    driver = make_driver()
    client = kubelet.register()
    kept, claim = make_claim(api, "c1", "device-0"), make_claim(api, "c2", "device-1")
    client.prepare(kept)
    if kind == "unprepare":
        client.prepare(claim)
    driver.must(f"crash {when}")
    try:
        getattr(client, kind)(claim, timeout_s=5)
        assert when == "after"
    except grpc.RpcError:
        assert when != "after"
    assert driver.proc.wait() == -signal.SIGKILL
    driver = make_driver()
    uid, kept_uid = claim["metadata"]["uid"], kept["metadata"]["uid"]
    is_there = uid in driver.prepared()
    assert kept_uid in driver.prepared() and kept_uid in driver.specs()
    assert is_there == (uid in driver.specs())
    assert is_there == ((kind == "prepare") == (when != "start"))
    client = kubelet.register()  # the stale sockets were replaced
    assert getattr(client, kind)(claim)[0].error == ""  # as a kubelet does
    assert (uid in driver.prepared()) == (kind == "prepare")
    assert client.unprepare(kept)[0].error == ""


def test_a_kubelet_that_starts_again_finds_it_and_removed_sockets_come_back(make_driver, kubelet,
                                                                            api):
    make_driver()
    claim = make_claim(api, "c1", "device-0")
    for _ in range(2):
        client = kubelet.register()
        assert is_prepared(client.prepare(claim)[0], claim, "device-0")
    (path,) = kubelet.sockets()
    for gone in (path, client.path):
        before = os.stat(gone)
        os.unlink(gone)
        until(lambda: os.path.exists(gone) and os.stat(gone).st_ctime_ns != before.st_ctime_ns,
              WAIT_S, "the socket is made anew")
    client = kubelet.register()
    assert is_prepared(client.prepare(claim)[0], claim, "device-0")


def test_a_rolling_update_loses_nothing(make_driver, kubelet, api):
    old = make_driver("--instance", "aaaa-1")
    old_client = kubelet.register()
    claims = [make_claim(api, f"c{i}", f"device-{i}") for i in range(3)]
    old_client.prepare(claims[0])
    new = make_driver("--instance", "bbbb-2")
    paths = kubelet.sockets()
    assert [os.path.basename(path) for path in paths] == [
        f"{DRIVER}-aaaa-1-reg.sock", f"{DRIVER}-bbbb-2-reg.sock",
    ]
    new_client = kubelet.register(paths[1])
    assert os.path.basename(new_client.path) == "dra-bbbb-2.sock"

    old.must("hang")  # an old call is under way: the new instance waits for it
    with concurrent.futures.ThreadPoolExecutor() as pool:
        slow = pool.submit(old_client.prepare, claims[1])
        until(lambda: old.calls()["held"] == 1, WAIT_S, "the old call")
        waiting = pool.submit(new_client.prepare, claims[2])
        time.sleep(0.5)
        assert new.calls()["prepare"] == 0
        old.must("hang off")
        assert is_prepared(slow.result()[0], claims[1], "device-1")
        assert is_prepared(waiting.result()[0], claims[2], "device-2")

    assert old.proc.stop() == 0
    assert [os.path.basename(path) for path in kubelet.sockets()] == [f"{DRIVER}-bbbb-2-reg.sock"]
    assert len(new.prepared()) == 3  # what the old one prepared is known
    assert [answer.error for answer in new_client.unprepare(*claims)] == ["", "", ""]
    assert new.prepared() == {} and new.specs() == {}


def test_the_command_line(procs, short_dir):
    program = os.path.join(folder_of("DAVIT_BUILD"), "drivers", "davit-sample-dra-driver")
    places = ["--kubelet-dir", short_dir, "--cdi-dir", os.path.join(short_dir, "cdi")]
    for words, code, text in (
        (["--help"], 0, "usage: davit-sample-dra-driver"),
        (["-h"], 0, "crash start|before|after|off"),
        (["--version"], 0, "davit-sample-dra-driver "),
        (["--devices"], 2, "--devices needs a value"),
        (["--devices", "many"], 2, '"many" is not right'),
        (["--taint", "nonsense"], 2, '"nonsense" is not right'),
        (["--what"], 2, "unexpected word"),
        ([*places, "--kubeconfig", "/nowhere"], 1, "/nowhere"),
        ([*places, "--driver", "Bad_Name"], 2, "driver name"),
        ([*places, "--node", "a,b"], 2, "node name"),
    ):
        proc = procs.start(program, *words)
        assert proc.wait() == code, proc.describe()
        assert text in "\n".join(proc.lines) + proc.log


def test_bad_commands_are_refused(make_driver):
    driver = make_driver()
    for line in ("", "nonsense", "devices", "devices x", "health device-9 healthy",
                 "health device-0 ill", "taint device-0 nonsense", "taint device-9 off",
                 "hang sometimes", "crash never", "fail", "list " + "x " * 20):
        assert driver.command(line).startswith("error "), line
    assert driver.must("list").startswith("4 device-0=healthy device-1=healthy")
    assert driver.must("quit") == ""
    assert driver.proc.wait() == 0
