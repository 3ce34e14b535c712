"""Logs that are followed: to the container's end, over files that replace each other, by many."""

import glob
import gzip
import os
import threading

import pytest
from procs import until
from runtime_nodes import WAIT_S, container, pod
from servers import PODS

FOLLOW = "?follow=true"


class Follower:
    """Reads a log in a thread of its own, until it ends."""

    def __init__(self, node, name, query=FOLLOW):
        self.connection, self.answer = node.api().open("GET", f"{PODS}/{name}/log{query}")
        assert self.answer.status == 200
        self.bytes = b""
        self.failure = None
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        try:
            while True:
                part = self.answer.read1(65536)
                if not part:
                    return
                self.bytes += part
        except Exception as failure:  # noqa: BLE001 - whatever it is, the test tells
            self.failure = failure

    @property
    def has_ended(self):
        return not self.thread.is_alive()

    def wait_end(self):
        self.thread.join(WAIT_S)
        assert self.has_ended
        return self.bytes


def descriptors(node):
    """How many it has. The first who follows a log makes it watch directories, with one more."""
    return len(os.listdir(f"/proc/{node.proc.pid}/fd"))


def test_a_follower_sees_lines_at_once_and_ends_with_the_container(node, kubectl, procs):
    """The container writes a line when the test has seen the one before."""
    script = ("echo begin; while read line; do echo $line; [ $line = end ] && exit 0; done "
              "</v/fifo")
    folder = os.path.join(node.root, "v")
    os.mkdir(folder)
    os.mkfifo(os.path.join(folder, "fifo"))
    mount = {"volumeMounts": [{"name": "v", "mountPath": "/v"}]}
    node.add(pod("p", container(script=script, **mount), restartPolicy="Never",
                 volumes=[{"name": "v", "hostPath": {"path": folder}}]))
    node.wait_phase("p", "Running")
    base = descriptors(node)
    followers = [Follower(node, "p") for _ in range(20)]
    late = kubectl.start(procs, "logs", "-f", "p")
    with open(os.path.join(folder, "fifo"), "w", encoding="utf-8") as fifo:
        for word in ("begin", "one", "two"):
            until(lambda w=word: all(one.bytes.endswith(f"{w}\n".encode()) for one in followers),
                  WAIT_S, word)
            print({"begin": "one", "one": "two", "two": "end"}[word], file=fifo, flush=True)
    assert {one.wait_end() for one in followers} == {b"begin\none\ntwo\nend\n"}
    assert not any(one.failure for one in followers)
    until(lambda: late.lines == ["begin", "one", "two", "end"], WAIT_S, "kubectl's last line")
    for one in followers:
        one.connection.close()
    until(lambda: descriptors(node) <= base + 1, WAIT_S, "descriptors are closed")


LINES = 120000  # of 100 bytes and some, as the runtime writes them: more than 10 MiB
FLOOD = f"""
i=0; while [ $i -lt {LINES} ]; do echo "line $i with some text to make it as long as lines of programs are"; i=$((i+1)); done
until [ -e /v/go ]; do sleep 0.1; done; echo after
until [ -e /v/again ]; do sleep 0.1; done
i=0; while [ $i -lt {LINES} ]; do echo "line $i with some text to make it as long as lines of programs are"; i=$((i+1)); done
sleep 1000"""


def files_of(node, name):
    found = glob.glob(f"{node.logs_dir}/default_{name}_*/main/*")
    return sorted(os.path.basename(one) for one in found)


@pytest.mark.release
def test_a_follower_loses_nothing_when_the_log_is_set_aside(node):
    folder = os.path.join(node.root, "v")
    os.mkdir(folder)
    mount = {"volumeMounts": [{"name": "v", "mountPath": "/v"}]}
    node.add(pod("p", container(script=FLOOD, **mount),
                 volumes=[{"name": "v", "hostPath": {"path": folder}}]))
    node.wait_phase("p", "Running")
    follower = Follower(node, "p")
    until(lambda: len(files_of(node, "p")) == 2, 2 * WAIT_S, lambda: files_of(node, "p"))
    with open(os.path.join(folder, "go"), "w", encoding="utf-8"):
        pass
    until(lambda: follower.bytes.endswith(b"after\n"), WAIT_S, lambda: follower.bytes[-200:])
    numbers = [int(line.split()[1]) for line in follower.bytes.splitlines()[:-1]]
    assert numbers == list(range(LINES))
    # What was set aside is packed when the next one is.
    first = [name for name in files_of(node, "p") if name != "0.log"]
    os.unlink(os.path.join(folder, "go"))
    with open(os.path.join(folder, "again"), "w", encoding="utf-8"):
        pass
    until(lambda: {"0.log", f"{first[0]}.gz"} < set(files_of(node, "p")) and
          first[0] not in files_of(node, "p"), 2 * WAIT_S, lambda: files_of(node, "p"))
    packed = glob.glob(f"{node.logs_dir}/default_p_*/main/{first[0]}.gz")[0]
    with gzip.open(packed, "rt", encoding="utf-8") as lines:
        assert sum(1 for _ in lines) > 100000
    # A log that somebody removes is made anew.
    os.unlink(glob.glob(f"{node.logs_dir}/default_p_*/main/0.log")[0])
    until(lambda: "0.log" in files_of(node, "p"), WAIT_S, "the runtime was told")
    node.delete("p")
    follower.wait_end()  # the pod ends
    assert follower.failure is None


def test_clients_that_vanish_and_a_davitd_that_is_killed(node):
    node.add(pod("p", container(script="i=0; while :; do echo $i; i=$((i+1)); sleep 0.01; done")))
    node.wait_phase("p", "Running")
    base = descriptors(node)
    for _ in range(20):
        connection, answer = node.api().open("GET", f"{PODS}/p/log{FOLLOW}")
        assert answer.readline()
        connection.close()
        answer.close()
    until(lambda: descriptors(node) <= base + 1, WAIT_S, "what they held is given back")
    follower = Follower(node, "p")
    until(lambda: follower.bytes, WAIT_S, "its first lines")
    node.kill()
    follower.wait_end()
    node.start()
    node.wait_phase("p", "Running")
    again = Follower(node, "p", "?follow=true&limitBytes=100000&tailLines=5")
    until(lambda: again.bytes.count(b"\n") > 20, WAIT_S, "new lines come")
    numbers = [int(line) for line in again.bytes.splitlines()[:-1]]
    assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))
    assert node.stop() == 0  # it does not wait for who follows
    again.wait_end()
