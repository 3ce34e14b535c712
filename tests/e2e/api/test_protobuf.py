"""Bodies in Kubernetes' protobuf encoding, as typed Go clients send them, and answers in it."""

import json
import struct

import pytest

from kubepb import MEDIA_TYPE, TYPES, make, unwrap, wrap
from servers import CLAIMS, MAPS, NODES, PODS, RESOURCE, SLICES

BOTH = f"{MEDIA_TYPE},application/json"
CORE = "v1"
V1 = "resource.k8s.io/v1"


def send(api, method, path, version, kind, message, accept=BOTH):
    return api.ask(method, path, wrap(version, kind, message), Content_Type=MEDIA_TYPE,
                   Accept=accept)


def must(api, method, path, version, kind, message):
    """The answer is protobuf or JSON, as the server likes; its kind is told either way."""
    answer = send(api, method, path, version, kind, message)
    assert answer.status in (200, 201), answer
    if answer.fields["Content-Type"].startswith(MEDIA_TYPE):
        got = unwrap(answer.body)[:2]
    else:
        got = (answer.doc["apiVersion"], answer.doc["kind"])
    assert got in ((version, kind), (CORE, "Status"))


def claim_message(name, **metadata):
    return make("ResourceClaim", metadata={"name": name, **metadata}, spec={"devices": {
        "requests": [
            {"name": "one", "exactly": {
                "deviceClassName": "gpu", "count": 2, "allocationMode": "ExactCount",
                "selectors": [{"cel": {"expression": 'device.driver == "gpu.example.com"'}}],
                "tolerations": [{"key": "example.com/x", "operator": "Exists"}]}},
            {"name": "two", "firstAvailable": [{"name": "a", "deviceClassName": "gpu"},
                                               {"name": "b", "deviceClassName": "nic"}]}],
        "constraints": [{"requests": ["one"], "matchAttribute": "example.com/numa"}],
        "config": [{"requests": ["one"], "deviceConfiguration": {"opaque": {
            "driver": "gpu.example.com", "parameters": {"raw": b'{"mode":"fast"}'}}}}]}})


def test_claims(api):
    must(api, "POST", CLAIMS, V1, "ResourceClaim", claim_message("c1", labels={"a": "b"}))
    got = api.must("GET", f"{CLAIMS}/c1")
    one, two = got["spec"]["devices"]["requests"]
    assert one["exactly"]["count"] == 2
    assert one["exactly"]["tolerations"] == [{"key": "example.com/x", "operator": "Exists"}]
    assert [sub["deviceClassName"] for sub in two["firstAvailable"]] == ["gpu", "nic"]
    opaque = got["spec"]["devices"]["config"][0]["opaque"]
    assert opaque == {"driver": "gpu.example.com", "parameters": {"mode": "fast"}}
    assert got["metadata"]["labels"] == {"a": "b"}
    changed = claim_message("c1", labels={"a": "c"},
                            resourceVersion=got["metadata"]["resourceVersion"])
    must(api, "PUT", f"{CLAIMS}/c1", V1, "ResourceClaim", changed)
    assert api.must("GET", f"{CLAIMS}/c1")["metadata"]["labels"] == {"a": "c"}
    late = send(api, "PUT", f"{CLAIMS}/c1", V1, "ResourceClaim", changed, "application/json")
    assert (late.status, late.doc["reason"]) == (409, "Conflict")
    again = send(api, "POST", CLAIMS, V1, "ResourceClaim", claim_message("c1"), "application/json")
    assert (again.status, again.doc["reason"]) == (409, "AlreadyExists")


def test_the_status_of_claims(api):
    must(api, "POST", CLAIMS, V1, "ResourceClaim", claim_message("c1"))
    message = claim_message("c1")
    version = api.must("GET", f"{CLAIMS}/c1")["metadata"]["resourceVersion"]
    message.metadata.resourceVersion = version
    status = make("ResourceClaimStatus",
                  allocation={"devices": {"results": [
                      {"request": "one", "driver": "gpu.example.com", "pool": "n1", "device": "d0"},
                      {"request": "one", "driver": "gpu.example.com", "pool": "n1", "device": "d1"},
                      {"request": "two/a", "driver": "gpu.example.com", "pool": "n1",
                       "device": "d2"}]},
                      "nodeSelector": {"nodeSelectorTerms": [{"matchFields": [
                          {"key": "metadata.name", "operator": "In", "values": ["n1"]}]}]}},
                  reservedFor=[{"resource": "pods", "name": "p", "uid": "u1"}],
                  devices=[{"driver": "gpu.example.com", "pool": "n1", "device": "d0",
                            "data": {"raw": b'{"k":[1,2]}'},
                            "conditions": [{"type": "Ready", "status": "True", "reason": "Up",
                                            "lastTransitionTime": {"seconds": 1700000000}}],
                            "networkData": {"interfaceName": "eth1", "ips": ["10.0.0.1/24"]}}])
    message.status.CopyFrom(status)
    must(api, "PUT", f"{CLAIMS}/c1/status", V1, "ResourceClaim", message)
    got = api.must("GET", f"{CLAIMS}/c1")["status"]
    assert [result["device"] for result in got["allocation"]["devices"]["results"]] == \
        ["d0", "d1", "d2"]
    assert got["devices"][0]["data"] == {"k": [1, 2]}
    assert got["devices"][0]["conditions"][0]["lastTransitionTime"] == "2023-11-14T22:13:20Z"
    assert got["devices"][0]["networkData"]["ips"] == ["10.0.0.1/24"]
    assert got["reservedFor"] == [{"resource": "pods", "name": "p", "uid": "u1"}]


def slice_message(name, **metadata):
    return make("ResourceSlice", metadata={"name": name, **metadata}, spec={
        "driver": "gpu.example.com", "nodeName": "n1",
        "pool": {"name": "n1", "generation": 1, "resourceSliceCount": 1},
        "devices": [{"name": f"d{number}",
                     "attributes": {"index": {"int": number}, "fast": {"bool": True},
                                    "model": {"string": "a"}, "fw": {"version": "1.2.3"}},
                     "capacity": {"memory": {"value": {"string": "40Gi"}}},
                     "taints": [{"key": "example.com/t", "effect": "NoSchedule",
                                 "timeAdded": {"seconds": 1700000000}}]}
                    for number in range(3)]})


def test_slices(api):
    owned = {"ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": "n1", "uid": "u",
                                  "controller": True}]}
    message = slice_message("s1")
    must(api, "POST", SLICES, V1, "ResourceSlice", message)
    got = api.must("GET", f"{SLICES}/s1")
    devices = got["spec"]["devices"]
    assert [device["attributes"]["index"] for device in devices] == [{"int": i} for i in range(3)]
    assert devices[0]["attributes"]["fw"] == {"version": "1.2.3"}
    assert devices[0]["capacity"]["memory"] == {"value": "40Gi"}
    assert devices[0]["taints"][0]["timeAdded"] == "2023-11-14T22:13:20Z"
    del message.spec.devices[1:]
    message.spec.pool.generation = 2
    must(api, "PUT", f"{SLICES}/s1", V1, "ResourceSlice", message)
    got = api.must("GET", f"{SLICES}/s1")
    assert (len(got["spec"]["devices"]), got["spec"]["pool"]["generation"]) == (1, 2)
    named = make("ResourceSlice")
    named.CopyFrom(message)
    named.metadata.ClearField("name")
    named.metadata.generateName = "n1-gpu-"
    must(api, "POST", SLICES, V1, "ResourceSlice", named)
    assert any(item["metadata"]["name"].startswith("n1-gpu-")
               for item in api.must("GET", SLICES)["items"])
    bad = slice_message("s2")
    bad.spec.devices[0].attributes["index"].string = "both"
    refused = send(api, "POST", SLICES, V1, "ResourceSlice", bad, "application/json")
    assert (refused.status, refused.doc["reason"]) == (422, "Invalid")
    orphan = slice_message("s3", **owned)  # the node of that uid is nowhere
    assert send(api, "POST", SLICES, V1, "ResourceSlice", orphan).status == 201


def test_slices_of_old_versions(api):
    old = f"{RESOURCE}/v1beta1/resourceslices"
    message = make("ResourceSliceV1beta1", metadata={"name": "s1"}, spec={
        "driver": "gpu.example.com", "nodeName": "n1",
        "pool": {"name": "n1", "generation": 1, "resourceSliceCount": 1},
        "devices": [{"name": "d0", "basic": {"attributes": {"a": {"int": 7}},
                                             "capacity": {"m": {"value": {"string": "1"}}}}}]})
    must(api, "POST", old, "resource.k8s.io/v1beta1", "ResourceSlice", message)
    device = api.must("GET", f"{SLICES}/s1")["spec"]["devices"][0]
    assert device["attributes"] == {"a": {"int": 7}}
    must(api, "POST", f"{RESOURCE}/v1beta2/resourceslices", "resource.k8s.io/v1beta2",
         "ResourceSlice", slice_message("s2"))
    assert api.must("GET", f"{old}/s2")["spec"]["devices"][2]["basic"]["attributes"]["index"] == \
        {"int": 2}


def test_the_other_kinds_of_the_group(api):
    spec = {"selectors": [{"cel": {"expression": "true"}}],
            "extendedResourceName": "x.example.com/g"}
    must(api, "POST", f"{RESOURCE}/v1/deviceclasses", V1, "DeviceClass",
         make("DeviceClass", metadata={"name": "gpu"}, spec=spec))
    got = api.must("GET", f"{RESOURCE}/v1/deviceclasses/gpu")
    assert got["spec"]["extendedResourceName"] == "x.example.com/g"
    template = make("ResourceClaimTemplate", metadata={"name": "t"}, spec={
        "metadata": {"labels": {"a": "b"}},
        "spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu"}}]}}})
    templates = f"{RESOURCE}/v1/namespaces/default/resourceclaimtemplates"
    must(api, "POST", templates, V1, "ResourceClaimTemplate", template)
    got = api.must("GET", f"{templates}/t")
    assert got["spec"]["metadata"]["labels"] == {"a": "b"}
    rule = make("DeviceTaintRule", metadata={"name": "r"}, spec={
        "deviceSelector": {"driver": "gpu.example.com", "device": "d0"},
        "taint": {"key": "example.com/k", "effect": "NoExecute"}})
    rules = f"{RESOURCE}/v1beta2/devicetaintrules"
    must(api, "POST", rules, "resource.k8s.io/v1beta2", "DeviceTaintRule", rule)
    got = api.must("GET", f"{rules}/r")
    assert got["spec"]["deviceSelector"] == {"driver": "gpu.example.com", "device": "d0"}
    assert got["spec"]["taint"]["effect"] == "NoExecute"


def test_leases(api):
    leases = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
    lease = make("Lease", metadata={"name": "l"}, spec={
        "holderIdentity": "me", "leaseDurationSeconds": 15,
        "renewTime": {"seconds": 1700000000, "nanos": 123456000}})
    must(api, "POST", leases, "coordination.k8s.io/v1", "Lease", lease)
    got = api.must("GET", f"{leases}/l")
    assert got["spec"]["renewTime"] == "2023-11-14T22:13:20.123456Z"
    lease.spec.leaseTransitions = 1
    without = send(api, "PUT", f"{leases}/l", "coordination.k8s.io/v1", "Lease", lease,
                   "application/json")
    assert without.status == 422, without
    lease.metadata.resourceVersion = got["metadata"]["resourceVersion"]
    must(api, "PUT", f"{leases}/l", "coordination.k8s.io/v1", "Lease", lease)
    late = send(api, "PUT", f"{leases}/l", "coordination.k8s.io/v1", "Lease", lease)
    assert late.status == 409


def test_events_of_both_groups(api):
    core = make("CoreEvent", metadata={"name": "e1", "namespace": "default"},
                involvedObject={"kind": "Pod", "namespace": "default", "name": "p"},
                reason="Failed", message="no devices", type="Warning", count=2,
                source={"component": "driver"}, firstTimestamp={"seconds": 1700000000},
                lastTimestamp={"seconds": 1700000000})
    must(api, "POST", "/api/v1/namespaces/default/events", CORE, "Event", core)
    new = "/apis/events.k8s.io/v1/namespaces/default/events"
    assert api.must("GET", f"{new}/e1")["note"] == "no devices"
    event = make("Event", metadata={"name": "e2", "namespace": "default"},
                 eventTime={"seconds": 1700000000, "nanos": 5000}, reportingController="x.io/c",
                 reportingInstance="c-1", action="Act", reason="Why", type="Normal", note="said",
                 regarding={"kind": "Pod", "namespace": "default", "name": "p"})
    must(api, "POST", new, "events.k8s.io/v1", "Event", event)
    got = api.must("GET", "/api/v1/namespaces/default/events/e2")
    assert (got["message"], got["reportingComponent"]) == ("said", "x.io/c")


def pod_message(name):
    return make("Pod", metadata={"name": name, "labels": {"a": "b"}}, spec={
        "containers": [{"name": "c", "image": "i", "env": [{"name": "K", "value": "V"}],
                        "resources": {"limits": {"cpu": {"string": "500m"}},
                                      "claims": [{"name": "x", "request": "r"}]}}],
        "resourceClaims": [{"name": "x", "resourceClaimName": "c1"}]})


def test_pods_and_bindings(api):
    must(api, "POST", PODS, CORE, "Pod", pod_message("p"))
    got = api.must("GET", f"{PODS}/p")
    container = got["spec"]["containers"][0]
    assert container["env"] == [{"name": "K", "value": "V"}]
    assert container["resources"]["claims"] == [{"name": "x", "request": "r"}]
    assert got["spec"]["resourceClaims"] == [{"name": "x", "resourceClaimName": "c1"}]
    binding = make("Binding", metadata={"name": "p", "namespace": "default",
                                        "uid": got["metadata"]["uid"]},
                   target={"kind": "Node", "name": "n1"})
    must(api, "POST", f"{PODS}/p/binding", CORE, "Binding", binding)
    got = api.must("GET", f"{PODS}/p")
    assert got["spec"]["nodeName"] == "n1"
    again = send(api, "POST", f"{PODS}/p/binding", CORE, "Binding", binding, "application/json")
    assert (again.status, again.doc["reason"]) == (409, "Conflict")
    message = pod_message("p")
    message.status.phase = "Running"
    message.spec.nodeName = "n1"
    must(api, "PUT", f"{PODS}/p/status", CORE, "Pod", message)
    assert api.must("GET", f"{PODS}/p")["status"]["phase"] == "Running"


def test_nodes(api):
    node = make("Node", metadata={"name": "w1"}, spec={"podCIDR": "10.0.0.0/24"})
    must(api, "POST", NODES, CORE, "Node", node)
    node.spec.unschedulable = True
    must(api, "PUT", f"{NODES}/w1", CORE, "Node", node)
    node.status.capacity["example.com/x"].string = "4"
    must(api, "PUT", f"{NODES}/w1/status", CORE, "Node", node)
    got = api.must("GET", f"{NODES}/w1")
    assert got["spec"]["unschedulable"] is True
    assert got["status"]["capacity"]["example.com/x"] == "4"


def test_options_of_deletes(api):
    must(api, "POST", SLICES, V1, "ResourceSlice", slice_message("s"))
    uid = api.must("GET", f"{SLICES}/s")["metadata"]["uid"]

    def delete(path, **options):
        return send(api, "DELETE", path, CORE, "DeleteOptions", make("DeleteOptions", **options),
                    "application/json")

    wrong = delete(f"{SLICES}/s", preconditions={"uid": "other"})
    assert (wrong.status, wrong.doc["reason"]) == (409, "Conflict")
    assert delete(f"{SLICES}/s", preconditions={"uid": uid}, dryRun=["All"]).status == 200
    api.must("GET", f"{SLICES}/s")
    assert delete(f"{SLICES}/s", preconditions={"uid": uid},
                  propagationPolicy="Background").status == 200
    api.refused(404, "GET", f"{SLICES}/s")
    bound = pod_message("p")
    bound.spec.nodeName = "n1"
    must(api, "POST", PODS, CORE, "Pod", bound)
    assert delete(f"{PODS}/p", gracePeriodSeconds=7).status == 200
    assert api.must("GET", f"{PODS}/p")["metadata"]["deletionGracePeriodSeconds"] == 7
    assert delete(f"{PODS}/p", gracePeriodSeconds=0).status == 200
    api.refused(404, "GET", f"{PODS}/p")
    for number in range(3):
        must(api, "POST", SLICES, V1, "ResourceSlice", slice_message(f"s{number}"))
    assert delete(SLICES).status == 200
    assert api.must("GET", SLICES)["items"] == []


def test_answers_in_protobuf(api):
    """Typed clients take JSON too; whoever asks for protobuf alone gets it, or 406."""
    must(api, "POST", SLICES, V1, "ResourceSlice", slice_message("s"))
    answer = api.ask("GET", f"{SLICES}/s", Accept=MEDIA_TYPE)
    if answer.status == 406:
        return
    assert answer.fields["Content-Type"] == MEDIA_TYPE
    version, kind, raw = unwrap(answer.body)
    assert (version, kind) == (V1, "ResourceSlice")
    got = TYPES["ResourceSlice"].FromString(raw)
    assert got.spec.devices[2].attributes["index"].int == 2
    assert got.spec.devices[0].capacity["memory"].value.string == "40Gi"
    assert got.metadata.uid == api.must("GET", f"{SLICES}/s")["metadata"]["uid"]
    _, kind, raw = unwrap(api.ask("GET", SLICES, Accept=MEDIA_TYPE).body)
    assert kind == "ResourceSliceList"
    listed = TYPES["ResourceSliceList"].FromString(raw)
    assert [item.metadata.name for item in listed.items] == ["s"]
    assert int(listed.metadata.resourceVersion) > 0
    _, kind, raw = unwrap(api.ask("GET", f"{SLICES}/nope", Accept=MEDIA_TYPE).body)
    status = TYPES["Status"].FromString(raw)
    assert (kind, status.code, status.reason) == ("Status", 404, "NotFound")


def test_watches_in_protobuf(api):
    must(api, "POST", SLICES, V1, "ResourceSlice", slice_message("s"))
    connection, answer = api.open("GET", f"{SLICES}?watch=1",
                                  Accept=f"{MEDIA_TYPE};stream=watch,application/json")
    assert answer.status == 200
    if answer.getheader("Content-Type").startswith("application/json"):
        assert json.loads(answer.readline())["type"] == "ADDED"
    else:
        size, = struct.unpack(">I", answer.read(4))
        event = TYPES["WatchEvent"].FromString(answer.read(size))
        assert event.type == "ADDED"
        _, kind, raw = unwrap(event.object.raw)
        assert kind == "ResourceSlice"
        assert TYPES["ResourceSlice"].FromString(raw).metadata.name == "s"
    connection.close()


def varint(value):
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def nested(depth):
    """A field 1 in a field 1 in a field 1 ..."""
    inner = b""
    for _ in range(depth):
        inner = b"\x0a" + varint(len(inner)) + inner
    return inner


GOOD = wrap(CORE, "ConfigMap", make("ConfigMap", metadata={"name": "m"}, data={"a": "b"}))


@pytest.mark.parametrize("body", [
    b"",
    b"k8s",
    b"k8s\x00",
    b"k8s\x01" + GOOD[4:],
    GOOD[:-3],
    GOOD[:20],
    b"k8s\x00" + b"\xff" * 40,
    b"k8s\x00\x12\xff\xff\xff\xff\x7f",
    b'{"metadata":{"name":"m"}}',
    wrap(CORE, "Secret", make("ConfigMap", metadata={"name": "m"})),
    wrap("v9", "ConfigMap", make("ConfigMap", metadata={"name": "m"})),
    wrap(CORE, "ConfigMap", TYPES["Unknown"](raw=nested(5000))),
    wrap(CORE, "ConfigMap", make("ConfigMap")),
    wrap(CORE, "ConfigMap", make("ConfigMap", metadata={"name": "Bad_Name"})),
], ids=range(14))
def test_broken_bodies_are_refused(api, body):
    answer = api.ask("POST", MAPS, body, Content_Type=MEDIA_TYPE)
    assert answer.status in (400, 422), answer
    assert answer.doc["kind"] == "Status" and answer.doc["message"]
    assert api.must("GET", MAPS)["items"] == []


def test_unknown_fields_are_passed_over(api):
    """A newer client knows more than we do."""
    message = make("ConfigMap", metadata={"name": "m"}, data={"a": "b"})
    raw = message.SerializeToString() + b"\xfa\x3f\x03abc" + b"\xf8\x3e\x01"
    body = b"k8s\x00" + TYPES["Unknown"](
        typeMeta=TYPES["TypeMeta"](apiVersion="v1", kind="ConfigMap"), raw=raw).SerializeToString()
    assert api.ask("POST", MAPS, body, Content_Type=MEDIA_TYPE).status == 201
    assert api.must("GET", f"{MAPS}/m")["data"] == {"a": "b"}
