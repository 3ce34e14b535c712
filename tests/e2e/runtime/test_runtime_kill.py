"""davitd is killed again and again while pods start and end; the runtime is restarted."""

import os
import random
import signal

import pytest
from bound_pods import DEV
from procs import until
from runtime_nodes import WAIT_S, container, pod
from servers import PODS
from whole_nodes import CLASSES, TEMPLATES, device_class, template

N_KILLS = int(os.environ.get("DAVIT_KILLS", "10"))


@pytest.fixture
def equipped(make_node):
    node = make_node().start()
    node.start_plugin("--virtual", "3", "--env", "GIVEN")
    return node


def asking(name, script="sleep 1000", **spec):
    return pod(name, container(script=script, resources={"limits": {DEV: "1"}}), **spec)


def held_by_running(node):
    """{container: the devices that it was given}, of those that run."""
    cri = node.runtime.cri()
    held = {}
    for one in cri.call("ListContainers").containers:
        if one.state != cri.pb.CONTAINER_RUNNING:
            continue
        try:
            output, code = cri.exec(one.id, "printenv", "GIVEN")
        except Exception:  # it has ended meanwhile
            continue
        if code == 0:
            held[one.id] = output.split()
    return held


def check_devices(node):
    """No device is held by two containers that run."""
    devices = [device for some in held_by_running(node).values() for device in some]
    assert len(devices) == len(set(devices)), held_by_running(node)


def test_killed_while_pods_start_and_end(equipped):
    """No container without a pod, no pod without its containers, no device held twice."""
    node = equipped
    dice = random.Random(7)
    for turn in range(N_KILLS):
        names = [f"p{turn}-{number}" for number in range(3)]
        node.add(asking(names[0]))
        node.add(asking(names[1], "exit 3", restartPolicy="Never"))
        node.add(pod(names[2]))
        if dice.random() < 0.5:
            node.wait_phase(names[2], "Running")
        else:
            until(lambda: len(node.containers()) > dice.randrange(3), WAIT_S, "one is made")
        for name in names:
            if dice.random() < 0.7:
                node.delete(name)
        node.kill()
        check_devices(node)
        node.start()
        check_devices(node)
        for name in names:
            node.delete(name, may_be_gone=True)
    until(lambda: not node.api().ask("GET", PODS).doc["items"],
          WAIT_S, "all pods are gone")
    until(lambda: not node.containers() and not node.sandboxes(), WAIT_S,
          f"nothing is left: {node.containers()} {node.sandboxes()}")
    assert not node.pods_here()


def check_claims(node):
    """A container that runs before and after the look at its claim ran at that moment, too."""
    pods = {one["metadata"]["name"]: one["status"].get("resourceClaimStatuses", [])
            for one in node.api().ask("GET", PODS).doc["items"]}
    before = node.containers()
    states = node.states()
    after = node.containers()
    for key, state in before.items():
        if state == after.get(key) == "RUNNING":
            for one in pods.get(key[0], []):
                assert states.get(one["resourceClaimName"]) == "prepared", (key, states)


def test_claims_stay_prepared_while_a_container_runs(make_node):
    """Claims are made from a template, allocated, prepared and given back meanwhile."""
    node = make_node()
    node.options[node.options.index("--roles") + 1] = "api,control,sched,node"
    node.start()
    node.start_driver(node.kubeconfig)
    node.api().must("POST", CLASSES, device_class())
    node.api().must("POST", TEMPLATES, template())
    dice = random.Random(11)
    for turn in range(max(N_KILLS // 2, 1)):
        name = f"c{turn}"
        value = pod(name, container(resources={"claims": [{"name": "g"}]}), resourceClaims=[
            {"name": "g", "resourceClaimTemplateName": "one"}])
        del value["spec"]["nodeName"]
        node.add(value)
        if dice.random() < 0.6:
            node.wait_phase(name, "Running")
        check_claims(node)
        if dice.random() < 0.6:
            node.delete(name)
        node.kill()
        node.start()
        check_claims(node)
        node.delete(name, may_be_gone=True)
        check_claims(node)
        node.wait_gone(name)
    until(lambda: not node.containers(), WAIT_S, "nothing is left")
    until(lambda: node.states() == {}, WAIT_S, "all claims are given back")


def test_containers_go_on_while_davitd_is_away(equipped):
    node = equipped
    uid = node.add(asking("p"))
    before = node.wait_phase("p", "Running")["status"]["containerStatuses"][0]
    node.kill()
    node.start()
    node.add(asking("q"))
    node.wait_phase("q", "Running")
    after = node.pod("p")
    assert after["metadata"]["uid"] == uid
    assert after["status"]["containerStatuses"][0]["containerID"] == before["containerID"]
    assert after["status"]["containerStatuses"][0]["restartCount"] == 0


def test_the_runtime_restarts(equipped):
    node = equipped
    node.add(asking("p"))
    before = node.wait_phase("p", "Running")["status"]["containerStatuses"][0]
    node.runtime.restart(signal.SIGKILL)
    node.add(asking("q"))
    node.wait_phase("q", "Running")
    assert node.pod("p")["status"]["containerStatuses"][0]["containerID"] == before["containerID"]
    node.delete("p")
    node.wait_gone("p")


def test_a_pod_that_is_gone_meanwhile_is_ended(equipped):
    """Its object is removed by force while davitd is away: the container is an orphan."""
    node = equipped
    node.add(asking("p"))
    node.wait_phase("p", "Running")
    node.delete("p", gracePeriodSeconds=0)
    node.kill()
    node.start()
    until(lambda: not node.containers() and not node.sandboxes(), WAIT_S, "it is ended")
    until(lambda: not node.pods_here(), WAIT_S, "it is released")
