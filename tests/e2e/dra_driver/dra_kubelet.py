"""The node side of DRA, from the wire facts, on grpcio; and what tests do with a driver."""

import glob
import json
import os
import queue
import socket
import threading

import grpc

import protos
from procs import until

DRIVER = "gpu.example.com"
NODE = "worker-7"
# A loaded machine is slow, not broken.
WAIT_S = 30


class Client:
    """One connection to a socket of the driver."""

    def __init__(self, path):
        self.path = path
        self.channel = grpc.insecure_channel(
            f"unix:{path}", options=[("grpc.default_authority", "localhost")]
        )

    def call(self, method, request, response_type, timeout_s=WAIT_S, wait=True):
        rpc = self.channel.unary_unary(
            method,
            request_serializer=lambda message: message.SerializeToString(),
            response_deserializer=response_type.FromString,
        )
        return rpc(request, timeout=timeout_s, wait_for_ready=wait)

    def close(self):
        self.channel.close()


class Dra(Client):
    """A registered driver, called in one version."""

    def __init__(self, path, version):
        super().__init__(path)
        self.version = version
        self.messages = protos.load(f"dra_{version}")
        self.service = f"/k8s.io.kubelet.pkg.apis.dra.{version}.DRAPlugin"

    def _ask(self, kind, claims, timeout_s):
        request = getattr(self.messages, f"Node{kind}ResourcesRequest")()
        for claim in claims:
            meta = claim["metadata"]
            request.claims.add(namespace=meta["namespace"], name=meta["name"], uid=meta["uid"])
        response_type = getattr(self.messages, f"Node{kind}ResourcesResponse")
        answer = self.call(f"{self.service}/Node{kind}Resources", request, response_type, timeout_s)
        assert set(answer.claims) == {claim["metadata"]["uid"] for claim in claims}
        return [answer.claims[claim["metadata"]["uid"]] for claim in claims]

    def prepare(self, *claims, timeout_s=WAIT_S):
        return self._ask("Prepare", claims, timeout_s)

    def unprepare(self, *claims, timeout_s=WAIT_S):
        return self._ask("Unprepare", claims, timeout_s)

    def watch_health(self, version="v1"):
        """A queue of {device: (health, message)}; None at the end."""
        messages = protos.load(f"health_{version}")
        lists = queue.Queue()
        rpc = self.channel.unary_stream(
            f"/{version}.DRAResourceHealth/NodeWatchResources",
            request_serializer=lambda message: message.SerializeToString(),
            response_deserializer=messages.NodeWatchResourcesResponse.FromString,
        )
        stream = rpc(messages.NodeWatchResourcesRequest(), wait_for_ready=True)

        def read():
            try:
                for message in stream:
                    assert all(one.device.pool_name == NODE for one in message.devices)
                    assert all(one.last_updated_time > 1_700_000_000 for one in message.devices)
                    lists.put(
                        {one.device.device_name: (one.health, one.message)
                         for one in message.devices}
                    )
            except grpc.RpcError:
                pass
            lists.put(None)

        threading.Thread(target=read, daemon=True).start()
        return lists


class Kubelet:
    """Finds drivers in plugins_registry/ and registers them, as often as it is told to."""

    def __init__(self, folder):
        self.folder = folder
        self.registry = os.path.join(folder, "plugins_registry")
        os.makedirs(self.registry)
        self.clients = []

    def sockets(self):
        return sorted(glob.glob(os.path.join(self.registry, "*.sock")))

    def get_info(self, path):
        messages = protos.load("registration_v1")
        client = Client(path)
        try:
            return client.call("/pluginregistration.Registration/GetInfo", messages.InfoRequest(),
                               messages.PluginInfo)
        finally:
            client.close()

    def notify(self, path, error=""):
        messages = protos.load("registration_v1")
        client = Client(path)
        try:
            client.call(
                "/pluginregistration.Registration/NotifyRegistrationStatus",
                messages.RegistrationStatus(plugin_registered=not error, error=error),
                messages.RegistrationStatusResponse,
            )
        finally:
            client.close()

    def register(self, path=None, version=None):
        """Of the only driver there, or the one at `path`; called in the first version it offers."""
        path = path or until(self.sockets, WAIT_S, "a socket in plugins_registry/")[0]
        info = self.get_info(path)
        assert (info.type, info.name) == ("DRAPlugin", DRIVER)
        offered = [one.split(".")[0] for one in info.supported_versions if "DRAPlugin" in one]
        assert version is None or version in offered
        client = Dra(info.endpoint or path, version or offered[0])
        self.clients.append(client)
        self.notify(path)
        return client

    def close(self):
        for client in self.clients:
            client.close()


class Driver:
    """The process, its control socket and its CDI specs."""

    def __init__(self, proc, control, cdi_dir):
        self.proc = proc
        self.control = control
        self.cdi_dir = cdi_dir

    def command(self, line):
        with socket.socket(socket.AF_UNIX) as client:
            client.settimeout(WAIT_S)
            client.connect(self.control)
            client.sendall(f"{line}\n".encode())
            answer = b""
            while not answer.endswith(b"\n"):
                data = client.recv(65536)
                assert data, f"{line}: the driver hung up"
                answer += data
        return answer.decode().rstrip("\n")

    def must(self, line):
        answer = self.command(line)
        assert answer.split()[0] == "ok", f"{line}: {answer}"
        return answer[3:]

    def prepared(self):
        """{uid: "namespace/name:pool/device,..."}"""
        words = self.must("prepared").split()[1:]
        return dict(word.split("=", 1) for word in words)

    def counts(self):
        return {name: int(value) for name, value in
                (word.split("=") for word in self.must("counts").split())}

    def calls(self):
        return {name: int(value) for name, value in
                (word.split("=") for word in self.must("calls").split())}

    def specs(self):
        """The CDI specs that are there, by the end of their file names: a claim's UID."""
        found = {}
        for path in glob.glob(os.path.join(self.cdi_dir, "*")):
            name = os.path.basename(path)
            assert name.startswith(f"{DRIVER}-") and name.endswith(".json"), name
            with open(path, encoding="utf-8") as file:
                found[name[len(DRIVER) + 1:-5]] = json.load(file)
        return found


CLAIMS = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims"
SLICES = "/apis/resource.k8s.io/v1/resourceslices"


def make_claim(api, name, *devices, config=()):
    """An allocated claim: a request r0, r1, ... for each device."""
    requests = [
        {"name": f"r{i}", "exactly": {"deviceClassName": "gpu"}} for i in range(len(devices))
    ]
    claim = api.must(
        "POST", CLAIMS, {"metadata": {"name": name}, "spec": {"devices": {"requests": requests}}}
    )
    results = [
        {"request": f"r{i}", "driver": DRIVER, "pool": NODE, "device": device}
        for i, device in enumerate(devices)
    ]
    claim["status"] = {"allocation": {"devices": {"results": results, "config": list(config)}}}
    return api.must("PUT", f"{CLAIMS}/{name}/status", claim)


def slices_of(api):
    """The driver's slices, by name."""
    items = api.must("GET", f"{SLICES}?fieldSelector=spec.driver={DRIVER}")["items"]
    return sorted(items, key=lambda item: item["metadata"]["name"])


def device_names(api):
    """Of all slices; None while they are not of one generation, or not all there."""
    slices = slices_of(api)
    generations = {item["spec"]["pool"]["generation"] for item in slices}
    counts = {item["spec"]["pool"]["resourceSliceCount"] for item in slices}
    if len(generations) > 1 or counts != {len(slices)}:
        return None
    return [device["name"] for item in slices for device in item["spec"].get("devices", [])]
