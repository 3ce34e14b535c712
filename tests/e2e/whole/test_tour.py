"""`./dev run --once`: the whole path, as a newcomer sees it."""

import os
import re
import subprocess

import pytest

from peers import folder_of

pytestmark = pytest.mark.release

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, os.pardir, os.pardir)


def shown_in_the_readme():
    """The titles, commands and heads of tables of its part of the tour."""
    with open(os.path.join(ROOT, "README.md"), encoding="utf-8") as page:
        block = re.search(r"^From the tour.*?^```\n(.*?)^```$", page.read(), re.M | re.S).group(1)
    lines = [re.sub(r"^\d+\. ", "", line) for line in block.splitlines()]
    found = [line.split() for line in lines if re.match(r"[A-Z]|  \$ |    [A-Z][A-Z]+   ", line)]
    assert len(found) > 6
    return found


def test_every_step_of_the_tour_works():
    done = subprocess.run(
        [os.path.join(ROOT, "tools", "run"), "--once"], capture_output=True, text=True, timeout=100,
        env={**os.environ, "DAVIT_BUILD_ROOT": folder_of("DAVIT_BUILD")}, check=False,
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr
    # one more where containers can run
    steps = re.search(r"All (1[01]) steps worked", done.stdout)
    assert steps, done.stdout[-2000:]
    told = [re.sub(r"^\d+\. ", "", line).split() for line in done.stdout.splitlines()]
    if steps.group(1) == "11":
        assert [line for line in shown_in_the_readme() if line not in told] == []
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
