"""Clients of the API that speak HTTP/2, and break its rules or only keep it busy."""

import contextlib
import json
import socket

import h2raw
import pytest

from servers import MAPS, PATIENCE_S, config_map


@contextlib.contextmanager
def connected(node, *pairs):
    """A connection that both sides agree to be HTTP/2."""
    context = node.context()
    context.set_alpn_protocols(["h2"])
    bare = socket.create_connection(("127.0.0.1", node.port), PATIENCE_S)
    with context.wrap_socket(bare, server_hostname="127.0.0.1") as tls:
        assert tls.selected_alpn_protocol() == "h2"
        conn = h2raw.Connection(tls, PATIENCE_S)
        conn.send(h2raw.PREFACE, h2raw.settings(*pairs))
        yield conn


def fields(node, path="/version", method="GET", more=()):
    return [(":method", method), (":scheme", "https"), (":authority", "127.0.0.1"),
            (":path", path), ("authorization", f"Bearer {node.token}"), *more]


def get(node, conn, number, path="/version", more=()):
    conn.send(h2raw.headers(number, fields(node, path, more=more), end=True))
    return conn.wait_over(number)


def test_requests_and_watches_share_a_connection(node, api):
    with connected(node) as conn:
        conn.send(h2raw.headers(1, fields(node, MAPS + "?watch=true"), end=True))
        for number in range(3, 41, 2):
            assert get(node, conn, number).first(":status") == "200"
        api.must("POST", MAPS, config_map("seen"))
        watch = conn.streams[1]
        assert conn.read_until(lambda: b'"seen"' in watch.data)
        assert not watch.is_over
        body = json.dumps(config_map("made")).encode()
        conn.send(h2raw.headers(41, fields(node, MAPS, "POST",
                                           [("content-type", "application/json")])),
                  h2raw.data_frames(41, body, end=True))
        assert conn.wait_over(41).first(":status") == "201"
        assert conn.read_until(lambda: b'"made"' in watch.data)


FLOODS = {
    "resets": lambda node, i: (h2raw.headers(2 * i + 1, fields(node), end=True)
                               + h2raw.rst_stream(2 * i + 1, h2raw.CANCEL)),
    "pings": lambda node, i: h2raw.frame(h2raw.PING, payload=b"12345678"),
    "settings": lambda node, i: h2raw.settings((h2raw.INITIAL_WINDOW_SIZE, 65535 + i % 2)),
    "empty data": lambda node, i: h2raw.data(1, b"") if i else h2raw.headers(
        1, fields(node, MAPS, "POST")),
    "continuations": lambda node, i: h2raw.frame(
        h2raw.CONTINUATION if i else h2raw.HEADERS, 0, 1, b"\x00\x01a\x01b" * 100),
    "priorities": lambda node, i: h2raw.frame(h2raw.PRIORITY, 0, 2 * i + 1, b"\0\0\0\0\1"),
}


@pytest.mark.parametrize("flood", FLOODS.values(), ids=FLOODS.keys())
def test_floods_cost_the_connection(node, api, flood):
    with connected(node) as conn:
        conn.acks = False
        is_open = True
        for start in range(0, 200000, 200):
            is_open = conn.send(b"".join(flood(node, i) for i in range(start, start + 200)))
            if not is_open:
                break
        assert not is_open, "it takes all of it"
    api.must("GET", "/version")


def test_streams_beyond_the_limit_cost_the_connection(node, api):
    with connected(node) as conn:
        assert get(node, conn, 1).first(":status") == "200"
        limit = conn.settings[h2raw.MAX_CONCURRENT_STREAMS]
        assert limit <= 250
        numbers = range(3, 3 + 2 * (limit + 20), 2)
        conn.send(b"".join(h2raw.headers(number, fields(node, MAPS + "?watch=true"), end=True)
                           for number in numbers))
        conn.wait_closed()
        api.must("GET", "/version")


def test_a_client_without_a_window_holds_only_itself(node, api):
    for number in range(20):
        api.must("POST", MAPS, config_map(f"large-{number}", {"text": "x" * 50000}))
    with connected(node, (h2raw.INITIAL_WINDOW_SIZE, 0)) as conn:
        conn.send(b"".join(h2raw.headers(number, fields(node, MAPS), end=True)
                           for number in range(1, 101, 2)))
        assert conn.read_until(lambda: len(conn.streams) >= 10)
        for _ in range(20):
            api.must("GET", f"{MAPS}/large-0")
        conn.send(h2raw.window_update(0, 100 << 20), h2raw.window_update(1, 10 << 20))
        assert conn.wait_over(1).first(":status") == "200"


BAD_FIELDS = {
    "line end": [("x-a", "b\r\nimpersonate-user: c")],
    "zero": [("x-a", "b\0c")],
    "upper case": [("Impersonate-User", "a")],
    "connection": [("connection", "close")],
    "encoding": [("transfer-encoding", "chunked")],
    "length": [("content-length", "5")],
    "two tokens": [("authorization", "Bearer other")],
    "two users": [("impersonate-user", "a"), ("impersonate-user", "b")],
    "late pseudo-field": [(":path", "/api")],
    "space": [("x a", "b")],
    "empty name": [("", "b")],
}


@pytest.mark.parametrize("more", BAD_FIELDS.values(), ids=BAD_FIELDS.keys())
def test_what_two_readers_could_read_as_two_requests_is_refused(node, api, more):
    with connected(node) as conn:
        stream = get(node, conn, 1, "/api/v1/secrets", more)
        assert stream.first(":status") in (None, "400"), stream.blocks
    api.must("GET", "/version")


@pytest.mark.parametrize("first", [b"GET / HTTP/1.1\r\nHost: h\r\n\r\n", b"\0" * 100,
                                   h2raw.PREFACE + h2raw.data(1, b"x"), h2raw.PREFACE[:10] + b"x"])
def test_what_is_not_http2_is_closed(node, api, first):
    context = node.context()
    context.set_alpn_protocols(["h2"])
    bare = socket.create_connection(("127.0.0.1", node.port), PATIENCE_S)
    with context.wrap_socket(bare, server_hostname="127.0.0.1") as tls:
        conn = h2raw.Connection(tls, PATIENCE_S)
        conn.send(first)
        conn.wait_closed()
    api.must("GET", "/version")
