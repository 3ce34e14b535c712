"""Without a container runtime nothing is pretended: who starts containers says so."""

import subprocess

import pytest

from bound_pods import bound, phase_of, status_of, wait_devices, wait_phase
from claim_nodes import WAIT_S
from procs import until
from servers import PODS


def make(api, name, policy, **more):
    pod = bound(name, devices=1)
    pod["spec"].update(restartPolicy=policy, **more)
    api.must("POST", PODS, pod)
    wait_devices(api, name)
    assert phase_of(api, name) == "Pending"


def tell(node, *words):
    done = node.davit("container", *words)
    assert done.returncode == 0, done


def container(api, pod):
    (one,) = status_of(api, pod)["containerStatuses"]
    return one


@pytest.fixture(name="sleeper")
def fixture_sleeper():
    with subprocess.Popen(["sleep", "600"]) as process:
        yield process
        process.kill()


@pytest.mark.parametrize("policy,code,phase", [
    ("Never", 0, "Succeeded"), ("Never", 3, "Failed"), ("OnFailure", 0, "Succeeded")])
def test_a_pod_ends_as_it_is_told(node, sleeper, policy, code, phase):
    api = node.api()
    node.start_plugin()
    make(api, "p1", policy)
    tell(node, "started", "p1", "main", "--pid", str(sleeper.pid))
    wait_phase(api, "p1", "Running")
    assert container(api, "p1")["ready"] and container(api, "p1")["started"]
    for _ in range(2):  # crash is normal
        node.kill()
        node.start()
        api = node.api()
    assert phase_of(api, "p1") == "Running"
    tell(node, "ended", "p1", "main", "--exit-code", str(code), "--message", "bye")
    node.kill()
    node.start()
    api = node.api()
    wait_phase(api, "p1", phase)
    ended = container(api, "p1")["state"]["terminated"]
    assert (ended["exitCode"], ended["message"]) == (code, "bye"), ended
    assert node.pods_here() == set()


def test_what_is_started_again_is_counted(node, sleeper):
    api = node.api()
    node.start_plugin()
    make(api, "p1", "Always")
    with subprocess.Popen(["sleep", "600"]) as first:
        tell(node, "started", "p1", "main", "--pid", str(first.pid))
        wait_phase(api, "p1", "Running")
        first.kill()
    until(lambda: "waiting" in container(api, "p1")["state"], WAIT_S, "the end to be seen")
    status = status_of(api, "p1")
    assert status["phase"] == "Running", status  # as a pod in its back-off
    assert container(api, "p1")["state"]["waiting"]["reason"] == "NoContainerRuntime", status
    assert container(api, "p1")["lastState"]["terminated"]["exitCode"] == 137, status
    tell(node, "started", "p1", "main", "--pid", str(sleeper.pid))
    until(lambda: container(api, "p1")["ready"], WAIT_S, "the second run")
    assert container(api, "p1")["restartCount"] == 1


def test_a_deleted_pod_waits_for_its_process(node):
    api = node.api()
    node.start_plugin()
    make(api, "p1", "Always")
    with subprocess.Popen(["sleep", "600"]) as process:
        tell(node, "started", "p1", "main", "--pid", str(process.pid))
        api.must("DELETE", f"{PODS}/p1?gracePeriodSeconds=0")
        wait_phase(api, "p1", None)
        node.kill()
        node.start()
        assert node.pods_here() == {"p1"}
        process.kill()
    until(lambda: node.pods_here() == set(), WAIT_S, "the devices to be given back")


def test_init_containers_come_first(node):
    api = node.api()
    node.start_plugin()
    make(api, "p1", "Never", initContainers=[{"name": "i", "image": "x"}])
    (first,) = status_of(api, "p1")["initContainerStatuses"]
    assert first["state"]["waiting"]["reason"] == "NoContainerRuntime"
    assert container(api, "p1")["state"]["waiting"]["reason"] == "PodInitializing"
    tell(node, "ended", "default/p1", "i", "--exit-code", "1")
    wait_phase(api, "p1", "Failed")


@pytest.mark.parametrize("words,status,text", [
    (("started", "p1", "main", "--pid", "4194305"), 1, "there is no process 4194305"),
    (("started", "p1", "other"), 1, "no container"),
    (("started", "p2", "main"), 1, "no pod default/p2"),
    (("started", "p1"), 2, "name the pod"),
    (("ended", "p1", "main"), 2, "--exit-code"),
    (("ended", "p1", "main", "--exit-code", "256"), 2, "--exit-code"),
    (("ended", "p1", "main", "--exit-code", "0", "--pid", "1"), 2, "--pid is of started"),
    (("gone", "p1", "main"), 2, "say started or ended"),
])
def test_what_is_wrong_is_said(node, words, status, text):
    api = node.api()
    node.start_plugin()
    make(api, "p1", "Always")
    done = node.davit("container", *words)
    assert (done.returncode, text in done.stderr) == (status, True), done
    assert phase_of(api, "p1") == "Pending"
