"""Pods that really run: what containers are given, and how their pods live and end."""

from procs import until
from runtime_nodes import WAIT_S, container, pod


def terminated(status, index=0):
    return status["containerStatuses"][index]["state"].get("terminated", {})


def test_a_pod_runs_and_ends(node):
    uid = node.add(pod("p", container(script="echo hello; sleep 1000")))
    status = node.wait_phase("p", "Running")["status"]
    until(lambda: node.log("p") == "hello", WAIT_S, "its log")
    assert node.containers() == {("p", "main", 0): "RUNNING"}
    assert status["podIP"].startswith("10.")
    assert status["containerStatuses"][0]["containerID"].startswith("containerd://")
    assert {"Pulled", "Created", "Started"} <= {reason for reason, _ in node.events("p")}
    node.delete("p")
    node.wait_gone("p")
    assert not node.pods_here()
    until(lambda: not node.containers() and not node.sandboxes(), WAIT_S, "nothing is left")
    assert uid


def test_a_pod_that_ends_by_itself(node):
    node.add(pod("good", container(script="echo last words >/dev/termination-log"),
                 restartPolicy="Never"))
    node.add(pod("bad", container(script="exit 3"), restartPolicy="Never"))
    good = node.wait_phase("good", "Succeeded")["status"]
    assert terminated(good)["exitCode"] == 0
    assert terminated(good)["reason"] == "Completed"
    assert terminated(good)["message"] == "last words\n"
    bad = node.wait_phase("bad", "Failed")["status"]
    assert (terminated(bad)["exitCode"], terminated(bad)["reason"]) == (3, "Error")


def waiting(status, index=0):
    return status["containerStatuses"][index]["state"].get("waiting", {})


def test_a_pod_that_cannot_work_says_so(node, kubectl):
    """What was shown as Running and Ready for ever."""
    node.add(pod("no-image", container(image="davit.test/nothing:1")))
    node.add(pod("never-pulled", container(image="davit.test/nothing:1", imagePullPolicy="Never")))
    node.add(pod("bad-init", initContainers=[container("first", "exit 2")]))
    node.add(pod("bad-env", container(env=[{
        "name": "A", "valueFrom": {"configMapKeyRef": {"name": "none", "key": "k"}}}])))
    status = node.wait_status("no-image", lambda s: waiting(s).get("reason") == "ImagePullBackOff",
                              "the image is not pulled")
    assert "davit.test/nothing:1" in waiting(status)["message"]
    node.wait_status("never-pulled", lambda s: waiting(s)["reason"] == "ErrImageNeverPull",
                     "the image is not there")
    status = node.wait_status(
        "bad-env", lambda s: waiting(s)["reason"] == "CreateContainerConfigError", "the env")
    assert waiting(status)["message"] == 'configmap "none" not found'
    status = node.wait_status(
        "bad-init", lambda s: s["initContainerStatuses"][0]["restartCount"] > 0, "its init")
    assert status["phase"] == "Pending"
    assert waiting(status)["reason"] == "PodInitializing"
    lines = {line.split()[0]: line.split()[2] for line in kubectl("get", "pods").splitlines()}
    assert lines["no-image"] in ("ErrImagePull", "ImagePullBackOff")
    assert lines["never-pulled"] == "ErrImageNeverPull"
    assert lines["bad-env"] == "CreateContainerConfigError"
    assert lines["bad-init"] in ("Init:Error", "Init:CrashLoopBackOff", "Init:0/1")
    reasons = {reason for reason, _ in node.events("no-image")}
    assert {"Pulling", "Failed", "BackOff"} <= reasons
    node.add({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "none"},
              "data": {"k": "v"}}, "configmaps")
    node.wait_phase("bad-env", "Running")


def test_init_containers_and_sidecars(node):
    """One after the other; the sidecar stays; the order is in a file of the pod's own volume."""
    mount = {"volumeMounts": [{"name": "v", "mountPath": "/v"}]}
    node.add(pod(
        "p", container(script="echo main >>/v/order; cat /v/order; sleep 1000", **mount),
        initContainers=[
            container("one", "echo one >>/v/order", **mount),
            container("side", "echo side >>/v/order; sleep 1000", restartPolicy="Always", **mount),
            container("two", "while ! grep -q side /v/order; do :; done; echo two >>/v/order",
                      **mount)],
        volumes=[{"name": "v", "emptyDir": {}}]))
    status = node.wait_phase("p", "Running")["status"]
    until(lambda: node.log("p").split() == ["one", "side", "two", "main"], WAIT_S, lambda: node.log("p"))
    states = {one["name"]: list(one["state"])[0] for one in status["initContainerStatuses"]}
    assert states == {"one": "terminated", "side": "running", "two": "terminated"}
    node.delete("p")
    node.wait_gone("p")


def test_restart_policies(node):
    script = "echo x >>/v/runs; exit $(( $(wc -l </v/runs) < 3 ))"  # fails until the third time
    for policy in ("Always", "OnFailure", "Never"):
        node.add(pod(policy.lower(), container(script=script, volumeMounts=[
            {"name": "v", "mountPath": "/v"}]), restartPolicy=policy,
            volumes=[{"name": "v", "emptyDir": {}}]))
    status = node.wait_phase("never", "Failed")["status"]
    assert status["containerStatuses"][0]["restartCount"] == 0
    node.wait_status("always", lambda s: s["containerStatuses"][0]["restartCount"] >= 2, "restarts")
    status = node.wait_phase("onfailure", "Succeeded")["status"]
    assert status["containerStatuses"][0]["restartCount"] == 2
    assert status["containerStatuses"][0]["lastState"]["terminated"]["exitCode"] == 1
