"""Calls to a container runtime on another gRPC stack: what davitd does, done by hand."""

import os

import grpc
import protos
from grpc import RpcError  # noqa: F401 - what calls fail with

SERVICES = {True: "ImageService", False: "RuntimeService"}
CALL_S = 60


class Cri:
    def __init__(self, socket):
        self.pb = protos.load("cri_v1")
        # With a connection of its own: shared ones may be those to a runtime that has been killed.
        self._channel = grpc.insecure_channel(
            f"unix://{socket}", options=[("grpc.use_local_subchannel_pool", 1)])

    def call(self, method, request=None, **fields):
        """The response of a method; `fields` make its request when none is given."""
        name = {"GetContainerEvents": "GetEvents"}.get(method, method)
        request = request or getattr(self.pb, name + "Request")(**fields)
        stub = self._channel.unary_unary(
            f"/runtime.v1.{SERVICES['Image' in method]}/{method}",
            request_serializer=type(request).SerializeToString,
            response_deserializer=getattr(self.pb, name + "Response").FromString)
        return stub(request, timeout=CALL_S, wait_for_ready=True)

    def sandbox_config(self, uid, name="pod", attempt=0, log_dir="", **fields):
        """A plain pod of the namespace default, on the host's network unless `linux` says else."""
        labels = {"io.kubernetes.pod.uid": uid, "io.kubernetes.pod.name": name,
                  "io.kubernetes.pod.namespace": "default"}
        return self.pb.PodSandboxConfig(
            metadata=dict(name=name, uid=uid, namespace="default", attempt=attempt),
            log_directory=log_dir, labels=labels, **fields)

    def run_sandbox(self, config):
        if config.log_directory:
            os.makedirs(config.log_directory, exist_ok=True)
        return self.call("RunPodSandbox", config=config).pod_sandbox_id

    def run_container(self, sandbox, config, name, image, command, attempt=0, **fields):
        """Makes a container in the sandbox and starts it; its id."""
        labels = {**config.labels, "io.kubernetes.container.name": name}
        container = self.pb.ContainerConfig(
            metadata=dict(name=name, attempt=attempt), image=dict(image=image), command=command,
            labels=labels, log_path=f"{name}-{attempt}.log" if config.log_directory else "",
            **fields)
        made = self.call("CreateContainer", pod_sandbox_id=sandbox, config=container,
                         sandbox_config=config).container_id
        self.call("StartContainer", container_id=made)
        return made

    def exec(self, container, *command):
        """(output, exit code)"""
        done = self.call("ExecSync", container_id=container, cmd=command, timeout=CALL_S)
        return done.stdout.decode(), done.exit_code

    def container(self, container):
        """Its ContainerStatus."""
        return self.call("ContainerStatus", container_id=container).status

    def close(self):
        self._channel.close()
