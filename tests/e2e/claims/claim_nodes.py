"""A davitd with its API, whose node prepares claims; the claims and pods that tests make."""

import os
import queue
import socket
import threading

import grpc

from procs import until
from servers import CLAIMS, ApiNode

# A loaded machine is slow, not broken.
WAIT_S = 30
GPU = "gpu.example.com"
NIC = "nic.example.com"


def free_port():
    """Drivers keep the address of the API over a restart of davitd."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


class ClaimNode(ApiNode):
    """Only the API and the node, unless told otherwise: nobody else decides about claims."""

    def __init__(self, procs, root, *options, roles="api,node"):
        self.cdi_dir = os.path.join(root, "cdi")
        self.boot_id_file = os.path.join(root, "boot_id")
        os.makedirs(self.cdi_dir, exist_ok=True)
        self.set_boot_id("first")
        if "--roles" not in options:
            options = ("--roles", roles, *options)
        super().__init__(
            procs, root, "--cdi-dirs", self.cdi_dir, "--boot-id-file", self.boot_id_file, *options,
        )
        self.listen = f"127.0.0.1:{free_port()}"

    def set_boot_id(self, boot_id):
        with open(self.boot_id_file, "w", encoding="ascii") as file:
            file.write(f"{boot_id}\n")

    def claims(self):
        """{name: what the node knows of it}"""
        listed = self.call("ListClaims", self.pb.ListClaimsRequest(), self.pb.ListClaimsResponse)
        return {one.name: one for one in listed.claims}

    def states(self):
        return {name: one.state for name, one in self.claims().items()}

    def wait_states(self, **expected):
        until(lambda: self.states() == expected, WAIT_S, f"{expected}; last {self.states()}")

    def release_claim(self, name, reason):
        request = self.pb.ReleaseClaimRequest(name=name, reason=reason)
        return self.call("ReleaseClaim", request, self.pb.ReleaseClaimResponse)

    def cdi_devices(self, uid, container="main"):
        return list(self.container_options(uid, container).cdi_devices)

    def pods(self):
        """{name: (state, what it waits for)}"""
        return {one.pod.name: (one.state, one.awaited) for one in self.status().pods}

    def wait_awaited(self, name, text):
        until(lambda: text in self.pods().get(name, ("", ""))[1], WAIT_S, f"{name} awaits {text}")

    def is_connected(self, driver):
        return any(one.name == driver and one.connected for one in self.plugins())

    def wait_connected(self, driver):
        until(lambda: self.is_connected(driver), WAIT_S, f"the connection to {driver}")

    def metrics(self):
        """{"name{labels}": value} of DRA's."""
        text = self.api().ask("GET", "/metrics").body.decode()
        lines = (line.rpartition(" ") for line in text.splitlines() if line.startswith("dra_"))
        return {name: float(value) for name, _, value in lines}

    def admit_later(self, pod, wait=WAIT_S):
        """In a thread; `result()` is the answer."""
        return Later(lambda: self.admit(pod, wait=wait, timeout=2 * max(wait, WAIT_S)))

    def release_later(self, uid):
        return Later(lambda: self.release(uid))

    def watch(self, method, request, response):
        """A queue of the answers of a stream; None at its end."""
        channel = grpc.insecure_channel(f"unix:{self.socket}")
        news = queue.Queue()
        call = channel.unary_stream(
            f"/davit.node.v1.Node/{method}", request_serializer=type(request).SerializeToString,
            response_deserializer=response.FromString,
        )(request, wait_for_ready=True)

        def read():
            try:
                for answer in call:
                    news.put(answer)
            except grpc.RpcError:
                pass  # its end
            news.put(None)
            channel.close()

        threading.Thread(target=read, daemon=True).start()
        return news

    def podres_get(self, name):
        return self.podres_call(
            "Get",
            self.podres.GetPodResourcesRequest(pod_name=name, pod_namespace="default"),
            self.podres.GetPodResourcesResponse,
        ).pod_resources


class Later(threading.Thread):
    def __init__(self, function):
        super().__init__(daemon=True)
        self.function = function
        self.value = self.error = None
        self.start()

    def run(self):
        try:
            self.value = self.function()
        except (grpc.RpcError, ValueError) as error:
            self.error = error

    def result(self):
        self.join(2 * WAIT_S)
        assert not self.is_alive(), "no answer"
        if self.error:
            raise self.error
        return self.value


# Objects


def pod(name, claims, uid=None, containers=None, **more):
    """A Pod: `claims` are {name in the pod: ResourceClaim}; one container uses all of them."""
    made = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "uid": uid or f"uid-{name}"},
        "spec": {
            "nodeName": "n1",
            "containers": containers or [container("main", *claims)],
            "resourceClaims": [
                {"name": key, "resourceClaimName": value} for key, value in claims.items()
            ],
        },
    }
    return {**made, **more}


def container(name, *claims):
    """Claims as names, or as (name, request)."""
    uses = [{"name": one} if isinstance(one, str) else {"name": one[0], "request": one[1]}
            for one in claims]
    return {"name": name, "image": "x", "resources": {"claims": uses}}


def allocation(*results):
    """Of (driver, device) or (driver, device, request)."""
    return {
        "devices": {
            "results": [
                {"request": (*one, f"r{i}")[2], "driver": one[0], "pool": "n1", "device": one[1]}
                for i, one in enumerate(results)
            ]
        }
    }


def reserved(*uids):
    return [{"resource": "pods", "name": uid.removeprefix("uid-"), "uid": uid} for uid in uids]


def make_claim(api, name, *results, pods=(), **metadata):
    """An allocated claim, a request r0, r1, ... for each result, for these pods. Its uid."""
    requests = [
        {"name": (*one, f"r{i}")[2], "exactly": {"deviceClassName": "gpu"}}
        for i, one in enumerate(results)
    ]
    made = api.must("POST", CLAIMS, {
        "metadata": {"name": name, **metadata}, "spec": {"devices": {"requests": requests}},
    })
    made["status"] = {
        "allocation": allocation(*results),
        "reservedFor": reserved(*(f"uid-{one}" for one in pods)),
    }
    return api.must("PUT", f"{CLAIMS}/{name}/status", made)["metadata"]["uid"]


def remake_claim(api, name, *results, pods=()):
    """Another one under the same name."""
    claim = api.must("GET", f"{CLAIMS}/{name}")
    api.must("PUT", f"{CLAIMS}/{name}/status", {**claim, "status": {}})
    api.must("DELETE", f"{CLAIMS}/{name}")
    return make_claim(api, name, *results, pods=pods)
