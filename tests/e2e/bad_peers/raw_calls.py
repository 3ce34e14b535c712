"""Requests by hand, and what became of them in words."""

from h2raw import data, headers, message

UNARY = "/davit.test.Peer/Unary"
WATCH = "/davit.test.Peer/Watch"

CLOSED = "closed"
RESET = "reset"

HELLO = message(b"\x0a\x05hello")  # an Ask


def request(drop=(), add=(), **replaced):
    """The headers of a good request, with some left out, changed (method, path, ...) or added."""
    pairs = [
        (":method", "POST"),
        (":scheme", "http"),
        (":path", UNARY),
        (":authority", "localhost"),
        ("content-type", "application/grpc"),
        ("te", "trailers"),
        ("user-agent", "h2raw"),
    ]
    changed = {name.replace("_", "-"): value for name, value in replaced.items()}
    pairs = [(name, changed.get(name.lstrip(":"), value)) for name, value in pairs]
    return [pair for pair in pairs if pair[0] not in drop] + list(add)


def outcome(connection, stream):
    """What became of a stream, as words: some of "http 415", "grpc 13", "reset", "closed"."""
    if stream.ended_by is not None and stream.blocks:
        http, status = stream.first(":status"), stream.last("grpc-status")
        words = set() if http == "200" else {f"http {http}"}
        if status is not None:
            words.add(f"grpc {status}")
        return words or {f"http {http} without a status"}
    if stream.reset is not None:
        return {RESET}
    return {CLOSED} if connection.is_closed else {"open"}


def assert_outcome(connection, stream, *accepted):
    got = outcome(connection, stream)
    assert got & set(accepted), f"{got}, expected one of {accepted}: {connection.frames}"


def assert_works(connection, stream_id, payload=b"\x0a\x02hi"):
    """A good call on the connection."""
    connection.send(headers(stream_id, request()), data(stream_id, message(payload), end=True))
    stream = connection.wait_over(stream_id)
    assert_outcome(connection, stream, "grpc 0")
    assert stream.messages == [payload]
