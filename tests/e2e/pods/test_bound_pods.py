"""Pods of the API: admitted, told about, and gone when all they hold is given back."""

import json
import signal
import subprocess
import time

from bound_pods import (DEV, DEVICES_READY, GPU, allocate, bound, capacity, events, has_devices,
                        make_claim, phase_of, status_of, wait_devices, wait_phase, wait_reason)
from claim_nodes import WAIT_S
from procs import until
from servers import NODES, PODS


def test_the_whole_life_of_a_pod(node, kubectl):
    api = node.api()
    node.start_both()
    until(lambda: capacity(api, "n1").get(DEV) == "4", WAIT_S, "the plugin's devices in the Node")
    make_claim(api, "c1")
    kubectl("apply", "-f", "-", stdin=json.dumps(bound("p1", devices=2, claim="c1")))
    wait_reason(api, "p1", "FailedPrepareDynamicResources")
    assert any(reason == "FailedPrepareDynamicResources" for reason, _ in events(api, "p1"))
    allocate(api, "c1", "p1")
    wait_devices(api, "p1")
    status = status_of(api, "p1")
    (container,) = status["containerStatuses"]
    waiting = container["state"]["waiting"]
    assert status["phase"] == "Pending" and not container["ready"], status
    assert waiting["reason"] == "NoContainerRuntime", status
    assert "davit container started default/p1 main --pid" in waiting["message"], status
    kubectl("wait", f"--for=condition={DEVICES_READY}", "pod/p1", "--timeout=60s")
    (row,) = kubectl.rows("pods", "--no-headers")
    assert row[:3] == ["p1", "0/1", "NoContainerRuntime"], row
    (claim,) = node.claims().values()
    assert (claim.name, claim.state) == ("c1", "prepared")
    began = time.monotonic()
    kubectl("delete", "pod", "p1")  # nobody has started it: no grace period
    assert time.monotonic() - began < 15
    assert node.pods_here() == set() and node.claims() == {}
    assert node.resource(DEV).allocatable == 4


def test_a_pod_that_cannot_be_fails(node):
    api = node.api()
    node.start_plugin()
    api.must("POST", PODS, bound("p1", devices=9))
    wait_phase(api, "p1", "Failed")
    status = status_of(api, "p1")
    assert status["reason"] == "UnexpectedAdmissionError", status
    assert status["message"].startswith("Pod was rejected: Allocate failed due to "), status
    assert api.ask("DELETE", f"{PODS}/p1").status == 200
    wait_phase(api, "p1", None)


def test_a_pod_that_was_started_has_its_grace_period(node):
    api = node.api()
    node.start_plugin()
    api.must("POST", PODS, bound("p1", devices=1))
    wait_devices(api, "p1")
    done = node.davit("options", "p1", "-c", "main", "-o", "json")
    assert done.returncode == 0, done
    api.must("DELETE", f"{PODS}/p1?gracePeriodSeconds=3")
    time.sleep(1.5)
    assert has_devices(api, "p1") and node.pods_here() == {"p1"}
    wait_phase(api, "p1", None)
    assert node.pods_here() == set()


def test_who_was_started_is_not_forgotten(node):
    api = node.api()
    node.start_plugin()
    for name in ("p1", "p2", "p3"):
        api.must("POST", PODS, bound(name, devices=1))
    for name in ("p1", "p2", "p3"):
        wait_devices(api, name)
    assert node.davit("options", "p1", "-c", "main", "-o", "json").returncode == 0
    assert node.davit("container", "started", "p2", "main").returncode == 0
    node.kill()
    node.start()
    api = node.api()
    for name in ("p1", "p2", "p3"):
        api.must("DELETE", f"{PODS}/{name}?gracePeriodSeconds=300")
    wait_phase(api, "p3", None)
    assert node.pods_here() == {"p1", "p2"}
    for name in ("p1", "p2"):
        api.must("DELETE", f"{PODS}/{name}?gracePeriodSeconds=0")


def test_who_releases_a_pod_ends_it(node):
    api = node.api()
    node.start_plugin()
    api.must("POST", PODS, bound("p1", devices=1))
    wait_devices(api, "p1")
    assert node.davit("release", "p1").returncode == 0
    wait_phase(api, "p1", "Succeeded")
    node.stop()
    node.start()  # it is not admitted again
    time.sleep(1)
    api = node.api()
    assert phase_of(api, "p1") == "Succeeded" and node.pods_here() == set()


def test_a_pod_ends_with_its_process(node):
    api = node.api()
    node.start_plugin()
    with subprocess.Popen(["sleep", "60"]) as owner:
        api.must("POST", PODS, bound(
            "p1", devices=1, annotations={"davit.node/owner-pid": str(owner.pid)}))
        wait_devices(api, "p1")
        owner.kill()
    wait_phase(api, "p1", "Succeeded")
    assert node.pods_here() == set()


def test_a_node_that_was_killed_goes_on(node):
    api = node.api()
    node.start_both()
    make_claim(api, "c1")
    for name in ("p1", "p2", "p3"):
        api.must("POST", PODS, bound(name, devices=1, claim="c1" if name == "p1" else None))
    allocate(api, "c1", "p1")
    for name in ("p1", "p2", "p3"):
        wait_devices(api, name)
    node.kill()
    node.start()
    api = node.api()
    assert has_devices(api, "p1") and node.pods_here() == {"p1", "p2", "p3"}
    api.must("DELETE", f"{PODS}/p2?gracePeriodSeconds=0")
    until(lambda: node.pods_here() == {"p1", "p3"}, WAIT_S, "p2 released")
    api.must("DELETE", f"{PODS}/p1?gracePeriodSeconds=300")  # nobody has started it
    wait_phase(api, "p1", None)
    assert node.claims() == {}


def test_health_is_told(node, short_dir):
    api = node.api()
    control = f"{short_dir}/c"
    node.start_plugin("--virtual", "1", "--control", control)
    api.must("POST", PODS, bound("p1", devices=1))
    wait_devices(api, "p1")

    def health():
        (container,) = status_of(api, "p1")["containerStatuses"]
        (resource,) = container["allocatedResourcesStatus"]
        return resource["name"], resource["resources"][0]["health"]

    assert health() == (DEV, "Healthy")
    node.plugin.signal(signal.SIGUSR1)
    until(lambda: health() == (DEV, "Unhealthy"), WAIT_S, "the health of the device")


def test_a_node_object_is_made_again(node):
    api = node.api()
    until(lambda: capacity(api, "n1"), WAIT_S, "the Node")
    before = api.must("GET", f"{NODES}/n1")
    assert {one["type"]: one["status"] for one in before["status"]["conditions"]}["Ready"] == "True"
    api.must("DELETE", f"{NODES}/n1")
    until(lambda: capacity(api, "n1"), WAIT_S, "the Node, again")
    assert api.must("GET", f"{NODES}/n1")["metadata"]["uid"] != before["metadata"]["uid"]


def test_the_command_line_tells_of_claims(node):
    api = node.api()
    node.start_both()
    make_claim(api, "c1")
    api.must("POST", PODS, bound("p1", claim="c1"))
    allocate(api, "c1", "p1")
    wait_devices(api, "p1")
    rows = {line.split()[0]: line
            for line in node.davit("plugins", "-o", "wide").stdout.splitlines()}
    assert rows["NAME"].split()[3:5] == ["VERSIONS", "USES"]
    assert "v1.DRAPlugin" in rows[GPU] and " registered " in rows[GPU], rows
    listed = node.davit("claim", "list").stdout
    assert "c1" in listed and "prepared" in listed, listed
    done = node.davit("get", "claims", "-o", "wide", "--kubeconfig", node.kubeconfig)
    assert done.returncode == 0 and "c1" in done.stdout, done
    done = node.davit("describe", "claim", "c1", "--kubeconfig", node.kubeconfig)
    assert done.returncode == 0 and GPU in done.stdout and "device-0" in done.stdout, done
    node.driver.kill()
    done = node.davit("claim", "release", "c1")
    assert done.returncode != 0 and "--force" in done.stderr, done
    done = node.davit("claim", "release", "c1", "--force", "--reason", "the card is gone")
    assert done.returncode == 0, done
    assert node.claims() == {}
    until(lambda: any("the card is gone" in text for _, text in events(api, "c1")), WAIT_S,
          "an event of the release")


def test_state_goes_out_and_comes_in_again(node):
    api = node.api()
    node.start_both()
    make_claim(api, "c1")
    api.must("POST", PODS, bound("p1", devices=1, claim="c1"))
    allocate(api, "c1", "p1")
    wait_devices(api, "p1")
    (before,) = node.claims().values()
    node.stop()
    words = ("--state-dir", node.state_dir, "--kubelet-dir", node.kubelet_dir)
    done = node.davit("state", "export", *words)
    assert done.returncode == 0, done
    with open(f"{node.kubelet_dir}/dra_manager_state", encoding="utf-8") as file:
        text = file.read()
    assert "c1" in text and before.uid in text, text
    fresh = f"{node.root}/fresh"
    done = node.davit("state", "import", "--state-dir", fresh, "--kubelet-dir", node.kubelet_dir)
    assert done.returncode == 0, done
    done = node.davit("state", "export", "--state-dir", fresh, "--kubelet-dir", node.kubelet_dir)
    assert done.returncode == 0, done
    with open(f"{node.kubelet_dir}/dra_manager_state", encoding="utf-8") as file:
        assert file.read() == text
