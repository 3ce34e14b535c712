"""Device plugins that hang, die, lie, or come in crowds: nobody else has to suffer."""

import asyncio
import os
import socket
import threading
import time
from concurrent import futures

import grpc
import grpc.aio
import pytest

import h2raw
import protos
from nodes import held, pod
from plugin import Plugin
from procs import until

GPU = "example.com/gpu"
NIC = "example.com/nic"
RESOURCES_MAX = 1024  # DV_DEVICE_RESOURCES_MAX
PLUGINS_MAX = 16  # DV_DEVICE_PLUGINS_MAX


def holders(node, resource):
    return {d: h.pod.name for d, v in node.resources()[resource].items() for h in v.holders}


def wait_gone(node, resource):
    until(lambda: not node.resource(resource).connected, 10, f"{resource} to be missed")


class Hang:
    """An answer to Allocate that does not come until the test lets it."""

    def __init__(self, plugin):
        self.plugin = plugin
        self.entered = threading.Event()
        self.leave = threading.Event()
        plugin.answer = self

    def __call__(self, ids):
        self.entered.set()
        self.leave.wait(30)
        return self.plugin.answer_with_env(ids)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.plugin.answer = self.plugin.answer_with_env
        self.leave.set()


def in_thread(call, *args, **options):
    """A Future of the call."""
    result = futures.Future()

    def run():
        try:
            result.set_result(call(*args, **options))
        except BaseException as error:  # the test's thread raises it
            result.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    return result


# ---- it hangs


def test_a_plugin_that_hangs_in_allocate_holds_up_only_its_pod(node, plugins):
    gpu = plugins(node, GPU, ["g0", "g1"]).register()
    plugins(node, NIC, ["n0"]).register()
    node.wait_devices(GPU, 2)
    node.wait_devices(NIC, 1)
    with Hang(gpu) as hang:
        slow = in_thread(node.admit, pod("slow", ("main", {GPU: 1})))
        assert hang.entered.wait(10)
        started = time.monotonic()
        assert node.admit(pod("other", ("main", {NIC: 1}))).admitted
        gpu.answer = gpu.answer_with_env
        assert node.admit(pod("same-plugin", ("main", {GPU: 1}))).admitted
        states = {p.pod.name: p.state for p in node.status().pods}
        assert states == {"slow": "admitting", "other": "admitted", "same-plugin": "admitted"}
        assert time.monotonic() - started < 5
        assert not slow.done()
    assert slow.result(10).admitted
    assert len(set(holders(node, GPU))) == 2


def test_a_client_that_gives_up_on_a_hanging_plugin_leaves_nothing_behind(node, plugins):
    gpu = plugins(node, GPU, ["g0"]).register()
    node.wait_devices(GPU, 1)
    with Hang(gpu):
        with pytest.raises(grpc.RpcError) as late:
            node.admit(pod("slow", ("main", {GPU: 1})), timeout=0.5)
        assert late.value.code() == grpc.StatusCode.DEADLINE_EXCEEDED
        until(lambda: not node.status().pods, 10, "the pod to be forgotten")
        assert holders(node, GPU) == {}
    assert node.admit(pod("next", ("main", {GPU: 1}))).admitted


def test_a_plugin_that_hangs_before_a_start_holds_up_only_that(node, plugins):
    gpu = plugins(node, GPU, ["g0"], pre_start=True).register()
    node.wait_devices(GPU, 1)
    assert node.admit(pod("p", ("main", {GPU: 1}))).admitted
    leave = threading.Event()
    gpu.on_start = lambda ids: leave.wait(30)
    slow = in_thread(node.container_options, "uid-p", "main")
    until(lambda: gpu.started, 10, "PreStartContainer")
    assert [p.state for p in node.status().pods] == ["admitted"]
    assert not slow.done()
    leave.set()
    assert slow.result(10).envs


# ---- it dies


def test_a_plugin_that_dies_in_allocate_is_waited_for(node, plugins):
    gpu = plugins(node, GPU, ["g0"]).register()
    node.wait_devices(GPU, 1)
    with Hang(gpu) as hang:
        asked = in_thread(node.admit, pod("p", ("main", {GPU: 1})), wait=20, timeout=30)
        assert hang.entered.wait(10)
        in_thread(gpu.stop)
        wait_gone(node, GPU)
        until(lambda: [p.state for p in node.status().pods] == ["waiting"], 10, "the pod to wait")
    again = plugins(node, GPU, ["g0"], name="again.sock").register()
    assert asked.result(10).admitted
    assert again.allocated == [["g0"]]


def test_a_plugin_that_dies_in_allocate_takes_no_device_along(node, plugins):
    gpu = plugins(node, GPU, ["g0"]).register()
    node.wait_devices(GPU, 1)
    with Hang(gpu) as hang:
        asked = in_thread(node.admit, pod("p", ("main", {GPU: 1})), wait=0)
        assert hang.entered.wait(10)
        in_thread(gpu.stop)
        refused = asked.result(10)
    assert not refused.admitted and refused.reason == "UnexpectedAdmissionError"
    assert holders(node, GPU) == {} and not node.status().pods
    plugins(node, GPU, ["g0"], name="again.sock").register()
    node.wait_devices(GPU, 1)
    assert node.admit(pod("q", ("main", {GPU: 1}))).admitted


def test_a_plugin_that_dies_in_its_list_is_missed(node, plugins):
    gpu = plugins(node, GPU, ["g0"]).register()
    node.wait_devices(GPU, 1)
    gpu.end_streams()
    wait_gone(node, GPU)
    assert node.resource(GPU).allocatable == 0 and node.resource(GPU).capacity == 1
    gpu.register()
    node.wait_devices(GPU, 1)


# ---- it speaks, but not as it should


def answer(connection, stream, payload=b"", status="0"):
    connection.send(
        h2raw.headers(stream.number, [(":status", "200"), ("content-type", "application/grpc")]),
        h2raw.data(stream.number, h2raw.message(payload)),
        h2raw.headers(stream.number, [("grpc-status", status)], end=True),
    )


def answer_options_then_list(list_part):
    """A plugin whose first list is these bytes; then its connection breaks."""

    def script(connection, n):
        h2raw.serve_start(connection)
        options = h2raw.next_request(connection)
        answer(connection, options)
        listing = h2raw.next_request(connection, known={options.number})
        connection.send(
            h2raw.headers(
                listing.number, [(":status", "200"), ("content-type", "application/grpc")]
            ),
            h2raw.data(listing.number, list_part),
        )
        connection.close()

    return script


def break_at_the_first_request(connection, n):
    h2raw.serve_start(connection)
    h2raw.next_request(connection)
    connection.close()


def raw_plugin(node, script, resource="example.com/raw"):
    """(its server, the plugin that registers it)"""
    plugin = Plugin(node.plugin_dir, resource, [], name="raw.sock")
    return h2raw.RawServer(plugin.socket, script), plugin


def test_a_plugin_that_dies_in_its_options_is_not_registered(node):
    server, plugin = raw_plugin(node, break_at_the_first_request)
    with server, pytest.raises(grpc.RpcError) as refused:
        plugin.register()
    assert "failed to get device plugin options" in refused.value.details()
    assert node.resource(plugin.resource) is None


@pytest.mark.parametrize(
    "part",
    [
        h2raw.message(b"\x0a\x06\x0a\x02g0", length=1000),
        h2raw.message(b"", length=0xFFFFFFFF),
        h2raw.message(b"\xff" * 100),
        h2raw.message(b"\x0a\x7f\x0a\x02g0"),
        h2raw.message(b"zip", flag=1),
        h2raw.message(b"odd", flag=77),
    ],
    ids=["half a message", "4 GiB", "garbage", "too short", "compressed", "bad flag"],
)
def test_a_plugin_that_dies_in_the_middle_of_its_first_list(node, plugins, part):
    plugins(node, GPU, ["g0"]).register()
    server, plugin = raw_plugin(node, answer_options_then_list(part))
    with server:
        plugin.register()
        wait_gone(node, plugin.resource)
    assert node.resource(plugin.resource).capacity == 0
    node.wait_devices(GPU, 1)
    refused = node.admit(pod("p", ("main", {plugin.resource: 1})), wait=0)
    assert not refused.admitted and refused.reason == "UnknownResource"


def test_a_plugin_that_never_sends_a_list_is_waited_for_in_vain(node):
    def script(connection, n):
        h2raw.serve_start(connection)
        answer(connection, h2raw.next_request(connection))

    server, plugin = raw_plugin(node, script)
    with server:
        plugin.register()
        assert node.resource(plugin.resource).connected
        asked = in_thread(node.admit, pod("p", ("main", {plugin.resource: 1})), wait=1)
        until(lambda: [p.state for p in node.status().pods] == ["waiting"], 10, "the pod to wait")
        refused = asked.result(10)
        assert not refused.admitted and refused.reason == "UnknownResource"


def test_garbage_for_an_answer_to_allocate(node, plugins):
    gpu = plugins(node, GPU, ["g0"]).register()
    node.wait_devices(GPU, 1)
    bad = [b"\xff" * 50, b"\x0a\x05\x0a", b"\x0a\x02\x0a\x7f", b"\x0a\x04\x0a\x02\xff\xff"]
    for garbage in bad:
        gpu.answer = lambda ids, garbage=garbage: garbage
        refused = node.admit(pod("p", ("main", {GPU: 1})))
        assert not refused.admitted, garbage
        assert refused.reason == "UnexpectedAdmissionError" and refused.message
        assert holders(node, GPU) == {}
    gpu.answer = gpu.answer_with_env
    assert node.admit(pod("p", ("main", {GPU: 1}))).admitted


def test_garbage_for_options_and_lists(node, plugins):
    gpu = plugins(node, GPU, ["g0"])
    gpu.options_bytes = b"\xff\xff\xff"
    with pytest.raises(grpc.RpcError) as refused:
        gpu.register()
    assert "device plugin options" in refused.value.details()
    gpu.options_bytes = None
    gpu.register()
    node.wait_devices(GPU, 1)
    gpu.push(b"\x0a\x7f\x00")
    until(lambda: "list refused" in node.proc.log, 10, "a line in the log")
    node.wait_devices(GPU, 1)
    gpu.set_devices(["g0", "g1"])
    node.wait_devices(GPU, 2)


def test_an_odd_preference_gives_a_whole_allocation_still(node, plugins):
    odd = iter(
        [
            lambda available: [],
            lambda available: ["no-such-device"] * 3,
            lambda available: available + available,
            lambda available: ["", available[0]],
        ]
    )
    plugins(
        node, GPU, [f"g{i}" for i in range(9)], preferred=lambda a, m, n: next(odd)(sorted(a))
    ).register()
    node.wait_devices(GPU, 9)
    for name in "abcd":
        ids = held(node.admit(pod(name, ("main", {GPU: 2}))))["main"][GPU]
        assert len(set(ids)) == 2
    assert len(holders(node, GPU)) == 8


# ---- it takes what is another's


def test_the_last_one_to_register_a_resource_serves_it(node, plugins):
    first = plugins(node, GPU, ["g0", "g1", "g2"], name="one.sock").register()
    node.wait_devices(GPU, 3)
    mine = held(node.admit(pod("p", ("main", {GPU: 1}))))["main"][GPU]
    second = plugins(node, GPU, ["g0", "g1", "g2"], name="two.sock").register()
    until(lambda: second.n_streams, 10, "the second one's list")
    node.wait_devices(GPU, 3)
    assert holders(node, GPU) == {mine[0]: "p"}
    assert node.admit(pod("q", ("main", {GPU: 1}))).admitted
    assert (len(first.allocated), len(second.allocated)) == (1, 1)
    second.stop()
    until(lambda: "another one serves its resource" in node.proc.log, 10, "a line in the log")
    assert node.admit(pod("r", ("main", {GPU: 1}))).admitted  # the first one is still there
    assert (len(first.allocated), len(second.allocated)) == (2, 1)
    assert sorted(holders(node, GPU).values()) == ["p", "q", "r"]
    first.stop()
    wait_gone(node, GPU)


def test_the_same_socket_again_replaces_itself(node, plugins):
    gpu = plugins(node, GPU, ["g0"]).register()
    node.wait_devices(GPU, 1)
    for n in range(2, 12):
        gpu.set_devices([f"g{i}" for i in range(n)], push=False)
        gpu.register()
        node.wait_devices(GPU, n)
    until(lambda: gpu.n_streams == 1, 10, "the older streams to end")
    assert len(node.plugins()) == 1


def test_a_resource_has_so_many_plugins_and_no_more(node, plugins):
    made = [plugins(node, GPU, ["g0"], name=f"{i}.sock") for i in range(PLUGINS_MAX + 1)]
    for plugin in made[:-1]:
        plugin.register()
    with pytest.raises(grpc.RpcError) as refused:
        made[-1].register()
    assert f"more than {PLUGINS_MAX} plugins" in refused.value.details()
    node.wait_devices(GPU, 1)
    made[0].stop()
    until(lambda: "another one serves" in node.proc.log, 10, "the first to be missed")
    made[-1].register()


# ---- it registers and does not serve


def test_those_that_register_and_never_serve_are_refused_after_ten_seconds(node, plugins):
    """The one long wait of this file: 10 s, for all kinds at once."""
    silent = socket.socket(socket.AF_UNIX)  # takes connections, and says nothing
    silent.bind(os.path.join(node.plugin_dir, "silent.sock"))
    silent.listen()
    deaf = socket.socket(socket.AF_UNIX)  # has a name, and does not listen
    deaf.bind(os.path.join(node.plugin_dir, "deaf.sock"))
    with open(os.path.join(node.plugin_dir, "file.sock"), "w", encoding="ascii"):
        pass

    def babble(connection, n):
        connection.send(b"HTTP/1.1 400 Bad Request\r\n\r\n" + bytes(range(256)) * 4)
        connection.close()

    babbler = h2raw.RawServer(os.path.join(node.plugin_dir, "babble.sock"), babble)
    with babbler:
        started = time.monotonic()
        names = ("silent", "deaf", "file", "absent", "babble")
        made = {n: Plugin(node.plugin_dir, f"x.io/{n}", [], name=f"{n}.sock") for n in names}
        asked = {name: in_thread(plugin.register, timeout=20) for name, plugin in made.items()}
        plugins(node, GPU, ["g0"]).register()  # meanwhile, others are served
        node.wait_devices(GPU, 1)
        assert time.monotonic() - started < 5
        for name, result in asked.items():
            refused = result.exception(15)
            assert refused.code() == grpc.StatusCode.UNKNOWN, (name, refused)
            assert "failed to dial device plugin" in refused.details(), (name, refused)
            assert 9 < time.monotonic() - started < 14, name
            assert node.resource(f"x.io/{name}") is None
            assert f'resource=x.io/{name} ' in node.proc.log, node.proc.log
    silent.close()
    deaf.close()


def test_a_plugin_that_gives_up_on_register_leaves_nothing_behind(node):
    absent = Plugin(node.plugin_dir, "x.io/absent", [], name="absent.sock")
    with pytest.raises(grpc.RpcError) as late:
        absent.register(timeout=0.3)
    assert late.value.code() == grpc.StatusCode.DEADLINE_EXCEEDED
    absent.set_devices(["a0"], push=False)
    absent.serve()
    try:
        time.sleep(1.5)  # longer than a connection is tried again after: nobody must come
        assert absent.n_streams == 0 and node.resource("x.io/absent") is None
        absent.register()
        node.wait_devices("x.io/absent", 1)
    finally:
        absent.stop()


# ---- it is many


class Crowd:
    """Plugins of as many resources as wanted, all on one socket, on asyncio."""

    def __init__(self, node):
        self.pb = protos.load("deviceplugin_v1beta1")
        self.node = node
        self.endpoint = "crowd.sock"
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._server = None

    def __enter__(self):
        self._thread.start()
        self._run(self._serve())
        return self

    def __exit__(self, *_):
        self._run(self._server.stop(0))
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    def _run(self, coroutine):
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(60)

    async def _options(self, request, context):
        return b""

    async def _list(self, request, context):
        devices = [self.pb.Device(ID=f"d{i}", health="Healthy") for i in range(2)]
        await context.write(self.pb.ListAndWatchResponse(devices=devices).SerializeToString())
        await asyncio.Event().wait()  # until it is cancelled

    async def _serve(self):
        handlers = {
            "GetDevicePluginOptions": grpc.unary_unary_rpc_method_handler(self._options),
            "ListAndWatch": grpc.unary_stream_rpc_method_handler(self._list),
        }
        self._server = grpc.aio.server()
        self._server.add_generic_rpc_handlers(
            (grpc.method_handlers_generic_handler("v1beta1.DevicePlugin", handlers),)
        )
        self._server.add_insecure_port(
            f"unix:{os.path.join(self.node.plugin_dir, self.endpoint)}"
        )
        await self._server.start()

    async def _register(self, resources):
        async with grpc.aio.insecure_channel(f"unix:{self.node.kubelet_sock}") as channel:
            method = channel.unary_unary("/v1beta1.Registration/Register")

            async def one(resource):
                request = self.pb.RegisterRequest(
                    version="v1beta1", endpoint=self.endpoint, resource_name=resource
                )
                try:
                    await method(request.SerializeToString(), timeout=40)
                except grpc.RpcError as error:
                    return error.details()
                return None

            return await asyncio.gather(*map(one, resources))

    def register(self, resources):
        """All at once; for each the error's text, or None."""
        return self._run(self._register(resources))


def test_a_hundred_registrations_at_once(node):
    names = [f"x.io/r{i}" for i in range(100)]
    with Crowd(node) as crowd:
        assert crowd.register(names) == [None] * 100
        until(lambda: node.status().n_devices == 200, 20, "all lists")
        assert len(node.plugins()) == 100
        assert crowd.register(names) == [None] * 100  # and again
        until(lambda: node.status().n_devices == 200, 20, "all lists")
        assert crowd.register([names[0]] * 100) == [None] * 100  # and one a hundred times
        node.wait_devices(names[0], 2)
        assert len(node.plugins()) == 100


def test_as_many_resources_as_the_limit_allows(node):
    names = [f"x.io/r{i}" for i in range(RESOURCES_MAX)]
    with Crowd(node) as crowd:
        for i in range(0, len(names), 128):
            assert crowd.register(names[i : i + 128]) == [None] * 128
        until(lambda: node.status().n_devices == 2 * RESOURCES_MAX, 30, "all lists")
        refused = crowd.register(["x.io/one-more"])
        assert refused == [f"x.io/one-more: more than {RESOURCES_MAX} resources"]
        assert crowd.register([names[7]]) == [None]
        node.wait_devices(names[7], 2)
        assert node.resource(names[-1]).connected


def test_a_thousand_health_flips(node, plugins):
    gpu = plugins(node, GPU, [f"g{i}" for i in range(10)]).register()
    plugins(node, NIC, ["n0"]).register()
    node.wait_devices(GPU, 10)
    node.wait_devices(NIC, 1)
    for n in range(1000):
        gpu.set_devices({f"g{i}": ("Healthy" if (n + i) % 2 else "sick", None) for i in range(10)})
        if n % 100 == 0:
            name = f"p{n}"
            answered = node.admit(pod(name, ("main", {NIC: 1})))
            assert answered.admitted
            node.release(f"uid-{name}")
    gpu.set_devices([f"g{i}" for i in range(8)])
    node.wait_devices(GPU, 8)
    assert node.resource(GPU).capacity == 8
    assert node.admit(pod("all", ("main", {GPU: 8}))).admitted
