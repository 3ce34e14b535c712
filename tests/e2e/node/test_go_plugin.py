"""An unmodified device plugin on grpc-go, which registers again by itself when it has to."""

import os

import pytest

from nodes import held, pod
from peers import folder_of
from procs import until

TTY = "example.com/tty"
DEVICES = ["t0", "t1", "t2", "t3"]


class GoPlugin:
    """The program of tests/peers/go-plugin; started anew, it is the same plugin come back."""

    def __init__(self, node):
        self.node = node
        self.proc = None

    def start(self):
        self.proc = self.node.procs.start(
            os.path.join(folder_of("DAVIT_PEERS"), "go-device-plugin"),
            self.node.plugin_dir,
            TTY,
            *DEVICES,
        )
        return self

    @property
    def n_registrations(self):
        return self.proc.lines.count("registered")

    @property
    def allocations(self):
        """The ids of each Allocate of this life."""
        calls = [line.split(" ", 1)[1] for line in self.proc.lines if line.startswith("allocate ")]
        return [call.split(",") for call in calls]


@pytest.fixture
def plugin(node):
    plugin = GoPlugin(node).start()
    node.wait_devices(TTY, len(DEVICES))
    return plugin


def holders(node):
    """{device: uid}"""
    return {
        device: [h.pod.uid for h in seen.holders]
        for device, seen in node.resources()[TTY].items()
        if seen.holders
    }


def test_it_registers_lists_and_allocates(node, plugin):
    until(lambda: plugin.n_registrations == 1, 10, "the answer to Register")
    answer = node.admit(pod("p", ("main", {TTY: 2})))
    assert answer.admitted, answer
    ids = sorted(held(answer)["main"][TTY])
    assert plugin.allocations == [ids]
    options = node.container_options("uid-p", "main")
    assert {e.key: e.value for e in options.envs} == {"GO_DEVICES": ",".join(ids)}
    assert [(d.host_path, d.permissions) for d in options.devices] == [
        (f"/dev/{i}", "rw") for i in ids
    ]


def test_its_health_flips_arrive(node, plugin):
    plugin.proc.write_line("health t1 Unhealthy")
    node.wait_devices(TTY, 3)
    assert not node.resources()[TTY]["t1"].healthy
    plugin.proc.write_line("health t1 Healthy")
    node.wait_devices(TTY, 4)


def test_killed_and_back_it_has_lost_nothing(node, plugin):
    first = held(node.admit(pod("p", ("main", {TTY: 2}))))
    before = holders(node)
    plugin.proc.kill()
    until(lambda: not node.resource(TTY).connected, 10, "the plugin to be missed")
    assert node.resource(TTY).allocatable == 0
    assert holders(node) == before
    # Its old socket is still there, and nobody answers on it.
    plugin.start()
    node.wait_devices(TTY, len(DEVICES))
    assert holders(node) == before
    assert held(node.admit(pod("p", ("main", {TTY: 2})))) == first
    assert plugin.allocations == []  # what is held is not asked for again
    rest = held(node.admit(pod("q", ("main", {TTY: 2}))))["main"][TTY]
    assert sorted(rest + first["main"][TTY]) == DEVICES


def test_it_is_killed_and_comes_back_many_times(node, plugin):
    expected = held(node.admit(pod("p", ("main", {TTY: 3}))))
    before = holders(node)
    for _ in range(5):
        plugin.proc.kill()
        plugin.start()
        until(lambda: plugin.n_registrations == 1, 10, "its registration")
        node.wait_devices(TTY, len(DEVICES))
        assert holders(node) == before
    assert held(node.admit(pod("p", ("main", {TTY: 3})))) == expected


@pytest.mark.parametrize("how", ["stop", "kill"])
def test_after_a_restart_of_davitd_it_registers_by_itself(node, plugin, how):
    first = held(node.admit(pod("p", ("main", {TTY: 2}))))
    before = holders(node)
    for n in (2, 3):
        getattr(node, how)()
        node.start()
        node.wait_devices(TTY, len(DEVICES))
        until(lambda n=n: plugin.n_registrations == n, 10, f"registration {n}")
        assert holders(node) == before
    assert held(node.admit(pod("p", ("main", {TTY: 2})))) == first
    assert node.admit(pod("q", ("main", {TTY: 2}))).admitted
    assert not node.admit(pod("r", ("main", {TTY: 1}))).admitted


def test_a_pod_waits_for_it_over_a_restart_of_both(node, plugin):
    first = held(node.admit(pod("p", ("main", {TTY: 2}))))
    plugin.proc.kill()
    node.stop()
    node.start()
    plugin.start()
    assert held(node.admit(pod("p", ("main", {TTY: 2})), wait=10)) == first
