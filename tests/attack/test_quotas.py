"""What a node's or a driver's token may store has an end, and says so."""

import contextlib
import re
import socket

import pytest

from peers import SANITIZER
from procs import until
from servers import CORE, MAPS, NODES, PATIENCE_S, PODS, SLICES, config_map, device_slice

ACCOUNTS = f"{CORE}/namespaces/default/serviceaccounts"
EVENTS = f"{CORE}/namespaces/default/events"
MIB = 1 << 20
N_UNREAD = 120


@pytest.fixture
def node(make_node, monkeypatch):
    """A sanitizer that keeps all that is freed would look like a leak."""
    monkeypatch.setenv("ASAN_OPTIONS", SANITIZER["ASAN_OPTIONS"])
    return make_node().start()


def token_of(api, **wish):
    return api.must("POST", "/davit/v1/tokens", wish)["token"]


@pytest.fixture
def driver(node, api):
    return node.api(token=token_of(api, driver="gpu.example.com", node="n1"))


@pytest.fixture
def worker(node, api):
    return node.api(token=token_of(api, node="n1"))


def event(name, message="m", **more):
    return {"apiVersion": "v1", "kind": "Event", "metadata": {"name": name}, "message": message,
            "involvedObject": {"kind": "Pod", "namespace": "default", "name": "p"}, **more}


def check_refusal(status, *words):
    """A quota says which, how much of it is used, and what to do."""
    assert status["reason"] == "TooManyRequests", status
    assert status["details"]["retryAfterSeconds"] > 0
    for word in ("quota: ", *words):
        assert word in status["message"], status


def test_large_events_of_a_driver_are_refused(node, api, driver):
    """Forty of them took half a gigabyte."""
    before = node.proc.rss_bytes()
    for number in range(40):
        answer = driver.ask("POST", EVENTS, event(f"e{number}", note="x" * 2_800_000)
                            | {"metadata": {"name": f"e{number}",
                                            "annotations": {"a": "x" * 200_000}}})
        assert answer.status in (422, 429), answer
    status = driver.refused(429, "POST", EVENTS, {
        **event("large"), "metadata": {"name": "large", "annotations": {"a": "x" * 100_000}}})
    check_refusal(status, "an Event", "make it smaller")
    assert node.proc.rss_bytes() - before < 128 * MIB
    assert api.must("GET", EVENTS)["items"] == []
    driver.must("POST", EVENTS, event("small"))


@pytest.mark.parametrize("who", ["driver", "worker"])
def test_events_grow_no_further_by_patches(request, who):
    user = request.getfixturevalue(who)
    user.must("POST", EVENTS, event("e"))
    answer = user.ask("PATCH", f"{EVENTS}/e", '{"metadata":{"annotations":{"a":"%s"}}}'
                      % ("x" * 100_000), Content_Type="application/merge-patch+json")
    assert answer.status == 429, answer
    check_refusal(answer.doc, "an Event")
    answer = user.ask("PATCH", f"{EVENTS}/e", '{"count":2}',
                      Content_Type="application/merge-patch+json")
    assert answer.status == 200, answer


def fill_with_events(user, prefix):
    """Events of the largest size until the quota says no; how many there are."""
    body = event("x")
    for number in range(400):
        body["metadata"] = {"name": f"{prefix}{number}", "annotations": {"a": "x" * 28_000}}
        answer = user.ask("POST", EVENTS, body)
        if answer.status == 429:
            check_refusal(answer.doc, "events of ", "bytes")
            return number
        assert answer.status == 201, answer
    raise AssertionError("there is no end")


def test_bytes_of_events_have_an_end(node, api, driver):
    n = fill_with_events(driver, "e")
    assert 200 <= n <= 300
    other = node.api(token=token_of(api, driver="other.example.com", node="n1"))
    other.must("POST", EVENTS, event("other"))  # it has a quota of its own
    second = node.api(token=token_of(api, driver="gpu.example.com", node="n1"))
    second.refused(429, "POST", EVENTS, event("x" * 60) | {"metadata": {
        "name": "second", "annotations": {"a": "x" * 28_000}}})  # another token, the same driver
    api.must("DELETE", f"{EVENTS}/e0")  # what is deleted gives room
    until(lambda: driver.ask("POST", EVENTS, {**event("again"), "metadata": {
        "name": "again", "annotations": {"a": "x" * 28_000}}}).status == 201,
        PATIENCE_S, "there is room again")
    token = driver.token
    node.disconnect()
    assert node.stop() == 0
    node.start()
    again = node.api(token=token)
    until(lambda: again.ask("POST", EVENTS, {**event("late"), "metadata": {
        "generateName": "late", "annotations": {"a": "x" * 28_000}}}).status == 429,
        PATIENCE_S, "the quota holds after a restart")
    assert len(node.api().must("GET", EVENTS)["items"]) <= n + 2 + 20


def test_events_of_tokens_have_an_author(api, driver, worker):
    """An author that another one sets would count for nobody, or for somebody else."""
    forged = {"metadata": {"name": "forged", "annotations": {
        "davit.dev/written-by": "system:node:n2"}}}
    for user in (driver, worker):
        made = user.must("POST", EVENTS, {**event("e"), **forged})
        assert made["metadata"]["annotations"]["davit.dev/written-by"] != "system:node:n2"
        answer = user.ask("PATCH", f"{EVENTS}/forged",
                          '{"metadata":{"annotations":{"davit.dev/written-by":null}}}',
                          Content_Type="application/merge-patch+json")
        assert answer.status == 403, answer
        answer = user.ask("PUT", f"{EVENTS}/new", {**event("new"), "metadata": {
            "name": "new", "namespace": "default"}})
        if answer.status == 201:
            author = answer.doc["metadata"]["annotations"]["davit.dev/written-by"]
            assert author == made["metadata"]["annotations"]["davit.dev/written-by"]
            api.must("DELETE", f"{EVENTS}/new")
        else:
            assert answer.status == 403, answer
        assert user.ask("POST", EVENTS, {**event("f"), "metadata": {
            "name": "f", "finalizers": ["example.com/kept"]}}).status == 403
        api.must("DELETE", f"{EVENTS}/forged")


def test_large_slices_are_refused(api, driver):
    body = device_slice("s", n_devices=1)
    body["metadata"]["annotations"] = {"a": "x" * 200_000}
    driver.must("POST", SLICES, body)
    body = device_slice("large", n_devices=1)
    body["metadata"]["labels"] = {f"l{number}": "x" * 60 for number in range(30_000)}
    check_refusal(driver.refused(429, "POST", SLICES, body), "make it smaller")
    text = api.ask("GET", "/metrics").body.decode()
    assert re.search(r'^davit_quota_refusals_total{resource="resourceslices"} 1$', text, re.M)


def test_administrators_have_no_quota(api):
    api.must("POST", EVENTS, {**event("large"), "metadata": {
        "name": "large", "annotations": {"a": "x" * 200_000}}})


def token_pod(api, name, node_name):
    """Of that node, with a wish for a token of the longest life."""
    made = api.must("POST", PODS, {"metadata": {"name": name}, "spec": {
        "nodeName": node_name, "serviceAccountName": "used",
        "containers": [{"name": "c", "image": "i"}],
        "volumes": [{"name": "v", "projected": {"sources": [
            {"serviceAccountToken": {"path": "t", "audience": "vault"}}]}}]}})
    return {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {
        "audiences": ["vault"], "expirationSeconds": 1 << 32, "boundObjectRef": {
            "apiVersion": "v1", "kind": "Pod", "name": name, "uid": made["metadata"]["uid"]}}}


def test_a_node_takes_no_tokens_from_others(node, api):
    """Nine thousand of one pod were all that there might be, when they were stored."""
    api.must("POST", NODES, {"metadata": {"name": "w1"}})
    api.must("POST", ACCOUNTS, {"metadata": {"name": "used"}})
    worker = node.api(token=token_of(api, node="w1"))
    wish = token_pod(api, "p", "w1")
    before = len(api.must("GET", "/davit/v1/tokens")["tokens"])
    for _ in range(300):
        worker.must("POST", f"{ACCOUNTS}/used/token", wish)
    assert len(api.must("GET", "/davit/v1/tokens")["tokens"]) == before


def unread_watch(node, token):
    """A watch whose client has a small buffer, and does not read."""
    raw = socket.socket()
    raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    raw.connect(("127.0.0.1", node.port))
    raw.sendall(f"GET {MAPS}?watch=1 HTTP/1.1\r\nHost: x\r\n"
                f"Authorization: Bearer {token}\r\n\r\n".encode())
    return raw


def test_watches_that_are_not_read_hold_little_memory(make_node, monkeypatch):
    """Each had its own copy of every large event."""
    monkeypatch.setenv("ASAN_OPTIONS", SANITIZER["ASAN_OPTIONS"])
    node = make_node("--insecure-http").start()
    api = node.api()
    slow = token_of(api, admin="slow")
    text = "x" * 900_000
    api.must("POST", MAPS, config_map("m", {"a": text}))
    before = node.proc.rss_bytes()
    with contextlib.ExitStack() as stack:
        for _ in range(N_UNREAD):
            stack.enter_context(unread_watch(node, slow))
        node.wait_watches("configmaps", N_UNREAD)
        with api.watch(f"{MAPS}?resourceVersion=0") as watch:
            for number in range(8):
                api.must("PUT", f"{MAPS}/m", config_map("m", {"a": text, "n": str(number)}))
            watch.until(lambda event: event["object"]["data"].get("n") == "7")
        grown = node.proc.rss_bytes() - before
        print(f"{N_UNREAD} watches that are not read: {grown / 1e6:.1f} MB more")
        assert grown < 100 * MIB
    until(lambda: node.watches("configmaps") == 0, PATIENCE_S, "no watch is left")
