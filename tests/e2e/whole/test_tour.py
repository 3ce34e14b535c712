"""`./dev run --once`: the whole path, as a newcomer sees it."""

import os
import re
import subprocess

import pytest

from peers import folder_of

pytestmark = pytest.mark.release

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, os.pardir, os.pardir)


def test_every_step_of_the_tour_works():
    done = subprocess.run(
        [os.path.join(ROOT, "tools", "run"), "--once"], capture_output=True, text=True, timeout=100,
        env={**os.environ, "DAVIT_BUILD_ROOT": folder_of("DAVIT_BUILD")}, check=False,
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr
    # one more where containers can run
    assert re.search(r"All 1[01] steps worked", done.stdout), done.stdout[-2000:]
    assert "Sanitizer" not in done.stdout + done.stderr


def test_a_step_that_does_not_work_is_named(tmp_path):
    """Without its programs the first one fails, with a status and a text that says so."""
    for name in ("davitd", "davit"):
        program = tmp_path / name
        program.write_text("#!/bin/sh\necho no such luck\nexit 3\n")
        program.chmod(0o755)
    done = subprocess.run(
        [os.path.join(ROOT, "tools", "run"), "--once"], capture_output=True, text=True, timeout=60,
        env={**os.environ, "DAVIT_BUILD_ROOT": str(tmp_path)}, check=False,
    )
    assert done.returncode == 1
    assert "step 1 failed: davitd ended with 3" in done.stderr
