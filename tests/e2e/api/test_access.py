"""Who may reach what: tokens of drivers and nodes, strangers, certificates."""

import os
import socket
import ssl

import pytest

from certificates import make_certificate
from nodes import run_davit
from servers import CLAIMS, CORE, MAPS, NODES, PODS, SLICES, claim, config_map, device_slice

NODE = {"Impersonate_User": "system:node:worker-1", "Impersonate_Group": "system:nodes"}


def make_token(node, *words):
    """A token as `davit token create` prints it."""
    done = run_davit("token", "create", *words, "--kubeconfig", node.kubeconfig)
    assert done.returncode == 0, done
    return done.stdout.strip()


@pytest.fixture
def tokens(node):
    """Clients with a token for each scope: a driver's and a node's, for worker-1."""
    return {
        "admin": node.api(),
        "driver": node.api(token=make_token(
            node, "--driver", "gpu.example.com", "--node", "worker-1")),
        "node": node.api(token=make_token(node, "--node", "worker-1")),
    }


def pod(name, node):
    return {"metadata": {"name": name},
            "spec": {"nodeName": node, "containers": [{"name": "c", "image": "i"}]}}


def fill(admin):
    for node in ("worker-1", "worker-2"):
        admin.must("POST", NODES, {"metadata": {"name": node}})
        admin.must("POST", PODS, pod(f"p-{node}", node))
        admin.must("POST", SLICES, device_slice(f"own-{node}", node))
        admin.must("POST", SLICES, device_slice(f"nic-{node}", node, "nic.example.com"))
    admin.must("POST", CLAIMS, claim("c"))
    admin.must("POST", MAPS, config_map("m"))
    admin.must("POST", f"{CORE}/namespaces/default/secrets", {"metadata": {"name": "s"}})


MERGE = "application/merge-patch+json"
NEW = {"metadata": {"name": "new"}}

# What a driver of gpu.example.com on worker-1 must not reach: method, path, body.
BEYOND_A_DRIVER = [
    ("GET", f"{CORE}/namespaces/default/secrets/s", None),
    ("GET", f"{CORE}/secrets", None),
    ("GET", MAPS, None),
    ("GET", PODS, None),
    ("GET", f"{PODS}/p-worker-1", None),
    ("POST", PODS, pod("new", "worker-1")),
    ("DELETE", f"{PODS}/p-worker-1", None),
    ("POST", f"{PODS}/p-worker-1/binding", {"target": {"kind": "Node", "name": "worker-1"}}),
    ("GET", f"{NODES}/worker-2", None),
    ("GET", NODES, None),
    ("PATCH", f"{NODES}/worker-1", {"metadata": {"labels": {"a": "b"}}}),
    ("PATCH", f"{NODES}/worker-1/status", {"status": {}}),
    ("DELETE", f"{NODES}/worker-1", None),
    ("POST", f"{CORE}/namespaces", NEW),
    ("GET", CLAIMS, None),
    ("GET", f"{CLAIMS}/c", None),
    ("POST", CLAIMS, claim("new")),
    ("PATCH", f"{CLAIMS}/c", {"metadata": {"labels": {"a": "b"}}}),
    ("PATCH", f"{CLAIMS}/c/status", {"status": {"allocation": {}}}),
    ("DELETE", f"{CLAIMS}/c", None),
    ("POST", SLICES, device_slice("new", "worker-2")),
    ("POST", SLICES, device_slice("new", "worker-1", "nic.example.com")),
    ("POST", SLICES, {**device_slice("new"), "spec": {
        "driver": "gpu.example.com", "allNodes": True,
        "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1}}}),
    ("PUT", f"{SLICES}/own-worker-2", device_slice("own-worker-2", "worker-2")),
    ("PUT", f"{SLICES}/own-worker-2", device_slice("own-worker-2", "worker-2", n_devices=2)),
    ("PUT", f"{SLICES}/nic-worker-1",
     device_slice("nic-worker-1", "worker-1", "nic.example.com", n_devices=2)),
    ("PATCH", f"{SLICES}/own-worker-2", {"metadata": {"labels": {"a": "b"}}}),
    ("DELETE", f"{SLICES}/own-worker-2", None),
    ("DELETE", f"{SLICES}/nic-worker-1", None),
    ("GET", SLICES, None),
    ("GET", f"{SLICES}/own-worker-2", None),
    ("GET", f"{SLICES}/nic-worker-1", None),
    ("GET", f"{SLICES}?fieldSelector=spec.nodeName%3Dworker-1", None),
    ("GET", f"{SLICES}?fieldSelector=spec.driver%3Dgpu.example.com", None),
    ("DELETE", SLICES, None),
    ("DELETE", f"{SLICES}?fieldSelector=spec.nodeName%3Dworker-1", None),
    ("DELETE", f"{SLICES}?fieldSelector=spec.nodeName%3Dworker-2,spec.driver%3Dgpu.example.com",
     None),
    ("POST", "/apis/resource.k8s.io/v1/deviceclasses", NEW),
    ("POST", "/apis/resource.k8s.io/v1beta2/devicetaintrules", NEW),
    ("POST", "/apis/authentication.k8s.io/v1/tokenreviews", {"spec": {"token": "x"}}),
    ("POST", f"{CORE}/namespaces/default/serviceaccounts/default/token", {}),
    ("GET", "/metrics", None),
]

BEYOND_A_NODE = [
    ("GET", f"{CORE}/namespaces/default/secrets/s", None),
    ("GET", f"{CORE}/secrets", None),
    ("GET", PODS, None),
    ("GET", f"{PODS}/p-worker-2", None),
    ("POST", PODS, pod("new", "worker-2")),
    ("DELETE", f"{PODS}/p-worker-2", None),
    ("PATCH", f"{PODS}/p-worker-2/status", {"status": {"phase": "Failed"}}),
    ("POST", f"{PODS}/p-worker-1/binding", {"target": {"kind": "Node", "name": "worker-1"}}),
    ("GET", f"{NODES}/worker-2", None),
    ("PATCH", f"{NODES}/worker-2/status", {"status": {}}),
    ("DELETE", f"{NODES}/worker-1", None),
    ("GET", f"{CLAIMS}/c", None),
    ("PATCH", f"{CLAIMS}/c/status", {"status": {"allocation": {}}}),
    ("POST", SLICES, device_slice("new", "worker-2")),
    ("DELETE", f"{SLICES}/own-worker-2", None),
    ("DELETE", SLICES, None),
    ("PUT", f"{SLICES}/own-worker-2", device_slice("own-worker-2", "worker-1")),
    ("POST", "/apis/resource.k8s.io/v1/deviceclasses", NEW),
    ("POST", "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases",
     {"metadata": {"name": "worker-2"}}),
]


def check_beyond(who, rows, **fields):
    for method, path, body in rows:
        if method == "PATCH":
            fields["Content_Type"] = MERGE
        else:
            fields.pop("Content_Type", None)
        doc = who.refused(403, method, path, body, **fields)
        assert doc["reason"] == "Forbidden", doc


def test_a_driver_reaches_no_further_than_its_node(tokens):
    fill(tokens["admin"])
    before = tokens["admin"].must("GET", SLICES)["items"]
    check_beyond(tokens["driver"], BEYOND_A_DRIVER)
    assert tokens["admin"].must("GET", SLICES)["items"] == before
    driver = tokens["driver"]
    driver.must("GET", f"{NODES}/worker-1")
    driver.refused(404, "GET", f"{CLAIMS}/gone")
    driver.must("POST", SLICES, device_slice("mine", "worker-1"))
    driver.must("DELETE", f"{SLICES}/mine")
    own = "?fieldSelector=spec.nodeName%3Dworker-1,spec.driver%3Dgpu.example.com"
    with driver.watch(SLICES + own) as watch:
        assert watch.next()["type"] == "ADDED"


def test_a_node_reaches_no_further_than_itself(tokens):
    fill(tokens["admin"])
    check_beyond(tokens["node"], BEYOND_A_NODE)
    node = tokens["node"]
    node.must("GET", f"{NODES}/worker-1")
    node.must("GET", f"{PODS}?fieldSelector=spec.nodeName%3Dworker-1")
    node.must("POST", SLICES, device_slice("mine", "worker-1"))


def test_the_same_rights_hold_for_who_acts_as_a_node(node):
    """davitd's admin may act as another, who then has no more rights than his own."""
    admin = node.api()
    fill(admin)
    check_beyond(admin, BEYOND_A_NODE, **NODE)
    admin.must("GET", f"{NODES}/worker-1", **NODE)


def test_an_account_without_rights_has_none(node):
    accounts = f"{CORE}/namespaces/default/serviceaccounts"
    admin = node.api()
    admin.must("POST", accounts, {"metadata": {"name": "viewer"}})
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    token = admin.must("POST", f"{accounts}/viewer/token", request)["status"]["token"]
    viewer = node.api(token=token)
    for method, path in (("GET", PODS), ("POST", PODS), ("GET", SLICES), ("GET", "/metrics")):
        viewer.refused(403, method, path, {} if method == "POST" else None)
    viewer.must("GET", "/api")
    viewer.must("GET", "/version")
    viewer.refused(403, "GET", "/api/v1/pods", Impersonate_User="admin",
                   Impersonate_Group="system:masters")


def test_tokens_outlive_a_restart_and_end_when_revoked(node):
    token = make_token(node, "--node", "worker-1")
    node.api().must("POST", NODES, {"metadata": {"name": "worker-1"}})
    node.kill()
    node.start()
    worker = node.api(token=token)
    worker.must("GET", f"{NODES}/worker-1")
    listed = run_davit("token", "list", "--no-headers", "--kubeconfig", node.kubeconfig)
    ids = [line.split()[0] for line in listed.stdout.splitlines() if "worker-1" in line]
    assert len(ids) == 1, listed
    done = run_davit("token", "revoke", ids[0], "--kubeconfig", node.kubeconfig)
    assert done.returncode == 0, done
    worker.refused(401, "GET", f"{NODES}/worker-1")
    node.kill()
    node.start()
    node.api(token=token).refused(401, "GET", f"{NODES}/worker-1")


@pytest.mark.parametrize("field", [
    "Bearer nope", "Bearer", "Bearer ", "Basic YWRtaW46YWRtaW4=", "nope", "Bearer " + "x" * 4000,
    "Bearer \xff\xfe", None,
])
def test_strangers_are_told_so(node, field):
    fields = {"Authorization": field} if field else {}
    stranger = node.api(token=None)
    for method, path in (("GET", PODS), ("GET", "/api"), ("POST", MAPS), ("GET", "/metrics"),
                         ("GET", "/nowhere"), ("DELETE", NODES)):
        doc = stranger.refused(401, method, path, {} if method == "POST" else None, **fields)
        assert (doc["reason"], doc["message"]) == ("Unauthorized", "Unauthorized")
    if field is None:
        assert stranger.ask("GET", "/healthz").body == b"ok"
        stranger.must("GET", "/version")


def test_a_token_is_not_a_part_of_another(node):
    for token in (node.token[:-1], node.token + "x", node.token.upper(), node.token[1:]):
        node.api(token=token).refused(401, "GET", "/api")


def test_who_trusts_another_ca_does_not_connect(node):
    with socket.create_connection(("127.0.0.1", node.port)) as raw:
        with pytest.raises(ssl.SSLCertVerificationError):
            ssl.create_default_context().wrap_socket(raw, server_hostname="127.0.0.1")
    wrong_name = node.context()
    with socket.create_connection(("127.0.0.1", node.port)) as raw:
        with pytest.raises(ssl.SSLCertVerificationError):
            wrong_name.wrap_socket(raw, server_hostname="elsewhere.example.com")
    assert node.api().must("GET", "/version")


def test_certificates_say_who_one_is(node, short_dir):
    pki = os.path.join(node.state_dir, "pki")
    ca = (os.path.join(pki, "ca.crt"), os.path.join(pki, "ca.key"))
    fill(node.api())

    def with_certificate(name, subject, signer):
        context = node.context()
        context.load_cert_chain(*make_certificate(short_dir, name, subject, signer))
        return node.api(token=None, context=context)

    admin = with_certificate("admin", "/O=system:masters/CN=someone", ca)
    assert len(admin.must("GET", NODES)["items"]) == 2
    worker = with_certificate("worker", "/O=system:nodes/CN=system:node:worker-1", ca)
    worker.must("GET", f"{NODES}/worker-1")
    worker.refused(403, "GET", f"{NODES}/worker-2")
    nobody = with_certificate("nobody", "/CN=nobody", ca)
    nobody.refused(403, "GET", PODS)
    stranger = with_certificate("stranger", "/O=system:masters/CN=someone", None)
    try:
        stranger.refused(401, "GET", PODS)
    except (ssl.SSLError, ConnectionError):
        pass  # refused before anything was asked


def test_secrets_stay_with_root(node):
    for path, mode in ((node.state_dir, 0o700), (node.kubeconfig, 0o600),
                       (os.path.join(node.state_dir, "pki", "ca.key"), 0o600),
                       (os.path.join(node.state_dir, "state.db"), 0o600)):
        assert os.stat(path).st_mode & 0o777 == mode, path
    node.api(token="not-a-token-of-ours").refused(401, "GET", "/api")
    for secret in (node.token, "not-a-token-of-ours"):
        assert secret not in node.proc.log
