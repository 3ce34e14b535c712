"""A davitd that does everything, the sample drivers beside it, and the objects that tests make."""

import json
import os
import socket

from dra_kubelet import Driver
from peers import folder_of
from procs import until
from servers import CLAIMS, PODS, RESOURCE, ApiNode

# A loaded machine is slow, not broken.
WAIT_S = 30
GPU = "gpu.example.com"
DEV = "example.com/dev"
CLASSES = f"{RESOURCE}/v1/deviceclasses"
TEMPLATES = f"{RESOURCE}/v1/namespaces/default/resourceclaimtemplates"
RULES = f"{RESOURCE}/v1alpha3/devicetaintrules"
EVENTS = "/api/v1/namespaces/default/events"


def free_port():
    """Drivers keep the address of the API over a restart of davitd."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


class WholeNode(ApiNode):
    """The API, the controllers, the scheduler and the node, in one process."""

    def __init__(self, procs, root, *options):
        self.cdi_dir = os.path.join(root, "cdi")
        os.makedirs(self.cdi_dir, exist_ok=True)
        super().__init__(procs, root, "--cdi-dirs", self.cdi_dir, *options)
        self.listen = f"127.0.0.1:{free_port()}"
        self.name = "n1"

    def start_driver(self, n_devices, *options, kubeconfig=None):
        control = os.path.join(self.root, f"c-{self.name}")
        proc = self.procs.start(
            program("davit-sample-dra-driver"), "--driver", GPU, "--node", self.name,
            "--kubeconfig", kubeconfig or self.kubeconfig, "--kubelet-dir", self.kubelet_dir,
            "--cdi-dir", self.cdi_dir, "--control", control, "--devices", n_devices, *options,
            ready="registered",
        )
        proc.wait_line(f"published {self.name}", WAIT_S)
        return Driver(proc, control, self.cdi_dir)

    def start_plugin(self, n_devices):
        return self.procs.start(
            program("davit-sample-device-plugin"), "--kubelet-dir", self.kubelet_dir,
            "--resource", DEV, "--virtual", n_devices, ready="registered",
        )


class AgentNode(WholeNode):
    """Only the node, of a cluster whose API is another davitd's."""

    def __init__(self, procs, root, name, kubeconfig):
        os.makedirs(root)
        super().__init__(procs, root)
        self.name = name
        self.cluster = kubeconfig

    def start(self, *more, ready=True):
        self.proc = self.procs.start(
            os.path.join(folder_of("DAVIT_BUILD"), "davitd"), "--kubeconfig", self.cluster,
            "--node-name", self.name, "--kubelet-dir", self.kubelet_dir,
            "--state-dir", self.state_dir, "--runtime-dir", self.runtime_dir,
            "--listen", "none", "--cri", self.cri, *self.options, *more,
            ready="ready" if ready else None,
        )
        return self


def program(name):
    return os.path.join(folder_of("DAVIT_BUILD"), "drivers", name)


# Objects


def device_class(name="gpu", **spec):
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": name},
        "spec": {"selectors": [{"cel": {"expression": f'device.driver == "{GPU}"'}}], **spec},
    }


def claim_spec(count=1, of_class="gpu"):
    return {"devices": {"requests": [
        {"name": "r", "exactly": {"deviceClassName": of_class, "count": count}}]}}


def template(name="one", **options):
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"spec": claim_spec(**options)},
    }


def claim(name, **options):
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": name, "namespace": "default"},
        "spec": claim_spec(**options),
    }


def rule(name, effect="NoExecute", **selector):
    return {
        "apiVersion": "resource.k8s.io/v1alpha3",
        "kind": "DeviceTaintRule",
        "metadata": {"name": name},
        "spec": {"deviceSelector": selector, "taint": {"key": "broken", "effect": effect}},
    }


def pod(name, of_template=None, of_claim=None, limits=None, **spec):
    """With one container "a", which uses all that the pod has."""
    entries = [{"name": "t", "resourceClaimTemplateName": of_template}] if of_template else []
    entries += [{"name": "c", "resourceClaimName": of_claim}] if of_claim else []
    resources = {"claims": [{"name": entry["name"]} for entry in entries]}
    if limits:
        resources["limits"] = limits
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "containers": [{"name": "a", "image": "x", "resources": resources}],
            "resourceClaims": entries,
            "terminationGracePeriodSeconds": 1,
            **spec,
        },
    }


def manifest(*objects):
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": objects})


# What is there


def get(api, path, name):
    """The object; None: it is not there."""
    answer = api.ask("GET", f"{path}/{name}")
    assert answer.status in (200, 404), answer
    return answer.doc if answer.status == 200 else None


def items(api, path):
    return api.must("GET", path)["items"]


def condition(one, kind):
    """Of a pod or a rule; {}: it has none."""
    found = [c for c in (one or {}).get("status", {}).get("conditions", []) if c["type"] == kind]
    return found[0] if found else {}


def is_ready(one):
    """Whether the pod has its devices: without a container runtime it does not get any further."""
    return condition(one, "davit.node/DevicesReady").get("status") == "True"


def wait_ready(api, *names):
    for name in names:
        until(lambda n=name: is_ready(get(api, PODS, n)), WAIT_S,
              f"{name} is ready: {get(api, PODS, name)}")


def wait_gone(api, path, *names):
    for name in names:
        until(lambda n=name: get(api, path, n) is None, WAIT_S,
              f"{name} is gone: {get(api, path, name)}")


def wait_unscheduled(api, name, text):
    def says():
        found = condition(get(api, PODS, name), "PodScheduled")
        return found.get("status") == "False" and text in found.get("message", "") and found

    return until(says, WAIT_S, f"{name} says {text!r}: {get(api, PODS, name)}")


def devices_of(one):
    """Of a claim: ["pool/device"]; []: it is not allocated."""
    results = one.get("status", {}).get("allocation", {}).get("devices", {}).get("results", [])
    return sorted(f"{result['pool']}/{result['device']}" for result in results)


def held(api):
    """{device: claim} of all claims; a device that two of them have is an error."""
    found = {}
    for one in items(api, CLAIMS):
        for device in devices_of(one):
            assert device not in found, f"{device}: {found[device]}, {one['metadata']['name']}"
            found[device] = one["metadata"]["name"]
    return found


def reasons(api, name):
    """Of the events about an object."""
    return [one["reason"] for one in items(api, EVENTS) if one["involvedObject"]["name"] == name]


def wait_reason(api, name, reason):
    until(lambda: reason in reasons(api, name), WAIT_S, f"event {reason} of {name}")
