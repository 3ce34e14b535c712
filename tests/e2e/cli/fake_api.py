"""An API server of which each test says the answers, so that it can also be a bad one."""

import http.server
import json
import socket
import threading
import urllib.parse


def status(code, reason, message, **details):
    """The Status object of a failure."""
    return {
        "apiVersion": "v1", "kind": "Status", "status": "Failure",
        "code": code, "reason": reason, "message": message, "details": details,
    }


def not_found(plural, name):
    return 404, status(404, "NotFound", f'{plural} "{name}" not found', name=name, kind=plural)


class Request:
    def __init__(self, handler, body):
        self.method = handler.command
        target = urllib.parse.urlsplit(handler.path)
        self.path = target.path
        self.query = dict(urllib.parse.parse_qsl(target.query))
        self.headers = handler.headers
        self.body = body

    @property
    def json(self):
        return json.loads(self.body)

    def __repr__(self):
        return f"{self.method} {self.path} {self.query} {self.body[:200]}"


class Stream(list):
    """Lines of a watch: each as a chunk; then the answer ends. A function waits for the test."""


class FakeApi:
    """Answers with what `answer(request)` gives: (status, document or text[, fields])."""

    def __init__(self):
        self.requests = []
        self.answer = lambda request: not_found("things", "x")
        fake = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def setup(self):
                super().setup()
                self.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

            def serve(self):
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                request = Request(self, body)
                fake.requests.append(request)
                code, answer, *fields = fake.answer(request)
                self.send_response(code)
                for name, value in (fields[0] if fields else {}).items():
                    self.send_header(name, value)
                if isinstance(answer, Stream):
                    self.stream(answer)
                    return
                text = answer if isinstance(answer, str) else json.dumps(answer)
                data = text.encode()
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def stream(self, lines):
                self.send_header("Transfer-Encoding", "chunked")
                self.end_headers()
                for line in lines:
                    if callable(line):
                        line()
                        continue
                    data = line if isinstance(line, bytes) else (json.dumps(line) + "\n").encode()
                    self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
                    self.wfile.flush()
                self.wfile.write(b"0\r\n\r\n")

            do_GET = do_PATCH = do_DELETE = do_POST = do_PUT = serve

            def log_message(self, *_):
                pass

        class Server(http.server.ThreadingHTTPServer):
            def handle_error(self, request, client_address):
                pass  # a client that goes away is no news

        self.server = Server(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        self.thread = threading.Thread(
            target=self.server.serve_forever, args=(0.02,), daemon=True)
        self.thread.start()

    def stop(self):
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()
