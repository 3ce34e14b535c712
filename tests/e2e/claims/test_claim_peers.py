"""Drivers that are not ours, as programs: in Python (grpcio, Debian's Kubernetes client) and in Go
(grpc-go). They are killed at every step, and replaced while they run."""

import os
import sys

import grpc
import pytest

from claim_nodes import GPU, WAIT_S, container, make_claim, pod
from python_driver import HERE
from peers import folder_of
from procs import until
from servers import CLAIMS, PODS, SLICES, merge_patch

PROGRAMS = {
    "python": lambda: [sys.executable, "-B", os.path.join(HERE, "python_driver.py")],
    "go": lambda: [os.path.join(folder_of("DAVIT_PEERS"), "go-dra-driver")],
}


class Peer:
    """One instance of a driver; started anew, it is the same driver come back."""

    def __init__(self, node, language, instance=""):
        self.node = node
        self.command = PROGRAMS[language]() + [
            "--driver", GPU, "--node", "n1", "--kubeconfig", node.kubeconfig,
            "--kubelet-dir", node.kubelet_dir, "--cdi-dir", node.cdi_dir,
        ] + (["--instance", instance] if instance else [])
        self.proc = None
        self.start()

    def start(self):
        self.proc = self.node.procs.start(*self.command, ready="ready")
        self.proc.wait_line("registered", WAIT_S)
        self.node.wait_connected(GPU)

    def tell(self, line):
        self.proc.write_line(line)
        self.proc.wait_line(f"ok {line}")

    def wait_dead(self):
        assert self.proc.wait(WAIT_S) == -9, self.proc.describe()

    def calls(self, kind):
        """The claims of each call to this process."""
        return [line.split(" ")[1].split(",") for line in self.proc.lines
                if line.startswith(f"{kind} ")]

    def wait_calls(self, kind, *expected):
        """Its lines come later than its answers."""
        until(lambda: self.calls(kind) == [[f"default/{name}"] for name in expected], WAIT_S,
              f"{kind} of {expected}, not {self.calls(kind)}")


def specs(node):
    """The uids of the claims that are prepared."""
    return {name[len(GPU) + 1:-len(".json")] for name in os.listdir(node.cdi_dir)
            if name.endswith(".json")}


@pytest.fixture(params=PROGRAMS)
def language(request):
    return request.param


@pytest.fixture
def peer(node, language):
    return Peer(node, language)


def test_a_pod_of_the_api_from_its_slice_to_its_end(node, api, peer):
    """All is the API's: the slice with its devices, the pod, the claim made for it, its deletion."""
    (published,) = api.must("GET", SLICES)["items"]
    assert published["spec"]["driver"] == GPU
    device = published["spec"]["devices"][2]["name"]
    made = api.must("POST", PODS, {
        "metadata": {"name": "p"},
        "spec": {
            "terminationGracePeriodSeconds": 1,
            "containers": [container("main", "gpu")],
            "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "t"}],
        },
    })
    uid = made["metadata"]["uid"]
    claim = make_claim(api, "p-gpu-1", (GPU, device), ownerReferences=[
        {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": uid, "controller": True}])
    merge_patch(api, f"{CLAIMS}/p-gpu-1/status", {"status": {
        "reservedFor": [{"resource": "pods", "name": "p", "uid": uid}]}})
    made["status"] = {"resourceClaimStatuses": [{"name": "gpu", "resourceClaimName": "p-gpu-1"}]}
    api.must("PUT", f"{PODS}/p/status", made)
    api.must("POST", f"{PODS}/p/binding", {
        "apiVersion": "v1", "kind": "Binding", "metadata": {"name": "p"},
        "target": {"apiVersion": "v1", "kind": "Node", "name": "n1"},
    })
    until(lambda: node.pods().get("p") == ("admitted", ""), WAIT_S, "the pod to be admitted")
    assert node.cdi_devices(uid) == [f"{GPU}/claim={claim}-0"] and specs(node) == {claim}
    (shown,) = node.claims()["p-gpu-1"].drivers[0].devices
    assert (shown.pool, shown.device, list(shown.requests)) == ("n1", device, ["r0"])
    peer.tell(f"health {device} Unhealthy")
    until(lambda: node.claims()["p-gpu-1"].drivers[0].devices[0].health == "Unhealthy", WAIT_S,
          "its health")

    def told():
        statuses = api.must("GET", f"{PODS}/p")["status"].get("containerStatuses") or [{}]
        return statuses[0].get("allocatedResourcesStatus")

    until(lambda: told() == [{"name": "claim:gpu", "resources": [
        {"resourceID": f"{GPU}/claim={claim}-0", "health": "Unhealthy"}]}], WAIT_S, "the same there")
    api.ask("DELETE", f"{PODS}/p")
    until(lambda: api.ask("GET", f"{PODS}/p").status == 404, WAIT_S, "the pod to be gone")
    assert specs(node) == set() and node.claims() == {} and node.pods() == {}
    peer.wait_calls("prepare", "p-gpu-1")
    peer.wait_calls("unprepare", "p-gpu-1")


def test_killed_at_every_step_it_has_lost_nothing(node, api, peer):
    uid = make_claim(api, "c1", (GPU, "device-0"), pods=["p"])
    made = pod("p", {"g": "c1"})
    for step in ("before", "done", "after"):
        peer.tell(f"die prepare {step}")
        answer = node.admit(made)
        peer.wait_dead()
        if step == "after":  # the answer was out
            assert answer.admitted, answer
        else:
            assert not answer.admitted and "code = Unavailable" in answer.message, answer
            assert node.pods() == {}
        peer.start()
        if step != "after":  # nobody is here for whom it could be prepared
            until(lambda: node.claims() == {} and specs(node) == set(), WAIT_S, "it to be undone")
    assert specs(node) == {uid} and node.cdi_devices("uid-p") == [f"{GPU}/claim={uid}-0"]
    assert peer.calls("prepare") == []  # not asked again
    for step in ("before", "done"):
        peer.tell(f"die unprepare {step}")
        with pytest.raises(grpc.RpcError, match="NodeUnprepareResources: rpc error: code = Unavai"):
            node.release("uid-p")
        peer.wait_dead()
        assert node.pods()["p"][0] == "admitted" and node.states() == {"c1": "unpreparing"}
        peer.start()
    peer.tell("die unprepare after")
    node.release("uid-p")
    peer.wait_dead()
    assert node.claims() == {} and node.pods() == {} and specs(node) == set()


def test_an_error_of_the_driver_is_told_and_tried_again(node, api, peer):
    uid = make_claim(api, "c1", (GPU, "device-0"), pods=["p"])
    peer.tell("fail prepare")
    answer = node.admit(pod("p", {"g": "c1"}))
    assert "told to fail prepare" in answer.message
    peer.tell("fail unprepare")
    assert node.admit(pod("p", {"g": "c1"}), wait=WAIT_S).admitted
    with pytest.raises(grpc.RpcError, match="told to fail unprepare"):
        node.release("uid-p")
    assert specs(node) == {uid}
    peer.tell("fail never")
    node.release("uid-p")
    assert specs(node) == set() and node.claims() == {}


def test_both_die_in_the_middle(node, api, peer):
    """The driver has prepared, and nobody heard of it."""
    uid = make_claim(api, "c1", (GPU, "device-0"), pods=["p"])
    peer.tell("die prepare done")
    waiting = node.admit_later(pod("p", {"g": "c1"}))
    peer.wait_dead()
    node.kill()
    with pytest.raises((grpc.RpcError, ValueError, AssertionError)):
        assert waiting.result().admitted
    assert specs(node) == {uid}
    node.start()
    peer.start()
    until(lambda: node.claims() == {} and specs(node) == set(), WAIT_S, "it to be undone")
    peer.wait_calls("unprepare", "c1")
    assert peer.calls("prepare") == []


def test_a_rolling_update_under_load(node, api, peer, language):
    """Instances come and go, and no pod fails for it."""
    uids = {i: make_claim(api, f"c{i}", (GPU, "device-0"), pods=[f"p{i}"]) for i in range(3)}
    others = []
    for i in range(3):
        others.append(Peer(node, language, f"uid-{i}"))
        until(lambda: sum(one.connected for one in node.plugins()) == 2, WAIT_S, "both instances")
        assert node.admit(pod(f"p{i}", {"g": f"c{i}"})).admitted
        others[-1].wait_calls("prepare", f"c{i}")
        leaving = peer if i == 0 else others[i - 1]
        assert leaving.proc.stop() == 0
        until(lambda: sum(one.connected for one in node.plugins()) == 1, WAIT_S, "one instance")
    assert specs(node) == set(uids.values())
    for i in range(3):
        node.release(f"uid-p{i}")
    others[-1].wait_calls("unprepare", "c0", "c1", "c2")
    assert specs(node) == set()
