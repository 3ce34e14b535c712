"""davit verify, when it is used in a wrong way or cannot do what it is told: it says so before it starts the
driver, and harms nobody."""

import json
import os
import subprocess
import sys

import pytest

from verify_runs import CLAIM, DAVIT, DRA, PLUGIN

CLASS = """apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: gpu}
spec: {selectors: [{cel: {expression: '%s'}}]}
"""
ONE = """---
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: one}
spec: {devices: {requests: [{name: "%s", exactly: {deviceClassName: gpu}}]}}
"""


def run(scratch, *words, command=None, **kwargs):
    """(exit status, all that was printed, whether the driver was started)"""
    mark = os.path.join(scratch, "started")
    done = subprocess.run(
        [DAVIT, "verify", *words, "--dir", os.path.join(scratch, "kept"), "--exec", command or f"touch {mark}; exec sleep 60"],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60, check=False, cwd=scratch, **kwargs)
    return done.returncode, done.stdout, os.path.exists(mark)


@pytest.mark.parametrize("option", ["--claim", "--bad-claim"])
@pytest.mark.parametrize("text,said", [
    (None, "No such file"),
    ("kind: [", "claim.yaml"),
    (CLASS % "true", "no ResourceClaim"),
    (CLASS % "device.nothing(" + ONE % "gpu", "DeviceClass gpu"),
    (CLASS % "true" + ONE % "Not A Name", "does not take the claim"),
], ids=["missing", "no-yaml", "no-claim", "bad-class", "bad-claim"])
def test_files_that_cannot_be_used_are_told_before_the_driver_starts(scratch, option, text, said):
    path = os.path.join(scratch, "claim.yaml")
    if text is not None:
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
    code, printed, is_started = run(scratch, "dra", option, path, "--wait", "1")
    assert code == 1 and said in printed and path in printed, printed
    assert not is_started


def test_reports_that_cannot_be_written_are_told_before_the_driver_starts(scratch):
    for option in ("--tap", "--junit", "--json"):
        code, printed, is_started = run(scratch, "device-plugin", option, os.path.join(scratch, "none", "r"))
        assert code == 1 and "No such file" in printed and not is_started, printed
        code, printed, is_started = run(scratch, "device-plugin", option, scratch)
        assert code == 2 and "is a directory" in printed and not is_started, printed
    code, printed, is_started = run(scratch, "dra", "--tap", "-", "--json", "-")
    assert code == 2 and "only one" in printed and not is_started, printed


@pytest.mark.parametrize("words,status,said", [
    (["dra", "--also", "everything"], 1, "everything"),
    (["dra", "--node", "Not A Node"], 1, "Not A Node"),
    (["device-plugin", "--claim", "claim.yaml"], 2, "--claim"),
    (["device-plugin", "--also", "pods: get"], 2, "--also"),
    (["dra", "--list", "--only", "no.such"], 2, "no.such"),
])
def test_options_that_cannot_be_meant_are_told_once(scratch, words, status, said):
    code, printed, is_started = run(scratch, *words)
    assert code == status and said in printed and not is_started, printed
    assert len(printed.splitlines()) == 1


def test_what_is_no_file_is_written_to_and_stays(scratch):
    """Such as /dev/stdout, which root could replace by a file."""
    link = os.path.join(scratch, "out")
    os.symlink("/dev/stdout", link)
    code, printed, _ = run(scratch, "device-plugin", "--only", "register.in-time", "--json", link, command=PLUGIN)
    assert code == 0, printed
    assert json.loads(printed[printed.index("{"):])["passed"] == 1
    assert os.path.islink(link)


def test_a_report_in_the_directory_of_the_run_needs_no_path(scratch):
    code, printed, _ = run(scratch, "dra", "--only", "register.in-time", "--json", "r.json", *CLAIM, command=DRA)
    assert code == 0, printed
    assert os.path.exists(os.path.join(scratch, "r.json"))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be somebody else, whose processes are harmed if anybody's")
def test_without_room_for_a_process_nothing_is_killed(scratch):
    """A fork that fails is no process: a signal to it would go to all."""
    nobody = 65534
    os.chown(scratch, nobody, nobody)
    limits = "import os, resource, sys; resource.setrlimit(resource.RLIMIT_NPROC, (1, 1)); os.execv(sys.argv[1], sys.argv[1:])"
    with subprocess.Popen(["sleep", "60"], user=nobody, group=nobody, extra_groups=[]) as bystander:
        done = subprocess.run(
            [sys.executable, "-c", limits, DAVIT, "verify", "device-plugin", "--exec", "true", "--dir", os.path.join(scratch, "kept")],
            user=nobody, group=nobody, extra_groups=[], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            timeout=60, check=False)
        try:
            assert bystander.poll() is None
        finally:
            bystander.kill()
    assert done.returncode == 1 and "starting a process" in done.stdout, done.stdout
