"""Device plugins of the first two releases of the API, which the kubelet has refused since 1.10."""

import os
import queue
from concurrent import futures

import grpc
import pytest

import protos
from nodes import held, pod

FPGA = "example.com/fpga"


class OldPlugin:
    """Speaks `deviceplugin`: version v1alpha2 (Kubernetes 1.9) or 0.1 (1.8)."""

    def __init__(self, plugin_dir, version):
        self.version = version
        self.pb = protos.load("deviceplugin_v1alpha2" if version == "v1alpha2" else "deviceplugin_v0_1")
        self.plugin_dir = plugin_dir
        self.allocated = []
        self._stopped = queue.Queue()
        self._server = grpc.server(futures.ThreadPoolExecutor(max_workers=4))
        as_bytes = lambda message: message.SerializeToString()  # noqa: E731
        self._server.add_generic_rpc_handlers(
            (
                grpc.method_handlers_generic_handler(
                    "deviceplugin.DevicePlugin",
                    {
                        "ListAndWatch": grpc.unary_stream_rpc_method_handler(
                            self._list, self.pb.Empty.FromString, as_bytes
                        ),
                        "Allocate": grpc.unary_unary_rpc_method_handler(
                            self._allocate, self.pb.AllocateRequest.FromString, as_bytes
                        ),
                    },
                ),
            )
        )
        self._server.add_insecure_port("unix:" + os.path.join(plugin_dir, "old.sock"))
        self._server.start()

    def _list(self, request, context):
        answer = self.pb.ListAndWatchResponse()
        for number in range(3):
            answer.devices.add(ID=f"f{number}", health="Healthy")
        yield answer
        self._stopped.get()

    def _allocate(self, request, context):
        ids = sorted(request.devicesIDs)
        self.allocated.append(ids)
        if self.version == "v1alpha2":
            answer = self.pb.AllocateResponse(envs={"FPGAS": ",".join(ids)})
            for device in ids:
                answer.devices.add(container_path=f"/dev/{device}", host_path=f"/dev/{device}", permissions="rw")
            return answer
        answer = self.pb.AllocateResponse()
        for device in ids:
            spec = answer.spec.add(ID=device, envs={f"FPGA_{device}": "yes"})
            spec.devices.add(container_path=f"/dev/{device}", host_path=f"/dev/{device}", permissions="rw")
        return answer

    def register(self, version=None):
        path = os.path.join(self.plugin_dir, "kubelet.sock")
        request = self.pb.RegisterRequest(
            version=version or self.version, endpoint="old.sock", resource_name=FPGA
        )
        with grpc.insecure_channel(f"unix:{path}") as channel:
            channel.unary_unary(
                "/deviceplugin.Registration/Register",
                request_serializer=self.pb.RegisterRequest.SerializeToString,
                response_deserializer=self.pb.Empty.FromString,
            )(request, timeout=60, wait_for_ready=True)

    def stop(self):
        self._stopped.put(None)
        self._server.stop(0).wait()


@pytest.mark.parametrize("version", ["v1alpha2", "0.1"])
def test_an_old_plugin_serves(node, version):
    plugin = OldPlugin(node.plugin_dir, version)
    try:
        plugin.register()
        node.wait_devices(FPGA, 3)
        answer = node.admit(pod("p", ("main", {FPGA: 2})))
        assert answer.admitted, answer
        ids = sorted(held(answer)["main"][FPGA])
        assert plugin.allocated == [ids]
        options = node.container_options("uid-p", "main")
        assert sorted(d.container_path for d in options.devices) == [f"/dev/{i}" for i in ids]
        envs = {e.key: e.value for e in options.envs}
        if version == "v1alpha2":
            assert envs == {"FPGAS": ",".join(ids)}
        else:
            assert envs == {f"FPGA_{i}": "yes" for i in ids}
    finally:
        plugin.stop()


def test_a_version_of_the_wrong_service_is_refused(node):
    plugin = OldPlugin(node.plugin_dir, "v1alpha2")
    try:
        with pytest.raises(grpc.RpcError) as refused:
            plugin.register(version="v1beta1")
        assert "is not supported by kubelet" in refused.value.details()
    finally:
        plugin.stop()
