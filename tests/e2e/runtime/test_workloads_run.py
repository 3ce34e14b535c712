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


JOB = """
apiVersion: batch/v1
kind: Job
metadata: {name: %s}
spec:
  completions: 2
  parallelism: 2
  completionMode: Indexed
  backoffLimit: 0
  template:
    spec:
      restartPolicy: Never
      terminationGracePeriodSeconds: 1
      containers:
      - name: main
        image: davit.test/busybox:1
        command: [sh, -c, 'echo index $JOB_COMPLETION_INDEX on $(hostname); %s']
"""


def test_a_job_runs_to_its_end(node, kubectl):
    kubectl("apply", "-f", "-", stdin=JOB % ("good", "sleep 1"))
    kubectl("wait", "--for=condition=complete", "job/good", "--timeout=50s")
    logs = kubectl("logs", "-l", "job-name=good", "--tail=-1")
    assert sorted(logs.split("\n"))[-2:] == ["index 0 on good-0", "index 1 on good-1"], logs
    assert "index" in kubectl("logs", "job/good")
    assert kubectl.json("job", "good")["status"]["completedIndexes"] == "0,1"
    kubectl("delete", "job/good", "--timeout=50s")
    until(lambda: not node.containers() and not node.sandboxes(), WAIT_S, "nothing is left")


def test_a_job_that_fails_ends_its_other_pods(node, kubectl):
    script = "test $JOB_COMPLETION_INDEX = 1 || sleep 1000; exit 3"
    kubectl("apply", "-f", "-", stdin=JOB % ("bad", script))
    kubectl("wait", "--for=condition=failed", "job/bad", "--timeout=50s")
    found = kubectl.json("job", "bad")
    assert found["status"]["failed"] == 2 and "active" not in found["status"]
    assert found["status"]["conditions"][-1]["reason"] == "BackoffLimitExceeded"
    assert "BackoffLimitExceeded" in kubectl("describe", "job", "bad")
    kubectl("delete", "job/bad", "--timeout=50s")
    until(lambda: not node.containers() and not node.sandboxes(), WAIT_S, "nothing is left")
