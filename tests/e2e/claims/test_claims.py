"""Claims of pods: prepared before the pod is admitted, unprepared before it is gone."""

import threading

import grpc
import pytest

from claim_nodes import GPU, NIC, WAIT_S, container, make_claim, pod
from procs import until
from servers import CLAIMS, merge_patch

PREPARE = "prepare dynamic resources: "
UNPREPARE = "unprepare dynamic resources: "


def test_a_claim_is_prepared_and_unprepared(node, api, driver):
    uid = make_claim(api, "c1", (GPU, "device-0"), (GPU, "device-1"), pods=["p"])
    answer = node.admit(pod("p", {"gpu": "c1"}))
    assert answer.admitted, answer
    assert driver.names("prepare") == [["c1"]] and driver.prepared() == {uid}
    assert node.cdi_devices("uid-p") == [f"{GPU}/claim={uid}-0", f"{GPU}/claim={uid}-1"]
    seen = node.claims()["c1"]
    assert (seen.uid, seen.state, [one.uid for one in seen.pods]) == (uid, "prepared", ["uid-p"])
    (of_driver,) = seen.drivers
    assert of_driver.name == GPU and of_driver.connected
    assert [(d.pool, d.device, list(d.requests)) for d in of_driver.devices] == [
        ("n1", "device-0", ["r0"]), ("n1", "device-1", ["r1"]),
    ]
    assert node.admit(pod("p", {"gpu": "c1"})).admitted  # again: nothing is left to do
    assert driver.n_calls("prepare") == 1
    assert node.release("uid-p").was_known
    assert driver.names("unprepare") == [["c1"]] and driver.prepared() == set()
    assert node.claims() == {} and node.pods() == {}


def test_containers_get_what_they_ask_for(node, api, driver):
    uid = make_claim(api, "c1", (GPU, "device-0", "big"), (GPU, "device-1", "small"), pods=["p"])
    made = pod("p", {"gpu": "c1"}, containers=[
        container("all", "gpu"), container("one", ("gpu", "small")), container("none"),
        container("twice", ("gpu", "big"), "gpu"),
    ])
    assert node.admit(made).admitted
    big, small = f"{GPU}/claim={uid}-0", f"{GPU}/claim={uid}-1"
    assert node.cdi_devices("uid-p", "all") == [big, small]
    assert node.cdi_devices("uid-p", "one") == [small]
    assert node.cdi_devices("uid-p", "none") == []
    assert node.cdi_devices("uid-p", "twice") == [big, big, small]


def test_a_shared_claim_is_prepared_once_and_unprepared_with_its_last_pod(node, api, driver):
    uid = make_claim(api, "c1", (GPU, "device-0"), pods=["p", "q"])
    admissions = [node.admit_later(pod(name, {"g": "c1"})) for name in ("p", "q")]
    for one in admissions:
        assert one.result().admitted, one.value
    assert driver.n_calls("prepare") == 1
    assert node.cdi_devices("uid-p") == node.cdi_devices("uid-q") == [f"{GPU}/claim={uid}-0"]
    node.release("uid-p")
    assert driver.n_calls("unprepare") == 0 and driver.prepared() == {uid}
    assert [one.uid for one in node.claims()["c1"].pods] == ["uid-q"]
    node.release("uid-q")
    assert driver.n_calls("unprepare") == 1 and driver.prepared() == set()
    assert node.admit(pod("p", {"g": "c1"})).admitted  # and all over again
    assert driver.prepared() == {uid}


def test_pods_one_after_the_other_share_one_call(node, api, driver):
    make_claim(api, "c1", (GPU, "device-0"), pods=["p", "q"])
    assert node.admit(pod("p", {"g": "c1"})).admitted
    assert node.admit(pod("q", {"g": "c1"})).admitted
    assert driver.n_calls("prepare") == 1


def test_several_claims_of_a_driver_are_one_call(node, api, driver):
    uids = {make_claim(api, f"c{i}", (GPU, f"device-{i}"), pods=["p"]) for i in range(3)}
    made = pod("p", {f"g{i}": f"c{i}" for i in range(3)}, containers=[container("main", "g1")])
    assert node.admit(made).admitted  # also those that no container uses
    assert driver.names("prepare") == [["c0", "c1", "c2"]] and driver.prepared() == uids
    make_claim(api, "new", (GPU, "device-3"), pods=["q"])
    merge_patch(api, f"{CLAIMS}/c1/status", {"status": {"reservedFor": [
        {"resource": "pods", "name": "q", "uid": "uid-q"}]}})
    assert node.admit(pod("q", {"old": "c1", "new": "new"})).admitted
    assert driver.names("prepare")[1:] == [["new"]]
    node.release("uid-p")
    assert driver.names("unprepare") == [["c0", "c2"]]


def test_two_drivers_in_one_pod(node, api, driver, make_driver):
    nic = make_driver(node, NIC).serve()
    both = make_claim(api, "both", (GPU, "device-0"), (NIC, "port-0"), pods=["p"])
    one = make_claim(api, "one", (NIC, "port-1"), pods=["p"])
    assert node.admit(pod("p", {"a": "both", "b": "one"}), wait=WAIT_S).admitted
    assert driver.names("prepare") == [["both"]] and nic.names("prepare") == [["both", "one"]]
    assert node.cdi_devices("uid-p") == [
        f"{GPU}/claim={both}-0", f"{NIC}/claim={both}-0", f"{NIC}/claim={one}-0",
    ]
    assert {name.partition("driver_name=")[2][:5]: value for name, value in node.metrics().items()
            if name.startswith("dra_resource_claims_in_use")} == {
                '"<any': 2, f'"{GPU[:4]}': 1, f'"{NIC[:4]}': 2}
    node.release("uid-p")
    assert driver.prepared() == nic.prepared() == set()


def test_one_of_two_drivers_fails(node, api, driver, make_driver):
    nic = make_driver(node, NIC).serve()
    node.wait_connected(NIC)
    uid = make_claim(api, "both", (GPU, "device-0"), (NIC, "port-0"), pods=["p"])

    def fail(kind, claims):
        raise RuntimeError("no link")

    nic.before = fail
    answer = node.admit(pod("p", {"a": "both"}))
    assert (answer.admitted, answer.reason) == (False, "FailedPrepareDynamicResources")
    assert "rpc error: code = Internal desc = no link" in answer.message
    # The pod is not here, so what was prepared for it is not either, once the driver allows it.
    until(lambda: driver.n_calls("unprepare") > 0 and nic.n_calls("unprepare") > 0, WAIT_S, "calls")
    assert node.pods() == {} and driver.prepared() == set()
    nic.before = lambda kind, claims: None
    assert node.admit(pod("p", {"a": "both"}), wait=WAIT_S).admitted
    assert driver.prepared() == nic.prepared() == {uid}
    node.release("uid-p")
    assert node.claims() == {} and driver.prepared() == nic.prepared() == set()


def test_a_generated_claim_is_found_in_the_status(node, api, driver):
    # Its owner is not in the API: without the finalizer it would be collected sooner or later.
    uid = make_claim(api, "p-gpu-x7f2k", (GPU, "device-0"), pods=["p"], finalizers=["example.com/stay"], ownerReferences=[
        {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "uid-p", "controller": True}])
    made = pod("p", {}, containers=[container("main", "gpu", "nothing")])
    made["spec"]["resourceClaims"] = [
        {"name": "gpu", "resourceClaimTemplateName": "t"},
        {"name": "nothing", "resourceClaimTemplateName": "t"},
    ]
    answer = node.admit(made, wait=0)
    assert answer.message.startswith(f'{PREPARE}pod "default/p": ResourceClaim not created yet; ')
    made["status"] = {"resourceClaimStatuses": [
        {"name": "gpu", "resourceClaimName": "p-gpu-x7f2k"}, {"name": "nothing"},
    ]}
    assert node.admit(made).admitted
    assert node.cdi_devices("uid-p") == [f"{GPU}/claim={uid}-0"]
    node.release("uid-p")
    assert driver.prepared() == set()


def test_a_claim_for_extended_resources(node, api, driver):
    uid = make_claim(api, "extended", (GPU, "device-0", "container-0-request-0"),
                     (GPU, "device-1", "container-1-request-0"), pods=["p"])
    with_gpu = {"requests": {"example.com/gpu": "1"}, "limits": {"example.com/gpu": "1"}}
    made = pod("p", {}, containers=[
        {"name": "main", "image": "x", "resources": with_gpu},
        {"name": "side", "image": "x", "resources": with_gpu},
        {"name": "none", "image": "x"},
    ])
    made["status"] = {"extendedResourceClaimStatus": {
        "resourceClaimName": "extended",
        "requestMappings": [
            {"containerName": "main", "resourceName": "example.com/gpu",
             "requestName": "container-0-request-0"},
            {"containerName": "side", "resourceName": "example.com/gpu",
             "requestName": "container-1-request-0"},
        ],
    }}
    answer = node.admit(made)
    assert answer.admitted, answer
    assert node.cdi_devices("uid-p") == [f"{GPU}/claim={uid}-0"]
    assert node.cdi_devices("uid-p", "side") == [f"{GPU}/claim={uid}-1"]
    assert node.cdi_devices("uid-p", "none") == []
    node.release("uid-p")
    assert driver.prepared() == set()


def test_what_a_pod_may_not_have_is_refused(node, api, driver):
    make_claim(api, "others", (GPU, "device-0"), pods=["q"])
    uid = api.must("GET", f"{CLAIMS}/others")["metadata"]["uid"]
    generated = pod("p", {}, containers=[container("main", "g")],
                    status={"resourceClaimStatuses": [
                        {"name": "g", "resourceClaimName": "others"}]})
    generated["spec"]["resourceClaims"] = [{"name": "g", "resourceClaimTemplateName": "t"}]
    not_yet = pod("p", {}, containers=[container("main", "g")])
    not_yet["spec"]["resourceClaims"] = [{"name": "g", "resourceClaimTemplateName": "t"}]
    neither = pod("p", {"g": "x"})
    neither["spec"]["resourceClaims"] = [{"name": "g"}]
    for made, text in (
        (pod("p", {"g": "missing"}), "fetch ResourceClaim missing: "),
        (pod("p", {"g": "others"}),
         f"pod p (uid-p) is not allowed to use ResourceClaim others ({uid}); claims are allocated "
         "for pods that are created through the API: create it there, or take a lease"),
        (not_yet, 'pod "default/p": ResourceClaim not created yet; claims are allocated for pods '
                  "that are created through the API: create it there, or take a lease"),
        (generated, "ResourceClaim default/others was not created for Pod default/p "
                    "(Pod is not owner)"),
        (neither, 'pod "default/p", spec.resourceClaim "g": none of the supported fields are set'),
    ):
        answer = node.admit(made)
        assert (answer.admitted, answer.reason) == (False, "FailedPrepareDynamicResources"), text
        assert answer.message.startswith(PREPARE + text), answer.message
    assert driver.calls == [] and node.claims() == {} and node.pods() == {}
    assert node.metrics()[
        'dra_operations_duration_seconds_count{operation_name="PrepareResources",is_error="true"}'
    ] == 5


def test_an_allocation_without_results_needs_nobody(node, api):
    make_claim(api, "empty", pods=["p"])
    assert node.admit(pod("p", {"g": "empty"})).admitted
    assert node.cdi_devices("uid-p") == [] and node.states() == {"empty": "prepared"}
    node.release("uid-p")
    assert node.claims() == {}


def test_a_pod_waits_for_a_driver_that_is_not_there_yet(node, api, make_driver):
    uid = make_claim(api, "c1", (GPU, "device-0"), pods=["p"])
    watch = node.watch("WatchPods", node.pb.WatchPodsRequest(), node.pb.WatchPodsResponse)
    answer = node.admit(pod("p", {"g": "c1"}), wait=0)
    assert answer.message == f"{PREPARE}DRA driver {GPU} is not registered"
    waiting = node.admit_later(pod("p", {"g": "c1"}))
    while True:
        pods = watch.get(timeout=WAIT_S).pods
        if pods and pods[0].awaited:
            break
    assert (pods[0].state, pods[0].awaited) == ("waiting", f"driver {GPU} to register")
    assert node.davit("status").stdout.find(f"driver {GPU} to register") > 0
    driver = make_driver(node).serve()
    assert waiting.result().admitted
    assert driver.prepared() == {uid} and driver.n_calls("prepare") == 1
    assert node.pods()["p"] == ("admitted", "")


def test_a_pod_waits_for_a_driver_that_listens_late(node, api, make_driver):
    make_claim(api, "c1", (GPU, "device-0"), pods=["p"])
    driver = make_driver(node)
    driver.serve_registration()
    until(lambda: driver.is_registered, WAIT_S, "registration")
    waiting = node.admit_later(pod("p", {"g": "c1"}))
    node.wait_awaited("p", f"driver {GPU} to answer on {driver.socket}")
    driver.serve_again()
    assert waiting.result().admitted


def test_an_admission_that_is_given_up_leaves_nothing(node, api, driver):
    make_claim(api, "c1", (GPU, "device-0"), pods=["p"])
    entered, gate = threading.Event(), threading.Event()

    def hang(kind, claims):
        if kind == "prepare":
            entered.set()
            gate.wait(WAIT_S)

    driver.before = hang
    for timeout_s in (0.3, 3, 30):  # on a busy machine the first may pass before the driver is asked
        with pytest.raises(grpc.RpcError) as ended:
            node.admit(pod("p", {"g": "c1"}), timeout=timeout_s)
        assert ended.value.code() == grpc.StatusCode.DEADLINE_EXCEEDED
        if entered.is_set():
            break
    assert entered.is_set()
    gate.set()
    until(lambda: node.claims() == {} and node.pods() == {}, WAIT_S, "nothing to be left")
    assert driver.names("unprepare")[-1] == ["c1"]
    # The driver was still at it when it was asked to undo; what it said last counts for nobody.
    until(driver.is_idle, WAIT_S, "the call that was given up to end")
    assert node.admit(pod("p", {"g": "c1"}), wait=WAIT_S).admitted
    node.release("uid-p")
    assert driver.prepared() == set()


def test_a_release_while_the_driver_is_away_is_tried_again(node, api, driver):
    uid = make_claim(api, "c1", (GPU, "device-0"), pods=["p"])
    assert node.admit(pod("p", {"g": "c1"})).admitted
    driver.stop()
    until(lambda: [one.state for one in node.plugins()] == ["gone"], WAIT_S, "deregistration")
    for _ in range(2):
        with pytest.raises(grpc.RpcError) as refused:
            node.release("uid-p")
        assert f"{UNPREPARE}DRA driver {GPU} is not registered" in refused.value.details()
    assert node.pods()["p"][0] == "admitted" and node.states() == {"c1": "prepared"}
    assert node.cdi_devices("uid-p") == [f"{GPU}/claim={uid}-0"]
    driver.serve()
    node.wait_connected(GPU)
    assert node.release("uid-p").was_known
    assert node.claims() == {} and driver.prepared() == set()


def test_a_release_that_fails_is_tried_again(node, api, driver):
    uid = make_claim(api, "c1", (GPU, "device-0"), pods=["p"])
    assert node.admit(pod("p", {"g": "c1"})).admitted

    def fail(kind, claims):
        raise RuntimeError("in use")

    driver.before = fail
    with pytest.raises(grpc.RpcError) as refused:
        node.release("uid-p")
    assert refused.value.details().endswith(
        f"{UNPREPARE}NodeUnprepareResources: rpc error: code = Internal desc = in use")
    assert node.pods()["p"][0] == "admitted" and node.states() == {"c1": "unpreparing"}
    assert "in use" in node.claims()["c1"].error and driver.prepared() == {uid}
    driver.before = lambda kind, claims: None
    node.release("uid-p")
    assert node.claims() == {} and driver.prepared() == set()


def test_the_api_may_forget_a_claim_before_the_node_does(node, api, driver):
    make_claim(api, "c1", (GPU, "device-0"), pods=["p"])
    assert node.admit(pod("p", {"g": "c1"})).admitted
    claim = api.must("GET", f"{CLAIMS}/c1")
    api.must("PUT", f"{CLAIMS}/c1/status", {**claim, "status": {}})
    api.must("DELETE", f"{CLAIMS}/c1")
    node.release("uid-p")
    assert driver.prepared() == set() and node.claims() == {}


def test_pod_resources_show_what_was_prepared(node, api, driver):
    uid = make_claim(api, "c1", (GPU, "device-0"), pods=["p"])
    assert node.admit(pod("p", {"g": "c1"}, containers=[
        container("main", "g"), container("none")])).admitted
    for found in (node.podres_list()[0], node.podres_get("p")):
        assert found.name == "p"
        of = {one.name: list(one.dynamic_resources) for one in found.containers}
        assert of["none"] == []
        (shown,) = of["main"]
        assert (shown.claim_name, shown.claim_namespace) == ("c1", "default")
        (device,) = shown.claim_resources
        assert [one.name for one in device.cdi_devices] == [f"{GPU}/claim={uid}-0"]
        assert (device.driver_name, device.pool_name, device.device_name) == (
            GPU, "n1", "device-0")
    node.release("uid-p")
    assert list(node.podres_list()) == []


def test_metrics_count_operations_calls_and_claims(node, api, driver):
    make_claim(api, "c1", (GPU, "device-0"), pods=["p"])
    assert node.metrics()['dra_resource_claims_in_use{driver_name="<any>"}'] == 0
    assert node.admit(pod("p", {"g": "c1"})).admitted
    seen = node.metrics()
    assert seen['dra_resource_claims_in_use{driver_name="<any>"}'] == 1
    assert seen[f'dra_resource_claims_in_use{{driver_name="{GPU}"}}'] == 1
    node.release("uid-p")
    seen = node.metrics()
    assert seen['dra_resource_claims_in_use{driver_name="<any>"}'] == 0
    assert f'dra_resource_claims_in_use{{driver_name="{GPU}"}}' not in seen
    for kind in ("Prepare", "Unprepare"):
        (operations,) = [value for name, value in seen.items() if name.startswith(
            "dra_operations_duration_seconds_count") and f'"{kind}Resources"' in name]
        (calls,) = [(name, value) for name, value in seen.items() if name.startswith(
            "dra_grpc_operations_duration_seconds_count") and f"/Node{kind}Resources" in name]
        assert operations == 1 and calls[1] == 1
        assert f'driver_name="{GPU}"' in calls[0] and 'grpc_status_code="OK"' in calls[0]


def test_claims_can_be_watched(node, api, driver):
    make_claim(api, "c1", (GPU, "device-0"), pods=["p"])
    watch = node.watch("WatchClaims", node.pb.ListClaimsRequest(), node.pb.ListClaimsResponse)
    assert list(watch.get(timeout=WAIT_S).claims) == []
    node.admit(pod("p", {"g": "c1"}))
    node.release("uid-p")
    states = []
    while not states or states[-1] != "":
        claims = watch.get(timeout=WAIT_S).claims
        states.append(claims[0].state if claims else "")
    assert "prepared" in states, states
    order = ["wanted", "preparing", "prepared", "unpreparing", ""]
    assert [one for one in order if one in states] == [
        one for i, one in enumerate(states) if i == 0 or states[i - 1] != one]
