"""Requests that are odd or break the rules: each is served, or gets its proper status.

After every case the server still runs, has no call left open, and answers a well-behaved client
(grpcio) that was connected all the time; see conftest.py.
"""

import os
import struct

import pytest

import h2raw
from h2raw import data, frame, headers, message, rst_stream, settings, window_update
from hpack import encode_headers
from peers import peer_path
from procs import until
from raw_calls import CLOSED, HELLO, RESET, UNARY, WATCH, assert_outcome, assert_works, request

pytestmark = pytest.mark.release

MESSAGE_BYTES_MAX = 64 << 20  # the server's limit


# ----------------------------------------------------------------------- what our answers look like


def test_server_speaks_first(server):
    """Its SETTINGS come before we have said anything; then we stay silent."""
    with h2raw.connect(server.socket) as connection:
        first = connection.read_frame()
        assert first is not None and first.type == h2raw.SETTINGS
        assert h2raw.MAX_CONCURRENT_STREAMS in connection.settings
        assert 8192 <= connection.settings[h2raw.MAX_HEADER_LIST_SIZE] <= 65536
        server.check()


def test_answer_has_headers_message_and_trailers(conn):
    conn.send(headers(1, request()), data(1, message(b"\x0a\x02hi"), end=True))
    stream = conn.wait_over(1)
    assert stream.first(":status") == "200"
    assert stream.first("content-type").startswith("application/grpc")
    assert len(stream.blocks) == 2 and stream.ended_by == h2raw.HEADERS
    assert stream.last("grpc-status") == "0"
    assert stream.messages == [b"\x0a\x02hi"]


def test_error_is_trailers_only_and_percent_encoded(conn, ask):
    text = "Gerät „gpu-0“ 100%\n"
    conn.send(headers(1, request()), data(1, message(ask(code=9, message=text)), end=True))
    stream = conn.wait_over(1)
    assert stream.is_trailers_only
    assert stream.first(":status") == "200"
    assert stream.first("content-type").startswith("application/grpc")
    assert stream.last("grpc-status") == "9"
    assert stream.last("grpc-message").isascii() and stream.last("grpc-message").isprintable()
    assert stream.grpc_message == text


def test_pings_are_answered_with_their_payload(conn):
    conn.send(frame(h2raw.PING, payload=b"12345678"))
    conn.read_until(lambda: conn.pongs)
    assert conn.pongs == [b"12345678"]


def test_settings_are_acknowledged(conn):
    conn.send(settings((h2raw.HEADER_TABLE_SIZE, 0), (0xFE03, 1)))
    conn.read_until(lambda: sum(f.type == h2raw.SETTINGS and f.flags for f in conn.frames) == 2)
    assert_works(conn, 1)


def test_sigterm_says_goodbye_and_lets_calls_finish(procs, short_dir, ask, subject):
    path = os.path.join(short_dir, "s")
    serving = procs.start(peer_path(subject), "server", path, ready="ready")
    with h2raw.connect(path) as connection:
        connection.send(h2raw.PREFACE, settings(), headers(1, request()))
        connection.send(data(1, message(ask(delay_ms=400)), end=True))
        connection.send(frame(h2raw.PING, payload=b"has come"))
        connection.read_until(lambda: connection.pongs)
        serving.signal(15)
        assert_outcome(connection, connection.wait_over(1), "grpc 0")
        connection.read_until(lambda: False)
        assert connection.is_closed
        ids = [last for last, _, _ in connection.goaways]
        assert ids and ids == sorted(ids, reverse=True), f"GOAWAY {connection.goaways}"
        assert ids[-1] in (1, h2raw.STREAM_ID_MAX)
        assert all(code == h2raw.NO_ERROR for _, code, _ in connection.goaways)
    assert serving.wait(5) == 0, serving.describe()


# ---------------------------------------------------------------------------- odd, but to be served

ACCEPTED_HEADERS = {
    "no-te": request(drop=["te"]),
    "no-user-agent": request(drop=["user-agent"]),
    "no-scheme": request(drop=[":scheme"]),
    "https-scheme": request(scheme="https"),
    "authority-raw-path": request(authority="/var/lib/kubelet/device-plugins/kubelet.sock"),
    "authority-percent-encoded": request(authority="%2Fvar%2Flib%2Fkubelet%2Fkubelet.sock"),
    "authority-empty": request(authority=""),
    "authority-missing": request(drop=[":authority"]),
    "authority-with-spaces": request(authority="a b"),
    "host-instead-of-authority": request(drop=[":authority"], add=[("host", "x")]),
    "content-type-proto": request(content_type="application/grpc+proto"),
    "content-type-parameter": request(content_type="application/grpc;charset=utf-8"),
    "accept-encoding": request(add=[("grpc-accept-encoding", "gzip, identity, zstd")]),
    "identity-encoding": request(add=[("grpc-encoding", "identity")]),
    "unknown-metadata": request(add=[("x-y", "z"), ("x-y", "z2"), ("b-bin", "AAEC"), ("e", "")]),
    "long-timeout": request(add=[("grpc-timeout", "99999999H")]),
}


@pytest.mark.parametrize("pairs", ACCEPTED_HEADERS.values(), ids=ACCEPTED_HEADERS.keys())
def test_accepts_headers(conn, pairs):
    conn.send(headers(1, pairs), data(1, message(b"\x0a\x02hi"), end=True))
    stream = conn.wait_over(1)
    assert_outcome(conn, stream, "grpc 0")
    assert len(stream.messages) == 1 and stream.messages[0].startswith(b"\x0a\x02hi")


ACCEPTED_DATA = {
    "padded": data(1, HELLO, end=True, padding=200),
    "one-byte-per-frame": h2raw.data_frames(1, HELLO, end=True, size=1),
    "prefix-apart": data(1, HELLO[:5]) + data(1, HELLO[5:], end=True),
    "padding-only-frames": data(1, b"", padding=9) + data(1, HELLO, end=True),
    "end-on-an-empty-frame": data(1, HELLO) + data(1, b"", end=True),
    "unknown-frame-between": data(1, HELLO[:3])
    + frame(0xEE, 0xFF, 1, b"?")
    + data(1, HELLO[3:], end=True),
    "priority-between": data(1, HELLO[:3])
    + frame(h2raw.PRIORITY, 0, 1, struct.pack(">IB", 3, 9))
    + data(1, HELLO[3:], end=True),
}


@pytest.mark.parametrize("frames", ACCEPTED_DATA.values(), ids=ACCEPTED_DATA.keys())
def test_accepts_data(conn, frames):
    conn.send(headers(1, request()), frames)
    stream = conn.wait_over(1)
    assert_outcome(conn, stream, "grpc 0")
    assert stream.messages == [b"\x0a\x05hello"]


def test_accepts_headers_in_pieces(conn):
    block = encode_headers(request())
    conn.send(frame(h2raw.HEADERS, 0, 1, block[:1]))
    conn.send(*(frame(h2raw.CONTINUATION, 0, 1, block[i : i + 1]) for i in range(1, 5)))
    conn.send(frame(h2raw.CONTINUATION, h2raw.END_HEADERS, 1, block[5:]))
    conn.send(data(1, HELLO, end=True))
    assert_outcome(conn, conn.wait_over(1), "grpc 0")


def test_waits_for_a_window(server, ask):
    """With no window the answer waits; it comes when there is one, in the pieces that it allows."""
    with h2raw.connect(server.socket) as connection:
        connection.grants = False
        connection.send(h2raw.PREFACE, settings((h2raw.INITIAL_WINDOW_SIZE, 0)))
        connection.send(headers(1, request()))
        connection.send(data(1, message(ask(reply_bytes=1000)), end=True))
        connection.send(frame(h2raw.PING, payload=b"round it"))
        connection.read_until(lambda: connection.pongs)
        stream = connection.streams.setdefault(1, h2raw.Stream(1))
        assert not stream.data
        connection.send(window_update(1, 10))
        connection.read_until(lambda: len(stream.data) >= 10)
        assert len(stream.data) == 10
        connection.send(window_update(1, 10000))
        assert_outcome(connection, connection.wait_over(1), "grpc 0")
        assert len(stream.messages) == 1


def test_goaway_from_the_client_lets_its_call_finish(conn, ask):
    conn.send(headers(1, request()), data(1, message(ask(delay_ms=50)), end=True), h2raw.goaway(0))
    assert_outcome(conn, conn.wait_over(1), "grpc 0")


# -------------------------------------------------------------------------------- refused requests

ODD_HEADERS = {
    "content-type-text": (request(content_type="text/plain"), ["http 415"]),
    "content-type-missing": (request(drop=["content-type"]), ["http 415"]),
    "content-type-longer": (request(content_type="application/grpcish"), ["http 415"]),
    "content-type-web": (request(content_type="application/grpc-web"), ["http 415"]),
    "get": (request(method="GET"), ["http 405"]),
    "put": (request(method="PUT"), ["http 405"]),
    "no-method": (request(drop=[":method"]), ["http 405", "http 400", RESET]),
    "no-path": (request(drop=[":path"]), ["grpc 12", "http 400", RESET]),
    "empty-path": (request(path=""), ["grpc 12"]),
    "path-without-slash": (request(path="davit.test.Peer/Unary"), ["grpc 12"]),
    "path-without-method": (request(path="/davit.test.Peer"), ["grpc 12"]),
    "path-of-slashes": (request(path="//"), ["grpc 12"]),
    "path-too-deep": (request(path=UNARY + "/x"), ["grpc 12"]),
    "path-unknown-method": (request(path="/davit.test.Peer/unary"), ["grpc 12"]),
    "path-unknown-service": (request(path="/davit.test.Beer/Unary"), ["grpc 12"]),
    "path-with-nul": (request(path=UNARY + "\0"), ["grpc 12", "http 400", RESET]),
    "path-not-utf8": (request(path=b"/\xff\xfe/\x80"), ["grpc 12", "http 400", RESET]),
    "two-paths": (request(add=[(":path", WATCH)]), ["grpc 12", "grpc 13", "http 400", RESET]),
    "two-methods": (request(add=[(":method", "POST")]), ["grpc 13", "http 405", "http 400", RESET]),
    "connection-header": (request(add=[("connection", "close")]), ["grpc 13", "http 400", RESET]),
    "zero-timeout": (request(add=[("grpc-timeout", "0S")]), ["grpc 4"]),
    "tiny-timeout": (request(add=[("grpc-timeout", "1n")]), ["grpc 4"]),
}
# Servers differ on these: grpc-go refuses, C-core ignores the header. Either will do.
for value in ("", "S", "5", "abc", "-1S", "1.5S", "5x", "123456789S", " 1S", "1S "):
    ODD_HEADERS[f"timeout-{value!r}"] = (
        request(add=[("grpc-timeout", value)]),
        ["grpc 0", "grpc 3", "grpc 13", "http 400"],
    )


@pytest.mark.parametrize("pairs, accepted", ODD_HEADERS.values(), ids=ODD_HEADERS.keys())
def test_odd_headers(conn, ask, pairs, accepted):
    # The delay lets a deadline pass; a call that is answered is answered soon enough.
    payload = ask(delay_ms=20)
    conn.send(headers(1, pairs), data(1, message(payload), end=True))
    assert_outcome(conn, conn.wait_over(1), *accepted)
    if not conn.is_closed:
        assert_works(conn, 3)


GZIP = request(add=[("grpc-encoding", "gzip")])
ODD_DATA = {
    "no-message": (request(), data(1, b"", end=True), ["grpc 13"]),
    "ends-in-the-prefix": (request(), data(1, b"\0\0\0", end=True), ["grpc 13"]),
    "ends-in-the-message": (request(), data(1, HELLO[:-1], end=True), ["grpc 13"]),
    "compressed-without-encoding": (
        request(),
        data(1, message(b"zip", flag=1), end=True),
        ["grpc 13"],
    ),
    "compressed": (GZIP, data(1, message(b"zip", flag=1), end=True), ["grpc 12"]),
    "flag-2": (request(), data(1, message(b"?", flag=2), end=True), ["grpc 13"]),
    "flag-255": (request(), data(1, message(b"?", flag=255), end=True), ["grpc 13"]),
    "not-a-protobuf": (request(), data(1, message(b"\xff" * 20), end=True), ["grpc 3", "grpc 13"]),
    "field-past-the-end": (
        request(),
        data(1, message(b"\x0a\x7fshort"), end=True),
        ["grpc 3", "grpc 13"],
    ),
    "length-4-gib": (request(), data(1, message(b"", length=0xFFFFFFFF)), ["grpc 8"]),
    "length-over-the-limit": (
        request(),
        data(1, message(b"x", length=MESSAGE_BYTES_MAX + 1)),
        ["grpc 8"],
    ),
    # An extra message may be ignored or refused.
    "two-messages": (request(), data(1, HELLO + HELLO, end=True), ["grpc 0", "grpc 13"]),
    # So may trailers that end the stream; a second HEADERS that does not end it may not.
    "trailers": (
        request(),
        data(1, HELLO) + headers(1, [("x", "y")], end=True),
        ["grpc 0", "grpc 13", "http 400", RESET, CLOSED],
    ),
    "second-headers": (
        request(),
        headers(1, request()) + data(1, HELLO, end=True),
        ["grpc 13", "http 400", RESET, CLOSED],
    ),
    "bad-padding": (request(), frame(h2raw.DATA, h2raw.PADDED, 1, b"\x09abc"), [RESET, CLOSED]),
}


@pytest.mark.parametrize("pairs, frames, accepted", ODD_DATA.values(), ids=ODD_DATA.keys())
def test_odd_data(conn, pairs, frames, accepted):
    conn.send(headers(1, pairs), frames)
    assert_outcome(conn, conn.wait_over(1), *accepted)
    if not conn.is_closed and not conn.goaways:
        assert_works(conn, 3)


def test_request_without_data(conn):
    conn.send(headers(1, request(), end=True))
    assert_outcome(conn, conn.wait_over(1), "grpc 13")
    assert_works(conn, 3)


def test_names_the_encodings_it_has(conn):
    conn.send(headers(1, GZIP), data(1, message(b"zip", flag=1), end=True))
    assert conn.wait_over(1).last("grpc-accept-encoding") is not None


def test_ends_a_stream_that_the_client_has_not(conn):
    """Trailers before the client's half-close must be followed by RST_STREAM NO_ERROR."""
    conn.send(headers(1, request(path="/no/thing")))
    assert_outcome(conn, conn.wait_over(1), "grpc 12")
    assert conn.read_until(lambda: conn.streams[1].reset is not None)
    assert conn.streams[1].reset == h2raw.NO_ERROR
    conn.send(data(1, HELLO, end=True))  # too late, and to be ignored
    assert_works(conn, 3)


def test_a_deadline_is_kept_for_a_request_that_never_comes(conn):
    conn.send(headers(1, request(add=[("grpc-timeout", "200m")])))
    assert_outcome(conn, conn.wait_over(1), "grpc 4")


def test_streams_over_the_limit_are_refused(server, ask):
    with h2raw.connect(server.socket, timeout_s=20) as connection:
        connection.send(h2raw.PREFACE, settings())
        connection.read_until(lambda: connection.settings)
        limit = connection.settings[h2raw.MAX_CONCURRENT_STREAMS]
        body = message(ask(delay_ms=60000))
        ids = range(1, 2 * (limit + 10), 2)
        connection.send(*(headers(i, request()) + data(i, body, end=True) for i in ids))
        connection.read_until(
            lambda: sum(stream.is_over for stream in connection.streams.values()) >= 10
        )
        over = {i: s.reset for i, s in connection.streams.items() if s.is_over}
        assert over == {i: h2raw.REFUSED_STREAM for i in ids[limit:]} or connection.is_closed


def test_rst_right_after_headers(conn):
    conn.send(headers(1, request()), rst_stream(1, h2raw.CANCEL))
    assert_works(conn, 3)


def test_rst_during_a_call(server, conn, ask):
    conn.send(headers(1, request()), data(1, message(ask(delay_ms=60000)), end=True))
    until(lambda: server.seen().open == 1, 5, "the call runs")
    conn.send(rst_stream(1, h2raw.CANCEL))
    until(lambda: server.seen().open == 0, 5, "the call has ended")
    assert_works(conn, 3)
