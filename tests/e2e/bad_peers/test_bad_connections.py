"""Broken connections, bombs and floods: each is closed or borne, and costs bounded memory.

After every case the server still runs, has no call left open, and answers a well-behaved client
(grpcio) that was connected all the time; see conftest.py.
"""

import socket
import struct
import time

import pytest

import h2raw
from h2raw import data, frame, headers, message, rst_stream, settings, window_update
from hpack import encode_header, encode_headers
from procs import until
from raw_calls import CLOSED, HELLO, RESET, WATCH, assert_outcome, outcome, request

pytestmark = pytest.mark.release

MIB = 1 << 20


# ------------------------------------------------------------------------------- broken connections

BROKEN = {
    "http-1": b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "garbage": bytes(range(256)) * 16,
    "preface-then-garbage": h2raw.PREFACE + bytes(range(255, -1, -1)) * 16,
    "preface-then-no-settings": h2raw.PREFACE + frame(h2raw.PING, payload=b"12345678"),
    "zeros": bytes(4096),
    "absurd-length": h2raw.PREFACE + settings() + frame(h2raw.DATA, 0, 1, b"", length=0xFFFFFF),
    "data-on-stream-0": h2raw.PREFACE + settings() + data(0, b"x"),
    "data-on-an-idle-stream": h2raw.PREFACE + settings() + data(7, b"x"),
    "headers-on-stream-0": h2raw.PREFACE + settings() + headers(0, request()),
    "headers-on-an-even-stream": h2raw.PREFACE + settings() + headers(2, request()),
    "continuation-alone": h2raw.PREFACE + settings() + frame(h2raw.CONTINUATION, 4, 1, b""),
    "frame-inside-headers": h2raw.PREFACE
    + settings()
    + frame(h2raw.HEADERS, 0, 1, b"")
    + frame(h2raw.PING, payload=b"12345678"),
    "push-promise": h2raw.PREFACE + settings() + frame(h2raw.PUSH_PROMISE, 4, 1, bytes(4)),
    "bad-hpack-index": h2raw.PREFACE + settings() + frame(h2raw.HEADERS, 4, 1, b"\xff\xff\x7f"),
    "bad-hpack-string": h2raw.PREFACE + settings() + frame(h2raw.HEADERS, 4, 1, b"\x00\x7fabc"),
    "ping-of-7-bytes": h2raw.PREFACE + settings() + frame(h2raw.PING, payload=b"1234567"),
    "settings-of-5-bytes": h2raw.PREFACE + settings() + frame(h2raw.SETTINGS, payload=b"12345"),
    "window-over-2-gib": h2raw.PREFACE + settings() + window_update(0, h2raw.WINDOW_MAX),
    "window-setting-over-2-gib": h2raw.PREFACE + settings((h2raw.INITIAL_WINDOW_SIZE, 2**31)),
    "window-update-of-0": h2raw.PREFACE + settings() + window_update(0, 0),
    "max-frame-size-of-1": h2raw.PREFACE + settings((h2raw.MAX_FRAME_SIZE, 1)),
    "rst-on-an-idle-stream": h2raw.PREFACE + settings() + rst_stream(9, 0),
}


@pytest.mark.parametrize("sent", BROKEN.values(), ids=BROKEN.keys())
def test_broken_connection_is_closed(server, sent):
    with h2raw.connect(server.socket) as connection:
        connection.send(sent)
        connection.wait_closed()


@pytest.mark.parametrize("n", [1, 10, 24, 30, 50])
def test_client_that_leaves_early(server, n):
    """In the preface, after it, in a frame's header, in a frame."""
    everything = h2raw.PREFACE + settings((1, 1)) + headers(1, request()) + data(1, HELLO)
    with h2raw.connect(server.socket) as connection:
        connection.send(everything[:n])


def test_client_that_shuts_its_writing_side(conn, ask):
    conn.send(headers(1, request()), data(1, message(ask(delay_ms=50)), end=True))
    conn.sock.shutdown(socket.SHUT_WR)
    stream = conn.wait_over(1)  # answered or closed, but not left hanging
    assert_outcome(conn, stream, "grpc 0", CLOSED)


# --------------------------------------------------------------------------------- bombs and floods


def flood(connection, chunk, n_bytes, check):
    """Sends `chunk` over and over and reads nothing, until it is `n_bytes` or nobody takes it."""
    connection.timeout_s = 2
    for i in range(n_bytes // len(chunk)):
        if not connection.send(chunk):
            return
        if i % 16 == 0:
            check()


def test_header_bomb(conn, bounded):
    """A header block that never ends."""
    conn.send(frame(h2raw.HEADERS, 0, 1, encode_headers(request())))
    piece = encode_header("x-bomb", "x" * 16000)
    flood(conn, frame(h2raw.CONTINUATION, 0, 1, piece) * 8, 128 * MIB, bounded)
    conn.wait_closed()


def test_empty_continuation_flood(conn, bounded):
    conn.send(frame(h2raw.HEADERS, 0, 1, encode_headers(request())))
    flood(conn, frame(h2raw.CONTINUATION, 0, 1) * 10000, 8 * MIB, bounded)
    conn.wait_closed()


REFUSED = ("http 431", "http 400", "grpc 8", "grpc 13", RESET, CLOSED)


def test_header_list_over_the_limit(conn):
    pairs = request(add=[(f"x-{i}", "y" * 4000) for i in range(25)])
    block = encode_headers(pairs)
    pieces = [block[i : i + 16000] for i in range(0, len(block), 16000)]
    conn.send(frame(h2raw.HEADERS, 0, 1, pieces[0]))
    conn.send(*(frame(h2raw.CONTINUATION, 0, 1, piece) for piece in pieces[1:-1]))
    conn.send(frame(h2raw.CONTINUATION, h2raw.END_HEADERS, 1, pieces[-1]))
    conn.send(data(1, HELLO, end=True))
    assert_outcome(conn, conn.wait_over(1), *REFUSED)


def test_header_count_bomb(conn, bounded):
    block = encode_headers(request()) + encode_header("a", "") * 4000
    for stream in range(1, 65, 2):
        conn.send(frame(h2raw.HEADERS, h2raw.END_HEADERS, stream, block))
        conn.send(data(stream, HELLO, end=True))
    assert_outcome(conn, conn.wait_over(1), *REFUSED)


def test_hpack_bomb(conn, bounded):
    """One byte each for headers of 3,900: a block of 16 KB stands for 60 MB."""
    block = encode_headers(request())
    block += encode_header("x-bomb", "x" * 3900, indexed=True) + b"\xbe" * 12000
    conn.send(frame(h2raw.HEADERS, h2raw.END_HEADERS, 1, block), data(1, HELLO, end=True))
    assert_outcome(conn, conn.wait_over(1), *REFUSED)


FLOODS = {
    "settings": settings((h2raw.INITIAL_WINDOW_SIZE, 65535)),
    "empty-settings": settings(),
    "ping": frame(h2raw.PING, payload=b"12345678"),
    "unknown-frames": frame(0xEE, payload=b"12345678"),
    "priority": frame(h2raw.PRIORITY, 0, 1, struct.pack(">IB", 0, 9)),
    "empty-data": data(1, b""),
    "empty-padded-data": data(1, b"", padding=255),
    "window-updates": window_update(1, 1),
}


@pytest.mark.parametrize("unit", FLOODS.values(), ids=FLOODS.keys())
def test_flood(conn, bounded, unit):
    """An answer to each would be tens of MB; reading nothing, we must not make it keep them."""
    conn.send(headers(1, request()))
    flood(conn, unit * 10000, 8 * MIB, bounded)


def test_rapid_reset(conn, ask, bounded):
    body = message(ask(delay_ms=60000))
    burst = [
        headers(i, request()) + data(i, body, end=True) + rst_stream(i, h2raw.CANCEL)
        for i in range(1, 40001, 2)
    ]
    for i in range(0, len(burst), 1000):
        if not conn.send(*burst[i : i + 1000]):
            break
        bounded()


def observe(check, seconds):
    """For what must not happen: nothing can be waited for, so look again and again."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        check()
        time.sleep(0.02)


@pytest.mark.parametrize("window", [0, h2raw.WINDOW_MAX], ids=["no-window", "endless-window"])
def test_client_that_never_reads(server, ask, bounded, window):
    """A gigabyte is asked for, on each of four streams, and never read."""
    with h2raw.connect(server.socket) as connection:
        connection.send(
            h2raw.PREFACE,
            settings((h2raw.INITIAL_WINDOW_SIZE, window)),
            window_update(0, h2raw.WINDOW_MAX - 65535),
        )
        for stream in (1, 3, 5, 7):
            body = message(ask(count=1000, reply_bytes=MIB))
            connection.send(headers(stream, request(path=WATCH)), data(stream, body, end=True))
        until(lambda: server.seen().open == 4, 5, "the streams run")
        observe(bounded, 1)
        assert server.seen().open == 4  # and the others are served meanwhile


def test_half_a_message_then_silence(server, bounded):
    """Twenty of them, each of which says that 60 MiB will come."""
    connections = []
    for _ in range(20):
        connection = h2raw.connect(server.socket)
        connections.append(connection)
        connection.send(h2raw.PREFACE, settings(), headers(1, request()))
        connection.send(data(1, message(b"x" * 1000, length=60 * MIB)))
        connection.send(frame(h2raw.PING, payload=b"has come"))
    for connection in connections:
        assert connection.read_until(lambda: connection.pongs)
        assert outcome(connection, connection.streams.get(1, h2raw.Stream(1))) == {"open"}
    bounded()
    server.seen()
    for connection in connections:
        connection.close()


def test_many_silent_connections(server, bounded):
    connections = [h2raw.connect(server.socket) for _ in range(300)]
    for connection in connections:
        assert connection.read_frame() is not None
    server.seen()
    for connection in connections:
        connection.close()
