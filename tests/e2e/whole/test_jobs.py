"""Jobs on a davitd alone, as kubectl drives them: create, wait, list, describe, delete; and over kills."""

import time
import zlib

import pytest
from fake_agents import Agents
from kubectls import Kubectl, find_kubectl
from procs import until
from servers import PODS
from whole_nodes import WAIT_S, WholeNode

pytestmark = pytest.mark.release

JOBS = "/apis/batch/v1/namespaces/default/jobs"
FINALIZER = "batch.kubernetes.io/job-tracking"
MERGE = "application/strategic-merge-patch+json"

JOB = """
apiVersion: batch/v1
kind: Job
metadata: {name: work}
spec:
  completions: %(completions)s
  parallelism: %(parallelism)s
  backoffLimit: %(limit)s
  template:
    metadata: {annotations: {test/fails: "%(fails)s"}}
    spec:
      restartPolicy: Never
      terminationGracePeriodSeconds: 1
      containers: [{name: main, image: "davit.test/work:1"}]
"""


def manifest(completions=1, parallelism=1, limit=6, fails="never"):
    return JOB % {"completions": completions, "parallelism": parallelism, "limit": limit,
                  "fails": fails}


class Workers(Agents):
    """Pods run, and end soon; which fail says an annotation of theirs."""

    def fails(self, meta):
        how = meta.get("annotations", {}).get("test/fails", "never")
        return how == "always" or (how == "some" and zlib.crc32(meta["name"].encode()) % 4 == 0)

    def look_at(self, pod):
        meta = pod["metadata"]
        if pod["status"]["phase"] != "Running" or meta.get("deletionTimestamp"):
            super().look_at(pod)
            return
        code = int(self.fails(meta))
        end = {"phase": "Failed" if code else "Succeeded", "containerStatuses": [{
            "name": "main", "ready": False, "restartCount": 0, "image": "i", "imageID": "i",
            "state": {"terminated": {"exitCode": code, "finishedAt": "2020-01-01T00:00:00Z"}}}]}
        self.api.ask("PATCH", f"{PODS}/{meta['name']}/status", {"status": end}, Content_Type=MERGE)


@pytest.fixture
def new_node():
    def make(procs, root, *options):
        return WholeNode(procs, root, "--roles", "api,control,sched", *options)

    return make


@pytest.fixture
def workers(node):
    workers = Workers(node.api(), ["x0", "x1"])
    workers.add_nodes()
    workers.start()
    yield workers
    workers.close()


@pytest.fixture
def kubectl(node, short_dir):
    return Kubectl(find_kubectl("new"), node.kubeconfig, short_dir, is_old=False)


def pods(api):
    return api.ask("GET", PODS).doc["items"]


def job(api, name="work"):
    return api.ask("GET", f"{JOBS}/{name}").doc


def conditions(of):
    return [one["type"] for one in of["status"].get("conditions", []) if one["status"] == "True"]


def test_kubectl_makes_waits_and_describes(node, workers, kubectl):
    api = node.api()
    kubectl("create", "job", "hello", "--image=davit.test/work:1", "--", "echo", "hello")
    kubectl("wait", "--for=condition=complete", "job/hello", "--timeout=50s")
    columns, row = kubectl.rows("jobs")
    assert columns == ["NAME", "STATUS", "COMPLETIONS", "DURATION", "AGE"]
    assert row[:3] == ["hello", "Complete", "1/1"]
    assert "job.batch/hello" in kubectl("get", "all")
    told = kubectl("describe", "job", "hello")
    assert "Completed" in told and "Job completed" in told and "SuccessfulCreate" in told
    assert conditions(job(api, "hello")) == ["SuccessCriteriaMet", "Complete"]
    (pod,) = pods(api)
    assert FINALIZER not in pod["metadata"].get("finalizers", [])
    kubectl("delete", "job", "hello", "--timeout=50s")
    until(lambda: not pods(api), WAIT_S, "the pod is gone")


def test_a_job_that_fails_says_why(node, workers, kubectl):
    kubectl("apply", "-f", "-", stdin=manifest(limit=0, fails="always"))
    kubectl("wait", "--for=condition=failed", "job/work", "--timeout=50s")
    found = job(node.api())
    assert found["status"]["failed"] == 1 and "completionTime" not in found["status"]
    assert conditions(found) == ["FailureTarget", "Failed"]
    assert "BackoffLimitExceeded" in kubectl("describe", "job", "work")
    assert kubectl.rows("job", "work")[1][1:3] == ["Failed", "0/1"]


def test_a_deleted_job_keeps_its_pods_unless_told(node, kubectl):
    api = node.api()
    kubectl("apply", "-f", "-", stdin=manifest())
    until(lambda: len(pods(api)) == 1, WAIT_S, "a pod")
    answer = api.ask("DELETE", f"{JOBS}/work")
    assert answer.status == 200
    assert "child pods are preserved by default" in answer.fields["Warning"]
    until(lambda: job(api).get("code") == 404, WAIT_S, "the job is gone")
    until(lambda: all(FINALIZER not in pod["metadata"].get("finalizers", [])
                      and "ownerReferences" not in pod["metadata"] for pod in pods(api)),
          WAIT_S, "the pod is nobody's")
    assert len(pods(api)) == 1


def test_kills_count_each_pod_once(node, workers, kubectl):
    api = node.api()
    kubectl("apply", "-f", "-", stdin=manifest(completions=24, parallelism=6, limit=1000,
                                               fails="some"))
    for number in range(8):
        time.sleep(0.05 + number * 0.07)
        node.kill()
        node.start()
        api.disconnect()
    until(lambda: "Complete" in conditions(job(api)), 4 * WAIT_S, "the end")
    phases = [pod["status"]["phase"] for pod in pods(api)]
    status = job(api)["status"]
    assert status["succeeded"] == phases.count("Succeeded") == 24
    assert status.get("failed", 0) == phases.count("Failed")
    assert not any(pod["metadata"].get("finalizers") for pod in pods(api))
    kubectl("delete", "job", "work", "--cascade=foreground", "--timeout=50s")
    assert not pods(api)


def test_a_hook_is_watched_to_its_end_and_deleted(node, workers):
    """As helm does with a Job that is a hook: apply, watch this one object, delete."""
    api = node.api()
    body = {"apiVersion": "batch/v1", "kind": "Job",
            "metadata": {"name": "hook", "annotations": {
                "helm.sh/hook": "pre-install", "helm.sh/hook-delete-policy": "hook-succeeded"}},
            "spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [
                {"name": "main", "image": "davit.test/work:1"}]}}}}
    answer = api.ask("PATCH", f"{JOBS}/hook?fieldManager=helm&fieldValidation=Strict&force=false",
                     body, Content_Type="application/apply-patch+yaml")
    assert answer.status == 201, answer
    version = answer.doc["metadata"]["resourceVersion"]
    seen = []
    with api.watch(f"{JOBS}?fieldSelector=metadata.name%3Dhook&resourceVersion={version}") as watch:
        watch.until(lambda event: seen.append(event["object"]) or
                    "Complete" in conditions(event["object"]))
    counts = [one["status"].get("succeeded", 0) for one in seen]
    assert counts == sorted(counts) and counts[-1] == 1
    assert all("Complete" not in conditions(one) for one in seen[:-1])
    api.ask("DELETE", f"{JOBS}/hook", {"propagationPolicy": "Background"})
    until(lambda: api.ask("GET", f"{JOBS}/hook").status == 404 and not pods(api), WAIT_S,
          "the hook and its pod are gone")
