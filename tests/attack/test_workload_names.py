"""Workloads whose names have all bytes that they may have still make their pods."""

import pytest
from procs import until
from servers import NODES, PATIENCE_S, PODS

APPS = "/apis/apps/v1/namespaces/default"


@pytest.mark.parametrize("kind", ["DaemonSet", "Deployment", "ReplicaSet"])
@pytest.mark.parametrize("name", ["x" * 253, "x" * 222 + "." + "x" * 30, "a." * 120 + "b"])
def test_a_long_name_makes_pods(api, kind, name):
    """A DaemonSet made none and said nothing: its revision would have had too long a name."""
    api.must("POST", NODES, {"metadata": {"name": "w1"}})
    labels = {"app": "x"}
    api.must("POST", f"{APPS}/{kind.lower()}s", {
        "apiVersion": "apps/v1", "kind": kind, "metadata": {"name": name},
        "spec": {"selector": {"matchLabels": labels}, "template": {
            "metadata": {"labels": labels},
            "spec": {"nodeSelector": {}, "containers": [{"name": "c", "image": "i"}]}}}})
    until(lambda: any(pod["metadata"]["labels"].get("app") == "x"
                      for pod in api.must("GET", PODS)["items"] if "labels" in pod["metadata"]),
          PATIENCE_S, f"a pod of the {kind}")
