"""Nothing of a run is left behind, whatever the test found."""

import glob
import os
import sys
import tempfile

import pytest

import protos
from attached_drivers import Driver

HERE = os.path.dirname(os.path.abspath(__file__))


@pytest.fixture(scope="session")
def python_plugin():
    """The command of the plugin on grpcio. Its messages are made once, outside of any test's TMPDIR."""
    made = [protos.load(name).__file__ for name in ("deviceplugin_v1beta1", "registration_v1")]
    return (f"exec {sys.executable} -B {HERE}/python_plugin.py --kubelet-dir {{kubelet}}"
            f" --cdi-dir {{cdi}} --messages {os.path.dirname(made[0])}")


@pytest.fixture
def scratch(short_dir, monkeypatch):
    """TMPDIR is the test's own, so that what is left of a run can be seen."""
    folder = os.path.join(short_dir, "t")
    os.mkdir(folder)
    monkeypatch.setenv("TMPDIR", folder)
    monkeypatch.setattr(tempfile, "tempdir", None)
    yield short_dir
    assert not glob.glob(os.path.join(folder, "dv??????"))


@pytest.fixture
def drivers(scratch):
    made = []

    def new(kind, more=""):
        made.append(Driver(scratch, kind, more))
        return made[-1]

    yield new
    for driver in made:
        if driver.runs():
            driver.do("kill")
