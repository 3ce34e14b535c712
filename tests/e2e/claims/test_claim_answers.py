"""Drivers that answer what they should not: clear errors, and nothing leaks."""

import os
import threading

import grpc
import pytest

import protos
from claim_nodes import GPU, WAIT_S, make_claim, pod
from python_driver import Device
from procs import until

PREPARE = "prepare dynamic resources: "
FAILED = f"{PREPARE}NodePrepareResources failed for ResourceClaim c1: driver {GPU}: "


def unknown_claim(response, claims):
    response.claims["00000000-no-such-claim"].error = ""
    return response


def missing_claims(response, claims):
    response.claims.clear()
    return response


def no_name_at_all(response, claims):
    response.claims[claims[0].uid].devices[0].cdi_device_ids[:] = [""]
    return response


def with_name(name):
    def change(response, claims):
        response.claims[claims[0].uid].devices[0].cdi_device_ids[:] = [name]
        return response

    return change


def ten_megabytes(response, claims):
    entry = response.claims[claims[0].uid]
    for i in range(100_000):
        entry.devices.add(pool_name="n1", device_name=f"device-{i}",
                          cdi_device_ids=[f"{GPU}/claim=a-device-with-a-rather-long-name-{i}"])
    return response


def one_long_name(response, claims):
    response.claims[claims[0].uid].devices[0].pool_name = "x" * 10_000_000
    return response


def beyond_all_limits(response, claims):
    response.claims[claims[0].uid].devices[0].pool_name = "x" * 20_000_000
    return response


BAD = {
    "unknown claim": (unknown_claim,
                      f"{PREPARE}NodePrepareResources returned result for unknown claim UID "
                      "00000000-no-such-claim"),
    "missing": (missing_claims, f"{PREPARE}NodePrepareResources skipped 1 ResourceClaims"),
    "empty name": (no_name_at_all, f"{FAILED}device n1/device-0: "),
    "no vendor": (with_name("gpu=0"), f"{FAILED}device n1/device-0: "),
    "no device": (with_name(f"{GPU}/claim="), f"{FAILED}device n1/device-0: "),
    "a path": (with_name("../../etc/passwd"), f"{FAILED}device n1/device-0: "),
    "blanks": (with_name(f"{GPU}/claim=a b"), f"{FAILED}device n1/device-0: "),
    "10 MB": (ten_megabytes, f"{FAILED}100001 devices take "),
    "10 MB name": (one_long_name, f"{FAILED}1 devices take "),
    "20 MB": (beyond_all_limits, f"{PREPARE}NodePrepareResources: rpc error: code = "
                                 "ResourceExhausted"),
    "nonsense": (lambda response, claims: b"\xff\xff\xff",
                 f"{PREPARE}NodePrepareResources: rpc error: code = Internal"),
    "cut off": (lambda response, claims: response.SerializeToString()[:-3],
                f"{PREPARE}NodePrepareResources: rpc error: code = Internal"),
}


@pytest.mark.parametrize("what", BAD)
def test_a_bad_answer_is_an_error_and_leaves_nothing(node, api, driver, what):
    change, text = BAD[what]
    uid = make_claim(api, "c1", (GPU, "device-0"), pods=["p"])
    rss = node.proc.rss_bytes()
    driver.answer = lambda kind, response, claims: (
        change(response, claims) if kind == "prepare" else response)
    answer = node.admit(pod("p", {"g": "c1"}))
    assert (answer.admitted, answer.reason) == (False, "FailedPrepareDynamicResources")
    assert answer.message.startswith(text), answer.message
    assert len(answer.message) < 256
    until(lambda: node.claims() == {}, WAIT_S, "the claim to be undone")
    assert driver.prepared() == set() and node.pods() == {}
    driver.answer = lambda kind, response, claims: response
    assert node.admit(pod("p", {"g": "c1"}), wait=WAIT_S).admitted
    assert driver.prepared() == {uid}
    node.release("uid-p")
    if "Sanitizer" not in node.proc.log and "asan" not in os.environ["DAVIT_BUILD"]:
        assert node.proc.rss_bytes() < rss + (96 << 20)


def test_errors_of_a_driver_reach_the_pod(node, api, driver):
    make_claim(api, "c1", (GPU, "device-0"), pods=["p"])
    make_claim(api, "c2", (GPU, "device-1"), pods=["p"])

    def refuse(kind, response, claims):
        if kind == "prepare":
            response.claims[claims[1].uid].error = "the device is on fire\n" + "!" * 5000
        return response

    driver.answer = refuse
    answer = node.admit(pod("p", {"a": "c1", "b": "c2"}))
    assert answer.message.startswith(
        f"{PREPARE}NodePrepareResources failed for ResourceClaim c2: the device is on fire")
    until(lambda: node.claims() == {} and driver.prepared() == set(), WAIT_S, "nothing to be left")
    assert driver.names("unprepare") in ([["c1", "c2"]], [["c1"], ["c2"]], [["c2"], ["c1"]])


def test_answers_twice_over_count_once(node, api, driver):
    """The same device twice is two devices; the same claim twice is the last of them."""
    uid = make_claim(api, "c1", (GPU, "device-0"), pods=["p"])
    name = f"{GPU}/claim={uid}-0"

    def twice(kind, response, claims):
        if kind == "unprepare":
            return response.SerializeToString() * 2
        entry = response.claims[uid]
        entry.devices.add().CopyFrom(entry.devices[0])
        once = protos.load("dra_v1").NodePrepareResourcesResponse()
        once.claims[uid].devices.add(pool_name="old", device_name="old")
        return once.SerializeToString() + response.SerializeToString()

    driver.answer = twice
    assert node.admit(pod("p", {"g": "c1"})).admitted
    (seen,) = node.claims()["c1"].drivers
    assert [(d.pool, d.device) for d in seen.devices] == [("n1", "device-0")] * 2
    assert node.cdi_devices("uid-p") == [name, name]
    node.release("uid-p")
    assert node.claims() == {} and driver.prepared() == set()


def test_an_answer_without_devices_is_fine(node, api, driver):
    make_claim(api, "c1", (GPU, "device-0"), pods=["p"])
    driver.devices_of = lambda claim: []
    assert node.admit(pod("p", {"g": "c1"})).admitted
    assert node.cdi_devices("uid-p") == [] and node.states() == {"c1": "prepared"}


def test_a_device_of_another_request_is_not_for_the_container(node, api, driver):
    """What the driver says counts, whatever the allocation has."""
    uid = make_claim(api, "c1", (GPU, "device-0"), pods=["p"])
    driver.devices_of = lambda claim: [
        Device("elsewhere", "p9", "d9", [driver.cdi_id(claim.uid, 0)]),
        Device("", "p9", "d8", [driver.cdi_id(claim.uid, 1)], "11111111-2222"),
    ]
    made = pod("p", {"g": "c1"})
    made["spec"]["containers"][0]["resources"]["claims"] = [{"name": "g", "request": "r0"}]
    assert node.admit(made).admitted
    assert node.cdi_devices("uid-p") == [f"{GPU}/claim={uid}-1"]
    assert node.claims()["c1"].drivers[0].devices[1].share_id == "11111111-2222"


@pytest.mark.parametrize("change, text", [
    (unknown_claim, "NodeUnprepareResources returned result for unknown claim UID "
                    "00000000-no-such-claim"),
    (missing_claims, "NodeUnprepareResources skipped 1 ResourceClaims"),
    (lambda response, claims: b"\xff", "NodeUnprepareResources: rpc error: code = Internal"),
], ids=["unknown", "missing", "nonsense"])
def test_a_bad_answer_to_unprepare_keeps_the_pod(node, api, driver, change, text):
    make_claim(api, "c1", (GPU, "device-0"), pods=["p"])
    assert node.admit(pod("p", {"g": "c1"})).admitted
    driver.answer = lambda kind, response, claims: change(response, claims)
    with pytest.raises(grpc.RpcError) as refused:
        node.release("uid-p")
    assert f"unprepare dynamic resources: {text}" in refused.value.details()
    assert node.pods()["p"][0] == "admitted" and node.states() == {"c1": "unpreparing"}
    driver.answer = lambda kind, response, claims: response
    node.release("uid-p")
    assert node.claims() == {}


def test_a_release_waits_for_a_slow_driver(node, api, driver):
    """And nobody else waits: other pods come and go."""
    make_claim(api, "slow", (GPU, "device-0"), pods=["p"])
    make_claim(api, "quick", (GPU, "device-1"), pods=["q"])
    gate = threading.Event()
    driver.before = lambda kind, claims: gate.wait(WAIT_S) if claims[0].name == "slow" else None
    slow = node.admit_later(pod("p", {"g": "slow"}))
    until(lambda: driver.n_calls("prepare") == 1, WAIT_S, "the first call")
    assert node.states() == {"slow": "preparing"}
    with pytest.raises(grpc.RpcError, match="is being admitted; try again"):
        node.release("uid-p")
    assert node.admit(pod("q", {"g": "quick"})).admitted
    node.release("uid-q")
    gate.set()
    assert slow.result().admitted
    node.release("uid-p")
    assert driver.prepared() == set()


def test_bad_cdi_files_of_others_harm_nobody(node, api, driver):
    """Truncated, huge, symbolic links in circles, the same device twice, and no files at all."""
    def write(name, text):
        with open(os.path.join(node.cdi_dir, name), "w", encoding="utf-8") as file:
            file.write(text)

    spec = ('{"cdiVersion": "0.6.0", "kind": "other.com/x", "devices": [{"name": "0", '
            '"containerEdits": {"env": ["A=B"]}}]}')
    write("truncated.json", spec[:60])
    write("empty.json", "")
    write("one.json", spec)
    write("two.json", spec)
    write("huge.yaml", "# " + "x" * (20 << 20))
    os.symlink("loop.json", os.path.join(node.cdi_dir, "loop.json"))
    os.symlink("/etc/shadow", os.path.join(node.cdi_dir, "shadow.json"))
    os.symlink("one.json", os.path.join(node.cdi_dir, "linked.json"))
    os.mkdir(os.path.join(node.cdi_dir, "folder.json"))
    os.mkfifo(os.path.join(node.cdi_dir, "fifo.json"))
    uid = make_claim(api, "c1", (GPU, "device-0"), pods=["p"])
    answer = node.admit(pod("p", {"g": "c1"}))
    assert answer.admitted, answer
    assert node.cdi_devices("uid-p") == [f"{GPU}/claim={uid}-0"]
    node.release("uid-p")
    assert driver.prepared() == set()


def put(path, text):
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def put_linked(path, text):
    """Somewhere else, and a symbolic link to it."""
    elsewhere = os.path.join(os.path.dirname(path), os.pardir, "elsewhere")
    put(elsewhere, text)
    os.symlink(elsewhere, path)


def put_twice(path, text):
    put(path, text)
    put(f"{path[:-len('.json')]}-again.json", text)


BAD_SPECS = {
    "none": lambda path, text: None,
    "truncated": lambda path, text: put(path, text[:-20]),
    "empty": lambda path, text: put(path, ""),
    "another device": lambda path, text: put(path, text.replace("-0\"", "-7\"")),
    "another vendor": lambda path, text: put(path, text.replace(GPU, "other.com")),
    "huge": lambda path, text: put(path, text + " " * (20 << 20)),
    "a loop": lambda path, text: os.symlink(path, path),
    "twice": put_twice,
}


@pytest.mark.parametrize("what", BAD_SPECS)
def test_a_name_without_its_spec_is_an_error(node, api, driver, what):
    """The container could not be started with it. Nothing is left of the claim."""
    uid = make_claim(api, "c1", (GPU, "device-0"), pods=["p"])
    driver.write_spec = BAD_SPECS[what]
    answer = node.admit(pod("p", {"g": "c1"}))
    assert (answer.admitted, answer.reason) == (False, "FailedPrepareDynamicResources")
    assert f"{GPU}/claim={uid}-0" in answer.message, answer.message
    until(lambda: node.claims() == {}, WAIT_S, "the claim to be undone")
    assert node.pods() == {} and driver.names("unprepare") == [["c1"]]
    for name in os.listdir(node.cdi_dir):
        os.unlink(os.path.join(node.cdi_dir, name))
    driver.write_spec = driver._put_spec
    assert node.admit(pod("p", {"g": "c1"}), wait=WAIT_S).admitted
    node.release("uid-p")
    assert driver.prepared() == set()


def test_a_spec_behind_a_symbolic_link_counts(node, api, driver):
    uid = make_claim(api, "c1", (GPU, "device-0"), pods=["p"])
    driver.write_spec = put_linked
    assert node.admit(pod("p", {"g": "c1"})).admitted
    assert node.cdi_devices("uid-p") == [f"{GPU}/claim={uid}-0"]


def test_strictly_names_are_passed_on_as_they_are(make_node, make_driver):
    node = make_node("--strict").start()
    driver = make_driver(node).serve()
    node.wait_connected(GPU)
    make_claim(node.api(), "c1", (GPU, "device-0"), pods=["p"])
    driver.write_spec = BAD_SPECS["none"]
    driver.devices_of = lambda claim: [Device("", "n1", "d", ["not a name"])]
    assert node.admit(pod("p", {"g": "c1"})).admitted
    assert node.cdi_devices("uid-p") == ["not a name"]
