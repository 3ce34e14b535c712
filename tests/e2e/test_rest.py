"""The HTTP server with clients that are not ours: Python's http.client, and curl where it is there.

The server is src/rest/tests/test_peer.c.
"""

import http.client
import os
import shutil
import socket
import subprocess
import threading

import pytest

from peers import SANITIZER, folder_of

pytestmark = pytest.mark.release

MIB = 1 << 20


@pytest.fixture
def server(procs):
    program = os.path.join(folder_of("DAVIT_BUILD"), "test_rest_peer")
    proc = procs.start(program, "serve", ready="ready", env=SANITIZER)
    proc.port = int(proc.lines[0].split()[1])
    yield proc
    assert proc.is_alive, proc.describe()
    assert proc.stop() == 0, proc.describe()


@pytest.fixture
def client(server):
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=20)
    yield connection
    connection.close()


def ask(client, method, path, **options):
    client.request(method, path, **options)
    answer = client.getresponse()
    return answer.status, answer.read()


def test_a_connection_is_kept(client):
    client.connect()
    kept = client.sock
    for number in range(100):
        text = b"%d" % number
        assert ask(client, "POST", "/echo", body=text, headers={"X-Echo": "e"}) == (200, text)
        assert ask(client, "GET", "/elsewhere") == (404, b"no such path\n")
    assert client.sock is kept


def test_fields_arrive_and_come_back(client):
    client.request("PUT", "/echo?a=b", body=b"x", headers={"X-Echo": "value, with; \"things\""})
    answer = client.getresponse()
    assert answer.getheader("X-Echo") == "value, with; \"things\""
    assert answer.getheader("Content-Length") == "1"
    assert answer.read() == b"x"


def test_bodies_up_to_the_limit(client):
    body = os.urandom(3 * MIB)
    assert ask(client, "POST", "/echo", body=body) == (200, body)
    assert ask(client, "POST", "/echo", body=body + b"1")[0] == 413
    assert ask(client, "POST", "/echo", body=b"still there") == (200, b"still there")


def test_chunked_bodies(client):
    def pieces():
        for number in range(200):
            yield b"%d\n" % number * 50

    body = b"".join(pieces())
    assert ask(client, "POST", "/echo", body=pieces(), encode_chunked=True) == (200, body)
    large = (b"x" * MIB for _ in range(5))
    assert ask(client, "POST", "/echo", body=large, encode_chunked=True)[0] == 413
    assert ask(client, "POST", "/echo", body=b"still there") == (200, b"still there")


def test_late_answers(client):
    for _ in range(5):
        assert ask(client, "GET", "/late?ms=20") == (200, b"late")


def test_streams_arrive_as_they_are_sent(client):
    client.request("GET", "/ticks?n=20")
    answer = client.getresponse()
    assert answer.getheader("Transfer-Encoding") == "chunked"
    assert [answer.readline() for _ in range(20)] == [b"tick %d\n" % n for n in range(20, 0, -1)]
    assert answer.read() == b""
    assert ask(client, "GET", "/ticks?n=0") == (200, b"")


def test_large_streams_in_little_memory(server, client):
    before = server.rss_bytes()
    client.request("GET", "/blocks?n=10000")
    answer = client.getresponse()
    total = 0
    while piece := answer.read(MIB):
        assert piece.strip(b"b") == b""
        total += len(piece)
    assert total == 100_000_000
    assert server.rss_bytes() - before < 16 * MIB  # much less, but for a sanitizer and what it keeps


def test_a_stream_that_nobody_reads_costs_nothing(server):
    sockets = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(20)]
    for sock in sockets:
        sock.sendall(b"GET /blocks?n=100000 HTTP/1.1\r\nHost: h\r\n\r\n")
    for sock in sockets:
        assert sock.recv(12) == b"HTTP/1.1 200"
    for sock in sockets:
        sock.close()


def test_many_clients_together(server):
    failures = []

    def run(number):
        try:
            client = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
            for turn in range(20):
                text = b"%d-%d" % (number, turn)
                assert ask(client, "POST", "/echo", body=text) == (200, text)
                assert ask(client, "GET", "/late?ms=3") == (200, b"late")
                assert len(ask(client, "GET", "/ticks?n=2")[1]) == 14
            client.close()
        except Exception as error:  # of another thread: told by the first
            failures.append(error)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(24)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_metrics_are_readable(client):
    for _ in range(3):
        assert ask(client, "GET", "/echo")[0] == 200
    client.request("GET", "/metrics")
    answer = client.getresponse()
    assert answer.getheader("Content-Type") == "text/plain; version=0.0.4; charset=utf-8"
    assert answer.read().decode() == (
        "# HELP peer_calls_total Calls served.\n"
        "# TYPE peer_calls_total counter\n"
        'peer_calls_total{path="/echo"} 3\n'
        'peer_calls_total{path="/metrics"} 1\n'
    )


@pytest.mark.skipif(not shutil.which("curl"), reason="no curl here")
def test_curl(server, short_dir):
    def curl(*words):
        url = f"http://127.0.0.1:{server.port}"
        result = subprocess.run(
            ["curl", "-sS", "-o", "-", "-w", " %{http_code} %{num_connects}",
             *(word.replace("URL", url) for word in words)],
            capture_output=True, check=True, timeout=60)
        return result.stdout.decode()

    large = os.path.join(short_dir, "large")
    with open(large, "wb") as file:
        file.write(b"x" * (5 * MIB))
    assert curl("URL/late?ms=10", "URL/ticks?n=1") == "late 200 1tick 1\n 200 0"
    assert curl("-0", "URL/ticks?n=2") == "tick 2\ntick 1\n 200 1"
    assert curl("-I", "URL/echo").startswith("HTTP/1.1 200 OK\r\n")
    assert curl("-T", large, "URL/echo").endswith(" 413 1")
    assert curl("-H", "Transfer-Encoding: chunked", "-T", large, "URL/echo").endswith(" 413 1")
    assert curl("-H", "Expect:", "--data-binary", f"@{large}", "URL/echo").endswith(" 413 1")
