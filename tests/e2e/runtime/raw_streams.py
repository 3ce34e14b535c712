"""Streams by hand: a connection that has left HTTP for WebSocket or SPDY/3.1, a frame at a time."""

import base64
import os
import socket
import struct
import zlib

from servers import PODS

PATIENCE_S = 30
STDIN, STDOUT, STDERR, ERROR, RESIZE = range(5)
SYN_STREAM, SYN_REPLY, RST_STREAM, PING, GOAWAY = 1, 2, 3, 6, 7
FIN = 1
TUNNEL = "SPDY/3.1+portforward.k8s.io"


class Raw:
    """A TLS connection after its 101."""

    def __init__(self, node, method, target, fields):
        self.sock = node.context().wrap_socket(
            socket.create_connection(("127.0.0.1", node.port), PATIENCE_S),
            server_hostname="127.0.0.1")
        head = [f"{method} {target} HTTP/1.1", "Host: h", f"Authorization: Bearer {node.token}",
                "Connection: Upgrade", *(f"{name}: {value}" for name, value in fields), "", ""]
        self.sock.sendall("\r\n".join(head).encode())
        self.got = b""
        while b"\r\n\r\n" not in self.got:
            self.read()
        self.head, _, self.got = self.got.partition(b"\r\n\r\n")
        self.status = int(self.head.split()[1])

    def read(self):
        part = self.sock.recv(65536)
        if not part:
            raise EOFError
        self.got += part

    def take(self, n):
        while len(self.got) < n:
            self.read()
        taken, self.got = self.got[:n], self.got[n:]
        return taken

    def is_closed(self):
        """Reads to the end, which has to come."""
        try:
            while True:
                self.got = b""
                self.read()
        except (EOFError, ConnectionError, OSError):
            return True

    def close(self):
        self.sock.close()


class WebSocket(Raw):
    def __init__(self, node, path, protocol):
        super().__init__(node, "GET", f"{PODS}/{path}", [
            ("Upgrade", "websocket"), ("Sec-WebSocket-Version", "13"),
            ("Sec-WebSocket-Key", base64.b64encode(os.urandom(16)).decode()),
            *([("Sec-WebSocket-Protocol", protocol)] if protocol else [])])

    def send(self, payload, opcode=2, claimed=None):
        n = len(payload) if claimed is None else claimed
        size = bytes([0x80 | n]) if n < 126 else b"\xfe" + struct.pack(">H", n) if n < 65536 \
            else b"\xff" + struct.pack(">Q", n)
        self.sock.sendall(bytes([0x80 | opcode]) + size + bytes(4) + payload)

    def receive(self):
        """(opcode, payload) of a frame."""
        first, second = self.take(2)
        n = second & 127
        if n == 126:
            n, = struct.unpack(">H", self.take(2))
        elif n == 127:
            n, = struct.unpack(">Q", self.take(8))
        return first & 15, self.take(n)

    def to_the_end(self):
        """({channel: bytes}, code of the Close)"""
        channels = {}
        while True:
            opcode, payload = self.receive()
            if opcode == 8:
                return channels, struct.unpack(">H", payload[:2])[0]
            channels[payload[0]] = channels.get(payload[0], b"") + payload[1:]


class Spdy(Raw):
    def __init__(self, node, path, *versions):
        super().__init__(node, "POST", f"{PODS}/{path}", [
            ("Upgrade", "SPDY/3.1"), ("Content-Length", "0"),
            *(("X-Stream-Protocol-Version", version) for version in versions)])
        self.zlib = zlib.compressobj()  # nobody has to use the dictionary of SPDY
        self.next_id = 1

    def control(self, kind, payload, flags=0, length=None):
        length = len(payload) if length is None else length
        self.sock.sendall(struct.pack(">HHI", 0x8003, kind, flags << 24 | length) + payload)

    def block(self, fields):
        text = struct.pack(">I", len(fields))
        for name, value in fields.items():
            text += struct.pack(">I", len(name)) + name + struct.pack(">I", len(value)) + value
        return self.zlib.compress(text) + self.zlib.flush(zlib.Z_SYNC_FLUSH)

    def open(self, **fields):
        number, self.next_id = self.next_id, self.next_id + 2
        encoded = {name.encode(): str(value).encode() for name, value in fields.items()}
        self.control(SYN_STREAM, struct.pack(">IIH", number, 0, 0) + self.block(encoded))
        return number

    def data(self, number, payload, flags=0):
        self.sock.sendall(struct.pack(">II", number, flags << 24 | len(payload)) + payload)

    def receive(self):
        """(kind, stream, flags, payload); kind is None for data."""
        word, rest = struct.unpack(">II", self.take(8))
        payload = self.take(rest & 0xffffff)
        if word >> 31:
            number = struct.unpack(">I", payload[:4])[0]
            return word & 0xffff, number, rest >> 24, payload
        return None, word, rest >> 24, payload

    def gather(self, *numbers):
        """What comes on these streams until each has ended: {stream: bytes}."""
        got = {number: b"" for number in numbers}
        open_ones = set(numbers)
        while open_ones:
            kind, number, flags, payload = self.receive()
            if kind is None and number in got:
                got[number] += payload
            if (kind is None and flags & FIN) or kind == RST_STREAM:
                open_ones.discard(number)
        return got

