"""Streams as no good client has them: refusals, old protocols, and clients that attack."""

import base64
import json
import os
import struct
import time

import pytest
from peers import SANITIZER
from procs import until
from raw_streams import (
    ERROR, FIN, PING, RST_STREAM, STDERR, STDIN, STDOUT, SYN_STREAM, TUNNEL, Spdy, WebSocket)
from runtime_nodes import WAIT_S, container, pod
from servers import PODS

MIB = 1 << 20
ECHO = "exec?stdout=1&stderr=1&command=sh&command=-c&command="


@pytest.fixture(autouse=True)
def no_quarantine(monkeypatch):
    """A sanitizer that keeps all that is freed would look like a leak."""
    monkeypatch.setenv("ASAN_OPTIONS", SANITIZER["ASAN_OPTIONS"])


@pytest.fixture
def running(node):
    node.add(pod("p", container(), container("second")))
    node.wait_phase("p", "Running")
    return node


def test_refusals_are_status_objects(running):
    api = running.api()
    running.add({**pod("unbound"), "spec": {**pod("unbound")["spec"], "nodeName": None}})
    for code, path, text in (
            (404, "absent/exec?command=true&stdout=1", 'pods "absent" not found'),
            (400, "p/exec?command=true&stdout=1", "a container name must be specified for pod p, "
                                                  "choose one of: [main second]"),
            (400, "p/exec?command=true&stdout=1&container=x", "container x is not valid for pod p"),
            (400, "p/exec?command=true&stdout=1&container=main", "Upgrade request required"),
            (400, "p/exec?command=true&container=main", "you must specify at least 1 of stdin"),
            (400, "p/portforward?ports=65536", 'unable to parse "65536" as a port'),
            (400, "p/portforward?ports=0", 'port "0" must be > 0'),
            (400, "unbound/attach?stdout=1", "pod unbound does not have a host assigned"),
            (400, "unbound/portforward", "pod unbound does not have a host assigned")):
        for method in ("GET", "POST"):
            assert text in api.refused(code, method, f"{PODS}/{path}")["message"], path
    api.refused(405, "DELETE", f"{PODS}/p/exec")
    assert WebSocket(running, "p/portforward", "v4.channel.k8s.io").status == 400  # no ports
    assert WebSocket(running, "p/exec?container=main&stdout=1&command=a", "v9").status == 403
    assert Spdy(running, "p/exec?container=main&stdout=1&command=a").status == 400
    unknown = Spdy(running, "p/exec?container=main&stdout=1&command=a", "v9.channel.k8s.io")
    assert unknown.status == 403
    assert b"X-Accepted-Stream-Protocol-Versions: v4.channel.k8s.io" in unknown.head
    running.add(pod("done", container(script="true"), restartPolicy="Never"))
    running.wait_phase("done", "Succeeded")
    gone = WebSocket(running, "done/exec?stdout=1&command=true", "v5.channel.k8s.io")
    assert gone.status == 500
    assert b'container not found (\\"main\\")' in gone.got


def test_who_may_create_may_exec(running, procs):
    """create is what has to be allowed, also for GET, which a node's token has for pods."""
    made = running.api().ask("POST", "/davit/v1/tokens", {"node": "n1"})
    token = made.doc["token"]
    for method in ("GET", "POST"):
        doc = running.api(token=token).refused(
            403, method, f"{PODS}/p/exec?container=main&command=true&stdout=1")
        assert 'cannot create resource "pods/exec"' in doc["message"]


@pytest.mark.parametrize("protocol", ["v5.channel.k8s.io", "v4.channel.k8s.io", "channel.k8s.io",
                                      "", "v4.base64.channel.k8s.io", "base64.channel.k8s.io"])
def test_every_protocol_has_output_and_end(running, protocol):
    ws = WebSocket(running, "p/" + ECHO + "echo+out;echo+err+>%262;exit+5&container=main", protocol)
    assert ws.status == 101
    channels, code = ws.to_the_end()
    if "base64" in protocol:
        raw, channels = channels, {}
        for channel, text in raw.items(): # each message by itself; these are short
            channels[channel - ord("0")] = b"".join(
                base64.b64decode(part + b"=" * (-len(part) % 4)) for part in [text] if part)
    assert code == 1000
    assert channels[STDOUT] == b"out\n" and channels[STDERR] == b"err\n"
    if "v" in protocol:
        status = json.loads(channels[ERROR])
        assert status["reason"] == "NonZeroExitCode"
        assert status["details"]["causes"] == [{"reason": "ExitCode", "message": "5"}]
    else:
        assert b"exit code" in channels[ERROR]


def test_stdin_ends(running):
    ws = WebSocket(running, "p/exec?stdin=1&stdout=1&container=main&command=cat",
                   "v5.channel.k8s.io")
    ws.send(bytes([STDIN]) + b"hello")
    ws.send(bytes([255, STDIN]))
    channels, code = ws.to_the_end()
    assert (channels[STDOUT], code) == (b"hello", 1000)
    assert json.loads(channels[ERROR])["status"] == "Success"


@pytest.mark.parametrize("version", [f"v{n}.channel.k8s.io" for n in (5, 4, 3, 2)] + ["channel.k8s.io"])
def test_every_version_of_spdy(running, version):
    spdy = Spdy(running, "p/exec?stdin=1&stdout=1&container=main&command=sh&command=-c&command="
                         "cat;exit+5", "v9.channel.k8s.io", version)
    assert spdy.status == 101 and version.encode() in spdy.head
    error = spdy.open(streamtype="error")
    stdin = spdy.open(streamtype="stdin")
    stdout = spdy.open(streamtype="stdout")
    spdy.data(stdin, b"hello", FIN)
    got = spdy.gather(error, stdout)
    assert got[stdout] == b"hello"
    if version in ("v5.channel.k8s.io", "v4.channel.k8s.io"):
        assert json.loads(got[error])["details"]["causes"][0]["message"] == "5"
    elif version != "channel.k8s.io":  # whose error stream runtimes reset at once
        assert b"exit code" in got[error]


@pytest.fixture
def served(node):
    node.add(pod("web", container(script="mkdir /www; echo small >/www/small; "
                                         "exec httpd -f -p 8080 -h /www")))
    node.wait_phase("web", "Running")
    until(lambda: ask(Spdy(node, "web/portforward", "portforward.k8s.io"), 1).endswith(b"small\n"),
          WAIT_S, "it serves")
    return node


def ask(spdy, request, port=8080):
    error = spdy.open(streamtype="error", port=port, requestid=request)
    data = spdy.open(streamtype="data", port=port, requestid=request)
    spdy.data(error, b"", FIN)
    if port == 8080:  # runtimes stand still when bytes come for what they have refused
        spdy.data(data, b"GET /small HTTP/1.0\r\n\r\n")
    got = spdy.gather(error, data)
    spdy.data(data, b"", FIN)
    return got[data if port == 8080 else error]


def test_a_refused_port_leaves_the_others(served):
    spdy = Spdy(served, "web/portforward", "portforward.k8s.io")
    assert ask(spdy, 1).endswith(b"small\n")
    assert b"refused" in ask(spdy, 2, port=8081)
    assert ask(spdy, 3).endswith(b"small\n")
    assert ask(spdy, 3).endswith(b"small\n")  # the name is free again


def test_ports_in_channels(served):
    ws = WebSocket(served, "web/portforward?ports=8080,8081", "v4.channel.k8s.io")
    ws.send(bytes([0]) + b"GET /small HTTP/1.0\r\n\r\n")
    channels, code = ws.to_the_end()
    assert channels[0].startswith(struct.pack("<H", 8080)) and channels[0].endswith(b"small\n")
    assert channels[1] == struct.pack("<H", 8080)
    assert channels[3].startswith(struct.pack("<H", 8081)) and b"refused" in channels[3]
    assert code == 1000


# Attacks

def n_descriptors(node):
    return len(os.listdir(f"/proc/{node.proc.pid}/fd"))


@pytest.mark.release
def test_a_client_that_does_not_read_stops_the_process(running):
    before = running.proc.rss_bytes()
    n_before = n_descriptors(running)
    greedy = [WebSocket(running, "p/" + ECHO + "yes&container=main", "v5.channel.k8s.io")
              for _ in range(10)]
    sending = WebSocket(running, "p/exec?stdin=1&stdout=1&container=main&command=sleep&command=1000",
                        "v5.channel.k8s.io")
    sending.sock.settimeout(2)
    with pytest.raises(TimeoutError):  # nobody reads stdin either
        while True:
            sending.send(bytes([STDIN]) + bytes(MIB))
    spent = running.proc.cpu_s()
    time.sleep(3)
    assert running.proc.cpu_s() - spent < 1  # everything stands still
    assert running.proc.rss_bytes() - before < 32 * MIB
    for ws in greedy:
        ws.close()
    sending.close()
    until(lambda: n_descriptors(running) <= n_before, WAIT_S,
          lambda: f"nothing is left of them: {n_descriptors(running)}, {n_before} before")


def test_frames_that_lie_end_their_connection_alone(running):
    good = WebSocket(running, "p/exec?stdin=1&stdout=1&container=main&command=cat",
                     "v5.channel.k8s.io")
    target = "p/exec?stdin=1&stdout=1&container=main&command=cat"
    before = running.proc.rss_bytes()
    for frame in (b"\x82\xff" + b"\xff" * 8 + bytes(4), b"\xf2\x80" + bytes(4), b"\x82\x05hello",
                  b"\x89\xfe\xff\xff" + bytes(4), b"\x83\x80" + bytes(4)):
        ws = WebSocket(running, target, "v5.channel.k8s.io")
        ws.sock.sendall(frame + bytes(100))
        assert ws.is_closed()
    for kind, payload, length in ((SYN_STREAM, b"", None), (SYN_STREAM, bytes(10) + b"junk", None),
                                  (PING, b"", None), (RST_STREAM, b"x", None)):
        spdy = Spdy(running, target, "v4.channel.k8s.io")
        spdy.control(kind, payload, length=length)
        assert spdy.is_closed()
    for size in (64 * 1024, 64 * MIB):  # a block of zeros that explodes
        spdy = Spdy(running, target, "v4.channel.k8s.io")
        bomb = spdy.zlib.compress(struct.pack(">II", 1, size) + bytes(size)) + spdy.zlib.flush(2)
        spdy.control(SYN_STREAM, struct.pack(">IIH", 1, 0, 0) + bomb)
        assert spdy.is_closed()
    assert running.proc.rss_bytes() - before < 64 * MIB
    good.send(bytes([STDIN]) + b"still here")
    good.send(bytes([255, STDIN]))
    assert good.to_the_end()[0][STDOUT] == b"still here"


def test_a_flood_of_streams_is_refused(served):
    spdy = Spdy(served, "web/portforward", "portforward.k8s.io")
    for i in range(3000):
        spdy.open(streamtype="error", port=8080, requestid=i)
    refused = 0
    while refused < 3000 - 1024:
        kind, _, _, payload = spdy.receive()
        if kind == RST_STREAM:
            assert struct.unpack(">I", payload[4:8])[0] == 3
            refused += 1
    spdy.close()
    tunnel = WebSocket(served, "web/portforward", TUNNEL)
    assert tunnel.status == 101
    tunnel.send(b"text", opcode=1)
    assert tunnel.is_closed()
    assert ask(Spdy(served, "web/portforward", "portforward.k8s.io"), 1).endswith(b"small\n")
