"""The service manager's watchdog is fed by the loop: systemd's WatchdogSec= of the unit."""

import os
import re
import socket
import time

import pytest

from built import need_systemd
from procs import until

PATIENCE_S = 60


class Manager:
    """Stands in for systemd: a socket for notifications, and what came over it."""

    def __init__(self, folder):
        self.path = os.path.join(folder, "notify")
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(self.path)
        self.socket.setblocking(False)
        self.messages = []

    def count(self, message):
        while True:
            try:
                self.messages += self.socket.recv(4096).decode().splitlines()
            except BlockingIOError:
                return self.messages.count(message)

    def close(self):
        self.socket.close()


@pytest.fixture
def manager(short_dir):
    made = Manager(short_dir)
    yield made
    made.close()


def start(make_node, manager, monkeypatch, usec):
    need_systemd()
    monkeypatch.setenv("NOTIFY_SOCKET", manager.path)
    monkeypatch.delenv("WATCHDOG_PID", raising=False)
    if usec:
        monkeypatch.setenv("WATCHDOG_USEC", str(usec))
    else:
        monkeypatch.delenv("WATCHDOG_USEC", raising=False)
    return make_node().start()


def test_the_loop_feeds_the_watchdog_again_and_again(make_node, manager, monkeypatch):
    start(make_node, manager, monkeypatch, 100000)
    until(lambda: manager.count("WATCHDOG=1") >= 5, PATIENCE_S, "five signs of life")
    assert manager.count("READY=1") == 1


def test_who_sets_no_watchdog_hears_nothing_of_it(make_node, manager, monkeypatch):
    node = start(make_node, manager, monkeypatch, None)
    until(lambda: manager.count("READY=1") == 1, PATIENCE_S, "READY=1")
    assert node.stop() == 0
    assert manager.count("STOPPING=1") == 1
    assert manager.count("WATCHDOG=1") == 0


def test_a_stopped_daemon_feeds_nobody(make_node, manager, monkeypatch):
    node = start(make_node, manager, monkeypatch, 100000)
    until(lambda: manager.count("WATCHDOG=1") >= 2, PATIENCE_S, "two signs of life")
    os.kill(node.proc.pid, 19)  # SIGSTOP: the loop no longer turns
    until(lambda: is_stopped(node.proc.pid), PATIENCE_S, "the process to stop")
    before = manager.count("WATCHDOG=1")
    time.sleep(0.5)  # five times as long as systemd would wait
    assert manager.count("WATCHDOG=1") == before
    os.kill(node.proc.pid, 18)  # SIGCONT
    until(lambda: manager.count("WATCHDOG=1") > before, PATIENCE_S, "a sign of life again")


def is_stopped(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as stat:
        return stat.read().rpartition(")")[2].split()[0] == "T"


def test_metrics_tell_the_longest_turn(node, api):
    text = api.ask("GET", "/metrics").body.decode()
    found = dict(re.findall(r"^(davit_loop_\w+) ([0-9.e+-]+)$", text, re.M))
    assert float(found["davit_loop_longest_hold_seconds"]) > 0
    assert float(found["davit_loop_longest_hold_cpu_seconds"]) >= 0
    assert int(found["davit_loop_hold_seconds_count"]) > 0
