"""Plugins that davitd finds by their sockets under plugins_registry/."""

import os
import socket
import time

import pytest

from nodes import held, pod
from plugin import Plugin
from procs import until
from registrar import Registrar

GPU = "example.com/gpu"


class Watched:
    """A device plugin behind a registrar; its service is on a socket of its own under plugins/."""

    def __init__(self, node, at, resource=GPU, devices=("g0", "g1"), **info):
        folder = os.path.join(node.kubelet_dir, "plugins", os.path.basename(at))
        os.makedirs(folder, exist_ok=True)
        self.node = node
        self.plugin = Plugin(folder, resource, list(devices), name="dp.sock")
        self.registrar = Registrar(
            os.path.join(node.kubelet_dir, "plugins_registry", at),
            resource,
            info.pop("endpoint", self.plugin.socket),
            **info,
        )

    def serve(self):
        self.plugin.serve()
        self.registrar.serve()
        return self

    def wait_told(self, registered=True, timeout_s=10):
        until(
            lambda: self.registrar.told and self.registrar.told[-1][0] == registered,
            timeout_s,
            f"told {registered} on {self.registrar.socket}",
        )
        return self

    @property
    def seen(self):
        """How davitd sees the registrar's socket; None: not at all."""
        for seen in self.node.plugins():
            if seen.socket == self.registrar.socket:
                return seen
        return None

    def wait_state(self, state, timeout_s=10):
        until(lambda: self.seen and self.seen.state == state, timeout_s, f"{state}: {self.seen}")
        return self.seen

    def stop(self):
        self.registrar.stop()
        self.plugin.stop()


@pytest.fixture
def watched():
    made = []

    def make(node, at, *args, **options):
        made.append(Watched(node, at, *args, **options))
        return made[-1]

    yield make
    for one in made:
        one.stop()


def names(n, form="example.com/r{}"):
    return [form.format(i) for i in range(n)]


def test_a_plugin_is_found_registered_and_told(node, watched):
    one = watched(node, "gpu.sock").serve().wait_told()
    assert one.registrar.told == [(True, "")]
    assert one.registrar.n_infos == 1
    node.wait_devices(GPU, 2)
    seen = one.wait_state("registered")
    assert (seen.type, seen.name, seen.endpoint) == ("DevicePlugin", GPU, one.plugin.socket)
    assert list(seen.versions) == ["v1beta1"]
    assert (seen.error, seen.retry_at_ms, seen.attempts) == ("", 0, 1)
    assert [p.name for p in node.plugins()] == [GPU]  # not a second time as a classic one
    answer = node.admit(pod("p", ("main", {GPU: 2})))
    assert answer.admitted and len(one.plugin.allocated) == 1


def test_registrar_and_service_on_one_socket(node, watched):
    one = watched(node, "one.sock", endpoint="")
    one.registrar.serve(one.plugin.handler)
    one.wait_told()
    node.wait_devices(GPU, 2)
    assert one.wait_state("registered").endpoint == one.registrar.socket


def test_a_removed_socket_deregisters(node, watched):
    one = watched(node, "gpu.sock").serve().wait_told()
    node.wait_devices(GPU, 2)
    answer = node.admit(pod("p", ("main", {GPU: 1})))
    os.unlink(one.registrar.socket)
    until(lambda: not node.resource(GPU).connected, 10, "the plugin to be let go")
    assert one.seen.state == "gone"
    assert node.resource(GPU).allocatable == 0
    ids = held(answer)["main"][GPU]
    assert [d for d, v in node.resources()[GPU].items() if v.holders] == ids


def test_a_socket_renamed_away_deregisters(node, watched, short_dir):
    one = watched(node, "gpu.sock").serve().wait_told()
    os.rename(one.registrar.socket, os.path.join(short_dir, "away.sock"))
    until(lambda: not node.resource(GPU).connected, 10, "the plugin to be let go")


def test_a_replaced_plugin_is_registered_again_with_its_new_devices(node, watched):
    one = watched(node, "gpu.sock").serve().wait_told()
    node.wait_devices(GPU, 2)
    for devices in (["g0", "g9"], ["g5"]):
        one.stop()
        one.plugin.set_devices(devices, push=False)
        one.registrar.told.clear()
        one.serve().wait_told()
        node.wait_devices(GPU, len(devices))
        healthy = [d for d, v in node.resources()[GPU].items() if v.healthy]
        assert healthy == devices
        assert one.registrar.told == [(True, "")]


def test_a_socket_moved_onto_another_replaces_it(node, watched):
    old = watched(node, "gpu.sock").serve().wait_told()
    node.wait_devices(GPU, 2)
    new = watched(node, ".gpu-new.sock", devices=["n0", "n1", "n2"]).serve()
    os.rename(new.registrar.socket, old.registrar.socket)
    new.registrar.socket = old.registrar.socket
    new.wait_told()
    node.wait_devices(GPU, 3)
    assert len([p for p in node.plugins() if p.name == GPU]) == 1


def test_sub_directories_and_sockets_that_were_there_before(make_node, watched):
    node = make_node()
    before = [watched(node, at, name) for at, name in zip(("a.sock", "b/b.sock"), names(2))]
    for one in before:
        one.serve()
    node.start()
    for one in before:
        one.wait_told()
    places = ("c.sock", "d/d.sock", "d/e/f/g.sock", "b/h.sock")
    later = [watched(node, at, name) for at, name in zip(places, names(4, "x.io/s{}"))]
    for one in later:
        one.serve()
    for one in later:
        one.wait_told()
        node.wait_devices(one.plugin.resource, 2)
    assert all(one.registrar.told == [(True, "")] for one in before + later)
    later[2].registrar.stop()
    until(lambda: not node.resource("x.io/s2").connected, 10, "the deepest to be let go")
    assert node.resource("x.io/s1").connected


def test_dotfiles_and_what_is_no_socket_are_left_alone(node, watched):
    hidden = watched(node, ".hidden.sock", "example.com/hidden").serve()
    registry = os.path.join(node.kubelet_dir, "plugins_registry")
    with open(os.path.join(registry, "plain"), "w", encoding="ascii") as plain:
        plain.write("not a socket")
    os.mkfifo(os.path.join(registry, "fifo"))
    watched(node, "z.sock").serve().wait_told()
    assert hidden.registrar.n_infos == 0
    assert [p.name for p in node.plugins()] == [GPU]


@pytest.mark.parametrize("kind", ["CSIPlugin", "draplugin", "deviceplugin", ""])
def test_an_unknown_type_is_refused_and_told(node, watched, kind):
    one = watched(node, "x.sock", kind=kind).serve().wait_told(False)
    text = f"no handler registered for plugin type: {kind} at socket {one.registrar.socket}"
    assert one.registrar.told[0] == (False, f"RegisterPlugin error -- {text}")
    seen = one.wait_state("failing")
    assert text in seen.error
    assert seen.retry_at_ms > time.time() * 1000 - 1000
    assert node.resource(GPU) is None


@pytest.mark.parametrize(
    "info, text",
    [
        (
            {"versions": ("v1alpha1", "v2")},
            "RegisterPlugin error -- plugin validation failed with err: manager version, v1beta1, "
            "is not among plugin supported versions [v1alpha1 v2]",
        ),
        (
            {"resource": "gpu"},
            "RegisterPlugin error -- plugin validation failed with err: invalid name of device "
            'plugin socket: the ResourceName "gpu" is invalid',
        ),
    ],
    ids=["versions", "name"],
)
def test_what_is_not_valid_is_refused_and_told(node, watched, info, text):
    one = watched(node, "x.sock", **info).serve().wait_told(False)
    assert one.registrar.told[0] == (False, text)
    assert one.wait_state("failing").error


def test_an_endpoint_outside_is_refused_and_told(node, watched, short_dir):
    one = watched(node, "x.sock", endpoint=os.path.join(short_dir, "o.sock")).serve()
    one.wait_told(False)
    assert "o.sock" in one.registrar.told[0][1]


def test_get_info_that_fails_is_tried_again(node, watched):
    one = watched(node, "x.sock")
    one.registrar.info_error = "not yet"
    one.serve()
    seen = one.wait_state("failing")
    assert "GetInfo" in seen.error and "not yet" in seen.error
    until(lambda: one.registrar.n_infos >= 2, 10, "a second try")
    assert one.registrar.told == [] and node.resource(GPU) is None
    one.registrar.info_error = None
    one.wait_told()
    node.wait_devices(GPU, 2)
    assert one.wait_state("registered").attempts >= 3


def test_a_plugin_that_cannot_be_told_is_not_registered(node, watched):
    one = watched(node, "x.sock")
    one.registrar.notify_error = "no ears"
    one.serve()
    seen = one.wait_state("failing")
    assert "failed to send registration status" in seen.error and "no ears" in seen.error
    until(lambda: not node.resource(GPU).connected, 10, "the plugin to be let go")
    until(lambda: len(one.registrar.told) >= 2, 10, "a second try")
    assert one.registrar.n_infos >= 2
    one.registrar.notify_error = None
    seen_before = len(one.registrar.told)
    until(lambda: len(one.registrar.told) > seen_before, 10, "being told again")
    one.wait_state("registered")
    node.wait_devices(GPU, 2)


def test_registrars_that_hang_hold_up_nobody(node, watched):
    hanging = [watched(node, f"h{i}.sock", f"x.io/h{i}") for i in range(8)]
    for one in hanging:
        one.registrar.hang_until_stopped()
        one.serve()
    silent = socket.socket(socket.AF_UNIX)  # takes connections, and says nothing
    silent.bind(os.path.join(node.kubelet_dir, "plugins_registry", "silent.sock"))
    silent.listen()
    until(lambda: all(one.registrar.n_infos for one in hanging), 10, "the hanging to be asked")
    started = time.monotonic()
    watched(node, "good.sock").serve().wait_told()
    assert time.monotonic() - started < 4  # one after the other they would take 8 s, and 10 s more
    assert hanging[0].wait_state("failing").error
    assert [p.state for p in node.plugins() if p.socket.endswith("silent.sock")] == ["connecting"]
    silent.close()


def test_the_service_may_start_after_the_registrar(node, watched):
    one = watched(node, "x.sock")
    one.registrar.serve()
    one.wait_state("registering")
    one.plugin.serve()
    one.wait_told()
    node.wait_devices(GPU, 2)


def test_a_service_that_dies_while_its_registrar_lives(node, watched):
    one = watched(node, "x.sock").serve().wait_told()
    node.wait_devices(GPU, 2)
    one.plugin.stop()
    until(lambda: not node.resource(GPU).connected, 10, "the plugin to be missed")
    one.registrar.stop()
    one.serve()
    node.wait_devices(GPU, 2)


def test_two_sockets_for_one_resource(node, watched):
    old = watched(node, "old.sock").serve().wait_told()
    node.wait_devices(GPU, 2)
    new = watched(node, "new.sock", devices=["g0", "g1", "g2"]).serve().wait_told()
    node.wait_devices(GPU, 3)
    old.stop()
    until(lambda: old.seen is None, 10, "the older one to be let go and to be forgotten")
    assert [(p.socket, p.state) for p in node.plugins()] == [(new.registrar.socket, "registered")]
    node.wait_devices(GPU, 3)
    assert node.admit(pod("p", ("main", {GPU: 3}))).admitted
    assert len(new.plugin.allocated) == 1 and not old.plugin.allocated


def test_a_plugin_that_is_gone_is_listed_once(node, watched):
    one = watched(node, "gpu.sock").serve().wait_told()
    node.wait_devices(GPU, 2)
    one.stop()
    one.wait_state("gone")
    until(lambda: not node.resource(GPU).connected, 10, "its connection to be lost")
    assert [(p.socket, p.state) for p in node.plugins()] == [(one.registrar.socket, "gone")]


def test_the_directory_for_sockets_of_drivers_is_made(node):
    assert os.stat(os.path.join(node.kubelet_dir, "plugins")).st_mode & 0o777 == 0o750


def test_after_a_restart_all_are_registered_again(node, watched):
    several = [watched(node, f"r{i}.sock", name) for i, name in enumerate(names(5))]
    for one in several:
        one.serve().wait_told()
        node.wait_devices(one.plugin.resource, 2)
    before = held(node.admit(pod("p", ("main", {r: 1 for r in names(5)}))))
    for one in several:
        one.registrar.told.clear()
    assert node.stop() == 0
    node.start()
    for one in several:
        one.wait_told()
        node.wait_devices(one.plugin.resource, 2)
    assert held(node.admit(pod("p", ("main", {r: 1 for r in names(5)})))) == before


def test_many_at_once(node, watched):
    many = [watched(node, f"m{i}.sock", name, ["d0"]) for i, name in enumerate(names(40))]
    for one in many:
        one.plugin.serve()
    for one in many:
        one.registrar.serve()
    for one in many:
        one.wait_told()
    assert [p.state for p in node.plugins()] == ["registered"] * len(many)
    assert node.status().n_plugins == len(many)


def test_davit_plugins_tells_state_error_and_retry(node, watched):
    watched(node, "good.sock").serve().wait_told()
    bad = watched(node, "bad.sock", "x.io/bad", kind="CSIPlugin").serve().wait_told(False)
    bad.wait_state("failing")
    gone = watched(node, "gone.sock", "x.io/gone").serve().wait_told()
    gone.registrar.stop()
    gone.wait_state("gone")
    lines = {}

    def is_failing():
        """Between two tries: during one it is connecting."""
        done = node.davit("plugins", "-o", "wide")
        assert done.returncode == 0, done
        lines.update((line.split()[0], line) for line in done.stdout.splitlines())
        return " failing " in lines["x.io/bad"]
    until(is_failing, 60, "the plugin is failing")
    assert lines["NAME"].split() == [
        "NAME", "TYPE", "STATE", "VERSIONS", "USES", "TRIES", "RETRY", "SOCKET", "ERROR",
    ]
    assert " registered " in lines[GPU] and lines[GPU].rstrip().endswith("-")
    assert " gone " in lines["x.io/gone"]
    assert "no handler registered for plugin type: CSIPlugin" in lines["x.io/bad"]
    assert " in " in lines["x.io/bad"] or " now " in lines["x.io/bad"]
    assert bad.registrar.socket in lines["x.io/bad"]
