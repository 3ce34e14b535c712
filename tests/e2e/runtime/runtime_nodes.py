"""A davitd with its API, both sample drivers and a container runtime; the pods that tests make."""

import os
from pathlib import Path

from bound_pods import Drivers
from claim_nodes import ClaimNode
from procs import until
from servers import PODS

# Pulls, networks and runc on a loaded machine.
WAIT_S = 60


def container(name="main", script="sleep 1000", **fields):
    return {"name": name, "image": "davit.test/busybox:1", "command": ["sh", "-c", script],
            **fields}


def pod(name, *containers, node="n1", **spec):
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {"nodeName": node, "terminationGracePeriodSeconds": 2,
                 "containers": list(containers) or [container()], **spec},
    }


class RuntimeNode(Drivers, ClaimNode):
    name = "n1"

    def __init__(self, procs, root, runtime, *options, **named):
        self.logs_dir = os.path.join(root, "logs")
        super().__init__(procs, root, "--pod-logs-dir", self.logs_dir, *options, **named)
        self.runtime = runtime
        self.cri = f"unix://{runtime.socket}"

    def start_both(self):
        self.start_plugin()
        return self.start_driver(self.kubeconfig)

    # Pods

    def add(self, value, kind="pods"):
        answer = self.api().ask("POST", f"/api/v1/namespaces/default/{kind}", value)
        assert answer.status == 201, answer
        return answer.doc["metadata"]["uid"]

    def delete(self, name, may_be_gone=False, **options):
        answer = self.api().ask("DELETE", f"{PODS}/{name}", options or None)
        assert answer.status == 200 or (may_be_gone and answer.status == 404), answer

    def pod(self, name):
        """As the API has it; None: it does not."""
        answer = self.api().ask("GET", f"{PODS}/{name}")
        return answer.doc if answer.status == 200 else None

    def phase(self, name):
        found = self.pod(name)
        return found and found["status"].get("phase")

    def wait_phase(self, name, phase):
        until(lambda: self.phase(name) == phase, WAIT_S,
              lambda: f"{name} is {phase}; {self.pod(name)}")
        return self.pod(name)

    def wait_gone(self, name):
        until(lambda: self.pod(name) is None, WAIT_S, lambda: f"{name} is gone; {self.pod(name)}")

    def wait_status(self, name, test, what):
        until(lambda: test(self.pod(name)["status"]), WAIT_S, lambda: f"{what}; {self.pod(name)}")
        return self.pod(name)["status"]

    def events(self, name):
        """{(reason, message)} about the pod of that name."""
        listed = self.api().ask("GET", "/api/v1/namespaces/default/events").doc["items"]
        return {(one["reason"], one["message"]) for one in listed
                if one["involvedObject"]["name"] == name}

    def log(self, name, container="main", number=0):
        """What a container has printed; the newest pod of that name counts."""
        for folder in Path(self.logs_dir).glob(f"default_{name}_*/{container}/{number}.log"):
            text = folder.read_text(encoding="utf-8")
            lines = text[:text.rfind("\n") + 1].splitlines()  # the last one is being written, perhaps
            return "\n".join(line.split(" ", 3)[3] for line in lines)
        return ""

    # The runtime

    def containers(self, **labels):
        """What the runtime has: {(pod, container, attempt): state}, "" for sandboxes' containers."""
        cri = self.runtime.cri()
        states = ("CREATED", "RUNNING", "EXITED", "UNKNOWN")
        return {(one.labels["io.kubernetes.pod.name"], one.labels["io.kubernetes.container.name"],
                 one.metadata.attempt): states[one.state]
                for one in cri.call("ListContainers").containers}

    def sandboxes(self):
        """{pod: READY or NOTREADY} of the newest one."""
        listed = sorted(self.runtime.cri().call("ListPodSandbox").items,
                        key=lambda one: one.created_at)
        return {one.labels["io.kubernetes.pod.name"]: ("READY", "NOTREADY")[one.state]
                for one in listed}
