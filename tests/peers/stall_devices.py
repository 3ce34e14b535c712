"""Rows of bench_stall.py: device plugins with many devices, and pods that take many."""

import functools
import json
import os

from nodes import pod
from plugin import Plugin
from procs import until

PATIENCE_S = 120
RESOURCE = "a.b/dev"
N_HELD = 50000


def plain_answer(plugin, ids):
    """Devices at paths of their own, as vendors' plugins answer."""
    pb = plugin.pb
    answer = pb.ContainerAllocateResponse(envs={"N": str(len(ids))})
    for device in ids:
        answer.devices.add(container_path=f"/dev/{device}", host_path=f"/dev/{device}",
                           permissions="rw")
    return pb.AllocateResponse(container_responses=[answer])


def plug(n, world):
    devices = [f"d{i}" for i in range(n)]
    plugin = Plugin(world.node.plugin_dir, RESOURCE, devices)
    plugin.answer = functools.partial(plain_answer, plugin)
    world.plugin = plugin
    world.started.append(plugin.serve())
    plugin.register()
    wait_healthy(world, n)


def wait_healthy(world, n):
    until(
        lambda: f'davit_device_allocatable{{resource_name="{RESOURCE}"}} {n}\n' in world.metrics(),
        PATIENCE_S,
        f"{n} devices",
    )


def flip(world, ill):
    """Makes the first `ill` devices ill, all others well."""
    devices = {
        device: ("Unhealthy" if number < ill else "Healthy", None)
        for number, device in enumerate(world.plugin.devices)
    }
    world.plugin.set_devices(devices)
    wait_healthy(world, len(devices) - ill)


def admit(name, n, world):
    answer = world.node.admit(pod(name, ("c", {RESOURCE: str(n)})), timeout=PATIENCE_S)
    assert answer.admitted, answer


def list_devices(world):
    assert len(world.node.resources()[RESOURCE]) >= N_HELD


def podres(method, world):
    kind = {"List": "ListPodResources", "GetAllocatableResources": "AllocatableResources"}[method]
    request = getattr(world.node.podres, f"{kind}Request")()
    world.node.podres_call(method, request, LazyBytes)


class LazyBytes:
    """Takes an answer as it is."""

    @staticmethod
    def FromString(data):  # noqa: N802 (protobuf's name)
        return data


def write_specs(world):
    folder = os.path.join(world.folder, "cdi")
    os.makedirs(folder, exist_ok=True)
    for number in range(10000):
        spec = {"cdiVersion": "0.6.0", "kind": f"a.b/k{number}",
                "devices": [{"name": "d", "containerEdits": {"env": ["A=B"]}}]}
        with open(os.path.join(folder, f"{number}.json"), "w", encoding="ascii") as file:
            json.dump(spec, file)
    world.node.status()


def groups(row):
    part = functools.partial
    yield "devices", [
        row("a plugin with 100,000 devices", part(plug, 100000)),
        row("one of them falls ill", part(flip, ill=1)),
        row("all fall ill", part(flip, ill=100000)),
        row("all are well again", part(flip, ill=0)),
        row(f"a pod takes {N_HELD} of them", part(admit, "p", N_HELD)),
        row("davit.node lists them", list_devices),
        row("PodResources lists them", part(podres, "List")),
        row("PodResources tells what there is", part(podres, "GetAllocatableResources")),
        row(f"{N_HELD} in use fall ill", part(flip, ill=100000)),
        row(f"a pod of {N_HELD} devices is released", lambda w: w.node.release("uid-p")),
    ]
    yield "million", [row("a plugin with 1,000,000 devices", part(plug, 1000000))]
    yield "cdi", [row("10,000 CDI specs at once", write_specs)]
