"""A davitd that serves its API, and plain HTTP clients of it."""

import base64
import http.client
import json
import os
import re
import ssl
import threading

from nodes import Node
from procs import until

# A loaded machine is slow, not broken.
PATIENCE_S = 60
# Of a quarter of a MiB each: more than the changes that are kept for watches, in bytes and count.
HISTORY_WRITES = 160


class Answer:
    def __init__(self, status, fields, body):
        self.status = status
        self.fields = fields
        self.body = body

    @property
    def doc(self):
        return json.loads(self.body)

    def __repr__(self):
        return f"{self.status} {self.body[:2000]!r}"


class Api:
    """Requests on connections that are kept, one a thread."""

    def __init__(self, port, context, token, host="127.0.0.1"):
        self.host = host
        self.port = port
        self.context = context
        self.token = token
        self._local = threading.local()

    def connect(self):
        if self.context:
            return http.client.HTTPSConnection(
                self.host, self.port, context=self.context, timeout=PATIENCE_S
            )
        return http.client.HTTPConnection(self.host, self.port, timeout=PATIENCE_S)

    def fields(self, more):
        fields = {"Authorization": f"Bearer {self.token}"} if self.token else {}
        return fields | {name.replace("_", "-"): value for name, value in more.items()}

    def open(self, method, path, body=None, **fields):
        """The connection, and an answer that is still to be read."""
        connection = self.connect()
        if isinstance(body, (dict, list)):
            body = json.dumps(body)
            fields.setdefault("Content_Type", "application/json")
        connection.request(method, path, body=body, headers=self.fields(fields))
        return connection, connection.getresponse()

    def ask(self, method, path, body=None, **fields):
        if isinstance(body, (dict, list)):
            body = json.dumps(body)
            fields.setdefault("Content_Type", "application/json")
        connection = getattr(self._local, "connection", None)
        if connection is None:
            connection = self._local.connection = self.connect()
        try:
            connection.request(method, path, body=body, headers=self.fields(fields))
            answer = connection.getresponse()
            made = Answer(answer.status, answer.headers, answer.read())
        except BaseException:
            self.disconnect()
            raise
        if answer.will_close:
            self.disconnect()
        return made

    def must(self, method, path, body=None, **fields):
        """The document, when all went well."""
        answer = self.ask(method, path, body, **fields)
        assert answer.status in (200, 201), answer
        return answer.doc

    def refused(self, code, method, path, body=None, **fields):
        """The Status, which has to be a whole one."""
        answer = self.ask(method, path, body, **fields)
        assert answer.status == code, answer
        doc = answer.doc
        assert (doc["kind"], doc["status"], doc["code"]) == ("Status", "Failure", code), doc
        return doc

    def disconnect(self):
        connection = getattr(self._local, "connection", None)
        if connection:
            connection.close()
        self._local.connection = None

    def watch(self, path, **options):
        return Watch(self, path, **options)


class Watch:
    """Events as they come."""

    def __init__(self, api, path, **fields):
        separator = "&" if "?" in path else "?"
        self.connection, self.answer = api.open("GET", f"{path}{separator}watch=true", **fields)
        assert self.answer.status == 200, self.answer.read()

    def next(self):
        """The next event; None at the end of the stream."""
        line = self.answer.readline()
        return json.loads(line) if line else None

    def until(self, condition):
        """The events up to the one for which it holds."""
        events = []
        while True:
            event = self.next()
            assert event is not None, f"the stream ended after {events[-3:]}"
            events.append(event)
            if condition(event):
                return events

    def close(self):
        self.connection.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def merge_patch(api, path, patch):
    return api.ask("PATCH", path, json.dumps(patch), Content_Type="application/merge-patch+json")


class ApiNode(Node):
    def __init__(self, procs, root, *options):
        super().__init__(procs, root, *options)
        self.listen = "127.0.0.1:0"

    @property
    def kubeconfig(self):
        return os.path.join(self.state_dir, "admin.kubeconfig")

    def _setting(self, name):
        with open(self.kubeconfig, encoding="ascii") as config:
            return re.search(rf"\b{name}: *\"?([^\s\"]+)", config.read()).group(1)

    @property
    def is_plain(self):
        return self._setting("server").startswith("http:")

    @property
    def port(self):
        return int(self._setting("server").rpartition(":")[2])

    @property
    def token(self):
        return self._setting("token")

    @property
    def ca(self):
        return base64.b64decode(self._setting("certificate-authority-data")).decode()

    def context(self):
        return None if self.is_plain else ssl.create_default_context(cadata=self.ca)

    def watches(self, resource):
        """How many are open."""
        text = self.api().ask("GET", "/metrics").body.decode()
        found = re.search(
            rf'^apiserver_longrunning_requests{{resource="{resource}"}} (\d+)', text, re.M)
        return int(found.group(1)) if found else 0

    def wait_watches(self, resource, n):
        until(lambda: self.watches(resource) >= n, PATIENCE_S, f"{n} watches of {resource}")

    def outgrow_history(self, api):
        """Changes until the first of them are forgotten: they are kept by count and by size."""
        text = "x" * (1 << 18)
        api.ask("POST", MAPS, config_map("grown"))
        for number in range(HISTORY_WRITES):
            answer = merge_patch(api, f"{MAPS}/grown", {"data": {"t": f"{number}{text}"}})
            assert answer.status == 200, answer

    def api(self, **options):
        return Api(self.port, options.get("context", self.context()),
                   options.get("token", self.token))


def config_map(name, data=None, **metadata):
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, **metadata},
        "data": data or {},
    }


def claim(name, version="v1", **metadata):
    request = {"name": "r", "exactly": {"deviceClassName": "gpu"}}
    if version == "v1beta1":
        request = {"name": "r", "deviceClassName": "gpu"}
    return {
        "apiVersion": f"resource.k8s.io/{version}",
        "kind": "ResourceClaim",
        "metadata": {"name": name, **metadata},
        "spec": {"devices": {"requests": [request]}},
    }


def device_slice(name, node="n1", driver="gpu.example.com", n_devices=1, version="v1"):
    def device(number):
        body = {"attributes": {"index": {"int": number}}, "capacity": {"memory": {"value": "1Gi"}}}
        if version == "v1beta1":
            return {"name": f"d{number}", "basic": body}
        return {"name": f"d{number}", **body}

    return {
        "apiVersion": f"resource.k8s.io/{version}",
        "kind": "ResourceSlice",
        "metadata": {"name": name},
        "spec": {
            "driver": driver,
            "nodeName": node,
            "pool": {"name": node, "generation": 1, "resourceSliceCount": 1},
            "devices": [device(number) for number in range(n_devices)],
        },
    }


CORE = "/api/v1"
MAPS = f"{CORE}/namespaces/default/configmaps"
PODS = f"{CORE}/namespaces/default/pods"
NODES = f"{CORE}/nodes"
RESOURCE = "/apis/resource.k8s.io"
SLICES = f"{RESOURCE}/v1/resourceslices"
CLAIMS = f"{RESOURCE}/v1/namespaces/default/resourceclaims"
