"""The health of devices that pods hold, and what the node reports of its resources."""

import json

import grpc
import pytest

from nodes import pod
from procs import until

GPU = "example.com/gpu"
HEALTHY, UNHEALTHY = ("Healthy", None), ("Unhealthy", None)


def health_of(status):
    """{container: {resource: {device id: health}}} of a PodStatus."""
    return {
        c.container: {r.resource: {d.id: d.health for d in r.devices} for r in c.resources}
        for c in status.containers
    }


def health(node, uid):
    (found,) = [p for p in node.status().pods if p.pod.uid == uid]
    return health_of(found)


def resource_status(node, name=GPU):
    (found,) = [r for r in node.status().resource_status if r.name == name]
    return found


def watch_pods(node, channel, **ref):
    request = node.pb.WatchPodsRequest()
    if ref:
        request.pod.CopyFrom(node.pb.PodRef(**ref))
    return channel.unary_stream(
        "/davit.node.v1.Node/WatchPods",
        request_serializer=node.pb.WatchPodsRequest.SerializeToString,
        response_deserializer=node.pb.WatchPodsResponse.FromString,
    )(request, timeout=20)


@pytest.fixture
def channel(node):
    with grpc.insecure_channel(f"unix:{node.socket}") as made:
        yield made


def test_the_status_follows_the_health_of_what_is_held(node, plugins):
    """Also of a pod none of whose containers ever started."""
    plugin = plugins(node, GPU, ["g0", "g1", "g2"]).register()
    node.wait_devices(GPU, 3)
    sidecar = {
        "name": "side", "image": "x", "restartPolicy": "Always", "resources": {"limits": {GPU: 1}}
    }
    asked = pod("p", ("main", {GPU: 1}), ("log", {}), init=[sidecar])
    assert node.admit(asked).admitted
    assert health(node, "uid-p") == {"side": {GPU: {"g0": "Healthy"}}, "main": {GPU: {"g1": "Healthy"}}}
    plugin.set_devices({"g0": HEALTHY, "g1": UNHEALTHY, "g2": UNHEALTHY})
    until(lambda: health(node, "uid-p")["main"] == {GPU: {"g1": "Unhealthy"}}, 10, "the change")
    assert health(node, "uid-p")["side"] == {GPU: {"g0": "Healthy"}}
    assert [p.state for p in node.status().pods] == ["admitted"]
    found = resource_status(node)
    assert (found.capacity, found.allocatable, found.held) == (3, 1, 2)
    plugin.set_devices(["g0", "g1", "g2"])
    until(lambda: health(node, "uid-p")["main"] == {GPU: {"g1": "Healthy"}}, 10, "the way back")
    plugin.set_devices(["g0", "g2"])  # unknown devices count as healthy
    node.wait_devices(GPU, 2)
    assert health(node, "uid-p")["main"] == {GPU: {"g1": "Healthy"}}


def test_a_plugin_that_goes_changes_no_device_s_own_health(node, plugins):
    plugin = plugins(node, GPU, {"g0": HEALTHY, "g1": UNHEALTHY}).register()
    node.wait_devices(GPU, 1)
    assert node.admit(pod("p", ("main", {GPU: 1}))).admitted
    plugin.stop()
    until(lambda: not resource_status(node).connected, 10, "the plugin to be missed")
    found = resource_status(node)
    assert (found.capacity, found.allocatable, found.held, found.removed) == (2, 0, 1, False)
    assert health(node, "uid-p") == {"main": {GPU: {"g0": "Healthy"}}}


def test_watching_pods(node, plugins, channel):
    plugin = plugins(node, GPU, ["g0", "g1"]).register()
    node.wait_devices(GPU, 2)
    everyone = watch_pods(node, channel)
    assert not next(everyone).pods
    assert node.admit(pod("p", ("main", {GPU: 1}))).admitted
    assert node.admit(pod("q", ("main", {GPU: 1}))).admitted
    for seen in everyone:
        if [p.state for p in seen.pods] == ["admitted", "admitted"]:
            break
    one = watch_pods(node, channel, uid="uid-q")
    assert [p.pod.name for p in next(one).pods] == ["q"]
    plugin.set_devices({"g0": HEALTHY, "g1": UNHEALTHY})
    for stream in (everyone, one):
        for seen in stream:
            if health_of(seen.pods[-1]) == {"main": {GPU: {"g1": "Unhealthy"}}}:
                break
    node.release("uid-q")
    for seen in one:
        if not seen.pods:
            break
    everyone.cancel()
    one.cancel()


def test_davit_status_shows_resources_and_health(node, plugins):
    plugin = plugins(node, GPU, ["g0", "g1"]).register()
    node.wait_devices(GPU, 2)
    assert node.admit(pod("p", ("main", {GPU: 1}))).admitted
    _, resources, pods = node.davit("status").stdout.split("\n\n")
    assert resources.splitlines()[1].split() == [GPU, "2", "2", "1", "1", "there"]
    assert pods.splitlines()[1].split()[-2:] == ["healthy", "-"]
    plugin.set_devices({"g0": UNHEALTHY, "g1": HEALTHY})
    node.wait_devices(GPU, 1)
    done = node.davit("status")
    assert f"main: {GPU} g0 Unhealthy" in done.stdout
    shown = json.loads(node.davit("status", "-o", "json").stdout)
    assert shown["pods"][0]["containers"] == [
        {"container": "main",
         "resources": [{"resource": GPU, "devices": [{"id": "g0", "health": "Unhealthy"}]}]}
    ]
    assert shown["resource_status"][0]["capacity"] == 2
    assert shown["resource_status"][0]["allocatable"] == 1


def test_a_pod_that_has_ended_is_not_admitted_again(node, plugins):
    """Nothing waits for the plugin of a pod that is over."""
    plugin = plugins(node, GPU, ["g0"]).register()
    node.wait_devices(GPU, 1)
    assert node.admit(pod("p", ("main", {GPU: 1}))).admitted
    assert node.release("uid-p").was_known
    plugin.stop()
    assert node.stop() == 0
    node.start()
    assert not node.status().pods
    assert not node.release("uid-p").was_known
    assert [r.held for r in node.status().resource_status] == [0]


def test_open_files_are_limited_by_the_hard_limit_only(node):
    with open(f"/proc/{node.proc.pid}/limits", encoding="ascii") as limits:
        (line,) = [line for line in limits if line.startswith("Max open files")]
    soft, hard = line.split()[3:5]
    assert soft == hard
