"""Nodes that no agent runs: a thread of the test says of their pods what an agent would say."""

import http.client
import threading

from servers import PODS

NODES = "/api/v1/nodes"
READY = {"status": {"phase": "Running", "conditions": [
    {"type": "Ready", "status": "True", "lastTransitionTime": "2020-01-01T00:00:00Z"}]}}


class Agents(threading.Thread):
    """Pods on the nodes are ready soon after they came, and gone soon after they are to go."""

    def __init__(self, api, names):
        super().__init__(daemon=True)
        self.api = api
        self.names = names
        self.is_over = threading.Event()
        self.all_pods = "/api/v1/pods"

    def add_nodes(self):
        for name in self.names:
            answer = self.api.ask("POST", NODES, {"metadata": {"name": name}, "status": {
                "allocatable": {"cpu": "64", "memory": "64Gi", "pods": "500"}}})
            assert answer.status == 201, answer

    def look_at(self, pod):
        meta = pod["metadata"]
        path = PODS.replace("default", meta["namespace"]) + "/" + meta["name"]
        if pod["spec"].get("nodeName") not in self.names:
            return
        if meta.get("deletionTimestamp"):
            self.api.ask("DELETE", path, {"gracePeriodSeconds": 0})
        elif pod["status"]["phase"] == "Pending":
            self.api.ask("PATCH", f"{path}/status", READY,
                         Content_Type="application/strategic-merge-patch+json")

    def run(self):
        while not self.is_over.wait(0.05):
            try:
                for pod in self.api.ask("GET", self.all_pods).doc["items"]:
                    self.look_at(pod)
            except (OSError, http.client.HTTPException, KeyError):
                pass  # davitd was killed

    def close(self):
        self.is_over.set()
        self.join()
