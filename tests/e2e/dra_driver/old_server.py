"""An API server that knows only an older version of resource.k8s.io: a proxy before a real one."""

import http.client
import http.server
import json
import re
import threading


class OldServer:
    """Answers 404 for versions of resource.k8s.io but `version`, and hands on all else."""

    def __init__(self, cluster, version):
        self.cluster = cluster
        self.version = version
        self.seen = []  # (method, path) of what it handed on
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def handle_any(self):
                outer.handle(self)

            do_GET = do_POST = do_PUT = do_DELETE = do_PATCH = handle_any

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def handle(self, request):
        body = request.rfile.read(int(request.headers.get("Content-Length", 0)))
        found = re.match(r"/apis/resource\.k8s\.io/([^/?]+)", request.path)
        if found and found.group(1) != self.version:
            answer = b"404 page not found\n"  # as one does for a path that it has not
            request.send_response(404)
            request.send_header("Content-Type", "text/plain")
            request.send_header("Content-Length", str(len(answer)))
            request.end_headers()
            request.wfile.write(answer)
            return
        self.seen.append((request.command, request.path))
        api = self.cluster.api()
        upstream = http.client.HTTPSConnection("127.0.0.1", api.port, context=api.context) \
            if api.context else http.client.HTTPConnection("127.0.0.1", api.port)
        fields = {name: value for name, value in request.headers.items()
                  if name.lower() in ("accept", "content-type")}
        upstream.request(request.command, request.path, body=body or None,
                         headers={**fields, "Authorization": f"Bearer {api.token}"})
        answer = upstream.getresponse()
        request.send_response(answer.status)
        request.send_header("Content-Type", answer.headers.get("Content-Type", ""))
        request.send_header("Connection", "close")
        request.end_headers()
        request.close_connection = True
        while data := answer.read1(65536):
            request.wfile.write(data)
            request.wfile.flush()
        upstream.close()

    def kubeconfig(self, path):
        """Written there."""
        port = self.server.server_address[1]
        config = {
            "apiVersion": "v1", "kind": "Config", "current-context": "c",
            "clusters": [{"name": "c", "cluster": {"server": f"http://127.0.0.1:{port}"}}],
            "users": [{"name": "u", "user": {}}],
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        }
        with open(path, "w", encoding="utf-8") as file:
            json.dump(config, file)
        return path

    def close(self):
        self.server.shutdown()
        self.server.server_close()
