"""Tokens of service accounts that somebody else made, or that are not what they were."""

import base64
import hashlib
import hmac
import json
import os

import pytest
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from servers import CORE, NODES, PODS

ACCOUNTS = f"{CORE}/namespaces/default/serviceaccounts"
ORDER = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551  # of P-256


def encode(part):
    text = part if isinstance(part, bytes) else json.dumps(part).encode()
    return base64.urlsafe_b64encode(text).rstrip(b"=").decode()


def decode(part):
    return base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))


def sign(key, header, claims):
    text = f"{encode(header)}.{encode(claims)}"
    r, s = decode_dss_signature(key.sign(text.encode(), ec.ECDSA(hashes.SHA256())))
    return f"{text}.{encode(r.to_bytes(32, 'big') + s.to_bytes(32, 'big'))}"


def sign_rsa(header, claims):
    text = f"{encode(header)}.{encode(claims)}"
    key = rsa.generate_private_key(65537, 2048)
    return f"{text}.{encode(key.sign(text.encode(), padding.PKCS1v15(), hashes.SHA256()))}"


def sign_hmac(secret, header, claims):
    text = f"{encode(header)}.{encode(claims)}"
    return f"{text}.{encode(hmac.new(secret, text.encode(), hashlib.sha256).digest())}"


def request(api, account="worker", **spec):
    return api.must("POST", f"{ACCOUNTS}/{account}/token",
                    {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest",
                     "spec": spec})["status"]["token"]


def status(node, token):
    return node.api(token=token).ask("GET", "/apis").status


@pytest.fixture
def token(api):
    api.must("POST", ACCOUNTS, {"metadata": {"name": "worker"}})
    return request(api)


@pytest.fixture
def key(node):
    with open(os.path.join(node.state_dir, "pki", "tokens.key"), "rb") as file:
        return serialization.load_pem_private_key(file.read(), None)


def test_nobody_else_signs(node, token, key):
    first, second, third = token.split(".")
    header, claims = json.loads(decode(first)), json.loads(decode(second))
    public = key.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    other = ec.generate_private_key(ec.SECP256R1())
    der = key.sign(f"{first}.{second}".encode(), ec.ECDSA(hashes.SHA256()))
    forged = {
        "no algorithm": f"{encode({**header, 'alg': 'none'})}.{second}.",
        "the public key as a secret": sign_hmac(public, {**header, "alg": "HS256"}, claims),
        "another key under this one's name": sign(other, header, claims),
        "another key without a name": sign(other, {"alg": "ES256"}, claims),
        "a key in the header": sign(other, {**header, "jwk": {"kty": "EC"}}, claims),
        "another algorithm": sign_rsa({**header, "alg": "RS256"}, claims),
        "another algorithm's name": f"{encode({**header, 'alg': 'ES384'})}.{second}.{third}",
        "another key's name": sign(key, {**header, "kid": "zzz"}, claims),
        "zeros": f"{first}.{second}.{encode(bytes(64))}",
        "the order of the curve": f"{first}.{second}.{encode(ORDER.to_bytes(32, 'big') + decode(third)[32:])}",
        "a signature as DER": f"{first}.{second}.{encode(der)}",
        "a short signature": f"{first}.{second}.{encode(decode(third)[:63])}",
        "a long signature": f"{first}.{second}.{encode(decode(third) + b'0')}",
        "two parts": f"{first}.{second}",
        "four parts": f"{token}.x",
        "padding": f"{token}=",
        "an endless claim": sign(key, header, {**claims, "x": "y" * 200_000}),
        "deep claims": f"{first}.{encode(b'[' * 5000)}.{third}",
    }
    assert status(node, sign(key, header, claims)) == 200
    for what, text in forged.items():
        assert status(node, text) in (400, 401, 431), what


def test_claims_are_held_against_what_exists(node, token, key):
    first, second, _ = token.split(".")
    header, claims = json.loads(decode(first)), json.loads(decode(second))
    private = claims["kubernetes.io"]

    def with_private(**more):
        return claims | {"kubernetes.io": private | more}

    wrong = {
        "expired": claims | {"exp": claims["iat"] - 120},
        "without an end": {name: value for name, value in claims.items() if name != "exp"},
        "an end that is a text": claims | {"exp": "99999999999"},
        "an end beyond all": claims | {"exp": 1e300},
        "not yet": claims | {"nbf": claims["iat"] + 3600},
        "another issuer": claims | {"iss": "https://elsewhere"},
        "for others": claims | {"aud": ["vault"]},
        "an administrator": claims | {"sub": "system:admin"},
        "another account": claims | {"sub": "system:serviceaccount:kube-system:worker"},
        "another namespace": with_private(namespace="kube-system"),
        "another uid": with_private(serviceaccount={"name": "worker", "uid": "x"}),
        "no uid": with_private(serviceaccount={"name": "worker"}),
        "a pod that is not there": with_private(pod={"name": "p", "uid": "x"}),
        "a zero byte": claims | {"sub": claims["sub"] + "\0"},
    }
    for what, some in wrong.items():
        assert status(node, sign(key, header, some)) == 401, what


def test_a_token_ends_with_what_it_is_bound_to(node, api, token):
    api.must("POST", NODES, {"metadata": {"name": "w1"}})
    made = {"metadata": {"name": "p"}, "spec": {"serviceAccountName": "worker", "nodeName": "w1",
                                                "containers": [{"name": "c", "image": "i"}]}}
    uid = api.must("POST", PODS, made)["metadata"]["uid"]
    bound = request(api, boundObjectRef={"kind": "Pod", "apiVersion": "v1", "name": "p", "uid": uid})
    assert status(node, bound) == 200
    api.must("DELETE", f"{PODS}/p", {"gracePeriodSeconds": 0})
    assert status(node, bound) == 401
    api.must("POST", PODS, made)  # another pod of that name
    assert status(node, bound) == 401
    api.must("DELETE", f"{ACCOUNTS}/worker")
    api.must("POST", ACCOUNTS, {"metadata": {"name": "worker"}})
    assert status(node, token) == 401
