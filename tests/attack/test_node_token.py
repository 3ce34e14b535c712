"""A node's token in the wrong hands: each rule of the node authorizer and of NodeRestriction."""

import copy

import pytest

from servers import (CLAIMS, CORE, MAPS, NODES, PODS, RESOURCE, SLICES, claim, config_map,
                     device_slice)
from test_access import make_token

MERGE = "application/merge-patch+json"
SECRETS = f"{CORE}/namespaces/default/secrets"
ACCOUNTS = f"{CORE}/namespaces/default/serviceaccounts"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
CONTAINER = {"name": "c", "image": "i"}


@pytest.fixture
def thief(node, api):
    """Requests with the token of worker-1, which exists, as does worker-2."""
    api.must("POST", NODES, {"metadata": {"name": "worker-1"}, "spec": {
        "taints": [{"key": "a", "value": "b", "effect": "NoSchedule"}]}})
    api.must("POST", NODES, {"metadata": {"name": "worker-2"}})
    api.must("POST", SECRETS, {"metadata": {"name": "s"}, "stringData": {"k": "secret"}})
    api.must("POST", MAPS, config_map("m"))
    return node.api(token=make_token(node, "--node", "worker-1"))


def pod(name, node_name="worker-1", **spec):
    return {"metadata": {"name": name},
            "spec": {"containers": [CONTAINER], "nodeName": node_name, **spec}}


def mirror(api, name="m1", **spec):
    """A mirror pod as the node may make it."""
    uid = api.must("GET", f"{NODES}/worker-1")["metadata"]["uid"]
    made = pod(name, **spec)
    made["metadata"]["annotations"] = {"kubernetes.io/config.mirror": "x"}
    made["metadata"]["ownerReferences"] = [
        {"apiVersion": "v1", "kind": "Node", "name": "worker-1", "uid": uid, "controller": True}]
    return made


def refused(who, method, path, body=None, why="", code=403, **fields):
    if method == "PATCH":
        fields.setdefault("Content_Type", MERGE)
    doc = who.refused(code, method, path, body, **fields)
    assert why in doc["message"], doc
    return doc


def test_an_ordinary_pod_is_not_made(thief, api):
    """The first step to any secret: a pod that mounts it."""
    stolen = pod("p", volumes=[{"name": "v", "secret": {"secretName": "s"}}])
    for space in ("default", "kube-system"):
        refused(thief, "POST", f"{CORE}/namespaces/{space}/pods", stolen, "can only create mirror")
        refused(thief, "POST", f"{CORE}/namespaces/{space}/pods?dryRun=All", stolen,
                "can only create mirror")
    refused(thief, "PATCH", f"{PODS}/p?fieldManager=x", stolen | {
        "apiVersion": "v1", "kind": "Pod"}, Content_Type="application/apply-patch+yaml")
    refused(thief, "GET", f"{SECRETS}/s", None, "no relationship found")
    assert api.must("GET", PODS)["items"] == []


def test_large_writes_are_looked_at_too(thief, api):
    """What is computed beside the loop is refused like what is computed on it."""
    large = {"annotations": {"x": "y" * 100000}}
    stolen = pod("p", volumes=[{"name": "v", "secret": {"secretName": "s"}}])
    stolen["metadata"] |= large
    refused(thief, "POST", PODS, stolen, "can only create mirror")
    theirs = pod("theirs", "worker-2")
    theirs["metadata"] |= large
    api.must("POST", PODS, theirs)
    refused(thief, "PATCH", f"{PODS}/theirs/status", {"status": {"phase": "Failed"}},
            "can only update pod status")
    refused(thief, "DELETE", f"{PODS}/theirs", None, "can only delete pods")
    refused(thief, "PATCH", f"{NODES}/worker-1", {"metadata": large, "spec": {"taints": []}},
            "is not allowed to modify taints")
    refused(thief, "PATCH", f"{NODES}/worker-2", {"metadata": large},
            "is not allowed to modify node")


# What a mirror pod may not have: a change of a good one, and the reference's word for it.
REFERENCES = [
    ({"serviceAccountName": "default"}, "serviceaccounts"),
    ({"serviceAccount": "default"}, "serviceaccounts"),
    ({"imagePullSecrets": [{"name": "s"}]}, "secrets"),
    ({"volumes": [{"name": "v", "secret": {"secretName": "s"}}]}, "secrets"),
    ({"volumes": [{"name": "v", "configMap": {"name": "m"}}]}, "configmaps"),
    ({"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]},
     "persistentvolumeclaims"),
    ({"volumes": [{"name": "v", "csi": {"driver": "d", "nodePublishSecretRef": {"name": "s"}}}]},
     "secrets"),
    ({"volumes": [{"name": "v", "projected": {"sources": [{"secret": {"name": "s"}}]}}]},
     "secrets"),
    ({"volumes": [{"name": "v", "projected": {"sources": [{"configMap": {"name": "m"}}]}}]},
     "configmaps"),
    ({"volumes": [{"name": "v", "projected": {"sources": [
        {"serviceAccountToken": {"path": "t"}}]}}]}, "serviceaccounts (via projected volumes)"),
    ({"containers": [CONTAINER | {"envFrom": [{"secretRef": {"name": "s"}}]}]}, "secrets"),
    ({"containers": [CONTAINER | {"envFrom": [{"configMapRef": {"name": "m"}}]}]}, "configmaps"),
    ({"containers": [CONTAINER | {"env": [{"name": "E", "valueFrom": {
        "secretKeyRef": {"name": "s", "key": "k"}}}]}]}, "secrets"),
    ({"initContainers": [{"name": "i", "image": "i", "env": [{"name": "E", "valueFrom": {
        "configMapKeyRef": {"name": "m", "key": "k"}}}]}]}, "configmaps"),
    ({"ephemeralContainers": [{"name": "e", "image": "i",
                               "envFrom": [{"secretRef": {"name": "s"}}]}]}, "secrets"),
    ({"resourceClaims": [{"name": "r", "resourceClaimName": "c"}]}, "resourceclaims"),
    ({"resourceClaims": [{"name": "r", "resourceClaimTemplateName": "t"}]}, "resourceclaims"),
]


def test_a_mirror_pod_refers_to_nothing(thief, api):
    for change, what in REFERENCES:
        refused(thief, "POST", PODS, mirror(api, **change),
                f'node "worker-1" can not create pods that reference {what}')
    thief.must("POST", PODS, mirror(api))
    # Nor may an administrator make one for it.
    api.refused(403, "POST", PODS, mirror(api, "m2", volumes=[
        {"name": "v", "secret": {"secretName": "s"}}]))
    refused(thief, "GET", f"{SECRETS}/s", None, "no relationship found")


def test_a_mirror_pod_is_owned_by_its_node(thief, api):
    good = mirror(api)

    def change(edit):
        made = copy.deepcopy(good)
        edit(made["metadata"]["ownerReferences"], made)
        return made

    rows = [
        (lambda refs, _: refs.clear(), "with an owner reference set to itself"),
        (lambda refs, _: refs.append(refs[0] | {"uid": "x", "controller": False}), "with a single owner reference"),
        (lambda refs, _: refs[0].update(name="worker-2"), "with an owner reference set to itself"),
        (lambda refs, _: refs[0].update(kind="Pod"), "with an owner reference set to itself"),
        (lambda refs, _: refs[0].update(uid="x"), "UID mismatch"),
        (lambda refs, _: refs[0].update(controller=False), "with a controller owner reference"),
        (lambda refs, _: refs[0].update(blockOwnerDeletion=True), "blockOwnerDeletion"),
        (lambda _, made: made["spec"].update(nodeName="worker-2"), "spec.nodeName set to itself"),
        (lambda _, made: made["spec"].pop("nodeName"), "spec.nodeName set to itself"),
    ]
    for edit, why in rows:
        refused(thief, "POST", PODS, change(edit), why)
    assert api.must("GET", PODS)["items"] == []


def test_secrets_are_those_of_its_pods_in_their_namespace(thief, api):
    api.must("POST", f"{CORE}/namespaces", {"metadata": {"name": "other"}})
    for space in ("default", "other"):
        api.ask("POST", f"{CORE}/namespaces/{space}/secrets", {"metadata": {"name": "used"}})
    api.must("POST", PODS, pod("mine", volumes=[{"name": "v", "secret": {"secretName": "used"}}]))
    api.must("POST", PODS, pod("theirs", "worker-2", imagePullSecrets=[{"name": "s"}]))
    thief.must("GET", f"{SECRETS}/used")
    assert len(thief.must("GET", f"{SECRETS}?fieldSelector=metadata.name%3Dused")["items"]) == 1
    for kind in ("secrets", "configmaps"):
        everywhere = f"{CORE}/{kind}"
        for path in (f"{everywhere}?fieldSelector=metadata.name%3Dused", everywhere,
                     f"{everywhere}?fieldSelector=metadata.name%3Dused&watch=true",
                     f"{CORE}/watch/{kind}?fieldSelector=metadata.name%3Dused"):
            refused(thief, "GET", path, None, "can only read namespaced object")
    # A comma that is escaped ends no term: this demands no name.
    trick = "metadata.namespace!%3Da%5C,metadata.name%3Dused"
    for path in (f"{SECRETS}/s", SECRETS, f"{SECRETS}?fieldSelector=metadata.name%3Ds",
                 f"{SECRETS}?fieldSelector={trick}", f"{SECRETS}?fieldSelector={trick}&watch=1",
                 f"{SECRETS}?fieldSelector=metadata.name!%3Dused",
                 f"{SECRETS}?labelSelector=a", f"{CORE}/namespaces/other/secrets/used"):
        refused(thief, "GET", path)
    for method, path, body in (("PUT", f"{SECRETS}/used", {"metadata": {"name": "used"}}),
                               ("PATCH", f"{SECRETS}/used", {"data": None}),
                               ("DELETE", f"{SECRETS}/used", None), ("DELETE", SECRETS, None),
                               ("POST", SECRETS, {"metadata": {"name": "new"}})):
        refused(thief, method, path, body, "can only read resources of this type")
    api.must("DELETE", f"{PODS}/mine?gracePeriodSeconds=0")
    refused(thief, "GET", f"{SECRETS}/used", None, "no relationship found")


def test_pods_are_its_own(thief, api):
    api.must("POST", PODS, pod("mine"))
    api.must("POST", PODS, pod("theirs", "worker-2"))
    api.must("POST", PODS, {"metadata": {"name": "free"}, "spec": {
        "containers": [CONTAINER], "schedulingGates": [{"name": "a.b/c"}]}})
    trick = "status.phase!%3Da%5C,spec.nodeName%3Dworker-1"
    for name in ("theirs", "free"):
        refused(thief, "GET", f"{PODS}/{name}", None, "no relationship found")
        refused(thief, "DELETE", f"{PODS}/{name}", None, "can only delete pods with spec.nodeName")
        refused(thief, "PATCH", f"{PODS}/{name}/status", {"status": {"phase": "Failed"}},
                "can only update pod status for pods with spec.nodeName set to itself")
        refused(thief, "POST", f"{PODS}/{name}/eviction", {
            "apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}},
                "can only evict pods")
        refused(thief, "POST", f"{PODS}/{name}/binding", {
            "metadata": {"name": name}, "target": {"kind": "Node", "name": "worker-1"}})
    for path in (PODS, f"{CORE}/pods", f"{PODS}?fieldSelector=spec.nodeName%3Dworker-2",
                 f"{PODS}?fieldSelector={trick}", f"{CORE}/pods?fieldSelector={trick}&watch=true",
                 f"{CORE}/pods?fieldSelector=metadata.name%3Dmine"):
        refused(thief, "GET", path)
    refused(thief, "DELETE", f"{PODS}?fieldSelector=spec.nodeName%3Dworker-1")
    refused(thief, "PATCH", f"{PODS}/mine", {"metadata": {"labels": {"a": "b"}}})
    assert thief.must("GET", f"{PODS}?fieldSelector=metadata.name%3Dmine")["items"]
    # One that is going already is told to nobody either.
    api.must("DELETE", f"{PODS}/theirs?gracePeriodSeconds=3600")
    refused(thief, "DELETE", f"{PODS}/theirs?gracePeriodSeconds=7200", None, "can only delete")
    refused(thief, "DELETE", f"{PODS}/theirs", {"preconditions": {"uid": "x"}}, "can only delete")


def test_a_status_changes_no_labels_and_no_claims(thief, api):
    api.must("POST", CLAIMS, claim("c"))
    api.must("POST", PODS, pod("mine", resourceClaims=[
        {"name": "r", "resourceClaimTemplateName": "t"}]))
    status = f"{PODS}/mine/status"
    rows = [
        ({"metadata": {"labels": {"a": "b"}}}, "cannot update labels through pod status"),
        ({"status": {"resourceClaimStatuses": [{"name": "r", "resourceClaimName": "c"}]}},
         "cannot update resource claim statues"),
        ({"status": {"extendedResourceClaimStatus": {
            "resourceClaimName": "c", "requestMappings": []}}},
         "cannot update extended resource claim status"),
    ]
    for body, why in rows:
        refused(thief, "PATCH", status, body, why)
        whole = thief.must("GET", f"{PODS}/mine")
        for part, fields in body.items():
            whole[part] |= fields
        refused(thief, "PUT", status, whole, why)
    refused(thief, "GET", f"{CLAIMS}/c", None, "no relationship found")
    answer = thief.ask("PATCH", status, '{"status": {"phase": "Running"}}', Content_Type=MERGE)
    assert answer.status == 200, answer


def test_a_pod_stays_what_it_is(thief, api):
    """A mirror pod has quotas and no secrets; nobody makes it another, and no other one of it."""
    thief.must("POST", PODS, mirror(api))
    api.must("POST", PODS, pod("mine"))
    rows = [("m1", None, "may not remove or update mirror pod annotation"),
            ("m1", "y", "may not remove or update mirror pod annotation"),
            ("mine", "y", "may not add mirror pod annotation")]
    for name, value, why in rows:
        body = {"metadata": {"annotations": {"kubernetes.io/config.mirror": value}}}
        before = api.must("GET", f"{PODS}/{name}")
        for who, path in ((thief, f"{PODS}/{name}/status"), (api, f"{PODS}/{name}/status"),
                          (api, f"{PODS}/{name}")):
            refused(who, "PATCH", path, body,
                    f"metadata.annotations[kubernetes.io/config.mirror]: Forbidden: {why}", 422)
        assert api.must("GET", f"{PODS}/{name}") == before
    api.must("PATCH", f"{PODS}/m1/status", {"metadata": {"annotations": {"a": "b"}}},
             Content_Type=MERGE)


LABELS = ["node-restriction.kubernetes.io/a", "x.node-restriction.kubernetes.io/a",
          "kubernetes.io/foo", "k8s.io/foo", "x.k8s.io/foo", "topology.kubernetes.io/rack",
          "node-role.kubernetes.io/control-plane"]


def test_a_node_does_not_steer_pods_to_itself(thief, api):
    own = f"{NODES}/worker-1"
    for path in (own, f"{own}/status"):
        for label in LABELS:
            refused(thief, "PATCH", path, {"metadata": {"labels": {label: "x"}}},
                    f"is not allowed to modify labels: {label}")
        for taints in ([], [{"key": "a", "value": "c", "effect": "NoSchedule"}]):
            refused(thief, "PATCH", path, {"spec": {"taints": taints}},
                    "is not allowed to modify taints")
        refused(thief, "PATCH", path, {"metadata": {"ownerReferences": [
            {"apiVersion": "v1", "kind": "Node", "name": "worker-2", "uid": "u"}]}},
                "is not allowed to modify ownerReferences")
    refused(thief, "PATCH", own, {"spec": {"configSource": {"configMap": {
        "name": "a", "namespace": "b", "kubeletConfigKey": "c"}}}}, "configSource")
    api.ask("PATCH", own, '{"metadata": {"labels": {"node-restriction.kubernetes.io/a": "b"}}}',
            Content_Type=MERGE)
    for value in (None, "c"):
        refused(thief, "PATCH", own, {"metadata": {
            "labels": {"node-restriction.kubernetes.io/a": value}}}, "modify labels")
    whole = thief.must("GET", own)
    del whole["metadata"]["labels"]
    refused(thief, "PUT", own, whole, "modify labels")
    for method, path in (("PATCH", f"{NODES}/worker-2"), ("PATCH", f"{NODES}/worker-2/status")):
        refused(thief, method, path, {"metadata": {"annotations": {"a": "b"}}},
                "is not allowed to modify node")
    for label in ("kubernetes.io/hostname", "example.com/a", "node.kubernetes.io/x"):
        answer = thief.ask("PATCH", own, f'{{"metadata": {{"labels": {{"{label}": "x"}}}}}}',
                           Content_Type=MERGE)
        assert answer.status == 200, answer


def test_a_new_node_is_itself_without_such_labels(thief, api):
    refused(thief, "POST", NODES, {"metadata": {"name": "worker-3"}}, "not allowed to modify node")
    api.must("DELETE", f"{NODES}/worker-1")
    for label in LABELS:
        body = {"metadata": {"name": "worker-1", "labels": {label: "x", "plain": "y"}}}
        refused(thief, "POST", NODES, body, f"set the following labels: {label}")
        refused(thief, "PATCH", f"{NODES}/worker-1?fieldManager=x",
                body | {"apiVersion": "v1", "kind": "Node"}, f"the following labels: {label}",
                Content_Type="application/apply-patch+yaml")
    thief.must("POST", NODES, {"metadata": {"name": "worker-1"}, "spec": {
        "taints": [{"key": "a", "effect": "NoSchedule"}]}})
    for method in ("DELETE", "GET"):
        refused(thief, method, NODES)
    refused(thief, "DELETE", f"{NODES}/worker-1")


def test_leases_slices_and_claims_are_its_own(thief, api):
    refused(thief, "POST", LEASES, {"metadata": {"name": "worker-2"}}, "same name as")
    refused(thief, "POST", LEASES.replace("kube-node-lease", "default"),
            {"metadata": {"name": "worker-1"}}, "system namespace")
    refused(thief, "GET", f"{LEASES}?fieldSelector=metadata.name%3Dworker-1")
    api.must("POST", SLICES, device_slice("other", "worker-2"))
    api.must("POST", CLAIMS, claim("c"))
    for path in (SLICES, f"{SLICES}/other", f"{SLICES}?fieldSelector=spec.nodeName%3Dworker-2",
                 f"{SLICES}?fieldSelector=spec.driver!%3Da%5C,spec.nodeName%3Dworker-1",
                 f"{CLAIMS}/c", CLAIMS, f"{CLAIMS}?fieldSelector=metadata.name%3Dc",
                 f"{RESOURCE}/v1/deviceclasses"):
        refused(thief, "GET", path)
    refused(thief, "POST", SLICES, device_slice("new", "worker-2"), "can only create ResourceSlice")
    squat = device_slice("new", "worker-1")
    squat["spec"]["pool"]["name"] = "worker-2"
    refused(thief, "POST", SLICES, squat, "the name of another node")
    refused(thief, "DELETE", f"{SLICES}/other")
    refused(thief, "PATCH", f"{CLAIMS}/c/status", {"status": {"reservedFor": []}})
    refused(thief, "PATCH", f"{CLAIMS}/c", {"metadata": {"labels": {"a": "b"}}})


def test_tokens_are_for_its_own_pods(thief, api):
    for name in ("used", "free"):
        api.must("POST", ACCOUNTS, {"metadata": {"name": name}})
    volume = {"name": "v", "projected": {"sources": [
        {"serviceAccountToken": {"path": "t", "audience": "vault"}}]}}
    # Without the volume that every pod gets, which wants a token of no audience.
    account = {"serviceAccountName": "used", "automountServiceAccountToken": False}
    mine = api.must("POST", PODS, pod("mine", volumes=[volume], **account))
    theirs = api.must("POST", PODS, pod("theirs", "worker-2", volumes=[volume], **account))

    def wish(made, audiences=("vault",), **ref):
        bound = {"apiVersion": "v1", "kind": "Pod", "name": made["metadata"]["name"],
                 "uid": made["metadata"]["uid"], **ref}
        return {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest",
                "spec": {"audiences": list(audiences), "boundObjectRef": bound}}

    free = wish(mine)
    del free["spec"]["boundObjectRef"]
    rows = [
        (free, "not bound to a pod"),
        (wish(mine, kind="Secret"), "not bound to a pod"),
        (wish(mine, uid=""), "without a uid"),
        (wish(mine, uid="x"), "does not match the UID in record"),
        (wish(theirs), "a pod scheduled on a different node"),
        (wish(mine, ["vault", "other"]), "0 or 1 audiences"),
        (wish(mine, ["other"]), 'audience "other" not found in pod spec volume'),
        (wish(mine, []), 'audience "" not found in pod spec volume'),
    ]
    for body, why in rows:
        refused(thief, "POST", f"{ACCOUNTS}/used/token", body, why)
    refused(thief, "POST", f"{ACCOUNTS}/used/token", wish(mine, name="gone"), "not found", 404)
    refused(thief, "POST", f"{ACCOUNTS}/free/token", wish(mine), "no relationship found")
    refused(thief, "GET", f"{ACCOUNTS}/free", None, "no relationship found")
    assert thief.must("POST", f"{ACCOUNTS}/used/token", wish(mine))["status"]["token"]


def test_a_node_may_not_make_tokens_or_impersonate(thief):
    refused(thief, "GET", "/davit/v1/tokens")
    refused(thief, "POST", "/davit/v1/tokens", {"admin": "me"})
    refused(thief, "GET", f"{NODES}/worker-2", Impersonate_User="root",
            Impersonate_Group="system:masters")
