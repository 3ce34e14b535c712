"""The kubelet and the program of test_sample_device_plugin.py.

The kubelet is written from the wire facts, on grpcio: it takes registrations on kubelet.sock, connects
back within the call, asks for the options, and watches; or it finds the plugin's socket in
plugins_registry/. It does what a real one does at its start, too: it removes all sockets first.
"""

import os
import queue
import socket
import stat
import threading
from concurrent import futures

import grpc
import pytest

from peers import folder_of
from procs import until

RESOURCE = "example.com/tty"
WAIT_S = 10


class Client:
    """One connection to a plugin, as a kubelet has it."""

    def __init__(self, messages, path):
        self.dp, self.reg = messages
        self.channel = grpc.insecure_channel(
            f"unix:{path}", options=[("grpc.default_authority", "localhost")]
        )
        self.lists = queue.Queue()
        self.watching = None

    def call(self, service, method, request, response_type, timeout_s=WAIT_S):
        rpc = self.channel.unary_unary(
            f"/{service}/{method}",
            request_serializer=lambda message: message.SerializeToString(),
            response_deserializer=response_type.FromString,
        )
        return rpc(request, timeout=timeout_s, wait_for_ready=True)

    def ask(self, method, request, response_type, timeout_s=WAIT_S):
        return self.call("v1beta1.DevicePlugin", method, request, response_type, timeout_s)

    def options(self):
        return self.ask("GetDevicePluginOptions", self.dp.Empty(), self.dp.DevicePluginOptions)

    def allocate(self, *containers, timeout_s=WAIT_S):
        request = self.dp.AllocateRequest()
        for ids in containers:
            request.container_requests.add().devices_ids.extend(ids)
        answer = self.ask("Allocate", request, self.dp.AllocateResponse, timeout_s)
        assert len(answer.container_responses) == len(containers)
        return answer.container_responses

    def prestart(self, ids):
        request = self.dp.PreStartContainerRequest(devices_ids=ids)
        return self.ask("PreStartContainer", request, self.dp.PreStartContainerResponse)

    def prefer(self, available, must, size):
        request = self.dp.PreferredAllocationRequest()
        request.container_requests.add(
            available_deviceIDs=available, must_include_deviceIDs=must, allocation_size=size
        )
        answer = self.ask(
            "GetPreferredAllocation", request, self.dp.PreferredAllocationResponse
        )
        return list(answer.container_responses[0].deviceIDs)

    def watch(self):
        """Opens ListAndWatch; each list goes to `lists`, and None at the end."""
        rpc = self.channel.unary_stream(
            "/v1beta1.DevicePlugin/ListAndWatch",
            request_serializer=lambda message: message.SerializeToString(),
            response_deserializer=self.dp.ListAndWatchResponse.FromString,
        )
        self.watching = rpc(self.dp.Empty(), wait_for_ready=True)
        threading.Thread(target=self._read, args=(self.watching,), daemon=True).start()

    def _read(self, stream):
        try:
            for message in stream:
                self.lists.put(
                    {
                        device.ID: (device.health, numa_of(device))
                        for device in message.devices
                    }
                )
        except grpc.RpcError:
            pass
        self.lists.put(None)

    def next_list(self):
        """The next whole list: {id: (health, NUMA nodes or None)}; None: the stream has ended."""
        return self.lists.get(timeout=WAIT_S)

    def wait_list(self, wanted):
        """Skips lists until that one."""
        while (got := self.next_list()) != wanted:
            assert got is not None, f"the stream ended before {wanted}"

    def close(self):
        self.channel.close()


def numa_of(device):
    """None: no topology at all."""
    return [node.ID for node in device.topology.nodes] if device.HasField("topology") else None


class Kubelet:
    """The node side, over one kubelet directory."""

    def __init__(self, messages, folder):
        self.messages = messages
        self.dp, self.reg = messages
        self.folder = folder
        self.plugins = os.path.join(folder, "device-plugins")
        self.registry = os.path.join(folder, "plugins_registry")
        os.makedirs(self.plugins, exist_ok=True)
        os.makedirs(self.registry, exist_ok=True)
        self.server = None
        self.old_servers = []
        self.registrations = queue.Queue()  # (request, client or the error)
        self.clients = []

    @property
    def socket(self):
        return os.path.join(self.plugins, "kubelet.sock")

    def start(self):
        """As a kubelet starts: the sockets of before go, then it listens."""
        for name in os.listdir(self.plugins):
            path = os.path.join(self.plugins, name)
            if stat.S_ISSOCK(os.stat(path).st_mode):
                os.unlink(path)
        self.listen()

    def listen(self):
        handler = grpc.method_handlers_generic_handler(
            "v1beta1.Registration",
            {
                "Register": grpc.unary_unary_rpc_method_handler(
                    self._register,
                    request_deserializer=self.dp.RegisterRequest.FromString,
                    response_serializer=lambda message: message.SerializeToString(),
                )
            },
        )
        self.old_servers.append(self.server)  # one that is forgotten removes the new one's socket
        self.server = grpc.server(futures.ThreadPoolExecutor(4))
        self.server.add_generic_rpc_handlers((handler,))
        assert self.server.add_insecure_port(f"unix:{self.socket}")
        self.server.start()

    def _register(self, request, context):
        """Within the call it connects and asks for the options; then it watches."""
        if request.version != "v1beta1":
            context.abort(grpc.StatusCode.UNKNOWN, "no such version")
        client = self.connect(os.path.join(self.plugins, request.endpoint))
        client.options()
        client.watch()
        if context.is_active():  # else the plugin has given up this call for a newer one
            self.registrations.put((request, client))
        return self.dp.Empty()

    def connect(self, path):
        client = Client(self.messages, path)
        self.clients.append(client)
        return client

    def discover(self):
        """The other way: asks the one socket in plugins_registry/ who it is."""
        found = lambda: [name for name in os.listdir(self.registry) if name.endswith(".sock")]
        path = os.path.join(self.registry, until(found, WAIT_S, "a registration socket")[0])
        client = self.connect(path)
        info = client.call(
            "pluginregistration.Registration", "GetInfo", self.reg.InfoRequest(),
            self.reg.PluginInfo, 1,
        )
        if info.endpoint:
            client = self.connect(info.endpoint)
        client.options()
        client.watch()
        return info, client, path

    def notify(self, path, error=""):
        status = self.reg.RegistrationStatus(plugin_registered=not error, error=error)
        self.connect(path).call(
            "pluginregistration.Registration", "NotifyRegistrationStatus", status,
            self.reg.RegistrationStatusResponse, 5,
        )

    def stop(self):
        """As one that ends: its connections go with it, and its socket."""
        for client in self.clients:
            client.close()
        self.clients = []
        self.registrations = queue.Queue()
        if self.server:
            self.server.stop(0).wait()
        self.server = None
        if os.path.exists(self.socket):
            os.unlink(self.socket)


class Plugin:
    """The program under test."""

    def __init__(self, procs, folder):
        self.procs = procs
        self.folder = folder
        self.control = os.path.join(folder, "control")
        self.proc = None
        self.n_registered = 0

    def start(self, *options, ready="ready"):
        program = os.path.join(folder_of("DAVIT_BUILD"), "drivers/davit-sample-device-plugin")
        self.n_registered = 0
        if not os.access(program, os.X_OK):
            pytest.fail(f"no program {program}", pytrace=False)
        self.proc = self.procs.start(
            program, "--resource", RESOURCE, "--kubelet-dir", os.path.join(self.folder, "k"),
            "--control", self.control, "--log", "debug", *options, ready=ready,
        )
        return self.proc

    def say(self, *lines):
        """Sends commands, and returns their answers."""
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(WAIT_S)
            connection.connect(self.control)
            connection.sendall("".join(f"{line}\n" for line in lines).encode())
            with connection.makefile() as answers:
                return [answers.readline().rstrip("\n") for _ in lines]

    def registered(self, kubelet):
        """Waits for the next registration: (request, the client that watches)."""
        try:
            request, client = kubelet.registrations.get(timeout=WAIT_S)
        except queue.Empty:
            pytest.fail(f"no registration; {self.proc.describe()}")
        self.n_registered += 1
        self.wait_printed("registered", self.n_registered)
        return request, client

    def wait_printed(self, line, n):
        count = lambda: self.proc.lines.count(line)
        try:
            until(lambda: count() >= n, WAIT_S, f"{n} times {line}")
        except TimeoutError:
            pass
        assert count() == n, self.proc.describe()


def healthy(*ids):
    return {name: ("Healthy", None) for name in ids}


def error_of(call, *args, **options):
    with pytest.raises(grpc.RpcError) as caught:
        call(*args, **options)
    return caught.value.code(), caught.value.details()
