"""Pods of files on a runtime, and pods whose devices are taken back by hand."""

import json
import os

from bound_pods import DEV
from procs import until
from runtime_nodes import WAIT_S, container, pod


def test_a_static_pod_runs(make_node, short_dir):
    folder = os.path.join(short_dir, "manifests")
    os.mkdir(folder)
    node = make_node("--pod-manifest-path", folder).start()
    value = pod("edge", container(script="echo here; sleep 1000"))
    del value["spec"]["nodeName"]
    path = os.path.join(folder, "edge.json")
    with open(f"{path}.new", "w", encoding="ascii") as file:
        json.dump(value, file)
    os.rename(f"{path}.new", path)
    until(lambda: node.phase("edge-n1") == "Running", WAIT_S, "its mirror runs")
    until(lambda: node.log("edge-n1") == "here", WAIT_S, "it runs")
    node.kill()
    node.start()
    until(lambda: node.phase("edge-n1") == "Running", WAIT_S, "its mirror runs again")
    assert list(node.containers().values()) == ["RUNNING"]
    os.unlink(path)
    until(lambda: not node.containers() and not node.sandboxes(), WAIT_S, "it is gone")
    node.wait_gone("edge-n1")


def test_a_release_by_hand_ends_the_containers_first(make_node):
    node = make_node().start()
    node.start_plugin("--virtual", "1")
    asks = {"resources": {"limits": {DEV: "1"}}}
    node.add(pod("p", container(script="trap '' TERM; while :; do sleep 0.1; done", **asks)))
    node.wait_phase("p", "Running")
    done = node.davit("release", "default/p")
    assert done.returncode != 0 and "being ended" in done.stderr, done
    assert node.pods_here() == {"p"}
    status = node.wait_phase("p", "Failed")["status"]
    assert status["reason"] == "Released"
    until(lambda: not node.pods_here(), WAIT_S, "it is released")
    assert "RUNNING" not in node.containers().values()


def test_status_says_that_the_runtime_is_away(make_node, short_dir):
    node = make_node()
    node.cri = f"unix://{short_dir}/nobody.sock"
    node.start()
    until(lambda: "look at     no containers are started: container runtime" in
          node.davit("status").stdout, WAIT_S, f"why: {node.davit('status').stdout}")
    until(lambda: "nobody.sock" in node.davit("status").stdout, WAIT_S, "which one it is")
