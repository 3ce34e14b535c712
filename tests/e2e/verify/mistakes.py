"""Runs of davit verify against python_plugin.py with one of its mistakes."""

import plugin_faults
from verify_runs import note, requires, verify

PYTHON_HOOKS = ["--hook", "empty=kill -HUP {pid}", "--hook", "many=kill -WINCH {pid}"]
# For what does not happen; and for a start of Python on a busy machine.
SILENT_S = 5
PATIENT_S = 30


def rows(*groups):
    """The mistakes that cases of these groups find."""
    return [name for name, kind in plugin_faults.FAULTS.items()
            if kind.cases[0].partition(".")[0] in groups]


def assert_found(command, fault, scratch):
    """By each of its cases, for what it is."""
    kind = plugin_faults.FAULTS[fault]
    note("device-plugin", fault, [])
    if "register.notify-false" in kind.cases:
        command += " --register watcher"
    code, outcomes, reasons = verify(
        "device-plugin", f"{command} --fault {fault}", scratch, "--timeout", "60",
        "--wait", str(SILENT_S if kind.waits else PATIENT_S), "--require", "classic", *PYTHON_HOOKS,
        *requires("device-plugin", kind.cases), "--grace", "8",
        *[word for case in kind.cases for word in ("--only", case)])
    assert code == 3, (outcomes, reasons)
    missed = {case: (outcomes.get(case), reasons.get(case)) for case in kind.cases
              if outcomes.get(case) != "failed" or kind.says not in reasons[case]}
    assert not missed, kind.says
    note("device-plugin", fault, list(kind.cases))
