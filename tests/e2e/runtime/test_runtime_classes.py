"""Pods that name a RuntimeClass: its handler runs them, and what it costs is counted."""

import json
import os

from bound_pods import SecondNode
from procs import until
from runtime_nodes import WAIT_S, container, pod
from servers import PODS

CLASSES = "/apis/node.k8s.io/v1/runtimeclasses"


def make_class(node, name, **fields):
    node.api().must("POST", CLASSES, {
        "apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": name},
        "handler": "runc", **fields})


def handlers(node):
    """Of the runtime's sandboxes, by the names of their pods."""
    return {one.labels["io.kubernetes.pod.name"]: one.runtime_handler
            for one in node.runtime.cri().call("ListPodSandbox").items}


def test_the_handler_of_the_class_runs_the_pod(node, kubectl):
    answer = node.api().ask("POST", PODS, pod("p", runtimeClassName="strict"))
    assert answer.status == 403
    assert answer.doc["message"] == (
        'pods "p" is forbidden: pod rejected: RuntimeClass "strict" not found')
    make_class(node, "strict", overhead={"podFixed": {"memory": "10Mi"}})
    make_class(node, "odd", handler="nothing-here")
    lines = kubectl("get", "runtimeclasses").splitlines()
    assert [line.split()[:2] for line in lines] == [
        ["NAME", "HANDLER"], ["odd", "nothing-here"], ["strict", "runc"]]
    assert "runc" in kubectl("describe", "runtimeclass", "strict")
    shown = node.davit("get", "runtimeclasses", "strict",
                       "--kubeconfig", node.kubeconfig)
    assert "runc" in shown.stdout, shown

    node.add(pod("p", container(script="echo hello; sleep 1000"), runtimeClassName="strict"))
    node.add(pod("q"))
    node.add(pod("r", runtimeClassName="odd"))
    node.wait_phase("q", "Running")
    assert node.wait_phase("p", "Running")["spec"]["overhead"] == {"memory": "10Mi"}
    until(lambda: node.log("p") == "hello", WAIT_S, "its log")
    assert handlers(node) == {"p": "runc", "q": ""}
    until(lambda: any(reason == "FailedCreatePodSandBox" and "nothing-here" in message
                      for reason, message in node.events("r")), WAIT_S, "the runtime's words")


def test_a_class_that_comes_later(make_node, short_dir):
    """A file names a class that nobody has made yet: the pod waits for it."""
    folder = os.path.join(short_dir, "m")
    os.mkdir(folder)
    node = make_node("--pod-manifest-path", folder).start()
    wanted = pod("web", runtimeClassName="later")
    del wanted["spec"]["nodeName"]
    with open(os.path.join(folder, "web.json"), "w", encoding="utf-8") as file:
        json.dump(wanted, file)
    want = ("FailedCreatePodSandBox",
            'Failed to create pod sandbox: runtimeclass.node.k8s.io "later" not found')
    until(lambda: want in node.events("web-n1"), WAIT_S, lambda: node.events("web-n1"))
    assert not handlers(node)
    make_class(node, "later")
    node.wait_phase("web-n1", "Running")
    assert handlers(node) == {"web-n1": "runc"}


def test_a_node_of_another_api(node, procs, short_dir):
    """Over TLS, with a node's rights."""
    make_class(node, "strict")
    second = SecondNode(procs, short_dir, node)
    second.cri = node.cri
    second.start("--pod-logs-dir", os.path.join(second.root, "logs"))
    node.add(pod("p", node="n2", runtimeClassName="strict"))
    node.wait_phase("p", "Running")
    assert handlers(node) == {"p": "runc"}
    second.close()
