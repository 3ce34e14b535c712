"""PodDisruptionBudgets: what they tell, and that evictions at once do not get past them together."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from fake_agents import Agents
from kubectls import Kubectl, find_kubectl
from procs import until
from servers import PODS
from whole_nodes import WAIT_S, WholeNode

BUDGETS = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
DEPLOYMENT = {
    "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"},
    "spec": {"replicas": 4, "selector": {"matchLabels": {"app": "web"}},
             "template": {"metadata": {"labels": {"app": "web"}}, "spec": {
                 "terminationGracePeriodSeconds": 1,
                 "containers": [{"name": "main", "image": "davit.test/web:1"}]}}}}


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


def status(api, name):
    return api.must("GET", f"{BUDGETS}/{name}")["status"]


def counts(api, name):
    told = status(api, name)
    return tuple(told.get(field) for field in
                 ("expectedPods", "desiredHealthy", "currentHealthy", "disruptionsAllowed"))


def wait_counts(api, name, wanted):
    until(lambda: counts(api, name) == wanted, WAIT_S, f"{name}: {wanted}")


def evict(node, name):
    body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}}
    return node.api().ask("POST", f"{PODS}/{name}/eviction", body)


def test_a_budget_tells_and_keeps_what_has_to_stay(node, agents, short_dir):
    api = node.api()
    kubectl = Kubectl(find_kubectl("new"), node.kubeconfig, short_dir, is_old=False)
    assert agents
    api.must("POST", "/apis/apps/v1/namespaces/default/deployments", DEPLOYMENT)
    kubectl("create", "pdb", "share", "--selector=app=web", "--max-unavailable=50%")
    wait_counts(api, "share", (4, 2, 4, 2))
    condition, = status(api, "share")["conditions"]
    assert (condition["type"], condition["status"], condition["reason"]) == \
        ("DisruptionAllowed", "True", "SufficientPods")
    assert kubectl.rows("pdb")[1][:4] == ["share", "N/A", "50%", "2"]
    # Another number is wanted of the pods, and of the budget.
    kubectl("scale", "deployment/web", "--replicas=2")
    wait_counts(api, "share", (2, 1, 2, 1))
    kubectl("patch", "pdb", "share", "--type=merge", "-p", '{"spec":{"maxUnavailable":0}}')
    wait_counts(api, "share", (2, 2, 2, 0))
    assert status(api, "share")["observedGeneration"] == 2
    name = api.must("GET", PODS)["items"][0]["metadata"]["name"]
    refused = evict(node, name)
    assert refused.status == 429 and refused.doc["reason"] == "TooManyRequests"
    assert refused.doc["details"]["causes"] == [{
        "reason": "DisruptionBudget",
        "message": "The disruption budget share needs 2 healthy pods and has 2 currently"}]
    kubectl("delete", "pdb", "share")
    assert evict(node, name).status == 201


def test_evictions_at_once_leave_what_has_to_stay(node, agents):
    api = node.api()
    assert agents
    api.must("POST", "/apis/apps/v1/namespaces/default/deployments", DEPLOYMENT)
    api.must("POST", BUDGETS, {
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "b"},
        "spec": {"minAvailable": 3, "selector": {"matchLabels": {"app": "web"}}}})
    wait_counts(api, "b", (4, 3, 4, 1))
    names = [pod["metadata"]["name"] for pod in api.must("GET", PODS)["items"]]
    with ThreadPoolExecutor(4) as pool:
        answers = sorted(answer.status for answer in pool.map(lambda one: evict(node, one), names))
    assert answers == [201, 429, 429, 429]
