"""Deployments on a davitd alone, as kubectl drives them: apply, scale, roll out, go back, delete."""

import json
import time

import pytest
from fake_agents import Agents
from kubectls import Kubectl, find_kubectl
from procs import until
from servers import PODS
from whole_nodes import WAIT_S, WholeNode

pytestmark = pytest.mark.release

DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
SETS = "/apis/apps/v1/namespaces/default/replicasets"

DEPLOYMENT = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: %(replicas)s
  selector: {matchLabels: {app: web}}
  strategy: %(strategy)s
  template:
    metadata: {labels: {app: web}}
    spec:
      terminationGracePeriodSeconds: 1
      containers: [{name: main, image: "davit.test/web:%(version)s"}]
"""


def manifest(version=1, replicas=4, strategy="{}"):
    return DEPLOYMENT % {"version": version, "replicas": replicas, "strategy": strategy}


@pytest.fixture
def new_node():
    def make(procs, root, *options):
        return WholeNode(procs, root, "--roles", "api,control,sched", *options)

    return make


@pytest.fixture
def agents(node):
    agents = Agents(node.api(), ["x0", "x1"])
    agents.add_nodes()
    agents.start()
    yield agents
    agents.close()


@pytest.fixture
def kubectl(node, short_dir):
    return Kubectl(find_kubectl("new"), node.kubeconfig, short_dir, is_old=False)


def pods(api):
    return [pod for pod in api.ask("GET", PODS).doc["items"]
            if pod["metadata"].get("labels", {}).get("app") == "web"]


def is_live(pod):
    return "deletionTimestamp" not in pod["metadata"]


def is_ready(pod):
    return any(one["type"] == "Ready" and one["status"] == "True"
               for one in pod["status"].get("conditions", []))


def images(api):
    return sorted(pod["spec"]["containers"][0]["image"].split(":")[1] for pod in pods(api))


def conditions(api):
    return {one["type"]: (one["status"], one["reason"])
            for one in api.ask("GET", f"{DEPLOYMENTS}/web").doc["status"].get("conditions", [])}


def wait_done(api, version, n=4):
    def is_done():
        answer = api.ask("GET", f"{DEPLOYMENTS}/web").doc
        now = answer["status"]
        return (now.get("observedGeneration") == answer["metadata"]["generation"] and
                now.get("replicas", 0) == now.get("updatedReplicas", 0) ==
                now.get("availableReplicas", 0) == n and images(api) == [str(version)] * n)

    until(is_done, WAIT_S, lambda: f"{n} of {version}; {api.ask('GET', DEPLOYMENTS)} {images(api)}")


def revisions(api):
    return sorted(one["metadata"]["annotations"]["deployment.kubernetes.io/revision"]
                  for one in api.ask("GET", SETS).doc["items"])


def test_a_deployment_is_applied_scaled_rolled_out_and_deleted(node, agents, kubectl):
    api = node.api()
    assert "deployment.apps/web created" in kubectl("apply", "-f", "-", stdin=manifest())
    assert "successfully rolled out" in kubectl("rollout", "status", "deploy/web", "--timeout=50s")
    wait_done(api, 1)
    assert kubectl("get", "deploy").splitlines()[1].split()[:4] == ["web", "4/4", "4", "4"]
    assert kubectl("get", "rs").splitlines()[1].split()[1:4] == ["4", "4", "4"]
    assert "deployment.apps/web scaled" in kubectl("scale", "deploy/web", "--replicas=6")
    wait_done(api, 1, 6)
    kubectl("scale", "deploy/web", "--current-replicas=6", "--replicas=2")
    wait_done(api, 1, 2)
    kubectl("set", "image", "deploy/web", "main=davit.test/web:2")
    kubectl("rollout", "status", "deploy/web", "--timeout=50s")
    wait_done(api, 2, 2)
    until(lambda: conditions(api) == {"Available": ("True", "MinimumReplicasAvailable"),
                                      "Progressing": ("True", "NewReplicaSetAvailable")},
          WAIT_S, lambda: f"conditions; {conditions(api)}")
    kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", stdin=manifest(3))
    wait_done(api, 3)
    history = kubectl("rollout", "history", "deploy/web").splitlines()
    assert [line.split()[0] for line in history if line[:1].isdigit()] == ["1", "2", "3"]
    assert "rolled back" in kubectl("rollout", "undo", "deploy/web", "--to-revision=1")
    wait_done(api, 1)
    assert revisions(api) == ["2", "3", "4"]
    described = kubectl("describe", "deploy/web")
    assert "ScalingReplicaSet" in described
    assert "deployment.apps/web" in kubectl("get", "all")
    kubectl("delete", "deploy/web")
    until(lambda: not pods(api) and not api.ask("GET", SETS).doc["items"], WAIT_S,
          lambda: f"nothing is left; {pods(api)}")


def test_never_too_many_and_never_too_few(node, agents, kubectl):
    """At every look: at most 4 + 1 pods, at least 4 - 1 that work."""
    api = node.api()
    kubectl("apply", "-f", "-", stdin=manifest())
    wait_done(api, 1)
    for version in (2, 3):
        kubectl("apply", "-f", "-", stdin=manifest(version))
        deadline = time.monotonic() + WAIT_S
        while time.monotonic() < deadline and images(api) != [str(version)] * 4:
            live = [pod for pod in pods(api) if is_live(pod)]
            assert len(live) <= 5
            assert len([pod for pod in live if is_ready(pod)]) >= 3
        wait_done(api, version)


def test_recreating_overlaps_nothing(node, agents, kubectl):
    api = node.api()
    kubectl("apply", "-f", "-", stdin=manifest(1, strategy="{type: Recreate}"))
    wait_done(api, 1)
    kubectl("apply", "-f", "-", stdin=manifest(2, strategy="{type: Recreate}"))
    deadline = time.monotonic() + WAIT_S
    while time.monotonic() < deadline and images(api) != ["2"] * 4:
        assert len(set(images(api))) <= 1
    wait_done(api, 2)


def test_a_paused_deployment_waits(node, agents, kubectl):
    api = node.api()
    kubectl("apply", "-f", "-", stdin=manifest())
    wait_done(api, 1)
    kubectl("rollout", "pause", "deploy/web")
    kubectl("set", "image", "deploy/web", "main=davit.test/web:2")
    kubectl("scale", "deploy/web", "--replicas=5")
    until(lambda: images(api) == ["1"] * 5, WAIT_S, lambda: f"scaled; {images(api)}")
    assert conditions(api)["Progressing"] == ("Unknown", "DeploymentPaused")
    kubectl("rollout", "resume", "deploy/web")
    wait_done(api, 2, 5)


def test_dependents_go_first_or_stay(node, agents, kubectl):
    api = node.api()
    kubectl("apply", "-f", "-", stdin=manifest())
    wait_done(api, 1)
    kubectl("delete", "deploy/web", "--cascade=foreground", "--timeout=50s")
    assert not pods(api) and not api.ask("GET", SETS).doc["items"]
    kubectl("apply", "-f", "-", stdin=manifest())
    wait_done(api, 1)
    had = {pod["metadata"]["uid"] for pod in pods(api)}
    kubectl("delete", "deploy/web", "--cascade=orphan", "--timeout=50s")
    assert len(api.ask("GET", SETS).doc["items"]) == 1
    kubectl("apply", "-f", "-", stdin=manifest())
    wait_done(api, 1)
    assert {pod["metadata"]["uid"] for pod in pods(api)} == had


def test_what_a_quota_refuses_is_told(node, agents, kubectl):
    api = node.api()
    kubectl("create", "quota", "q", "--hard=pods=2")
    kubectl("apply", "-f", "-", stdin=manifest())
    until(lambda: conditions(api).get("ReplicaFailure") == ("True", "FailedCreate"), WAIT_S,
          lambda: f"a condition; {conditions(api)}")
    assert len(pods(api)) == 2
    kubectl("delete", "quota", "q")
    wait_done(api, 1)
    assert "ReplicaFailure" not in conditions(api)


def test_the_scale_of_what_has_one(node, agents, kubectl):
    api = node.api()
    kubectl("apply", "-f", "-", stdin=manifest(replicas=1))
    scale = json.loads(kubectl("get", "deploy/web", "--subresource=scale", "-o", "json"))
    assert (scale["kind"], scale["apiVersion"]) == ("Scale", "autoscaling/v1")
    assert scale["status"]["selector"] == "app=web"
    name, = (one["metadata"]["name"] for one in api.ask("GET", SETS).doc["items"])
    answer = api.ask("PATCH", f"{SETS}/{name}/scale", {"spec": {"replicas": 3}},
                     Content_Type="application/merge-patch+json")
    assert answer.status == 200 and answer.doc["spec"]["replicas"] == 3
    wait_done(api, 1, 1)  # the Deployment wants one


def test_kills_in_roll_outs_double_nothing(node, agents, kubectl):
    api = node.api()
    kubectl("apply", "-f", "-", stdin=manifest())
    wait_done(api, 1)
    for version in range(2, 8):
        kubectl("apply", "-f", "-", stdin=manifest(version))
        time.sleep(version * 0.03)
        node.kill()
        node.start()
        api.disconnect()
        wait_done(api, version)
    assert revisions(api) == [str(number) for number in range(1, 8)]
