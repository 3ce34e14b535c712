"""Clients that take too much: they cost bounded memory, and the others are served."""

import json
import resource
import socket
import threading
import time

import pytest

from peers import SANITIZER
from procs import until
from servers import MAPS, PATIENCE_S, config_map, merge_patch

pytestmark = pytest.mark.release

MIB = 1 << 20
N_SLOW = 20
N_IDLE = 600
N_TLS = 200


@pytest.fixture
def node(make_node, monkeypatch):
    """A sanitizer that keeps all that is freed would look like a leak."""
    monkeypatch.setenv("ASAN_OPTIONS", SANITIZER["ASAN_OPTIONS"])
    return make_node().start()


@pytest.fixture(autouse=True)
def many_files():
    """The clients of these tests are all one process."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 8192 if hard == resource.RLIM_INFINITY else min(8192, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, wanted), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def slow_watch(node, path):
    """A watch whose client has a small buffer, and does not read."""
    raw = socket.socket()
    raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    raw.connect(("127.0.0.1", node.port))
    tls = node.context().wrap_socket(raw, server_hostname="127.0.0.1")
    tls.settimeout(PATIENCE_S)
    tls.sendall(f"GET {path}?watch=1 HTTP/1.1\r\nHost: x\r\n"
                f"Authorization: Bearer {node.token}\r\n\r\n".encode())
    return tls


def read_to_end(tls):
    """All that is left of a chunked answer."""
    text = bytearray()
    while not text.endswith(b"\r\n0\r\n\r\n"):
        part = tls.recv(MIB)
        assert part, "the stream broke off"
        text += part
    return bytes(text)


def test_who_does_not_read_is_told_to_begin_anew(node):
    api = node.api()
    node.outgrow_history(api)  # what is remembered for watches is as large as it gets
    before = node.proc.rss_bytes()
    slow = [slow_watch(node, MAPS) for _ in range(N_SLOW)]
    node.wait_watches("configmaps", N_SLOW)
    node.outgrow_history(api)
    grown = node.proc.rss_bytes() - before
    print(f"{N_SLOW} watches that are not read, 50 MB of changes: {grown / 1e6:.1f} MB more")
    assert grown < N_SLOW * 2 * MIB + 16 * MIB
    started = time.monotonic()
    api.must("POST", MAPS, config_map("others"))
    assert time.monotonic() - started < 5  # others do not notice
    for tls in slow:
        text = read_to_end(tls)
        last, _ = json.JSONDecoder().raw_decode(text[text.rindex(b'{"type"'):].decode())
        assert (last["type"], last["object"]["code"]) == ("ERROR", 410)
        tls.close()
    until(lambda: node.watches("configmaps") == 0, PATIENCE_S, "no watch is left")


def test_a_reader_that_is_only_late_misses_nothing(node):
    api = node.api()
    with slow_watch(node, MAPS) as tls:
        node.wait_watches("configmaps", 1)
        for number in range(200):
            api.must("POST", MAPS, config_map(f"m{number:03}", {"a": "x" * 2000}))
        text = b""
        while text.count(b'"type":"ADDED"') < 200:
            text += tls.recv(MIB)
    names = [f'"name":"m{number:03}"'.encode() for number in range(200)]
    places = [text.find(name) for name in names]
    assert -1 not in places and places == sorted(places)


def test_idle_connections_do_not_stop_the_service(node):
    before = node.proc.rss_bytes()
    idle = [socket.create_connection(("127.0.0.1", node.port)) for _ in range(N_IDLE)]
    context = node.context()
    secure = [context.wrap_socket(socket.create_connection(("127.0.0.1", node.port)),
                                  server_hostname="127.0.0.1") for _ in range(N_TLS)]
    grown = node.proc.rss_bytes() - before
    started = time.monotonic()
    api = node.api()
    for number in range(20):
        api.must("POST", MAPS, config_map(f"m{number}"))
    took = time.monotonic() - started
    with node.api().watch(MAPS) as watch:
        assert watch.next()["type"] == "ADDED"
    print(f"{N_IDLE} idle connections and {N_TLS} over TLS: {grown / 1e6:.1f} MB, "
          f"20 writes in {took * 1e3:.0f} ms")
    assert grown < (N_IDLE + N_TLS) * 256 * 1024
    for one in idle + secure:
        one.close()
    assert len(node.api().must("GET", MAPS)["items"]) == 20


def test_without_descriptors_it_waits_for_some(node):
    api = node.api()
    api.must("POST", MAPS, config_map("m"))
    resource.prlimit(node.proc.pid, resource.RLIMIT_NOFILE, (100, 100))
    flood = [socket.create_connection(("127.0.0.1", node.port)) for _ in range(300)]
    for number in range(20):  # who is in, stays in
        assert merge_patch(api, f"{MAPS}/m", {"data": {"n": str(number)}}).status == 200
    for one in flood:
        one.close()
    assert node.api().must("GET", f"{MAPS}/m")["data"] == {"n": "19"}


def test_requests_that_never_end_hold_up_nobody(node):
    halves = []
    for number in range(50):
        tls = node.context().wrap_socket(socket.create_connection(("127.0.0.1", node.port)),
                                         server_hostname="127.0.0.1")
        tls.sendall((f"POST {MAPS} HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n"
                     f"Authorization: Bearer {node.token}\r\n\r\n{{").encode()
                    [: 40 if number % 2 else None])
        halves.append(tls)
    api = node.api()
    for number in range(20):
        api.must("POST", MAPS, config_map(f"m{number}"))
    for tls in halves:
        tls.close()


def test_many_writers_at_once(node):
    """All are answered, and what is answered is there."""
    made, trouble = [], []

    def write(writer):
        api = node.api()
        try:
            for number in range(20):
                name = f"w{writer}-{number}"
                answer = api.ask("POST", MAPS, config_map(name))
                if answer.status == 201:
                    made.append(name)
                elif answer.status not in (429, 503):
                    trouble.append(answer)
        except Exception as error:  # told by the test
            trouble.append(error)

    writers = [threading.Thread(target=write, args=(number,), daemon=True) for number in range(64)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(PATIENCE_S)
    assert not trouble, trouble[:3]
    listed = {item["metadata"]["name"] for item in node.api().must("GET", MAPS)["items"]}
    assert listed == set(made) and len(made) > 0


def test_wrong_requests_leave_nothing_behind(node):
    deep = b'{"metadata":{"name":"m"},"data":' + b'{"a":' * 20000 + b"1" + b"}" * 20000 + b"}"
    wrong = (b"{", b"[]", b"null", b'{"metadata":7}', deep)
    api = node.api()

    def ask(n):
        for number in range(n):
            body = wrong[number % len(wrong)]
            answer = api.ask("POST", MAPS, body, Content_Type="application/json")
            assert 400 <= answer.status < 500, answer

    ask(200)
    before = node.proc.rss_bytes()
    ask(1000)
    grown = node.proc.rss_bytes() - before
    print(f"1000 wrong requests: {grown / 1e6:.1f} MB more")
    assert grown < 16 * MIB
    assert api.must("GET", MAPS)["items"] == []
