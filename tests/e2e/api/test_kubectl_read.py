"""kubectl looks at things: tables, documents, selectors, followed changes, what the API offers.

Exit codes are those that it ends with against a cluster.
"""

import json

import pytest

from kubectls import wait_row

OBJECTS = """
apiVersion: v1
kind: Namespace
metadata: {name: other}
---
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: gpu}
spec: {selectors: [{cel: {expression: 'device.driver == "gpu.example.com"'}}]}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: c1, labels: {tier: gold}}
spec: {devices: {requests: [{name: r0, exactly: {deviceClassName: gpu}}]}}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: t1}
spec: {spec: {devices: {requests: [{name: r0, exactly: {deviceClassName: gpu}}]}}}
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: s1}
spec:
  driver: gpu.example.com
  nodeName: n1
  pool: {name: n1, generation: 1, resourceSliceCount: 1}
  devices: [{name: d0, attributes: {model: {string: a100}}, capacity: {memory: {value: 40Gi}}}]
---
apiVersion: resource.k8s.io/v1beta2
kind: DeviceTaintRule
metadata: {name: dt1}
spec:
  deviceSelector: {driver: gpu.example.com}
  taint: {key: example.com/broken, value: 'yes', effect: NoSchedule}
---
apiVersion: v1
kind: Node
metadata: {name: worker}
---
apiVersion: v1
kind: Pod
metadata: {name: p1, labels: {app: a}}
spec: {containers: [{name: c, image: i, resources: {limits: {cpu: 500m}}}]}
---
apiVersion: v1
kind: Pod
metadata: {name: p2, labels: {app: b}}
spec: {nodeName: worker, containers: [{name: c, image: i}]}
---
apiVersion: v1
kind: Pod
metadata: {name: p3, namespace: other, labels: {app: a}}
spec: {containers: [{name: c, image: i}]}
---
apiVersion: coordination.k8s.io/v1
kind: Lease
metadata: {name: l1}
spec: {holderIdentity: me, leaseDurationSeconds: 15}
---
apiVersion: node.k8s.io/v1
kind: RuntimeClass
metadata: {name: kata}
handler: kata-qemu
overhead: {podFixed: {cpu: 250m}}
---
apiVersion: v1
kind: Event
metadata: {name: e1, namespace: default}
involvedObject: {kind: Pod, namespace: default, name: p1, apiVersion: v1}
reason: Tested
message: all is well
type: Normal
count: 3
firstTimestamp: '2026-01-01T00:00:00Z'
lastTimestamp: '2026-01-01T00:00:00Z'
source: {component: test}
"""


@pytest.fixture
def filled(kubectl):
    kubectl("create", "-f", "-", stdin=OBJECTS)
    return kubectl


def names(kubectl, *words):
    return kubectl("get", *words, "-o", "name").split()


TABLES = [
    ("pods", ["NAME", "READY", "STATUS", "RESTARTS", "AGE"], ["p1", "0/1", "Pending", "0"]),
    ("nodes", ["NAME", "STATUS", "ROLES", "AGE", "VERSION"], ["worker", "Unknown", "<none>"]),
    ("resourceclaims", ["NAME", "STATE", "AGE"], ["c1", "pending"]),
    ("resourceclaimtemplates", ["NAME", "AGE"], ["t1"]),
    ("deviceclasses", ["NAME", "AGE"], ["gpu"]),
    ("resourceslices", ["NAME", "NODE", "DRIVER", "POOL", "AGE"],
     ["s1", "n1", "gpu.example.com", "n1"]),
    ("devicetaintrules", ["NAME", "KEY", "VALUE", "EFFECT"],
     ["dt1", "example.com/broken", "yes", "NoSchedule"]),
    ("namespaces", ["NAME", "STATUS", "AGE"], ["default", "Active"]),
    ("leases", ["NAME", "HOLDER", "AGE"], ["l1", "me"]),
    ("runtimeclasses", ["NAME", "HANDLER", "AGE"], ["kata", "kata-qemu"]),
    ("events", ["LAST", "SEEN", "TYPE", "REASON", "OBJECT", "MESSAGE"], None),
]


def test_every_kind_has_its_table(filled):
    for resource, columns, row in TABLES:
        rows = filled.rows(resource)
        assert rows[0][: len(columns)] == columns, resource
        assert row is None or rows[1][: len(row)] == row, resource
    assert filled.rows("events")[1][1:] == ["Normal", "Tested", "pod/p1", "all", "is", "well"]
    wide = filled("get", "pods", "-o", "wide").splitlines()
    assert "NOMINATED NODE" in wide[0] and "READINESS GATES" in wide[0]
    assert wide[2].split()[6] == "worker"
    assert "CONTAINER-RUNTIME" in filled("get", "nodes", "-o", "wide")


def test_documents_are_whole(filled):
    pod = filled.json("pod", "p1")
    assert (pod["kind"], pod["apiVersion"], pod["metadata"]["name"]) == ("Pod", "v1", "p1")
    assert pod["spec"]["containers"][0]["resources"]["requests"] == {"cpu": "500m"}
    pods = filled.json("pods")
    assert [item["metadata"]["name"] for item in pods["items"]] == ["p1", "p2"]
    text = filled("get", "resourceslice", "s1", "-o", "yaml")
    assert "kind: ResourceSlice" in text and "value: 40Gi" in text
    several = filled("get", "po/p1", "resourceclaim/c1", "-o", "jsonpath={.items[*].kind}")
    assert several == "Pod ResourceClaim"
    columns = filled("get", "po", "-A", "-o", "custom-columns=N:.metadata.name", "--no-headers")
    assert columns.split() == ["p1", "p2", "p3"]
    template = filled("get", "pod", "p2", "-o", "go-template={{.spec.nodeName}}")
    assert template == "worker"


def test_selectors_choose(filled):
    assert names(filled, "pods") == ["pod/p1", "pod/p2"]
    assert names(filled, "pods", "-A") == ["pod/p1", "pod/p2", "pod/p3"]
    assert names(filled, "pods", "-n", "other") == ["pod/p3"]
    assert names(filled, "pods", "-l", "app=a") == ["pod/p1"]
    assert names(filled, "pods", "-A", "-l", "app in (a,x)") == ["pod/p1", "pod/p3"]
    assert names(filled, "pods", "-l", "app,app!=a") == ["pod/p2"]
    assert names(filled, "pods", "-l", "!app") == []
    assert names(filled, "pods", "--field-selector", "spec.nodeName=worker") == ["pod/p2"]
    assert names(filled, "pods", "--field-selector", "spec.nodeName!=worker") == ["pod/p1"]
    assert names(filled, "pods", "--field-selector", "metadata.name=p1") == ["pod/p1"]
    assert names(filled, "events", "--field-selector", "involvedObject.name=p1") == ["event/e1"]
    assert names(filled, "resourceslices", "--field-selector", "spec.driver=x") == []
    assert names(filled, "pods", "-A", "--chunk-size=1") == ["pod/p1", "pod/p2", "pod/p3"]
    table = filled("get", "pods", "-A", "--chunk-size=1", "-L", "app", "--show-labels")
    assert [line.split()[0] for line in table.splitlines()[1:]] == ["default", "default", "other"]


def test_what_is_not_there_is_an_error(filled):
    for words in (
        ["get", "pod", "nope"],
        ["get", "nosuchkind"],
        ["get", "pods", "--field-selector", "spec.image=x"],
        ["get", "pods", "-l", "a in"],
        ["get", "pod", "p1", "nope"],
        ["describe", "pod", "nope"],
        ["describe", "resourceclaim", "nope"],
        ["explain", "pod.nope"],
        ["explain", "nosuchkind"],
        ["delete", "pod", "nope"],
        ["wait", "pod/p1", "--for=condition=Ready", "--timeout=100ms"],
        ["wait", "pod/nope", "--for=condition=Ready", "--timeout=100ms"],
        ["get", "--raw", "/apis/nope"],
        ["label", "pod", "nope", "a=b"],
        ["patch", "pod", "nope", "-p", "{}"],
    ):
        filled(*words, status=1)
    assert "No resources found" in filled("get", "secrets")
    assert "No resources found" in filled("get", "pods", "-n", "nowhere")
    filled("get", "pod", "nope", "--ignore-not-found")


def test_things_are_described(filled):
    uid = filled("get", "pod", "p1", "-o", "jsonpath={.metadata.uid}")
    filled("patch", "event", "e1", "--type=merge", "-p",
           json.dumps({"involvedObject": {"uid": uid}}))
    text = filled("describe", "pod", "p1")
    for part in ("Name:         p1\n", "Labels:       app=a\n", "Status:       Pending\n",
                 "Tested", "all is well"):
        assert part in text, text
    assert "Device Class Name:  gpu" in filled("describe", "resourceclaim", "c1")
    assert "gpu.example.com" in filled("describe", "resourceslice", "s1")
    assert "device.driver ==" in filled("describe", "deviceclass", "gpu")
    assert "worker" in filled("describe", "node", "worker")
    assert "Active" in filled("describe", "namespace", "default")
    assert "example.com/broken" in filled("describe", "devicetaintrule", "dt1")
    assert "kata-qemu" in filled("describe", "runtimeclass", "kata")
    assert filled("describe", "pods", "-A").count("QoS Class:") == 3


def test_changes_are_followed(filled, procs):
    follower = filled.start(procs, "get", "pods", "-w")
    wait_row(follower, "p1", "0/1", "Pending")
    wait_row(follower, "p2")
    objects = filled.start(procs, "get", "resourceclaims", "-o", "name", "-w")
    wait_row(objects, "resourceclaim.resource.k8s.io/c1")
    only = filled.start(procs, "get", "pods", "-A", "--watch-only", "-l", "app=z")
    filled("create", "-f", "-", stdin=OBJECTS.replace("name: c1", "name: c9"), status=1)
    wait_row(objects, "resourceclaim.resource.k8s.io/c9")
    filled("label", "pod", "p1", "app=z", "--overwrite")
    wait_row(only, "default", "p1")
    if not filled.is_old:
        filled("patch", "pod", "p2", "--subresource=status", "-p",
               '{"status":{"phase":"Running"}}')
        wait_row(follower, "p2", "0/1", "Running")
    filled("delete", "pod", "p1", "--wait=false")
    filled("run", "p9", "--image=i", "--restart=Never")
    wait_row(follower, "p9", "0/1", "Pending")
    for proc in (follower, objects, only):
        assert proc.is_alive, proc.describe()
        assert [line.split()[0] for line in proc.lines].count("NAME") <= 1  # columns come once


def test_conditions_are_waited_for(filled, node, procs):
    waiting = filled.start(procs, "wait", "pod/p1", "--for=delete", "--timeout=60s")
    ready = filled.start(procs, "wait", "node/worker", "--for=condition=Ready", "--timeout=60s")
    node.wait_watches("pods", 1)
    node.wait_watches("nodes", 1)
    filled("delete", "pod", "p1")
    assert waiting.wait() == 0, waiting.describe()
    status = {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}
    if filled.is_old:  # it does not know subresources, and --raw writes what it is given
        worker = filled.json("node", "worker") | status
        filled("replace", "--raw", "/api/v1/nodes/worker/status", "-f", "-",
               stdin=json.dumps(worker))
    else:
        filled("patch", "node", "worker", "--subresource=status", "-p", json.dumps(status))
        filled("wait", "pod/p2", "--for=jsonpath={.status.phase}=Pending", "--timeout=60s")
        filled("wait", "--for=create", "pod/p2", "--timeout=60s")
    assert ready.wait() == 0, ready.describe()


def test_what_the_api_offers_is_listed(kubectl):
    resources = kubectl("api-resources")
    for word in ("resourceclaims", "resourceslices", "DeviceTaintRule", "leases", "po "):
        assert word in resources
    assert set(kubectl("api-resources", "-o", "name", "--namespaced=false").split()) >= {
        "nodes", "namespaces", "resourceslices.resource.k8s.io", "deviceclasses.resource.k8s.io"}
    offered = kubectl("api-resources", "--verbs=list,watch,patch,deletecollection", "-o", "name")
    assert "resourceclaims.resource.k8s.io" in offered.split()
    versions = kubectl("api-versions").split()
    assert {"v1", "resource.k8s.io/v1", "resource.k8s.io/v1beta2", "resource.k8s.io/v1beta1",
            "coordination.k8s.io/v1", "events.k8s.io/v1", "node.k8s.io/v1"} <= set(versions)
    assert "v1.36.4" in kubectl("version")
    explained = kubectl("explain", "resourceclaim.spec.devices.requests")
    assert "exactly" in explained and "firstAvailable" in explained
    assert "nodeName" in kubectl("explain", "pod.spec", "--recursive")
    assert "podFixed" in kubectl("explain", "runtimeclass.overhead")
    assert "ResourceClaim" in kubectl("explain", "resourceclaim",
                                      "--api-version=resource.k8s.io/v1beta1")


def test_rights_can_be_asked_for(kubectl):
    assert kubectl("auth", "can-i", "delete", "pods").strip() == "yes"
    assert kubectl("auth", "can-i", "*", "*").strip() == "yes"
    node = ("--as=system:node:n1", "--as-group=system:nodes")
    assert "no" in kubectl("auth", "can-i", "delete", "nodes", *node, status=1)
    assert "yes" in kubectl("auth", "can-i", "create", "resourceslices.resource.k8s.io", *node)
    assert "selfsubjectaccessreviews" in kubectl("auth", "can-i", "--list", *node)
    kubectl("get", "secrets", *node, status=1)
    if not kubectl.is_old:
        assert "admin" in kubectl("auth", "whoami")
        assert "system:nodes" in kubectl("auth", "whoami", *node)


def test_events_are_listed(filled):
    if filled.is_old:
        assert "all is well" in filled("get", "events", "--sort-by=.lastTimestamp")
        return
    assert "all is well" in filled("events")
    assert "all is well" in filled("events", "--for", "pod/p1")
    assert "No events found" in filled("events", "--for", "pod/p2")
