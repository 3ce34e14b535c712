"""Logs, exec, attach and port-forward of a pod on another node than that of the API: the API asks the
node's own API, and hands on what it answers. All containers run on n2; n1 has the API."""

import hashlib
import json
import os
import re
import subprocess
import time
import urllib.request

import pytest
import websocket
from bound_pods import SecondNode
from kubectls import Kubectl, find_kubectl
from node_apis import make_token
from peers import SANITIZER, folder_of
from procs import until
from runtime_nodes import WAIT_S, RuntimeNode, container, pod
from servers import NODES, PODS, merge_patch

KEY = "davit.node/api-key"


@pytest.fixture(autouse=True)
def no_quarantine(monkeypatch):
    """A sanitizer that keeps all that is freed would look like a leak."""
    monkeypatch.setenv("ASAN_OPTIONS", SANITIZER["ASAN_OPTIONS"])


@pytest.fixture
def new_node(containerd):
    """n1, which runs no pods: they would be those of n2's runtime."""
    class First(RuntimeNode):
        def __init__(self, procs, root, *options):
            super().__init__(procs, root, containerd, *options)
            self.cri = "none"

    return First


class RemoteNode(SecondNode):
    def start(self, *more, ready=True):
        return super().start("--pod-logs-dir", os.path.join(self.root, "logs"), *more, ready=ready)


@pytest.fixture
def there(node, procs, short_dir, containerd):
    made = RemoteNode(procs, short_dir, node)
    made.cri = f"unix://{containerd.socket}"
    made.start("--node-listen", "0.0.0.0:0")
    until(lambda: KEY in annotations(node), WAIT_S, "n2 says where its API is")
    yield made
    made.close()


def annotations(node):
    answer = node.api().ask("GET", f"{NODES}/n2")
    return answer.doc["metadata"].get("annotations", {}) if answer.status == 200 else {}


def add(node, name, *containers, **spec):
    node.add(pod(name, *containers, node="n2", **spec))
    return node.wait_phase(name, "Running")


@pytest.fixture(params=["new", pytest.param("old", marks=pytest.mark.plain), "davit"])
def client(request, node, short_dir):
    if request.param == "davit":
        return Kubectl(os.path.join(folder_of("DAVIT_BUILD"), "davit"), node.kubeconfig, short_dir,
                       is_old=False)
    return Kubectl(find_kubectl(request.param), node.kubeconfig, short_dir,
                   is_old=request.param == "old")


def run(client, *words, stdin=b"", status=0):
    done = subprocess.run([client.program, *words], input=stdin, capture_output=True,
                          timeout=WAIT_S, env=client.env, check=False)
    assert done.returncode == status, (words, done)
    return done


SERVER = "mkdir -p /www; dd if=/dev/urandom of=/www/large bs=1M count=20 2>/dev/null; " \
         "sha256sum /www/large; echo ready; httpd -p 8080 -h /www; " \
         "while read line; do echo got $line; done; sleep 1000"


def test_everything_reaches_it(node, there, client, procs):
    add(node, "p", container(script=SERVER, stdin=True))
    log = lambda: run(client, "logs", "p").stdout.decode()  # noqa: E731
    until(lambda: "ready" in log(), WAIT_S, "its log")
    digest = log().split()[0]
    assert run(client, "logs", "--tail=1", "p").stdout == b"ready\n"
    done = run(client, "exec", "-i", "p", "--", "sh", "-c", "cat; echo err >&2; exit 5",
               stdin=b"in\n" * 100000, status=5)
    assert done.stdout == b"in\n" * 100000 and b"err\n" in done.stderr
    missing = subprocess.run([client.program, "exec", "p", "-c", "other", "--", "true"],
                             capture_output=True, timeout=WAIT_S, env=client.env, check=False)
    assert b"container other is not valid for pod p" in missing.stderr
    follower = client.start(procs, "logs", "-f", "--tail=0", "p")
    attached = client.start(procs, "attach", "-i", "p")

    def hears():
        attached.write_line("hello")
        return any("got hello" in line for line in list(follower.lines))
    until(hears, WAIT_S, "what is attached is logged")
    forward = client.start(procs, "port-forward", "p", ":8080")
    until(lambda: any("Forwarding" in line for line in list(forward.lines)), WAIT_S, "it listens")
    port = re.search(r"127\.0\.0\.1:(\d+)", "\n".join(forward.lines)).group(1)
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/large", timeout=WAIT_S) as answer:
        assert hashlib.sha256(answer.read()).hexdigest() == digest
    follower.kill()


def test_the_node_dies_under_its_streams(node, there, procs, short_dir):
    kubectl = Kubectl(find_kubectl("new"), node.kubeconfig, short_dir, is_old=False)
    add(node, "p", container(script="echo begun; sleep 1000"))
    running = kubectl.start(procs, "exec", "p", "--", "sh", "-c", "echo begun; sleep 1000")
    running.wait_line("begun")
    follower = kubectl.start(procs, "logs", "-f", "p")
    follower.wait_line("begun")
    there.kill()
    assert running.wait(WAIT_S) != 0
    follower.wait(WAIT_S)
    refused = run(kubectl, "exec", "p", "--", "true", status=1).stderr
    assert b"error dialing backend: " in refused and b"onnection refused" in refused, refused
    answer = node.api().ask("GET", f"{PODS}/p/log")
    assert answer.status == 500 and "onnection refused" in answer.doc["message"], answer
    there.start("--node-listen", "0.0.0.0:0")  # with another key, on another port
    until(lambda: node.api().ask("GET", f"{PODS}/p/log").body == b"begun\n", WAIT_S,
          "it is found again")


def connect(node, path, token=None):
    return websocket.create_connection(
        f"wss://{node.listen}{path}", subprotocols=["v5.channel.k8s.io"], timeout=60,
        sslopt={"ca_certs": os.path.join(node.state_dir, "pki", "ca.crt")},
        header={"Authorization": f"Bearer {token or node.token}"})


def test_who_does_not_read_holds_up_the_node(node, there):
    add(node, "p", container(script="yes abcdefghijklmnopqrstuvwxyz"))
    before = node.proc.rss_bytes()
    streams = [connect(node, f"{PODS}/p/exec?command=cat&command=/dev/zero&stdout=1")
               for _ in range(5)]
    logs = []
    for _ in range(5):
        logs.append(node.api().connect())
        logs[-1].request("GET", f"{PODS}/p/log?follow=true",
                         headers={"Authorization": f"Bearer {node.token}"})
    for one in logs:
        assert len(one.getresponse().read(1 << 20)) == 1 << 20  # then no more
    for one in streams:
        assert len(one.recv()) > 0
    quiet = 0
    last = None
    while quiet < 5:  # what goes through comes to a stop
        with open(f"/proc/{node.proc.pid}/io", encoding="ascii") as file:
            read = int(re.search(r"rchar: (\d+)", file.read()).group(1))
        quiet = quiet + 1 if last is not None and read - last < 1 << 20 else 0
        last = read
        time.sleep(0.2)
    assert node.proc.rss_bytes() - before < 200 << 20  # with sanitizers; /dev/zero has more
    assert node.api().ask("GET", f"{PODS}/p").status == 200
    for one in streams:
        one.close()
    for one in logs:
        one.close()


def refused(node, path):
    """The Status for a client that wants to leave HTTP."""
    answer = node.api().ask("POST", path, Connection="Upgrade", Upgrade="SPDY/3.1",
                            X_Stream_Protocol_Version="v4.channel.k8s.io")
    return answer.status, answer.doc["message"]


def patch_node(node, key, **status):
    merge_patch(node.api(), f"{NODES}/n2", {"metadata": {"annotations": {KEY: key}}})
    merge_patch(node.api(), f"{NODES}/n2/status", {"status": status})


def test_only_the_node_itself_is_talked_to(node, there):
    add(node, "p")
    key = annotations(node)[KEY]
    there.stop()
    path = f"{PODS}/p/exec?command=true&stdout=1"
    # n1's own API has TLS too, and another key: it gets no request, and no token.
    port = {"daemonEndpoints": {"kubeletEndpoint": {"Port": int(node.listen.rpartition(":")[2])}}}
    patch_node(node, key, addresses=[{"type": "InternalIP", "address": "127.0.0.1"}], **port)
    answer = node.api().ask("GET", f"{PODS}/p/log")
    assert answer.status == 500 and "another key" in answer.doc["message"], answer
    assert refused(node, path)[0] == 500 and "another key" in refused(node, path)[1]
    for key, status, text in (("nonsense", 500, "no pin of a key"),
                              ("/etc/passwd", 500, "no pin of a key"),
                              (None, 503, f"its annotation {KEY} is missing")):
        patch_node(node, key, **port)
        assert refused(node, path)[0] == status and text in refused(node, path)[1], key
    patch_node(node, None, daemonEndpoints={"kubeletEndpoint": {"Port": 0}})
    assert refused(node, path)[0] == 503 and "--node-listen" in refused(node, path)[1]
    assert node.api().ask("DELETE", f"{NODES}/n2").status == 200
    assert refused(node, path) == (404, 'nodes "n2" not found')


def test_its_token_is_good_for_nothing_else(node, there):
    """What the API shows to a node is no token of the API, and a guess is none of either."""
    add(node, "p")
    with pytest.raises(websocket.WebSocketBadStatusException) as guessed:
        connect(node, f"{PODS}/p/exec?command=true&stdout=1", "davit-node-proxy.n2." + "0" * 64)
    assert guessed.value.status_code == 401
    review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview"}
    path = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
    for name, subresource, verb, is_allowed in (
            ("n2", "proxy", "get", True), ("n2", "proxy", "create", True),
            ("n1", "proxy", "get", False), ("", "proxy", "get", False),
            ("n2", "proxy", "delete", False), ("n2", "", "get", False),
            ("n2", "status", "patch", False)):
        review["spec"] = {"user": "davit:node-proxy:n2", "groups": ["davit:node-proxies"],
                          "resourceAttributes": {"resource": "nodes", "name": name, "verb": verb,
                                                 "subresource": subresource}}
        assert node.api().must("POST", path, review)["status"]["allowed"] == is_allowed, review


def test_a_revoked_token_ends_what_was_begun(node, there):
    add(node, "p", container(script="echo begun; sleep 1000"))
    token, ident = make_token(node, "--admin", "tester")
    stream = connect(node, f"{PODS}/p/exec?command=sh&command=-c"
                           "&command=echo+begun;sleep+1000&stdout=1", token)
    assert stream.recv()  # the channel is there, or what was printed
    done = node.api().ask("DELETE", f"/davit/v1/tokens/{ident}")
    assert done.status == 200, done
    with pytest.raises((websocket.WebSocketException, OSError)):
        while stream.recv():
            pass
        raise OSError("closed")


def test_what_the_node_refuses_is_told(node, there):
    add(node, "p", container(script="sleep 1000"))
    with pytest.raises(websocket.WebSocketBadStatusException) as refused:
        connect(node, f"{PODS}/p/portforward?ports=70000")
    assert refused.value.status_code == 400
    answer = node.api().ask("GET", f"{PODS}/p/log?previous=true")
    assert answer.status == 400 and "previous terminated container" in answer.doc["message"], answer
    answer = node.api().ask("GET", f"{PODS}/p/exec?command=true&stdout=1")
    assert answer.status == 400 and "Upgrade" in answer.doc["message"], answer
    assert json.loads(answer.body)["reason"] == "BadRequest"
