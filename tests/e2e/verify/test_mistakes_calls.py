"""davit verify finds mistakes of device plugins on grpcio: their answers."""

import pytest

import fault_rows
import plugin_faults
from mistakes import assert_found, rows
from verify_runs import listed


@pytest.mark.parametrize("fault", rows("allocate", "options", "prefer", "prestart", "wire"))
def test_mistakes(python_plugin, scratch, fault):
    assert_found(python_plugin, fault, scratch)


def test_every_case_of_device_plugins_finds_a_mistake():
    found = {case for cases in fault_rows.PLUGIN.values() for case in cases}
    found |= {case for kind in plugin_faults.FAULTS.values() for case in kind.cases}
    assert found == set(listed("device-plugin"))
    assert not fault_rows.PLUGIN.keys() & plugin_faults.FAULTS.keys()  # one name, one mistake
    groups = rows("register", "list", "shutdown", "allocate", "options", "prefer", "prestart", "wire")
    assert groups == list(plugin_faults.FAULTS)  # each in one of the files
