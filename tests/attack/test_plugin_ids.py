"""Names with characters that steer a terminal or cannot be seen are refused, and whatever else a
plugin says is printed escaped."""

import os

import grpc
import pytest

from nodes import pod
from procs import until
from registrar import Registrar

PATIENCE_S = 60
RESOURCE = "example.com/odd"

# Each is one that must not reach a person's terminal as it is.
ODD = {
    "nul": "a\0b",
    "escape": "a\033[2Jb",
    "newline": "a\nb",
    "return": "a\rb",
    "bell": "a\ab",
    "delete": "a\x7fb",
    "c1": "a\x9b31mb",
    "override": "a\u202eb",
    "isolate": "a\u2066b",
    "mark": "a\u200fb",
    "separator": "a\u2028b",
    "order": "a\ufeffb",
}
BAD_BYTES = (b"\033", b"\x07", b"\xc2\x9b", "\u202e".encode())


def check_output(data):
    """Nothing in it steers a terminal."""
    for bad in BAD_BYTES:
        assert bad not in data, data


def registry_socket(node, name):
    return os.path.join(node.kubelet_dir, "plugins_registry", name)


@pytest.mark.parametrize("odd", ODD.values(), ids=ODD)
def test_a_list_with_an_odd_id_is_refused_and_the_one_before_counts(node, plugins, odd):
    plugin = plugins(node, RESOURCE, ["d1", "d2"])
    plugin.register()
    node.wait_devices(RESOURCE, 2, PATIENCE_S)
    plugin.set_devices(["d1", "d2", "d3", odd])
    until(lambda: "list refused" in node.proc.log, PATIENCE_S, "the refusal")
    assert list(node.resources()[RESOURCE]) == ["d1", "d2"]
    plugin.set_devices(["d1", "d2", "d3"])  # a good one is taken again
    node.wait_devices(RESOURCE, 3, PATIENCE_S)
    check_output(node.proc.log.encode())


@pytest.mark.parametrize("odd", ODD.values(), ids=ODD)
def test_odd_names_in_a_registration_are_refused(node, plugins, odd):
    plugin = plugins(node, RESOURCE, ["d1"])
    for names in ({"resource": f"example.com/{odd}"}, {"endpoint": f"{odd}.sock"},
                  {"version": odd}):
        with pytest.raises(grpc.RpcError) as refused:
            plugin.register(**names)
        if "\0" not in odd:
            check_output(refused.value.details().encode())
    assert node.resources() == {}
    assert plugin.register() and node.proc.is_alive
    check_output(node.proc.log.encode())


@pytest.mark.parametrize(
    "name", ["", "a\033[2J", "a\u202eb.example.com", "a\nb", "-x", "a" * 64,
             "spec.driver=x,y", "a/b"])
def test_odd_driver_names_are_refused(node, name):
    driver = Registrar(registry_socket(node, "odd.sock"), name, kind="DRAPlugin",
                       versions=("v1.DRAPlugin",)).serve()
    try:
        until(lambda: driver.told, PATIENCE_S, "the answer to its registration")
        registered, error = driver.told[-1]
        assert not registered and "name" in error
        check_output(error.encode())
        assert all(p.state != "registered" for p in node.plugins())
        for verb in ("plugins", "status", "devices"):
            check_output(node.davit(verb).stdout.encode())
    finally:
        driver.stop()
    check_output(node.proc.log.encode())


@pytest.mark.parametrize("field", ["kind", "endpoint", "versions"])
def test_other_odd_texts_of_a_watched_plugin_are_refused(node, field):
    odd = "/x\033[2J\u202e\x9b"
    options = {"kind": "DRAPlugin", "endpoint": "", "versions": ("v1.DRAPlugin",)}
    options[field] = (odd,) if field == "versions" else odd
    plugin = Registrar(registry_socket(node, "odd.sock"), "gpu.example.com", **options).serve()
    try:
        until(lambda: plugin.told, PATIENCE_S, "the answer to its registration")
        assert not plugin.told[-1][0]
        check_output(plugin.told[-1][1].encode())
        check_output(node.davit("plugins").stdout.encode())
        check_output(node.api().ask("GET", "/metrics").body)
    finally:
        plugin.stop()
    check_output(node.proc.log.encode())


def test_a_plugins_errors_are_printed_escaped_and_cut(node, plugins):
    plugin = plugins(node, RESOURCE, ["d1"])
    plugin.register()
    node.wait_devices(RESOURCE, 1, PATIENCE_S)
    plugin.answer = lambda ids: "no\033[2J \u202e\x9b31m" + "x" * 4000
    answer = node.admit(pod("p", ("c", {RESOURCE: "1"})))
    assert not answer.admitted
    assert len(answer.message) < 4000
    check_output(answer.message.encode())
    check_output(node.proc.log.encode())
    check_output(node.davit("status").stdout.encode())


def test_a_drivers_error_in_its_registration_is_printed_escaped(node):
    driver = Registrar(registry_socket(node, "odd.sock"), "gpu.example.com", kind="DRAPlugin")
    driver.info_error = "no\033[2J \u202e\x9b31m\nfake line" + "x" * 4000
    driver.serve()
    try:
        until(lambda: any(p.error for p in node.plugins()), PATIENCE_S, "its error")
        for words in (("plugins",), ("status",)):
            check_output(node.davit(*words).stdout.encode())
        table = node.davit("plugins").stdout
        assert not any(line.startswith("fake line") for line in table.splitlines())
    finally:
        driver.stop()
    check_output(node.proc.log.encode())
    assert not any(line.startswith("fake line") for line in node.proc.log.splitlines())


def test_options_of_a_container_are_printed_escaped(node, plugins):
    plugin = plugins(node, RESOURCE, ["d1"])
    plugin.register()
    node.wait_devices(RESOURCE, 1, PATIENCE_S)

    def answer(_):
        made = plugin.pb.AllocateResponse()
        made.container_responses.add(envs={"A": "x\033[2J\u202e"}, annotations={"b": "\x9b31m"})
        return made

    plugin.answer = answer
    assert node.admit(pod("p", ("c", {RESOURCE: "1"}))).admitted
    printed = node.davit("options", "default/p", "-c", "c")
    assert printed.returncode == 0, printed
    check_output(printed.stdout.encode())
    assert "x\\x1b[2J\\u202e" in printed.stdout
