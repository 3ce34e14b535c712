"""What makes pods, with pods that really run."""

import pytest
from procs import until
from runtime_nodes import WAIT_S, RuntimeNode

DAEMON_SET = """
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: agent}
spec:
  selector: {matchLabels: {app: agent}}
  updateStrategy: {rollingUpdate: {maxUnavailable: 0, maxSurge: 1}}
  template:
    metadata: {labels: {app: agent}}
    spec:
      terminationGracePeriodSeconds: 1
      containers:
      - name: main
        image: davit.test/busybox:1
        command: [sh, -c, "echo this is $WORD on $NODE; sleep 1000"]
        env:
        - {name: WORD, value: %s}
        - {name: NODE, valueFrom: {fieldRef: {fieldPath: spec.nodeName}}}
"""


@pytest.fixture
def new_node(containerd):
    def make(procs, root, *options):
        return RuntimeNode(procs, root, containerd, *options, roles="api,control,sched,node")

    return make


def test_a_daemon_set_runs_on_its_node(node, kubectl):
    kubectl("apply", "-f", "-", stdin=DAEMON_SET % "one")
    kubectl("rollout", "status", "ds/agent", "--timeout=50s")
    until(lambda: "this is one on n1" in kubectl("logs", "ds/agent"), WAIT_S, "its log")
    kubectl("apply", "-f", "-", stdin=DAEMON_SET % "two")
    kubectl("rollout", "status", "ds/agent", "--timeout=50s")
    until(lambda: "this is two on n1" in kubectl("logs", "ds/agent"), WAIT_S, "its new log")
    kubectl("rollout", "undo", "ds/agent")
    kubectl("rollout", "status", "ds/agent", "--timeout=50s")
    until(lambda: "this is one on n1" in kubectl("logs", "ds/agent"), WAIT_S, "its old log")
    kubectl("delete", "ds/agent", "--cascade=foreground", "--timeout=50s")
    until(lambda: not node.containers() and not node.sandboxes(), WAIT_S, "nothing is left")
