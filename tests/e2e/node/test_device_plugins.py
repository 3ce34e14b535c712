"""Unmodified device plugins (here on grpcio) with davitd in the kubelet's place."""

import os
import stat
import time

import grpc
import pytest

import protos
from nodes import held, pod
from procs import until

pytestmark = pytest.mark.release

GPU = "example.com/gpu"
NIC = "example.com/nic"


def test_a_plugin_registers_and_a_pod_gets_its_devices(node, plugins):
    plugin = plugins(node, GPU, ["g0", "g1", "g2"]).register()
    node.wait_devices(GPU, 3)
    answer = node.admit(pod("p1", ("main", {GPU: "2"})))
    assert answer.admitted, answer
    ids = held(answer)["main"][GPU]
    assert len(ids) == 2 and [sorted(ids)] == [sorted(a) for a in plugin.allocated]
    options = node.container_options("uid-p1", "main")
    assert {e.key: e.value for e in options.envs} == {"DEVICES_GPU": ",".join(sorted(ids))}
    assert [d.host_path for d in options.devices] == [f"/dev/{i}" for i in sorted(ids)]
    holders = {d: list(v.holders) for d, v in node.resources()[GPU].items()}
    assert {d for d, h in holders.items() if h} == set(ids)
    assert holders[ids[0]][0].pod.name == "p1"
    assert node.release("uid-p1").was_known
    assert not any(d.holders for d in node.resources()[GPU].values())


def test_no_device_is_given_twice_and_shortage_is_told(node, plugins):
    plugins(node, GPU, ["g0", "g1"]).register()
    node.wait_devices(GPU, 2)
    assert node.admit(pod("a", ("main", {GPU: 1}))).admitted
    assert node.admit(pod("b", ("main", {GPU: 1}))).admitted
    refused = node.admit(pod("c", ("main", {GPU: 1})))
    assert not refused.admitted
    assert refused.reason == "UnexpectedAdmissionError"
    assert (
        f"requested number of devices unavailable for {GPU}. Requested: 1, Available: 0"
        in refused.message
    )
    node.release("uid-a")
    assert node.admit(pod("c", ("main", {GPU: 1}))).admitted


def test_the_same_pod_again_keeps_what_it_holds(node, plugins):
    plugin = plugins(node, GPU, ["g0", "g1", "g2"]).register()
    node.wait_devices(GPU, 3)
    first = held(node.admit(pod("p", ("main", {GPU: 1}))))
    assert held(node.admit(pod("p", ("main", {GPU: 1})))) == first
    assert len(plugin.allocated) == 1
    other = node.admit(pod("p", ("main", {GPU: 2})))
    assert not other.admitted
    assert "changed request" in other.message
    assert held(node.admit(pod("p", ("main", {GPU: 1})))) == first  # nothing was lost


def test_init_containers_lend_and_sidecars_keep(node, plugins):
    plugins(node, GPU, [f"g{i}" for i in range(6)]).register()
    node.wait_devices(GPU, 6)
    sidecar = lambda name, n: {  # noqa: E731
        "name": name,
        "restartPolicy": "Always",
        "resources": {"limits": {GPU: n}},
    }
    answer = node.admit(
        pod(
            "p",
            ("app1", {GPU: 1}),
            ("app2", {GPU: 2}),
            init=[("init", {GPU: 3}), sidecar("side1", 1), sidecar("side2", 2)],
        )
    )
    assert answer.admitted, answer
    got = {name: set(r[GPU]) for name, r in held(answer).items()}
    assert got["side1"] | got["side2"] <= got["init"]
    kept = [got["side1"], got["side2"], got["app1"], got["app2"]]
    assert sum(map(len, kept)) == len(set.union(*kept)) == 6


def test_health_flips_show_and_count(node, plugins):
    plugin = plugins(node, GPU, ["g0", "g1", "g2"]).register()
    node.wait_devices(GPU, 3)
    plugin.set_devices({"g0": ("Healthy", None), "g1": ("sick", None), "g2": ("Healthy", None)})
    node.wait_devices(GPU, 2)
    assert node.resource(GPU).capacity == 3
    assert not node.resources()[GPU]["g1"].healthy
    plugin.set_devices(["g0", "g1", "g2", "g3"])
    node.wait_devices(GPU, 4)


def test_preferred_allocation_and_pre_start(node, plugins):
    plugin = plugins(
        node,
        GPU,
        [f"g{i}" for i in range(4)],
        pre_start=True,
        preferred=lambda available, must, size: sorted(available)[-size:],
    ).register()
    node.wait_devices(GPU, 4)
    answer = node.admit(pod("p", ("main", {GPU: 2})))
    assert held(answer)["main"][GPU] == ["g2", "g3"]
    available, must, size = plugin.asked[0]
    assert (sorted(available), must, size) == (["g0", "g1", "g2", "g3"], [], 2)
    node.container_options("uid-p", "main")
    assert [sorted(ids) for ids in plugin.started] == [["g2", "g3"]]


def test_a_restart_loses_nothing(node, plugins):
    plugin = plugins(node, GPU, ["g0", "g1", "g2"]).register()
    node.wait_devices(GPU, 3)
    before = held(node.admit(pod("p", ("main", {GPU: 2}))))
    assert node.stop() == 0
    node.start()
    # The kubelet's way: sockets are gone, so plugins serve and register again.
    assert not os.path.exists(plugin.socket)
    listed = {d: bool(v.holders) for d, v in node.resources()[GPU].items()}
    assert {d for d, is_held in listed.items() if is_held} == set(before["main"][GPU])
    plugin.stop()
    plugin.serve().register()
    node.wait_devices(GPU, 3)
    assert held(node.admit(pod("p", ("main", {GPU: 2})))) == before
    rest = node.admit(pod("q", ("main", {GPU: 1})))
    assert not set(held(rest)["main"][GPU]) & set(before["main"][GPU])


def test_after_a_restart_a_pod_waits_for_its_plugin(node, plugins):
    plugin = plugins(node, GPU, ["g0"]).register()
    node.wait_devices(GPU, 1)
    node.stop()
    plugin.stop()
    node.start()
    import threading

    answers = []
    asking = threading.Thread(
        target=lambda: answers.append(node.admit(pod("p", ("main", {GPU: 1})), wait=30, timeout=40))
    )
    asking.start()
    waiting = until(
        lambda: [p for p in node.status().pods if p.state == "waiting"], 10, "a pod that waits"
    )
    assert waiting[0].awaited == f"the plugin of {GPU}"
    assert not answers
    plugin.serve().register()
    asking.join(20)
    assert answers and answers[0].admitted


def test_waiting_ends(node, plugins):
    plugin = plugins(node, GPU, ["g0"]).register()
    node.wait_devices(GPU, 1)
    plugin.stop()
    until(lambda: not node.resource(GPU).connected, 10, "the plugin to be gone")
    started = time.monotonic()
    refused = node.admit(pod("p", ("main", {GPU: 1})), wait=1)
    assert 0.9 < time.monotonic() - started < 5
    assert not refused.admitted
    assert "no healthy devices present; cannot allocate unhealthy devices" in refused.message


def test_strict_refuses_at_once(make_node, plugins):
    node = make_node("--strict").start()
    plugin = plugins(node, GPU, ["g0"]).register()
    node.wait_devices(GPU, 1)
    plugin.stop()
    until(lambda: not node.resource(GPU).connected, 10, "the plugin to be gone")
    started = time.monotonic()
    assert not node.admit(pod("p", ("main", {GPU: 1}))).admitted
    assert time.monotonic() - started < 5


def test_a_second_plugin_for_a_resource_takes_over(node, plugins):
    first = plugins(node, GPU, ["g0", "g1"], name="one.sock").register()
    node.wait_devices(GPU, 2)
    assert node.admit(pod("p", ("main", {GPU: 1}))).admitted
    second = plugins(node, GPU, ["g0", "g1", "g2"], name="two.sock").register()
    node.wait_devices(GPU, 3)
    first.stop()
    time.sleep(0.2)
    node.wait_devices(GPU, 3)  # the older one's end does not take the newer one down
    assert node.admit(pod("q", ("main", {GPU: 2}))).admitted
    assert len(second.allocated) == 1


@pytest.mark.parametrize(
    "change, text",
    [
        ({"version": "v1alpha1"}, 'requested API version "v1alpha1" is not supported by kubelet'),
        ({"resource": "gpu"}, 'the ResourceName "gpu" is invalid'),
        ({"resource": "foo.kubernetes.io/gpu"}, "is invalid"),
        ({"endpoint": "../x.sock"}, "is not the name of a socket"),
        ({"endpoint": "x" * 200}, "longer than 107"),
        ({"endpoint": ""}, "is not the name of a socket"),
    ],
)
def test_bad_registrations_are_refused(node, plugins, change, text):
    plugin = plugins(node, GPU, ["g0"])
    with pytest.raises(grpc.RpcError) as refused:
        plugin.register(**change)
    assert refused.value.code() == grpc.StatusCode.UNKNOWN
    assert text in refused.value.details()
    plugin.register()  # and others are fine
    node.wait_devices(GPU, 1)


def test_an_endpoint_that_links_out_is_refused(node, plugins, short_dir):
    plugin = plugins(node, GPU, ["g0"])
    outside = os.path.join(short_dir, "o.sock")
    os.rename(plugin.socket, outside)
    os.symlink(outside, plugin.socket)
    with pytest.raises(grpc.RpcError) as refused:
        plugin.register()
    assert f"a link to {os.path.realpath(outside)}, is outside of" in refused.value.details()


def test_options_that_fail_fail_the_registration(node, plugins):
    plugin = plugins(node, GPU, ["g0"])

    def fail(request, context):
        context.abort(grpc.StatusCode.INTERNAL, "no options today")

    plugin._options = fail
    plugin.stop()
    plugin.serve()
    with pytest.raises(grpc.RpcError) as refused:
        plugin.register()
    assert "failed to get device plugin options" in refused.value.details()
    assert "no options today" in refused.value.details()
    assert node.resource(GPU) is None
    assert plugin.n_streams == 0


@pytest.mark.parametrize(
    "answer, text",
    [
        (lambda plugin, ids: "no more", "no more"),
        (lambda plugin, ids: plugin.pb.AllocateResponse(), "no containers return in allocation"),
    ],
    ids=["fails", "answers with too few containers"],
)
def test_an_allocation_that_goes_wrong_gives_everything_back(node, plugins, answer, text):
    plugin = plugins(node, GPU, ["g0"]).register()
    node.wait_devices(GPU, 1)
    plugin.answer = lambda ids: answer(plugin, ids)
    refused = node.admit(pod("p", ("main", {GPU: 1})))
    assert not refused.admitted and text in refused.message
    plugin.answer = plugin.answer_with_env
    assert node.admit(pod("q", ("main", {GPU: 1}))).admitted


@pytest.mark.parametrize(
    "limits, text",
    [
        ({GPU: "0.5"}, "is not a whole number"),
        ({GPU: "-1"}, "is negative"),
        ({GPU: "many"}, "quantit"),
    ],
)
def test_bad_amounts_are_refused(node, plugins, limits, text):
    plugins(node, GPU, ["g0"]).register()
    node.wait_devices(GPU, 1)
    with pytest.raises(grpc.RpcError) as refused:
        node.admit(pod("p", ("main", limits)))
    assert refused.value.code() == grpc.StatusCode.INVALID_ARGUMENT
    assert text in refused.value.details()
    assert "spec.containers[0].resources.limits" in refused.value.details()


def test_what_nobody_offers_is_refused(node):
    refused = node.admit(pod("p", ("main", {"example.com/none": 1})))
    assert not refused.admitted
    assert refused.reason == "UnknownResource"
    assert "example.com/none" in refused.message


@pytest.mark.parametrize(
    "devices, message",
    [
        ([("", "Healthy")], "list refused"),
        ([("g0", "Healthy"), ("g0", "Unhealthy")], "more than once"),
    ],
)
def test_bad_lists_are_named_and_survived(node, plugins, devices, message):
    plugin = plugins(node, GPU, ["g0", "g1"]).register()
    node.wait_devices(GPU, 2)
    odd = plugin.pb.ListAndWatchResponse()
    for device, health in devices:
        odd.devices.add(ID=device, health=health)
    plugin.push(odd)
    until(lambda: message in node.proc.log, 10, message)
    plugin.set_devices(["g0", "g1", "g2"])
    node.wait_devices(GPU, 3)


def test_a_list_of_twenty_megabytes_is_taken(node, plugins):
    many = {f"device-{i:06d}-{'x' * 40}": ("Healthy", [i % 2]) for i in range(280_000)}
    plugin = plugins(node, GPU, many)
    assert len(plugin.list_message().SerializeToString()) > 20_000_000
    plugin.register()
    node.wait_devices(GPU, len(many), timeout_s=30)
    assert node.admit(pod("p", ("main", {GPU: 3}))).admitted


def test_another_agent_is_noticed(node, make_node):
    other = make_node()
    other.state_dir += "2"
    other.start(ready=False)
    assert other.proc.wait(10) == 1
    assert "another process listens on" in other.proc.log
    assert node.status().node_name == "n1"


def test_sockets_have_the_modes_of_the_protocol(node):
    def mode(path):
        return stat.S_IMODE(os.stat(path).st_mode)

    assert mode(node.socket) == 0o600
    assert mode(node.runtime_dir) == 0o700
    assert mode(node.kubelet_sock) == 0o777
    assert mode(node.plugin_dir) == 0o750


def test_watching_devices(node, plugins):
    channel = grpc.insecure_channel(f"unix:{node.socket}")
    stream = channel.unary_stream(
        "/davit.node.v1.Node/WatchDevices",
        request_serializer=node.pb.ListDevicesRequest.SerializeToString,
        response_deserializer=node.pb.ListDevicesResponse.FromString,
    )(node.pb.ListDevicesRequest(), timeout=20)
    assert not next(stream).resources
    plugin = plugins(node, GPU, ["g0"]).register()
    for listed in stream:
        if listed.resources and listed.resources[0].allocatable == 1:
            break
    plugin.set_devices(["g0", "g1"])
    for listed in stream:
        if listed.resources[0].allocatable == 2:
            break
    stream.cancel()
    channel.close()


def test_pod_resources(node, plugins):
    plugins(node, GPU, {"g0": ("Healthy", [0]), "g1": ("Healthy", [0, 1])}).register()
    plugins(node, NIC, ["n0"]).register()
    node.wait_devices(GPU, 2)
    node.wait_devices(NIC, 1)
    assert list(node.podres_list()) == []
    assert node.admit(pod("p", ("main", {GPU: 2, NIC: 1}), ("other", {}))).admitted
    listed = node.podres_list()
    assert [(p.namespace, p.name) for p in listed] == [("default", "p")]
    main, other = listed[0].containers
    shape = [
        (d.resource_name, list(d.device_ids), [n.ID for n in d.topology.nodes]) for d in main.devices
    ]
    assert shape == [(GPU, ["g0"], [0]), (GPU, ["g1"], [0]), (GPU, ["g1"], [1]), (NIC, ["n0"], [])]
    assert not other.devices
    got = node.podres_call(
        "Get",
        node.podres.GetPodResourcesRequest(pod_name="p", pod_namespace="default"),
        node.podres.GetPodResourcesResponse,
    )
    assert got.pod_resources == listed[0]
    with pytest.raises(grpc.RpcError) as missing:
        node.podres_call(
            "Get",
            node.podres.GetPodResourcesRequest(pod_name="x", pod_namespace="default"),
            node.podres.GetPodResourcesResponse,
        )
    assert missing.value.code() == grpc.StatusCode.UNKNOWN
    assert missing.value.details() == "pod x in namespace default not found"
    allocatable = node.podres_call(
        "GetAllocatableResources",
        node.podres.AllocatableResourcesRequest(),
        node.podres.AllocatableResourcesResponse,
    )
    assert len(allocatable.devices) == 4
    old = protos.load("podresources_v1alpha1")
    alpha = node.podres_call(
        "List",
        old.ListPodResourcesRequest(),
        old.ListPodResourcesResponse,
        service="v1alpha1.PodResourcesLister",
    )
    assert [list(d.device_ids) for d in alpha.pod_resources[0].containers[0].devices] == [
        ["g0"], ["g1"], ["g1"], ["n0"],
    ]


def test_pod_resources_are_rate_limited(node):
    outcomes = []
    for _ in range(200):
        try:
            node.podres_list()
            outcomes.append("ok")
        except grpc.RpcError as refused:
            assert refused.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
            assert refused.details() == "rejected by rate limit"
            outcomes.append("refused")
    assert outcomes[0] == "ok" and "refused" in outcomes
    time.sleep(0.2)
    node.podres_list()
