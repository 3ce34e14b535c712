"""A device plugin on grpcio, written from the facts of the wire, with whatever manners a test wants."""

import os
import queue
import threading
from concurrent import futures

import grpc

import protos


def encode(message):
    """Bytes are sent as they are: a plugin may answer anything."""
    return message if isinstance(message, bytes) else message.SerializeToString()


def unary(function, request):
    return grpc.unary_unary_rpc_method_handler(function, request.FromString, encode)


def start_server(socket, *handlers):
    """Serves on the socket, in the place of what was there."""
    if os.path.lexists(socket):
        os.unlink(socket)
    server = grpc.server(
        futures.ThreadPoolExecutor(max_workers=16), options=[("grpc.max_send_message_length", -1)]
    )
    server.add_generic_rpc_handlers(handlers)
    server.add_insecure_port(f"unix:{socket}")
    server.start()
    return server


class Plugin:
    """Serves DevicePlugin on a socket in the plugin directory; `register` makes it known."""

    def __init__(self, plugin_dir, resource, devices, name=None, pre_start=False, preferred=None):
        self.pb = protos.load("deviceplugin_v1beta1")
        self.plugin_dir = plugin_dir
        self.resource = resource
        self.endpoint = name or resource.replace("/", "-") + ".sock"
        self.socket = os.path.join(plugin_dir, self.endpoint)
        self.devices = {}
        self.pre_start = pre_start
        self.preferred = preferred  # function(available, must_include, size) -> ids
        self.allocated = []  # id lists of Allocate calls
        self.started = []  # of PreStartContainer calls
        self.asked = []  # (available, must include, size) of GetPreferredAllocation calls
        self.answer = self.answer_with_env
        self.on_start = None  # function(ids), called by PreStartContainer
        self.options_bytes = None  # instead of its options
        self._streams = []
        self._lock = threading.Lock()
        self.set_devices(devices, push=False)
        self._server = None

    def set_devices(self, devices, push=True):
        """A list of ids, or {id: (health, numa nodes or None)}."""
        if not isinstance(devices, dict):
            devices = {device: ("Healthy", None) for device in devices}
        self.devices = devices
        if push:
            self.push(self.list_message())

    def list_message(self):
        message = self.pb.ListAndWatchResponse()
        for device, (health, nodes) in self.devices.items():
            made = message.devices.add(ID=device, health=health)
            if nodes is not None:
                made.topology.SetInParent()
                for node in nodes:
                    made.topology.nodes.add(ID=node)
        return message

    def push(self, message):
        with self._lock:
            for stream in self._streams:
                stream.put(message)

    @property
    def n_streams(self):
        return len(self._streams)

    def end_streams(self):
        self.push(None)

    # What it answers

    def answer_with_env(self, ids):
        env = "DEVICES_" + self.resource.split("/")[1].upper().replace("-", "_")
        return self.pb.AllocateResponse(
            container_responses=[
                self.pb.ContainerAllocateResponse(
                    envs={env: ",".join(sorted(ids))},
                    devices=[
                        self.pb.DeviceSpec(
                            container_path=f"/dev/{i}", host_path=f"/dev/{i}", permissions="rw"
                        )
                        for i in sorted(ids)
                    ],
                )
            ]
        )

    def _options(self, request, context):
        return self.options_bytes or self.pb.DevicePluginOptions(
            pre_start_required=self.pre_start,
            get_preferred_allocation_available=self.preferred is not None,
        )

    def _list(self, request, context):
        stream = queue.Queue()
        with self._lock:
            self._streams.append(stream)
        context.add_callback(lambda: stream.put(None))
        try:
            yield self.list_message()
            while (message := stream.get()) is not None:
                yield message
        finally:
            with self._lock:
                self._streams.remove(stream)

    def _allocate(self, request, context):
        ids = list(request.container_requests[0].devices_ids)
        self.allocated.append(ids)
        answer = self.answer(ids)
        if isinstance(answer, str):
            context.abort(grpc.StatusCode.INTERNAL, answer)
        return answer

    def _prefer(self, request, context):
        asked = request.container_requests[0]
        available = list(asked.available_deviceIDs)
        must = list(asked.must_include_deviceIDs)
        self.asked.append((available, must, asked.allocation_size))
        ids = self.preferred(available, must, asked.allocation_size)
        return self.pb.PreferredAllocationResponse(
            container_responses=[self.pb.ContainerPreferredAllocationResponse(deviceIDs=ids)]
        )

    def _pre_start(self, request, context):
        self.started.append(list(request.devices_ids))
        if self.on_start:
            self.on_start(self.started[-1])
        return self.pb.PreStartContainerResponse()

    # Its life

    @property
    def handler(self):
        """What a gRPC server serves of it."""
        pb = self.pb
        handlers = {
            "GetDevicePluginOptions": unary(self._options, pb.Empty),
            "ListAndWatch": grpc.unary_stream_rpc_method_handler(
                self._list, pb.Empty.FromString, encode
            ),
            "Allocate": unary(self._allocate, pb.AllocateRequest),
            "GetPreferredAllocation": unary(self._prefer, pb.PreferredAllocationRequest),
            "PreStartContainer": unary(self._pre_start, pb.PreStartContainerRequest),
        }
        return grpc.method_handlers_generic_handler("v1beta1.DevicePlugin", handlers)

    def serve(self):
        self._server = start_server(self.socket, self.handler)
        return self

    def register(self, version="v1beta1", endpoint=None, resource=None, timeout=60):
        path = os.path.join(self.plugin_dir, "kubelet.sock")
        request = self.pb.RegisterRequest(
            version=version,
            endpoint=self.endpoint if endpoint is None else endpoint,
            resource_name=self.resource if resource is None else resource,
        )
        with grpc.insecure_channel(f"unix:{path}") as channel:
            channel.unary_unary(
                "/v1beta1.Registration/Register",
                request_serializer=self.pb.RegisterRequest.SerializeToString,
                response_deserializer=self.pb.Empty.FromString,
            )(request, timeout=timeout, wait_for_ready=True)
        return self

    def stop(self):
        if self._server:
            self.end_streams()
            self._server.stop(0).wait()
            self._server = None
        if os.path.exists(self.socket):
            os.unlink(self.socket)
