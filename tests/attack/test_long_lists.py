"""A plugin with very many devices: nobody waits for its list, and nothing stays of one that is
being read when the plugin or davitd goes."""

import random
import time

import grpc
import pytest

from nodes import UNLIMITED
from procs import until

GPU = "example.com/gpu"
MANY = 200_000


@pytest.mark.parametrize("part", range(6))
def test_davitd_ends_while_a_long_list_is_read(make_node, plugins, part):
    node = make_node().start()
    plugin = plugins(node, GPU, [f"gpu-{number}" for number in range(MANY)])
    plugin.register()
    # Somewhere between the call and the end of the reading: any moment is a right one.
    time.sleep(random.random() * 0.1 * part)
    assert node.stop() == 0, node.proc.describe()


def test_a_plugin_that_goes_while_its_long_list_is_read_can_come_back(node, plugins):
    names = [f"gpu-{number}" for number in range(MANY)]
    for part in range(4):
        plugin = plugins(node, GPU, names)
        plugin.register()
        time.sleep(random.random() * 0.1 * part)
        plugin.stop()
    plugins(node, GPU, names[:100]).register()
    node.wait_devices(GPU, 100, 60)
    until(lambda: node.api().ask("GET", "/readyz").status == 200, 60, "ready")


def watch_devices(node, resource=""):
    """(channel, stream) of the lists as bytes."""
    channel = grpc.insecure_channel(f"unix:{node.socket}", options=UNLIMITED)
    request = node.pb.ListDevicesRequest(resource=resource)
    return channel, channel.unary_stream(
        "/davit.node.v1.Node/WatchDevices",
        request_serializer=type(request).SerializeToString,
        response_deserializer=node.pb.ListDevicesResponse.FromString,
    )(request, timeout=120)


def n_ill(listed):
    return sum(not device.healthy for resource in listed.resources for device in resource.devices)


def test_all_who_watch_a_long_list_get_its_last_state(node, plugins):
    """Six share two lists; one reads nothing until the end; one is gone in the middle."""
    names = [f"gpu-{number}" for number in range(MANY // 10)]
    plugin = plugins(node, GPU, names)
    plugin.register()
    node.wait_devices(GPU, len(names), 60)
    watches = [watch_devices(node, GPU if number % 2 else "") for number in range(6)]
    gone, _ = watches.pop(0)
    late = watches.pop(0)
    for _, stream in watches:
        assert n_ill(next(stream)) == 0
    for ill in range(1, 11):
        plugin.set_devices({name: ("Unhealthy" if number < ill else "Healthy", None)
                            for number, name in enumerate(names)})
        if ill == 5:
            gone.close()
    for channel, stream in [*watches, late]:
        told = []
        while told[-1:] != [10]:
            told.append(n_ill(next(stream)))
        assert told == sorted(set(told)), "each list differs from the one before"
        channel.close()


@pytest.mark.parametrize("part", range(4))
def test_davitd_ends_while_lists_are_made_for_who_watches(make_node, plugins, part):
    node = make_node().start()
    plugins(node, GPU, [f"gpu-{number}" for number in range(MANY)]).register()
    node.wait_devices(GPU, MANY, 60)
    watches = [watch_devices(node) for _ in range(3)]
    pages = [node.api().open("GET", "/davit/v1/node?watch=true")[0] for _ in range(3)]
    time.sleep(random.random() * 0.1 * part)
    assert node.stop() == 0, node.proc.describe()
    for channel, _ in watches:
        channel.close()
    for page in pages:
        page.close()
