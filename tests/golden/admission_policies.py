#!/usr/bin/env python3
"""Replays golden/admission-policy against the embedded API:

    golden_admission_policy DIR

The worlds stand one after another on one server. An administrator impersonates the users. What a
request is about is made before the policies are, and all is taken away after it.

Of the recorded worlds, those with parameters were answered as if these did not exist ("no params
found"): the recorder did not make them, so they are not made here either. What policies do with
parameters that are there is tested by src/vap/tests/test_vap.c and by the end-to-end tests.
"""
import http.client
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SERVER = Path(__file__).resolve().parent / "api_server"
GROUP = "/apis/admissionregistration.k8s.io/v1"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
PLURALS = {"ValidatingAdmissionPolicy": "validatingadmissionpolicies",
           "ValidatingAdmissionPolicyBinding": "validatingadmissionpolicybindings",
           "ConfigMap": "configmaps", "Secret": "secrets", "Pod": "pods", "Node": "nodes",
           "Namespace": "namespaces", "ServiceAccount": "serviceaccounts", "Lease": "leases",
           "ResourceSlice": "resourceslices", "ResourceClaim": "resourceclaims",
           "ResourceClaimTemplate": "resourceclaimtemplates", "DeviceClass": "deviceclasses",
           "Deployment": "deployments", "DaemonSet": "daemonsets", "Job": "jobs"}
PATIENCE_S = 20
WARNING = re.compile(r'299 \S+ "((?:[^"\\]|\\.)*)"')


class Api:
    def __init__(self, port):
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_S)

    def ask(self, method, path, body=None, who=None, kind="application/json"):
        """(status, document, warnings)"""
        self.connection.putrequest(method, path)
        self.connection.putheader("Authorization", "Bearer tokadmin")
        self.connection.putheader("Accept", "application/json")
        if who:
            self.connection.putheader("Impersonate-User", who["user"])
            for group in who.get("groups") or []:
                self.connection.putheader("Impersonate-Group", group)
            if who.get("uid"):
                self.connection.putheader("Impersonate-Uid", who["uid"])
            for key, values in (who.get("extra") or {}).items():
                for value in values:
                    self.connection.putheader(f"Impersonate-Extra-{key.replace('/', '%2F')}", value)
        data = b"" if body is None else json.dumps(body).encode()
        if body is not None:
            self.connection.putheader("Content-Type", kind)
        self.connection.putheader("Content-Length", str(len(data)))
        self.connection.endheaders(data)
        answer = self.connection.getresponse()
        text = answer.read().decode(errors="replace")
        warnings = [found for line in answer.headers.get_all("Warning") or []
                    for found in WARNING.findall(line)]
        try:
            return answer.status, json.loads(text), warnings
        except ValueError:
            return answer.status, {"message": text}, warnings

    def must(self, method, path, body=None):
        status, doc, _ = self.ask(method, path, body)
        assert status < 300, (method, path, status, doc)
        return doc


def place_of(obj):
    version = obj["apiVersion"]
    root = f"/apis/{version}" if "/" in version else f"/api/{version}"
    namespace = obj["metadata"].get("namespace")
    return f"{root}/namespaces/{namespace}/{PLURALS[obj['kind']]}" if namespace else \
        f"{root}/{PLURALS[obj['kind']]}"


def causes_of(causes):
    return sorted((cause.get("reason") or "", cause.get("field") or "") for cause in causes or [])


def is_policy(obj):
    return obj["kind"].startswith("ValidatingAdmissionPolicy")


def make(api, world):
    """Makes the world's policies and bindings; what differs from how that was recorded."""
    wanted = {(one["kind"], one["name"]): one for one in world.get("creation") or []}
    differences = []
    for obj in filter(is_policy, world["objects"]):
        body = {"apiVersion": "admissionregistration.k8s.io/v1", **obj}
        status, doc, _ = api.ask("POST", f"{GROUP}/{PLURALS[obj['kind']]}", body)
        want = wanted.get((obj["kind"], obj["metadata"]["name"]), {"code": 201})
        got = causes_of((doc.get("details") or {}).get("causes")) if status >= 400 else []
        if status != want["code"] or got != causes_of(want.get("causes")):
            differences.append(f"{obj['kind']}: {status} {got}, want {want['code']} "
                               f"{causes_of(want.get('causes'))}\n      {doc.get('message')}\n"
                               f"      {want.get('message')}")
    return differences


def remove(api, world):
    for obj in filter(is_policy, reversed(world["objects"])):
        api.ask("DELETE", f"{GROUP}/{PLURALS[obj['kind']]}/{obj['metadata']['name']}")


def send(api, request):
    """Makes the request; the answer, and the path of what may be there afterwards."""
    obj = request.get("object") or request["oldObject"]
    sub = f"/{request['subresource']}" if request.get("subresource") else ""
    dry = "?dryRun=All" if request.get("dryRun") else ""
    place = place_of(obj)
    one = f"{place}/{obj['metadata'].get('name')}"
    if request["operation"] == "CREATE":
        return api.ask("POST", (f"{one}{sub}" if sub else place) + dry, obj, request), one
    if request["operation"] == "DELETE":
        return api.ask("DELETE", one + dry, None, request), one
    if request["operation"] == "CONNECT":
        return api.ask("POST", f"{one}{sub}?command=true&stdout=true", None, request), one
    if "patch" in request:
        return api.ask("PATCH", one + sub + dry, request["patch"], request,
                       "application/merge-patch+json"), one
    return api.ask("PUT", one + sub + dry, obj, request), one


def replay(api, world, record):
    request, wanted = record["request"], record["response"]
    if "oldObject" in request:
        api.must("POST", place_of(request["oldObject"]), request["oldObject"])
    make(api, world)
    (status, doc, warnings), one = send(api, request)
    remove(api, world)
    api.ask("DELETE", one + "?gracePeriodSeconds=0")
    reason = doc.get("reason") if status >= 400 else None
    got = (status, reason, sorted(warnings))
    want = (wanted["code"], wanted.get("reason"), sorted(wanted.get("warnings") or []))
    if got == want:
        return None
    return f"{json.dumps(request)[:300]}\n      {got} {doc.get('message')}\n      {want} {wanted.get('message')}"


def play(api, world):
    """(what differs, how much was played)"""
    differences = make(api, world)
    remove(api, world)
    records = world.get("requests") or []
    differences += filter(None, (replay(api, world, record) for record in records))
    return differences, 1 + len(records)


def grant(api, name, rules, subjects):
    api.must("POST", f"{RBAC}/clusterroles", {"metadata": {"name": name}, "rules": rules})
    api.must("POST", f"{RBAC}/clusterrolebindings",
             {"metadata": {"name": name}, "subjects": subjects,
              "roleRef": {"kind": "ClusterRole", "name": name}})


def prepare(api):
    end = time.monotonic() + PATIENCE_S
    while api.ask("GET", f"{RBAC}/clusterroles/view")[0] != 200 and time.monotonic() < end:
        time.sleep(0.02)
    for name, labels in (("vap", {"env": "test", "team": "a"}), ("vap-prod", {"env": "prod"})):
        api.must("POST", "/api/v1/namespaces", {"metadata": {"name": name, "labels": labels}})
    grant(api, "vap-all", [{"verbs": ["*"], "resources": ["*"], "apiGroups":
                            ["", "apps", "resource.k8s.io", "coordination.k8s.io"]}],
          [{"kind": "User", "name": "alice"}, {"kind": "Group", "name": "system:serviceaccounts"}])
    grant(api, "vap-special", [{"verbs": ["use"], "apiGroups": ["example.com"],
                                "resources": ["devices"], "resourceNames": ["gold"]},
                               {"verbs": ["get"], "nonResourceURLs": ["/special"]}],
          [{"kind": "Group", "name": "special"},
           {"kind": "ServiceAccount", "name": "trusted", "namespace": "vap"}])


def main():
    passed = failed = 0
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="davit-policies-", dir=memory) as place:
        server = subprocess.Popen([SERVER, "--anonymous", "on", "--store",
                                   os.path.join(place, "api.db")], stdout=subprocess.PIPE,
                                  text=True)
        try:
            api = Api(int(server.stdout.readline()))
            prepare(api)
            for path in sorted(Path(sys.argv[1]).glob("*.jsonl")):
                for line in path.read_text(encoding="utf-8").splitlines():
                    world = json.loads(line)
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
