"""Requests that act as another: all of it is granted, or none of it."""

import pytest

from servers import CORE
from test_access import make_token

REVIEW = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
BODY = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}


def who(api, fields):
    """The user of a request with those fields, which may repeat."""
    connection = api.connect()
    connection.putrequest("POST", REVIEW)
    connection.putheader("Authorization", f"Bearer {api.token}")
    connection.putheader("Content-Type", "application/json")
    for name, value in fields:
        connection.putheader(name, value)
    text = b'{"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}'
    connection.putheader("Content-Length", str(len(text)))
    connection.endheaders(text)
    answer = connection.getresponse()
    body = answer.read()
    connection.close()
    return answer.status, body.decode()


def test_nothing_is_dropped_when_the_user_is_missing(api):
    rows = [
        [("Impersonate-Group", "g1")],
        [("Impersonate-Group", "")],
        [("impersonate-group", "g1"), ("Impersonate-User", "")],
        [("Impersonate-Uid", "x")],
        [("Impersonate-Extra-a", "b")],
        [("Impersonate-Extra-a", "")],
        [("Impersonate-Extra-", "x")],
    ]
    for fields in rows:
        status, body = who(api, fields)
        assert status == 400 and "without impersonating a user name" in body, (fields, body)
    for first, second in (("", "jane"), ("jane", ""), ("jane", "root")):
        status, body = who(api, [("Impersonate-User", first), ("Impersonate-User", second)])
        assert status == 400, (first, second, body)


def test_uid_and_extra_are_honoured(api):
    doc = api.must("POST", REVIEW, BODY, Impersonate_User="jane", Impersonate_Uid="U-1",
                   **{"Impersonate_Extra_Example.com%2Fa": "v"})
    assert doc["status"]["userInfo"] == {
        "username": "jane", "uid": "U-1", "groups": ["system:authenticated"],
        "extra": {"example.com/a": ["v"]}}


def test_an_impersonated_user_has_its_own_rights(api):
    fields = {"Impersonate_User": "jane"}
    api.refused(403, "GET", f"{CORE}/secrets", **fields)
    api.refused(403, "GET", f"{CORE}/secrets", Impersonate_User="davit:driver:gpu.example.com",
                Impersonate_Group="davit:drivers")
    api.must("GET", f"{CORE}/secrets", Impersonate_Group="system:masters", **fields)
    api.refused(403, "GET", f"{CORE}/secrets", Impersonate_User="jane",
                Impersonate_Group="system:unauthenticated")


@pytest.mark.parametrize("words", [("--node", "worker-1"),
                                   ("--driver", "gpu.example.com", "--node", "worker-1")])
def test_only_administrators_act_as_others(node, words):
    thief = node.api(token=make_token(node, *words))
    for fields in ({"Impersonate_User": "root"}, {"Impersonate_User": "system:node:worker-1"},
                   {"Impersonate_User": "root", "Impersonate_Group": "system:masters"},
                   {"Impersonate_User": "system:serviceaccount:default:default"}):
        for method, path, body in (("POST", REVIEW, BODY), ("GET", "/version", None)):
            doc = thief.refused(403, method, path, body, **fields)
            assert "cannot impersonate-on:" in doc["message"], doc
    thief.refused(400, "POST", REVIEW, BODY, Impersonate_Group="system:masters")


def test_a_stranger_acts_as_nobody(node):
    stranger = node.api(token=None)
    for path in ("/version", "/healthz"):
        assert stranger.ask("GET", path).status == 200
        stranger.refused(403, "GET", path, Impersonate_User="root")
        stranger.refused(400, "GET", path, Impersonate_Group="system:masters")
