"""Pods with all rights, and pods with none: drivers are run by the first, users by the second."""

import os

from procs import until
from runtime_nodes import WAIT_S, container, pod

RESTRICTED = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]},
              "runAsNonRoot": True, "runAsUser": 1000, "seccompProfile": {"type": "RuntimeDefault"}}


def test_a_privileged_pod_sees_the_host(node, short_dir):
    """As a driver does: it makes a socket in a directory of the host, and sees its devices."""
    folder = os.path.join(short_dir, "plugins", "driver")
    script = "mkfifo /plugins/s; ls -d /dev/kmsg; cat /proc/self/status | grep CapEff; sleep 1000"
    node.add(pod("p", container(
        script=script, securityContext={"privileged": True}, volumeMounts=[
            {"name": "plugins", "mountPath": "/plugins"},
            {"name": "dev", "mountPath": "/dev"}]), volumes=[
        {"name": "plugins", "hostPath": {"path": folder, "type": "DirectoryOrCreate"}},
        {"name": "dev", "hostPath": {"path": "/dev"}}]))
    node.wait_phase("p", "Running")
    until(lambda: "CapEff" in node.log("p"), WAIT_S, lambda: node.log("p"))
    assert "/dev/kmsg" in node.log("p")
    assert int(node.log("p").split("CapEff:")[1], 16) & (1 << 21)  # CAP_SYS_ADMIN
    assert os.path.exists(os.path.join(folder, "s"))
    assert os.stat(folder).st_mode & 0o777 == 0o755


def test_a_restricted_pod_runs(node):
    script = ("id -u; grep -E 'CapBnd|NoNewPrivs|Seccomp:' /proc/self/status; "
              "trap exit TERM; sleep 1000 & wait")
    node.add(pod("p", container(script=script, securityContext=RESTRICTED)))
    node.wait_phase("p", "Running")
    until(lambda: "Seccomp:" in node.log("p"), WAIT_S, lambda: node.log("p"))
    words = node.log("p").replace("\t", " ").split()
    assert words[0] == "1000"
    assert words[words.index("NoNewPrivs:") + 1] == "1"
    assert words[words.index("Seccomp:") + 1] == "2"
    assert int(words[words.index("CapBnd:") + 1], 16) == 0
    node.delete("p")
    node.wait_gone("p")


def test_a_root_image_is_refused_where_root_is(node):
    node.add(pod("p", container(securityContext={"runAsNonRoot": True})))
    status = node.wait_status(
        "p", lambda s: s.get("containerStatuses", [{"state": {}}])[0]["state"].get(
            "waiting", {}).get("reason") == "CreateContainerConfigError", "it is refused")
    message = status["containerStatuses"][0]["state"]["waiting"]["message"]
    assert message.startswith("container has runAsNonRoot and image will run as root")


def test_a_node_is_found_by_its_name(node):
    """Whatever the machine is called; and pods may ask for room on its disk."""
    node.add(pod("p", container(resources={"requests": {"ephemeral-storage": "1Mi"}}),
                 nodeSelector={"kubernetes.io/hostname": "n1"}))
    node.wait_phase("p", "Running")
    found = node.api().ask("GET", "/api/v1/nodes/n1").doc
    assert found["metadata"]["labels"]["kubernetes.io/hostname"] == "n1"
    assert "ephemeral-storage" in found["status"]["allocatable"]
    assert not found["spec"].get("taints")
