"""A pod with as many claims as fit into a request is served, and nobody else waits for it.

That no walk over its lists is quadratic is in src/claim/tests/test_claim_growth.c and
src/pod/tests/test_ledger.c; the longest turn of the loop is shown by ./dev bench stall."""

from claim_nodes import allocation, pod, reserved
from driver_nodes import (  # noqa: F401  # pylint: disable=unused-import
    DRIVER, WAIT_S, fixture_claim_node)
from procs import until
from python_driver import Device, Driver
from servers import CLAIMS, PATIENCE_S, PODS
from test_large_requests import SCALE, Bystander

# More than are prepared in one turn of the loop, under as many names as a pod may have.
N_CLAIMS = 300
N_ENTRIES = 20000 // SCALE
N_GENERATED = 1000 // SCALE
TEMPLATES = CLAIMS.replace("resourceclaims", "resourceclaimtemplates")
SPEC = {"devices": {"requests": [{"name": "r0", "exactly": {"deviceClassName": "gpu"}}]}}


def make_claims(api, uid):
    for number in range(N_CLAIMS):
        doc = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim",
               "metadata": {"name": f"c{number}"}, "spec": SPEC}
        api.must("POST", CLAIMS, doc)
        doc["status"] = {"allocation": allocation((DRIVER, f"d{number}")),
                         "reservedFor": reserved(uid)}
        api.must("PUT", f"{CLAIMS}/c{number}/status", doc)


def check(bystander):
    assert bystander.failure is None
    assert bystander.n_answers > 0
    # A stall of the loop took seconds; what is above this is no noise of the machine.
    assert bystander.slowest_s < PATIENCE_S / 2


def test_a_pod_of_many_claims_is_admitted_and_nobody_waits_for_it(claim_node):
    driver = Driver(claim_node.kubelet_dir, claim_node.cdi_dir, DRIVER)
    driver.devices_of = lambda claim: [Device("r0", "n1", f"d-{claim.name}", [])]
    driver.write_spec = lambda path, text: None
    driver.serve()
    try:
        make_claims(claim_node.api(), "uid-big")
        until(lambda: driver.is_registered, WAIT_S, "the driver is registered")
        entries = {f"e{number}": f"c{number % N_CLAIMS}" for number in range(N_ENTRIES)}
        with Bystander(claim_node) as bystander:
            answer = claim_node.admit(pod("big", entries), wait=WAIT_S, timeout=WAIT_S)
            assert answer.admitted, answer
            assert driver.n_calls("prepare") == 1
            assert len(driver.names("prepare")[0]) == N_CLAIMS  # each once
            claim_node.container_options("uid-big", "main")
            claim_node.status()
            assert len(claim_node.claims()) == N_CLAIMS
            claim_node.release("uid-big")
        assert len(driver.names("unprepare")[0]) == N_CLAIMS
        assert not claim_node.claims()
        check(bystander)
    finally:
        driver.stop()


def claim_names(api):
    statuses = api.must("GET", f"{PODS}/big")["status"].get("resourceClaimStatuses", ())
    return {one["resourceClaimName"] for one in statuses}


def test_all_claims_of_a_pod_are_made_anew_and_nobody_waits_for_it(node, api):
    doc = pod("big", {f"e{number}": "" for number in range(N_GENERATED)})
    del doc["metadata"]["uid"], doc["spec"]["nodeName"]
    for entry in doc["spec"]["resourceClaims"]:
        del entry["resourceClaimName"]
        entry["resourceClaimTemplateName"] = "t"
    api.must("POST", TEMPLATES, {
        "apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaimTemplate",
        "metadata": {"name": "t"}, "spec": {"spec": SPEC}})
    with Bystander(node) as bystander:
        api.must("POST", PODS, doc)
        until(lambda: len(claim_names(api)) == N_GENERATED, WAIT_S, "claims")
        first = claim_names(api)
        api.must("DELETE", CLAIMS)
        until(lambda: not claim_names(api) & first, WAIT_S, "other claims")
    check(bystander)
