"""A DRA driver on grpcio and the Kubernetes client for Python, written from the facts of the wire.

Inside a test it is a `Driver`, with whatever manners the test wants. As a program it can be killed:

    python_driver.py --driver NAME --node NODE --kubeconfig FILE --kubelet-dir DIR --cdi-dir DIR
                  [--instance UID]

What it has prepared is what it has CDI specs for, so that another process of it, or another
instance, goes on where one ended. Lines on stdout: "ready", "registered", "prepare
NAMESPACE/NAME,...", "unprepare ...". Lines on stdin: "die prepare|unprepare before|done|after" (the
work, the answer), "fail prepare|unprepare|never", "health DEVICE Healthy|Unhealthy". SIGTERM ends
it.

go-dra of tests/peers is the same in Go.
"""

import argparse
import glob
import json
import os
import queue
import signal
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
for folder in (os.path.join(HERE, os.pardir, "node"), os.path.join(HERE, os.pardir)):
    if folder not in sys.path:
        sys.path.insert(0, folder)

import grpc  # noqa: E402
import kubernetes  # noqa: E402

import protos  # noqa: E402
from plugin import encode, start_server, unary  # noqa: E402
from registrar import Registrar  # noqa: E402

GROUP = "resource.k8s.io"
V1 = ("v1.DRAPlugin",)
# Service -> (its name on the wire, its messages); the two generations of v1alpha3 share a name.
SERVICES = {
    "v1": ("k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin", "dra_v1"),
    "v1beta1": ("k8s.io.kubelet.pkg.apis.dra.v1beta1.DRAPlugin", "dra_v1beta1"),
    "v1alpha3-b": ("v1alpha3.Node", "dra_v1alpha4"),
    "v1alpha3-a": ("v1alpha3.Node", "dra_v1alpha3"),
    "v1alpha2": ("v1alpha2.Node", "dra_v1alpha2"),
    "v1alpha1": ("v1alpha1.Node", "dra_v1alpha1"),
}
PER_CLAIM = ("v1alpha2", "v1alpha1")
HEALTH = {"Unknown": 0, "Healthy": 1, "Unhealthy": 2}


class Claim:
    """As a request names it."""

    def __init__(self, namespace, name, uid):
        self.namespace = namespace
        self.name = name
        self.uid = uid

    def __str__(self):
        return f"{self.namespace}/{self.name}"


class Device:
    def __init__(self, request, pool, name, cdi_ids, share_id=None):
        self.requests = [request] if request else []
        self.pool = pool
        self.name = name
        self.cdi_ids = cdi_ids
        self.share_id = share_id


class ClaimReader:
    """The claims of an API, by Debian's client for Python, which is older than they are."""

    def __init__(self, kubeconfig):
        made = kubernetes.config.new_client_from_config(kubeconfig)
        made.configuration.retries = 0
        self.objects = kubernetes.client.CustomObjectsApi(made)

    def get(self, claim):
        found = self.objects.get_namespaced_custom_object(
            GROUP, "v1", claim.namespace, "resourceclaims", claim.name
        )
        if found["metadata"]["uid"] != claim.uid:
            raise LookupError(f"claim {claim} got replaced")
        if not found.get("status", {}).get("allocation"):
            raise LookupError(f"claim {claim} not allocated")
        return found

    def publish(self, driver, node, devices):
        """One slice of these, in the place of what the driver had."""
        where = (GROUP, "v1", "resourceslices")
        slices = self.objects.list_cluster_custom_object(
            *where, field_selector=f"spec.driver={driver},spec.nodeName={node}"
        )["items"]
        for one in slices:
            self.objects.delete_cluster_custom_object(*where, one["metadata"]["name"])
        self.objects.create_cluster_custom_object(*where, {
            "apiVersion": f"{GROUP}/v1",
            "kind": "ResourceSlice",
            "metadata": {"generateName": f"{node}-"},
            "spec": {
                "driver": driver,
                "nodeName": node,
                "pool": {"name": node, "generation": 1, "resourceSliceCount": 1},
                "devices": [{"name": name} for name in devices],
            },
        })


class Driver:
    """Serves DRA on one socket and its registration on another, or both on one."""

    def __init__(self, kubelet_dir, cdi_dir, name, api=None, node="n1", instance="",
                 services=("v1",), versions=V1, health=None, one_socket=False):
        self.name = name
        self.node = node
        self.api = api  # a ClaimReader; without it every claim is for one device
        self.cdi_dir = cdi_dir
        self.services = services
        self.health_services = health or ()  # of "v1", "v1alpha1"
        suffix = f"-{instance}" if instance else ""
        folder = os.path.join(kubelet_dir, "plugins", name)
        os.makedirs(folder, exist_ok=True)
        self.socket = os.path.join(folder, f"dra{suffix}.sock")
        self.registrar = Registrar(
            os.path.join(kubelet_dir, "plugins_registry", f"{name}{suffix}-reg.sock"), name,
            "" if one_socket else self.socket, "DRAPlugin", versions,
        )
        self.one_socket = one_socket
        self.calls = []  # (service, "prepare" or "unprepare", [claims])
        self.overlaps = []  # (kind, claim) that was asked for while it was being worked on
        self._under_way = set()  # (kind, claim)
        self.seen_cdi = []  # v1alpha1 tells what it was answered before
        self.handles = []  # (kind, claim's name, text, structured handles) of services before 1.31
        self.before = lambda kind, claims: None  # may raise, hang, die
        self.after = lambda kind, claims: None  # the same, when the work is done
        self.answer = lambda kind, response, claims: response  # a message or bytes
        self.devices_of = self._devices_of
        self.write_spec = self._put_spec
        self.health = {}  # device -> (health, message, timeout)
        self.offers = None  # v1alpha3-a: {device: {attribute: (kind, value)}}; None: no such method
        self._streams = []
        self.caller = threading.local()  # .is_there(): whether who asks is still waiting
        self._lock = threading.Lock()
        self._server = None

    # What it does

    def is_idle(self):
        """Nothing is being worked on, not even for one who has given up waiting."""
        with self._lock:
            return not self._under_way

    def spec_path(self, uid):
        return os.path.join(self.cdi_dir, f"{self.name}-{uid}.json")

    def prepared(self):
        """The uids of what is prepared now."""
        begin = os.path.join(self.cdi_dir, f"{self.name}-")
        return {path[len(begin):-len(".json")] for path in glob.glob(f"{begin}*.json")}

    def cdi_id(self, uid, number):
        return f"{self.name}/claim={uid}-{number}"

    def _devices_of(self, claim):
        if not self.api:
            return [Device("r", self.node, f"d-{claim.name}", [self.cdi_id(claim.uid, 0)])]
        results = self.api.get(claim)["status"]["allocation"]["devices"]["results"]
        mine = [one for one in results if one["driver"] == self.name]
        return [
            Device(one["request"].split("/")[0], one["pool"], one["device"],
                   [self.cdi_id(claim.uid, i)], one.get("shareID"))
            for i, one in enumerate(mine)
        ]

    def _write_spec(self, claim, devices):
        spec = {
            "cdiVersion": "0.6.0",
            "kind": f"{self.name}/claim",
            "devices": [
                {"name": f"{claim.uid}-{i}",
                 "containerEdits": {"env": [f"DEVICE_{i}={device.pool}/{device.name}"]}}
                for i, device in enumerate(devices)
            ],
        }
        if not devices:
            spec["devices"] = [{"name": "none", "containerEdits": {"env": ["NO=1"]}}]
        self.write_spec(self.spec_path(claim.uid), json.dumps(spec))

    @staticmethod
    def _put_spec(path, text):
        with open(f"{path}.new", "w", encoding="utf-8") as file:
            file.write(text)
        os.rename(f"{path}.new", path)

    def _prepare(self, claim):
        devices = self.devices_of(claim)
        self._write_spec(claim, devices)
        return devices

    def _unprepare(self, claim):
        try:
            os.unlink(self.spec_path(claim.uid))
        except FileNotFoundError:
            pass  # it never was, or is asked for again
        return None

    def _work(self, service, kind, claims):
        """(claim, devices, error) of each."""
        keys = {(kind, claim.uid) for claim in claims}
        with self._lock:
            self.calls.append((service, kind, claims))
            self.overlaps += self._under_way & keys
            self._under_way |= keys
        try:
            self.before(kind, claims)
            done = []
            for claim in claims:
                try:
                    work = self._prepare if kind == "prepare" else self._unprepare
                    done.append((claim, work(claim), ""))
                except (LookupError, OSError, kubernetes.client.ApiException) as error:
                    done.append((claim, None, f"{type(error).__name__}: {error}"))
            self.after(kind, claims)
        finally:
            with self._lock:
                self._under_way -= keys
        return done

    def n_calls(self, kind):
        return sum(1 for _, one, _ in self.calls if one == kind)

    def names(self, kind):
        """The names of the claims of each call."""
        return [sorted(claim.name for claim in claims) for _, one, claims in self.calls
                if one == kind]

    # How it is asked

    def _fail(self, context, error):
        context.abort(grpc.StatusCode.INTERNAL, str(error))

    def _fill(self, service, entry, devices):
        """One claim's answer, as the service has it."""
        if service == "v1alpha3-a":
            entry.cdi_devices.extend(i for device in devices for i in device.cdi_ids)
            return
        for device in devices:
            made = entry.devices.add(
                request_names=device.requests, pool_name=device.pool, device_name=device.name,
                cdi_device_ids=device.cdi_ids,
            )
            if service == "v1" and device.share_id is not None:
                made.share_id = device.share_id

    def _batch(self, service, kind):
        pb = protos.load(SERVICES[service][1])
        verb = kind.capitalize()
        request_type = getattr(pb, f"Node{verb}ResourcesRequest")
        response_type = getattr(pb, f"Node{verb}ResourcesResponse")

        def handle(request, context):
            claims = [Claim(one.namespace, one.name, one.uid) for one in request.claims]
            for one in request.claims if service == "v1alpha3-a" else ():
                self.handles.append((kind, one.name, one.resource_handle,
                                     list(one.structured_resource_handle)))
            response = response_type()
            self.caller.is_there = context.is_active
            try:
                for claim, devices, error in self._work(service, kind, claims):
                    entry = response.claims[claim.uid]
                    entry.error = error
                    if devices:
                        self._fill(service, entry, devices)
            except RuntimeError as error:
                self._fail(context, error)
            return self.answer(kind, response, claims)

        return unary(handle, request_type)

    def _lone(self, service, kind):
        pb = protos.load(SERVICES[service][1])
        verb = kind.capitalize()
        request_type = getattr(pb, f"Node{verb}ResourceRequest")
        response_type = getattr(pb, f"Node{verb}ResourceResponse")

        def handle(request, context):
            claim = Claim(request.namespace, request.claim_name, request.claim_uid)
            if service == "v1alpha1" and kind == "unprepare":
                self.seen_cdi.append(list(request.cdi_devices))
            else:
                self.handles.append((kind, request.claim_name, request.resource_handle, list(
                    getattr(request, "structured_resource_handle", ()))))
            response = response_type()
            self.caller.is_there = context.is_active
            try:
                ((_, devices, error),) = self._work(service, kind, [claim])
            except RuntimeError as failure:
                self._fail(context, failure)
            if error:
                self._fail(context, error)
            for device in devices or ():
                response.cdi_devices.extend(device.cdi_ids)
            return self.answer(kind, response, [claim])

        return unary(handle, request_type)

    def _handlers(self):
        for service in self.services:
            make, end = (self._lone, "") if service in PER_CLAIM else (self._batch, "s")
            methods = {
                f"NodePrepareResource{end}": make(service, "prepare"),
                f"NodeUnprepareResource{end}": make(service, "unprepare"),
            }
            if service == "v1alpha3-a" and self.offers is not None:
                pb = protos.load("dra_v1alpha3")
                methods["NodeListAndWatchResources"] = grpc.unary_stream_rpc_method_handler(
                    lambda request, context, pb=pb: self._watch(
                        lambda: self._offer_message(pb), context),
                    pb.NodeListAndWatchResourcesRequest.FromString, encode,
                )
            yield grpc.method_handlers_generic_handler(SERVICES[service][0], methods)
        for version in self.health_services:
            pb = protos.load(f"health_{version}")
            yield grpc.method_handlers_generic_handler(f"{version}.DRAResourceHealth", {
                "NodeWatchResources": grpc.unary_stream_rpc_method_handler(
                    lambda request, context, pb=pb: self._watch(
                        lambda: self._health_message(pb), context),
                    pb.NodeWatchResourcesRequest.FromString, encode,
                ),
            })

    # Health

    def _health_message(self, pb):
        message = pb.NodeWatchResourcesResponse()
        for name, (health, text, timeout) in self.health.items():
            message.devices.add(
                device=pb.DeviceIdentifier(pool_name=self.node, device_name=name),
                health=HEALTH[health], last_updated_time=int(time.time()),
                health_check_timeout_seconds=timeout, message=text,
            )
        return message

    def _offer_message(self, pb):
        """A model for each device: what becomes of several is seen, too."""
        message = pb.NodeListAndWatchResourcesResponse()
        for name, attributes in self.offers.items():
            instance = message.resources.add().namedResources.instances.add(name=name)
            for key, (kind, value) in attributes.items():
                made = instance.attributes.add(name=key).attributeValue
                if kind == "quantity":
                    made.quantity.string = value
                elif kind == "intSlice":
                    made.intSlice.ints.extend(value)
                else:
                    setattr(made, kind, value)
        return message

    def _watch(self, message, context):
        stream = queue.Queue()
        with self._lock:
            self._streams.append(stream)
        context.add_callback(lambda: stream.put("end"))
        try:
            yield message()
            while (news := stream.get()) != "end":
                yield news if isinstance(news, bytes) else message()
        finally:
            with self._lock:
                self._streams.remove(stream)

    @property
    def n_streams(self):
        return len(self._streams)

    def set_health(self, device, health, message="", timeout=0):
        self.health[device] = (health, message, timeout)
        self.send("news")

    def send(self, news):
        """Bytes are sent as they are; "end" ends all streams."""
        with self._lock:
            for stream in self._streams:
                stream.put(news)

    # Its life

    def serve(self):
        """The service, then the registration: who is registered can be called."""
        if self.one_socket:
            self.serve_registration(*self._handlers())
            return self
        self._server = start_server(self.socket, *self._handlers())
        self.serve_registration()
        return self

    def serve_registration(self, *more):
        """A socket that is seen before it listens is tried again a second later: it is renamed to
        what it is looked for by."""
        path = self.registrar.socket
        self.registrar.socket = os.path.join(os.path.dirname(path), f".{os.path.basename(path)}")
        self.registrar.serve(*more)
        os.rename(self.registrar.socket, path)
        self.registrar.socket = path

    def serve_again(self):
        """The service only."""
        self._server = start_server(self.socket, *self._handlers())

    def stop_serving(self):
        """The service only: the registration stays."""
        if self._server:
            self.send("end")
            self._server.stop(0).wait()
            self._server = None

    def stop(self):
        self.send("end")
        self.registrar.stop()
        self.stop_serving()
        if os.path.exists(self.socket):
            os.unlink(self.socket)

    @property
    def is_registered(self):
        return self.registrar.is_registered


# The program


def say(*words):
    """A line at once, whoever else has one."""
    sys.stdout.write(" ".join(words) + "\n")
    sys.stdout.flush()


class Orders:
    """What to do when, told on stdin."""

    def __init__(self, driver):
        self.driver = driver
        self.deaths = set()
        self.failing = "never"
        driver.before = self.before
        driver.after = self.after

    @staticmethod
    def die():
        os.kill(os.getpid(), signal.SIGKILL)

    def before(self, kind, claims):
        say(kind, ",".join(map(str, claims)))
        if (kind, "before") in self.deaths:
            self.die()
        if self.failing == kind:
            raise RuntimeError(f"told to fail {kind}")

    def after(self, kind, claims):
        if (kind, "done") in self.deaths:
            self.die()
        if (kind, "after") in self.deaths:
            threading.Timer(0.1, self.die).start()

    def follow(self, line):
        words = line.split()
        if words[:1] == ["die"]:
            self.deaths.add((words[1], words[2]))
        elif words[:1] == ["fail"]:
            self.failing = words[1]
        elif words[:1] == ["health"]:
            self.driver.set_health(words[1], words[2])
        say("ok", line)


def main():
    parser = argparse.ArgumentParser()
    for name in ("driver", "node", "kubeconfig", "kubelet-dir", "cdi-dir"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--instance", default="")
    given = parser.parse_args()
    api = ClaimReader(given.kubeconfig)
    driver = Driver(
        given.kubelet_dir, given.cdi_dir, given.driver, api, given.node, given.instance,
        versions=("v1.DRAPlugin", "v1.DRAResourceHealth"), health=("v1",),
    )
    orders = Orders(driver)
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    told = driver.registrar.told

    def watch_registration():
        n = 0
        while not stop.is_set():
            if len(told) > n:
                n = len(told)
                say("registered" if told[-1][0] else f"refused {told[-1][1]}")
            time.sleep(0.02)

    def read_orders():
        for line in sys.stdin:
            orders.follow(line.strip())

    driver.serve()
    api.publish(given.driver, given.node, [f"device-{i}" for i in range(4)])
    for run in (watch_registration, read_orders):
        threading.Thread(target=run, daemon=True).start()
    say("ready")
    stop.wait()
    driver.stop()


if __name__ == "__main__":
    main()
