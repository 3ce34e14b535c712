"""davitd is killed again and again while pods start and end; the runtime is restarted."""

import os
import random
import signal
import time

import pytest
from bound_pods import DEV
from cri_client import RpcError
from procs import until
from runtime_nodes import WAIT_S, container, pod
from runtime_watch import RuntimeWatch
from servers import PODS
from whole_nodes import CLASSES, TEMPLATES, device_class, template

N_KILLS = int(os.environ.get("DAVIT_KILLS", "30"))


@pytest.fixture
def equipped(make_node):
    node = make_node().start()
    node.start_plugin("--virtual", "3", "--env", "GIVEN")
    return node


def asking(name, script="sleep 1000", **spec):
    return pod(name, container(script=script, resources={"limits": {DEV: "1"}}), **spec)


def two_containers(name):
    """One with a device, one with a claim; before them one that ends, and one that stays."""
    return pod(
        name, container("main", resources={"limits": {DEV: "1"}}),
        container("other", resources={"claims": [{"name": "g"}]}),
        initContainers=[container("first", "exit 0", resources={"claims": [{"name": "g"}]}),
                        container("side", restartPolicy="Always")],
        resourceClaims=[{"name": "g", "resourceClaimTemplateName": "one"}],
        terminationGracePeriodSeconds=1)


MAKERS = (
    asking,
    two_containers,
    lambda name: asking(name, "exit 3", restartPolicy="Never"),
    lambda name: pod(name, container(script="sleep 0.2; exit 1"), restartPolicy="OnFailure"),
)
# Not more than there are devices: after the storm each pod can run.
N_PODS = 6


def add_and_delete(node, dice, name):
    present = [one["metadata"]["name"] for one in node.api().ask("GET", PODS).doc["items"]]
    if present and dice.random() < 0.5:
        node.delete(dice.choice(present), may_be_gone=True)
    if len(present) < N_PODS:
        value = dice.choice(MAKERS)(name)
        del value["spec"]["nodeName"]
        node.add(value)


def storm(node, dice):
    """Kills davitd soon after a start, sometimes before it is ready, while pods come and go."""
    for turn in range(N_KILLS):
        is_ready = dice.random() < 0.8
        node.start(ready=is_ready)
        for number in range(dice.randrange(4) if is_ready else 0):
            add_and_delete(node, dice, f"p{turn}-{number}")
        time.sleep(dice.choice((0, 0.1, 0.3, 0.6, 1, 2)))
        node.kill()
        if turn % 20 == 19:  # drivers may be away, too
            node.plugin.kill()
            node.driver.kill()
            start_drivers(node.start())
            node.kill()


def start_drivers(node):
    node.start_plugin("--virtual", str(N_PODS), "--env", "GIVEN")
    node.start_driver(node.kubeconfig, "--devices", str(N_PODS))


def has_what_it_wants(node, name):
    """Whether it is gone, or is not asked to run for ever, or all its containers run."""
    one = node.pod(name)
    if not one or one["spec"]["restartPolicy"] != "Always":
        return True
    wanted = {(name, each["name"]) for each in one["spec"]["containers"]}
    running = {key[:2] for key, state in node.containers().items() if state == "RUNNING"}
    return wanted <= running and all(each["ready"] for each in one["status"]["containerStatuses"])


def is_stuck(cri, container):
    """Whether containerd 1.6 cannot remove it: a call to start one that breaks off leaves a task
    behind of which it does not know any more."""
    try:
        status = cri.call("ContainerStatus", container_id=container).status
    except RpcError:  # it is gone
        return False
    return "context canceled" in status.message


def left_over(node):
    """The names of the containers and sandboxes that are there and could be removed."""
    cri = node.runtime.cri()
    listed = cri.call("ListContainers").containers
    sandboxes = cri.call("ListPodSandbox").items
    stuck = [one for one in listed if is_stuck(cri, one.id)]
    ids = {one.id for one in stuck} | {one.pod_sandbox_id for one in stuck}
    return [one.metadata.name for one in [*listed, *sandboxes] if one.id not in ids]


@pytest.mark.release
def test_killed_while_pods_start_and_end(make_node):
    """No container without a pod, no pod without its containers, no device held twice, no claim
    unprepared while a container of it runs: at no time."""
    node = make_node()
    node.options[node.options.index("--roles") + 1] = "api,control,sched,node"
    start_drivers(node.start())
    node.api().must("POST", CLASSES, device_class())
    node.api().must("POST", TEMPLATES, template())
    node.kill()
    with RuntimeWatch(node) as watch:
        storm(node, random.Random(7))
        node.start()
        names = [one["metadata"]["name"] for one in node.api().ask("GET", PODS).doc["items"]]
        for name in names:
            until(lambda name=name: has_what_it_wants(node, name), WAIT_S,
                  lambda name=name: f"it runs: {node.pod(name)}")
        if names:  # those that run now are seen, however busy the machine was before
            until(lambda: watch.n_containers > 0, WAIT_S, "the watch sees a container")
        for name in names:
            node.delete(name, may_be_gone=True)
        until(lambda: not node.api().ask("GET", PODS).doc["items"], WAIT_S, "all pods are gone")
        until(lambda: left_over(node) == [], WAIT_S,
              lambda: f"nothing is left: {left_over(node)} {node.runtime.log[-4000:]}")
        until(lambda: node.states() == {} and not node.pods_here(), WAIT_S, "all is given back")
    watch.check()
    print(f"{N_KILLS} kills, {watch.n_looks} looks, {watch.n_containers} containers ran")


OBEYS = "trap 'exit 0' TERM; while :; do sleep 0.1; done"


def kill_at(node, number):
    """Kills davitd when the runtime has shown something new that many times."""
    seen = [None]

    def is_there():
        now = (sorted(node.containers().items()), sorted(node.sandboxes().items()))
        if now != seen[-1]:
            seen.append(now)
        return len(seen) > number + 1  # the first is what was there before

    until(is_there, WAIT_S, lambda: f"step {number}: {seen}")
    node.kill()
    node.start()


def test_killed_at_each_step_of_a_pod(make_node):
    """Of its start, and then of its end. Steps: the sandbox; an init container; two containers."""
    node = make_node().start()
    for step in range(1, 6):
        node.add(pod("p", container("one", OBEYS), container("two", OBEYS),
                     initContainers=[container("first", "exit 0")]))
        kill_at(node, step)
        until(lambda: sorted(key[1] for key, state in node.containers().items()
                             if state == "RUNNING") == ["one", "two"], WAIT_S,
              lambda: f"both run: {node.containers()}")
        node.wait_status("p", lambda s: all(one["ready"] for one in s["containerStatuses"]),
                         "it is ready")
        node.delete("p")
        kill_at(node, step % 3)
        node.wait_gone("p")
        until(lambda: left_over(node) == [], WAIT_S, lambda: f"nothing is left: {left_over(node)}")


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
