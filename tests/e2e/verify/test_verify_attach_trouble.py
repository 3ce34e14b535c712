"""davit verify --attach, when something goes wrong: its own processes are killed, a hook is cut short, the
directory is somebody else's or full, the driver floods."""

import os
import signal
import subprocess
import threading

import pytest

from attached_drivers import assert_nothing_is_left, first_run, only, sockets
from procs import until
from verify_runs import CLAIM, descendants


def begin_first_run(driver, *options, **kwargs):
    """A run that is under way, with its driver."""
    starting = threading.Thread(target=driver.start)
    starting.start()
    run = driver.begin(*options, **kwargs)
    starting.join()
    return run


def keeper_of(run):
    """The process that keeps the API: the first that davit has forked."""
    with open(f"/proc/{run.pid}/task/{run.pid}/children", encoding="ascii") as file:
        return int(file.read().split()[0])


def test_the_end_of_the_api_ends_the_run(drivers):
    driver = drivers("dra")
    run = begin_first_run(driver, *CLAIM)
    try:
        until(lambda: "pass" in driver.output(), 60, "a first case")
        os.kill(keeper_of(run), signal.SIGKILL)
        assert run.wait(60) == 1, driver.output()
    finally:
        run.kill()
        run.wait()
    assert "the process of the API ended by signal 9" in driver.output()
    assert driver.output().count("BROKEN") <= 1, driver.output()
    assert_nothing_is_left(driver)
    code, outcomes, reasons = driver.verify(*only("prepare.one"))
    assert (code, outcomes) == (0, {"prepare.one": "passed"}), reasons


def test_a_directory_that_was_for_another_driver(drivers):
    """What it has published is no mistake of the next one."""
    driver = drivers("dra")
    code, _, reasons = first_run(driver, *only("prepare.one"))
    assert code == 0, reasons
    driver.do("kill")
    other = drivers("dra", " --driver other.example.com")
    other.start()
    code, outcomes, reasons = other.verify(*only("slices.own", "prepare.one"))
    assert (code, set(outcomes.values())) == (0, {"passed"}), reasons


def test_a_hook_that_is_cut_short_leaves_a_driver_that_runs(drivers):
    driver = drivers("dra")
    with open(driver.script, encoding="utf-8") as file:
        text = file.read()
    with open(driver.script, "w", encoding="utf-8") as file:
        file.write(text.replace("stop)", "stop) touch stopping; sleep 2;"))
    run = begin_first_run(driver, *driver.hooks(), *only("shutdown.sigterm"))
    until(lambda: os.path.exists(os.path.join(driver.folder, "stopping")), 60, "a hook at work")
    run.send_signal(signal.SIGINT)
    assert run.wait(60) == 1
    assert_nothing_is_left(driver)
    # One, not two.
    assert subprocess.run(["pgrep", "-fc", "--", f"--kubelet-dir {driver.dir}/kubelet"], stdout=subprocess.PIPE,
                          text=True, check=False).stdout == "1\n"


@pytest.mark.skipif(os.geteuid() != 0, reason="who is not root sees no other boot id in any case")
def test_a_reboot_leaves_an_attached_driver_in_the_namespace_that_it_was_in(drivers):
    driver = drivers("dra")
    code, outcomes, reasons = first_run(driver, *driver.hooks(), *only("prepare.after-reboot"))
    assert (code, outcomes) == (0, {"prepare.after-reboot": "passed"}), reasons
    assert os.readlink(f"/proc/{driver.pid()}/ns/mnt") == os.readlink("/proc/self/ns/mnt")
    assert_nothing_is_left(driver)


@pytest.mark.parametrize("kind,path", [
    ("dra", "kubelet/pods"), ("device-plugin", "kubelet/config.yaml"), ("dra", "run/their.pid"),
    ("dra", "cdi/their.json"), ("dra", "lib/their.so"), ("device-plugin", "their.txt"),
])
def test_a_directory_of_somebody_else_is_left_alone(drivers, kind, path):
    driver = drivers(kind)
    theirs = os.path.join(driver.dir, path)
    os.makedirs(os.path.dirname(theirs), exist_ok=True)
    with open(theirs, "w", encoding="utf-8"):
        pass
    code, _, reasons = driver.verify("--wait", "1")
    assert code == 1
    top = os.path.join(driver.dir, path.split("/")[0])
    assert (theirs in reasons["output"] or f"{top} is" in reasons["output"]) and "directory of its own" in reasons["output"]
    assert os.path.exists(theirs) and not sockets(driver)


@pytest.mark.parametrize("kind", ["dra", "device-plugin"])
def test_what_is_kept_may_be_in_the_directory(drivers, kind):
    driver = drivers(kind)
    for _ in range(2):
        code, outcomes, reasons = driver.verify("--wait", "1", "--dir", os.path.join(driver.dir, "kept"))
        assert (code, outcomes["probe"]) == (3, "failed"), reasons


@pytest.fixture
def small(drivers):
    """A DIR with little room."""
    driver = drivers("dra")
    made = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", driver.dir], stderr=subprocess.DEVNULL, check=False)
    if made.returncode != 0:
        pytest.skip("may not mount")
    yield driver
    if driver.runs():
        driver.do("kill")
    subprocess.run(["umount", "-l", driver.dir], check=True)


def fill(path):
    """All that is left of the disk."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    file = os.open(path, os.O_WRONLY | os.O_CREAT)
    try:
        while os.write(file, bytes(4096)):
            pass
    except OSError:
        os.close(file)


def test_a_directory_without_room_is_told(small):
    fill(os.path.join(small.dir, "state", "full"))
    code, _, reasons = small.verify("--wait", "5")
    assert code == 1
    assert "full" in reasons["output"] or "No space left" in reasons["output"], reasons
    assert not sockets(small)
