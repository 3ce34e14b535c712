"""kubectl davit: the same program under another name, for any cluster; and explain for all of one."""

import json
import os
import subprocess
import threading

import pytest
from kubectls import OLD, find_kubectl
from procs import until
from runs import davit_path

CLASS = """\
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: gpu}
"""
NODE = """\
apiVersion: v1
kind: Node
metadata: {name: n1}
"""
SLICE = """\
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: n1-gpus}
spec:
  driver: gpu.example.com
  nodeName: n1
  pool: {name: n1, generation: 1, resourceSliceCount: 1}
  devices: [{name: gpu-0, attributes: {model: {string: small}}}]
"""


def claim_and_pod(name, namespace, model):
    selector = f'device.attributes["gpu.example.com"].model == "{model}"'
    return f"""\
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {{name: {name}, namespace: {namespace}}}
spec:
  devices:
    requests:
    - name: gpu
      exactly: {{deviceClassName: gpu, selectors: [{{cel: {{expression: '{selector}'}}}}]}}
---
apiVersion: v1
kind: Pod
metadata: {{name: {name}, namespace: {namespace}}}
spec:
  containers: [{{name: c, image: i, resources: {{claims: [{{name: g}}]}}}}]
  resourceClaims: [{{name: g, resourceClaimName: {name}}}]
"""


NAMESPACE = "apiVersion: v1\nkind: Namespace\nmetadata: {name: ml}\n"
WORLD = "---\n".join([NAMESPACE, CLASS, NODE, SLICE, claim_and_pod("big", "ml", "big"),
                      claim_and_pod("small", "default", "small")])


@pytest.fixture
def cluster(real):
    real.ok("apply", "-f", "-", stdin=WORLD)
    return real


class Plugin:
    """kubectl with kubectl-davit on its path, as a person has them, and a home with a kubeconfig."""

    def __init__(self, folder, config):
        self.folder = os.path.join(folder, "bin")
        os.makedirs(self.folder)
        os.symlink(davit_path(), os.path.join(self.folder, "kubectl-davit"))
        self.env = {**os.environ, "HOME": folder,
                    "PATH": f"{self.folder}:{os.environ['PATH']}"}
        self.env.pop("KUBECONFIG", None)
        os.makedirs(os.path.join(folder, ".kube"))
        os.symlink(config, os.path.join(folder, ".kube", "config"))

    def start(self, *words, **options):
        return subprocess.Popen([find_kubectl(OLD), "davit", *words], text=True, env=self.env,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options)

    def __call__(self, *words):
        done = self.start(*words)
        out, err = done.communicate(timeout=30)
        assert "Sanitizer" not in err, err
        return done.returncode, out, err


@pytest.fixture
def plugin(cluster, short_dir):
    return Plugin(short_dir, cluster.config)


def test_a_pod_is_explained_with_the_kubeconfig_of_kubectl(plugin):
    code, out, err = plugin("explain", "pod", "big", "-n", "ml")
    assert (code, err.strip()) in ((3, ""), (3, "exit status 3")), (code, out, err)
    assert "pod ml/big cannot be allocated on n1" in out
    assert 'device.attributes["gpu.example.com"].model = "small"' in out
    code, out, _ = plugin("explain", "pod", "big", "--context", "ml")  # the context's namespace
    assert "pod ml/big cannot be allocated" in out


def test_it_only_looks(plugin, cluster):
    for words in (["delete", "pod", "big", "-n", "ml"], ["apply", "-f", "x"], ["devices"],
                  ["token", "list"], ["state", "import"]):
        code, _, err = plugin(*words)
        assert code == 2 and "kubectl davit only looks" in err, (words, err)
    assert "small" in cluster.ok("get", "pods")
    code, out, _ = plugin("get", "pods", "-A")
    assert code == 0 and "big" in out and "small" in out


def test_without_a_kubeconfig_it_says_so(plugin, short_dir):
    os.unlink(os.path.join(short_dir, ".kube", "config"))
    code, _, err = plugin("explain", "--all-pending")
    assert code == 4 and "there is no" in err and ".kube/config" in err, err


def test_all_that_wait_in_a_cluster(cluster):
    done = cluster.run("explain", "--all-pending")
    assert (done.returncode, done.stderr) == (3, ""), done
    head, *lines = [line.split(None, 6) for line in done.stdout.splitlines()]
    assert head == ["NAMESPACE", "POD", "FITS", "NEAREST", "WHY"]
    assert lines[0][:6] == ["default", "small", "1", "of", "1", "n1"], lines
    assert lines[1][:6] == ["ml", "big", "0", "of", "1", "n1"], lines
    assert "request gpu: 1 wanted of 1: 1 request-selector" in lines[1][6], lines
    docs = json.loads(cluster.run("explain", "--all-pending", "-o", "json").stdout)
    assert {doc["subject"]: doc["canBeAllocated"] for doc in docs} == {
        "pod ml/big": False, "pod default/small": True}
    only = cluster.ok("explain", "--all-pending", "-n", "default")
    assert "small" in only and "big" not in only
    for pod in (["small"], ["big", "-n", "ml"]):
        assert cluster.run("delete", "pod", *pod, "--force").returncode == 0
    assert cluster.ok("explain", "--all-pending") == "no pod waits for its claims\n"


def test_watching_tells_what_changes_until_it_is_allocated(cluster, short_dir):
    watching = subprocess.Popen([davit_path(), "explain", "pod", "big", "-n", "ml", "-w"], text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                env={**os.environ, "KUBECONFIG": cluster.config})
    lines = []
    reader = threading.Thread(target=lambda: lines.extend(iter(watching.stdout.readline, "")))
    reader.start()
    try:
        until(lambda: "pod ml/big cannot be allocated on n1\n" in lines, 20, lambda: lines)
        cluster.ok("apply", "-f", "-", stdin=SLICE.replace("small", "big"))
        until(lambda: "pod ml/big can be allocated on n1\n" in lines, 20, lambda: lines)
        claim = json.loads(cluster.ok("get", "claim", "big", "-n", "ml", "-o", "json"))
        assert "allocation" not in claim.get("status", {})  # it only looks
        assert watching.poll() is None
    finally:
        watching.terminate()
        watching.wait(10)
        reader.join()


@pytest.mark.parametrize("words", [["--all-pending", "pod", "a"], ["pod", "a", "-w", "-o", "json"],
                                   ["pod", "a", "-w", "-f", "x"]])
def test_what_makes_no_sense(davit, words):
    done = davit.run("explain", *words)
    assert done.returncode == 2, done
