"""A second node of the same API, with a token of its own."""

import glob
import os
import re
import signal
import subprocess
import time

from bound_pods import (DEV, allocate, bound, capacity, has_devices, make_claim, make_token,
                        wait_devices, wait_phase)
from claim_nodes import WAIT_S
from peers import folder_of
from procs import until
from servers import MAPS, NODES, PODS, SLICES


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


def is_ready(api, name):
    answer = api.ask("GET", f"{NODES}/{name}")
    return answer.status == 200 and any(
        one["type"] == "Ready" and one["status"] == "True"
        for one in answer.doc["status"].get("conditions", ()))


def use_token_file(second):
    """The token of the node in a file, so that a new one can be given to it while it runs."""
    path = os.path.join(second.root, "token")
    with open(second.kubeconfig, encoding="ascii") as file:
        text = file.read()
    token = re.search(r"token: (\S+)", text)
    with open(path, "w", encoding="ascii") as file:
        file.write(token[1])
    with open(second.kubeconfig, "w", encoding="ascii") as file:
        file.write(text.replace(token[0], f"tokenFile: {path}"))
    second.stop()
    second.start()


def replace_database(node, second):
    """Starts the API with an empty one, and gives the node a token of it. Returns the API."""
    node.kill()
    for path in glob.glob(os.path.join(node.state_dir, "state.db*")):
        os.unlink(path)
    node.start()
    kubeconfig = os.path.join(second.root, "new.kubeconfig")
    make_token(node, kubeconfig, "--node", "n2")
    with open(kubeconfig, encoding="ascii") as file:
        token = re.search(r"token: (\S+)", file.read())[1]
    with open(os.path.join(second.root, "token"), "w", encoding="ascii") as file:
        file.write(token)
    return node.api()


def test_the_database_of_the_api_is_wiped(node, second):
    use_token_file(second)
    api = begin(node, second)
    old_uid = api.must("GET", f"{NODES}/n2")["metadata"]["uid"]
    api = replace_database(node, second)
    until(lambda: is_ready(api, "n2"), WAIT_S, "n2 in the new API")
    assert api.must("GET", f"{NODES}/n2")["metadata"]["uid"] != old_uid
    until(lambda: capacity(api, "n2").get(DEV) == "4", WAIT_S, "its devices")
    until(lambda: second.pods_here() == set(), WAIT_S, "the old pods released")
    lease = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/n2"
    until(lambda: api.ask("GET", lease).status == 200, WAIT_S, "a new lease")
    api.must("POST", PODS, bound("p2", node="n2", devices=4))  # all: nothing is held any more
    wait_devices(api, "p2")
    assert second.pods_here() == {"p2"}


def test_the_database_of_the_api_is_wiped_and_grows(node, second):
    """Its versions are past those that the node has seen, and pods have the names of old ones."""
    use_token_file(second)
    api = begin(node, second)
    seen = int(api.must("GET", PODS)["metadata"]["resourceVersion"])
    second.proc.signal(signal.SIGSTOP)
    api = replace_database(node, second)
    api.must("POST", PODS, bound("p2", node="n2", devices=4))
    while int(api.must("GET", PODS)["metadata"]["resourceVersion"]) <= seen + 10:
        api.must("POST", MAPS, {"metadata": {"generateName": "more-"}})
    second.proc.signal(signal.SIGCONT)
    wait_devices(api, "p2")
    until(lambda: is_ready(api, "n2"), WAIT_S, "n2 in the new API")
    assert second.pods_here() == {"p2"}


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
            capture_output=True, text=True, timeout=100, check=False)
        assert done.returncode == 1, done
        assert "--kubeconfig" in done.stderr and word in done.stderr, done
