"""A DRA driver on grpcio and plain HTTP that does right what libdavit-driver would not let a driver do
wrong, and with --fault NAME does one of these things wrong.

    careful_driver.py --node NODE --kubeconfig FILE --kubelet-dir DIR --cdi-dir DIR [--fault NAME]
                      [--handles-late]

PYTHONPATH has the messages that protoc made of dra_v1, health_v1 and registration_v1.
With --handles-late it is prepared for SIGTERM 0.1 s after it was registered.
SIGUSR1: a device is not healthy any more; SIGUSR2: all are again; SIGHUP: there is one device more.
"""

import argparse
import http.client
import json
import os
import queue
import re
import signal
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, os.pardir, "node"), os.path.join(HERE, os.pardir)]

import grpc  # noqa: E402

import dra_v1_pb2  # noqa: E402
import health_v1_pb2  # noqa: E402
import registration_v1_pb2  # noqa: E402
from plugin import encode, start_server, unary  # noqa: E402

FAULTS = (
    "counts-wrong", "forgets-generation", "ignores-change", "writes-always", "never-looks",
    "tries-invalid", "drops-failed", "says-yes", "ignores-uid", "takes-any-config", "health-silent",
    "health-ends", "health-to-first", "health-frozen", "needs-api-at-start", "watches-once",
    "stops-at-gone", "stops-at-conflict", "one-cdi-name", "old-versions",
    "first-for-all", "turned-requests", "node-not-there", "mount-not-there", "hook-not-there",
)
DRIVER = "careful.example.com"
API = "/apis/resource.k8s.io/v1"
SLICES = f"{API}/resourceslices"
# After a failure of the API.
AGAIN_S = 0.1


class Refused(Exception):
    """The API's answer is not what was hoped for."""

    def __init__(self, status, text):
        super().__init__(f"{status}: {text}")
        self.status = status


class Api:
    def __init__(self, kubeconfig):
        with open(kubeconfig, encoding="utf-8") as file:
            text = file.read()
        self.address = re.search(r'server: "http://([^"]*)"', text)[1]
        token = re.search(r'token: "([^"]*)"', text)[1]
        self.headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}

    def open(self, method, path, value=None):
        """The answer, which is still to be read."""
        connection = http.client.HTTPConnection(self.address, timeout=20)
        connection.request(method, path, value and json.dumps(value), self.headers)
        answer = connection.getresponse()
        if answer.status >= 300:
            raise Refused(answer.status, answer.read().decode())
        return answer

    def ask(self, method, path, value=None):
        return json.loads(self.open(method, path, value).read() or "{}")


class Slices:
    """One slice with all devices, kept as it should be whatever others do to it."""

    def __init__(self, api, node, fault):
        self.api = api
        self.node = node
        self.fault = fault
        self.n_devices = 4
        self.generation = 1 if fault == "forgets-generation" else 0  # 0: the API's is to be seen
        self.own = None  # the slice that this process has made
        self.changed = threading.Event()
        self.owner = None

    def devices(self):
        return [f"device-{i}" for i in range(self.n_devices)]

    def wanted(self):
        return {
            "driver": DRIVER, "nodeName": self.node,
            "pool": {"name": self.node, "generation": self.generation,
                     "resourceSliceCount": 2 if self.fault == "counts-wrong" else 1},
            "devices": [{"name": name} for name in self.devices()],
        }

    def write(self, method, path, found, spec):
        return self.api.ask(method, path, {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice",
                                           "metadata": found, "spec": spec})

    def create(self):
        meta = {"generateName": f"{self.node}-", "ownerReferences": [self.owner]}
        if self.fault == "tries-invalid":
            try:
                self.write("POST", SLICES, meta, {**self.wanted(), "devices": [{"name": "GPU 0"}]})
            except Refused:
                pass
        self.own = self.write("POST", SLICES, meta, self.wanted())["metadata"]["name"]

    def correct(self):
        """Writes what differs; returns how to watch what comes after."""
        if not self.owner:
            node = self.api.ask("GET", f"/api/v1/nodes/{self.node}")
            self.owner = {"apiVersion": "v1", "kind": "Node", "name": self.node, "controller": True,
                          "uid": node["metadata"]["uid"]}
        selector = f"fieldSelector=spec.driver%3D{DRIVER},spec.nodeName%3D{self.node}"
        found = self.api.ask("GET", f"{SLICES}?{selector}")
        if self.fault == "forgets-generation":  # and all slices but its own
            found["items"] = [one for one in found["items"] if one["metadata"]["name"] == self.own]
        if not self.generation:
            self.generation = max((one["spec"]["pool"]["generation"] for one in found["items"]),
                                  default=1)
        if not found["items"]:
            self.create()
        for one in found["items"]:
            names = [device["name"] for device in one["spec"]["devices"]]
            if (names != self.devices() or self.fault == "writes-always"
                    or one["spec"]["pool"]["generation"] != self.generation):
                self.write("PUT", f"{SLICES}/{one['metadata']['name']}", one["metadata"],
                           self.wanted())
        return f"{SLICES}?{selector}&watch=true&resourceVersion={found['metadata']['resourceVersion']}"

    def change(self):
        if self.fault != "ignores-change":
            self.n_devices += 1
            self.generation += 1
            self.changed.set()

    def watch(self, path):
        """False: the watch ended before anything happened."""
        return self.api.open("GET", path).readline() != b""

    def watch_all(self):
        is_first = True
        while True:
            try:
                path = self.correct()
                is_first = False
                if self.fault == "never-looks":
                    return
                if not self.watch(path) and self.fault == "watches-once":
                    return
            except (OSError, http.client.HTTPException) as failure:
                print(failure, flush=True)
                if self.fault == "watches-once" or (
                        is_first and self.fault == "needs-api-at-start"):
                    return
                time.sleep(AGAIN_S)
            except Refused as failure:
                print(failure, flush=True)
                if self.fault == {409: "stops-at-conflict", 410: "stops-at-gone"}.get(failure.status):
                    return
                time.sleep(AGAIN_S)

    def run(self):
        threading.Thread(target=self.watch_all, daemon=True).start()
        while True:
            self.changed.wait(0.02 if self.fault == "writes-always" else None)
            self.changed.clear()
            try:
                self.correct()
            except (OSError, http.client.HTTPException, Refused) as failure:
                print(failure, flush=True)
                self.changed.set()
                time.sleep(AGAIN_S)


class Claims:
    def __init__(self, api, cdi_dir, fault):
        self.api = api
        self.cdi_dir = cdi_dir
        self.fault = fault

    def cdi_name(self, uid):
        return "all" if self.fault == "one-cdi-name" else uid

    def spec_path(self, uid):
        return os.path.join(self.cdi_dir, f"{DRIVER}-{self.cdi_name(uid)}.json")

    def check_config(self, allocated):
        for config in allocated.get("config", ()):
            opaque = config.get("opaque", {})
            if opaque.get("driver") == DRIVER and opaque["parameters"]:
                raise ValueError(f"unknown parameters {opaque['parameters']}")

    def edits(self, number, device):
        edits = {"env": [f"D{number}={device}"], "deviceNodes": [{"path": "/dev/null"}],
                 "mounts": [{"hostPath": "none", "containerPath": "/s", "type": "tmpfs"}]}
        return {**edits, **{
            "node-not-there": {"deviceNodes": [{"path": "/dev/no-such"}]},
            "mount-not-there": {"mounts": [{"hostPath": "/no-such", "containerPath": "/s"}]},
            "hook-not-there": {"hooks": [{"hookName": "createContainer", "path": "/no-such"}]},
        }.get(self.fault, {})}

    def prepare(self, claim):
        """[(request, pool, device, CDI name)]"""
        found = self.api.ask(
            "GET", f"{API}/namespaces/{claim.namespace}/resourceclaims/{claim.name}")
        if found["metadata"]["uid"] != claim.uid and self.fault != "ignores-uid":
            raise LookupError("the claim was replaced")
        allocated = found["status"]["allocation"]["devices"]
        if self.fault != "takes-any-config":
            self.check_config(allocated)
        mine = [one for one in allocated["results"] if one["driver"] == DRIVER]
        name = self.cdi_name(claim.uid)
        devices = [{"name": f"{name}-{i}", "containerEdits": self.edits(i, one["device"])}
                   for i, one in enumerate(mine)]
        with open(f"{self.spec_path(claim.uid)}.new", "w", encoding="utf-8") as file:
            json.dump({"cdiVersion": "0.6.0", "kind": f"{DRIVER}/claim", "devices": devices}, file)
        os.rename(f"{self.spec_path(claim.uid)}.new", self.spec_path(claim.uid))
        requests = [one["request"].split("/")[0] for one in mine]
        if self.fault == "first-for-all":
            mine = mine[:1] * len(mine)
        if self.fault == "turned-requests":
            requests.reverse()
        return [(requests[i], one["pool"], one["device"], f"{DRIVER}/claim={name}-{i}")
                for i, one in enumerate(mine)]

    def answer_prepare(self, request, _):
        answer = dra_v1_pb2.NodePrepareResourcesResponse()
        for claim in request.claims:
            try:
                for name, pool, device, cdi in self.prepare(claim):
                    answer.claims[claim.uid].devices.add(
                        request_names=[name], pool_name=pool, device_name=device,
                        cdi_device_ids=[cdi])
            except (OSError, LookupError, ValueError, Refused) as failure:
                if self.fault != "drops-failed":
                    answer.claims[claim.uid].error = (
                        "" if self.fault == "says-yes" else f"{failure!r}")
        return answer

    def answer_unprepare(self, request, _):
        answer = dra_v1_pb2.NodeUnprepareResourcesResponse()
        for claim in request.claims:
            if os.path.exists(self.spec_path(claim.uid)):
                os.unlink(self.spec_path(claim.uid))
            answer.claims[claim.uid].error = ""
        return answer


class Health:
    def __init__(self, slices, fault):
        self.pb = health_v1_pb2
        self.slices = slices
        self.fault = fault
        self.is_bad = False
        self.streams = []
        self.n_streams = 0

    def set_bad(self, is_bad):
        self.is_bad = is_bad
        for stream in [] if self.fault == "health-frozen" else self.streams:
            stream.put("news")

    def message(self):
        message = self.pb.NodeWatchResourcesResponse()
        for i, name in enumerate(self.slices.devices()):
            message.devices.add(
                device=self.pb.DeviceIdentifier(pool_name=self.slices.node, device_name=name),
                health=2 if self.is_bad and i == 0 else 1, last_updated_time=int(time.time()))
        return message

    def watch(self, _, context):
        stream = queue.Queue()
        self.streams.append(stream)
        self.n_streams += 1
        context.add_callback(lambda: stream.put("end"))
        if self.fault != "health-silent" and (self.fault != "health-to-first" or self.n_streams == 1):
            yield self.message()
        while self.fault != "health-ends" and stream.get() != "end":
            yield self.message()
        self.streams.remove(stream)


def main():
    parser = argparse.ArgumentParser()
    for name in ("node", "kubeconfig", "kubelet-dir", "cdi-dir"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--fault", choices=FAULTS)
    parser.add_argument("--handles-late", action="store_true")
    given = parser.parse_args()
    api = Api(given.kubeconfig)
    slices = Slices(api, given.node, given.fault)
    claims = Claims(api, given.cdi_dir, given.fault)
    health = Health(slices, given.fault)
    pb = dra_v1_pb2
    known = registration_v1_pb2
    folder = os.path.join(given.kubelet_dir, "plugins", DRIVER)
    os.makedirs(folder, exist_ok=True)
    endpoint = os.path.join(folder, "dra.sock")
    registration = os.path.join(given.kubelet_dir, "plugins_registry", f"{DRIVER}-reg.sock")

    def end(*_):
        for path in (registration, endpoint):
            os.unlink(path)
        os._exit(0)

    registered = threading.Event()

    def notify(*_):
        registered.set()
        return known.RegistrationStatusResponse()

    if not given.handles_late:
        signal.signal(signal.SIGTERM, end)
    signal.signal(signal.SIGUSR1, lambda *_: health.set_bad(True))
    signal.signal(signal.SIGUSR2, lambda *_: health.set_bad(False))
    signal.signal(signal.SIGHUP, lambda *_: slices.change())
    server = start_server(
        endpoint,
        grpc.method_handlers_generic_handler("k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin", {
            "NodePrepareResources": unary(claims.answer_prepare, pb.NodePrepareResourcesRequest),
            "NodeUnprepareResources": unary(claims.answer_unprepare,
                                            pb.NodeUnprepareResourcesRequest)}),
        grpc.method_handlers_generic_handler("v1.DRAResourceHealth", {
            "NodeWatchResources": grpc.unary_stream_rpc_method_handler(
                health.watch, health.pb.NodeWatchResourcesRequest.FromString, encode)}))
    info = known.PluginInfo(type="DRAPlugin", name=DRIVER, endpoint=endpoint,
                            supported_versions=["1.0.0"] if given.fault == "old-versions" else
                            ["v1.DRAPlugin", "v1.DRAResourceHealth"])
    registrar = start_server(
        registration,
        grpc.method_handlers_generic_handler("pluginregistration.Registration", {
            "GetInfo": unary(lambda *_: info, known.InfoRequest),
            "NotifyRegistrationStatus": unary(notify, known.RegistrationStatus)}))
    if given.handles_late:
        threading.Thread(target=slices.run, daemon=True).start()
        registered.wait()
        time.sleep(0.1)
        signal.signal(signal.SIGTERM, end)
        while True:
            signal.pause()
    slices.run()
    del server, registrar


if __name__ == "__main__":
    main()
