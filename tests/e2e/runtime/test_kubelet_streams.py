"""exec and port-forward by a node's own API, as an API server passes them on: by WebSocket; and run,
whose output is the answer."""

import contextlib
import glob
import json
import os
import time

import pytest
import websocket
from procs import until
from runtime_nodes import container, pod
from test_usage import own_api

STATUS = 3  # the channel on which an exec ends


@pytest.fixture
def running(make_node):
    node = make_node("--node-listen", "127.0.0.1:0").start()
    node.add(pod("p", container(script="while :; do echo hello | nc -l -p 8000; done")))
    node.wait_phase("p", "Running")
    return node


def connect(node, path, protocol="v4.channel.k8s.io", token=None):
    port = own_api(node).port
    return websocket.create_connection(
        f"wss://127.0.0.1:{port}{path}", subprotocols=[protocol], timeout=60,
        sslopt={"ca_certs": os.path.join(node.state_dir, "pki", "ca.crt")},
        header={"Authorization": f"Bearer {token or node.token}"})


def read_all(client):
    """{channel: bytes} until the other side ends."""
    channels = {}
    while True:
        code, data = client.recv_data()
        if code == websocket.ABNF.OPCODE_CLOSE:
            return channels
        channels[data[0]] = channels.get(data[0], b"") + data[1:]


def test_exec(running):
    uid = running.pod("p")["metadata"]["uid"]
    for path in ("/exec/default/p/main", f"/exec/default/p/{uid}/main"):
        query = "command=sh&command=-c&command=echo+out;echo+err>%262;exit+5&output=1&error=1"
        channels = read_all(connect(running, f"{path}?{query}"))
        assert (channels[1], channels[2]) == (b"out\n", b"err\n")
        status = json.loads(channels[STATUS])
        assert status["details"]["causes"] == [{"reason": "ExitCode", "message": "5"}]


def test_port_forward(running):
    client = connect(running, "/portForward/default/p?port=8000")
    assert read_all(client)[0].endswith(b"hello\n")


def test_what_cannot_be_is_refused(running):
    for path, token, status in (
            ("/exec/default/nobody/main?command=true&output=1", None, 404),
            ("/exec/default/p/no-such-uid/main?command=true&output=1", None, 404),
            ("/exec/default/p/main?command=true", None, 400),
            ("/exec/default/p/main?command=true&output=1", "guess", 401)):
        with pytest.raises(websocket.WebSocketBadStatusException) as refused:
            connect(running, path, token=token)
        assert refused.value.status_code == status, path
    answer = own_api(running).ask("GET", "/exec/default/p/main?command=true&output=1")
    assert answer.status == 400 and b"pgrade" in answer.body, answer


def test_run(running):
    uid = running.pod("p")["metadata"]["uid"]
    api = own_api(running)
    for path in ("/run/default/p/main", f"/run/default/p/{uid}/main"):
        answer = api.ask("POST", f"{path}?cmd=echo+a%20b")
        assert (answer.status, answer.body) == (200, b"a b\n"), answer
    answer = api.ask("POST", "/run/default/p/main?cmd=ls+/no-such-file")
    assert answer.status == 500, answer
    assert answer.body.startswith(b"command 'ls /no-such-file' exited with 1: "), answer
    assert b"No such file" in answer.body, answer
    long = api.ask("POST", "/run/default/p/main?cmd=seq+1000000")
    assert long.body == b"".join(b"%d\n" % i for i in range(1, 1000001))


@pytest.mark.parametrize("method, path, status, text", (
    ("GET", "/run/default/p/main?cmd=true", 405, b""),
    ("POST", "/run/default/p/main", 400, b"cmd"),
    ("POST", "/run/default/p/main?cmd=", 400, b"cmd"),
    ("POST", "/run/default/p/main?cmd=a%00b", 400, b"encoding"),
    ("POST", "/run/default/nobody/main?cmd=true", 404, b"pod does not exist"),
    ("POST", "/run/default/p/no-such-uid/main?cmd=true", 404, b"pod does not exist"),
    ("POST", "/run/default/p/other?cmd=true", 500, b'container not found ("other")'),
    ("POST", "/run/default/p/main?cmd=no-such-program", 500, b"no-such-program"),
))
def test_what_cannot_be_run_is_refused(running, method, path, status, text):
    answer = own_api(running).ask(method, path)
    assert answer.status == status and text in answer.body, answer


def is_running(words):
    for path in glob.glob("/proc/[0-9]*/cmdline"):
        with contextlib.suppress(OSError), open(path, "rb") as file:
            if file.read() == words:
                return True
    return False


def test_stopping_while_a_command_runs(running):
    connection = own_api(running).connect()
    connection.request("POST", "/run/default/p/main?cmd=sleep+300",
                       headers={"Authorization": f"Bearer {running.token}"})
    until(lambda: is_running(b"sleep\x00300\x00"), 60, "the command")
    begin = time.monotonic()
    assert running.stop() == 0
    assert time.monotonic() - begin < 30
    assert connection.getresponse().status == 503
    connection.close()
