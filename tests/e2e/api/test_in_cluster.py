"""A driver that knows in-cluster configuration only: a plain process that finds a token and a CA where pods
have them, and the server in its environment. Debian's Python client, as drivers use it."""

import json
import os
import shutil
import subprocess
import sys

import pytest
from nodes import run_davit
from servers import SLICES

ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"
DRIVER = """
import json, sys
from kubernetes import client, config

config.load_incluster_config()
api = client.CustomObjectsApi()
slice_ = json.load(sys.stdin)
made = api.create_cluster_custom_object("resource.k8s.io", "v1", "resourceslices", slice_)
seen = api.list_cluster_custom_object("resource.k8s.io", "v1", "resourceslices",
                                      field_selector="spec.driver=gpu.example.com,spec.nodeName=n1")
try:
    client.CoreV1Api().list_namespaced_secret("default")
    secrets = "can be read"
except client.exceptions.ApiException as error:
    secrets = error.status
print(json.dumps({"made": made["metadata"]["name"], "seen": len(seen["items"]), "secrets": secrets}))
"""
SLICE = {
    "apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice",
    "metadata": {"name": "n1-gpu.example.com"},
    "spec": {"driver": "gpu.example.com", "nodeName": "n1",
             "pool": {"name": "n1", "generation": 1, "resourceSliceCount": 1},
             "devices": [{"name": "gpu-0"}]},
}


def run_as_in_a_pod(account, port, program, stdin):
    """In a mount namespace of its own, where /run is empty but for the account."""
    script = (f"mount -t tmpfs none /run && mkdir -p {ACCOUNT} && mount --bind {account} {ACCOUNT} && "
              f"exec {sys.executable} -c \"$0\"")
    return subprocess.run(
        ["unshare", "-m", "sh", "-c", script, program], input=stdin, capture_output=True, text=True,
        timeout=60, check=False,
        env={**os.environ, "KUBERNETES_SERVICE_HOST": "127.0.0.1",
             "KUBERNETES_SERVICE_PORT": str(port)})


@pytest.mark.skipif(os.geteuid() != 0, reason="mounts are root's")
def test_a_driver_with_a_mounted_token_publishes_its_devices(node, api, short_dir):
    account = os.path.join(short_dir, "account")
    os.makedirs(account)
    api.must("POST", "/api/v1/nodes", {"metadata": {"name": "n1"}})
    done = run_davit("token", "create", "--driver", "gpu.example.com", "--node", "n1",
                     "--kubeconfig", node.kubeconfig)
    assert done.returncode == 0, done
    with open(os.path.join(account, "token"), "w", encoding="ascii") as file:
        file.write(done.stdout.rstrip("\n"))  # not every client takes a line
    shutil.copy(os.path.join(node.state_dir, "pki", "ca.crt"), account)
    with open(os.path.join(account, "namespace"), "w", encoding="ascii") as file:
        file.write("default")
    done = run_as_in_a_pod(account, api.port, DRIVER, json.dumps(SLICE))
    assert done.returncode == 0, done
    assert json.loads(done.stdout) == {"made": "n1-gpu.example.com", "seen": 1, "secrets": 403}
    assert [one["spec"]["driver"] for one in api.must("GET", SLICES)["items"]] == ["gpu.example.com"]
    assert not os.path.exists(ACCOUNT)  # nothing is left on the machine
