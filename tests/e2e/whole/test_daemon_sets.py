"""DaemonSets on a davitd alone, as kubectl drives them: apply, roll out, go back, delete."""

import time

import pytest
from fake_agents import Agents
from kubectls import Kubectl, find_kubectl
from procs import until
from servers import PODS
from whole_nodes import WAIT_S, WholeNode

pytestmark = pytest.mark.release

SETS = "/apis/apps/v1/namespaces/default/daemonsets"
REVISIONS = "/apis/apps/v1/namespaces/default/controllerrevisions"
N_NODES = 6

SET = """
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: agent, labels: {app: agent}}
spec:
  selector: {matchLabels: {app: agent}}
  updateStrategy: {rollingUpdate: %(update)s}
  template:
    metadata: {labels: {app: agent}}
    spec:
      terminationGracePeriodSeconds: 1
      containers: [{name: main, image: "davit.test/agent:%(version)s"}]
"""
HALF = "{maxUnavailable: 50%}"
SURGE = "{maxUnavailable: 0, maxSurge: 2}"


def manifest(version=1, update=HALF):
    return SET % {"version": version, "update": update}


@pytest.fixture
def new_node():
    def make(procs, root, *options):
        return WholeNode(procs, root, "--roles", "api,control,sched", *options)

    return make


@pytest.fixture
def agents(node):
    agents = Agents(node.api(), [f"x{i}" for i in range(N_NODES)])
    agents.add_nodes()
    agents.start()
    yield agents
    agents.close()


@pytest.fixture
def kubectl(node, short_dir):
    return Kubectl(find_kubectl("new"), node.kubeconfig, short_dir, is_old=False)


def pods(api):
    return [pod for pod in api.ask("GET", PODS).doc["items"]
            if pod["metadata"].get("labels", {}).get("app") == "agent"]


def images(api):
    return sorted(pod["spec"]["containers"][0]["image"].split(":")[1] for pod in pods(api))


def wait_available(api, version, n=N_NODES):
    def is_there():
        answer = api.ask("GET", f"{SETS}/agent").doc
        now = answer["status"]
        return (now.get("observedGeneration") == answer["metadata"]["generation"] and
                now["desiredNumberScheduled"] == now.get("updatedNumberScheduled") ==
                now.get("numberAvailable") == n and images(api) == [str(version)] * n)

    until(is_there, WAIT_S, lambda: f"{n} available; {api.ask('GET', SETS)} {images(api)}")


def revision_numbers(api):
    return sorted(one["revision"] for one in api.ask("GET", REVISIONS).doc["items"])


def test_a_set_is_applied_rolled_out_and_deleted(node, agents, kubectl):
    api = node.api()
    assert "daemonset.apps/agent created" in kubectl("apply", "-f", "-", stdin=manifest())
    assert "successfully rolled out" in kubectl("rollout", "status", "ds/agent", "--timeout=50s")
    wait_available(api, 1)
    columns = kubectl("get", "ds").splitlines()
    assert columns[0].split()[:6] == ["NAME", "DESIRED", "CURRENT", "READY", "UP-TO-DATE",
                                      "AVAILABLE"]
    assert columns[1].split()[:6] == ["agent", *[str(N_NODES)] * 5]
    assert sorted(pod["spec"]["nodeName"] for pod in pods(api)) == sorted(agents.names)
    kubectl("set", "image", "ds/agent", "main=davit.test/agent:2")
    kubectl("rollout", "status", "ds/agent", "--timeout=50s")
    wait_available(api, 2)
    kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", stdin=manifest(3))
    kubectl("rollout", "status", "ds/agent", "--timeout=50s")
    wait_available(api, 3)
    kubectl("get", "controllerrevisions")
    kubectl("delete", "ds/agent")
    until(lambda: not pods(api) and not revision_numbers(api), WAIT_S,
          lambda: f"nothing is left; {pods(api)}")


def test_a_set_goes_back(node, agents, kubectl):
    api = node.api()
    for version in (1, 2, 3):
        kubectl("apply", "-f", "-", stdin=manifest(version))
        wait_available(api, version)
    history = kubectl("rollout", "history", "ds/agent").splitlines()
    assert [line.split()[0] for line in history if line[:1].isdigit()] == ["1", "2", "3"]
    assert "rolled back" in kubectl("rollout", "undo", "ds/agent", "--to-revision=1")
    kubectl("rollout", "status", "ds/agent", "--timeout=50s")
    wait_available(api, 1)
    assert revision_numbers(api) == [2, 3, 4]
    assert "rolled back" in kubectl("rollout", "undo", "ds/agent")
    wait_available(api, 3)
    kubectl("rollout", "restart", "ds/agent")
    kubectl("rollout", "status", "ds/agent", "--timeout=50s")
    assert "SuccessfulCreate" in kubectl("describe", "ds/agent")


def test_a_surge_has_the_new_pods_first(node, agents, kubectl):
    api = node.api()
    kubectl("apply", "-f", "-", stdin=manifest(1, SURGE))
    wait_available(api, 1)
    kubectl("apply", "-f", "-", stdin=manifest(2, SURGE))
    most = 0
    deadline = time.monotonic() + WAIT_S
    while time.monotonic() < deadline and images(api) != ["2"] * N_NODES:
        live = [pod for pod in pods(api) if "deletionTimestamp" not in pod["metadata"]]
        assert len({pod["spec"].get("nodeName") for pod in live} - {None}) == N_NODES
        most = max(most, len(live))
    wait_available(api, 2)
    assert N_NODES < most <= N_NODES + 2


def test_dependents_go_first_or_stay(node, agents, kubectl):
    api = node.api()
    kubectl("apply", "-f", "-", stdin=manifest())
    wait_available(api, 1)
    kubectl("delete", "ds/agent", "--cascade=foreground", "--timeout=50s")
    assert not pods(api)
    kubectl("apply", "-f", "-", stdin=manifest())
    wait_available(api, 1)
    orphans = {pod["metadata"]["uid"] for pod in pods(api)}
    kubectl("delete", "ds/agent", "--cascade=orphan", "--timeout=50s")
    assert not any("ownerReferences" in pod["metadata"] for pod in pods(api))
    kubectl("apply", "-f", "-", stdin=manifest())
    wait_available(api, 1)
    assert {pod["metadata"]["uid"] for pod in pods(api)} == orphans


def test_a_set_goes_with_its_namespace(node, agents, kubectl):
    api = node.api()
    kubectl("create", "namespace", "other")
    kubectl("apply", "-n", "other", "-f", "-", stdin=manifest())
    kubectl("rollout", "status", "-n", "other", "ds/agent", "--timeout=50s")
    kubectl("delete", "namespace", "other", "--timeout=50s")
    assert not api.ask("GET", agents.all_pods).doc["items"]


def test_a_set_without_nodes_is_rolled_out(node, kubectl):
    kubectl("apply", "-f", "-", stdin=manifest())
    kubectl("rollout", "status", "ds/agent", "--timeout=50s")
    assert node.api().ask("GET", f"{SETS}/agent").doc["status"]["desiredNumberScheduled"] == 0


def test_kills_in_roll_outs_double_nothing(node, agents, kubectl):
    api = node.api()
    kubectl("apply", "-f", "-", stdin=manifest())
    wait_available(api, 1)
    for version in range(2, 8):
        update = SURGE if version % 2 else HALF
        kubectl("apply", "-f", "-", stdin=manifest(version, update))
        time.sleep(version * 0.03)
        node.kill()
        node.start()
        api.disconnect()
        wait_available(api, version)
        assert sorted(pod["spec"]["nodeName"] for pod in pods(api)) == sorted(agents.names)
    assert revision_numbers(api) == [1, 2, 3, 4, 5, 6, 7]
