"""Requests as large as they may be are answered, and nobody else waits for them."""

import json
import os
import threading
import time

import pytest

from servers import CLAIMS, MAPS, PODS, PATIENCE_S, claim, config_map

APPLY = "application/apply-patch+yaml"
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
JSON_PATCH = "application/json-patch+json"

# The sanitizer build is ten times slower. Sizes as large as a request may be are in
# ./dev bench stall, and that nothing is quadratic in src/resource/tests/test_growth.c.
SCALE = 10 if "asan" in os.environ.get("DAVIT_BUILD", "") else 1
N_ENV = 20000 // SCALE
N_MANY = 20000 // SCALE
N_OWNERS = 10000 // SCALE


def pod(name, container=None, **spec):
    one = {"name": "c", "image": "x", **(container or {})}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"containers": [one], "schedulingGates": [{"name": "g"}], **spec},
    }


def env_pod(name, value="v"):
    # Patches replace the containers, and with them what the server would have mounted there.
    return pod(name, {"env": [{"name": f"E{i}", "value": value} for i in range(N_ENV)]},
               automountServiceAccountToken=False)


def owned_map(name):
    owners = [
        {"apiVersion": "apps/v1", "kind": "Deployment", "name": f"o{i}", "uid": f"u{i}"}
        for i in range(N_OWNERS)
    ]
    return config_map(name, ownerReferences=owners)


class Bystander:
    """Asks for /healthz again and again, and notes how long the slowest answer took."""

    def __init__(self, node):
        self.api = node.api()
        self.slowest_s = 0
        self.n_answers = 0
        self.failure = None
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def _run(self):
        try:
            while not self._is_over.is_set():
                before = time.monotonic()
                answer = self.api.ask("GET", "/healthz")
                assert answer.status == 200, answer
                self.slowest_s = max(self.slowest_s, time.monotonic() - before)
                self.n_answers += 1
        except Exception as failure:  # told by the test
            self.failure = failure

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._is_over.set()
        self._thread.join()


def send(api, method, path, body, content_type="application/json"):
    """The status; with a connection that waits longer than most."""
    connection = api.connect()
    connection.timeout = 2 * PATIENCE_S
    fields = api.fields({"Content_Type": content_type})
    connection.request(method, path, body=json.dumps(body), headers=fields)
    status = connection.getresponse().status
    connection.close()
    return status


def numbers():
    return range(N_MANY)


REQUESTS = {
    "env": lambda: [
        ("POST", PODS, env_pod("p"), "application/json", 201),
        ("PATCH", f"{PODS}/p?fieldManager=a&force=true", env_pod("p"), APPLY, 200),
        ("PATCH", f"{PODS}/p?fieldManager=a&force=true", env_pod("p"), APPLY, 200),
        ("PATCH", f"{PODS}/p?fieldManager=b&force=true", env_pod("p", "w"), APPLY, 422),
    ],
    "patches": lambda: [
        ("POST", PODS, env_pod("p"), "application/json", 201),
        ("PATCH", f"{PODS}/p", env_pod("p"), MERGE, 200),
        ("PATCH", f"{PODS}/p", env_pod("p"), STRATEGIC, 200),
        ("PATCH", f"{PODS}/p",
         [{"op": "test", "path": "/metadata/name", "value": "p"} for _ in range(N_ENV // 2)],
         JSON_PATCH, 200),
    ],
    "containers": lambda: [
        ("POST", PODS, pod("p", containers=[{"name": f"c{i}", "image": "x"} for i in numbers()]),
         "application/json", 201),
    ],
    "limits": lambda: [
        ("POST", PODS, pod("p", {"resources": {"limits": {f"a.b/r{i}": "1" for i in numbers()}}}),
         "application/json", 201),
    ],
    "claims": lambda: [
        ("POST", PODS,
         pod("p", {"resources": {"claims": [{"name": f"c{i}"} for i in numbers()]}},
             resourceClaims=[{"name": f"c{i}", "resourceClaimName": "x"} for i in numbers()]),
         "application/json", 201),
    ],
    "unknown claims": lambda: [
        ("POST", PODS,
         pod("p", {"resources": {"claims": [{"name": f"d{i}"} for i in numbers()]}},
             resourceClaims=[{"name": f"c{i}", "resourceClaimName": "x"} for i in numbers()]),
         "application/json", 422),
    ],
    "owners": lambda: [
        ("PATCH", f"{MAPS}/m?fieldManager=a&force=true", owned_map("m"), APPLY, 201),
        ("PATCH", f"{MAPS}/m?fieldManager=a&force=true", owned_map("m"), APPLY, 200),
    ],
    "claim requests": lambda: [
        ("POST", CLAIMS, claim("c") | {"spec": {"devices": {"requests": [
            {"name": f"r{i}", "exactly": {"deviceClassName": "x"}} for i in numbers()]}}},
         "application/json", 422),
    ],
}


@pytest.mark.parametrize("what", REQUESTS)
def test_a_large_request_is_answered_and_nobody_waits_for_it(node, api, what):
    requests = REQUESTS[what]()
    with Bystander(node) as bystander:
        statuses = [send(api, *request[:4]) for request in requests]
    assert statuses == [request[4] for request in requests]
    assert bystander.failure is None
    assert bystander.n_answers > 0
    # A stall of the loop took from 3 s to minutes; what is above this is no noise of the machine.
    assert bystander.slowest_s < PATIENCE_S / 2
