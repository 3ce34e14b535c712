"""davit verify finds mistakes that libdavit-driver does not let a driver make, in a driver that is not
written with it; and finds none in that driver without them."""

import glob
import os
import shutil
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

import pytest

import fault_rows
import protos
from verify_runs import listed, note, requires, verify

HERE = os.path.dirname(os.path.abspath(__file__))
MESSAGES = os.path.dirname([protos.load(name) for name in (
    "dra_v1", "health_v1", "registration_v1")][0].__file__)
DRIVER = (
    f"PYTHONPATH={MESSAGES} exec {sys.executable} -B {HERE}/careful_driver.py --node {{node}} --kubeconfig {{kubeconfig}}"
    " --kubelet-dir {kubelet} --cdi-dir {cdi}"
)
OPTIONS = [
    "--hook", "unhealthy=kill -USR1 {pid}", "--hook", "healthy=kill -USR2 {pid}",
    "--hook", "change=kill -HUP {pid}", "--bad-claim", os.path.join(HERE, "bad_claim.yaml"),
    "--require", "slices", "--require", "health",
]
# They wait more than they compute.
RUNS_AT_A_TIME = 6


def only(cases):
    return [word for case in cases for word in ("--only", case)]


@pytest.fixture(scope="module")
def runs(request):
    """{fault: the run's future}, of all tests that were chosen, at the same time: some cases only
    fail after half a minute of nothing."""
    folder = tempfile.mkdtemp(prefix="dve-")
    chosen = {item.callspec.params["fault"] for item in request.session.items
              if item.module is request.module and hasattr(item, "callspec")}

    def run(fault):
        own = os.path.join(folder, fault)
        os.mkdir(own)
        return verify("dra", f"{DRIVER} --fault {fault}", own, "--wait", "15", "--recover", "5",
                      *OPTIONS, *only(fault_rows.CAREFUL[fault]), *requires("dra"), tmpdir=folder)

    with ThreadPoolExecutor(RUNS_AT_A_TIME) as pool:
        yield {fault: pool.submit(run, fault) for fault in fault_rows.CAREFUL if fault in chosen}
    assert not glob.glob(os.path.join(folder, "dv??????"))
    shutil.rmtree(folder)


@pytest.mark.parametrize("fault", fault_rows.CAREFUL)
def test_each_mistake_is_found(runs, fault):
    note("dra", fault, [])
    code, outcomes, reasons = runs[fault].result()
    assert code == 3, (outcomes, reasons)
    for case, words in fault_rows.CAREFUL[fault].items():
        assert outcomes[case] == "failed" and words in reasons[case], reasons
    note("dra", fault, [case for case in outcomes if outcomes[case] == "failed"])


def test_without_a_mistake_these_cases_pass(scratch):
    cases = [case for row in fault_rows.CAREFUL.values() for case in row]
    code, outcomes, reasons = verify("dra", DRIVER, scratch, "--jobs", "4", "--wait", "30", *OPTIONS,
                                     *requires("dra"), *only(cases))
    assert set(outcomes.values()) == {"passed"}, reasons
    assert code == 0


def test_a_driver_may_be_prepared_to_end_a_moment_after_it_works(scratch):
    code, outcomes, reasons = verify("dra", DRIVER + " --handles-late", scratch, "--wait", "30",
                                     "--only", "shutdown.sockets")
    assert outcomes == {"shutdown.sockets": "passed"}, reasons
    assert code == 0


def test_every_case_is_failed_by_a_mistake():
    found = {case for rows in (fault_rows.DRA, fault_rows.CAREFUL)
             for row in rows.values() for case in row}
    assert set(listed("dra")) == found
