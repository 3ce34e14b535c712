"""DaemonSets of people who mean no good: others keep their pods and their answers."""

import time

import pytest

from procs import until
from servers import NODES, PODS

PATIENCE_S = 60
# 60 selectors of 30,000 values each were read for each change of each pod: 150 ms a time.
LONGEST_S = 3.0
N_SETS = 30
N_PODS = 40
SETS = "/apis/apps/v1/namespaces/default/daemonsets"
REVISIONS = "/apis/apps/v1/namespaces/default/controllerrevisions"


def node_named(name):
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}}


def daemon_set(name, *expressions):
    return {"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": name},
            "spec": {"selector": {"matchLabels": {"app": name}, "matchExpressions": list(expressions)},
                     "template": {"metadata": {"labels": {"app": name}},
                                  "spec": {"containers": [{"name": "c", "image": "i"}]}}}}


def pods_of(api, name):
    return api.must("GET", f"{PODS}?labelSelector=app%3D{name}")["items"]


def wait_seen(api, name):
    until(lambda: api.must("GET", f"{SETS}/{name}")["status"].get("observedGeneration") == 1,
          PATIENCE_S, "a look at the set")


def test_a_pod_in_another_namespace_takes_no_place(api):
    victim = api.must("POST", SETS, daemon_set("victim"))
    until(lambda: pods_of(api, "victim"), PATIENCE_S, "a pod on the first node")
    api.must("POST", "/api/v1/namespaces", {"metadata": {"name": "evil"}})
    api.must("POST", "/api/v1/namespaces/evil/pods", {
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "in-the-way", "labels": {"app": "victim"}, "ownerReferences": [
            {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "victim",
             "uid": victim["metadata"]["uid"], "controller": True}]},
        "spec": {"nodeName": "next", "containers": [{"name": "c", "image": "i"}]}})
    api.must("POST", NODES, node_named("next"))
    until(lambda: len(pods_of(api, "victim")) == 2, PATIENCE_S, "a pod on the next node, too")


@pytest.mark.parametrize("label", ["controller-revision-hash", "pod-template-generation"])
def test_a_selector_that_excludes_what_is_made_makes_nothing_without_end(api, label):
    api.must("POST", SETS, daemon_set("odd", {"key": label, "operator": "DoesNotExist"}))
    wait_seen(api, "odd")
    api.must("POST", SETS, daemon_set("sound"))  # what comes later is done meanwhile
    until(lambda: pods_of(api, "sound"), PATIENCE_S, "a pod of the other set")
    assert not pods_of(api, "odd")
    made = [one["metadata"]["name"] for one in api.must("GET", REVISIONS)["items"]]
    assert len([name for name in made if name.startswith("odd-")]) <= 1, made


def test_large_selectors_do_not_hold_up_other_pods(api):
    values = [f"v{number:05d}" for number in range(30000)]
    for number in range(N_SETS):
        api.must("POST", SETS, daemon_set(f"d{number}",
                                          {"key": "app", "operator": "NotIn", "values": values}))
    for number in range(N_SETS):
        wait_seen(api, f"d{number}")
    begin = time.monotonic()
    for number in range(N_PODS):
        api.must("POST", PODS, {
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": f"p{number}", "labels": {"q": "1"}},
            "spec": {"schedulerName": "nobody", "containers": [{"name": "c", "image": "i"}]}})
    assert time.monotonic() - begin < LONGEST_S
