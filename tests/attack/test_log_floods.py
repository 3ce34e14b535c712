"""Those who read logs: floods of them, those who never read, those who may not, and links."""

import glob
import json
import os
import socket
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from nodes import run_davit
from procs import until
from runtime_nodes import WAIT_S, RuntimeNode, container, pod
from servers import PODS

LOGS_MAX = 256
# What a reader may hold whose client does not read, and what its connection takes besides.
BYTES_OF_ONE = 600 * 1024
LONG = ("yes 'a line that is as long as those of programs are, and still longer' | head -n 60000; "
        "echo end; sleep 1000")


@pytest.fixture
def new_node(containerd):
    def make(procs, root, *options):
        return RuntimeNode(procs, root, containerd, *options)

    return make


@pytest.fixture
def long_log(node):
    """A pod whose log is 7 MB long."""
    node.add(pod("p", container(script=LONG)))
    until(lambda: node.api().ask("GET", f"{PODS}/p/log?tailLines=1").body == b"end\n", WAIT_S,
          "all is written")


class Silent:
    """Asks for a log, and reads no more than the first bytes of the answer."""

    def __init__(self, api, query):
        raw = socket.socket()
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        raw.settimeout(WAIT_S)
        raw.connect((api.host, api.port))
        self.socket = api.context.wrap_socket(raw, server_hostname=api.host)
        self.socket.sendall(f"GET {PODS}/p/log?{query} HTTP/1.1\r\nHost: x\r\n"
                            f"Authorization: Bearer {api.token}\r\n\r\n".encode())
        self.status = int(self.socket.recv(12).split()[1])

    def close(self):
        self.socket.close()


def test_a_flood_of_readers_who_never_read(node, long_log):
    api = node.api()
    before = node.proc.rss_bytes()
    with ThreadPoolExecutor(8) as pool:
        silent = list(pool.map(lambda i: Silent(api, "follow=true" if i % 2 else ""),
                               range(LOGS_MAX)))
    assert {one.status for one in silent} == {200}
    time.sleep(1)  # everything that fits somewhere is read by now
    grown = node.proc.rss_bytes() - before
    if "asan" not in os.environ["DAVIT_BUILD"]:
        assert grown < LOGS_MAX * BYTES_OF_ONE, grown
    refused = api.refused(429, "GET", f"{PODS}/p/log")
    assert refused["message"] == "too many logs are being read on this node"
    start = time.monotonic()
    assert api.ask("GET", f"{PODS}/p").status == 200
    assert time.monotonic() - start < 5
    for one in silent:
        one.close()
    until(lambda: api.ask("GET", f"{PODS}/p/log?tailLines=1").body == b"end\n", WAIT_S,
          "there is room again")


def test_who_may_not_read_logs(node, long_log):
    for words in (("--node", "n1"), ("--driver", "gpu.example.com", "--node", "n1")):
        done = run_davit("token", "create", *words, "--kubeconfig", node.kubeconfig)
        api = node.api(token=done.stdout.strip())
        assert 'cannot get resource "pods/log"' in api.refused(403, "GET", f"{PODS}/p/log")["message"]
    assert node.api(token="nobody's").ask("GET", f"{PODS}/p/log").status == 401


def test_a_revoked_token_reads_no_more(node, long_log):
    done = run_davit("token", "create", "--admin", "eve", "-o", "json", "--kubeconfig",
                     node.kubeconfig)
    made = json.loads(done.stdout)
    connection, answer = node.api(token=made["token"]).open(
        "GET", f"{PODS}/p/log?follow=true&tailLines=1")
    assert answer.readline() == b"end\n"
    run_davit("token", "revoke", made["id"], "--kubeconfig", node.kubeconfig)
    with pytest.raises(Exception):  # noqa: B017 - whichever way the end of the connection shows
        assert answer.read1(10)
    connection.close()


def test_a_link_in_the_place_of_a_log_shows_nothing(node, long_log):
    """What a container could make that has the directory of logs as a volume."""
    log = glob.glob(f"{node.logs_dir}/default_p_*/main/0.log")[0]
    folder = os.path.dirname(log)
    os.rename(log, f"{log}.away")
    os.symlink(node.kubeconfig, log)
    answer = node.api().ask("GET", f"{PODS}/p/log")
    assert answer.body.startswith(b"failed to open log file"), answer
    os.unlink(log)
    os.mkfifo(log)
    assert b"it is no regular file" in node.api().ask("GET", f"{PODS}/p/log").body
    os.rename(folder, f"{folder}.away")
    os.makedirs(f"{node.root}/other")
    with open(f"{node.root}/other/0.log", "w", encoding="utf-8") as other:
        other.write("2026-01-01T00:00:00Z stdout F secret\n")
    os.symlink(f"{node.root}/other", folder)
    assert b"secret" not in node.api().ask("GET", f"{PODS}/p/log").body
