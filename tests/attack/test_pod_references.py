"""Pods that refer to as many objects as fit into a request: nobody waits for what is looked up."""

import base64
import json
import re

import pytest

from procs import until
from runtime_nodes import WAIT_S, RuntimeNode, container, pod
from servers import CORE
from test_large_requests import SCALE

SECRETS = f"{CORE}/namespaces/default/secrets"
N_NAMES = 20000 // SCALE
N_FILES = 4000
N_REGISTRIES = 15000 // SCALE
# Of processor time, in one turn of the loop; the sanitizer build is ten times slower.
HOLD_S = 0.025 * SCALE


@pytest.fixture
def new_node(containerd):
    def make(procs, root, *options):
        return RuntimeNode(procs, root, containerd, *options)

    return make


def longest_hold_s(api):
    """Since the last call."""
    text = api.ask("GET", "/metrics").body.decode()
    return float(re.search(r"^davit_loop_longest_hold_cpu_seconds (\S+)", text, re.M).group(1))


def is_waiting(node, reason):
    statuses = node.pod("p")["status"].get("containerStatuses", [])
    return any(one["state"].get("waiting", {}).get("reason") == reason for one in statuses)


def references():
    """By what refers: fields of the container, and of the pod's spec."""
    names = [f"n{number}" for number in range(N_NAMES)]
    return {
        "envFrom": ({"envFrom": [{"configMapRef": {"name": name}} for name in names]}, {}),
        "env": ({"env": [{"name": f"E{name}", "valueFrom": {"secretKeyRef": {
            "name": name, "key": "k"}}} for name in names]}, {}),
        "pull secrets": ({"image": "registry.invalid/x:1"},
                         {"imagePullSecrets": [{"name": name} for name in names]}),
    }


@pytest.mark.parametrize("what", references())
def test_many_names_are_looked_up_and_nobody_waits(node, api, what):
    fields, spec = references()[what]
    longest_hold_s(api)
    node.add(pod("p", container(**fields), **spec))
    reason = "ErrImagePull" if "image" in fields else "CreateContainerConfigError"
    until(lambda: is_waiting(node, reason), WAIT_S, lambda: f"{reason}; {node.pod('p')}")
    assert longest_hold_s(api) < HOLD_S
    node.delete("p")
    node.wait_gone("p")
    assert longest_hold_s(api) < HOLD_S


def test_a_large_pull_secret_that_is_named_often_is_read_once(node, api):
    """Each time took as many milliseconds as it has hundreds of kilobytes, and its memory."""
    auths = {f"r{number}.example.com": {"username": "u", "password": "p"}
             for number in range(N_REGISTRIES)}
    text = json.dumps({"auths": auths}).encode()
    api.must("POST", SECRETS, {
        "metadata": {"name": "large"}, "type": "kubernetes.io/dockerconfigjson",
        "data": {".dockerconfigjson": base64.b64encode(text).decode()}})
    longest_hold_s(api)
    node.add(pod("p", container(image="registry.invalid/x:1"),
                 imagePullSecrets=[{"name": "large"}] * 2000))
    until(lambda: is_waiting(node, "ErrImagePull"), WAIT_S, lambda: f"a failure; {node.pod('p')}")
    assert longest_hold_s(api) < HOLD_S


def test_annotations_in_many_files_are_printed_once(node, api):
    """Each file had a copy of its own in davitd's memory: a gigabyte of this pod."""
    items = [{"path": f"f{number}", "fieldRef": {"fieldPath": "metadata.annotations"}}
             for number in range(N_FILES)]
    many = pod("p", container(volumeMounts=[{"name": "v", "mountPath": "/v"}]),
               volumes=[{"name": "v", "downwardAPI": {"items": items}}])
    many["metadata"]["annotations"] = {f"k{number}": "v" * 50 for number in range(4000)}
    longest_hold_s(api)
    node.add(many)
    until(lambda: any("have more than" in message for _, message in node.events("p")), WAIT_S,
          lambda: f"an event; {node.events('p')}")
    assert node.phase("p") == "Pending"
    assert longest_hold_s(api) < HOLD_S
