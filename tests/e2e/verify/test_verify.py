"""davit verify over the sample drivers: all is well, reports say so, nothing is left behind."""

import json
import os
import re
import shlex
import signal
import subprocess
import xml.etree.ElementTree

import pytest
import yaml

from procs import until
from verify_runs import CLAIM, DAVIT, DRA, PLUGIN, descendants, group_is_gone, listed, requires, verify

HERE = os.path.dirname(os.path.abspath(__file__))


def assert_good(code, outcomes, reasons, kind):
    bad = {case: reasons[case] for case, outcome in outcomes.items()
           if outcome not in ("passed", "skipped")}
    assert not bad
    assert code == 0, reasons
    assert set(outcomes) == set(listed(kind))


def test_the_sample_plugin_passes(scratch):
    code, outcomes, reasons = verify(
        "device-plugin", PLUGIN + " --register both", scratch, "--jobs", "4",
        *requires("device-plugin"))
    assert_good(code, outcomes, reasons, "device-plugin")
    assert list(outcomes.values()).count("passed") > 50


def test_a_plugin_with_nodes_passes(scratch):
    command = PLUGIN.replace("--virtual 4 --numa 0,1", "--devices /dev/null --devices /dev/zero")
    code, outcomes, reasons = verify("device-plugin", command, scratch, "--only", "allocate.*")
    assert code == 0, reasons
    assert outcomes["allocate.device-nodes"] == "passed"


def test_the_sample_driver_passes(scratch):
    code, outcomes, reasons = verify("dra", DRA, scratch, "--jobs", "6", *CLAIM, *requires("dra"))
    assert_good(code, outcomes, reasons, "dra")
    assert list(outcomes.values()).count("passed") > 60


def test_a_driver_with_several_slices_passes(scratch):
    """They come one after the other: who looks at the first alone is mistaken about the driver."""
    code, outcomes, reasons = verify("dra", DRA + " --devices 300 --partitions 2", scratch, "--jobs", "6",
                                     "--only", "slices.*", "--only", "prepare.parallel")
    assert code == 0, reasons
    assert [case for case in outcomes if outcomes[case] != "passed"] == ["slices.change"], reasons


def test_devices_that_do_not_suit_the_claim_are_told(scratch):
    code, outcomes, reasons = verify("dra", DRA + " --taint a=b:NoSchedule", scratch,
                                     "--only", "prepare.one", "--only", "slices.valid")
    assert code == 0
    assert outcomes == {"prepare.one": "skipped", "slices.valid": "passed"}, reasons
    assert "taint" in reasons["prepare.one"]


@pytest.mark.parametrize("release", ["1.32", "1.34"])
def test_older_releases_are_emulated(scratch, release):
    code, outcomes, reasons = verify(
        "dra", DRA, scratch, "--emulate", release, "--only", "skew.*", "--only", "slices.own")
    assert code == 0, reasons
    assert set(outcomes.values()) == {"passed"}, reasons


def test_a_release_without_the_service_is_told(scratch):
    code, outcomes, _ = verify(
        "dra", DRA + " --versions v1", scratch, "--emulate", "1.31", "--wait", "2",
        "--only", "register.in-time")
    assert code == 3
    assert outcomes["register.in-time"] == "failed"


def test_reports(scratch):
    junit, tap = os.path.join(scratch, "j.xml"), os.path.join(scratch, "t.tap")
    code, outcomes, _ = verify(
        "device-plugin", PLUGIN + " --fault gives-nothing", scratch, "--only", "allocate.one",
        "--only", "allocate.gives", "--only", "allocate.mounts", "--junit", junit, "--tap", tap,
        "--require", "allocate.g*")
    assert code == 3
    assert outcomes == {"allocate.one": "passed", "allocate.gives": "failed",
                        "allocate.mounts": "skipped"}
    suite = xml.etree.ElementTree.parse(junit).getroot().find("testsuite")
    assert (suite.get("tests"), suite.get("failures"), suite.get("skipped")) == ("3", "1", "1")
    with open(tap, encoding="utf-8") as file:
        lines = file.read().splitlines()
    assert lines[1] == "1..3"
    assert any(line.startswith("not ok") and "allocate.gives" in line for line in lines)
    for kept in ("allocate.gives.log", "allocate.gives.dav"):
        assert os.path.exists(os.path.join(scratch, "kept", kept))


def test_what_only_some_drivers_do_is_skipped_unless_required(scratch):
    command = PLUGIN + " --fault ignores-ids"
    code, outcomes, reasons = verify("device-plugin", command, scratch, "--only", "allocate.distinct")
    assert (code, outcomes) == (0, {"allocate.distinct": "skipped"})
    assert "--require allocate.distinct" in reasons["allocate.distinct"]
    code, outcomes, reasons = verify("device-plugin", command, scratch, "--only", "allocate.distinct",
                                     "--require", "allocate.distinct")
    assert (code, outcomes) == (3, {"allocate.distinct": "failed"})
    assert reasons["allocate.distinct"].startswith("it is required, and would be skipped")
    # Also when the driver does not get so far that a case could say so.
    code, outcomes, _ = verify("device-plugin", PLUGIN.replace("--prestart", ""), scratch,
                               "--only", "prestart.*", "--require", "prestart.again")
    assert code == 3
    assert outcomes == {"prestart.answers": "skipped", "prestart.again": "failed",
                        "prestart.unknown-id": "skipped"}


def test_a_driver_that_does_not_start_is_told_with_its_last_words(scratch):
    done = subprocess.run(
        [DAVIT, "verify", "device-plugin", "--exec", "seq 1 50; echo no such library >&2; exit 7",
         "--dir", os.path.join(scratch, "kept")], stdout=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 3
    lines = done.stdout.splitlines()
    assert "the driver ended (exit status 7)" in lines[0]
    assert lines[-2].strip() == "| no such library" and "| 42" in done.stdout and "| 41" not in done.stdout
    assert len(lines) < 20 and "explain probe" not in done.stdout


@pytest.mark.parametrize("kind,command,case", [("dra", DRA, "unprepare.one"), ("device-plugin", PLUGIN, "allocate.one")])
def test_the_recording_of_a_case_is_played_back(scratch, kind, command, case):
    """It has one driver in it, by one name: somebody who has not got the driver can see what it does."""
    code, _, reasons = verify(kind, command, scratch, "--only", case)
    assert code == 0, reasons
    recording = os.path.join(scratch, "played.dav")
    os.rename(os.path.join(scratch, "kept", f"{case}.dav"), recording)
    code, outcomes, reasons = verify(
        kind, f"exec {DAVIT} record replay --as driver {recording} --kubelet-dir {{kubelet}}", scratch,
        "--only", "register.in-time", *(["--only", case] if kind == "device-plugin" else []))
    assert (code, set(outcomes.values())) == (0, {"passed"}), reasons


def test_explain_and_mistakes_of_the_command_line(scratch):
    said = subprocess.run([DAVIT, "verify", "explain", "register.kubelet-restart"], check=True,
                          stdout=subprocess.PIPE, text=True).stdout
    assert "Why it matters" in said and "(dra)" in said and "(device-plugin)" in said
    for words in (["explain", "no.such"], ["device-plugin"], ["dra", "--exec", "x", "--only", "no"], ["dra", "--exec", "x", "--require", "no.such"],
                  ["dra", "--exec", "x", "--require", "nothing"],
                  ["dra", "--exec", "x", "--emulate", "1.2"], ["dra", "--exec", "x", "--attach", scratch]):
        done = subprocess.run([DAVIT, "verify", *words, "--dir", os.path.join(scratch, "kept")],
                              stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=False)
        assert done.returncode == 2, done.stderr


@pytest.mark.parametrize("recipe", ["github-workflow.yaml", "gitlab-ci.yaml"])
def test_the_commands_of_the_recipes_are_understood(recipe):
    with open(os.path.join(HERE, os.pardir, os.pardir, os.pardir, "examples", "ci", recipe),
              encoding="utf-8") as file:
        text = json.dumps(yaml.safe_load(file))
    (command,) = [found for found in re.findall(r"davit verify [^\"]*", text) if "--exec" in found]
    words = shlex.split(command.replace("\\n", ""))
    done = subprocess.run([DAVIT, *words[1:], "--list"], stdout=subprocess.PIPE, text=True, check=True)
    assert len(done.stdout.splitlines()) > 60


def test_output_of_the_driver_is_bounded(scratch):
    code, outcomes, reasons = verify(
        "device-plugin", "head -c 50000000 /dev/zero | tr '\\0' x; " + PLUGIN, scratch,
        "--only", "register.in-time")
    assert (code, outcomes) == (0, {"register.in-time": "passed"}), reasons
    assert os.path.getsize(os.path.join(scratch, "kept", "register.in-time.log")) < 9 << 20


def kill_all(run, signum):
    """As killall does: by the name of the program, workers too."""
    for pid in [*descendants(run), run]:
        try:
            with open(f"/proc/{pid}/comm", encoding="ascii") as name:
                if name.read() == "davit\n":
                    os.kill(pid, signum)
        except OSError:
            pass  # it has just ended


@pytest.mark.parametrize("send,signum", [
    (os.kill, signal.SIGINT), (os.kill, signal.SIGKILL), (os.killpg, signal.SIGKILL),
    (kill_all, signal.SIGKILL)])
def test_nothing_is_left_when_davit_is_ended(scratch, send, signum):
    """Also not of drivers whose helpers have left their group; and when a service kills the group."""
    mark = f"100000.{os.getpid()}"
    command = (f"setsid sh -c 'trap : TERM; sleep {mark} & sleep {mark}' & "
               + PLUGIN + " --fault never-registers")
    run = subprocess.Popen(
        [DAVIT, "verify", "device-plugin", "--exec", command,
         "--dir", os.path.join(scratch, "kept"), "--wait", "60"],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
    below = until(lambda: len(found := descendants(run.pid)) >= 5 and found, 30, "a driver")

    send(run.pid, signum)
    run.wait(30)
    until(lambda: group_is_gone(below), 30, lambda: f"still there: {below}")
    until(lambda: not [name for name in os.listdir(os.environ["TMPDIR"])
                       if name.startswith("dv")], 30, "its directories to be removed")
