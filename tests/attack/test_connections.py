"""Clients that only connect, or only begin: everybody else is served meanwhile."""

import contextlib
import re
import resource
import socket

import pytest

from procs import until
from servers import MAPS, PATIENCE_S, config_map

N_IDLE = 5000
N_WATCHES = 256  # that a node or a driver may have
OWN_SLICES = ("/apis/resource.k8s.io/v1/resourceslices?fieldSelector=spec.nodeName%3Dn1%2C"
              "spec.driver%3Dgpu.example.com")


@pytest.fixture(autouse=True)
def many_files():
    """The attackers of a test are all one process."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 12000 if hard == resource.RLIM_INFINITY else min(12000, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, wanted), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def connect_all(stack, node, n, first=b""):
    """Connections that say no more than this."""
    made = []
    for _ in range(n):
        one = stack.enter_context(socket.create_connection(("127.0.0.1", node.port), PATIENCE_S))
        with contextlib.suppress(ConnectionError):  # it has made room for another already
            one.sendall(first)
        made.append(one)
    return made


def refusals(api):
    text = api.must_text("/metrics")
    return {reason: int(n) for reason, n in
            re.findall(r'^davit_http_refusals_total{reason="(\w+)"} (\d+)', text, re.M)}


@pytest.fixture
def client(node):
    """Requests as the admin, each on a connection of its own."""

    class Client:
        def ask(self, method, path, body=None):
            api = node.api()
            try:
                return api.ask(method, path, body)
            finally:
                api.disconnect()

        def must_text(self, path):
            answer = self.ask("GET", path)
            assert answer.status == 200, answer
            return answer.body.decode()

    return Client()


BEGINNINGS = {
    "silent": b"",
    "hello": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    "no TLS": b"GET / HTTP/1.1\r\nHost: h\r\n",
}


@pytest.mark.parametrize("first", BEGINNINGS.values(), ids=BEGINNINGS.keys())
def test_idle_connections_lock_nobody_out(node, client, first):
    """They took every place for a minute."""
    kept = node.api()
    kept.must("GET", "/version")
    with contextlib.ExitStack() as stack:
        connect_all(stack, node, N_IDLE, first)
        for number in range(5):
            answer = client.ask("POST", MAPS, config_map(f"made-{number}"))
            assert answer.status == 201, answer
        kept.must("GET", f"{MAPS}/made-0")
    assert sum(refusals(client).values()) > 0


def test_connections_that_say_nothing_are_given_up(node, client):
    with contextlib.ExitStack() as stack:
        made = connect_all(stack, node, 20)
        for one in made:
            one.settimeout(PATIENCE_S)
            assert one.recv(1) == b""
    until(lambda: refusals(client).get("handshake_timeout", 0) >= 20, PATIENCE_S, "they count")


def test_slow_headers_are_given_up(node):
    """A header that comes byte by byte does not come."""
    raw = socket.create_connection(("127.0.0.1", node.port), PATIENCE_S)
    tls = node.context().wrap_socket(raw, server_hostname="127.0.0.1")
    tls.sendall(b"GET /version HTTP/1.1\r\nHost: h\r\n")
    tls.settimeout(1)

    def is_closed():
        try:
            tls.sendall(b"X-More: x\r\n")
            return tls.recv(1) == b""
        except TimeoutError:
            return False
        except OSError:
            return True

    until(is_closed, PATIENCE_S, "the connection is closed")
    tls.close()


def test_a_flood_of_watches_leaves_room_for_others(make_node):
    """A driver's token has its share, and no more."""
    node = make_node("--insecure-http").start()  # handshakes would take most of the time
    api = node.api()
    made = api.must("POST", "/davit/v1/tokens", {"driver": "gpu.example.com", "node": "n1"})
    driver = node.api(token=made["token"])
    request = (f"GET {OWN_SLICES}&watch=1 HTTP/1.1\r\nHost: h\r\n"
               f"Authorization: Bearer {made['token']}\r\n\r\n").encode()
    codes = []
    with contextlib.ExitStack() as stack:
        while 429 not in codes and len(codes) < N_WATCHES + 10:
            one = connect_all(stack, node, 1, request)[0]
            codes.append(int(one.recv(12).split()[1]))
        assert codes == [200] * N_WATCHES + [429]
        said = driver.refused(429, "GET", f"{OWN_SLICES}&watch=1")
        assert f"has {N_WATCHES} watches open" in said["message"]
        assert said["details"]["retryAfterSeconds"] > 0
        driver.must("GET", OWN_SLICES)
        with api.watch(MAPS) as watch:
            api.must("POST", MAPS, config_map("seen"))
            watch.until(lambda event: event["object"]["metadata"]["name"] == "seen")
    until(lambda: driver.ask("GET", f"{OWN_SLICES}&watch=1&timeoutSeconds=1").status == 200,
          PATIENCE_S, "the places are free again")


def test_bodies_without_a_token_keep_nobody_from_writing(make_node):
    """They filled what all bodies together may take, and everybody else got 503."""
    node = make_node("--insecure-http").start()
    api = node.api()
    head = (f"POST {MAPS} HTTP/1.1\r\nHost: h\r\nContent-Length: 3000000\r\n"
            "Authorization: Bearer none\r\n\r\n").encode()
    with contextlib.ExitStack() as stack:
        connect_all(stack, node, 30, head + b"x" * 2_999_999)
        large = config_map("large", {"a": "x" * 900_000})
        for name in ("one", "two"):
            large["metadata"]["name"] = name
            api.must("POST", MAPS, large)
