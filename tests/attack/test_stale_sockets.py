"""Stale sockets are cleaned away before kubelet.sock shows up: who reacts at once loses nothing."""

import os
import socket
import stat

import pytest

from inotify import IN_CREATE, IN_DELETE, IN_MOVED_TO, Watch
from nodes import run_davit
from peers import folder_of
from procs import until

N_RESTARTS = 12
# Enough that cleaning takes longer than a plugin needs to react.
N_STALE = 300
PATIENCE_S = 60
CAME = IN_CREATE | IN_MOVED_TO


def make_socket(path):
    made = socket.socket(socket.AF_UNIX)
    made.bind(path)
    return made


def litter(node):
    """What plugins of a former life left behind."""
    os.makedirs(node.plugin_dir, exist_ok=True)
    for number in range(N_STALE):
        path = os.path.join(node.plugin_dir, f"stale-{number}.sock")
        if not os.path.lexists(path):
            make_socket(path).close()


def stale(node):
    return [name for name in os.listdir(node.plugin_dir) if name.startswith("stale-")]


class Quick:
    """Makes its socket anew whenever it is told, and remembers the files that it made."""

    def __init__(self, node, name, reacts):
        self.path = os.path.join(node.plugin_dir, name)
        self.reacts = reacts
        self.made = []
        self._socket = None
        self._watch = Watch(node.plugin_dir, self._react)

    def _react(self, mask, name):
        if not self.reacts(mask, name):
            return
        if self._socket:
            self._socket.close()
        if mask & CAME and os.path.lexists(self.path):
            os.unlink(self.path)
        self._socket = make_socket(self.path)
        self._socket.listen()
        self.made.append(os.stat(self.path).st_ino)

    @property
    def is_there(self):
        return os.path.exists(self.path) and os.stat(self.path).st_ino == self.made[-1]

    def close(self):
        self._watch.close()
        if self._socket:
            self._socket.close()


@pytest.mark.parametrize("ends", ["stop", "kill"])
def test_a_plugin_that_reacts_on_the_new_socket_keeps_its_own(make_node, ends):
    node = make_node()
    litter(node)
    quick = Quick(node, "a-quick.sock",
                  lambda mask, name: mask & CAME and name == "kubelet.sock")
    try:
        for number in range(N_RESTARTS):
            litter(node)
            node.start()
            until(lambda: len(quick.made) > number, PATIENCE_S, "the plugin's reaction")
            assert stale(node) == []
            assert quick.is_there, f"restart {number} took the plugin's new socket"
            assert getattr(node, ends)() in (0, -9)
    finally:
        quick.close()


def test_a_plugin_that_reacts_on_the_loss_of_its_socket_keeps_the_new_one(make_node):
    node = make_node()
    os.makedirs(node.plugin_dir)
    for number in range(N_RESTARTS):
        name = f"m-{number}.sock"
        quick = Quick(node, name, lambda mask, lost, own=name: mask & IN_DELETE and lost == own)
        try:
            litter(node)
            make_socket(quick.path).close()
            node.start()
            until(lambda seen=quick: seen.made, PATIENCE_S, "the plugin's reaction")
            assert stale(node) == []
            assert len(quick.made) == 1 and quick.is_there, f"restart {number} took two sockets"
            assert node.stop() == 0
        finally:
            quick.close()


def test_a_plugin_that_registers_at_once_serves_after_every_restart(make_node, plugins):
    node = make_node().start()
    plugin = plugins(node, "example.com/quick", ["d1", "d2"])
    plugin.register()
    came = []

    def react(mask, name):
        if mask & CAME and name == "kubelet.sock":
            plugin.stop()
            plugin.serve().register()
            came.append(name)

    watch = Watch(node.plugin_dir, react)
    try:
        for number in range(3):
            assert node.stop() == 0
            litter(node)
            node.start()
            until(lambda: len(came) > number, PATIENCE_S, "the plugin's registration")
            node.wait_devices("example.com/quick", 2, PATIENCE_S)
            assert stat.S_ISSOCK(os.stat(plugin.socket).st_mode)
    finally:
        watch.close()


def test_a_second_daemon_takes_no_sockets(make_node, plugins, short_dir):
    """It refuses to start, and what serves with the first one is left alone."""
    node = make_node().start()
    plugin = plugins(node, "example.com/kept", ["d1"])
    plugin.register()
    node.wait_devices("example.com/kept", 1, PATIENCE_S)
    before = os.stat(plugin.socket).st_ino
    second = node.procs.start(
        os.path.join(folder_of("DAVIT_BUILD"), "davitd"),
        "--kubelet-dir", node.kubelet_dir,
        "--state-dir", os.path.join(short_dir, "s2"),
        "--runtime-dir", os.path.join(short_dir, "r2"),
        "--listen", "none",
    )
    assert second.wait() != 0
    assert "another process" in second.log
    assert os.stat(plugin.socket).st_ino == before
    assert run_davit("devices", "--socket", node.socket).returncode == 0
    node.wait_devices("example.com/kept", 1, PATIENCE_S)


def test_a_start_that_fails_takes_no_sockets(make_node, short_dir):
    """The directory is cleaned when the state could be read, not before."""
    node = make_node()
    litter(node)
    state = os.path.join(short_dir, "state-file")
    with open(state, "w", encoding="ascii") as file:
        file.write("no directory")
    node.state_dir = state
    node.start(ready=False)
    assert node.proc.wait() != 0
    assert len(stale(node)) == N_STALE
