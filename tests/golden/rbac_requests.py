#!/usr/bin/env python3
"""Replays the requests and writes of golden/rbac against the embedded API:

    golden_rbac__requests DIR

The worlds stand one after another on one server. An administrator impersonates the users; what
changes something is a dry run.
"""
import http.client
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SERVER = Path(__file__).resolve().parent / "api_server"
GROUP = "/apis/rbac.authorization.k8s.io/v1"
PLURALS = {"Role": "roles", "ClusterRole": "clusterroles", "RoleBinding": "rolebindings",
           "ClusterRoleBinding": "clusterrolebindings"}
PATIENCE_S = 20


class Api:
    def __init__(self, port):
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_S)

    def ask(self, method, path, body=None, who=None, kind="application/json"):
        """(status, document or text); who is (user, groups, extra)."""
        self.connection.putrequest(method, path)
        self.connection.putheader("Authorization", "Bearer tokadmin")
        self.connection.putheader("Accept", "application/json")
        if who:
            user, groups, extra = who
            self.connection.putheader("Impersonate-User", user)
            for group in groups:
                self.connection.putheader("Impersonate-Group", group)
            for key, values in extra.items():
                for value in values:
                    self.connection.putheader(f"Impersonate-Extra-{key}", value)
        data = b"" if body is None else json.dumps(body).encode()
        if body is not None:
            self.connection.putheader("Content-Type", kind)
        self.connection.putheader("Content-Length", str(len(data)))
        self.connection.endheaders(data)
        answer = self.connection.getresponse()
        text = answer.read().decode(errors="replace")
        try:
            return answer.status, json.loads(text)
        except ValueError:
            return answer.status, text

    def must(self, method, path, body=None):
        status, doc = self.ask(method, path, body)
        assert status < 300, (method, path, status, doc)
        return doc


def place_of(obj):
    namespace = obj["metadata"].get("namespace")
    return f"{GROUP}/namespaces/{namespace}/{PLURALS[obj['kind']]}" if namespace else \
        f"{GROUP}/{PLURALS[obj['kind']]}"


def until(condition, what):
    end = time.monotonic() + PATIENCE_S
    while not condition():
        if time.monotonic() > end:
            print(f"not within {PATIENCE_S} s: {what}")
            return False
        time.sleep(0.02)
    return True


def who_of(record):
    return record["user"], record.get("groups") or [], record.get("extra") or {}


def is_refused(status, doc):
    """Whether the authorizer refused it, and not the API for another reason."""
    return status == 403 and "cannot" in (doc["message"] if isinstance(doc, dict) else doc)


def dry(path):
    return path + ("&" if "?" in path else "?") + "dryRun=All"


def replay_request(api, record):
    method, path = record["method"], record["path"]
    body, kind = None, "application/json"
    if method in ("POST", "PUT"):
        body = {}
    if method == "PATCH":
        body, kind = {"metadata": {}}, "application/merge-patch+json"
    if method != "GET" and path.startswith("/api"):
        path = dry(path)
    if "watch=" in path:
        path += "&timeoutSeconds=1"
    status, doc = api.ask(method, path, body, who_of(record), kind)
    if is_refused(status, doc) == record["forbidden"]:
        return None
    return f"{method} {record['path']} by {who_of(record)}: {status}, forbidden: {record['forbidden']}"


def causes_of(doc):
    found = (doc.get("details") or {}).get("causes") or []
    return sorted((cause.get("reason"), cause.get("field")) for cause in found)


def replay_write(api, record):
    kind = "application/merge-patch+json" if record["method"] == "PATCH" else "application/json"
    status, doc = api.ask(record["method"], dry(record["path"]), record["body"], who_of(record),
                          kind)
    wanted = (record["code"], record.get("reason"),
              sorted((cause.get("reason"), cause.get("field"))
                     for cause in record.get("causes") or []))
    got = (status, doc.get("reason"), causes_of(doc))
    if got == wanted and (status < 400 or doc["message"] == record["message"]):
        return None
    return (f"{record['method']} {record['path']} by {who_of(record)}: {got}, want {wanted}\n"
            f"      {doc.get('message')}\n      {record.get('message')}")


def play(api, world):
    """(what differs, how much was played)"""
    differences = []
    for obj in world["objects"]:
        api.must("POST", place_of(obj), obj)
    for name, rules in (world.get("resulting") or {}).items():
        path = f"{GROUP}/clusterroles/{name}"
        if not until(lambda p=path, r=rules: api.must("GET", p)["rules"] == r, name):
            differences.append(f"{name}: {api.must('GET', path)['rules']}\n      {rules}")
    for records, replay in ((world.get("requests") or [], replay_request),
                            (world.get("writes") or [], replay_write)):
        differences += filter(None, (replay(api, record) for record in records))
    for obj in world["objects"]:
        api.must("DELETE", f"{place_of(obj)}/{obj['metadata']['name'].replace('%', '%25')}")
    return differences, sum(len(world.get(key) or []) for key in
                            ("resulting", "requests", "writes"))


def main():
    passed = failed = 0
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="davit-rbac-", dir=memory) as place:
        server = subprocess.Popen([SERVER, "--anonymous", "on", "--accounts", "on", "--store",
                                   os.path.join(place, "api.db")], stdout=subprocess.PIPE,
                                  text=True)
        try:
            api = Api(int(server.stdout.readline()))
            until(lambda: api.ask("GET", f"{GROUP}/clusterroles/view")[0] == 200, "default roles")
            for namespace in ("team-a", "team-b"):
                api.must("POST", "/api/v1/namespaces", {"metadata": {"name": namespace}})
            for path in sorted(Path(sys.argv[1]).glob("*.jsonl")):
                for line in path.read_text(encoding="utf-8").splitlines():
                    world = json.loads(line)
                    if "objects" not in world:
                        continue
                    differences, played = play(api, world)
                    for difference in differences:
                        print(f"{world['id']}: {difference}")
                    failed += len(differences)
                    passed += played - len(differences)
        finally:
            server.terminate()
            server.wait()
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
