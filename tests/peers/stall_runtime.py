"""Rows of bench_stall.py: pods with the longest lists that are accepted, on a container runtime that
starts nothing: what it is asked for runs from then on."""

import functools
import os
import threading
import time
from concurrent import futures

import grpc

import protos
from procs import until
from servers import PODS
from stall_objects import pod, with_meta

PATIENCE_S = 300
IMAGE = "sha256:" + "0" * 64
N_CONTAINERS = 512  # a node takes no more


class Runtime:
    """CRI on grpcio: everything works at once, and nothing ends by itself."""

    def __init__(self, socket):
        self.pb = protos.load("cri_v1")
        self.socket = socket
        self.sandboxes = {}  # id: PodSandboxStatus
        self.containers = {}  # id: (sandbox, ContainerStatus)
        self._lock = threading.Lock()
        self._n = 0
        self._server = None

    def _id(self):
        self._n += 1
        return f"{self._n:064x}"

    def version(self, _):
        return dict(version="0.1.0", runtime_name="none", runtime_version="1.7.0",
                    runtime_api_version="v1")

    def status(self, _):
        conditions = [dict(type=name, status=True) for name in ("RuntimeReady", "NetworkReady")]
        return dict(status=dict(conditions=conditions))

    def run_pod_sandbox(self, request):
        made = self._id()
        config = request.config
        self.sandboxes[made] = self.pb.PodSandboxStatus(
            id=made, metadata=config.metadata, created_at=time.time_ns(), labels=config.labels,
            annotations=config.annotations, network=dict(ip="10.0.0.1"))
        return dict(pod_sandbox_id=made)

    def stop_pod_sandbox(self, request):
        if request.pod_sandbox_id in self.sandboxes:
            self.sandboxes[request.pod_sandbox_id].state = 1
        return {}

    def remove_pod_sandbox(self, request):
        self.sandboxes.pop(request.pod_sandbox_id, None)
        return {}

    def pod_sandbox_status(self, request):
        return dict(status=self.sandboxes[request.pod_sandbox_id])

    def list_pod_sandbox(self, _):
        return dict(items=[
            dict(id=one.id, metadata=one.metadata, state=one.state, created_at=one.created_at,
                 labels=one.labels, annotations=one.annotations)
            for one in self.sandboxes.values()])

    def create_container(self, request):
        made = self._id()
        config = request.config
        self.containers[made] = request.pod_sandbox_id, self.pb.ContainerStatus(
            id=made, metadata=config.metadata, created_at=time.time_ns(), image=config.image,
            image_ref=IMAGE, labels=config.labels, annotations=config.annotations)
        return dict(container_id=made)

    def start_container(self, request):
        status = self.containers[request.container_id][1]
        status.state = 1
        status.started_at = time.time_ns()
        return {}

    def stop_container(self, request):
        if request.container_id in self.containers:
            status = self.containers[request.container_id][1]
            status.state = 2
            status.finished_at = time.time_ns()
        return {}

    def remove_container(self, request):
        self.containers.pop(request.container_id, None)
        return {}

    def list_containers(self, _):
        return dict(containers=[
            dict(id=one.id, pod_sandbox_id=sandbox, metadata=one.metadata, image=one.image,
                 image_ref=one.image_ref, state=one.state, created_at=one.created_at,
                 labels=one.labels, annotations=one.annotations)
            for sandbox, one in self.containers.values()])

    def container_status(self, request):
        return dict(status=self.containers[request.container_id][1])

    def image_status(self, _):
        return dict(image=dict(id=IMAGE, repo_tags=["x"], size=1))

    def pull_image(self, _):
        return dict(image_ref=IMAGE)

    def list_images(self, _):
        return {}

    def image_fs_info(self, _):
        return {}

    def _handler(self, name, function):
        request = getattr(self.pb, f"{name}Request")
        response = getattr(self.pb, f"{name}Response")

        def handle(message, _):
            with self._lock:
                return response(**function(message))

        return grpc.unary_unary_rpc_method_handler(
            handle, request.FromString, response.SerializeToString)

    def serve(self):
        names = {
            "RuntimeService": (
                "Version", "Status", "RunPodSandbox", "StopPodSandbox", "RemovePodSandbox",
                "PodSandboxStatus", "ListPodSandbox", "CreateContainer", "StartContainer",
                "StopContainer", "RemoveContainer", "ListContainers", "ContainerStatus"),
            "ImageService": ("ImageStatus", "PullImage", "ListImages", "ImageFsInfo"),
        }
        handlers = []
        for service, methods in names.items():
            table = {}
            for name in methods:
                word = "".join(f"_{c.lower()}" if c.isupper() else c for c in name)[1:]
                table[name] = self._handler(name, getattr(self, word))
            handlers.append(grpc.method_handlers_generic_handler(f"runtime.v1.{service}", table))
        self._server = grpc.server(
            futures.ThreadPoolExecutor(max_workers=8), handlers,
            options=[("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)])
        self._server.add_insecure_port(f"unix:{self.socket}")
        self._server.start()
        return self

    def stop(self):
        self._server.stop(0).wait()


def serve(world):
    """The runtime that the options of the group name."""
    world.started.append(Runtime(os.path.join(world.folder, "cri.sock")).serve())


def lists():
    """Pods by what is long in them."""
    volumes = range(5000)
    return {
        "60,000 env entries": lambda: pod(
            "env", {"env": [{"name": f"E{i}", "value": "v"} for i in range(60000)]}),
        "20,000 env entries that refer to others": lambda: pod("refs", {"env": [
            {"name": f"E{i}", "value": f"$(E{i - 1})"[:20]} for i in range(20000)]}),
        "20,000 mounts of a volume": lambda: pod(
            "mounts", {"volumeMounts": [{"name": "v", "mountPath": f"/m{i}"}
                                        for i in range(20000)]},
            volumes=[{"name": "v", "emptyDir": {}}]),
        "5,000 volumes": lambda: pod(
            "volumes", {"volumeMounts": [{"name": f"v{i}", "mountPath": f"/m{i}"}
                                         for i in volumes]},
            volumes=[{"name": f"v{i}", "emptyDir": {}} for i in volumes]),
        "20,000 annotations": lambda: with_meta(
            pod("annotations"), annotations={f"k{i}": "v" for i in range(20000)}),
        "20,000 host aliases": lambda: pod("aliases", hostAliases=[
            {"ip": f"10.0.{i // 250}.{i % 250 + 1}", "hostnames": ["h"]} for i in range(20000)]),
        f"{N_CONTAINERS} containers": lambda: pod("containers", containers=[
            {"name": f"c{i}", "image": "x"} for i in range(N_CONTAINERS)]),
    }


def run_pod(make, world):
    doc = make()
    name = doc["metadata"]["name"]
    doc["spec"] |= {"nodeName": "n1", "terminationGracePeriodSeconds": 1}
    world.api.must("POST", PODS, doc)
    until(lambda: world.api.must("GET", f"{PODS}/{name}")["status"].get("phase") == "Running",
          PATIENCE_S, f"{name} runs")


def end_pod(make, world):
    path = f"{PODS}/{make()['metadata']['name']}"
    world.api.must("DELETE", path)
    until(lambda: world.api.ask("GET", path).status == 404, PATIENCE_S, "its end")


def groups(row):
    part = functools.partial
    rows = [row("a container runtime", serve)]
    for what, make in lists().items():
        rows.append(row(f"run: {what}", part(run_pod, make)))
        rows.append(row(f"end: {what}", part(end_pod, make)))
    yield "runtime", rows, "--cri", "unix://{folder}/cri.sock"
