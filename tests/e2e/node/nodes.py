"""A davitd on directories of its own, and clients of what it serves."""

import json
import os
import subprocess

import grpc

import protos
from peers import folder_of
from procs import until

PODRES = "v1.PodResourcesLister"
UNLIMITED = [("grpc.max_receive_message_length", -1)]


def stub(channel, path, request, response):
    return channel.unary_unary(
        path, request_serializer=request.SerializeToString, response_deserializer=response.FromString
    )


def run_davit(*words, stdin=None, timeout=100):
    """The command line tool, run to its end."""
    done = subprocess.run(
        [os.path.join(folder_of("DAVIT_BUILD"), "davit"), *map(str, words)],
        input=stdin,
        stdin=subprocess.DEVNULL if stdin is None else None,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
    assert done.returncode >= 0, done
    for sign in ("Sanitizer", "runtime error:"):
        assert sign not in done.stderr, done.stderr
    return done


class Node:
    def __init__(self, procs, root, *options):
        self.procs = procs
        self.root = root
        self.kubelet_dir = os.path.join(root, "k")
        self.state_dir = os.path.join(root, "s")
        self.runtime_dir = os.path.join(root, "r")
        self.plugin_dir = os.path.join(self.kubelet_dir, "device-plugins")
        self.kubelet_sock = os.path.join(self.plugin_dir, "kubelet.sock")
        self.socket = os.path.join(self.runtime_dir, "davit.sock")
        self.listen = "none"
        self.cri = "none"  # nothing of the machine's runs the containers of tests
        self.options = list(options)
        self.proc = None
        self.pb = protos.load("davit_node_v1")
        self.podres = protos.load("podresources_v1")
        self._channel = None
        self._podres_channel = None

    def start(self, *more, ready=True):
        self.proc = self.procs.start(
            os.path.join(folder_of("DAVIT_BUILD"), "davitd"),
            "--kubelet-dir", self.kubelet_dir,
            "--state-dir", self.state_dir,
            "--runtime-dir", self.runtime_dir,
            "--node-name", "n1",
            "--listen", self.listen,
            "--cri", self.cri,
            *self.options,
            *more,
            ready="ready" if ready else None,
        )
        return self

    def stop(self):
        self.disconnect()
        return self.proc.stop()

    def kill(self):
        self.disconnect()
        return self.proc.kill()

    def close(self):
        """Ends it, if it still runs; that has to go well."""
        self.disconnect()
        if self.proc and self.proc.is_alive:
            assert self.stop() == 0, self.proc.describe()

    def davit(self, verb, *words, **options):
        return run_davit(verb, *words, "--socket", self.socket, **options)

    def disconnect(self):
        for channel in (self._channel, self._podres_channel):
            if channel:
                channel.close()
        self._channel = self._podres_channel = None

    def call(self, method, request, response, timeout=60):
        if not self._channel:
            self._channel = grpc.insecure_channel(f"unix:{self.socket}", options=UNLIMITED)
        return stub(self._channel, f"/davit.node.v1.Node/{method}", request, response)(
            request, timeout=timeout, wait_for_ready=True
        )

    def admit(self, pod, wait=None, timeout=60):
        request = self.pb.AdmitPodRequest(pod=json.dumps(pod).encode())
        if wait is not None:
            request.wait_seconds = wait
        return self.call("AdmitPod", request, self.pb.AdmitPodResponse, timeout)

    def release(self, uid):
        request = self.pb.ReleasePodRequest(pod=self.pb.PodRef(uid=uid))
        return self.call("ReleasePod", request, self.pb.ReleasePodResponse)

    def container_options(self, uid, container):
        request = self.pb.ContainerOptionsRequest(pod=self.pb.PodRef(uid=uid), container=container)
        return self.call("ContainerOptions", request, self.pb.ContainerOptionsResponse)

    def resources(self):
        """{resource: {device id: device}}"""
        listed = self.call("ListDevices", self.pb.ListDevicesRequest(), self.pb.ListDevicesResponse)
        return {r.name: {d.id: d for d in r.devices} for r in listed.resources}

    def resource(self, name):
        listed = self.call(
            "ListDevices", self.pb.ListDevicesRequest(resource=name), self.pb.ListDevicesResponse
        )
        return listed.resources[0] if listed.resources else None

    def plugins(self):
        return self.call(
            "ListPlugins", self.pb.ListPluginsRequest(), self.pb.ListPluginsResponse
        ).plugins

    def status(self):
        return self.call("Status", self.pb.StatusRequest(), self.pb.StatusResponse)

    def wait_devices(self, resource, n_healthy, timeout_s=60):
        def is_there():
            found = self.resource(resource)
            return found and found.connected and found.allocatable == n_healthy

        until(is_there, timeout_s, f"{n_healthy} healthy devices of {resource}")

    def podres_call(self, method, request, response, service=PODRES):
        if not self._podres_channel:
            path = os.path.join(self.kubelet_dir, "pod-resources", "kubelet.sock")
            self._podres_channel = grpc.insecure_channel(f"unix:{path}")
        return stub(self._podres_channel, f"/{service}/{method}", request, response)(
            request, timeout=60, wait_for_ready=True
        )

    def podres_list(self):
        return self.podres_call(
            "List", self.podres.ListPodResourcesRequest(), self.podres.ListPodResourcesResponse
        ).pod_resources


def pod(name, *containers, uid=None, init=(), **more):
    """A Pod with containers given as (name, {resource: amount}) or as dicts."""

    def container(given):
        if isinstance(given, dict):
            return given
        return {"name": given[0], "image": "x", "resources": {"limits": given[1]}}

    made = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "uid": uid or f"uid-{name}"},
        "spec": {"containers": [container(c) for c in containers], **more},
    }
    if init:
        made["spec"]["initContainers"] = [container(c) for c in init]
    return made


def held(response):
    """{container: {resource: [ids]}} of an admission."""
    return {
        c.container: {r.resource: list(r.device_ids) for r in c.resources}
        for c in response.containers
    }
