"""The node's own API: who may use it, and what is there."""

import os
import ssl
import subprocess

import pytest

from bound_pods import bound, wait_phase
from certificates import make_certificate
from claim_nodes import WAIT_S
from node_apis import make_token
from nodes import run_davit
from procs import until
from servers import NODES, PODS

PATHS = {"/healthz": "healthz proxy", "/pods": "pods proxy", "/runningpods/": "proxy",
         "/metrics": "metrics", "/configz": "configz proxy", "/nothing": "proxy",
         "/stats/nothing": "stats", "/logs/": "log"}


@pytest.fixture
def admin(node, kubelet):
    return kubelet.client(make_token(node, "--admin", "ada")[0])


def test_health_is_for_all_on_this_machine(kubelet):
    answer = kubelet.ask_health("/healthz")
    assert (answer.status, answer.body) == (200, b"ok")
    assert kubelet.ask_health("/pods").status == 404
    kubelet.stop()
    with pytest.raises(OSError):
        kubelet.ask_health("/healthz")


def test_tokens_say_who_one_is(node, kubelet, admin):
    answer = admin.ask("GET", "/healthz")
    assert (answer.status, answer.body) == (200, b"ok")
    for token in (None, "guess", "x" * 4000):
        for path in PATHS:
            answer = kubelet.client(token).ask("GET", path)
            assert (answer.status, answer.body) == (401, b"Unauthorized"), path
    other = kubelet.client(make_token(node, "--node", "n3")[0])
    for path, subresources in PATHS.items():
        answer = other.ask("GET", path)
        assert answer.status == 403
        assert answer.body.decode() == (f"Forbidden (user=system:node:n3, verb=get, "
                                        f"resource=nodes, subresource(s)=[{subresources}])")
    assert b"verb=create" in other.ask("POST", "/pods").body
    assert admin.ask("POST", "/pods").status == 405
    assert admin.ask("GET", "/nothing").status == 404


def test_certificates_say_who_one_is(node, kubelet, short_dir):
    pki = os.path.join(node.state_dir, "pki")
    ca = (os.path.join(pki, "ca.crt"), os.path.join(pki, "ca.key"))

    def client(name, subject, signer, token=None):
        return kubelet.client(token, make_certificate(short_dir, name, subject, signer))

    assert client("boss", "/O=system:masters/CN=boss", ca).ask("GET", "/healthz").status == 200
    answer = client("nobody", "/CN=nobody", ca).ask("GET", "/metrics")
    assert (answer.status, answer.body) == (403, b"Forbidden (user=nobody, verb=get, "
                                                 b"resource=nodes, subresource(s)=[metrics])")
    stranger = client("stranger", "/O=system:masters/CN=boss", None)
    try:
        assert stranger.ask("GET", "/healthz").status == 401
    except (ssl.SSLError, ConnectionError):
        pass  # refused before anything was asked


def test_a_revoked_token_ends(node, kubelet):
    token, number = make_token(node, "--admin", "ada")
    assert kubelet.client(token).ask("GET", "/pods").status == 200
    assert run_davit("token", "revoke", number, "--kubeconfig",
                     node.kubeconfig).returncode == 0
    # It was asked for before, so it is good for two minutes more; a new node has not asked.
    assert kubelet.client(token).ask("GET", "/pods").status == 200
    kubelet.stop()
    kubelet.start()
    assert kubelet.client(token).ask("GET", "/pods").status == 401


def test_nobody_is_let_in_without_an_api_server(node, kubelet, admin):
    assert admin.ask("GET", "/healthz").status == 200
    token = make_token(node, "--admin", "bob")[0]
    node.kill()
    assert admin.ask("GET", "/healthz").status == 200  # remembered
    assert kubelet.client(token).ask("GET", "/healthz").status == 401
    assert admin.ask("GET", "/metrics").body.startswith(b"Authorization error (user=ada, ")
    assert "does not say who a client" in kubelet.proc.log
    node.start()
    assert kubelet.client(token).ask("GET", "/healthz").status == 200


def test_the_node_says_where_it_is(node, kubelet):
    def told():
        found = node.api().ask("GET", f"{NODES}/n2").doc.get("status")
        status = found if isinstance(found, dict) else {}  # "Failure": it is not there yet
        port = status.get("daemonEndpoints", {}).get("kubeletEndpoint", {}).get("Port")
        return port, status.get("declaredFeatures")

    until(lambda: told() == (kubelet.port, ["ExtendWebSocketsToKubelet"]), WAIT_S,
          "the port in the Node, and that it takes WebSockets")


def test_what_is_there(node, kubelet, admin):
    api = node.api()
    kubelet.start_plugin()
    api.must("POST", PODS, bound("p1", node="n2", devices=1))
    api.must("POST", PODS, bound("p2", node="n1"))
    wait_phase(api, "p1", "Pending")
    until(lambda: "p1" in kubelet.pods_here(), WAIT_S, "p1 admitted")
    pods = admin.must("GET", "/pods")
    assert (pods["kind"], pods["apiVersion"]) == ("PodList", "v1")
    assert [pod["metadata"]["name"] for pod in pods["items"]] == ["p1"]
    assert pods["items"][0]["spec"]["nodeName"] == "n2"
    assert admin.must("GET", "/runningpods/")["items"] == []  # there is no runtime
    assert admin.ask("POST", "/run/default/p1/main?cmd=true").status == 503
    config = admin.must("GET", "/configz")["kubeletconfig"]
    assert config["topologyManagerPolicy"] == "none"
    metrics = admin.ask("GET", "/metrics")
    assert metrics.fields["Content-Type"].startswith("text/plain; version=0.0.4")
    assert b"davit_pods 1" in metrics.body


def test_an_embedded_node_has_it_when_asked(node, make_node):
    assert "the node's own API" not in node.proc.log
    node.stop()
    node.start("--node-listen", "127.0.0.1:0")
    port = int(node.proc.log.partition("own API serves")[2].split("port=")[1].split()[0])
    done = subprocess.run(
        ["curl", "-sS", "--cacert", os.path.join(node.state_dir, "pki", "ca.crt"),
         "-H", f"Authorization: Bearer {node.token}", "-w", " %{http_version}",
         f"https://127.0.0.1:{port}/healthz"], capture_output=True, text=True, check=True)
    assert done.stdout == "ok 2"


def test_its_own_certificate(node, kubelet, admin, short_dir):
    assert admin.ask("GET", "/healthz").status == 200  # by its name, with the CA in its folder
    kubelet.stop()
    given = make_certificate(short_dir, "given", "/CN=given", None)
    kubelet.start("--node-cert", given[0], "--node-key", given[1])
    shown = ssl.get_server_certificate(("127.0.0.1", kubelet.port))
    with open(given[0], encoding="ascii") as file:
        assert shown.strip() == file.read().strip()
    kubelet.stop()
    kubelet.start("--node-cert", given[0], ready=False)
    assert kubelet.proc.wait(20) == 2
    assert "--node-cert and --node-key go together" in kubelet.proc.log
