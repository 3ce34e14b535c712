"""A disk that is full or takes nothing, whoever met it: told everywhere, and over when it is over."""

import os
import socket
import subprocess

import pytest

from disks import Tmpfs
from nodes import pod
from procs import until
from servers import MAPS, config_map

WAIT_S = 60
TOKENS = "/davit/v1/tokens"


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def metric(api, name):
    text = api.ask("GET", "/metrics").body.decode()
    (line,) = [line for line in text.splitlines() if line.startswith(name + " ")]
    return float(line.rpartition(" ")[2])


def is_told(node, api, part="state"):
    ready = api.ask("GET", "/readyz")
    return (ready.status == 500 and b"not ready" in ready.body and node.status().state_error
            and "trouble" in node.davit("status").stdout
            and metric(api, f'davit_trouble{{part="{part}"}}') == 1
            and f"cannot write part={part}" in node.proc.log)


def is_over(node, api, part="state"):
    return (api.ask("GET", "/readyz").status == 200 and not node.status().state_error
            and "trouble" not in node.davit("status").stdout
            and metric(api, f'davit_trouble{{part="{part}"}}') == 0
            and f"can write again part={part}" in node.proc.log)


def write_object(node, api, number):
    answer = api.ask("POST", MAPS, config_map(f"m{number}", {"v": "x" * 100_000}))
    assert answer.status == 201 or "full" in answer.doc["message"], answer
    return answer.status == 201


def write_token(node, api, number):
    answer = api.ask("POST", TOKENS, {"driver": f"d{number}.example.com", "node": "n1"})
    assert answer.status == 201 or "full" in answer.doc["message"], answer
    return answer.status == 201


def write_pod(node, _, number):
    """A pod of the node's own, which knows no API."""
    made = pod(f"p{number}", ("main", {}))
    made["metadata"]["annotations"] = {"x": "y" * 100_000}
    try:
        return node.admit(made).admitted
    except Exception as error:  # pylint: disable=broad-except
        assert "full" in str(error)
        return False


@pytest.mark.parametrize("write", [write_object, write_token, write_pod])
def test_whoever_meets_a_full_disk_tells_it(disk, make_node, write):
    node = make_node()
    full = disk(Tmpfs, node.state_dir, "size=3m")
    node.start()
    api = node.api()
    assert api.ask("GET", "/readyz").status == 200
    full.fill()
    for number in range(3000):
        if not write(node, api, number):
            break
    until(lambda: is_told(node, api), WAIT_S, "it to be told")
    # Small writes that still fit do not hide it.
    api.ask("POST", MAPS, config_map("small", {"v": "x"}))
    assert api.ask("GET", "/readyz").status == 500
    full.empty()
    until(lambda: is_over(node, api), WAIT_S, "it to be over, by itself")
    api.must("POST", MAPS, config_map("after", {"v": "x" * 100_000}))


def test_a_start_on_a_full_disk_works(disk, make_node):
    node = make_node()
    full = disk(Tmpfs, node.state_dir, "size=3m")
    node.listen = f"127.0.0.1:{free_port()}"
    node.start()
    node.api().must("POST", MAPS, config_map("before", {"v": "x"}))
    for end in (node.stop, node.kill):
        end()
        full.fill()
        written = os.stat(node.kubeconfig).st_mtime_ns
        node.start()
        api = node.api()
        assert api.must("GET", f"{MAPS}/before")["data"] == {"v": "x"}
        assert os.stat(node.kubeconfig).st_mtime_ns == written
        assert not node.status().notes
        full.empty()
        until(lambda api=api: api.ask("GET", "/readyz").status == 200, WAIT_S, "it to be ready")


def test_a_kubeconfig_that_does_not_fit_is_told_and_written_later(disk, make_node):
    node = make_node()
    full = disk(Tmpfs, node.state_dir, "size=3m")
    node.start()
    before = node.kubeconfig
    with open(before, encoding="ascii") as file:
        old = file.read()
    context, token = node.context(), node.token
    assert node.stop() == 0
    full.fill()
    node.listen = f"127.0.0.1:{free_port()}"
    node.start()
    with open(before, encoding="ascii") as file:
        assert file.read() == old  # whole, if an old one
    until(lambda: "admin.kubeconfig" in node.status().state_error, WAIT_S, "it to be told")
    assert "cannot write part=admin.kubeconfig" in node.proc.log
    full.empty()
    until(lambda: not node.status().state_error, WAIT_S, "it to be written")
    with open(before, encoding="ascii") as file:
        assert node.listen in file.read()
    api = node.api(context=context, token=token)
    until(lambda: api.ask("GET", "/readyz").status == 200, WAIT_S, "it to be ready")


def test_a_disk_that_becomes_read_only_is_told(disk, make_node):
    """As after an error of the file system; SQLite has its files open, others are refused."""
    node = make_node()
    readonly = disk(Tmpfs, node.state_dir, "size=3m")
    node.listen = f"127.0.0.1:{free_port()}"
    node.start()
    assert node.stop() == 0
    subprocess.run(["mount", "-o", "remount,ro", readonly.path], check=True)
    node.start(ready=False)
    assert node.proc.wait(WAIT_S) == 1
    assert node.state_dir in node.proc.log and "ead-only file system" in node.proc.log
    subprocess.run(["mount", "-o", "remount,rw", readonly.path], check=True)
    node.start()
