"""Claims that change under the node: made anew, edited by hand, given up; restarts and reboots."""

import os

import grpc
import pytest

from claim_nodes import GPU, NIC, WAIT_S, Later, make_claim, pod, remake_claim, reserved
from procs import until
from servers import CLAIMS, merge_patch

PREPARE = "prepare dynamic resources: "


def test_another_claim_of_the_same_name_waits_for_the_first(node, api, driver):
    old = make_claim(api, "c1", (GPU, "device-0"), pods=["p"])
    assert node.admit(pod("p", {"g": "c1"})).admitted
    new = remake_claim(api, "c1", (GPU, "device-1"), pods=["q"])
    assert new != old
    answer = node.admit(pod("q", {"g": "c1"}), wait=0)
    assert answer.message == (
        f"{PREPARE}old ResourceClaim with same name c1 and different UID {old} still exists "
        "(previous pod force-deleted?!)")
    waiting = node.admit_later(pod("q", {"g": "c1"}))
    node.wait_awaited("q", f"ResourceClaim c1 with UID {old} to be unprepared")
    assert driver.prepared() == {old}
    node.release("uid-p")
    assert waiting.result().admitted
    assert driver.prepared() == {new} and node.claims()["c1"].uid == new
    assert node.cdi_devices("uid-q") == [f"{GPU}/claim={new}-0"]


def test_a_pod_keeps_the_claim_that_it_has(node, api, driver):
    """Also when another one has taken its name: asking again does not admit it to that."""
    old = make_claim(api, "c1", (GPU, "device-0"), pods=["p"])
    assert node.admit(pod("p", {"g": "c1"})).admitted
    remake_claim(api, "c1", (GPU, "device-1"), pods=["p"])
    answer = node.admit(pod("p", {"g": "c1"}), wait=0)
    assert "old ResourceClaim with same name c1" in answer.message
    assert node.pods()["p"][0] == "admitted" and driver.prepared() == {old}
    assert node.cdi_devices("uid-p") == [f"{GPU}/claim={old}-0"]
    node.release("uid-p")
    assert driver.prepared() == set() and node.claims() == {}


def test_a_driver_that_finds_another_claim_refuses(node, api, driver):
    """It was made anew between our look and the driver's."""
    make_claim(api, "c1", (GPU, "device-0"), pods=["p"])
    once = []

    def remake(kind, claims):
        if kind == "prepare" and not once:
            once.append(remake_claim(api, "c1", (GPU, "device-1"), pods=["p"]))

    driver.before = remake
    answer = node.admit(pod("p", {"g": "c1"}))
    assert "claim default/c1 got replaced" in answer.message
    assert node.admit(pod("p", {"g": "c1"}), wait=WAIT_S).admitted
    assert driver.prepared() == {once[0]}


def test_a_status_edited_by_hand(node, api, driver, make_driver):
    """What was prepared stays, and is undone where it was done; the next is as the API says."""
    nic = make_driver(node, NIC).serve()
    node.wait_connected(NIC)
    uid = make_claim(api, "c1", (GPU, "device-0"), pods=["p"])
    assert node.admit(pod("p", {"g": "c1"})).admitted
    claim = api.must("GET", f"{CLAIMS}/c1")
    claim["status"]["reservedFor"] = None
    claim["status"]["allocation"] = None
    claim = api.must("PUT", f"{CLAIMS}/c1/status", claim)
    answer = node.admit(pod("q", {"g": "c1"}))
    assert "is not allowed to use ResourceClaim c1" in answer.message
    assert node.cdi_devices("uid-p") == [f"{GPU}/claim={uid}-0"]
    claim["status"] = {
        "allocation": {"devices": {"results": [
            {"request": "r0", "driver": NIC, "pool": "n1", "device": "port-0"}]}},
        "reservedFor": reserved("uid-q"),
    }
    api.must("PUT", f"{CLAIMS}/c1/status", claim)
    assert node.admit(pod("q", {"g": "c1"})).admitted  # on what is prepared for this uid
    assert node.cdi_devices("uid-q") == [f"{GPU}/claim={uid}-0"] and nic.calls == []
    node.release("uid-p")
    node.release("uid-q")
    assert driver.prepared() == set() and driver.names("unprepare") == [["c1"]]
    assert node.admit(pod("q", {"g": "c1"})).admitted
    assert nic.prepared() == {uid} and driver.prepared() == set()


def test_the_reservation_goes_while_the_pod_waits(node, api, make_driver):
    make_claim(api, "c1", (GPU, "device-0"), pods=["p"])
    waiting = node.admit_later(pod("p", {"g": "c1"}))
    node.wait_awaited("p", GPU)
    merge_patch(api, f"{CLAIMS}/c1/status", {"status": {"reservedFor": None}})
    driver = make_driver(node).serve()
    assert "is not allowed to use ResourceClaim c1" in waiting.result().message
    assert driver.calls == []


def test_a_claim_is_given_up_by_force(node, api, driver):
    uid = make_claim(api, "c1", (GPU, "device-0"), pods=["p"])
    assert node.admit(pod("p", {"g": "c1"})).admitted
    driver.stop()
    until(lambda: not node.is_connected(GPU), WAIT_S, "the driver to be missed")
    with pytest.raises(grpc.RpcError) as refused:
        node.release_claim("c1", "  ")
    assert refused.value.code() == grpc.StatusCode.INVALID_ARGUMENT
    with pytest.raises(grpc.RpcError) as refused:
        node.release_claim("c2", "why not")
    assert refused.value.code() == grpc.StatusCode.NOT_FOUND
    assert node.states() == {"c1": "prepared"}
    node.release_claim("c1", "the vendor is gone")
    assert node.claims() == {}
    assert node.release("uid-p").was_known and node.pods() == {}

    def events():
        return [one for one in api.must("GET", "/api/v1/namespaces/default/events")["items"]
                if one["reason"] == "ClaimReleasedByForce"]

    (event,) = until(events, WAIT_S, "the event")
    assert event["type"] == "Warning"
    assert (event["involvedObject"]["kind"], event["involvedObject"]["name"],
            event["involvedObject"]["uid"]) == ("ResourceClaim", "c1", uid)
    assert event["message"] == (
        f"Released on node n1 by force, by user {os.getuid()}: the vendor is gone "
        f"(drivers not asked: {GPU}; pods: uid-p)")
    (line,) = [one for one in node.proc.log.splitlines() if "released by force" in one]
    assert f"claim=c1 uid={uid}" in line and 'reason="the vendor is gone"' in line
    assert driver.prepared() == {uid}  # nobody asked it


@pytest.mark.parametrize("how", ["stop", "kill"])
def test_a_restart_keeps_what_is_prepared(node, api, driver, how):
    uid = make_claim(api, "c1", (GPU, "device-0"), pods=["p"])
    assert node.admit(pod("p", {"g": "c1"})).admitted
    getattr(node, how)()
    node.start()
    assert node.states() == {"c1": "prepared"}
    assert node.cdi_devices("uid-p") == [f"{GPU}/claim={uid}-0"]
    node.wait_connected(GPU)
    assert driver.n_calls("prepare") == 1 and driver.n_calls("unprepare") == 0
    node.release("uid-p")
    assert driver.prepared() == set()


def test_after_a_reboot_claims_are_prepared_anew(node, api, driver):
    uid = make_claim(api, "c1", (GPU, "device-0"), pods=["p"])
    assert node.admit(pod("p", {"g": "c1"})).admitted
    node.stop()
    os.unlink(driver.spec_path(uid))  # as /var/run is after a reboot
    node.set_boot_id("second")
    node.start()
    node.wait_states(c1="prepared")
    assert driver.names("prepare") == [["c1"], ["c1"]] and driver.prepared() == {uid}
    assert driver.n_calls("unprepare") == 0
    assert node.cdi_devices("uid-p") == [f"{GPU}/claim={uid}-0"]
    node.stop()
    node.start()  # the same boot
    node.wait_connected(GPU)
    assert node.states() == {"c1": "prepared"} and driver.n_calls("prepare") == 2


def test_after_a_reboot_a_container_waits_for_the_driver(node, api, driver):
    uid = make_claim(api, "c1", (GPU, "device-0"), pods=["p"])
    assert node.admit(pod("p", {"g": "c1"})).admitted
    node.stop()
    driver.stop()
    os.unlink(driver.spec_path(uid))
    node.set_boot_id("second")
    node.start()
    assert node.states() == {"c1": "preparing"}
    assert node.claims()["c1"].awaited == f"driver {GPU}"
    starting = Later(lambda: node.cdi_devices("uid-p"))
    node.wait_awaited("p", f"driver {GPU} to register")
    driver.serve()
    assert starting.result() == [f"{GPU}/claim={uid}-0"]
    assert node.pods()["p"] == ("admitted", "") and driver.prepared() == {uid}


def test_after_a_reboot_a_pod_that_is_released_needs_no_preparing(node, api, driver):
    make_claim(api, "c1", (GPU, "device-0"), pods=["p"])
    assert node.admit(pod("p", {"g": "c1"})).admitted
    node.stop()
    driver.stop()
    node.set_boot_id("second")
    node.start()
    with pytest.raises(grpc.RpcError, match="is not registered"):
        node.release("uid-p")
    driver.serve()
    node.wait_connected(GPU)
    node.wait_states(c1="prepared")
    node.release("uid-p")
    assert driver.prepared() == set() and node.claims() == {}
