"""HTTP/2 by hand: frames, and connections that may break any rule on purpose.

Nothing is validated on the way out, and nothing sent that was not asked for
except acknowledgements of SETTINGS and PING, and window updates (both can be switched off).
"""

import socket
import struct
import threading
import time
import urllib.parse
from collections import namedtuple

from hpack import HeaderDecoder, encode_headers

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PUSH_PROMISE, PING, GOAWAY, WINDOW_UPDATE = range(9)
CONTINUATION = 9

ACK = END_STREAM = 0x1
END_HEADERS = 0x4
PADDED = 0x8

HEADER_TABLE_SIZE, ENABLE_PUSH, MAX_CONCURRENT_STREAMS, INITIAL_WINDOW_SIZE = 1, 2, 3, 4
MAX_FRAME_SIZE, MAX_HEADER_LIST_SIZE = 5, 6

NO_ERROR, PROTOCOL_ERROR, INTERNAL_ERROR, FLOW_CONTROL_ERROR = 0, 1, 2, 3
FRAME_SIZE_ERROR, REFUSED_STREAM, CANCEL, ENHANCE_YOUR_CALM = 6, 7, 8, 11

STREAM_ID_MAX = WINDOW_MAX = 2**31 - 1
FRAME_BYTES = 16384  # what every peer must accept

Frame = namedtuple("Frame", "type flags stream payload")


# ---------------------------------------------------------------------------------------- frames


def frame(kind, flags=0, stream=0, payload=b"", length=None):
    """`length` lies about the payload's."""
    length = len(payload) if length is None else length
    return struct.pack(">I", length)[1:] + struct.pack(">BBI", kind, flags, stream) + payload


def settings(*pairs):
    return frame(SETTINGS, payload=b"".join(struct.pack(">HI", *pair) for pair in pairs))


def data(stream, payload, end=False, padding=None):
    flags = END_STREAM if end else 0
    if padding is not None:
        flags |= PADDED
        payload = bytes([padding]) + payload + bytes(padding)
    return frame(DATA, flags, stream, payload)


def data_frames(stream, payload, end=False, size=FRAME_BYTES):
    """As many frames as it takes."""
    chunks = [payload[i : i + size] for i in range(0, len(payload), size)] or [b""]
    return b"".join(
        data(stream, chunk, end and i == len(chunks) - 1) for i, chunk in enumerate(chunks)
    )


def headers(stream, pairs, end=False):
    flags = END_HEADERS | (END_STREAM if end else 0)
    return frame(HEADERS, flags, stream, encode_headers(pairs))


def rst_stream(stream, code):
    return frame(RST_STREAM, 0, stream, struct.pack(">I", code))


def goaway(last_stream, code=NO_ERROR, debug=b""):
    return frame(GOAWAY, payload=struct.pack(">II", last_stream, code) + debug)


def window_update(stream, increment):
    return frame(WINDOW_UPDATE, 0, stream, struct.pack(">I", increment))


def message(payload=b"", flag=0, length=None):
    """A gRPC message; `length` lies about the payload's."""
    return struct.pack(">BI", flag, len(payload) if length is None else length) + payload


# ----------------------------------------------------------------------------------- connections


class Stream:
    """What the peer has sent on one stream so far."""

    def __init__(self, number):
        self.number = number
        self.blocks = []  # decoded HEADERS, the first and the trailers
        self.data = bytearray()
        self.data_sizes = []  # of the DATA frames
        self.ended_by = None  # the type of the frame with END_STREAM
        self.reset = None  # the code of RST_STREAM

    @property
    def is_over(self):
        return self.ended_by is not None or self.reset is not None

    def first(self, name):
        return dict(self.blocks[0]).get(name) if self.blocks else None

    def last(self, name):
        return dict(self.blocks[-1]).get(name) if self.blocks else None

    @property
    def is_trailers_only(self):
        return len(self.blocks) == 1 and self.ended_by == HEADERS and not self.data

    @property
    def messages(self):
        """The payloads of whole messages."""
        found, at = [], 0
        while at + 5 <= len(self.data):
            (length,) = struct.unpack(">I", self.data[at + 1 : at + 5])
            if at + 5 + length > len(self.data):
                break
            found.append(bytes(self.data[at + 5 : at + 5 + length]))
            at += 5 + length
        return found

    @property
    def grpc_message(self):
        return urllib.parse.unquote(self.last("grpc-message") or "")


class Connection:
    """One end of a connection. Reading sorts frames into `streams`, `settings`, `goaways`."""

    def __init__(self, sock, timeout_s=5):
        self.sock = sock
        self.timeout_s = timeout_s
        self.acks = True  # answer SETTINGS and PING
        self.grants = True  # give back the windows that received data uses
        self.frames = []  # all that came
        self.streams = {}
        self.settings = {}
        self.goaways = []  # (last stream, code, debug text)
        self.pongs = []
        self.is_closed = False  # by the peer
        self._decoder = HeaderDecoder()
        self._block = None  # (flags, stream, bytes) until END_HEADERS
        self._buffer = bytearray()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.sock.close()

    def send(self, *parts):
        """False when the peer has closed, or does not take it all within the timeout."""
        self.sock.settimeout(self.timeout_s)
        try:
            self.sock.sendall(b"".join(parts))
        except OSError:  # broken pipe, reset, timeout
            return False
        return True

    # Receiving

    def _fill(self, n, end):
        while len(self._buffer) < n:
            left = end - time.monotonic()
            if left <= 0:
                raise TimeoutError(f"nothing more within {self.timeout_s} s; so far {self.frames}")
            self.sock.settimeout(left)
            try:
                chunk = self.sock.recv(1 << 18)
            except TimeoutError:
                continue
            except OSError:  # reset
                chunk = b""
            if not chunk:
                self.is_closed = True
                return False
            self._buffer += chunk
        return True

    def take(self, n, timeout_s=None):
        """n raw bytes, or None when the peer closes before."""
        if not self._fill(n, time.monotonic() + (timeout_s or self.timeout_s)):
            return None
        taken = bytes(self._buffer[:n])
        del self._buffer[:n]
        return taken

    def read_frame(self, timeout_s=None):
        """The next frame, after it has been sorted in; None when the peer has closed."""
        end = time.monotonic() + (timeout_s or self.timeout_s)
        if not self._fill(9, end):
            return None
        length = int.from_bytes(self._buffer[:3], "big")
        if not self._fill(9 + length, end):
            return None
        kind, flags, stream = struct.unpack(">BBI", self._buffer[3:9])
        got = Frame(kind, flags, stream & STREAM_ID_MAX, bytes(self._buffer[9 : 9 + length]))
        del self._buffer[: 9 + length]
        self.frames.append(got._replace(payload=got.payload[:64]))
        self._sort(got)
        return got

    def _stream(self, number):
        return self.streams.setdefault(number, Stream(number))

    def _sort(self, got):
        if got.type == SETTINGS and not got.flags & ACK:
            for i in range(0, len(got.payload), 6):
                self.settings.update([struct.unpack(">HI", got.payload[i : i + 6])])
            if self.acks:
                self.send(frame(SETTINGS, ACK))
        elif got.type == PING and got.flags & ACK:
            self.pongs.append(got.payload)
        elif got.type == PING and self.acks:
            self.send(frame(PING, ACK, payload=got.payload))
        elif got.type == GOAWAY:
            last, code = struct.unpack(">II", got.payload[:8])
            self.goaways.append((last, code, got.payload[8:].decode("utf-8", "replace")))
        elif got.type == RST_STREAM:
            (self._stream(got.stream).reset,) = struct.unpack(">I", got.payload)
        elif got.type == DATA:
            self._sort_data(got)
        elif got.type in (HEADERS, CONTINUATION):
            self._sort_headers(got)

    def _sort_data(self, got):
        stream = self._stream(got.stream)
        stream.data_sizes.append(len(got.payload))
        payload = got.payload
        if got.flags & PADDED:
            payload = payload[1 : len(payload) - payload[0]]
        stream.data += payload
        if got.flags & END_STREAM:
            stream.ended_by = DATA
        if self.grants and got.payload:
            self.send(window_update(0, len(got.payload)))
            if not stream.is_over:
                self.send(window_update(got.stream, len(got.payload)))

    def _sort_headers(self, got):
        payload = got.payload
        if got.type == HEADERS:
            if got.flags & PADDED:
                payload = payload[1 : len(payload) - payload[0]]
            if got.flags & 0x20:  # PRIORITY
                payload = payload[5:]
            self._block = (got.flags, got.stream, payload)
        else:
            flags, number, block = self._block
            self._block = (flags | got.flags & END_HEADERS, number, block + payload)
        flags, number, block = self._block
        if flags & END_HEADERS:
            stream = self._stream(number)
            stream.blocks.append(self._decoder.decode(block))
            if flags & END_STREAM:
                stream.ended_by = HEADERS

    def read_until(self, condition, timeout_s=None):
        """Reads on until `condition()` holds (True) or the peer has closed (False)."""
        end = time.monotonic() + (timeout_s or self.timeout_s)
        while not condition():
            if self.read_frame(max(end - time.monotonic(), 0.001)) is None:
                return condition()
        return True

    def wait_over(self, number, timeout_s=None):
        """Reads until the stream is over, or the connection; returns the stream."""
        stream = self._stream(number)
        self.read_until(lambda: stream.is_over, timeout_s)
        return stream

    def wait_closed(self, timeout_s=None):
        """Reads, frames or not, until the peer closes."""
        end = time.monotonic() + (timeout_s or self.timeout_s)
        while not self.is_closed:
            self._fill(len(self._buffer) + 1, end)
            self._buffer.clear()


def connect(path, timeout_s=5):
    """A client's connection, on which nothing has been sent."""
    sock = socket.socket(socket.AF_UNIX)
    sock.settimeout(timeout_s)
    sock.connect(path)
    return Connection(sock, timeout_s)


# Longer than any client under test waits, so that it is the client who gives up.
SCRIPT_S = 30


class Gone(Exception):
    """The client has closed the connection, which may end any script."""


class RawServer:
    """Listens on `path`; runs `script(connection, n)` in a thread for the n-th connection.

    A connection that the script has not closed stays open until the client closes it.
    """

    def __init__(self, path, script, accepts=True):
        self.connections = []
        self.errors = []
        self._script = script
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(path)
        self._listener.listen(128)
        self._threads = []
        if accepts:
            self._start(self._accept)

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for connection in list(self.connections):
            try:
                connection.sock.shutdown(socket.SHUT_RDWR)  # wakes its thread
            except OSError:
                pass  # closed already
        for thread in self._threads:
            thread.join(10)
        if kind is None and self.errors:
            raise self.errors[0]

    def _start(self, work, *args):
        thread = threading.Thread(target=work, args=args, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self):
        while True:
            try:
                sock, _ = self._listener.accept()
            except OSError:  # closed: the end
                return
            connection = Connection(sock, SCRIPT_S)
            self.connections.append(connection)
            self._start(self._serve, connection, len(self.connections) - 1)

    def _serve(self, connection, n):
        try:
            self._script(connection, n)
            while connection.sock.fileno() >= 0 and not connection.is_closed:
                connection.read_until(lambda: False)
        except Gone:
            pass
        except Exception as error:  # the test's thread raises it
            self.errors.append(error)
        finally:
            connection.close()


def serve_start(connection, *pairs):
    """The server's side of the beginning: our SETTINGS, their preface and first frame."""
    connection.send(settings(*pairs))
    preface = connection.take(len(PREFACE))
    if preface is None or connection.read_frame() is None:
        raise Gone
    assert preface == PREFACE, f"preface {preface!r}"
    assert connection.frames[0].type == SETTINGS, f"first frame {connection.frames[0]}"


def next_request(connection, known=()):
    """Reads until a request has wholly come that is not in `known`."""

    def found():
        return [
            stream
            for number, stream in sorted(connection.streams.items())
            if number not in known and stream.ended_by is not None
        ]

    if not connection.read_until(found):
        raise Gone
    return found()[0]
