"""A second node of the same API, with a token of its own."""

import os
import subprocess
import time

from bound_pods import (DEV, allocate, bound, capacity, has_devices, make_claim, wait_devices,
                        wait_phase)
from claim_nodes import WAIT_S
from peers import folder_of
from procs import until
from servers import PODS, SLICES


def begin(node, second):
    api = node.api()
    second.start_both()
    until(lambda: capacity(api, "n2").get(DEV) == "4", WAIT_S, "n2 in the API")
    make_claim(api, "c1")
    api.must("POST", PODS, bound("p1", node="n2", devices=1, claim="c1"))
    allocate(api, "c1", "p1", node="n2")
    api.must("POST", PODS, bound("p2", node="n2", devices=1))
    for name in ("p1", "p2"):
        wait_devices(api, name)
    return api


def test_pods_run_there(node, second):
    api = begin(node, second)
    lease = api.must("GET", "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/n2")
    assert lease["spec"]["holderIdentity"] == "n2"
    assert {one["spec"]["nodeName"] for one in api.must("GET", SLICES)["items"]} == {"n2"}
    assert second.pods_here() == {"p1", "p2"} and node.pods_here() == set()
    assert api.ask("DELETE", f"{PODS}/p1").status == 200
    wait_phase(api, "p1", None)
    assert second.pods_here() == {"p2"}
    assert second.davit("release", "p2").returncode == 0
    wait_phase(api, "p2", "Succeeded")


def test_the_node_is_killed(node, second):
    api = begin(node, second)
    second.kill()
    api.must("DELETE", f"{PODS}/p1?gracePeriodSeconds=0")
    api.must("POST", PODS, bound("p3", node="n2", devices=1))
    second.start()
    wait_devices(api, "p3")
    until(lambda: second.pods_here() == {"p2", "p3"}, WAIT_S, "p1 released")
    assert has_devices(api, "p2")


def test_the_api_is_killed(node, second):
    begin(node, second)
    node.kill()
    assert second.davit("release", "p2").returncode == 0  # nobody can be told
    assert second.pods_here() == {"p1"}
    time.sleep(1)
    node.start()
    api = node.api()
    wait_phase(api, "p2", "Succeeded")
    assert has_devices(api, "p1")
    api.must("POST", PODS, bound("p3", node="n2", devices=1))
    wait_devices(api, "p3")
    assert api.ask("DELETE", f"{PODS}/p1").status == 200
    wait_phase(api, "p1", None)
    until(lambda: second.pods_here() == {"p3"}, WAIT_S, "p1 released")



def test_a_kubeconfig_that_cannot_be_used_is_told(short_dir):
    cases = [
        ("no-such-file", None, "no-such-file"),
        ("bad", "clusters: [", "bad"),
        ("empty", "apiVersion: v1\nkind: Config\n", "empty"),
    ]
    for name, text, word in cases:
        path = os.path.join(short_dir, name)
        if text is not None:
            with open(path, "w", encoding="ascii") as file:
                file.write(text)
        done = subprocess.run(
            [os.path.join(folder_of("DAVIT_BUILD"), "davitd"), "--roles", "node",
             "--kubeconfig", path, "--node-name", "n2", "--listen", "none",
             "--kubelet-dir", f"{short_dir}/k", "--state-dir", f"{short_dir}/s",
             "--runtime-dir", f"{short_dir}/r"],
            capture_output=True, text=True, timeout=20, check=False)
        assert done.returncode == 1, done
        assert "--kubeconfig" in done.stderr and word in done.stderr, done
