"""exec, attach and port-forward of a real container, by kubectl as it is today, which speaks
WebSocket, by Debian's old one, which speaks SPDY, and by davit itself."""

import concurrent.futures
import fcntl
import hashlib
import os
import pty
import re
import socket
import struct
import subprocess
import termios
import time
import urllib.request

import pytest
from kubectls import Kubectl, find_kubectl
from peers import folder_of
from procs import until
from runtime_nodes import WAIT_S, container, pod

MIB = 1 << 20


@pytest.fixture(params=["new", pytest.param("old", marks=pytest.mark.plain), "davit"])
def client(request, node, short_dir):
    if request.param == "davit":
        return Kubectl(os.path.join(folder_of("DAVIT_BUILD"), "davit"), node.kubeconfig, short_dir,
                       is_old=False)
    return Kubectl(find_kubectl(request.param), node.kubeconfig, short_dir,
                   is_old=request.param == "old")


def is_davit(client):
    return client.program.endswith("davit")


@pytest.fixture
def running(node):
    node.add(pod("p"))
    node.wait_phase("p", "Running")
    return node


def run(client, *words, stdin=b"", status=0):
    done = subprocess.run([client.program, *words], input=stdin, capture_output=True,
                          timeout=WAIT_S, env=client.env, check=False)
    assert done.returncode == status, (words, done)
    return done


def processes(client, word):
    """How many processes of the container have this in their command line."""
    found = run(client, "exec", "p", "--", "sh", "-c", "cat /proc/[0-9]*/cmdline | tr '\\0\\n' '  '")
    return found.stdout.count(word.encode())


def test_exec_has_its_output_and_its_end(running, client):
    done = run(client, "exec", "p", "--", "sh", "-c", "echo out; echo err >&2; exit 5", status=5)
    assert done.stdout == b"out\n"
    assert b"err\n" in done.stderr
    assert b"exit code 5" in done.stderr or is_davit(client)
    assert run(client, "exec", "p", "--", "true").stdout == b""
    many = run(client, "exec", "p", "--", "sh", "-c", "head -c 1048576 /dev/zero | tr '\\0' x")
    assert many.stdout == b"x" * MIB
    text = b"in\n" * 100000
    assert run(client, "exec", "-i", "p", "--", "cat", stdin=text).stdout == text
    missing = subprocess.run([client.program, "exec", "p", "--", "no-such-program"],
                             capture_output=True, timeout=WAIT_S, env=client.env, check=False)
    assert missing.returncode != 0 and b"no-such-program" in missing.stderr
    for words, text in ((("-c", "other"), b"container other is not valid for pod p"),
                        (("-c", "main", "-n", "absent"), b"not found")):
        refused = run(client, "exec", "p", *words, "--", "true", status=1)
        assert text in refused.stderr


def test_files_are_copied_both_ways(running, client, short_dir):
    if is_davit(client):
        pytest.skip("davit has no cp")
    there = os.path.join(short_dir, "there")
    back = os.path.join(short_dir, "back")
    with open(there, "wb") as file:
        file.write(os.urandom(3 * MIB))
    run(client, "cp", there, "p:/tmp-there")
    run(client, "cp", "p:/tmp-there", back)
    with open(there, "rb") as one, open(back, "rb") as other:
        assert one.read() == other.read()


def read_until(fd, text, got=b""):
    end = time.monotonic() + WAIT_S
    while text not in got:
        assert time.monotonic() < end, got
        got += os.read(fd, 65536)
    return got


def test_a_terminal_has_a_size(running, client):
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("4H", 33, 99, 0, 0))
    with subprocess.Popen([client.program, "exec", "-it", "p", "--", "sh"], stdin=theirs,
                          stdout=theirs, stderr=theirs, env=client.env,
                          preexec_fn=lambda: (os.setsid(), fcntl.ioctl(0, termios.TIOCSCTTY, 0))
                          ) as proc:
        os.close(theirs)
        os.write(ours, b"until stty size | grep '33 99'; do sleep 0.1; done; echo o'k'1\n")
        read_until(ours, b"ok1")
        fcntl.ioctl(ours, termios.TIOCSWINSZ, struct.pack("4H", 44, 88, 0, 0))
        os.write(ours, b"until stty size | grep '44 88'; do sleep 0.1; done; echo o'k'2\n")
        read_until(ours, b"ok2")
        os.write(ours, b"exit 7\n")
        assert proc.wait(WAIT_S) == 7
    os.close(ours)


def test_attach_joins_the_process(node, client):
    node.add(pod("p", container(script="while read line; do echo got $line; done; exit 0",
                                stdin=True, stdinOnce=True), restartPolicy="Never"))
    node.wait_phase("p", "Running")
    done = run(client, "attach", "-i", "p", stdin=b"one\ntwo\n")
    assert b"got one\ngot two\n" in done.stdout
    assert node.wait_phase("p", "Succeeded")


def test_a_client_that_vanishes_leaves_nothing(running, client, procs):
    proc = client.start(procs, "exec", "-i", "p", "--", "sh", "-c", "echo begun; cat; sleep 0")
    proc.wait_line("begun")
    assert processes(client, "echo begun") == 1
    proc.kill()
    until(lambda: processes(client, "echo begun") == 0, WAIT_S, "its process has seen the end")


def test_a_container_that_ends_ends_its_streams(node, client, procs):
    node.add(pod("p", container(script="sleep 1000"), restartPolicy="Never"))
    node.wait_phase("p", "Running")
    proc = client.start(procs, "exec", "p", "--", "sh", "-c", "echo begun; sleep 1000")
    proc.wait_line("begun")
    node.delete("p")
    assert proc.wait(WAIT_S) in (1, 137, 143)


@pytest.mark.release
def test_davitd_stops_or_dies_in_the_midst(running, client, procs):
    first = client.start(procs, "exec", "p", "--", "sh", "-c", "echo begun; sleep 1000")
    first.wait_line("begun")
    running.stop()
    assert first.wait(WAIT_S) != 0
    running.start()
    until(lambda: running.phase("p") == "Running", WAIT_S, "the pod is still there")
    second = client.start(procs, "exec", "p", "--", "sh", "-c", "echo begun; sleep 1000")
    second.wait_line("begun")
    running.kill()
    assert second.wait(WAIT_S) != 0 or client.is_old  # which takes silence for success
    running.start()
    assert run(client, "exec", "p", "--", "echo", "again").stdout == b"again\n"


def test_twenty_at_a_time(running, client, procs):
    begun = [client.start(procs, "exec", "-i", "p", "--", "sh", "-c", f"echo begun {i}; cat; exit 3")
             for i in range(20)]
    for i, proc in enumerate(begun):
        proc.wait_line(f"begun {i}", WAIT_S)
    for proc in begun:
        proc.write_line("hello")
        proc.end_input()
    for proc in begun:
        assert proc.wait(WAIT_S) == 3
        assert "hello" in list(proc.lines)


# Ports

SERVER = "dd if=/dev/urandom of=/www/large bs=1M count=100 2>/dev/null; echo small >/www/small; " \
         "sha256sum /www/large; exec httpd -f -p 8080 -h /www"


@pytest.fixture
def forwarded(node, client, procs):
    """A local port that leads to the pod's server, and the sum of the large file there."""
    node.add(pod("web", container(script="mkdir -p /www; " + SERVER)))
    node.wait_phase("web", "Running")
    until(lambda: subprocess.run(
        [client.program, "exec", "web", "--", "wget", "-q", "-O-", "http://127.0.0.1:8080/small"],
        capture_output=True, timeout=WAIT_S, env=client.env, check=False).stdout == b"small\n",
          WAIT_S, "it serves")
    proc = client.start(procs, "port-forward", "web", ":8080")
    until(lambda: any("Forwarding" in line for line in list(proc.lines)), WAIT_S, "it listens")
    port = re.search(r"127\.0\.0\.1:(\d+)", "\n".join(proc.lines)).group(1)
    return f"http://127.0.0.1:{port}", node.log("web").split()[0]


def fetch(url):
    with urllib.request.urlopen(url, timeout=WAIT_S) as answer:
        return answer.read()


@pytest.mark.release
def test_a_port_carries_all_bytes(forwarded):
    url, digest = forwarded
    assert hashlib.sha256(fetch(url + "/large")).hexdigest() == digest
    with concurrent.futures.ThreadPoolExecutor(200) as pool:
        assert list(pool.map(lambda _: fetch(url + "/small"), range(200))) == [b"small\n"] * 200


def test_a_refused_port_leaves_the_others(node, client, procs):
    if not is_davit(client):
        pytest.skip("kubectl ends when a port is refused")
    node.add(pod("web", container(script="mkdir -p /www; echo small >/www/small; sleep 2; "
                                         "exec httpd -f -p 8080 -h /www")))
    node.wait_phase("web", "Running")
    proc = client.start(procs, "port-forward", "pod/web", ":8080", ":8081")
    until(lambda: len(proc.lines) >= 2, WAIT_S, "it listens")
    ports = [int(line.split(":")[1].split()[0]) for line in proc.lines]
    with socket.create_connection(("127.0.0.1", ports[1]), WAIT_S) as sock:
        assert sock.recv(1) == b""
    until(lambda: "connection refused" in proc.log, WAIT_S, "that it says so")

    def serves():
        try:
            return fetch(f"http://127.0.0.1:{ports[0]}/small") == b"small\n"
        except OSError:
            return False
    until(serves, WAIT_S, "the other one works, when it does")
    assert proc.is_alive


def test_idle_connections_to_a_port_stay(forwarded):
    url, _ = forwarded
    port = int(url.rpartition(":")[2])
    idle = [socket.create_connection(("127.0.0.1", port), WAIT_S) for _ in range(20)]
    assert fetch(url + "/small") == b"small\n"
    for sock in idle:
        sock.sendall(b"GET /small HTTP/1.0\r\n\r\n")
    for sock in idle:
        got = b""
        while part := sock.recv(65536):
            got += part
        assert got.endswith(b"small\n")
        sock.close()
