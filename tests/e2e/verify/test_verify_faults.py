"""davit verify finds the mistakes of the sample drivers, each by the cases that are there for it."""

import pytest

import fault_rows
from verify_runs import CLAIM, DRA, PLUGIN, listed, note, requires, verify


ROWS = [("device-plugin", PLUGIN, *row) for row in fault_rows.PLUGIN.items()]
ROWS += [("dra", DRA, *row) for row in fault_rows.DRA.items()]


@pytest.mark.parametrize("kind,command,fault,cases", ROWS, ids=[f"{r[0]}-{r[2]}" for r in ROWS])
def test_each_mistake_is_found(scratch, kind, command, fault, cases):
    note(kind, fault, [])
    wanted = [word for case in cases for word in ("--only", case)]
    code, outcomes, reasons = verify(
        kind, f"{command} --fault {fault}", scratch, "--wait", "5", "--timeout", "40", "--jobs", "6",
        "--require", "slices", "--require", "classic", "--grace", "8", *requires(kind, cases),
        *(CLAIM if kind == "dra" else []), *wanted)
    assert code == 3, (outcomes, reasons)
    missed = {case: (outcomes.get(case), reasons.get(case)) for case in cases
              if outcomes.get(case) != "failed"}
    if missed.get("prepare.disk-full", ("", ""))[0] == "skipped":  # who may not mount cannot try
        del missed["prepare.disk-full"]
    assert not missed
    note(kind, fault, [case for case in outcomes if outcomes[case] == "failed"])


@pytest.mark.parametrize("kind,rows", [("device-plugin", fault_rows.PLUGIN), ("dra", fault_rows.DRA)])
def test_rows_name_cases_that_exist(kind, rows):
    known = set(listed(kind))
    assert {case for cases in rows.values() for case in cases} <= known
    assert len(known) > 60
