"""davit verify against drivers on other gRPC stacks, which were not written with our library."""

import os
import sys

import pytest

from mistakes import PYTHON_HOOKS
from peers import folder_of
from verify_runs import listed, requires, verify

HERE = os.path.dirname(os.path.abspath(__file__))
PYTHON_DRIVER = (
    f"exec {sys.executable} {os.path.join(HERE, os.pardir, 'claims', 'python_driver.py')}"
    " --driver py.example.com --node {node} --kubeconfig {kubeconfig} --kubelet-dir {kubelet}"
    " --cdi-dir {cdi}"
)


def not_good(outcomes, reasons):
    return {case: reasons[case] for case, outcome in outcomes.items()
            if outcome not in ("passed", "skipped")}


def test_a_driver_in_python(scratch):
    """It prepares well; its slice has no owner, and that is found."""
    code, outcomes, reasons = verify(
        "dra", PYTHON_DRIVER, scratch, "--jobs", "2", "--wait", "30", "--only", "prepare.one",
        "--only", "prepare.devices", "--only", "prepare.idempotent", "--only", "prepare.unknown*",
        "--only", "unprepare.one", "--only", "unprepare.unknown*", "--only", "slices.owner")
    assert code == 3
    assert set(not_good(outcomes, reasons)) == {"slices.owner"}, reasons


def test_a_plugin_in_go(scratch):
    program = os.path.join(folder_of("DAVIT_PEERS"), "go-device-plugin")
    code, outcomes, reasons = verify(
        "device-plugin", f"exec {program} {{device_plugins}} example.com/dev a b c", scratch,
        "--only", "register.in-time", "--only", "register.kubelet-restart*", "--only", "list.*",
        "--only", "allocate.one", "--only", "allocate.all", "--only", "allocate.twice",
        "--skip", "list.unhealthy", "--skip", "list.heals")
    assert not not_good(outcomes, reasons)
    assert code == 0


def test_a_plugin_in_python(python_plugin, scratch):
    """The one that makes the mistakes of plugin_faults.py, without any: no case is skipped. What the
    sample plugin takes long for, Python takes longer."""
    code, outcomes, reasons = verify(
        "device-plugin", python_plugin + " --register both", scratch, "--jobs", "4",
        "--wait", "30", "--skip", "resources.*", *PYTHON_HOOKS, *requires("device-plugin"))
    assert code == 0, not_good(outcomes, reasons)
    assert set(outcomes.values()) == {"passed"}, reasons
    assert set(outcomes) == {case for case in listed("device-plugin")
                             if not case.startswith("resources.")}


@pytest.mark.parametrize("gives", ["annotations", "paths"])
def test_devices_are_told_apart_by_all_that_containers_get(python_plugin, scratch, gives):
    code, outcomes, reasons = verify(
        "device-plugin", f"{python_plugin} --gives {gives}", scratch, "--wait", "30",
        "--only", "allocate.*", "--skip", "allocate.after-kill", "--require", "allocate.distinct")
    assert code == 0, not_good(outcomes, reasons)
    assert outcomes["allocate.distinct"] == "passed"
