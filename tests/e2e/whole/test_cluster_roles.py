"""davitd as the scheduler and the controllers of a cluster that is not its own: another davitd is the API."""

import os
import re
from pathlib import Path

import pytest
import yaml
from nodes import Node
from servers import CLAIMS, NODES, PODS, SLICES, ApiNode

from procs import until

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"
WAIT_S = 30
TEMPLATES = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaimtemplates"
SPEC = {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu"}}]}}


class Apart(Node):
    """The roles alone, with the kubeconfig of the other's API."""

    def __init__(self, procs, root, roles, kubeconfig):
        super().__init__(procs, os.path.join(root, "apart"), "--roles", roles,
                         "--kubeconfig", kubeconfig)


@pytest.fixture
def cluster(procs, short_dir):
    """An API with a node and two GPUs, where nobody schedules."""
    made = ApiNode(procs, short_dir, "--roles", "api").start()
    api = made.api()
    api.must("POST", NODES, {"metadata": {"name": "n1"}, "status": {
        "capacity": {"cpu": "4", "memory": "4Gi", "pods": "110"},
        "allocatable": {"cpu": "4", "memory": "4Gi", "pods": "110"},
        "conditions": [{"type": "Ready", "status": "True"}]}})
    api.must("POST", "/apis/resource.k8s.io/v1/deviceclasses", {"metadata": {"name": "gpu"}})
    api.must("POST", SLICES, {"metadata": {"name": "s"}, "spec": {
        "driver": "gpu.example.com", "nodeName": "n1", "devices": [{"name": "a"}, {"name": "b"}],
        "pool": {"name": "n1", "generation": 1, "resourceSliceCount": 1}}})
    yield made
    made.close()


@pytest.fixture
def apart(procs, short_dir, cluster):
    made = []

    def make(roles, *more):
        made.append(Apart(procs, short_dir, roles, cluster.kubeconfig).start(*more))
        return made[-1]

    yield make
    for one in made:
        one.close()


def pod(name, scheduler=None, **claim):
    spec = {"containers": [{"name": "c", "image": "i", "resources": {"claims": [{"name": "g"}]}}],
            "resourceClaims": [{"name": "g", **claim}]}
    if scheduler:
        spec["schedulerName"] = scheduler
    return {"metadata": {"name": name}, "spec": spec}


def node_of(api, name):
    return api.must("GET", f"{PODS}/{name}")["spec"].get("nodeName")


def requests(api):
    """{(verb, group, resource/subresource): how many} of all that anybody asked for."""
    found = {}
    for line in api.ask("GET", "/metrics").body.decode().splitlines():
        match = re.match(r"apiserver_request_total\{(.*)\} (\d+)", line)
        if match:
            labels = dict(re.findall(r'(\w+)="([^"]*)"', match.group(1)))
            place = "/".join(filter(None, (labels["resource"], labels["subresource"])))
            found[labels["verb"].lower(), labels["group"], place] = int(match.group(2))
    return found


def allowed(name):
    for doc in yaml.safe_load_all((EXAMPLES / name).read_text(encoding="utf-8")):
        for rule in doc.get("rules", []):
            for group in rule["apiGroups"]:
                for resource in rule["resources"]:
                    yield from ((verb, group, resource) for verb in rule["verbs"])


def test_only_pods_that_name_it_are_scheduled(cluster, apart):
    api = cluster.api()
    for name in ("ours", "theirs", "nobodys"):
        api.must("POST", CLAIMS, {"metadata": {"name": name}, "spec": SPEC})
    api.must("POST", PODS, pod("theirs", "other", resourceClaimName="theirs"))
    api.must("POST", PODS, pod("nobodys", resourceClaimName="nobodys"))
    api.must("POST", PODS, pod("ours", "davit", resourceClaimName="ours"))
    one = apart("sched")
    until(lambda: node_of(api, "ours") == "n1", WAIT_S, lambda: one.proc.describe())
    claim = api.must("GET", f"{CLAIMS}/ours")
    assert claim["status"]["allocation"]["devices"]["results"][0]["driver"] == "gpu.example.com"
    assert claim["status"]["reservedFor"][0]["name"] == "ours"
    for name in ("theirs", "nobodys"):
        assert node_of(api, name) is None
        assert "allocation" not in api.must("GET", f"{CLAIMS}/{name}").get("status", {})
    # nothing of a node is there, and nothing is kept
    assert not os.path.exists(one.kubelet_dir) and not os.path.exists(one.state_dir)
    assert not os.path.exists(one.socket)
    assert one.stop() == 0


def test_the_rules_in_the_example_are_all_that_it_needs(cluster, apart):
    api = cluster.api()
    api.must("POST", CLAIMS, {"metadata": {"name": "c1"}, "spec": SPEC})
    before = requests(api)
    apart("sched", "--scheduler-name", "mine")
    mine = [("create", "", "pods"), ("get", "", "pods"), ("get", "", ""), ("create", "", "events")]
    api.must("POST", PODS, pod("p1", "mine", resourceClaimName="c1"))
    api.must("POST", PODS, pod("p2", "mine", resourceClaimName="nothing"))
    until(lambda: node_of(api, "p1") == "n1", WAIT_S, "p1 bound")
    until(lambda: any(c["type"] == "PodScheduled" and c["status"] == "False" for c in
                      api.must("GET", f"{PODS}/p2").get("status", {}).get("conditions", [])),
          WAIT_S, "p2 to say why it waits")
    asked = {key for key, n in requests(api).items() if n > before.get(key, 0)} - set(mine)
    rules = set(allowed("davit-scheduler.yaml"))
    assert {key for key in asked if key[2]} <= rules, asked - rules


def test_with_control_claims_are_made_from_templates(cluster, apart):
    api = cluster.api()
    apart("control,sched")
    api.must("POST", TEMPLATES, {"metadata": {"name": "t"}, "spec": {"spec": SPEC}})
    api.must("POST", PODS, pod("p1", "davit", resourceClaimTemplateName="t"))
    api.must("POST", PODS, pod("p2", "other", resourceClaimTemplateName="t"))
    until(lambda: node_of(api, "p1") == "n1", WAIT_S, "p1 bound")
    until(lambda: len(api.must("GET", CLAIMS)["items"]) == 2, WAIT_S, "a claim for each")
    assert node_of(api, "p2") is None
    asked = {key for key in requests(api) if key[2].startswith(("resourceclaim", "devicetaint"))}
    rules = set(allowed("davit-controllers.yaml")) | set(allowed("davit-scheduler.yaml"))
    mine = {("create", "resource.k8s.io", "resourceclaimtemplates")}
    assert asked - mine <= rules, asked - mine - rules
