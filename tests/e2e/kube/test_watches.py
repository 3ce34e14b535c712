"""Watches: many at once, slow ones, and what they are told at the beginning and the end."""

import json
import socket
import ssl
import time

import pytest

pytestmark = pytest.mark.release

MAPS = "/api/v1/namespaces/default/configmaps"
# More than the changes that are kept and those that fit into sockets' buffers, which take some MiB.
N_KEPT = 100
N_CHANGES = 400
CHANGE_BYTES = 100000
READ_S = 10  # who reads nothing at all for a minute is cut off


def lines_of(answer):
    return [json.loads(line) for line in answer.read().splitlines()]


def test_a_watch_begins_with_what_is_there_and_says_so(api):
    for number in range(3):
        api.must("POST", MAPS, {"metadata": {"name": f"m{number}"}})
    connection, answer = api.open("GET", MAPS + "?watch=1&sendInitialEvents=true&timeoutSeconds=1"
                                  "&allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan")
    events = lines_of(answer)
    connection.close()
    assert [event["type"] for event in events[:4]] == ["ADDED"] * 3 + ["BOOKMARK"]
    metadata = events[3]["object"]["metadata"]
    assert metadata["annotations"] == {"k8s.io/initial-events-end": "true"}


def test_all_watchers_see_all_changes_in_order(api):
    watches = [api.open("GET", MAPS + "?watch=1&resourceVersion=0") for _ in range(100)]
    for number in range(100):
        api.must("POST", MAPS, {"metadata": {"name": f"m{number:03}"}})
    for connection, answer in watches:
        names = [json.loads(answer.readline())["object"]["metadata"]["name"] for _ in range(100)]
        assert names == [f"m{number:03}" for number in range(100)]
        connection.close()


@pytest.mark.api_options("--history", str(N_KEPT))
def test_who_does_not_read_is_told_to_begin_anew(api):
    raw = socket.socket()
    raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    raw.connect(("127.0.0.1", api.port))
    slow = api.context.wrap_socket(raw, server_hostname="127.0.0.1")
    slow.sendall(f"GET {MAPS}?watch=1&resourceVersion=0 HTTP/1.1\r\nHost: x\r\n"
                 "Authorization: Bearer admintoken\r\n\r\n".encode())
    api.must("POST", MAPS, {"metadata": {"name": "m"}})
    connection = api.connect()
    text = b""
    read_at = 0
    for number in range(N_CHANGES):
        if time.monotonic() - read_at > READ_S:
            text += slow.recv(4096)
            read_at = time.monotonic()
        connection.request("PATCH", f"{MAPS}/m", json.dumps({"data": {"a": f"{number:0{CHANGE_BYTES}}"}}),
                           {"Authorization": "Bearer admintoken",
                            "Content-Type": "application/merge-patch+json"})
        answer = connection.getresponse()
        answer.read()
        assert answer.status == 200
    while not text.endswith(b"\r\n0\r\n\r\n"):
        part = slow.recv(1 << 20)
        assert part, "the stream broke off"
        text += part
    last, _ = json.JSONDecoder().raw_decode(text[text.rindex(b'{"type"'):].decode())
    assert (last["type"], last["object"]["code"]) == ("ERROR", 410)
    slow.close()


def test_a_version_from_before_the_history_is_gone(api):
    connection, answer = api.open("GET", MAPS + "?watch=1&resourceVersion=abc")
    assert answer.status == 500
    connection.close()


def test_a_client_that_breaks_off_costs_nothing(api):
    for _ in range(50):
        connection, answer = api.open("GET", MAPS + "?watch=1")
        assert answer.status == 200
        connection.close()
    api.must("POST", MAPS, {"metadata": {"name": "m"}})


def test_certificates_of_strangers_are_refused(api):
    strict = ssl.create_default_context()
    with socket.create_connection(("127.0.0.1", api.port)) as raw:
        try:
            strict.wrap_socket(raw, server_hostname="127.0.0.1")
        except ssl.SSLCertVerificationError:
            return
    raise AssertionError("no CA vouched for it")
