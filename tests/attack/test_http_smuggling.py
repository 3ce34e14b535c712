"""Requests that two readers would read as two different ones: refused, and the connection closed."""

import re
import socket
import ssl

import pytest

from servers import MAPS, config_map

TIMEOUT_S = 60


def exchange(node, *pieces):
    """All that comes back on a connection of its own, up to its end."""
    context = ssl.create_default_context(cadata=node.ca)
    with socket.create_connection(("127.0.0.1", node.port), timeout=TIMEOUT_S) as bare:
        with context.wrap_socket(bare, server_hostname="127.0.0.1") as conn:
            got = b""
            try:
                for piece in pieces:
                    conn.sendall(piece)
            except (ConnectionError, ssl.SSLEOFError):
                pass  # it was refused before all had been sent
            try:
                while part := conn.recv(65536):
                    got += part
            except (ConnectionError, ssl.SSLEOFError):
                pass  # closed on what we had sent behind the bad request
            return got


def statuses(got):
    return [int(code) for code in re.findall(rb"HTTP/1\.1 (\d\d\d) ", got)]


def head(node, line, *fields, end=b"\r\n"):
    lines = [line, b"Host: h", f"Authorization: Bearer {node.token}".encode(), *fields]
    return end.join(lines) + 2 * end


def smuggled(node):
    """What must never be answered: another request behind the bad one."""
    return head(node, b"GET /version HTTP/1.1", b"Connection: close")


LENGTHS = {
    "no number": [b"Content-Length: x"],
    "negative": [b"Content-Length: -1"],
    "signed": [b"Content-Length: +0"],
    "hexadecimal": [b"Content-Length: 0x0"],
    "a list": [b"Content-Length: 0, 0"],
    "empty": [b"Content-Length:"],
    "twice the same": [b"Content-Length: 0", b"Content-Length: 0"],
    "two that differ": [b"Content-Length: 0", b"Content-Length: 5"],
    "length and chunks": [b"Content-Length: 5", b"Transfer-Encoding: chunked"],
    "chunks and length": [b"Transfer-Encoding: chunked", b"Content-Length: 0"],
    "chunked twice": [b"Transfer-Encoding: chunked", b"Transfer-Encoding: chunked"],
}


@pytest.mark.parametrize("fields", LENGTHS.values(), ids=LENGTHS.keys())
def test_a_bad_length_closes_the_connection(node, fields):
    got = exchange(node, head(node, b"POST " + MAPS.encode() + b" HTTP/1.1", *fields)
                   + b"0\r\n\r\n" + smuggled(node))
    assert statuses(got) == [400], got
    assert b"gitVersion" not in got


CHUNKS = [b"x\r\n", b"-1\r\n", b"0x1\r\na\r\n", b"fffffffffffffffff\r\n", b"1\r\nab\r\n"]


@pytest.mark.parametrize("chunk", CHUNKS)
def test_a_bad_chunk_closes_the_connection(node, chunk):
    line = b"POST " + MAPS.encode() + b" HTTP/1.1"
    got = exchange(node, head(node, line, b"Transfer-Encoding: chunked") + chunk, smuggled(node))
    assert all(status >= 400 for status in statuses(got)), got


def test_fields_over_several_lines_hide_nobody(node):
    """The value in the next line was lost, and the administrator was nobody else."""
    for fold in (b"Impersonate-User:\r\n system:node:other", b"Impersonate-User: a\r\n\tb",
                 b"X-Other: a\r\n b"):
        got = exchange(node, head(node, b"GET /api/v1/secrets HTTP/1.1", fold))
        assert statuses(got) == [400], got


def test_zero_bytes_change_no_target(node, api):
    """The path ended there: the deletion of one was that of all."""
    api.must("POST", MAPS, config_map("kept"))
    for path in (b"/api/v1/namespaces/default/configmaps\0/x",
                 b"/api/v1/namespaces/default/configmaps%00/x",
                 b"/api/v1/namespaces/default/configmaps\0"):
        got = exchange(node, head(node, b"DELETE " + path + b" HTTP/1.1"))
        assert statuses(got) == [400], got
    for field in (b"X-Zero: a\0b", b"X-Zero\0: a", b"X-Zero: a\0", b"\0X-Zero: a",
                  b"Impersonate-User: \0system:node:other"):
        got = exchange(node, head(node, b"GET /api/v1/secrets HTTP/1.1", field))
        assert statuses(got) == [400], (field, got)
    api.must("GET", f"{MAPS}/kept")


def test_lines_end_in_crlf(node):
    for request in (
        head(node, b"GET /version HTTP/1.1", end=b"\n"),
        head(node, b"GET /version HTTP/1.1", b"A: b\nImpersonate-User: c"),
        head(node, b"GET /version HTTP/1.1", b"A: b\rImpersonate-User: c"),
        head(node, b"GET /version HTTP/1.1", b"A: b\r"),
        head(node, b"GET /version HTTP/1.1", b"A : b"),
        head(node, b"GET /version HTTP/1.1", b" A: b"),
        head(node, b"GET /version HTTP/1.1", b": b"),
        head(node, b"GET  /version HTTP/1.1"),
        head(node, b"GET /version x HTTP/1.1"),
    ):
        got = exchange(node, request)
        assert statuses(got) == [400], (request, got)


@pytest.mark.parametrize("field", [
    b"Authorization: Bearer other", b"authorization: Basic x", b"Host: other",
])
def test_who_asks_is_said_once(node, field):
    got = exchange(node, head(node, b"GET /version HTTP/1.1", field))
    assert statuses(got) == [400], got


def test_impersonated_users_are_said_once(node):
    fields = [b"Impersonate-User: a", b"Impersonate-User: system:admin"]
    got = exchange(node, head(node, b"GET /version HTTP/1.1", *fields))
    assert statuses(got) == [400], got


@pytest.mark.parametrize("method", ["TRACE", "CONNECT", "PROPFIND", "get", "DELETEX"])
@pytest.mark.parametrize("path", ["/version", "/healthz", "/api/v1/nodes", "/metrics", "/openapi/v2",
                                  "/apis", "/", "/davit/v1/node", "/davit/v1/tokens"])
def test_other_methods_are_none(api, method, path):
    answer = api.ask(method, path)
    assert answer.status == 405, answer


def test_odd_targets_reach_nothing(node):
    for target in (b"*", b"version", b"http:/version", b"//version", b"/version#x", b"/a/../version",
                   b"/./version", b"/api/v1/nodes/..%2fnodes", b"/%2e%2e/version", b"/version%0d%0aX: y",
                   b"/%ff"):
        got = exchange(node, head(node, b"GET " + target + b" HTTP/1.1", b"Connection: close"))
        assert statuses(got) in ([400], [404]), (target, got)


def test_floods_of_fields_are_refused(node, api):
    for fields in ([b"A: b"] * 5000, [b"A: " + b"b" * 100000], [b"A" * 100000 + b": b"]):
        got = exchange(node, head(node, b"GET /version HTTP/1.1", *fields))
        assert statuses(got) in ([431], []), got[:400]
    api.must("GET", "/version")
