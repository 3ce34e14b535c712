"""The node's own API with pods as large as they may be: its lists are whole, nobody waits for them,
and nothing stays of one that nobody reads to the end."""

import json
import os

import pytest
from bound_pods import PodNode, bound
from node_apis import make_token
from nodes import pod as pod_of
from peers import folder_of
from procs import until
from servers import PODS
from test_large_requests import SCALE
from test_pod_references import HOLD_S, longest_hold_s

N_PODS = 40 // min(SCALE, 4)
N_ENV = 20
VALUE = "v" * (90_000 // min(SCALE, 4))  # 1.8 MB a pod, more than 64 MiB together
WAIT_S = 120
N_LEAVERS = 20
GPU = "example.com/gpu"
# What the sanitizer build keeps of memory that was freed.
KEPT_BYTES = 0 if SCALE == 1 else 256 << 20


@pytest.fixture
def new_node():
    return PodNode


@pytest.fixture
def client(node, kubelet):
    """A client of a node with large pods."""
    api = node.api()
    made = kubelet.client(make_token(node, "--admin", "ada")[0])
    for number in range(N_PODS):
        pod = bound(f"p{number}", node="n2")
        pod["spec"]["containers"][0]["env"] = [
            {"name": f"E{i}", "value": VALUE} for i in range(N_ENV)]
        api.must("POST", PODS, pod)
    until(lambda: len(kubelet.pods_here()) == N_PODS, WAIT_S, "the pods on n2")
    return made


def test_long_lists_are_whole_and_hold_nobody(kubelet, client):
    longest_hold_s(client)
    answer = client.ask("GET", "/pods")
    assert longest_hold_s(client) < HOLD_S
    assert answer.status == 200 and answer.fields["Content-Type"] == "application/json"
    items = json.loads(answer.body)["items"]
    assert {pod["metadata"]["name"] for pod in items} == {f"p{i}" for i in range(N_PODS)}
    for pod in items:
        assert [one["value"] for one in pod["spec"]["containers"][0]["env"]] == [VALUE] * N_ENV
    assert client.must("GET", "/runningpods/")["items"] == []  # there is no runtime


def test_who_leaves_in_the_middle_leaves_nothing(kubelet, client):
    client.ask("GET", "/pods")
    before = kubelet.proc.rss_bytes()
    for number in range(N_LEAVERS):
        connection, answer = client.open("GET", "/pods")
        answer.read(1 + number * 100_000)
        connection.close()
    # Each answer is as long as all pods are together, and is never in memory as a whole.
    assert kubelet.proc.rss_bytes() - before < N_PODS * N_ENV * len(VALUE) + KEPT_BYTES
    assert client.ask("GET", "/healthz").status == 200


def test_stopping_while_a_list_is_sent(kubelet, client):
    connections = [client.open("GET", "/pods")[0] for _ in range(4)]  # and nobody reads
    assert kubelet.stop() == 0, kubelet.proc.describe()
    for one in connections:
        one.close()


def test_metrics_of_very_many_devices_are_whole_and_hold_nobody(node, kubelet, procs):
    n_devices = 20_000 // SCALE
    client = kubelet.client(make_token(node, "--admin", "ada")[0])
    procs.start(os.path.join(folder_of("DAVIT_BUILD"), "drivers", "davit-sample-device-plugin"),
                "--resource", GPU, "--kubelet-dir", kubelet.kubelet_dir, "--virtual", str(n_devices))
    kubelet.wait_devices(GPU, n_devices, timeout_s=WAIT_S)
    assert kubelet.admit(pod_of("all", ("main", {GPU: n_devices})), timeout=WAIT_S).admitted
    longest_hold_s(client)
    answer = client.ask("GET", "/metrics/resource")
    assert longest_hold_s(client) < HOLD_S
    assert answer.status == 200
    lines = answer.body.decode().splitlines()
    assert lines[-1].startswith("scrape_error ")  # to its end
    devices = [line for line in lines if line.startswith("davit_container_device_info{")]
    assert len(devices) == len(set(devices)) == n_devices
    connections = [client.open("GET", "/metrics/resource")[0] for _ in range(4)]
    assert kubelet.stop() == 0, kubelet.proc.describe()
    for one in connections:
        one.close()
