"""Why a claim is pending: on a dump of some cluster, and on the objects of a server."""

import http.client
import json
import os
import re
import shutil
import ssl

import pytest

DUMP = os.path.join(os.path.dirname(__file__), "data", "dump.yaml")

GUIDE = os.path.join(os.path.dirname(__file__), "..", "..", "..", "docs", "explain.md")

TAINT_RULE = """\
apiVersion: resource.k8s.io/v1beta2
kind: DeviceTaintRule
metadata: {name: broken}
spec:
  deviceSelector: {driver: gpu.example.com, pool: n1, device: gpu-0}
  taint: {key: example.com/broken, effect: NoSchedule}
"""

POD = """\
apiVersion: v1
kind: Pod
metadata: {name: POD, namespace: ml}
spec:
  containers: [{name: c, image: i}]
  resourceClaims: [CLAIMS]
"""

TEMPLATE = """\
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: one-gpu, namespace: ml}
spec: {spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu}}]}}}
"""


@pytest.fixture
def offline(davit, fake):
    """davit, with a server that nobody is to ask."""
    yield davit
    assert fake.requests == []


def read_dump():
    with open(DUMP, encoding="utf-8") as file:
        return file.read()


def rows(text, header):
    """The rows of the table with this header, split into words."""
    lines = text.splitlines()
    at = lines.index(next(line for line in lines if line.split() == header))
    rest = lines[at + 1:]
    return [line.split(None, 2) for line in rest[:(rest + [""]).index("")]]


def test_the_guide_shows_what_is_printed(offline, short_dir):
    shutil.copy(DUMP, short_dir)
    with open(GUIDE, encoding="utf-8") as file:
        shown = re.findall(r"```\n\$ davit (.*)\n((?:(?!```|\$).*\n)+)```\n", file.read())
    assert len(shown) == 5
    for command, output in shown:
        assert offline.run(*command.split()).stdout == output, command


def test_a_claim_that_no_node_can_serve(offline):
    done = offline.run("explain", "claim", "train-0", "-f", DUMP)
    assert (done.returncode, done.stderr) == (3, ""), done
    lines = done.stdout.splitlines()
    assert lines[0] == "claim default/train-0 cannot be allocated on any of 4 nodes"
    nodes = rows(done.stdout, ["NODE", "FITS", "WHY"])
    assert [row[:2] for row in nodes] == [["n1", "no"], ["n2", "no"], ["n3", "no"], ["n4", "no"]]
    assert "1 taken" in nodes[1][2] and "pool-updating" in nodes[2][2]
    assert "there are no devices on this node" in nodes[3][2]
    assert "On n1:" in lines
    devices = rows(done.stdout, ["DEVICE", "WHY", "DETAIL"])
    assert devices[0] == ["gpu.example.com/n1/gpu-1", "constraint",
                          "matchAttribute gpu.example.com/numa: it has 1, gpu-0 has 0"]
    assert devices[2][:2] == ["gpu.example.com/n1/gpu-2", "request-selector"]
    assert devices[2][2].endswith('.model = "small"')
    assert devices[3][:2] == ["nic.example.com/n1/nic-0", "class-selector"]


def test_who_holds_a_device(offline):
    done = offline.run("explain", "claim/train-0", "-f", DUMP, "--node", "n2")
    assert done.returncode == 3
    assert ["gpu.example.com/n2/gpu-1", "taken", "taken by ml/infer"] in (
        rows(done.stdout, ["DEVICE", "WHY", "DETAIL"]))


def test_a_claim_that_can_be_allocated(offline):
    text = offline.ok("explain", "claim", "any", "-n", "ml", "-f", DUMP)
    assert text.startswith("claim ml/any can be allocated on 2 of 4 nodes\n")
    assert text.endswith("On n1 it would get:\n\n"
                         "CLAIM   REQUEST   DRIVER            POOL   DEVICE\n"
                         "any     gpu       gpu.example.com   n1     gpu-0\n")
    bare = offline.ok("explain", "claim", "any", "-n", "ml", "-f", DUMP, "--no-headers")
    assert "REQUEST" not in bare and "FITS" not in bare and "gpu-0" in bare


def test_a_claim_that_is_allocated(offline):
    text = offline.ok("explain", "claim", "infer", "-n", "ml", "-f", DUMP)
    assert text.startswith("claim ml/infer is allocated and reserved\n")
    assert text.splitlines()[-1].split() == ["infer", "gpu", "gpu.example.com", "n2", "gpu-1"]
    doc = json.loads(offline.ok("explain", "claim", "infer", "-n", "ml", "-f", DUMP, "-o", "json"))
    assert doc["canBeAllocated"] and doc["nodes"] == []
    assert doc["allocated"][0]["allocation"]["devices"]["results"][0]["device"] == "gpu-1"


def test_all_as_data(offline):
    done = offline.run("explain", "claim", "train-0", "-f", DUMP, "-o", "json")
    doc = json.loads(done.stdout)
    assert (done.returncode, doc["canBeAllocated"]) == (3, False)
    assert [(node["node"], node["outcome"]) for node in doc["nodes"]] == [
        ("n1", "none"), ("n2", "none"), ("n3", "none"), ("n4", "none")]
    request, = doc["nodes"][0]["requests"]
    assert (request["request"], request["wanted"], request["isStuck"]) == ("gpus", 2, True)
    assert [device["why"] for device in request["devices"]] == [
        "constraint", "taken-here", "request-selector", "class-selector"]
    doc = json.loads(offline.ok("explain", "claim", "any", "-n", "ml", "-f", DUMP, "-o", "json"))
    assert doc["nodes"][0]["claims"][0]["allocation"]["devices"]["results"][0]["pool"] == "n1"
    assert "requests" in doc["nodes"][2]


def test_taint_rules_count(offline):
    done = offline.run("explain", "claim", "train-0", "-f", DUMP, "-f", "-", "--node", "n1",
                       stdin=TAINT_RULE)
    tainted = [row for row in rows(done.stdout, ["DEVICE", "WHY", "DETAIL"]) if row[1] == "tainted"]
    assert tainted == [["gpu.example.com/n1/gpu-0", "tainted",
                        "the taint example.com/broken:NoSchedule is not tolerated"]]
    # A rule that selects nothing in particular is about all devices.
    everywhere = TAINT_RULE.replace("deviceSelector: {driver: gpu.example.com, pool: n1, device: "
                                    "gpu-0}", "")
    done = offline.run("explain", "claim", "any", "-n", "ml", "-f", DUMP, "-f", "-",
                       stdin=everywhere)
    assert done.returncode == 3 and "tainted" in done.stdout


def test_nodes_are_known_from_slices(offline):
    documents = [f"---\n{part}" for part in read_dump().split("\n- ")[1:] if "kind: Node" not in part]
    text = "\n".join(line[2:] if line.startswith("  ") else line
                     for part in documents for line in part.splitlines()
                     if not line.startswith("#"))
    done = offline.run("explain", "claim", "train-0", "-f", "-", stdin=text)
    assert [row[0] for row in rows(done.stdout, ["NODE", "FITS", "WHY"])] == ["n1", "n2", "n3"], done
    done = offline.run("explain", "claim", "train-0", "-f", "-", "--node", "n7", stdin=text)
    assert done.returncode == 3 and "there are no devices on this node" in done.stdout


def test_a_class_that_is_not_there(offline):
    text = read_dump().replace("metadata: {name: gpu}", "metadata: {name: gpus}")
    done = offline.run("explain", "claim", "train-0", "-f", "-", stdin=text)
    assert (done.returncode, done.stdout) == (3, (
        "claim default/train-0 cannot be allocated: request gpus of claim default/train-0 is for "
        "the class gpu, which is not there; did you mean gpus?\n")), done
    done = offline.run("explain", "claim", "train-0", "-f", "-", "-o", "json", stdin=text)
    assert done.returncode == 3 and len(json.loads(done.stdout)["obstacles"]) == 1


def test_old_versions_mean_the_same(offline):
    old = ("apiVersion: resource.k8s.io/v1beta1\nkind: ResourceClaim\n"
           "metadata: {name: old, namespace: ml}\n"
           "spec: {devices: {requests: [{name: gpu, deviceClassName: gpu}]}}\n")
    text = offline.ok("explain", "claim", "old", "-n", "ml", "-f", DUMP, "-f", "-", stdin=old)
    assert text == offline.ok("explain", "claim", "any", "-n", "ml", "-f", DUMP).replace(
        "claim ml/any", "claim ml/old").replace("any     gpu", "old     gpu")


def test_the_rest_of_many_devices_is_counted(offline):
    devices = "\n".join(f"  - {{name: d{i:03}}}" for i in range(40))
    more = ("apiVersion: resource.k8s.io/v1\nkind: ResourceSlice\nmetadata: {name: many}\nspec:\n"
            "  driver: nic.example.com\n  nodeName: n4\n"
            "  pool: {name: n4, generation: 1, resourceSliceCount: 1}\n  devices:\n" + devices)
    words = ["explain", "claim", "train-0", "-f", DUMP, "-f", "-", "--node", "n4"]
    done = offline.run(*words, stdin=more)
    assert done.stdout.endswith("and 30 more, which --all shows: 30 class-selector\n")
    done = offline.run(*words, "--all", stdin=more)
    assert len(rows(done.stdout, ["DEVICE", "WHY", "DETAIL"])) == 40


@pytest.mark.parametrize("claims, code, says", [
    ("{name: a, resourceClaimName: any}", 0, "pod ml/p can be allocated on 2 of 4 nodes"),
    ("{name: a, resourceClaimTemplateName: one-gpu}", 0, "p-a     gpu"),
    # The second one is on n2: so is the pod, or nowhere.
    ("{name: a, resourceClaimName: any}, {name: b, resourceClaimName: infer}", 0,
     "pod ml/p can be allocated on 1 of 4 nodes"),
    ("{name: a, resourceClaimName: infer}", 0, "claim ml/infer is allocated"),
    ("{name: a, resourceClaimName: nope}", 3, "the pod's claim nope is not there"),
    ("{name: a, resourceClaimTemplateName: nope}", 3, "its template nope is not there"),
    ("", 0, "pod ml/p has no claims"),
])
def test_pods(offline, claims, code, says):
    pod = POD.replace("CLAIMS", claims).replace("POD", "p")
    done = offline.run("explain", "pod", "p", "-n", "ml", "-f", DUMP, "-f", "-",
                       stdin=f"{TEMPLATE}---\n{pod}")
    assert done.returncode == code and says in done.stdout, done


@pytest.mark.parametrize("status, code, says", [
    ("status: {phase: Failed, reason: OutOfcpu, message: too much}", 3,
     "pod ml/p has failed on n1: OutOfcpu: too much\n"),
    ("status: {phase: Succeeded}", 0, "pod ml/p has ended, and succeeded\n"),
])
def test_pods_that_are_over(offline, status, code, says):
    pod = f"{POD}  nodeName: n1\n{status}\n".replace("CLAIMS", "").replace("POD", "p")
    done = offline.run("explain", "pod", "p", "-n", "ml", "-f", DUMP, "-f", "-", stdin=pod)
    assert (done.returncode, done.stdout) == (code, says), done
    done = offline.run("explain", "pod", "p", "-n", "ml", "-f", DUMP, "-f", "-", "-o", "json", stdin=pod)
    assert (done.returncode, f"pod ml/p {json.loads(done.stdout)['pod']}\n") == (code, says), done
    done = offline.run("explain", "pod", "p", "-n", "ml", "-f", DUMP, "-f", "-",
                       stdin=pod.replace("{name: p,", "{name: p, deletionTimestamp: '2026-01-01T00:00:00Z',"))
    assert done.stdout == "pod ml/p is being deleted; davit describe pod p -n ml has the events\n", done


@pytest.mark.parametrize("words, code, says", [
    (["claim"], 2, "name one claim"),
    (["claim", "a", "b"], 2, "name one claim"),
    (["node", "n1"], 2, "a node cannot"),
    (["claim", "train-0", "-n", "ml", "-f", DUMP], 1, "there is one in default: give -n default"),
    (["claim", "nope", "-f", DUMP], 1, "there is no claim nope in the namespace default"),
    (["claim", "train-0", "-f", DUMP, "--node", "n9"], 1, "there is no node n9"),
    (["claim", "train-0", "-f", "/no/such"], 1, "/no/such"),
])
def test_what_is_not_there(offline, words, code, says):
    done = offline.run("explain", *words)
    assert (done.returncode, done.stdout) == (code, "") and says in done.stderr, done


@pytest.mark.parametrize("text, says", [
    ("a: [", "-, document 1"),
    ("kind: ResourceClaim", "it needs apiVersion and kind"),
    ("apiVersion: resource.k8s.io/v1alpha2\nkind: ResourceClaim\nmetadata: {name: x}",
     "ResourceClaim of resource.k8s.io/v1alpha2 is not known"),
    ("apiVersion: resource.k8s.io/v1\nkind: ResourceSlice\nmetadata: {name: x}\n"
     "spec: {devices: 7}", "ResourceSlice x: "),
])
def test_files_with_faults(offline, text, says):
    done = offline.run("explain", "claim", "train-0", "-f", DUMP, "-f", "-", stdin=text)
    assert (done.returncode, done.stdout) == (1, "") and says in done.stderr, done
    assert "-, document 1" in done.stderr


def test_other_kinds_are_passed_over(offline):
    text = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: x}\n"
    assert "can be allocated" in offline.ok("explain", "claim", "any", "-n", "ml", "-f", DUMP,
                                            "-f", "-", stdin=text)


def allocate(real, api_server, device):
    """What a scheduler would write into the claim ml/infer."""
    claim = json.loads(real.ok("get", "claim", "infer", "-n", "ml", "-o", "json"))
    claim["status"] = {"allocation": {"devices": {"results": [
        {"request": "gpu", "driver": "gpu.example.com", "pool": "n2", "device": device}]}}}
    context = ssl.create_default_context(cafile=api_server.ca)
    peer = http.client.HTTPSConnection(api_server.url[8:], context=context, timeout=20)
    peer.request("PUT", "/apis/resource.k8s.io/v1/namespaces/ml/resourceclaims/infer/status",
                 body=json.dumps(claim), headers={"Authorization": "Bearer admintoken",
                                                  "Content-Type": "application/json"})
    assert peer.getresponse().status == 200
    peer.close()


def test_the_objects_of_a_server(real, api_server, short_dir):
    json_path = os.path.join(short_dir, "dump.json")
    real.ok("apply", "-f", "-", stdin="apiVersion: v1\nkind: Namespace\nmetadata: {name: ml}\n")
    assert real.run("apply", "-f", DUMP).returncode == 0
    assert "can be allocated on 1 of 4" in real.ok("explain", "claim", "train-0")
    allocate(real, api_server, "gpu-1")
    real.ok("apply", "-f", "-", stdin=TEMPLATE + "---\n" + POD.replace(
        "CLAIMS", "{name: a, resourceClaimTemplateName: one-gpu}").replace("POD", "p"))
    done = real.run("explain", "claim", "train-0")
    assert done.returncode == 3 and "constraint" in done.stdout, done
    assert "can be allocated on 2 of 4" in real.ok("explain", "claim", "any", "-n", "ml")
    assert "p-a     gpu" in real.ok("explain", "pod", "p", "-n", "ml")
    # A dump of it says the same, from JSON.
    with open(json_path, "w", encoding="utf-8") as file:
        file.write(real.ok("get", "claims,slices,classes,nodes", "-A", "-o", "json"))
    offline = real.run("explain", "claim", "train-0", "-f", json_path)
    assert offline.stdout == done.stdout
    done = real.run("explain", "claim", "nope")
    assert done.returncode == 1 and "there is no claim nope" in done.stderr


# ---- all that waits


def node(name, **allocatable):
    amounts = {"cpu": "16", "memory": "64Gi", "pods": "110", **allocatable}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name},
            "status": {"allocatable": amounts, "capacity": amounts}}


def gpus(name, count=2):
    devices = [{"name": f"gpu-{i}", "attributes": {"numa": {"int": i}}} for i in range(count)]
    return {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice",
            "metadata": {"name": f"{name}-gpu"},
            "spec": {"driver": "gpu.example.com", "nodeName": name, "devices": devices,
                     "pool": {"name": name, "generation": 1, "resourceSliceCount": 1}}}


def gpu_claim(name, count=1, on=None, of_class="gpu"):
    made = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim",
            "metadata": {"name": name, "namespace": "ml"},
            "spec": {"devices": {"requests": [
                {"name": "gpus", "exactly": {"deviceClassName": of_class, "count": count}}]}}}
    if count > 1:
        made["spec"]["devices"]["constraints"] = [{"matchAttribute": "gpu.example.com/numa"}]
    if on:
        made["status"] = {"allocation": {"devices": {"results": [
            {"request": "gpus", "driver": "gpu.example.com", "pool": on, "device": "gpu-0"}]}}}
    return made


def waiting_pod(name, requests=None, status=None, **spec):
    container = {"name": "c", "image": "i", "resources": {"requests": requests or {}}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "ml"},
            "spec": {"containers": [container], **spec}, "status": status or {"phase": "Pending"}}


GPU_CLASS = {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": "gpu"},
             "spec": {"selectors": [{"cel": {"expression": 'device.driver == "gpu.example.com"'}}]}}


def dump(*items):
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": items})


def fleet(*more, n_nodes=1000, n_allocated=209):
    names = [f"n{i}" for i in range(1, n_nodes + 1)]
    cams = [{"camera.example.com/cam": str(8 * i)} if i < 4 else {} for i in range(1, n_nodes + 1)]
    return dump(GPU_CLASS, *[node(name, **cam) for name, cam in zip(names, cams)],
                *map(gpus, names),
                *[gpu_claim(f"run-{i}", on=names[i]) for i in range(n_allocated)], *more)


def test_all_that_waits_nearest_first_and_alike_in_one_line(offline):
    text = fleet(*[gpu_claim(f"train-{i}", 2) for i in range(3)],
                 waiting_pod("cam-7", {"camera.example.com/cam": "100"}))
    done = offline.run("explain", "-f", "-", stdin=text)
    assert (done.returncode, done.stderr) == (3, ""), done
    head, train, cam = done.stdout.splitlines()
    assert head == "3 of 212 claims wait, 1 pod waits for something else"
    assert train == (
        "ml/train-0   gpus: 2 wanted, 2 looked at, 1 fits: matchAttribute gpu.example.com/numa: it has 1, "
        "gpu-0 has 0 (gpu-1 on n210); 791 of 1,000 nodes are as near (and 2 alike)")
    assert cam == "ml/cam-7     pod wants camera.example.com/cam: 100, most on a node is 24 (n3)"
    doc = json.loads(offline.run("explain", "-f", "-", "-o", "json", stdin=text).stdout)
    assert (doc["claims"], doc["waiting"], doc["waits"][0]["alike"]) == (212, 3, 2)
    # A thousand nodes of which the same is to be said are a line each kind.
    shown = offline.run("explain", "claim", "train-0", "-n", "ml", "-f", "-", stdin=text).stdout
    assert "cannot be allocated on any of 1,000 nodes\n" in shown, shown
    nodes = shown.split("\n\n")[1].splitlines()
    assert [line.split("   ")[0] for line in nodes[1:]] == [
        "n210 and 790 like it", "n1 and 208 like it"]


def test_nodes_that_are_alike_are_a_line_wherever_they_are(offline):
    """Equally near, but each third has one more device that is taken."""
    big = gpu_claim("big", 3)
    del big["spec"]["devices"]["constraints"]
    odd = [f"n{i}" for i in range(3, 13, 3)]
    held = [gpu_claim(f"more-{name}", on=name) for name in odd]
    for claim in held:
        claim["status"]["allocation"]["devices"]["results"][0]["device"] = "gpu-2"
    text = fleet(big, *held, n_nodes=12, n_allocated=12)
    doc = json.loads(text)
    doc["items"] = [gpus(item["spec"]["nodeName"], 3) if item["metadata"]["name"][:-4] in odd
                    and item["kind"] == "ResourceSlice" else item for item in doc["items"]]
    shown = offline.run("explain", "claim", "big", "-n", "ml", "-f", "-", stdin=json.dumps(doc)).stdout
    nodes = shown.split("\n\n")[1].splitlines()
    assert [line.split("   ")[0] for line in nodes[1:]] == ["n1 and 7 like it", "n3 and 3 like it"], shown


def test_a_node_whose_devices_all_would_do_is_the_nearest(offline):
    """Too few of them are nearer than one of them taken, in all that is told."""
    big = gpu_claim("big", 3)
    del big["spec"]["devices"]["constraints"]
    text = fleet(big, waiting_pod("p", resourceClaims=[{"name": "x", "resourceClaimName": "big"}]),
                 n_nodes=12, n_allocated=11)
    shown = offline.run("explain", "-f", "-", stdin=text).stdout
    assert "gpus: 3 wanted, 2 looked at, 2 fit (on n12); no other of 12 nodes is as near" in shown, shown
    shown = offline.run("explain", "pod", "p", "-n", "ml", "-f", "-", stdin=text).stdout
    nodes = shown.split("\n\n")[1].splitlines()
    assert [line.split("   ")[0] for line in nodes[1:]] == ["n12", "n1 and 10 like it"], shown
    held = [gpu_claim(f"more-{i}", on=f"n{i}") for i in range(6, 10)]
    for claim in held:  # both devices of n6 to n9, so that the others have the most left
        claim["status"]["allocation"]["devices"]["results"][0]["device"] = "gpu-1"
    mixed = fleet(*held, big, waiting_pod("p", resourceClaims=[{"name": "x", "resourceClaimName": "big"}]),
                  n_nodes=11, n_allocated=11)
    shown = offline.run("explain", "pod", "p", "-n", "ml", "-f", "-", stdin=mixed).stdout
    nodes = shown.split("\n\n")[1].splitlines()
    assert [line.split("   ")[0] for line in nodes[1:]] == ["n1 and 6 like it", "n6 and 3 like it"], shown
    shown = offline.run("explain", "-f", "-", stdin=mixed).stdout
    assert "(gpu-0 on n1); 7 of 11 nodes are as near" in shown, shown
    shown = offline.run("explain", "--all-pending", "-f", "-", "--no-headers", stdin=text).stdout
    assert shown.split()[:6] == ["ml", "p", "0", "of", "12", "n12"], shown


@pytest.mark.parametrize("pod, why", [
    (waiting_pod("p", {"cpu": "64"}), "pod wants cpu: 64, most on a node is 16 (n1)"),
    (waiting_pod("p", {"memory": "1Ti"}), "pod wants memory: 1Ti, most on a node is 64Gi (n1)"),
    (waiting_pod("p", {"a.io/b": "1"}), "pod wants a.io/b: 1, no node has any"),
    (waiting_pod("p", {"camera.example.com/cam": "20"}),
     "pod wants camera.example.com/cam: 20, most free on a node is 16 (n2)"),
    (waiting_pod("p", nodeSelector={"zone": "z"}),
     "pod wants a node with zone=z, n1 has no such label; all 3 nodes are alike"),
    (waiting_pod("p", schedulingGates=[{"name": "quota"}]), "its scheduling gate quota is closed"),
    (waiting_pod("p", {"cpu": "16"}, {"phase": "Pending", "nominatedNodeName": "n2"}),
     "pods of lower priority make room for it on n2"),
    (waiting_pod("p", resourceClaims=[{"name": "x", "resourceClaimName": "none"}]),
     "the pod's claim none is not there"),
    (waiting_pod("p", nodeName="n1", status={"phase": "Pending", "conditions": [
        {"type": "davit.node/DevicesReady", "status": "False", "reason": "DeviceInUse",
         "message": "card0 is held by ml/q"}]}), "on n1: DeviceInUse: card0 is held by ml/q"),
    (waiting_pod("p", nodeName="n1", status={"phase": "Pending", "containerStatuses": [
        {"name": "c", "image": "i", "imageID": "", "ready": False, "restartCount": 0,
         "state": {"waiting": {"reason": "ImagePullBackOff"}}}]}),
     "on n1: container c: ImagePullBackOff"),
])
def test_every_reason_of_a_pod(offline, pod, why):
    taken = waiting_pod("q", {"camera.example.com/cam": "10"}, {"phase": "Running"}, nodeName="n3")
    text = fleet(pod, taken, n_nodes=3, n_allocated=0)
    done = offline.run("explain", "-f", "-", stdin=text)
    assert done.returncode == 3 and f"ml/p   {why}" in done.stdout, done
    done = offline.run("explain", "pod", "p", "-n", "ml", "-f", "-", stdin=text)
    assert done.returncode == 3 and why in done.stdout, done


def test_a_node_without_a_status_silences_no_other(offline):
    """To a scheduler it has room for nothing; the sentence about the others stays."""
    bare = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "a-bare"}}
    text = fleet(bare, gpus("a-bare"), gpu_claim("c"), waiting_pod("p", {"cpu": "64"}),
                 waiting_pod("q", resourceClaims=[{"name": "x", "resourceClaimName": "c"}]), n_nodes=1, n_allocated=1)
    done = offline.run("explain", "-f", "-", stdin=text)
    assert done.returncode == 3 and "ml/p   pod wants cpu: 64, most on a node is 16 (n1)" in done.stdout, done
    assert "ml/q   can be allocated now, on n1" in done.stdout, done
    done = offline.run("explain", "pod", "p", "-n", "ml", "-f", "-", stdin=text)
    assert done.returncode == 3 and "pod wants cpu: 64" in done.stdout, done


def test_all_that_waits_of_one_namespace(offline):
    other = waiting_pod("p", {"cpu": "64"})
    other["metadata"]["namespace"] = "web"
    text = fleet(gpu_claim("train", 2), other, waiting_pod("p", {"a.io/b": "1"}),
                 waiting_pod("q", resourceClaims=[{"name": "x", "resourceClaimName": "train"}]),
                 n_nodes=2, n_allocated=1)
    shown = offline.run("explain", "-f", "-", "-n", "web", stdin=text).stdout
    assert shown == ("0 of 0 claims wait, 1 pod waits for something else\n"
                     "web/p   pod wants cpu: 64, most on a node is 16 (n1)\n")
    shown = offline.run("explain", "-f", "-", "-n", "ml", stdin=text).stdout
    assert shown.startswith("1 of 2 claims wait, 1 pod waits for something else\n"), shown
    assert "web/" not in shown and "ml/q" in shown and "ml/p" in shown, shown
    doc = json.loads(offline.run("explain", "-f", "-", "-o", "json", stdin=text).stdout)
    assert (doc["claims"], doc["waiting"], doc["otherPods"], len(doc["waits"])) == (2, 1, 2, 3)
    assert offline.ok("explain", "-f", "-", "-n", "none", stdin=text) == "nothing waits\n"
    assert "q" in offline.run("explain", "--all-pending", "-f", "-", stdin=text).stdout
    assert offline.ok("explain", "--all-pending", "-f", "-", "-n", "web",
                      stdin=text) == "no pod waits for its claims\n"


@pytest.mark.parametrize("options", [["--all"], ["--node", "n1"], ["--all", "--all-pending"]])
def test_options_about_one_are_refused_without_it(offline, options):
    done = offline.run("explain", *options, "-f", "-", stdin=fleet(n_nodes=2, n_allocated=1))
    assert done.returncode == 2 and f"{options[0]} is about one claim or pod" in done.stderr, done


def test_what_waits_for_nothing(offline):
    text = fleet(waiting_pod("q", {"cpu": "1"}, {"phase": "Running"}, nodeName="n1"), n_nodes=2,
                 n_allocated=1)
    assert offline.ok("explain", "-f", "-", stdin=text) == "nothing waits: 1 claim is allocated\n"
    assert offline.ok("explain", "-f", "-", stdin=dump(node("n1"))) == "nothing waits\n"
    text = fleet(waiting_pod("p", {"cpu": "1"}), gpu_claim("c"), n_nodes=2, n_allocated=0)
    shown = offline.ok("explain", "-f", "-", stdin=text)
    assert "ml/p   fits now: no scheduler has seen it yet" in shown, shown
    assert "ml/c   no pod uses it" in shown, shown
    assert offline.ok("explain", "pod", "p", "-n", "ml", "-f", "-",
                      stdin=text) == "pod ml/p waits: fits now: no scheduler has seen it yet\n"


def test_tainted_nodes_are_told_once(offline):
    tainted = [dict(node(f"n{i}"), spec={"taints": [{"key": "gpu", "effect": "NoSchedule"}]})
               for i in range(1, 4)]
    done = offline.run("explain", "-f", "-", stdin=dump(*tainted, waiting_pod("p", {"cpu": "1"})))
    assert "ml/p   pod does not tolerate the taint gpu:NoSchedule of n1; all 3 nodes are alike\n" in done.stdout, done


def test_a_claim_that_is_allocated_elsewhere(offline):
    """The pod fits on n2, and its claim has devices of n1, where there is no room."""
    full = waiting_pod("q", {"cpu": "15"}, {"phase": "Running"}, nodeName="n1")
    pod = waiting_pod("p", {"cpu": "2"}, resourceClaims=[{"name": "x", "resourceClaimName": "held"}])
    claim = gpu_claim("held", on="n1")
    claim["status"]["allocation"]["nodeSelector"] = {"nodeSelectorTerms": [
        {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}]}
    done = offline.run("explain", "-f", "-", stdin=fleet(pod, full, claim, n_nodes=2, n_allocated=0))
    assert done.returncode == 3, done
    assert ("ml/p   pod wants cpu: 2, n1 has 1 free; 1 other is open to it, and not to its allocated claim"
            in done.stdout), done
