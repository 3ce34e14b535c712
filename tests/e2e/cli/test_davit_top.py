"""davit top, on a terminal."""

import glob
import os
import signal

import pytest
from nodes import pod
from peers import folder_of
from runs import davit_path
from screens import Terminal
from servers import ApiNode

GPU = "example.com/gpu"


class TopNode(ApiNode):
    def add_plugin(self, n, *options):
        program = os.path.join(folder_of("DAVIT_BUILD"), "drivers", "davit-sample-device-plugin")
        self.procs.start(
            program, "--resource", GPU, "--virtual", n, "--kubelet-dir", self.kubelet_dir, *options
        )
        self.wait_devices(GPU, n, timeout_s=30)

    def command(self, *words):
        return [davit_path(), "top", "--socket", self.socket, "--state-dir", self.state_dir, *words]


@pytest.fixture
def node(procs, short_dir):
    made = TopNode(procs, short_dir, "--roles", "api,node").start()
    yield made
    made.disconnect()
    if made.proc.is_alive:
        assert made.stop() == 0, made.proc.describe()
    for path in glob.glob(os.path.join(short_dir, "*-davitd.log")):
        with open(path, encoding="utf-8", errors="replace") as log:
            assert "Sanitizer" not in log.read()


@pytest.fixture
def make_terminal():
    made = []

    def make(*args, **options):
        made.append(Terminal(*args, **options))
        return made[-1]

    yield make
    for terminal in made:
        terminal.close()
        assert "Sanitizer" not in terminal.raw, terminal.raw


def add_event(node, message):
    node.api().must("POST", "/api/v1/namespaces/default/events", {
        "metadata": {"generateName": "e-"}, "reason": "Tested", "message": message,
        "type": "Normal", "source": {"component": "test"},
        "firstTimestamp": "2026-01-01T00:00:00Z", "lastTimestamp": "2026-01-01T00:00:00Z",
        "involvedObject": {"apiVersion": "v1", "kind": "Pod", "namespace": "default", "name": "p"},
    })


def check_given_back(terminal):
    """The terminal is as it was: its settings, its screen, its cursor."""
    assert terminal.settings == terminal.before
    assert terminal.screen.modes == {"25", "7"}, terminal.screen.modes
    assert terminal.raw.endswith("\033[?1049l")
    assert terminal.screen.odd == []


def test_the_node_on_a_screen(node, make_terminal):
    node.add_plugin(4, "--numa", "0,1")
    add_event(node, "from before")
    terminal = make_terminal(node.command())
    terminal.until("n1  davitd 0.2.0", "4 free, 0 held", "1 Devices 4", "4 Plugins 1")
    assert {"1049"} <= terminal.screen.modes and "25" not in terminal.screen.modes
    assert terminal.screen.n_colours > 0
    rows = [line.split()[:3] for line in terminal.lines if line.startswith("  virtual")]
    assert rows == [["virtual-0", "0", "free"], ["virtual-2", "0", "free"],
                    ["virtual-1", "1", "free"], ["virtual-3", "1", "free"]]

    # What changes shows by itself.
    assert node.admit(pod("train", ("main", {GPU: "1"}))).admitted
    terminal.until("3 free, 1 held", "default/train:main")
    terminal.press("3")
    terminal.until("POD", "default/train", "admitted")
    terminal.press("\t")
    terminal.until("PLUGIN", "registered")
    add_event(node, "hello from the API")
    terminal.press("5")
    terminal.until("REASON", "hello from the API", "from before", "Pod p")
    terminal.press("1/virtual-3\r")
    terminal.until("1 Devices 1", "virtual-3", "filter: virtual-3")
    assert "virtual-0" not in terminal.text
    terminal.press("\033")
    terminal.until("virtual-0")

    terminal.press("q")
    assert terminal.end() == 0
    check_given_back(terminal)


def test_only_what_differs_is_written(node, make_terminal):
    node.add_plugin(3)
    terminal = make_terminal(node.command())
    terminal.until("3 free, 0 held")
    before = len(terminal.raw)
    node.release("nobody")
    terminal.press("jk")  # drawn at once, and as before
    assert node.admit(pod("train", ("main", {GPU: "1"}))).admitted
    terminal.until("2 free, 1 held")
    assert "\033[2J" not in terminal.raw[before:]
    assert "NUMA" not in terminal.raw[before:]
    terminal.press("\003")
    assert terminal.end() == 0
    check_given_back(terminal)


def test_a_screen_of_any_size(node, make_terminal):
    node.add_plugin(60)
    terminal = make_terminal(node.command())
    terminal.until("1-20 of 61")
    terminal.press("G")
    terminal.until("42-61 of 61")
    terminal.resize(200, 60)
    terminal.until("\nDevices", "\nClaims", "\nPods", "\nPlugins", "\nEvents")
    assert len([line for line in terminal.lines if line]) > 40
    terminal.resize(20, 5)
    terminal.until("n1  davitd 0.2.0, u~")
    terminal.resize(80, 24)
    terminal.until("of 61", "q quit")
    terminal.proc.send_signal(signal.SIGTERM)
    assert terminal.end() == 0
    check_given_back(terminal)


def test_a_daemon_that_goes_and_comes_back(node, make_terminal):
    node.add_plugin(2)
    terminal = make_terminal(node.command())
    terminal.until("2 free")
    assert node.stop() == 0
    terminal.until("waiting for davitd", "no davitd answers on")
    assert "virtual-1" in terminal.text  # what was known stays in sight
    node.start()
    terminal.until_gone("waiting for davitd")
    terminal.until("virtual-1")
    terminal.press("q")
    assert terminal.end() == 0


def test_without_colours(node, make_terminal):
    terminal = make_terminal(node.command(), NO_COLOR="1")
    terminal.until("[1 Devices 0]", "no devices")
    assert terminal.screen.n_colours == 0
    terminal.press("q")
    assert terminal.end() == 0


def test_a_terminal_that_is_closed_ends_it(node, make_terminal):
    terminal = make_terminal(node.command())
    terminal.until("no devices")
    terminal.proc.send_signal(signal.SIGHUP)
    assert terminal.end() == 0


def test_text_where_there_is_no_terminal(node):
    node.add_plugin(2, "--numa", "1")
    done = node.davit("top", "--state-dir", node.state_dir)
    assert (done.returncode, done.stderr) == (0, "")
    assert "\033" not in done.stdout
    assert "n1  davitd 0.2.0, up" in done.stdout and "2 free, 0 held" in done.stdout
    assert "  virtual-1  1     free\n" in done.stdout


def test_once_on_a_terminal(node, make_terminal):
    terminal = make_terminal(node.command("--once"))
    assert terminal.end() == 0
    assert "\033[?1049h" not in terminal.raw and "no devices" in terminal.raw


def test_without_a_daemon(short_dir, procs):
    node = TopNode(procs, short_dir)
    done = node.davit("top", "--once", "--state-dir", node.state_dir)
    assert done.returncode == 4 and "no davitd answers on" in done.stderr
    done = node.davit("top", "-o", "json")
    assert done.returncode == 2 and "it is for people" in done.stderr
