"""The peer under test, and a witness: other connections must not notice the bad ones.

DAVIT_SUBJECT names another peer (go, python, ccore) to run the cases against: useful to check a
case, not the peer, for the stacks differ in many of them.
"""

import os

import grpc
import pytest

import h2raw
from procs import until

MIB = 1 << 20
# What a server may grow by under attack. Generous, for sanitizers; the attacks are far larger.
RSS_SLACK = 48 * MIB


@pytest.fixture(scope="session")
def subject():
    return os.environ.get("DAVIT_SUBJECT", "davit")


class Server:
    """The server under test, and a witness that must not notice anything."""

    def __init__(self, subject, servers, pb):
        self.subject = subject
        self.pb = pb
        self.servers = servers
        self.revive()
        self.channel = grpc.insecure_channel("unix:" + self.socket)
        self._unary = self._method("Unary", pb.Answer)
        self._seen = self._method("Seen", pb.Counts)

    def revive(self):
        """One that a case has killed shall not fail the others too."""
        self.socket, self.proc = self.servers.get(self.subject)

    def _method(self, name, response):
        return self.channel.unary_unary(
            f"/davit.test.Peer/{name}",
            request_serializer=lambda message: message.SerializeToString(),
            response_deserializer=response.FromString,
        )

    def seen(self):
        return self._seen(self.pb.Empty(), timeout=5)

    def check(self):
        """It runs, answers, and has given up the calls whose clients are gone."""
        assert self.proc.is_alive, self.proc.describe()
        answer = self._unary(self.pb.Ask(payload=b"still there?"), timeout=5)
        assert answer.payload == b"still there?"
        until(lambda: self.seen().open == 0, 5, "no call left open")


@pytest.fixture(scope="module")
def shared_server(peer_servers, pb, subject):
    made = Server(subject, peer_servers, pb)
    made.check()
    yield made
    made.channel.close()


@pytest.fixture
def server(shared_server):
    shared_server.revive()
    yield shared_server
    shared_server.check()


@pytest.fixture
def conn(server):
    """A connection that has shaken hands."""
    with h2raw.connect(server.socket) as connection:
        assert connection.send(h2raw.PREFACE, h2raw.settings())
        yield connection


@pytest.fixture
def bounded(server):
    """The server's memory, during and after the test, stays near what it was before."""
    before = server.proc.rss_bytes()

    def check():
        grown = server.proc.rss_bytes() - before
        assert grown < RSS_SLACK, f"grew by {grown / MIB:.0f} MiB"

    yield check
    check()


@pytest.fixture
def ask(pb):
    """The bytes of an Ask."""
    return lambda **fields: pb.Ask(**fields).SerializeToString()
