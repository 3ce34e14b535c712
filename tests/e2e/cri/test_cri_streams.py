"""Exec and port-forward at a real containerd, by our own sessions: SPDY and WebSocket."""

import os
import subprocess

import pytest
from peers import folder_of
from procs import until

BIG = 3_000_000


@pytest.fixture(name="pod")
def a_pod(containerd):
    """(client, sandbox, container)"""
    cri = containerd.cri()
    config = cri.sandbox_config("u1", log_dir=os.path.join(containerd.shared, "logs"))
    sandbox = cri.run_sandbox(config)
    yield cri, sandbox, cri.run_container(
        sandbox, config, "main", containerd.image,
        ["sh", "-c", "nc -ll -p 8080 -e cat & sleep 1000"])


def stream(*args, data=None):
    program = os.path.join(folder_of("DAVIT_BUILD"), "tests", "peers", "davit-stream")
    done = subprocess.run([program, *args], input=data or b"", capture_output=True, check=False,
                          timeout=100)
    return done.stdout, done.stderr, done.returncode


def execute(pod, protocol, *command, data=None):
    cri, _, container = pod
    url = cri.call("Exec", container_id=container, cmd=command, stdin=data is not None,
                   stdout=True, stderr=True).url
    return stream(protocol, url, *(["stdin"] if data is not None else []), data=data)


@pytest.mark.parametrize("protocol", ["spdy", "ws"])
def test_output_and_exit_codes_arrive(pod, protocol):
    assert execute(pod, protocol, "sh", "-c", "echo out; echo err >&2") == (b"out\n", b"err\n", 0)
    assert execute(pod, protocol, "sh", "-c", "exit 5") == (b"", b"", 5)
    out, _, code = execute(pod, protocol, "head", "-c", str(BIG), "/dev/zero")
    assert (len(out), code) == (BIG, 0)


def test_the_end_of_stdin_arrives_over_spdy(pod):
    assert execute(pod, "spdy", "cat", data=b"hello\n") == (b"hello\n", b"", 0)
    data = os.urandom(BIG)
    out, _, code = execute(pod, "spdy", "cat", data=data)
    assert (out == data, code) == (True, 0)


def test_stdin_arrives_over_websocket(pod):
    assert execute(pod, "ws", "head", "-n", "1", data=b"hello\n") == (b"hello\n", b"", 0)


def test_a_url_is_used_once(pod):
    cri, _, container = pod
    url = cri.call("Exec", container_id=container, cmd=["true"], stdout=True, stderr=True).url
    assert stream("spdy", url)[2] == 0
    _, err, code = stream("spdy", url)
    assert code == 99 and b"404" in err


def test_ports_are_forwarded(pod):
    cri, sandbox, container = pod
    until(lambda: ":1F90 " in cri.exec(container, "cat", "/proc/net/tcp", "/proc/net/tcp6")[0],
          60, "a server at 8080")
    url = cri.call("PortForward", pod_sandbox_id=sandbox, port=[8080]).url
    assert stream("port", url, "8080", data=b"ping\n") == (b"ping\n", b"", 0)
    url = cri.call("PortForward", pod_sandbox_id=sandbox, port=[1]).url
    _, err, code = stream("port", url, "1", data=b"ping\n")
    assert code == 98 and b"refused" in err
