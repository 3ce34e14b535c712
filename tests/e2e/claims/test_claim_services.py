"""What drivers serve: versions old and new, health, several instances, slices."""

import json
import time

import pytest

from claim_nodes import GPU, WAIT_S, make_claim, pod
from python_driver import V1
from procs import until
from servers import CLAIMS, NODES, PODS, RESOURCE, SLICES, device_slice

# The services that there are, what is registered, the service that is used in the end.
OLD = {
    "v1": (["v1"], ["v1.DRAPlugin", "v1beta1.DRAPlugin"], "v1"),
    "v1beta1": (["v1beta1"], ["v1beta1.DRAPlugin"], "v1beta1"),
    "v1beta1 first": (["v1", "v1beta1"], ["v1beta1.DRAPlugin", "v1.DRAPlugin"], "v1beta1"),
    "v1alpha3 of 1.31": (["v1alpha3-b"], ["v1alpha3.NodeService"], "v1alpha3-b"),
    "v1alpha3 of 1.28": (["v1alpha3-a"], ["1.0.0"], "v1alpha3-a"),
    "v1alpha2": (["v1alpha2"], ["1.2.0"], "v1alpha2"),
    "v1alpha1": (["v1alpha1"], ["1.0.0"], "v1alpha1"),
}


@pytest.mark.parametrize("case", OLD)
def test_drivers_of_all_times(node, api, make_driver, case):
    services, versions, used = OLD[case]
    driver = make_driver(node, services=services, versions=versions).serve()
    uids = [make_claim(api, name, (GPU, f"device-{i}"), (GPU, f"device-{i + 2}"), pods=["p"])
            for i, name in enumerate(("c0", "c1"))]
    node.wait_connected(GPU)
    assert node.admit(pod("p", {"a": "c0", "b": "c1"}), wait=WAIT_S).admitted
    assert driver.prepared() == set(uids)
    assert {service for service, _, _ in driver.calls} == {used}
    per_claim = used in ("v1alpha2", "v1alpha1")
    assert sorted(driver.names("prepare")) == ([["c0"], ["c1"]] if per_claim else [["c0", "c1"]])
    expected = [f"{GPU}/claim={uid}-{i}" for uid in uids for i in (0, 1)]
    assert node.cdi_devices("uid-p") == expected
    (plugin,) = node.plugins()
    # The generations of one version are told apart by their answers.
    assert plugin.service.split(".")[0] == used.removesuffix("-a").removesuffix("-b")
    node.stop()
    node.start()
    node.wait_connected(GPU)
    assert node.cdi_devices("uid-p") == expected
    node.release("uid-p")
    assert driver.prepared() == set() and node.claims() == {}
    if used == "v1alpha1":  # it is told what it had answered
        assert sorted(sum(driver.seen_cdi, [])) == sorted(expected)


CONFIG = [
    {"source": "FromClass", "requests": ["r0", "r1"],
     "opaque": {"driver": GPU, "parameters": {"mode": "class"}}},
    {"source": "FromClaim", "requests": [],
     "opaque": {"driver": GPU, "parameters": {"mode": "claim"}}},
    {"source": "FromClaim", "requests": ["r1"],
     "opaque": {"driver": GPU, "parameters": {"mode": "second"}}},
    {"source": "FromClaim", "requests": [],
     "opaque": {"driver": "nic.example.com", "parameters": {"mode": "another's"}}},
]


def configure(api, name):
    claim = api.must("GET", f"{CLAIMS}/{name}")
    claim["status"]["allocation"]["devices"]["config"] = CONFIG
    kept = claim["status"].pop("reservedFor")
    allocation = claim["status"].pop("allocation")
    claim = api.must("PUT", f"{CLAIMS}/{name}/status", claim)  # an allocation cannot be changed
    claim["status"] = {"allocation": allocation, "reservedFor": kept}
    api.must("PUT", f"{CLAIMS}/{name}/status", claim)


@pytest.mark.parametrize("service", ["v1alpha3-a", "v1alpha2", "v1alpha1"])
def test_drivers_before_1_31_get_a_handle(node, api, make_driver, service):
    """What was prepared is unprepared with the same handle, also after a restart."""
    driver = make_driver(node, services=[service], versions=["1.0.0"]).serve()
    make_claim(api, "c1", (GPU, "device-0"), (GPU, "device-1"), pods=["p"])
    configure(api, "c1")
    node.wait_connected(GPU)
    assert node.admit(pod("p", {"a": "c1"}), wait=WAIT_S).admitted
    prepared = [one for one in driver.handles if one[0] == "prepare"]
    ((_, name, text, structured),) = prepared
    assert (name, json.loads(text)) == ("c1", {"mode": "claim"})
    if service != "v1alpha1":  # 1.26 had none
        (handle,) = structured
        assert json.loads(handle.vendorClassParameters.raw) == {"mode": "class"}
        assert json.loads(handle.vendorClaimParameters.raw) == {"mode": "claim"}
        assert handle.nodeName == "n1"
        results = [(r.allocationResultModel.namedResources.name, r.vendorRequestParameters.raw)
                   for r in handle.results]
        assert [one for one, _ in results] == ["device-0", "device-1"]
        assert results[0][1] == b"" and json.loads(results[1][1]) == {"mode": "second"}
    node.stop()
    node.start()
    node.wait_connected(GPU)
    node.release("uid-p")
    assert driver.prepared() == set()
    if service != "v1alpha1":
        unprepared = [one for one in driver.handles if one[0] == "unprepare"]
        assert [one[1:] for one in unprepared] == [one[1:] for one in prepared]


OFFERS = {
    "gpu-0": {"model": ("string", "small"), "memory": ("quantity", "16Gi")},
    "gpu-1": {"model": ("string", "large"), "memory": ("quantity", "80Gi"), "cores": ("int", 7),
              "driver-version": ("version", "1.2.3"), "ready": ("bool", True),
              "ids": ("intSlice", [1, 2])},
    "not.a.label": {},
}


def devices_of(api):
    slices = api.must("GET", SLICES)["items"]
    return {one["name"]: one for part in slices for one in part["spec"].get("devices", ())}


def test_what_a_driver_of_1_30_offers_becomes_devices(make_node, make_driver):
    """Chosen by the scheduler, prepared with the handle, followed as it changes."""
    node = make_node("--roles", "api,control,sched,node").start()
    api = node.api()
    driver = make_driver(node, services=["v1alpha3-a"], versions=["1.0.0"])
    driver.offers = OFFERS
    driver.serve()
    until(lambda: set(devices_of(api)) == {"gpu-0", "gpu-1"}, WAIT_S, "the devices")
    (made,) = api.must("GET", SLICES)["items"]
    (owner,) = made["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["uid"]) == (
        "Node", api.must("GET", f"{NODES}/n1")["metadata"]["uid"])
    assert (made["spec"]["driver"], made["spec"]["nodeName"]) == (GPU, "n1")
    large = devices_of(api)["gpu-1"]
    assert large["capacity"] == {"memory": {"value": "80Gi"}}
    assert large["attributes"] == {
        "model": {"string": "large"}, "cores": {"int": 7}, "driver_version": {"version": "1.2.3"},
        "ready": {"bool": True}}
    log = node.proc.log
    assert 'device \\"not.a.label\\": its name is not a DNS label' in log
    assert 'device \\"gpu-1\\": attribute \\"ids\\": it is a list' in log

    api.must("POST", f"{RESOURCE}/v1/deviceclasses", {
        "apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": "gpu"},
        "spec": {"selectors": [{"cel": {"expression": f"device.driver == '{GPU}'"}}]}})
    large_gpu = f"device.capacity['{GPU}'].memory.compareTo(quantity('40Gi')) >= 0"
    api.must("POST", CLAIMS, {
        "apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": {"name": "c1"},
        "spec": {"devices": {"requests": [{"name": "r", "exactly": {
            "deviceClassName": "gpu", "selectors": [{"cel": {"expression": large_gpu}}]}}]}}})
    wanted = pod("p", {"g": "c1"})
    del wanted["spec"]["nodeName"]
    api.must("POST", PODS, wanted)
    until(lambda: driver.handles, WAIT_S, "the claim to be prepared")
    ((kind, name, _, (handle,)),) = driver.handles
    assert (kind, name, handle.nodeName) == ("prepare", "c1", "n1")
    assert [r.allocationResultModel.namedResources.name for r in handle.results] == ["gpu-1"]

    driver.send(b"\x0a\xff")  # nonsense changes nothing
    driver.offers = {"gpu-2": {}}
    driver.send("news")
    until(lambda: set(devices_of(api)) == {"gpu-2"}, WAIT_S, "the new device")
    api.must("DELETE", f"{PODS}/p?gracePeriodSeconds=0")
    until(lambda: len(driver.handles) > 1, WAIT_S, "the claim to be unprepared")
    assert driver.handles[1][1:] == driver.handles[0][1:]


def test_an_old_driver_that_fails(node, api, make_driver):
    driver = make_driver(node, services=["v1alpha2"], versions=["1.0.0"]).serve()
    node.wait_connected(GPU)
    make_claim(api, "c1", (GPU, "device-0"), pods=["p"])

    def fail(kind, claims):
        if kind == "prepare":
            raise RuntimeError("too old")

    driver.before = fail
    answer = node.admit(pod("p", {"g": "c1"}))
    assert answer.message == (
        "prepare dynamic resources: NodePrepareResources failed for ResourceClaim c1: rpc error: "
        "code = Internal desc = too old")
    until(lambda: node.claims() == {}, WAIT_S, "the claim to be undone")


@pytest.mark.parametrize("versions, text", [
    ((), "empty list of supported gRPC services (aka supported versions)"),
    (("v2.DRAPlugin", "0.9.0"), 'none of services supported by the plugin (["v2.DRAPlugin" "0.9.0"]'
                                ") are supported by the kubelet"),
])
def test_what_is_not_known_is_refused(node, make_driver, versions, text):
    driver = make_driver(node, versions=versions).serve()
    told = until(lambda: driver.registrar.told, WAIT_S, "the verdict")
    assert not told[0][0] and text in told[0][1], told
    assert f"DRA driver plugin {GPU} at endpoint {driver.socket}: " in told[0][1]


def test_strictly_only_todays_services_count(make_node, make_driver):
    node = make_node("--strict").start()
    old = make_driver(node, versions=["1.0.0"]).serve()
    told = until(lambda: old.registrar.told, WAIT_S, "the verdict")
    assert "are supported by the kubelet" in told[0][1]


def test_one_socket_for_registration_and_service(node, api, make_driver):
    driver = make_driver(node, one_socket=True).serve()
    uid = make_claim(api, "c1", (GPU, "device-0"), pods=["p"])
    assert node.admit(pod("p", {"g": "c1"}), wait=WAIT_S).admitted
    assert driver.prepared() == {uid}
    node.release("uid-p")
    assert driver.prepared() == set()


# Health


def health_of(pods, name="p"):
    """{resource: {device id: health}} of the pod's container."""
    for one in pods:
        if one.pod.name == name and one.containers:
            return {r.resource: {d.id: d.health for d in r.devices}
                    for r in one.containers[0].resources}
    return {}


def wait_health(watch, expected):
    seen = []
    while True:
        seen.append(health_of(watch.get(timeout=WAIT_S).pods))
        if seen[-1] == expected:
            return seen


@pytest.mark.parametrize("version", ["v1", "v1alpha1"])
def test_health_reaches_the_pods(node, api, make_driver, version):
    driver = make_driver(
        node, versions=[*V1, f"{version}.DRAResourceHealth"], health=[version]).serve()
    node.wait_connected(GPU)
    uid = make_claim(api, "c1", (GPU, "device-0"), pods=["p"])
    assert node.admit(pod("p", {"g": "c1"})).admitted
    name = f"{GPU}/claim={uid}-0"
    watch = node.watch("WatchPods", node.pb.WatchPodsRequest(), node.pb.WatchPodsResponse)
    wait_health(watch, {"claim:g": {name: "Unknown"}})
    until(lambda: driver.n_streams == 1, WAIT_S, "somebody who listens")
    driver.set_health("device-0", "Healthy", "as new")
    wait_health(watch, {"claim:g": {name: "Healthy"}})
    (plugin,) = node.plugins()
    assert plugin.health_service == f"{version}.DRAResourceHealth"
    device = node.claims()["c1"].drivers[0].devices[0]
    assert (device.health, device.message) == ("Healthy", "as new")
    driver.set_health("device-7", "Unhealthy")  # nobody's
    driver.send(b"\xff\xff")  # no message at all
    driver.set_health("device-0", "Unhealthy", "x" * 2000)
    wait_health(watch, {"claim:g": {name: "Unhealthy"}})
    message = node.claims()["c1"].drivers[0].devices[0].message
    assert len(message) == 1024 and message.endswith("x...")
    assert "Unhealthy" in node.davit("status", "-o", "json").stdout
    driver.send("end")  # the stream ends: nothing is known any more
    wait_health(watch, {"claim:g": {name: "Unknown"}})


def test_health_that_is_not_renewed_is_unknown(node, api, make_driver):
    driver = make_driver(node, versions=[*V1, "v1.DRAResourceHealth"], health=["v1"])
    driver.health = {"device-0": ("Healthy", "", 1)}
    driver.serve()
    node.wait_connected(GPU)
    make_claim(api, "c1", (GPU, "device-0"), pods=["p"])
    assert node.admit(pod("p", {"g": "c1"})).admitted

    def health():
        return node.claims()["c1"].drivers[0].devices[0].health

    driver.set_health("device-0", "Healthy", timeout=1)
    began = time.monotonic()
    until(lambda: health() == "Healthy", WAIT_S, "its health")
    until(lambda: health() == "Unknown", WAIT_S, "the end of it")
    assert time.monotonic() - began > 0.9


def test_a_health_service_that_is_not_there(node, api, make_driver):
    driver = make_driver(node, versions=[*V1, "v1.DRAResourceHealth"]).serve()
    until(lambda: "does not tell of health after all" in node.proc.log, WAIT_S, "the end of it")
    uid = make_claim(api, "c1", (GPU, "device-0"), pods=["p"])
    assert node.admit(pod("p", {"g": "c1"}), wait=WAIT_S).admitted
    assert driver.prepared() == {uid}


# Instances


def test_a_rolling_update(node, api, driver, make_driver):
    """Two instances, the newer one is called; each can finish what the other began."""
    claims = [make_claim(api, f"c{i}", (GPU, f"device-{i}"), pods=[f"p{i}"]) for i in range(4)]
    assert node.admit(pod("p0", {"g": "c0"})).admitted
    newer = make_driver(node, instance="uid-2").serve()
    until(lambda: sum(one.connected for one in node.plugins()) == 2, WAIT_S, "both")
    assert node.admit(pod("p1", {"g": "c1"})).admitted
    assert (driver.names("prepare"), newer.names("prepare")) == ([["c0"]], [["c1"]])
    driver.stop()
    until(lambda: sum(one.connected for one in node.plugins()) == 1, WAIT_S, "the newer one only")
    node.release("uid-p0")
    assert driver.n_calls("unprepare") == 0 and newer.names("unprepare") == [["c0"]]
    assert node.admit(pod("p2", {"g": "c2"})).admitted
    third = make_driver(node, instance="uid-3").serve()
    until(lambda: sum(one.connected for one in node.plugins()) == 2, WAIT_S, "both")
    assert node.admit(pod("p3", {"g": "c3"})).admitted
    assert third.names("prepare") == [["c3"]]
    third.stop_serving()  # it crashed: the one before it takes over
    until(lambda: sum(one.connected for one in node.plugins()) == 1, WAIT_S, "the second one only")
    node.release("uid-p3")
    assert newer.names("unprepare") == [["c0"], ["c3"]]
    assert newer.prepared() == {claims[1], claims[2]}


def test_the_same_endpoint_twice_is_refused(node, driver, make_driver):
    twin = make_driver(node, instance="twin")
    twin.registrar.endpoint = driver.socket
    twin.serve_registration()
    told = until(lambda: twin.registrar.told, WAIT_S, "the verdict")
    assert f"endpoint {driver.socket} already registered for DRA driver plugin {GPU}" in told[0][1]
    assert node.is_connected(GPU)


# Slices


def slice_names(api):
    return {one["metadata"]["name"] for one in api.must("GET", SLICES)["items"]}


def test_strict_wipes_the_slices_of_the_node_at_the_start(make_node):
    """Otherwise only what no driver has registered for within half a minute: tests/attack."""
    node = make_node("--strict").start()
    api = node.api()
    for name, where in (("mine", "n1"), ("others", "n2")):
        api.must("POST", SLICES, device_slice(name, where))
    node.stop()
    node.start()
    api = node.api()
    until(lambda: slice_names(api) == {"others"}, WAIT_S, "the wipe")
    api.must("POST", SLICES, device_slice("mine", "n1"))
    time.sleep(0.3)
    assert slice_names(api) == {"mine", "others"}  # once
