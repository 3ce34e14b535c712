"""Claims against containers: prepared before the first, given back after the last, whatever fails."""

import pytest
from bound_pods import allocate, make_claim
from claim_nodes import GPU
from procs import until
from python_driver import ClaimReader, Driver
from runtime_nodes import WAIT_S, container, pod

SAID = "no GPU today"


class WatchingDriver(Driver):
    """Refuses when it is told to, and knows which containers ran when it was asked."""

    def __init__(self, node):
        super().__init__(node.kubelet_dir, node.cdi_dir, GPU, ClaimReader(node.kubeconfig))
        self.refuses = ()  # of "prepare", "unprepare"
        self.running = {"prepare": [], "unprepare": []}
        self._node = node
        self.before = self.look

    def look(self, kind, _claims):
        self.running[kind].append(sorted(
            key for key, state in self._node.containers().items() if state == "RUNNING"))
        if kind in self.refuses:
            raise RuntimeError(SAID)


@pytest.fixture
def driver(node):
    made = WatchingDriver(node)
    made.serve()
    node.wait_connected(GPU)
    yield made
    made.stop()
    assert not made.overlaps, made.overlaps


def run(node, name="p", **spec):
    """A pod whose init container and main container print what their claim gave them."""
    both = {"resources": {"claims": [{"name": "g"}]}}
    make_claim(node.api(), f"c-{name}")
    uid = node.add(pod(name, container(script="echo $DEVICE_0; exec sleep 1000", **both),
                       initContainers=[container("first", "echo $DEVICE_0", **both)],
                       resourceClaims=[{"name": "g", "resourceClaimName": f"c-{name}"}], **spec))
    allocate(node.api(), f"c-{name}", name)
    return uid


def has_said(node, name):
    return any(SAID in message for _, message in node.events(name))


def test_prepare_fails_and_works_later(node, driver):
    """Also across a restart of davitd; no sandbox is made meanwhile."""
    driver.refuses = ("prepare",)
    run(node)
    until(lambda: has_said(node, "p"), WAIT_S, "the driver's words in an event")
    assert {reason for reason, message in node.events("p") if SAID in message} == {
        "FailedPrepareDynamicResources"}
    node.kill()
    node.start()
    n_calls = driver.n_calls("prepare")
    until(lambda: driver.n_calls("prepare") > n_calls, WAIT_S, "it is asked again")
    assert node.phase("p") == "Pending"
    assert not node.sandboxes() and not node.containers()
    driver.refuses = ()
    node.wait_phase("p", "Running")
    for name in ("first", "main"):
        until(lambda name=name: node.log("p", name) == "n1/device-0", WAIT_S, node.log("p", name))
    assert not any(driver.running["prepare"])


def test_unprepare_fails_and_works_later(node, driver):
    """The object stays, with its phase, until the claim was given back; nothing runs meanwhile."""
    run(node)
    node.wait_phase("p", "Running")
    driver.refuses = ("unprepare",)
    node.delete("p")
    until(lambda: driver.n_calls("unprepare") >= 2, WAIT_S, "it is asked again")
    assert node.phase("p") == "Running"
    node.kill()
    node.start()
    n_calls = driver.n_calls("unprepare")
    until(lambda: driver.n_calls("unprepare") > n_calls, WAIT_S, "and by the next davitd")
    assert node.phase("p") == "Running"
    driver.refuses = ()
    node.wait_gone("p")
    assert not driver.prepared()
    assert not any(driver.running["unprepare"]), driver.running


def test_a_pod_that_is_deleted_by_force_gives_its_claim_back(node, driver):
    run(node)
    node.wait_phase("p", "Running")
    node.delete("p", gracePeriodSeconds=0)
    assert node.pod("p") is None
    until(lambda: not driver.prepared(), WAIT_S, "the claim is given back")
    assert not any(driver.running["unprepare"]), driver.running
    until(lambda: not node.containers() and not node.sandboxes(), WAIT_S, "nothing is left")


def test_a_restart_of_a_container_keeps_the_claim(node, driver):
    make_claim(node.api(), "c-q")
    node.add(pod("q", container(script="echo $DEVICE_0; sleep 1; exit 1",
                                resources={"claims": [{"name": "g"}]}),
                 resourceClaims=[{"name": "g", "resourceClaimName": "c-q"}]))
    allocate(node.api(), "c-q", "q")
    node.wait_status("q", lambda s: s.get("containerStatuses", [{}])[0].get("restartCount", 0) >= 2,
                     "it was restarted twice")
    assert driver.n_calls("prepare") == 1
    assert driver.n_calls("unprepare") == 0
    assert node.log("q", number=1) == "n1/device-0"
