"""davit-sample-device-plugin, and with it libdavit-driver, against a kubelet in another language
(sample_plugin.py)."""

import os
import signal
import stat
import subprocess
import sys
from concurrent import futures

import grpc
import pytest

from procs import until
from sample_plugin import RESOURCE, WAIT_S, Kubelet, Plugin, error_of, healthy

pytestmark = pytest.mark.release

HERE = os.path.dirname(os.path.abspath(__file__))


@pytest.fixture(scope="session")
def messages(tmp_path_factory):
    """The messages of the two protocols: (device plugin, registration)."""
    out = tmp_path_factory.mktemp("proto")
    protos = os.path.join(HERE, "..", "..", "proto")
    names = ["deviceplugin_v1beta1.proto", "registration_v1.proto"]
    subprocess.run(["protoc", f"-I{protos}", f"--python_out={out}", *names], check=True)
    sys.path.insert(0, str(out))
    import deviceplugin_v1beta1_pb2
    import registration_v1_pb2

    return deviceplugin_v1beta1_pb2, registration_v1_pb2


@pytest.fixture
def kubelet(messages, short_dir):
    kubelet = Kubelet(messages, os.path.join(short_dir, "k"))
    yield kubelet
    kubelet.stop()


@pytest.fixture
def plugin(procs, short_dir):
    """Whatever a test does with it, it must end well and leave no socket behind."""
    plugin = Plugin(procs, short_dir)
    yield plugin
    if plugin.proc and plugin.proc.is_alive:
        assert plugin.proc.stop() == 0, plugin.proc.describe()
    if plugin.proc:
        left = [
            os.path.join(folder, name)
            for folder, _, names in os.walk(short_dir)
            for name in names
            if stat.S_ISSOCK(os.stat(os.path.join(folder, name)).st_mode)
            and name != "kubelet.sock"
        ]
        assert left == [], f"sockets left behind; {plugin.proc.describe()}"


# ---- registration ----


def test_it_registers_and_tells_its_devices(kubelet, plugin):
    kubelet.start()
    plugin.start("--virtual", "4", "--numa", "0,1,-,0+1")
    request, client = plugin.registered(kubelet)
    assert request.version == "v1beta1"
    assert request.resource_name == RESOURCE
    assert request.endpoint == "example.com_tty.sock"
    assert not request.options.pre_start_required
    assert client.next_list() == {
        "virtual-0": ("Healthy", [0]),
        "virtual-1": ("Healthy", [1]),
        "virtual-2": ("Healthy", None),
        "virtual-3": ("Healthy", [0, 1]),
    }
    options = client.options()
    assert not options.pre_start_required and not options.get_preferred_allocation_available
    mode = os.stat(os.path.join(kubelet.plugins, request.endpoint)).st_mode
    assert stat.S_IMODE(mode) == 0o600


def test_a_kubelet_that_starts_later_is_found(kubelet, plugin):
    plugin.start("--virtual", "1")
    kubelet.start()
    _, client = plugin.registered(kubelet)
    assert client.next_list() == healthy("virtual-0")


def test_it_registers_again_when_kubelet_sock_is_made_anew(kubelet, plugin):
    kubelet.start()
    plugin.start("--virtual", "1")
    _, first = plugin.registered(kubelet)
    assert first.next_list() == healthy("virtual-0")
    os.unlink(kubelet.socket)
    kubelet.listen()
    _, second = plugin.registered(kubelet)
    assert second.next_list() == healthy("virtual-0")
    while first.next_list() is not None:  # that of before ends
        pass


def test_it_registers_again_after_each_restart_of_the_kubelet(kubelet, plugin):
    kubelet.start()
    plugin.start("--virtual", "1")
    plugin.registered(kubelet)[1].next_list()
    for _ in range(3):
        kubelet.stop()
        kubelet.start()
        request, client = plugin.registered(kubelet)
        assert os.path.exists(os.path.join(kubelet.plugins, request.endpoint))
        assert client.next_list() == healthy("virtual-0")
    assert plugin.proc.lines.count("ready") == 1


def test_a_kubelet_that_ends_its_stream_is_registered_with_again(kubelet, plugin):
    kubelet.start()
    plugin.start("--virtual", "1")
    _, client = plugin.registered(kubelet)
    assert client.next_list() == healthy("virtual-0")
    client.watching.cancel()
    _, client = plugin.registered(kubelet)
    assert client.next_list() == healthy("virtual-0")


def test_its_own_socket_is_made_again_when_it_is_removed(kubelet, plugin):
    kubelet.start()
    plugin.start("--virtual", "1")
    request, client = plugin.registered(kubelet)
    assert client.next_list() == healthy("virtual-0")
    os.unlink(os.path.join(kubelet.plugins, request.endpoint))
    _, client = plugin.registered(kubelet)
    assert client.next_list() == healthy("virtual-0")
    assert client.allocate(["virtual-0"])


def test_a_refusal_is_told_and_tried_again(kubelet, plugin, messages):
    refusals = [grpc.StatusCode.UNKNOWN] * 2
    register = kubelet._register

    def refuse(request, context):
        if refusals:
            context.abort(refusals.pop(), "the ResourceName is invalid")
        return register(request, context)

    kubelet._register = refuse
    kubelet.start()
    plugin.start("--virtual", "1")
    plugin.registered(kubelet)  # after about 1 s and 2 s
    assert "the ResourceName is invalid; trying again" in plugin.proc.log


def test_the_watcher_finds_it(kubelet, plugin):
    plugin.start("--virtual", "1", "--register", "watcher")
    info, client, path = kubelet.discover()
    assert (info.type, info.name) == ("DevicePlugin", RESOURCE)
    assert list(info.supported_versions) == ["v1beta1"]
    assert client.next_list() == healthy("virtual-0")
    code, text = error_of(kubelet.notify, path, error="no handler registered")
    assert code == grpc.StatusCode.UNKNOWN and "no handler registered" in text
    assert plugin.proc.lines.count("registered") == 0
    kubelet.notify(path)
    plugin.wait_printed("registered", 1)
    assert client.allocate(["virtual-0"])
    assert os.listdir(kubelet.plugins) == []


def test_both_ways_at_once(kubelet, plugin):
    kubelet.start()
    plugin.start("--virtual", "1", "--register", "both")
    _, classic = plugin.registered(kubelet)
    _, watcher, path = kubelet.discover()
    kubelet.notify(path)
    plugin.wait_printed("registered", 2)
    for client in (classic, watcher):
        assert client.next_list() == healthy("virtual-0")
    assert plugin.say("health virtual-0 unhealthy") == ["ok"]
    for client in (classic, watcher):
        assert client.next_list() == {"virtual-0": ("Unhealthy", None)}


def test_a_second_one_waits_until_the_first_has_left(kubelet, procs, short_dir):
    kubelet.start()
    first, second = Plugin(procs, short_dir), Plugin(procs, short_dir)
    first.start("--virtual", "1")
    first.registered(kubelet)
    second.control = f"{first.control}-2"
    second.start("--virtual", "2", ready=None)
    until(lambda: "another process listens" in second.proc.log, WAIT_S, "the complaint")
    assert first.proc.stop() == 0
    _, client = second.registered(kubelet)
    assert client.next_list() == healthy("virtual-0", "virtual-1")
    assert second.proc.stop() == 0


# ---- devices ----


def test_commands_change_the_list(kubelet, plugin):
    kubelet.start()
    plugin.start("--virtual", "2")
    _, client = plugin.registered(kubelet)
    assert client.next_list() == healthy("virtual-0", "virtual-1")
    assert plugin.say("health virtual-1 unhealthy") == ["ok"]
    assert client.next_list() == {**healthy("virtual-0"), "virtual-1": ("Unhealthy", None)}
    assert plugin.say("health virtual-1 unhealthy", "list") == [
        "ok", "ok 2 virtual-0=healthy virtual-1=unhealthy",
    ]  # which is no change
    assert plugin.say("add extra 0+1") == ["ok"]
    assert client.next_list()["extra"] == ("Healthy", [0, 1])
    assert plugin.say("remove virtual-0") == ["ok"]
    assert set(client.next_list()) == {"virtual-1", "extra"}
    assert plugin.say("add virtual-0", "list") == [
        "ok", "ok 3 virtual-0=healthy virtual-1=unhealthy extra=healthy@0+1",
    ]


def test_signals_turn_the_health(kubelet, plugin):
    kubelet.start()
    plugin.start("--virtual", "2")
    _, client = plugin.registered(kubelet)
    ok, bad = ("Healthy", None), ("Unhealthy", None)
    assert client.next_list() == {"virtual-0": ok, "virtual-1": ok}
    for number, first, second in [
        (signal.SIGUSR1, bad, ok),
        (signal.SIGUSR1, bad, bad),
        (signal.SIGUSR1, ok, bad),
        (signal.SIGUSR2, ok, ok),
        (signal.SIGUSR1, bad, ok),
    ]:
        plugin.proc.signal(number)
        assert client.next_list() == {"virtual-0": first, "virtual-1": second}


def test_all_streams_get_all_changes(kubelet, plugin):
    kubelet.start()
    plugin.start("--virtual", "1")
    request, client = plugin.registered(kubelet)
    clients = [client]
    for _ in range(3):
        clients.append(kubelet.connect(os.path.join(kubelet.plugins, request.endpoint)))
        clients[-1].watch()
    for one in clients:
        assert one.next_list() == healthy("virtual-0")
    clients[1].watching.cancel()
    clients.pop(1)
    assert plugin.say("health virtual-0 unhealthy") == ["ok"]
    for one in clients:
        assert one.next_list() == {"virtual-0": ("Unhealthy", None)}
    assert plugin.proc.lines.count("registered") == 1


def test_a_long_list_arrives_whole(kubelet, plugin):
    kubelet.start()
    plugin.start("--virtual", "50000", "--numa", "0,1")
    _, client = plugin.registered(kubelet)
    assert len(client.next_list()) == 50000
    assert plugin.say("health virtual-49999 unhealthy") == ["ok"]
    assert client.next_list()["virtual-49999"] == ("Unhealthy", [1])
    assert plugin.say("list")[0].startswith("ok 50000 virtual-0=healthy@0 ")


def test_nodes_of_the_host_come_and_go(kubelet, plugin, short_dir):
    nodes = os.path.join(short_dir, "dev")
    os.mkdir(nodes)
    os.symlink("/dev/null", f"{nodes}/tty0")
    with open(f"{nodes}/tty-file", "w", encoding="ascii"):
        pass  # no device: left alone
    kubelet.start()
    plugin.start("--devices", f"{nodes}/tty*", "--numa", "-")
    _, client = plugin.registered(kubelet)
    (first,) = client.next_list()
    assert first == f"{nodes}/tty0"[1:].replace("/", "-")
    second = first[:-1] + "1"
    os.symlink("/dev/zero", f"{nodes}/tty1")
    assert client.next_list() == healthy(first, second)
    os.unlink(f"{nodes}/tty0")
    assert client.next_list() == {first: ("Unhealthy", None), second: ("Healthy", None)}
    code, text = error_of(client.allocate, [first])
    assert (code, text) == (grpc.StatusCode.FAILED_PRECONDITION, f"device {first} is gone")
    (answer,) = client.allocate([second])
    assert [(node.host_path, node.container_path, node.permissions) for node in answer.devices] == [
        ("/dev/zero", f"{nodes}/tty1", "rw")
    ]
    os.symlink("/dev/null", f"{nodes}/tty0")
    assert client.next_list() == healthy(first, second)


def test_directories_that_come_later_are_scanned(kubelet, plugin, short_dir):
    nodes = os.path.join(short_dir, "dev")
    kubelet.start()
    plugin.start("--devices", f"{nodes}/tty*", "--interval", "1", "--numa", "2")
    _, client = plugin.registered(kubelet)
    assert client.next_list() == {}
    os.mkdir(nodes)
    os.symlink("/dev/null", f"{nodes}/tty0")
    (state,) = client.next_list().values()
    assert state == ("Healthy", [2])


# ---- answers ----


def test_allocate_gives_what_was_asked_for(kubelet, plugin):
    kubelet.start()
    plugin.start("--virtual", "3", "--env", "TTYS", "--cdi", "example.com/tty")
    _, client = plugin.registered(kubelet)
    first, second = client.allocate(["virtual-2", "virtual-0"], ["virtual-1"])
    assert dict(first.envs) == {"TTYS": "virtual-2,virtual-0"}
    assert [device.name for device in first.cdi_devices] == [
        "example.com/tty=virtual-2", "example.com/tty=virtual-0",
    ]
    assert dict(second.envs) == {"TTYS": "virtual-1"}
    assert not first.devices and not first.mounts and not first.annotations


def test_prestart_is_wanted_on_request(kubelet, plugin):
    kubelet.start()
    plugin.start("--virtual", "1", "--prestart")
    request, client = plugin.registered(kubelet)
    assert request.options.pre_start_required and client.options().pre_start_required
    client.prestart(["virtual-0"])
    code, text = error_of(client.prestart, ["nope"])
    assert code == grpc.StatusCode.NOT_FOUND and 'no device "nope"' in text


@pytest.mark.parametrize(
    "choice, available, must, size, chosen",
    [
        ("lowest", [10, 2, 3, 1], [], 2, [1, 2]),
        ("lowest", [10, 2, 3, 1], [10], 2, [1, 10]),
        ("highest", [10, 2, 3, 1], [], 2, [3, 10]),
        # Even ones are on node 0, odd ones on node 1.
        ("packed", [0, 1, 2, 3, 5], [], 2, [0, 2]),  # fits where fewer are
        ("packed", [0, 1, 2, 3, 5], [], 3, [1, 3, 5]),
        ("packed", [0, 1, 2, 3, 5], [0], 2, [0, 2]),
        ("packed", [0, 1, 2, 3, 5], [], 4, [0, 1, 3, 5]),  # most from one
        ("packed", [0, 1, 2], [], 3, [0, 1, 2]),
    ],
)
def test_preferences(kubelet, plugin, choice, available, must, size, chosen):
    kubelet.start()
    plugin.start("--virtual", "12", "--numa", "0,1", "--preferred", choice)
    request, client = plugin.registered(kubelet)
    assert request.options.get_preferred_allocation_available
    name = "virtual-{}".format
    got = client.prefer([name(n) for n in available], [name(n) for n in must], size)
    assert sorted(got) == sorted(name(n) for n in chosen)


def test_bad_requests_get_clear_errors(kubelet, plugin):
    kubelet.start()
    plugin.start("--virtual", "2", "--preferred", "lowest")
    _, client = plugin.registered(kubelet)
    invalid = grpc.StatusCode.INVALID_ARGUMENT
    assert error_of(client.allocate, ["virtual-0", "gpu7"]) == (
        grpc.StatusCode.NOT_FOUND, f'Allocate: {RESOURCE} has no device "gpu7"',
    )
    assert error_of(client.allocate, ["virtual-0", "virtual-0"]) == (
        invalid, 'Allocate: device "virtual-0" is asked for twice',
    )
    assert error_of(client.allocate, []) == (invalid, "Allocate: no device is asked for")
    assert error_of(client.allocate) == (invalid, "Allocate: no container is asked for")
    assert error_of(client.prefer, ["virtual-0"], [], 2) == (
        invalid, "GetPreferredAllocation: 2 devices out of 1",
    )
    assert error_of(client.prefer, ["virtual-0"], [], -1)[0] == invalid
    assert error_of(client.ask, "Nothing", client.dp.Empty(), client.dp.Empty) == (
        grpc.StatusCode.UNIMPLEMENTED, "unknown method Nothing for service v1beta1.DevicePlugin",
    )
    assert plugin.say("health virtual-0 unhealthy") == ["ok"]
    assert error_of(client.allocate, ["virtual-0"]) == (
        grpc.StatusCode.FAILED_PRECONDITION, "device virtual-0 is unhealthy",
    )
    assert client.allocate(["virtual-1"])  # and it still serves


# ---- misbehaviour, and the end ----


def test_it_fails_and_hangs_when_told_to(kubelet, plugin):
    kubelet.start()
    plugin.start("--virtual", "1", "--env", "TTY")
    _, client = plugin.registered(kubelet)
    assert client.next_list() == healthy("virtual-0")
    assert plugin.say("fail-allocate 2") == ["ok"]
    for left in (1, 0):
        assert error_of(client.allocate, ["virtual-0"]) == (
            grpc.StatusCode.INTERNAL, f"told to fail; {left} more times",
        )
    assert client.allocate(["virtual-0"])
    assert plugin.say("hang") == ["ok"]
    code, _ = error_of(client.allocate, ["virtual-0"], timeout_s=0.3)
    assert code == grpc.StatusCode.DEADLINE_EXCEEDED
    assert plugin.say("health virtual-0 unhealthy") == ["ok"]  # only those calls hang
    assert client.next_list() == {"virtual-0": ("Unhealthy", None)}
    assert plugin.say("health virtual-0 healthy") == ["ok"]
    with futures.ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(client.allocate, ["virtual-0"])
        with pytest.raises(futures.TimeoutError):
            waiting.result(0.3)
        assert plugin.say("hang off") == ["ok"]
        (answer,) = waiting.result(WAIT_S)
    assert dict(answer.envs) == {"TTY": "virtual-0"}


def test_it_ends_well_while_calls_hang(kubelet, plugin):
    kubelet.start()
    plugin.start("--virtual", "1")
    _, client = plugin.registered(kubelet)
    assert plugin.say("hang") == ["ok"]
    with futures.ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(error_of, client.allocate, ["virtual-0"])
        until(lambda: "v1beta1.DevicePlugin/Allocate" in plugin.proc.log, WAIT_S, "the call")
        assert plugin.proc.stop() == 0, plugin.proc.describe()
        code, text = waiting.result(WAIT_S)
    assert (code, text) == (grpc.StatusCode.UNAVAILABLE, "the device plugin is closing")


@pytest.mark.parametrize(
    "line, answer",
    [
        ("nonsense", "error no command nonsense"),
        ("", "error no command in an empty line"),
        ("health virtual-0", "error wrong number of words for health"),
        ("health virtual-0 fine", "error health is healthy or unhealthy, not fine"),
        ("health x healthy", "error no device x"),
        ("remove x", "error no device x"),
        ("add virtual-0", "error there is a device virtual-0"),
        ("add x y", "error NUMA nodes are like 0 or 0+1, not y"),
        ("add x 0 1 2 3", "error wrong number of words for add"),
        ("fail-allocate -1", "error -1 is no number up to 1000000"),
        ("hang on", "error hang takes off or nothing, not on"),
        ("list " + "x" * 5000, "error a line is longer than 4096 bytes"),
    ],
)
def test_bad_commands_are_refused(kubelet, plugin, line, answer):
    plugin.start("--virtual", "1")
    assert plugin.say(line) == [answer]
    assert plugin.say("list") == ["ok 1 virtual-0=healthy"]


@pytest.mark.parametrize("way", [signal.SIGTERM, signal.SIGINT, "quit"])
def test_it_ends_cleanly(kubelet, plugin, way):
    kubelet.start()
    plugin.start("--virtual", "1", "--register", "both")
    _, client = plugin.registered(kubelet)
    assert client.next_list() == healthy("virtual-0")
    if way == "quit":
        assert plugin.say("quit") == ["ok"]
    else:
        plugin.proc.signal(way)
    assert plugin.proc.wait(WAIT_S) == 0, plugin.proc.describe()
    assert client.next_list() is None
    assert os.listdir(kubelet.plugins) == ["kubelet.sock"] and os.listdir(kubelet.registry) == []
    assert not os.path.exists(plugin.control)


def test_a_socket_left_by_a_crash_is_replaced(kubelet, plugin):
    kubelet.start()
    plugin.start("--virtual", "1")
    plugin.registered(kubelet)
    plugin.proc.kill()
    assert os.path.exists(plugin.control)
    assert "example.com_tty.sock" in os.listdir(kubelet.plugins)
    plugin.start("--virtual", "2")
    _, client = plugin.registered(kubelet)
    assert client.next_list() == healthy("virtual-0", "virtual-1")


@pytest.mark.parametrize(
    "options, text",
    [
        ([], "neither --devices nor --virtual"),
        (["--virtual", "x"], '--virtual: "x" is not right'),
        (["--virtual", "1", "--devices", "/dev/null"], "do not go together"),
        (["--devices", "null"], '--devices: "null" is not right'),
        (["--virtual", "1", "--numa", "0,x"], '--numa: "0,x" is not right'),
        (["--virtual", "1", "--register", "never"], '--register: "never" is not right'),
        (["--virtual", "1", "--preferred", "all"], '--preferred: "all" is not right'),
        (["--virtual", "1", "--resource", "tty"], 'resource name "tty"'),
        (["--virtual", "1", "--socket-name", "../x"], 'socket name "../x"'),
        (["--virtual", "1", "--nothing"], "--nothing"),
        (["--virtual", "1", "word"], 'unexpected word "word"'),
    ],
)
def test_mistakes_on_the_command_line_are_named(plugin, options, text):
    proc = plugin.start(*options, ready=None)
    assert proc.wait(WAIT_S) == 2
    assert text in proc.log


def test_a_control_socket_that_cannot_be_made_is_an_error(plugin):
    plugin.control = "/nonexistent/control"
    proc = plugin.start("--virtual", "1", ready=None)
    assert proc.wait(WAIT_S) == 1
    assert "control socket /nonexistent/control: No such file" in proc.log


def test_help_tells_all_options(plugin):
    proc = plugin.start("--help", ready=None)
    assert proc.wait(WAIT_S) == 0
    text = "\n".join(proc.lines)
    for option in ("--resource", "--devices", "--virtual", "--numa", "--kubelet-dir", "--register",
                   "--prestart", "--preferred", "--cdi", "--env", "--control", "--log"):
        assert option in text
