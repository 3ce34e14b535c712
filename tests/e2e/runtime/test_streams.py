"""exec, attach and port-forward of a real container, by clients of others: kubectl as it is today,
which speaks WebSocket, and Debian's old one, which speaks SPDY."""

import hashlib
import os
import subprocess

import pytest
from kubectls import Kubectl, find_kubectl
from procs import until
from runtime_nodes import WAIT_S, container, pod


@pytest.fixture(params=["new", "old"])
def client(request, node, short_dir):
    return Kubectl(find_kubectl(request.param), node.kubeconfig, short_dir,
                   is_old=request.param == "old")


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


def test_exec_has_its_output_and_its_end(running, client):
    done = run(client, "exec", "p", "--", "sh", "-c", "echo out; echo err >&2; exit 5", status=5)
    assert done.stdout == b"out\n"
    assert b"err\n" in done.stderr and b"exit code 5" in done.stderr
    assert run(client, "exec", "p", "--", "true").stdout == b""
    many = run(client, "exec", "p", "--", "sh", "-c", "head -c 1048576 /dev/zero | tr '\\0' x")
    assert many.stdout == b"x" * 1048576
    assert run(client, "exec", "-i", "p", "--", "cat", stdin=b"in\n" * 100000).stdout == \
        b"in\n" * 100000
