"""What the Node object says of its machine, and how kubectl shows it."""

import re

from bound_pods import bound, wait_devices
from procs import until
from servers import NODES, PODS

WAIT_S = 60
LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
CONDITIONS = ["MemoryPressure", "DiskPressure", "PIDPressure", "Ready"]


def is_complete(api, name):
    answer = api.ask("GET", f"{NODES}/{name}")
    conditions = answer.doc.get("status", {}).get("conditions", []) if answer.status == 200 else []
    return [one["type"] for one in conditions] == CONDITIONS


def check(api, name):
    until(lambda: is_complete(api, name), WAIT_S, f"all conditions of {name}")
    node = api.must("GET", f"{NODES}/{name}")
    status = node["status"]
    for one in status["conditions"]:
        assert one["lastHeartbeatTime"] and one["lastTransitionTime"] and one["reason"], one
    addresses = {one["type"]: one["address"] for one in status["addresses"]}
    assert addresses["Hostname"] == name and addresses["InternalIP"], addresses
    assert node["metadata"]["labels"]["kubernetes.io/hostname"] == name
    assert {"cpu", "memory", "pods", "ephemeral-storage"} <= set(status["capacity"])
    assert re.fullmatch(r"v\d+\.\d+\.\d+\+davit\.[0-9A-Za-z.-]+",
                        status["nodeInfo"]["kubeletVersion"]), status["nodeInfo"]
    return node


def owners(api, name):
    answer = api.ask("GET", f"{LEASES}/{name}")
    return answer.status == 200 and answer.doc["metadata"].get("ownerReferences")


def test_kubectl_describes_the_node(node, kubectl):
    api = node.api()
    check(api, "n1")
    until(lambda: api.ask("GET", f"{LEASES}/n1").status == 200, WAIT_S, "a lease")
    text = kubectl("describe", "node", "n1")
    assert "0001" not in text and "unknown" not in text.lower(), text
    assert "Failed to get lease" not in text, text
    for one in CONDITIONS:
        assert re.search(rf"^\s+{one}\s", text, re.M), text
    assert re.search(r"^\s+InternalIP:\s+\S", text, re.M), text


def test_the_node_of_a_cluster_owns_its_lease(node, second):
    api = node.api()
    uid = check(api, "n2")["metadata"]["uid"]
    until(lambda: owners(api, "n2"), WAIT_S, "an owner of the lease")
    owner = owners(api, "n2")[0]
    assert (owner["kind"], owner["name"], owner["uid"]) == ("Node", "n2", uid)


def test_a_pod_has_the_address_of_its_node(node):
    api = node.api()
    node.start_both()
    addresses = [one["address"] for one in check(api, "n1")["status"]["addresses"]
                 if one["type"] == "InternalIP"]
    api.must("POST", PODS, bound("p1", devices=1))
    wait_devices(api, "p1")
    pod = api.must("GET", f"{PODS}/p1")
    assert pod["status"]["hostIP"] == addresses[0]
    assert [one["ip"] for one in pod["status"]["hostIPs"]] == addresses
    assert pod["status"]["observedGeneration"] == pod["metadata"]["generation"]
