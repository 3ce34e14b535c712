"""A device plugin on grpcio, written from the facts of the wire, as a program that davit verify runs:

    python_plugin.py --kubelet-dir DIR [--register classic|watcher|both] [--cdi-dir DIR] [--messages DIR]
                  [--gives all|annotations|paths] [--fault NAME]

It has four devices, and gives a container a variable, a mount, a node and, with --cdi-dir, CDI names of
a spec that it writes there. SIGUSR1 makes a device unhealthy, SIGUSR2 heals it, SIGHUP takes all devices
away, SIGWINCH brings more than fit into 4 MiB. --messages has what protoc made of proto/, so that it
need not run at every start. With --gives a container gets only annotations, or one node of the host
under a path for each device. plugin_faults.py has the mistakes it can make.
"""

import argparse
import json
import os
import queue
import signal
import sys
import threading
from concurrent import futures

import grpc

RESOURCE = "py.example.com/dev"
SOCKET = "py-dev.sock"
# Between two looks at the sockets, and between two attempts to register.
LOOK_S = 0.05
RETRY_S = 0.2
N_MANY = 90000
UNKNOWN = grpc.StatusCode.NOT_FOUND


def identity(path):
    """Of the file that has the name now; None: there is none."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_ino, found.st_ctime_ns


class Served:
    """A server on a socket that takes its name when it is served. The library removes the name that
    it has bound, whoever has it by then; this one removes what is its own."""

    def __init__(self, path, handlers, options=()):
        bound = f"{path}.{os.getpid()}"
        if os.path.lexists(bound):
            os.unlink(bound)
        self.server = grpc.server(futures.ThreadPoolExecutor(max_workers=24), options=options)
        self.server.add_generic_rpc_handlers(handlers)
        self.server.add_insecure_port(f"unix:{bound}")
        self.server.start()
        os.rename(bound, path)
        self.path = path
        self.identity = identity(path)

    def is_gone(self):
        """Another instance that has taken the name is welcome to it."""
        return identity(self.path) is None

    def remove(self):
        if identity(self.path) == self.identity:
            os.unlink(self.path)

    def stop(self, grace_s=0):
        self.server.stop(grace_s).wait()


class Plugin:
    """One that does all of it right: mistakes override its parts."""

    resource = RESOURCE
    endpoint = SOCKET
    version = "v1beta1"
    server_options = ()

    def __init__(self, options, messages, registration_messages):
        self.pb = messages
        self.registration = registration_messages
        self.cdi_dir = options.cdi_dir
        self.register_by = options.register
        self.gives = options.gives
        self.kubelet_dir = options.kubelet_dir
        self.folder = os.path.join(options.kubelet_dir, "device-plugins")
        self.kubelet = os.path.join(self.folder, "kubelet.sock")
        self.devices = {f"dev-{i}": "Healthy" for i in range(4)}
        self.streams = []
        self.lock = threading.Lock()
        self.stopping = threading.Event()
        self.served = None
        self.registrar = None

    # ---- what it says ----

    def options(self):
        return self.pb.DevicePluginOptions(pre_start_required=True,
                                           get_preferred_allocation_available=True)

    def registered_options(self):
        return self.options()

    def fill(self, device, number):
        """What is said of a device beside id and health."""
        device.topology.nodes.add(ID=number % 2)

    def list_message(self):
        message = self.pb.ListAndWatchResponse()
        for number, (name, health) in enumerate(self.devices.items()):
            self.fill(message.devices.add(ID=name, health=health), number)
        return message

    def set_devices(self, devices):
        self.devices = devices
        self.push(self.list_message())

    def push(self, message):
        with self.lock:
            for stream in self.streams:
                stream.put(message)

    def list_and_watch(self, request, context):
        stream = queue.Queue()
        with self.lock:
            self.streams.append(stream)
        context.add_callback(lambda: stream.put(None))
        try:
            yield from self.lists(stream)
        finally:
            with self.lock:
                if stream in self.streams:
                    self.streams.remove(stream)

    def lists(self, stream):
        yield self.list_message()
        while (message := stream.get()) is not None:
            yield message

    # ---- what it answers ----

    def check_ids(self, ids, context):
        for name in ids:
            if name not in self.devices:
                context.abort(UNKNOWN, f'there is no device "{name}"')

    def edits(self, number, name):
        """What the CDI spec has for a device: nothing of a host is needed for nodes with numbers."""
        return {"env": [f"CDI_{number}={name}"], "mounts": [{"hostPath": "/usr", "containerPath": "/u"}],
                "deviceNodes": [{"path": "/dev/null"},
                                {"path": "/dev/made", "type": "c", "major": 1, "minor": 3}]}

    def write_spec(self):
        spec = {"cdiVersion": "0.6.0", "kind": RESOURCE,
                "devices": [{"name": name, "containerEdits": self.edits(number, name)}
                            for number, name in enumerate(self.devices)]}
        path = os.path.join(self.cdi_dir, "py-dev.json")
        with open(path + ".new", "w", encoding="utf-8") as file:
            json.dump(spec, file)
        os.rename(path + ".new", path)

    def give(self, ids):
        """What a container gets."""
        if self.gives == "annotations":
            return self.pb.ContainerAllocateResponse(annotations={"devices": ",".join(ids)})
        if self.gives == "paths":
            return self.pb.ContainerAllocateResponse(devices=[
                {"container_path": f"/dev/{name}", "host_path": "/dev/null", "permissions": "rw"}
                for name in ids])
        gift = self.pb.ContainerAllocateResponse(envs={"DEVS": ",".join(ids)})
        gift.mounts.add(container_path="/mnt/dev", host_path="/usr", read_only=True)
        gift.devices.add(container_path="/dev/dev", host_path="/dev/null", permissions="rw")
        if self.cdi_dir:
            gift.cdi_devices.extend(self.pb.CDIDevice(name=f"{RESOURCE}={name}") for name in ids)
        return gift

    def answer(self, containers):
        return [self.give(container.devices_ids) for container in containers]

    def allocate(self, request, context):
        for container in request.container_requests:
            self.check_ids(container.devices_ids, context)
        return self.pb.AllocateResponse(
            container_responses=self.answer(request.container_requests))

    def choose(self, available, must, size):
        return (must + [name for name in sorted(available) if name not in must])[:size]

    def prefer(self, request, context):
        answer = self.pb.PreferredAllocationResponse()
        for asked in request.container_requests:
            answer.container_responses.add(deviceIDs=self.choose(
                list(asked.available_deviceIDs), list(asked.must_include_deviceIDs),
                asked.allocation_size))
        return answer

    def prestart(self, request, context):
        self.check_ids(request.devices_ids, context)
        return self.pb.PreStartContainerResponse()

    def decode(self, kind, data):
        return kind.FromString(data)

    def handlers(self):
        pb = self.pb

        def unary(function, kind):
            return grpc.unary_unary_rpc_method_handler(
                function, lambda data: self.decode(kind, data),
                lambda message: message.SerializeToString())

        methods = {
            "GetDevicePluginOptions": unary(lambda request, context: self.options(), pb.Empty),
            "ListAndWatch": grpc.unary_stream_rpc_method_handler(
                self.list_and_watch, pb.Empty.FromString,
                pb.ListAndWatchResponse.SerializeToString),
            "Allocate": unary(self.allocate, pb.AllocateRequest),
            "GetPreferredAllocation": unary(self.prefer, pb.PreferredAllocationRequest),
            "PreStartContainer": unary(self.prestart, pb.PreStartContainerRequest),
        }
        return [grpc.method_handlers_generic_handler("v1beta1.DevicePlugin", methods)]

    # ---- how it is known ----

    def serve(self):
        self.served = Served(os.path.join(self.folder, SOCKET), self.handlers(),
                             self.server_options)

    def register(self):
        """One attempt; whether it succeeded."""
        request = self.pb.RegisterRequest(
            version=self.version, endpoint=self.endpoint, resource_name=self.resource,
            options=self.registered_options())
        try:
            with grpc.insecure_channel(f"unix:{self.kubelet}") as channel:
                channel.unary_unary("/v1beta1.Registration/Register",
                                    self.pb.RegisterRequest.SerializeToString,
                                    self.pb.Empty.FromString)(request, timeout=30)
        except grpc.RpcError:
            return False
        return True

    def must_come_back(self, kubelet):
        """Whether it has to serve and register anew; `kubelet`: the one it has registered with."""
        return self.served.is_gone() or self.is_other_kubelet(kubelet)

    def is_other_kubelet(self, kubelet):
        now = identity(self.kubelet)
        return now is not None and now != kubelet

    def pause_refused(self):
        self.stopping.wait(RETRY_S)

    def introduce(self):
        """Serves, and registers with the kubelet that is there now, or the next one."""
        self.serve()
        if self.registrar is None and self.register_by == "both":
            self.open_registrar()
        while not self.stopping.is_set():
            kubelet = identity(self.kubelet)
            if kubelet and self.register():
                return kubelet
            self.pause_refused()
        return None

    def leave(self):
        """The end of one time of serving."""
        self.served.remove()
        self.push(None)
        self.served.stop()

    # ---- by a socket in plugins_registry ----

    def notify(self, request, context):
        return self.registration.RegistrationStatusResponse()

    def open_registrar(self):
        pb = self.registration
        info = pb.PluginInfo(type="DevicePlugin", name=self.resource, supported_versions=["v1beta1"],
                             endpoint=os.path.join(self.folder, self.endpoint))
        methods = {
            "GetInfo": grpc.unary_unary_rpc_method_handler(
                lambda request, context: info, pb.InfoRequest.FromString,
                pb.PluginInfo.SerializeToString),
            "NotifyRegistrationStatus": grpc.unary_unary_rpc_method_handler(
                lambda request, context: self.notify(request, context),
                pb.RegistrationStatus.FromString, pb.RegistrationStatusResponse.SerializeToString),
        }
        registry = os.path.join(self.kubelet_dir, "plugins_registry")
        os.makedirs(registry, exist_ok=True)
        self.registrar = Served(
            os.path.join(registry, "py-dev-reg.sock"),
            [grpc.method_handlers_generic_handler("pluginregistration.Registration", methods)])

    # ---- its life ----

    def stay(self):
        """Registered by kubelet.sock, anew whenever that is needed, until SIGTERM."""
        while not self.stopping.is_set():
            kubelet = self.introduce()
            while not self.stopping.wait(LOOK_S) and not self.must_come_back(kubelet):
                pass
            if not self.stopping.is_set():
                self.leave()

    def on_signal(self, signum):
        devices = {signal.SIGUSR1: {**self.devices, "dev-0": "Unhealthy"},
                   signal.SIGUSR2: {**self.devices, "dev-0": "Healthy"},
                   signal.SIGHUP: {},
                   signal.SIGWINCH: {f"dev-{i:050}": "Healthy" for i in range(N_MANY)}}
        # Not in the handler: it may have interrupted who holds the lock.
        threading.Thread(target=self.set_devices, args=(devices[signum],), daemon=True).start()

    def run(self):
        signal.signal(signal.SIGTERM, lambda *_: self.stopping.set())
        for signum in (signal.SIGUSR1, signal.SIGUSR2, signal.SIGHUP, signal.SIGWINCH):
            signal.signal(signum, lambda number, _: self.on_signal(number))
        if self.cdi_dir:
            self.write_spec()
        if self.register_by == "watcher":
            self.serve()
            self.open_registrar()
            self.stopping.wait()
        else:
            self.stay()
        if self.registrar:
            self.registrar.remove()
            self.registrar.stop()
        self.leave()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--kubelet-dir", required=True)
    parser.add_argument("--register", choices=["classic", "watcher", "both"], default="classic")
    parser.add_argument("--cdi-dir")
    parser.add_argument("--messages")
    parser.add_argument("--gives", choices=["all", "annotations", "paths"], default="all")
    parser.add_argument("--fault")
    options = parser.parse_args()
    if options.messages:
        sys.path.insert(0, options.messages)
        import deviceplugin_v1beta1_pb2 as messages
        import registration_v1_pb2 as registration_messages
    else:
        sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir))
        import protos
        messages = protos.load("deviceplugin_v1beta1")
        registration_messages = protos.load("registration_v1")
    kind = Plugin
    if options.fault:
        import plugin_faults
        kind = plugin_faults.FAULTS[options.fault]
    kind(options, messages, registration_messages).run()


if __name__ == "__main__":
    sys.modules["python_plugin"] = sys.modules["__main__"]  # the mistakes import it by name
    main()
