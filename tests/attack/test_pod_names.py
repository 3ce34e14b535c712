"""Names of a pod are the same wherever they are kept: what would end or break them is refused."""

import grpc
import pytest

DEV = "example.com/gpu"


def pod(container="c", resource=DEV, annotations=None, **metadata):
    return {"apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": "p", "namespace": "default", "uid": "u",
                         "annotations": annotations or {}, **metadata},
            "spec": {"containers": [{"name": container, "image": "i", "resources": {
                "limits": {resource: "1"}}}]}}


def test_two_uids_are_never_one(node, plugins):
    """A uid with a zero byte was admitted as what is before it, which was another pod."""
    plugins(node, DEV, ["g0", "g1"]).register()
    node.wait_devices(DEV, 2, 60)
    assert node.admit(pod(uid="a")).admitted
    for bad in ("\0", "\n", "\x1b", "\x7f"):
        text = f"a{bad}b"
        for body, where in ((pod(uid=text), "uid"), (pod(namespace=text), "namespace"),
                            (pod(name=text), "name"), (pod(container=text), "containers[0].name"),
                            (pod(resource=f"{DEV}{bad}"), "resource"),
                            (pod(annotations={"davit.node/owner-cgroup": f"/a{bad}"}),
                             "owner-cgroup")):
            with pytest.raises(grpc.RpcError) as refusal:
                node.admit(body)
            assert refusal.value.code() == grpc.StatusCode.INVALID_ARGUMENT, refusal.value
            assert where in refusal.value.details(), (bad, refusal.value.details())
            assert "control character" in refusal.value.details(), refusal.value.details()
    answer = node.admit(pod(uid="b"))
    assert answer.admitted and answer.pod.uid == "b", answer
