"""A reboot: a new boot id, no processes, no mounts; the disk is as it was. Pods start again."""

import os

from bound_pods import DEV
from containerd import unmount_all
from procs import until
from runtime_nodes import WAIT_S, container, pod
from test_static_run import put
from whole_nodes import CLASSES, TEMPLATES, device_class, template

SCRIPT = "env | grep -e GIVEN -e SAMPLE; exec sleep 1000"


def with_both(name):
    made = pod(name, container(script=SCRIPT, resources={
        "limits": {DEV: "1"}, "claims": [{"name": "g"}]}),
        resourceClaims=[{"name": "g", "resourceClaimTemplateName": "one"}])
    del made["spec"]["nodeName"]
    return made


def running(node):
    return {key[0] for key, state in node.containers().items() if state == "RUNNING"}


def reboot(node):
    node.kill()
    node.plugin.kill()
    node.driver.kill()
    unmount_all(node.kubelet_dir)
    node.runtime.reboot()
    node.set_boot_id("second")


def start_plugin(node):
    node.start_plugin("--virtual", "4", "--env", "GIVEN")


def test_pods_start_again_after_their_drivers(make_node, short_dir):
    folder = os.path.join(short_dir, "m")
    os.mkdir(folder)
    node = make_node("--pod-manifest-path", folder)
    node.options[node.options.index("--roles") + 1] = "api,control,sched,node"
    start_plugin(node.start())
    node.start_driver(node.kubeconfig)
    node.api().must("POST", CLASSES, device_class())
    node.api().must("POST", TEMPLATES, template())
    node.add(with_both("both"))
    node.add(pod("plain", terminationGracePeriodSeconds=1))
    node.add(pod("done", container(script="exit 0"), restartPolicy="Never"))
    file_pod = pod("edge", container(script=SCRIPT, resources={"limits": {DEV: "1"}}))
    del file_pod["spec"]["nodeName"]
    put(folder, "edge.json", file_pod)
    names = {"both", "plain", "edge-n1"}
    until(lambda: running(node) == names, WAIT_S, lambda: f"all run: {node.containers()}")
    node.wait_phase("done", "Succeeded")
    node.wait_phase("both", "Running")
    until(lambda: "SAMPLE" in node.log("both"), WAIT_S, "its devices")
    devices = node.log("both")

    reboot(node)
    node.start()
    until(lambda: running(node) == {"plain"}, WAIT_S,
          lambda: f"the one that needs no driver: {node.containers()} {node.pod('plain')}")
    for name in ("both", "edge-n1"):  # nothing is said to run that does not
        node.wait_status(name, lambda s: "running" not in s["containerStatuses"][0]["state"],
                         "it waits")
    start_plugin(node)
    until(lambda: "edge-n1" in running(node), WAIT_S, "the one that needs the plugin")
    assert "both" not in running(node)
    node.start_driver(node.kubeconfig)
    until(lambda: running(node) == names, WAIT_S, lambda: f"all run: {node.containers()}")
    for name in names:
        node.wait_status(name, lambda s: [one["restartCount"] for one in s["containerStatuses"]
                                          if one["ready"]] == [1], "it was started again")
        assert node.phase(name) == "Running"
    until(lambda: node.log("both", number=1) == devices, WAIT_S, "its devices are the same")
    assert node.phase("done") == "Succeeded"
    assert len([key for key in node.containers() if key[0] == "done"]) <= 1
