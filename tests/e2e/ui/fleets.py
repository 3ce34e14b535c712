"""A node with some of everything, and others that are only objects of its API."""

import nodes
from claim_nodes import make_claim
from claim_nodes import pod as claim_pod
from procs import until
from servers import CLAIMS, PODS, claim

GPU = "gpu.example.com"
WHY = "gpu: 1 wanted, 8 looked at: memory = 16Gi, wanted >= 40Gi (device-0 on n1)"
MESSAGE = f"0/3 nodes are available: 3 cannot allocate all claims. still not schedulable. {WHY}"


def add_waiting(api):
    """A pod that waits for a claim, and says why at length."""
    api.must("POST", CLAIMS, claim("big"))
    made = api.must("POST", PODS, {
        "metadata": {"name": "train-large"},
        "spec": {"containers": [{"name": "main", "image": "x", "resources": {"claims": [{"name": "big"}]}}],
                 "resourceClaims": [{"name": "big", "resourceClaimName": "big"}]},
    })
    made["status"] = {"phase": "Pending", "conditions": [
        {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": MESSAGE}]}
    api.must("PUT", f"{PODS}/train-large/status", made)


def add_node(api, name, ready=True, **capacity):
    made = api.must("POST", "/api/v1/nodes", {"metadata": {"name": name}})
    sizes = {resource.replace("_", "/"): str(n) for resource, n in capacity.items()}
    made["status"] = {"capacity": sizes, "allocatable": sizes, "conditions": [
        {"type": "Ready", "status": str(ready), "reason": "KubeletReady" if ready else "NodeStatusUnknown",
         "message": "" if ready else "davitd has not told anything for 40 s"}]}
    api.must("PUT", f"/api/v1/nodes/{name}/status", made)


def add_slice(api, node, n):
    api.must("POST", "/apis/resource.k8s.io/v1/resourceslices", {
        "metadata": {"name": f"{node}-gpus"},
        "spec": {"driver": GPU, "nodeName": node, "pool": {"name": node, "generation": 1, "resourceSliceCount": 1},
                 "devices": [{"name": f"gpu-{i}", "attributes": {"model": {"string": "t9"}}} for i in range(n)]},
    })


def taint(api, device):
    api.must("POST", "/apis/resource.k8s.io/v1beta2/devicetaintrules", {
        "metadata": {"name": f"broken-{device}"},
        "spec": {"deviceSelector": {"driver": GPU, "pool": "n1", "device": device},
                 "taint": {"key": "example.com/fan", "value": "slow", "effect": "NoSchedule"}},
    })


def populate(node, api):
    """Devices in each state, pods and claims that run and that wait. Returns the plugins that can be told things."""
    add_waiting(api)  # the first: the API's times are whole seconds, and what waits longest is on top
    gpus = node.add_plugin("example.com/gpu", 12, "--numa", "0,1")
    nics = node.add_plugin("example.com/nic", 4)
    node.add_driver(GPU, 8, "--numa", "0,1", "--model", "t9")
    for name, n in (("train-0", 3), ("train-1", 2)):
        assert node.admit(nodes.pod(name, ("main", {"example.com/gpu": str(n)}))).admitted
    assert node.admit(nodes.pod("net-0", ("main", {"example.com/nic": "1"}))).admitted
    make_claim(api, "fast", (GPU, "device-2"), pods=["with-claim"])
    assert node.admit(claim_pod("with-claim", {"gpu": "fast"})).admitted
    make_claim(api, "late", ("nic.example.com", "nic-0"), pods=["late-0"])
    node.admit_later(claim_pod("late-0", {"nic": "late"}), wait=300)
    node.wait_awaited("late-0", "nic.example.com")
    gpus.must("health virtual-7 unhealthy")
    gpus.must("health virtual-0 unhealthy")
    taint(api, "device-5")
    nics.must("quit")
    until(lambda: not node.resource("example.com/nic").connected, 40, "the plugin to be gone")
    return gpus
