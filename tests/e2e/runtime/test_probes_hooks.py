"""Probes and hooks of containers, and how long an end takes."""

import concurrent.futures
import time

import grpc
from procs import until
from runtime_nodes import WAIT_S, container, pod

OFTEN = {"periodSeconds": 1, "failureThreshold": 1, "timeoutSeconds": 1}


def condition(status, name):
    """Its status; None: it is not there yet."""
    return next((one["status"] for one in status.get("conditions", ())
                 if one["type"] == name), None)


def restarts(status, index=0):
    return status["containerStatuses"][index]["restartCount"]


def test_readiness_and_liveness(node):
    """By a command: ready once the file is there, killed once the other one is gone."""
    main = container(
        script="touch /alive; sleep 1; touch /ready; while [ -e /ready ]; do sleep 0.1; done; "
               "rm /alive; sleep 1000",
        readinessProbe={"exec": {"command": ["cat", "/ready"]}, **OFTEN},
        livenessProbe={"exec": {"command": ["cat", "/alive"]}, "initialDelaySeconds": 1, **OFTEN})
    node.add(pod("p", main, terminationGracePeriodSeconds=1))
    node.wait_status("p", lambda s: condition(s, "Ready") == "True", "ready")
    uid = node.pod("p")["status"]["containerStatuses"][0]["containerID"].rpartition("/")[2]
    node.runtime.cri().exec(uid, "rm", "/ready")
    node.wait_status("p", lambda s: restarts(s) == 1, "restarted")
    texts = {message for reason, message in node.events("p") if reason == "Killing"}
    assert "Container main failed liveness probe, will be restarted" in texts
    assert "Unhealthy" in {reason for reason, _ in node.events("p")}


def test_http_and_tcp_probes(node):
    server = container(
        script="mkdir /w && echo hello >/w/index.html && httpd -f -p 8080 -h /w",
        ports=[{"name": "web", "containerPort": 8080}],
        startupProbe={"tcpSocket": {"port": "web"}, "periodSeconds": 1, "failureThreshold": 60},
        readinessProbe={"httpGet": {"path": "/", "port": "web"}, **OFTEN})
    missing = container("missing", "httpd -f -p 8081",
                        readinessProbe={"httpGet": {"path": "/none", "port": 8081}, **OFTEN})
    node.add(pod("p", server, missing))
    status = node.wait_status(
        "p", lambda s: {one["name"]: one["ready"] for one in s.get("containerStatuses", [])} ==
        {"main": True, "missing": False}, "one is ready")
    assert condition(status, "Ready") == "False"
    until(lambda: ("Unhealthy", "Readiness probe failed: HTTP probe failed with statuscode: 404")
          in node.events("p"), WAIT_S, node.events("p"))


class Health(grpc.GenericRpcHandler):
    """grpc.health.v1: answers with the number that `status` is at the moment."""

    status = 2

    def service(self, details):
        if details.method != "/grpc.health.v1.Health/Check":
            return None
        return grpc.unary_unary_rpc_method_handler(lambda request, context: bytes([8, self.status]))


def test_a_grpc_probe(node):
    """The pod is on the host's network, where the test serves."""
    health = Health()
    server = grpc.server(concurrent.futures.ThreadPoolExecutor(), handlers=[health])
    port = server.add_insecure_port("0.0.0.0:0")
    server.start()
    node.add(pod("p", container(readinessProbe={"grpc": {"port": port}, **OFTEN}),
                 hostNetwork=True))
    node.wait_phase("p", "Running")
    text = 'Readiness probe failed: service unhealthy (responded with "NOT_SERVING")'
    until(lambda: ("Unhealthy", text) in node.events("p"), WAIT_S, node.events("p"))
    health.status = 1
    node.wait_status("p", lambda s: condition(s, "Ready") == "True", "ready")
    server.stop(0)
    node.wait_status("p", lambda s: condition(s, "Ready") == "False", "not ready any more")


def test_a_probe_that_hangs_harms_nobody(node):
    node.add(pod("p", container(
        readinessProbe={"exec": {"command": ["sleep", "1000"]}, **OFTEN})))
    node.wait_phase("p", "Running")
    until(lambda: "Unhealthy" in {reason for reason, _ in node.events("p")}, WAIT_S, "unhealthy")
    node.add(pod("q"))
    node.wait_phase("q", "Running")
    node.delete("p")
    node.wait_gone("p")


def test_a_probe_that_nobody_answers_says_the_same_each_time(node):
    """So that its events are counted, and do not hide others."""
    node.add(pod("p", container(readinessProbe={"httpGet": {"port": 81}, **OFTEN}),
                 container("other", readinessProbe={"tcpSocket": {"port": 81}, **OFTEN}),
                 terminationGracePeriodSeconds=1))
    address = node.wait_phase("p", "Running")["status"]["podIP"] + ":81"
    refused = f"dial tcp {address}: connect: connection refused"
    texts = {f"Readiness probe failed: {refused}",
             f'Readiness probe failed: Get "http://{address}/": {refused}'}
    until(lambda: {text for reason, text in node.events("p") if reason == "Unhealthy"} == texts,
          WAIT_S, lambda: node.events("p"))


def test_hooks(node):
    """What the hooks wrote is in a folder of the host."""
    folder = f"{node.root}/shared"
    hooked = container(
        script="trap 'echo term >>/v/order; exit 0' TERM; while :; do sleep 0.1; done",
        lifecycle={"postStart": {"exec": {"command": ["sh", "-c", "echo start >>/v/order"]}},
                   "preStop": {"exec": {"command": ["sh", "-c", "echo stop >>/v/order"]}}},
        volumeMounts=[{"name": "v", "mountPath": "/v"}])
    node.add(pod("p", hooked, terminationGracePeriodSeconds=30, volumes=[
        {"name": "v", "hostPath": {"path": folder, "type": "DirectoryOrCreate"}}]))
    node.wait_phase("p", "Running")
    until(lambda: read(folder) == ["start"], WAIT_S, "postStart")
    begin = time.monotonic()
    node.delete("p")
    node.wait_gone("p")
    assert read(folder) == ["start", "stop", "term"]
    assert time.monotonic() - begin < 30  # it has obeyed


def read(folder):
    try:
        with open(f"{folder}/order", encoding="ascii") as file:
            return file.read().split()
    except FileNotFoundError:
        return []


def test_a_deadline(node):
    node.add(pod("p", activeDeadlineSeconds=2))
    status = node.wait_phase("p", "Failed")["status"]
    assert status["reason"] == "DeadlineExceeded"
    assert not node.pods_here()
