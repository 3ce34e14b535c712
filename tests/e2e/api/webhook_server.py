"""An admission webhook over HTTPS on Python's own HTTP server: what it answers is a function of the request."""

import base64
import json
import select
import ssl
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from certificates import make_certificate

NAMES = "DNS:hook.hooks.svc,DNS:localhost,IP:127.0.0.1"


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # as servers of webhooks have it; otherwise each answer takes 40 ms

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.hook.take(self, self.path, json.loads(body))

    def log_message(self, *_):
        pass


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_):
        pass  # a client that leaves is no news


class Webhook:
    """`rules` are functions by path: they get the request of the review, and return the response, or
    bytes that are sent as they are, or (status, bytes)."""

    def __init__(self, folder, names=NAMES):
        self.ca = make_certificate(folder, "hook-ca", "/CN=hook-ca", None,
                                   "basicConstraints=critical,CA:TRUE")
        cert, key = make_certificate(folder, "hook", "/CN=hook", self.ca, f"subjectAltName={names}")
        self.rules = {}
        self.seen = []  # (path, review), in the order in which they came
        self.released = threading.Event()
        self.left = threading.Event()
        self.current = threading.local()
        self.server = Server(("127.0.0.1", 0), Handler)
        self.server.hook = self
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(cert, key)
        self.server.socket = context.wrap_socket(self.server.socket, server_side=True,
                                                 do_handshake_on_connect=False)
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    @property
    def bundle(self):
        with open(self.ca[0], "rb") as file:
            return base64.b64encode(file.read()).decode()

    def take(self, handler, target, review):
        path = target.split("?")[0]
        self.seen.append((target, review))
        self.current.connection = handler.connection
        said = self.rules[path](review["request"])
        status = 200
        if isinstance(said, tuple):
            status, said = said
        if isinstance(said, dict):
            said = json.dumps({
                "apiVersion": review["apiVersion"], "kind": "AdmissionReview",
                "response": {"uid": review["request"]["uid"]} | said}).encode()
        handler.send_response(status)
        handler.send_header("Content-Type", "application/json")
        handler.send_header("Content-Length", str(len(said)))
        if status // 100 == 3:
            handler.send_header("Location", f"https://127.0.0.1:{self.port}/allow")
        handler.end_headers()
        handler.wfile.write(said)

    def hang(self, _request):
        """Until it is told to answer, or whoever asked has left."""
        connection = self.current.connection
        while not self.released.is_set():
            if select.select([connection], [], [], 0.05)[0]:
                self.left.set()
                break
        return {"allowed": True}

    def requests(self, path):
        return [review["request"] for target, review in list(self.seen)
                if target.split("?")[0] == path]

    def close(self):
        self.released.set()
        self.server.shutdown()
        self.server.server_close()

    def url(self, path):
        return {"url": f"https://127.0.0.1:{self.port}{path}", "caBundle": self.bundle}

    def service(self, path):
        return {"service": {"name": "hook", "namespace": "hooks", "path": path},
                "caBundle": self.bundle}


def patch(*operations):
    return {"allowed": True, "patchType": "JSONPatch",
            "patch": base64.b64encode(json.dumps(operations).encode()).decode()}


def webhook(name, client, resources=("configmaps",), groups=("",), operations=("*",), **more):
    return {"name": f"{name}.example.com", "clientConfig": client, "sideEffects": "None",
            "admissionReviewVersions": ["v1"], "rules": [{
                "apiGroups": groups, "apiVersions": ["*"], "operations": operations,
                "resources": resources}]} | more


def configuration(name, *hooks):
    return {"metadata": {"name": name}, "webhooks": hooks}
