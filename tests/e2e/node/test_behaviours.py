"""What the reference's own tests pin down and no other file here is about."""

import os
import signal
import threading

import pytest

from nodes import held, pod
from procs import until
from registrar import Registrar
from test_http import get, http_node, port_of, value_of  # noqa: F401

GPU = "example.com/gpu"


def podres_ids(node):
    """{pod: ids} of PodResources."""
    return {
        p.name: sorted(i for c in p.containers for d in c.devices for i in d.device_ids)
        for p in node.podres_list()
    }


def test_it_stops_once_however_often_it_is_told(node, plugins):
    plugins(node, GPU, ["g0"]).register()
    node.wait_devices(GPU, 1)
    node.disconnect()
    node.proc.signal(signal.SIGTERM)
    node.proc.signal(signal.SIGTERM)
    assert node.proc.wait(10) == 0
    assert not os.path.exists(node.kubelet_sock)
    node.start()
    assert os.path.exists(node.kubelet_sock)


def test_cdi_names_reach_the_container_s_options(node, plugins):
    """As far as a node goes: the runtime resolves the names."""
    plugin = plugins(node, GPU, ["g0", "g1"]).register()
    plugin.answer = lambda ids: plugin.pb.AllocateResponse(
        container_responses=[
            plugin.pb.ContainerAllocateResponse(
                cdi_devices=[plugin.pb.CDIDevice(name=f"example.com/gpu={i}") for i in [*ids, ids[0]]]
            )
        ]
    )
    node.wait_devices(GPU, 2)
    assert node.admit(pod("p", ("main", {GPU: 2}))).admitted
    options = node.container_options("uid-p", "main")
    assert sorted(options.cdi_devices) == ["example.com/gpu=g0", "example.com/gpu=g1"]
    assert not options.envs and not options.devices


@pytest.mark.parametrize("strict", [False, True], ids=["davit", "strict"])
def test_a_container_s_restart_keeps_its_device(make_node, plugins, strict):
    node = make_node(*(["--strict"] if strict else [])).start()
    plugin = plugins(node, GPU, ["g0", "g1"]).register()
    node.wait_devices(GPU, 2)
    before = held(node.admit(pod("p", ("main", {GPU: 1}))))["main"][GPU]
    first = node.container_options("uid-p", "main")
    assert node.container_options("uid-p", "main") == first  # it starts again
    assert held(node.admit(pod("q", ("main", {GPU: 1}))))["main"][GPU] != before
    seen = podres_ids(node)
    assert seen["p"] == before
    plugin.stop()
    assert node.stop() == 0
    node.start()
    assert podres_ids(node) == seen  # before the plugin registers again
    plugin.serve().register()
    node.wait_devices(GPU, 2)
    assert podres_ids(node) == seen  # and after
    assert node.container_options("uid-p", "main") == first


def test_a_pod_that_cannot_come_back_after_a_reboot_is_refused(make_node, plugins):
    """The plugin is not back, and nobody waits for it."""
    node = make_node("--strict").start()
    plugin = plugins(node, GPU, ["g0"]).register()
    node.wait_devices(GPU, 1)
    assert node.admit(pod("p", ("main", {GPU: 1}))).admitted
    plugin.stop()
    assert node.stop() == 0
    node.start()
    again = node.admit(pod("p", ("main", {GPU: 1})))
    assert not again.admitted and again.reason == "UnexpectedAdmissionError"
    assert (
        "Allocate failed due to no healthy devices present; cannot allocate unhealthy devices"
        in again.message
    )
    found = node.resource(GPU)
    assert (found.capacity, found.allocatable) == (0, 0)
    node.release("uid-p")  # what an orchestrator does with a pod that failed
    assert podres_ids(node) == {}


def test_hints_and_lists_at_the_same_time(make_node, plugins):
    """Alignment sees whole lists only, whatever comes in between."""
    node = make_node("--topology-policy", "restricted").start()
    devices = {f"g{i}": ("Healthy", [0]) for i in range(8)}
    plugin = plugins(node, GPU, devices).register()
    node.wait_devices(GPU, 8)
    is_over = threading.Event()

    def flip():
        sick = False
        while not is_over.wait(0.001):
            sick = not sick
            plugin.set_devices({**devices, "g7": ("Unhealthy" if sick else "Healthy", [0])})

    flipping = threading.Thread(target=flip)
    flipping.start()
    try:
        for i in range(100):
            admitted = node.admit(pod(f"p{i}", ("main", {GPU: 3}), ("more", {GPU: 2})))
            assert admitted.admitted, admitted
            ids = [i for c in held(admitted).values() for i in c[GPU]]
            assert len(set(ids)) == 5
            node.release(f"uid-p{i}")
    finally:
        is_over.set()
        flipping.join()


def test_requests_and_plugins_are_counted(http_node, plugins):  # noqa: F811
    node = http_node
    port = port_of(node)
    plugin = plugins(node, GPU, ["g0"])
    at = os.path.join(node.kubelet_dir, "plugins_registry", "gpu.sock")
    registrar = Registrar(at, GPU, endpoint=plugin.socket).serve()
    node.wait_devices(GPU, 1)
    assert node.admit(pod("p", ("main", {GPU: 1}))).admitted
    pb = node.podres
    node.podres_list()
    node.podres_call(
        "GetAllocatableResources", pb.AllocatableResourcesRequest(), pb.AllocatableResourcesResponse
    )
    node.podres_call(
        "Get",
        pb.GetPodResourcesRequest(pod_name="p", pod_namespace="default"),
        pb.GetPodResourcesResponse,
    )
    metrics = get(port, "/metrics")
    for name in ("requests_total", "requests_list", "requests_get_allocatable", "requests_get"):
        series = f'kubelet_pod_resources_endpoint_{name}{{server_api_version="v1"}}'
        assert value_of(metrics, series) >= 1, series
    for state in ("desired_state_of_world", "actual_state_of_world"):
        labels = f'{{socket_path="{at}",state="{state}"}}'
        assert value_of(metrics, f"plugin_manager_total_plugins{labels}") == 1
    registrar.stop()
    until(lambda: not node.resource(GPU).connected, 10, "the plugin to be missed")
    assert at not in get(port, "/metrics")
