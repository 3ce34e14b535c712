"""Servers that break the rules, against our client: each call ends with the proper status, soon.

The client is `davit-peer call`, which prints one JSON line a call.
"""

import json
import os
import time

import pytest

import h2raw
from h2raw import data, frame, goaway, headers, message, rst_stream, settings
from hpack import encode_header, encode_headers
from peers import peer_path

pytestmark = pytest.mark.release

UNARY = "/davit.test.Peer/Unary"
OK, CANCELLED, UNKNOWN, DEADLINE_EXCEEDED, PERMISSION_DENIED = 0, 1, 2, 4, 7
RESOURCE_EXHAUSTED, FAILED_PRECONDITION, UNIMPLEMENTED, INTERNAL = 8, 9, 12, 13
UNAVAILABLE, UNAUTHENTICATED = 14, 16

START = [(":status", "200"), ("content-type", "application/grpc")]
HELLO = message(b"\x0a\x05hello")
MIB = 1 << 20


@pytest.fixture
def call(procs, short_dir, subject):
    """Runs a script as server and the client against it; returns the outcomes and the server."""

    def run(script, *options, accepts=True, timeout_ms=5000):
        path = os.path.join(short_dir, "s")
        with h2raw.RawServer(path, script, accepts) as server:
            options = ["--timeout-ms", timeout_ms, *options]
            client = procs.start(peer_path(subject), "call", path, UNARY, *options)
            code = client.wait(timeout_ms / 1000 + 10)
            assert code == 0, client.describe()
        outcomes = [json.loads(line) for line in client.lines]
        assert outcomes, client.describe()
        return outcomes, server

    return run


def status(code, *more):
    return [("grpc-status", str(code)), *more]


def good_answer(stream):
    return headers(stream, START) + data(stream, HELLO) + headers(stream, status(0), end=True)


def answering(*parts):
    """Answers each request with these frames: a part is bytes, or makes them of the stream id."""

    def script(connection, _n):
        h2raw.serve_start(connection)
        known = set()
        while True:
            stream = h2raw.next_request(connection, known)
            known.add(stream.number)
            connection.send(
                *(part if isinstance(part, bytes) else part(stream.number) for part in parts)
            )

    return script


def start(pairs=START):
    return lambda stream: headers(stream, pairs)


def body(payload, **options):
    return lambda stream: data(stream, payload, **options)


def trailers(pairs):
    return lambda stream: headers(stream, pairs, end=True)


def reset(code):
    return lambda stream: rst_stream(stream, code)


END = trailers(status(0))


# ---------------------------------------------------------------------- what our requests look like


def test_request_is_what_servers_insist_on(call):
    seen = []

    def script(connection, _n):
        h2raw.serve_start(connection, (0xFE03, 1))
        stream = h2raw.next_request(connection)
        seen.append((connection, stream))
        connection.send(good_answer(stream.number))

    outcomes, _ = call(script, "--payload-bytes", 100)
    assert [outcome["code"] for outcome in outcomes] == [OK]
    connection, stream = seen[0]
    pairs = stream.blocks[0]
    names = [name for name, _ in pairs]
    pseudo = [name for name in names if name.startswith(":")]
    assert names[: len(pseudo)] == pseudo and len(set(names)) == len(names)
    wanted = {
        ":method": "POST",
        ":scheme": "http",
        ":path": UNARY,
        ":authority": "localhost",
        "content-type": "application/grpc",
        "te": "trailers",
    }
    assert wanted.items() <= dict(pairs).items()
    assert "grpc-encoding" not in names and "user-agent" in names
    timeout = dict(pairs)["grpc-timeout"]
    assert timeout[:-1].isdigit() and len(timeout) <= 9 and timeout[-1] in "HMSmun"
    assert stream.ended_by == h2raw.DATA and len(stream.blocks) == 1
    assert len(stream.messages) == 1 and len(stream.messages[0]) == 102
    assert not any(f.type == h2raw.DATA and f.flags & h2raw.PADDED for f in connection.frames)
    assert connection.settings[h2raw.ENABLE_PUSH] == 0


def test_empty_message_is_sent_as_five_zero_bytes(call):
    seen = []

    def script(connection, _n):
        h2raw.serve_start(connection)
        stream = h2raw.next_request(connection)
        seen.append(bytes(stream.data))
        connection.send(good_answer(stream.number))

    call(script)
    assert seen == [bytes(5)]


def test_windows_and_frame_size_are_respected(call):
    """A MiB into a window of 64 KiB: it stops there, and goes on when it may."""
    stopped_at = []

    def script(connection, _n):
        connection.grants = False
        h2raw.serve_start(connection)
        connection.read_until(lambda: 1 in connection.streams)
        stream = connection.streams[1]
        connection.read_until(lambda: len(stream.data) >= 65535)
        connection.send(frame(h2raw.PING, payload=b"any more"))
        connection.read_until(lambda: connection.pongs)
        stopped_at.append(len(stream.data))
        connection.grants = True
        connection.send(h2raw.window_update(0, 65535), h2raw.window_update(1, 65535))
        connection.read_until(lambda: stream.is_over)
        assert max(stream.data_sizes) <= h2raw.FRAME_BYTES
        assert len(stream.messages) == 1
        connection.send(good_answer(1))

    (outcome,), _ = call(script, "--payload-bytes", MIB)
    assert stopped_at == [65535]
    assert outcome["code"] == OK


def test_settings_and_pings_are_acknowledged(call):
    def script(connection, _n):
        h2raw.serve_start(connection)
        stream = h2raw.next_request(connection)
        connection.send(settings((h2raw.HEADER_TABLE_SIZE, 0), (h2raw.INITIAL_WINDOW_SIZE, 9)))
        connection.send(frame(h2raw.PING, payload=b"12345678"))
        connection.read_until(lambda: connection.pongs)
        acks = [f for f in connection.frames if f.type == h2raw.SETTINGS and f.flags & h2raw.ACK]
        assert connection.pongs == [b"12345678"] and len(acks) == 2
        connection.send(good_answer(stream.number))

    (outcome,), _ = call(script)
    assert outcome["code"] == OK


# ------------------------------------------------------------------------------- odd, but legal

ACCEPTED = {
    "plain": [start(), body(HELLO), END],
    "content-type-proto": [
        start([(":status", "200"), ("content-type", "application/grpc+proto")]),
        body(HELLO),
        END,
    ],
    "1xx-first": [start([(":status", "103"), ("link", "x")]), start(), body(HELLO), END],
    "padded": [start(), body(HELLO, padding=100), END],
    "one-byte-per-frame": [
        start(),
        lambda stream: h2raw.data_frames(stream, HELLO, size=1),
        END,
    ],
    "empty-frames-between": [start(), body(b""), body(HELLO), body(b""), body(b"", padding=3), END],
    "unknown-frames": [frame(0xEE, 3, 0, b"?"), start(), body(HELLO), frame(0xEF, 3, 1, b"?"), END],
    "reset-no-error-after-the-end": [start(), body(HELLO), END, reset(h2raw.NO_ERROR)],
    "message-on-success": [start(), body(HELLO), trailers(status(0, ("grpc-message", "")))],
    "goaway-then-the-answer": [goaway(1), start(), body(HELLO), END],
    "goaway-twice-then-the-answer": [
        goaway(h2raw.STREAM_ID_MAX),
        goaway(1),
        start(),
        body(HELLO),
        END,
    ],
}


@pytest.mark.parametrize("parts", ACCEPTED.values(), ids=ACCEPTED.keys())
def test_accepts(call, parts):
    (outcome,), _ = call(answering(*parts))
    assert outcome["code"] == OK and outcome["n_messages"] == 1, outcome


def test_stream_of_many_messages_in_one_frame(call):
    (outcome,), _ = call(answering(start(), body(HELLO * 100), END), "--stream")
    assert (outcome["code"], outcome["n_messages"]) == (OK, 100)


# ------------------------------------------------------------------------------------ odd answers

TEXT = [(":status", "200"), ("content-type", "text/html")]
ANSWERS = {
    "no-status-in-trailers": ([start(), body(HELLO), trailers([("x", "y")])], [UNKNOWN]),
    "status-not-a-number": ([trailers(START + [("grpc-status", "nine")])], [UNKNOWN]),
    "status-empty": ([trailers(START + [("grpc-status", "")])], [UNKNOWN]),
    "status-huge": ([trailers(START + status(99999999999999999999))], [UNKNOWN]),
    "status-negative": ([trailers(START + status(-1))], [UNKNOWN]),
    "status-42": ([trailers(START + status(42))], [42, UNKNOWN]),
    "status-in-headers-only": (
        [start(START + status(FAILED_PRECONDITION)), reset(h2raw.INTERNAL_ERROR)],
        [INTERNAL],
    ),
    "not-grpc": ([start(TEXT), body(b"<html>", end=True)], [UNKNOWN, INTERNAL]),
    "no-content-type": ([start([(":status", "200")]), body(HELLO), END], [OK, UNKNOWN, INTERNAL]),
    "no-http-status": (
        [start([("content-type", "application/grpc")]), body(HELLO), END],
        [UNKNOWN, INTERNAL],
    ),
    "end-on-data": ([start(), body(HELLO, end=True)], [UNKNOWN, INTERNAL]),
    "no-message": ([start(), END], [INTERNAL]),
    "no-message-trailers-only": ([trailers(START + status(0))], [INTERNAL]),
    "two-messages": ([start(), body(HELLO + HELLO), END], [INTERNAL]),
    "ends-in-a-message": ([start(), body(HELLO[:-1]), END], [INTERNAL]),
    "ends-in-a-prefix": ([start(), body(HELLO[:3]), END], [INTERNAL]),
    "compressed-without-encoding": ([start(), body(message(b"zip", flag=1)), END], [INTERNAL]),
    "compressed": (
        [start(START + [("grpc-encoding", "gzip")]), body(message(b"zip", flag=1)), END],
        [UNIMPLEMENTED, INTERNAL],
    ),
    "flag-2": ([start(), body(message(b"?", flag=2)), END], [INTERNAL]),
    "length-4-gib": ([start(), body(message(b"", length=0xFFFFFFFF))], [RESOURCE_EXHAUSTED]),
    "length-over-the-limit": (
        [start(), body(message(b"", length=64 * MIB + 1))],
        [RESOURCE_EXHAUSTED],
    ),
    "data-before-headers": ([body(HELLO), END], [UNKNOWN, INTERNAL, UNAVAILABLE]),
    "data-after-the-end": ([start(), body(HELLO), END, body(HELLO)], [OK]),
    "huge-grpc-message": (
        [trailers(START + status(9, ("grpc-message", "x" * 15000)))],
        [FAILED_PRECONDITION, RESOURCE_EXHAUSTED, INTERNAL, UNAVAILABLE],
    ),
    "push-promise": (
        [lambda stream: frame(h2raw.PUSH_PROMISE, 4, stream, b"\0\0\0\2" + b"\x82")],
        [UNAVAILABLE, INTERNAL],
    ),
    "window-setting-over-2-gib": (
        [settings((h2raw.INITIAL_WINDOW_SIZE, 2**31))],
        [UNAVAILABLE, INTERNAL],
    ),
    "bad-hpack": ([lambda stream: frame(h2raw.HEADERS, 4, stream, b"\xff\xff\x7f")],
                  [UNAVAILABLE, INTERNAL]),
    "absurd-length": ([frame(h2raw.DATA, 0, 1, b"", length=0xFFFFFF)], [UNAVAILABLE, INTERNAL]),
}  # fmt: skip


@pytest.mark.parametrize("parts, codes", ANSWERS.values(), ids=ANSWERS.keys())
def test_odd_answer(call, parts, codes):
    (outcome,), _ = call(answering(*parts))
    assert outcome["code"] in codes, outcome
    assert outcome["elapsed_ms"] < 3000, outcome


@pytest.mark.parametrize("parts", [[start(), body(HELLO), body(HELLO[:7]), END]])
def test_stream_that_ends_in_a_message(call, parts):
    (outcome,), _ = call(answering(*parts), "--stream")
    assert (outcome["code"], outcome["n_messages"]) == (INTERNAL, 1)


def test_stream_without_messages_is_fine(call):
    (outcome,), _ = call(answering(trailers(START + status(0))), "--stream")
    assert (outcome["code"], outcome["n_messages"]) == (OK, 0)


HTTP_STATUS = {
    400: INTERNAL,
    401: UNAUTHENTICATED,
    403: PERMISSION_DENIED,
    404: UNIMPLEMENTED,
    418: UNKNOWN,
    429: UNAVAILABLE,
    500: UNKNOWN,
    502: UNAVAILABLE,
    503: UNAVAILABLE,
    504: UNAVAILABLE,
}


@pytest.mark.parametrize("http, code", HTTP_STATUS.items())
def test_http_status_with_a_text(call, http, code):
    pairs = [(":status", str(http)), ("content-type", "text/plain")]
    (outcome,), _ = call(answering(start(pairs), body(b"go away", end=True)))
    assert outcome["code"] == code, outcome


# Where grpc-go's table says more than the tested common ground, INTERNAL will do too.
RESETS = {
    0: [INTERNAL],
    1: [INTERNAL],
    2: [INTERNAL],
    3: [INTERNAL, RESOURCE_EXHAUSTED],
    4: [INTERNAL],
    5: [INTERNAL],
    6: [INTERNAL],
    7: [UNAVAILABLE],
    8: [CANCELLED],
    9: [INTERNAL],
    10: [INTERNAL],
    11: [RESOURCE_EXHAUSTED],
    12: [INTERNAL, PERMISSION_DENIED],
    13: [INTERNAL],
    77: [INTERNAL, UNKNOWN],
}


@pytest.mark.parametrize("error, codes", RESETS.items())
@pytest.mark.parametrize("parts", [[], [start()]], ids=["at-once", "after-headers"])
def test_reset(call, parts, error, codes):
    (outcome,), _ = call(answering(*parts, reset(error)))
    assert outcome["code"] in codes, outcome


MESSAGES = {
    "Ger%C3%A4t 100%25": "Gerät 100%",
    "100%": "100%",
    "%zz %4": "%zz %4",
    "%%41": "%A",
    "raw „text“": "raw „text“",
    "": "",
    "a%00b": "a%00b",  # our messages are C strings: a NUL stays escaped
}


@pytest.mark.parametrize("sent, read", MESSAGES.items())
def test_grpc_message(call, sent, read):
    (outcome,), _ = call(answering(trailers(START + status(9, ("grpc-message", sent)))))
    assert (outcome["code"], outcome["message"]) == (FAILED_PRECONDITION, read)


def test_grpc_message_that_is_not_utf8(call):
    (outcome,), _ = call(answering(trailers(START + status(9, ("grpc-message", "a%ff%fe")))))
    assert outcome["code"] == FAILED_PRECONDITION
    assert outcome["message"].startswith("a")


# --------------------------------------------------------------------------- connections, limits


def refusing(refuse):
    """The first connection is refused in some way, those after it are good."""
    good = answering(good_answer)

    def script(connection, n):
        if n == 0:
            refuse(connection)
        else:
            good(connection, n)

    return script


def goaway_at_once(connection):
    h2raw.serve_start(connection)
    connection.send(goaway(0))


def goaway_on_the_request(connection):
    h2raw.serve_start(connection)
    h2raw.next_request(connection)
    connection.send(goaway(0))


def goaway_on_the_request_and_close(connection):
    goaway_on_the_request(connection)
    connection.close()


@pytest.mark.parametrize(
    "refuse", [goaway_at_once, goaway_on_the_request, goaway_on_the_request_and_close]
)
def test_unprocessed_call_is_retried_on_a_new_connection(call, refuse):
    (outcome,), server = call(refusing(refuse), "--wait-for-ready", timeout_ms=10000)
    assert outcome["code"] == OK, outcome
    assert len(server.connections) >= 2


def test_64_calls_where_two_are_allowed(call):
    """Before the server has said so, more may come; they are refused and must be tried again."""
    most = []

    def script(connection, _n):
        h2raw.serve_start(connection, (h2raw.MAX_CONCURRENT_STREAMS, 2))
        admitted, answered = [], set()

        def requests():
            for number, stream in sorted(connection.streams.items()):
                if number in admitted or stream.reset is not None or number in answered:
                    continue
                if len(admitted) < 2:
                    admitted.append(number)
                else:
                    answered.add(number)
                    connection.send(rst_stream(number, h2raw.REFUSED_STREAM))
            most.append(len(admitted))
            return [number for number in admitted if connection.streams[number].is_over]

        while connection.read_until(requests):
            number = requests()[0]
            connection.send(good_answer(number))
            admitted.remove(number)
            answered.add(number)

    outcomes, _ = call(script, "--count", 64)
    assert [outcome["code"] for outcome in outcomes] == [OK] * 64
    assert max(most) <= 2


def test_server_that_accepts_nobody(call):
    (outcome,), _ = call(None, accepts=False, timeout_ms=400)
    assert outcome["code"] == DEADLINE_EXCEEDED, outcome
    assert 300 <= outcome["elapsed_ms"] < 2000


def test_half_open_server(call):
    """It takes all and says nothing, not even SETTINGS."""
    (outcome,), _ = call(lambda connection, n: connection.take(1 << 30, 5), timeout_ms=400)
    assert outcome["code"] == DEADLINE_EXCEEDED, outcome
    assert 300 <= outcome["elapsed_ms"] < 2000


def test_server_that_does_not_answer(call):
    (outcome,), _ = call(answering(start()), timeout_ms=400)
    assert outcome["code"] == DEADLINE_EXCEEDED, outcome
    assert outcome["elapsed_ms"] < 2000


def test_cancel_from_the_server_at_the_deadline(call):
    """grpc-go's server does not answer 4 then, it resets the stream."""

    def script(connection, _n):
        h2raw.serve_start(connection)
        stream = h2raw.next_request(connection)
        time.sleep(0.4)  # the deadline
        connection.send(rst_stream(stream.number, h2raw.CANCEL))

    (outcome,), _ = call(script, timeout_ms=400)
    assert outcome["code"] == DEADLINE_EXCEEDED, outcome


def test_stream_without_end_meets_its_deadline(call):
    def script(connection, _n):
        h2raw.serve_start(connection)
        stream = h2raw.next_request(connection)
        connection.send(headers(stream.number, START))
        while connection.send(data(stream.number, HELLO)):
            time.sleep(0.01)  # the pace of the stream

    (outcome,), _ = call(script, "--stream", timeout_ms=400)
    assert outcome["code"] == DEADLINE_EXCEEDED and outcome["n_messages"] > 3, outcome


def closing(connection, _n):
    connection.close()


def closing_after_the_preface(connection, _n):
    h2raw.serve_start(connection)
    connection.close()


def closing_after_the_request(connection, _n):
    h2raw.serve_start(connection)
    h2raw.next_request(connection)
    connection.close()


def closing_in_a_message(connection, _n):
    h2raw.serve_start(connection)
    stream = h2raw.next_request(connection)
    connection.send(headers(stream.number, START), data(stream.number, HELLO[:7]))
    connection.close()


def closing_in_a_frame(connection, _n):
    h2raw.serve_start(connection)
    stream = h2raw.next_request(connection)
    connection.send(headers(stream.number, START), data(stream.number, HELLO)[:12])
    connection.close()


@pytest.mark.parametrize(
    "script",
    [
        closing,
        closing_after_the_preface,
        closing_after_the_request,
        closing_in_a_message,
        closing_in_a_frame,
    ],
)
def test_server_that_closes(call, script):
    (outcome,), _ = call(script)
    assert outcome["code"] == UNAVAILABLE, outcome
    assert outcome["elapsed_ms"] < 3000


def test_no_server(procs, short_dir, subject):
    path = os.path.join(short_dir, "nobody")
    client = procs.start(peer_path(subject), "call", path, UNARY, "--timeout-ms", 5000)
    assert client.wait(10) == 0, client.describe()
    assert json.loads(client.lines[0])["code"] == UNAVAILABLE


GARBAGE = {
    "bytes": bytes(range(256)) * 16,
    "http-1": b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n",
    "zeros": bytes(4096),
    "settings-then-bytes": settings() + bytes(range(255, -1, -1)) * 16,
}


@pytest.mark.parametrize("sent", GARBAGE.values(), ids=GARBAGE.keys())
def test_garbage_from_the_server(call, sent):
    (outcome,), _ = call(lambda connection, n: connection.send(sent))
    assert outcome["code"] in (UNAVAILABLE, INTERNAL), outcome
    assert outcome["elapsed_ms"] < 3000


def test_header_bomb_from_the_server(call):
    def script(connection, _n):
        h2raw.serve_start(connection)
        stream = h2raw.next_request(connection).number
        connection.send(frame(h2raw.HEADERS, 0, stream, encode_headers(START)))
        piece = encode_header("x-bomb", "x" * 16000)
        for _ in range(4000):
            if not connection.send(frame(h2raw.CONTINUATION, 0, stream, piece)):
                break

    (outcome,), _ = call(script)
    assert outcome["code"] in (UNAVAILABLE, INTERNAL, RESOURCE_EXHAUSTED), outcome
    assert outcome["elapsed_ms"] < 3000
