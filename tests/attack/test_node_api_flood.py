"""The node's own API under those who guess tokens, and those who never finish a request."""

import secrets
import socket
import threading
import time

import pytest
from bound_pods import PodNode
from node_apis import make_token
from procs import until

N_GUESSERS = 40
N_SILENT = 300
FLOOD_S = 5


@pytest.fixture
def new_node():
    return PodNode


def reviews(node):
    """How many requests for reviews n1's API has answered."""
    text = node.api().ask("GET", "/metrics").body.decode()
    return sum(float(line.rpartition(" ")[2]) for line in text.splitlines()
               if line.startswith("apiserver_request_total") and "tokenreviews" in line)


def test_guesses_stop_nobody(node, kubelet):
    good = kubelet.client(make_token(node, "--admin", "ada")[0])
    assert good.ask("GET", "/healthz").status == 200
    end = time.monotonic() + FLOOD_S
    answers = {}

    def guess():
        client = kubelet.client()
        while time.monotonic() < end:
            client.token = secrets.token_hex(16)
            try:
                status = client.ask("GET", "/pods").status
            except OSError:
                status = 0  # dropped: there are too many of us
            answers[status] = answers.get(status, 0) + 1

    guessers = [threading.Thread(target=guess) for _ in range(N_GUESSERS)]
    for one in guessers:
        one.start()
    waits = []
    fresh = None
    while time.monotonic() < end:
        begin = time.monotonic()
        assert good.ask("GET", "/healthz").status == 200
        waits.append(time.monotonic() - begin)
        fresh = fresh or make_token(node, "--admin", "bob")[0]
        time.sleep(0.05)
    for one in guessers:
        one.join()
    assert set(answers) <= {0, 401, 503} and answers[401] > 0, answers
    assert max(waits) < 2, waits
    # Who is new gets in when it is over, if not before.
    until(lambda: kubelet.client(fresh).ask("GET", "/healthz").status == 200, 10, "a new client")
    assert kubelet.proc.log.count("bad client of the node's API") < 20
    assert kubelet.proc.rss_bytes() < 400 << 20  # with sanitizers


def test_who_asks_the_same_again_is_not_reviewed_again(node, kubelet):
    client = kubelet.client("the same guess")
    assert client.ask("GET", "/pods").status == 401
    before = reviews(node)
    for _ in range(50):
        assert client.ask("GET", "/pods").status == 401
    assert reviews(node) == before


def test_silent_clients_stop_nobody(node, kubelet):
    good = kubelet.client(make_token(node, "--admin", "ada")[0])
    assert good.ask("GET", "/healthz").status == 200
    silent = []
    try:
        for number in range(N_SILENT):
            one = socket.create_connection(("127.0.0.1", kubelet.port), timeout=10)
            if number % 2:
                one.sendall(b"\x16\x03\x01")  # the beginning of a handshake
            silent.append(one)
        for _ in range(10):
            assert good.ask("GET", "/healthz").status == 200
        other = kubelet.client(good.token)
        assert other.ask("GET", "/pods").status == 200
    finally:
        for one in silent:
            one.close()


def test_stopping_while_clients_wait(node, kubelet):
    """The API server hangs: who waits is answered, or dropped, and the node stops at once."""
    token = make_token(node, "--admin", "ada")[0]
    node.proc.signal(19)  # SIGSTOP
    try:
        outcomes = []

        def ask():
            try:
                outcomes.append(kubelet.client(token).ask("GET", "/pods").status)
            except OSError:
                outcomes.append(0)

        waiting = [threading.Thread(target=ask) for _ in range(10)]
        for one in waiting:
            one.start()
        time.sleep(0.5)
        begin = time.monotonic()
        assert kubelet.stop() == 0
        assert time.monotonic() - begin < 5
        for one in waiting:
            one.join()
        assert set(outcomes) <= {0, 503}, outcomes
    finally:
        node.proc.signal(18)  # SIGCONT
