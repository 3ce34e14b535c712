"""Tokens of service accounts: what they say, who can verify them, and how their key is replaced."""

import base64
import json
import os
import stat
import time

import pytest
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature
from kubectls import Kubectl, find_kubectl
from servers import CORE, PODS

ACCOUNTS = f"{CORE}/namespaces/default/serviceaccounts"
AUTHN = "authentication.k8s.io/v1"
ISSUER = "https://kubernetes.default.svc"
KEY_SETS = "application/jwk-set+json"
REVIEWS = f"/apis/{AUTHN}"
NODES = f"{CORE}/nodes"


def decode(part):
    return base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))


def number(part):
    return int.from_bytes(decode(part), "big")


def read(token):
    header, claims, signature = token.split(".")
    return json.loads(decode(header)), json.loads(decode(claims)), decode(signature)


def verify(api, token):
    """With another implementation, and what the server tells everybody."""
    header, _, signature = token.split(".")
    header, signature = json.loads(decode(header)), decode(signature)
    assert api.ask("GET", "/openid/v1/jwks", Accept="text/html").status == 406
    assert api.ask("POST", "/openid/v1/jwks", {}).status == 405
    assert api.ask("POST", "/.well-known/openid-configuration", {}).status == 405
    answer = api.ask("GET", "/openid/v1/jwks", Accept=KEY_SETS)
    assert answer.fields["content-type"] == KEY_SETS
    (key,) = [one for one in answer.doc["keys"] if one["kid"] == header["kid"]]
    assert (key["kty"], key["crv"], key["use"], key["alg"]) == ("EC", "P-256", "sig", "ES256")
    public = ec.EllipticCurvePublicNumbers(
        number(key["x"]), number(key["y"]), ec.SECP256R1()).public_key()
    pair = encode_dss_signature(int.from_bytes(signature[:32], "big"),
                                int.from_bytes(signature[32:], "big"))
    public.verify(pair, token.rsplit(".", 1)[0].encode(), ec.ECDSA(hashes.SHA256()))


def request(api, account="worker", **spec):
    return api.must("POST", f"{ACCOUNTS}/{account}/token",
                    {"apiVersion": AUTHN, "kind": "TokenRequest", "spec": spec})


def who(client):
    return client.must("POST", f"{REVIEWS}/selfsubjectreviews",
                       {"apiVersion": AUTHN, "kind": "SelfSubjectReview"})["status"]["userInfo"]


@pytest.fixture
def account(api):
    return api.must("POST", ACCOUNTS, {"metadata": {"name": "worker"}})


@pytest.fixture
def pod(api, account):
    api.must("POST", NODES, {"metadata": {"name": "w1"}})
    return api.must("POST", PODS, {"metadata": {"name": "p"}, "spec": {
        "serviceAccountName": "worker", "nodeName": "w1",
        "containers": [{"name": "c", "image": "i"}]}})


def bound_to(pod):
    return {"boundObjectRef": {"kind": "Pod", "apiVersion": "v1", "name": "p",
                               "uid": pod["metadata"]["uid"]}}


def test_a_token_says_whose_it_is_and_others_can_verify_it(api, account, pod):
    made = request(api, expirationSeconds=600, **bound_to(pod))
    token = made["status"]["token"]
    _, claims, _ = read(token)
    assert abs(claims.pop("iat") - time.time()) < 60
    assert claims.pop("exp") - claims.pop("nbf") == 600
    assert len(claims.pop("jti")) == 36
    node = api.must("GET", f"{NODES}/w1")
    assert claims == {
        "iss": ISSUER, "sub": "system:serviceaccount:default:worker", "aud": [ISSUER],
        "kubernetes.io": {
            "namespace": "default",
            "serviceaccount": {"name": "worker", "uid": account["metadata"]["uid"]},
            "pod": {"name": "p", "uid": pod["metadata"]["uid"]},
            "node": {"name": "w1", "uid": node["metadata"]["uid"]}}}
    verify(api, token)
    header, body, signature = token.split(".")
    with pytest.raises(InvalidSignature):
        verify(api, f"{header}.{body[:-1]}{'B' if body[-1] == 'A' else 'A'}.{signature}")
    about = api.must("GET", "/.well-known/openid-configuration")
    assert about["issuer"] == ISSUER
    assert about["id_token_signing_alg_values_supported"] == ["ES256"]


def test_a_pods_token_for_the_api_lives_on_for_clients_that_never_read_it_again(api, pod):
    made = request(api, expirationSeconds=3607, **bound_to(pod))
    _, claims, _ = read(made["status"]["token"])
    assert claims["exp"] - claims["iat"] == 365 * 24 * 3600
    assert claims["kubernetes.io"]["warnafter"] - claims["iat"] == 3607
    others = request(api, expirationSeconds=3607, audiences=["vault"], **bound_to(pod))
    _, claims, _ = read(others["status"]["token"])
    assert claims["exp"] - claims["iat"] == 3607


def test_a_changed_token_is_refused(node, api, account):
    header, claims, signature = request(api)["status"]["token"].split(".")
    changed = json.loads(decode(claims))
    changed["sub"] = "system:serviceaccount:kube-system:other"
    forged = base64.urlsafe_b64encode(json.dumps(changed).encode()).rstrip(b"=").decode()
    none = base64.urlsafe_b64encode(b'{"alg":"none"}').rstrip(b"=").decode()
    for text in (f"{header}.{forged}.{signature}", f"{header}.{claims}.", f"{none}.{claims}.",
                 f"{header}.{claims}.{'A' * 86}", "a.b.c"):
        node.api(token=text).refused(401, "GET", "/version")


def test_the_key_is_roots_and_replaced_by_moving_it(node, api, account):
    path = os.path.join(node.state_dir, "pki", "tokens.key")
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
    old = request(api)["status"]["token"]
    node.stop()
    os.rename(path, path.replace("tokens.key", "tokens-2024.key"))
    node.start()
    api = node.api()
    new = request(api)["status"]["token"]
    assert read(old)[0]["kid"] != read(new)[0]["kid"]
    for token in (old, new):
        assert who(node.api(token=token))["username"] == "system:serviceaccount:default:worker"
        verify(api, token)
    node.stop()
    os.remove(path.replace("tokens.key", "tokens-2024.key"))
    node.start()
    node.api(token=old).refused(401, "GET", "/version")
    assert who(node.api(token=new))["uid"] == account["metadata"]["uid"]


def test_a_key_that_cannot_be_read_is_named(node):
    node.stop()
    path = os.path.join(node.state_dir, "pki", "tokens-bad.pub")
    with open(path, "w", encoding="ascii") as file:
        file.write("no key\n")
    node.start(ready=False)
    assert node.proc.wait(10) == 1
    assert path in node.proc.log and "move it away" in node.proc.log


def test_kubectl_makes_and_shows_tokens(node, account, short_dir):
    kubectl = Kubectl(find_kubectl("new"), node.kubeconfig, short_dir, is_old=False)
    token = kubectl.run(["create", "token", "worker", "--audience", ISSUER, "--duration", "20m"],
                        0).stdout.strip()
    _, claims, _ = read(token)
    assert claims["exp"] - claims["iat"] == 1200
    inside = ["--token", token, "--kubeconfig", "/dev/null", "--server",
              f"https://127.0.0.1:{node.port}", "--certificate-authority",
              os.path.join(node.state_dir, "pki", "ca.crt")]
    shown = json.loads(kubectl.run(["auth", "whoami", "-o", "json", *inside], 0).stdout)
    assert shown["status"]["userInfo"] == {
        "username": "system:serviceaccount:default:worker", "uid": account["metadata"]["uid"],
        "groups": ["system:serviceaccounts", "system:serviceaccounts:default",
                   "system:authenticated"],
        "extra": {"authentication.kubernetes.io/credential-id": [f"JTI={claims['jti']}"]}}
