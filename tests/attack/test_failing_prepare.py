"""A driver or plugin that fails is asked ever less often, and the pod says so once."""

import itertools
import time

from bound_pods import DEV, bound, events, status_of, wait_devices, wait_phase
from driver_nodes import (  # noqa: F401  # pylint: disable=unused-import
    WAIT_S, conditions_of, fixture_claim_node, fixture_driver, make_pod_with_claim,
    wait_condition)
from procs import until
from servers import PODS

# The pauses double from a quarter of a second, less a fifth.
SHORTEST_S = 0.2


def check_gaps(times):
    """A loaded machine makes pauses longer, never shorter."""
    gaps = [later - earlier for earlier, later in itertools.pairwise(times)]
    for i, gap in enumerate(gaps):
        assert gap >= SHORTEST_S * 2 ** i * 0.95, gaps


def messages_of(api, pod):
    return {text for _, text in events(api, pod) if "no GPU today" in text}


def test_a_failing_prepare_is_repeated_ever_less(claim_node, driver):
    api = claim_node.api()
    driver.is_broken = True
    make_pod_with_claim(api, "p1", "c1")
    said = wait_condition(api, "p1", "FailedPrepareDynamicResources", "no GPU today")
    # Before the claim was allocated nobody was asked; since then the pauses go on from there.
    version = api.must("GET", f"{PODS}/p1")["metadata"]["resourceVersion"]
    until(lambda: len(driver.times) >= 4, WAIT_S, "four attempts")
    check_gaps(driver.times[-4:])
    pod = api.must("GET", f"{PODS}/p1")
    assert pod["metadata"]["resourceVersion"] == version, pod  # nothing was written
    assert conditions_of(api, "p1") == said
    until(lambda: messages_of(api, "p1"), WAIT_S, "an event")
    assert len(messages_of(api, "p1")) == 1, messages_of(api, "p1")


def test_a_driver_that_is_back_is_asked_at_once(claim_node, driver):
    api = claim_node.api()
    driver.is_broken = True
    make_pod_with_claim(api, "p1", "c1")
    until(lambda: len(driver.times) >= 5, WAIT_S, "five attempts")
    driver.stop()
    wait_condition(api, "p1", "WaitingForDevices", "driver gpu.example.com")
    driver.is_broken = False
    driver.serve()
    wait_devices(api, "p1", WAIT_S)


def test_a_failing_unprepare_is_repeated_ever_less(claim_node, driver):
    api = claim_node.api()
    make_pod_with_claim(api, "p1", "c1")
    wait_devices(api, "p1", WAIT_S)
    driver.is_broken = True
    api.must("DELETE", f"{PODS}/p1")
    until(lambda: driver.n_calls("unprepare") >= 4, WAIT_S, "four attempts")
    assert status_of(api, "p1") is not None
    driver.is_broken = False
    wait_phase(api, "p1", None, WAIT_S)


def test_a_failing_allocate_is_repeated_ever_less(claim_node, plugins):
    api = claim_node.api()
    plugin = plugins(claim_node, DEV, ["d0", "d1"])
    times = []

    def refuse(ids):
        times.append(time.monotonic())
        return f"attempt {len(times)} for {ids}: broken"

    plugin.answer = refuse
    plugin.register()
    until(lambda: DEV in claim_node.resources(), WAIT_S, "the plugin's devices")
    api.must("POST", PODS, bound("p1", devices=1))
    said = wait_condition(api, "p1", "UnexpectedAdmissionError", "broken")
    until(lambda: len(times) >= 4, WAIT_S, "four attempts")
    check_gaps(times[:4])
    assert conditions_of(api, "p1") == said
    plugin.answer = plugin.answer_with_env
    plugin.register()  # it is back
    wait_devices(api, "p1", WAIT_S)


def test_a_cdi_name_without_a_spec_is_looked_for_and_nobody_is_asked_again(claim_node, driver):
    api = claim_node.api()
    driver.write_spec = lambda path, text: None
    make_pod_with_claim(api, "p1", "c1")
    wait_condition(api, "p1", "FailedPrepareDynamicResources", "gpu.example.com", "c1")
    before = claim_node.proc.log.count("pod: refused")
    until(lambda: claim_node.proc.log.count("pod: refused") >= before + 2, WAIT_S, "two looks")
    assert len(driver.times) == 1, driver.times
