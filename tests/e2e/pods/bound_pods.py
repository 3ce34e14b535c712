"""Nodes that take their pods from an API, and what tests put there."""

import os

from claim_nodes import WAIT_S, ClaimNode
from nodes import Node, run_davit
from peers import folder_of
from procs import until
from servers import CLAIMS, NODES, PODS, merge_patch

DEV = "example.com/dev"
GPU = "gpu.example.com"
DEVICES_READY = "davit.node/DevicesReady"


def make_token(node, path, *words):
    done = run_davit("token", "create", *words, "--write-kubeconfig", path,
                     "--kubeconfig", node.kubeconfig)
    assert done.returncode == 0, done


class Drivers:
    """The sample drivers of a node."""

    def start_plugin(self, *options):
        words = options or ("--virtual", "4")
        self.plugin = self.procs.start(
            os.path.join(folder_of("DAVIT_BUILD"), "drivers", "davit-sample-device-plugin"),
            "--kubelet-dir", self.kubelet_dir, "--resource", DEV, *words, ready="registered",
        )
        return self

    def start_driver(self, kubeconfig, *options):
        self.driver = self.procs.start(
            os.path.join(folder_of("DAVIT_BUILD"), "drivers", "davit-sample-dra-driver"),
            "--driver", GPU, "--node", self.name, "--kubeconfig", kubeconfig,
            "--kubelet-dir", self.kubelet_dir, "--cdi-dir", self.cdi_dir, *options,
            ready="registered",
        )
        self.driver.wait_line(f"published {self.name}", WAIT_S)
        return self

    def pods_here(self):
        return {one.pod.name for one in self.status().pods}


class PodNode(Drivers, ClaimNode):
    """The API and a node, n1."""

    name = "n1"

    def start_both(self):
        self.start_plugin()
        return self.start_driver(self.kubeconfig)


class SecondNode(Drivers, Node):
    """n2, on folders of its own."""

    name = "n2"

    def __init__(self, procs, root, first):
        super().__init__(procs, os.path.join(root, "n2"))
        os.mkdir(self.root)
        self.cdi_dir = os.path.join(self.root, "cdi")
        self.first = first
        self.kubeconfig = os.path.join(self.root, "n2.kubeconfig")
        make_token(first, self.kubeconfig, "--node", self.name)

    def start(self, *more, ready=True):
        self.proc = self.procs.start(
            os.path.join(folder_of("DAVIT_BUILD"), "davitd"),
            "--roles", "node", "--node-name", self.name, "--kubeconfig", self.kubeconfig,
            "--kubelet-dir", self.kubelet_dir, "--state-dir", self.state_dir,
            "--runtime-dir", self.runtime_dir, "--cdi-dirs", self.cdi_dir, "--listen", "none",
            "--cri", self.cri,
            *more, ready="ready" if ready else None,
        )
        return self

    def start_both(self):
        kubeconfig = os.path.join(self.root, "driver.kubeconfig")
        make_token(self.first, kubeconfig, "--driver", GPU, "--node", self.name)
        self.start_plugin()
        return self.start_driver(kubeconfig)


# What is in the API


def bound(name, node="n1", devices=0, claim=None, **metadata):
    resources = {"limits": {DEV: str(devices)}} if devices else {}
    if claim:
        resources["claims"] = [{"name": "g"}]
    spec = {"nodeName": node,
            "containers": [{"name": "main", "image": "x", "resources": resources}]}
    if claim:
        spec["resourceClaims"] = [{"name": "g", "resourceClaimName": claim}]
    return {"apiVersion": "v1", "kind": "Pod", "spec": spec,
            "metadata": {"name": name, "namespace": "default", **metadata}}


def make_claim(api, name):
    api.must("POST", CLAIMS, {"metadata": {"name": name}, "spec": {"devices": {"requests": [
        {"name": "r", "exactly": {"deviceClassName": "gpu"}}]}}})


def allocate(api, name, pod, node="n1", driver=GPU, device="device-0"):
    """As a scheduler does."""
    uid = api.must("GET", f"{PODS}/{pod}")["metadata"]["uid"]
    done = merge_patch(api, f"{CLAIMS}/{name}/status", {"status": {
        "allocation": {"devices": {"results": [
            {"request": "r", "driver": driver, "pool": node, "device": device}]}},
        "reservedFor": [{"resource": "pods", "name": pod, "uid": uid}]}})
    assert done.status == 200, done


def status_of(api, name):
    """The pod's status; None: there is no such pod."""
    answer = api.ask("GET", f"{PODS}/{name}")
    return answer.doc.get("status", {}) if answer.status == 200 else None


def phase_of(api, name):
    status = status_of(api, name)
    return None if status is None else status.get("phase")


def has_devices(api, name):
    """Whether the pod has all that it asked for. It is Pending until somebody starts it."""
    return any(one["type"] == DEVICES_READY and one["status"] == "True"
               for one in (status_of(api, name) or {}).get("conditions", ()))


def wait_devices(api, name, timeout_s=WAIT_S):
    until(lambda: has_devices(api, name), timeout_s,
          f"{name} to have its devices; last {status_of(api, name)}")


def wait_phase(api, name, phase, timeout_s=WAIT_S):
    until(lambda: phase_of(api, name) == phase, timeout_s,
          f"{name} {phase}; last {status_of(api, name)}")


def wait_reason(api, name, reason):
    def has_it():
        conditions = (status_of(api, name) or {}).get("conditions", [])
        return any(one.get("reason") == reason for one in conditions)

    until(has_it, WAIT_S, f"{name} {reason}; last {status_of(api, name)}")


def events(api, name):
    """[(reason, message)] of an object."""
    items = api.must("GET", "/api/v1/namespaces/default/events")["items"]
    return [(one["reason"], one["message"]) for one in items
            if one["involvedObject"]["name"] == name]


def capacity(api, node):
    answer = api.ask("GET", f"{NODES}/{node}")
    return answer.doc["status"].get("capacity", {}) if answer.status == 200 else {}
