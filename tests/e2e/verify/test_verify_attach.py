"""davit verify --attach: a driver that runs already, that davit did not start and does not end."""

import os
import signal
import socket
import subprocess
import threading

import pytest

from attached_drivers import COMMANDS, assert_nothing_is_left, first_run, only, sockets
from procs import until
from verify_runs import CLAIM, DAVIT, descendants, group_is_gone


def test_a_dra_driver_that_runs_already_passes(drivers):
    driver = drivers("dra")
    code, outcomes, reasons = first_run(driver, *CLAIM)
    pid = driver.pid()
    assert not {case: reasons[case] for case, outcome in outcomes.items() if outcome not in ("passed", "skipped")}
    assert code == 0
    assert list(outcomes.values()).count("passed") >= 48
    assert outcomes["prepare.after-kill"] == "skipped" and "hooks start, stop and kill" in reasons["prepare.after-kill"]
    assert outcomes["resources.memory"] == "skipped" and "--exec" in reasons["resources.memory"]
    assert_nothing_is_left(driver)
    # It goes on, and so does the next run, at the same address and with the same token.
    with open(os.path.join(driver.dir, "kubeconfig"), encoding="utf-8") as file:
        kubeconfig = file.read()
    code, outcomes, reasons = driver.verify(*only("prepare.one", "slices.narrow-token", "api.away"))
    assert (code, set(outcomes.values())) == (0, {"passed"}), reasons
    with open(os.path.join(driver.dir, "kubeconfig"), encoding="utf-8") as file:
        assert file.read() == kubeconfig
    assert driver.pid() == pid
    assert_nothing_is_left(driver)


@pytest.mark.parametrize("fault,cases", [
    ("prepare-fails", ["prepare.one", "register.kubelet-restart"]),
    ("unprepare-keeps-spec", ["unprepare.cdi-spec"]),
    ("owner-pod", ["slices.owner"]),
    ("other-node", ["slices.narrow-token"]),
    ("health-other-names", ["health.names"]),
    ("unprepare-leaves-file", ["unprepare.leaves-nothing"]),
])
def test_mistakes_are_found_in_a_driver_that_runs_already(drivers, fault, cases):
    driver = drivers("dra", f" --fault {fault}")
    code, outcomes, reasons = first_run(driver, "--wait", "4", "--require", "slices", *CLAIM,
                                        *only(*cases, "register.name"))
    assert code == 3, reasons
    assert {case: "failed" for case in cases}.items() <= outcomes.items(), reasons
    assert outcomes["register.name"] == "passed", reasons
    assert driver.runs() and not sockets(driver)


RESTARTS = {
    "dra": ["register.late-kubelet", "register.stale-socket", "register.restarts", "slices.stable-names",
            "slices.generation", "slices.clean-exit", "prepare.after-restart", "prepare.after-kill",
            "prepare.killed-in-call", "prepare.after-reboot", "unprepare.after-restart",
            "shutdown.sigterm", "shutdown.sockets", "shutdown.keeps-prepared"],
    "device-plugin": ["register.late-kubelet", "register.stale-socket", "register.restarts",
                      "list.stable-ids", "allocate.after-kill", "options.stable", "shutdown.sigterm",
                      "shutdown.socket", "shutdown.stream"],
}


@pytest.mark.parametrize("kind", RESTARTS)
def test_hooks_end_and_start_it(drivers, kind):
    driver = drivers(kind)
    code, outcomes, reasons = first_run(driver, *driver.hooks(), *only(*RESTARTS[kind]))
    assert outcomes == {case: "passed" for case in RESTARTS[kind]}, reasons
    assert code == 0
    assert_nothing_is_left(driver)


def test_a_mistake_that_a_restart_shows_is_found_and_the_driver_is_started_again(drivers):
    driver = drivers("dra", " --fault memory-only")
    code, outcomes, reasons = first_run(driver, *driver.hooks(),
                                        *only("prepare.after-restart", "prepare.one"))
    assert (code, outcomes) == (3, {"prepare.after-restart": "failed", "prepare.one": "passed"}), reasons
    assert driver.runs()
    driver = drivers("dra", " --fault ignores-sigterm")
    driver.do("kill")
    driver.start()
    code, outcomes, reasons = driver.verify(*driver.hooks(), "--grace", "1",
                                            *only("shutdown.sigterm", "shutdown.sockets"))
    assert (code, set(outcomes.values())) == (3, {"failed"})
    assert "--hook stop" in reasons["shutdown.sigterm"]
    assert driver.runs()


def test_a_device_plugin_that_runs_already(drivers):
    driver = drivers("device-plugin")
    driver.start()
    code, outcomes, reasons = driver.verify()
    assert not {case: reasons[case] for case, outcome in outcomes.items() if outcome not in ("passed", "skipped")}
    assert code == 0 and list(outcomes.values()).count("passed") >= 37, reasons
    assert outcomes["register.kubelet-restart"] == "passed"
    assert_nothing_is_left(driver)
    driver.do("kill")
    driver = drivers("device-plugin", " --fault one-at-a-time")
    driver.start()
    code, outcomes, reasons = driver.verify(*only("allocate.many", "allocate.one"))
    assert (code, outcomes) == (3, {"allocate.many": "failed", "allocate.one": "passed"}), reasons


@pytest.mark.parametrize("kind", COMMANDS)
def test_a_driver_that_is_not_there_is_told(drivers, kind):
    driver = drivers(kind)
    code, outcomes, reasons = driver.verify("--wait", "1")
    assert (code, outcomes["probe"]) == (3, "failed")
    assert "no driver has registered" in reasons["probe"] and f"{driver.dir}/kubelet" in reasons["probe"]
    assert not sockets(driver)


def refused(driver, *options):
    code, _, reasons = driver.verify("--wait", "1", *options)
    assert code == 1
    return reasons["output"]


def test_wrong_directories_are_refused(drivers):
    driver = drivers("dra")
    right = driver.dir
    driver.dir = os.path.join(right, "no", "such")
    assert "No such file" in refused(driver)
    driver.dir = driver.script
    assert "service" in refused(driver)
    driver.kind, driver.dir = "device-plugin", os.path.join(right, "none")
    assert "No such file" in refused(driver)
    # What leads to a real cluster, or to a real kubelet, is left alone.
    driver.kind, driver.dir = "dra", right
    kubeconfig = os.path.join(right, "kubeconfig")
    real = ("apiVersion: v1\nkind: Config\ncurrent-context: a\nclusters: [{name: a, cluster: {server: "
            "\"https://10.0.0.1:6443\"}}]\nusers: [{name: a, user: {token: x}}]\n"
            "contexts: [{name: a, context: {cluster: a, user: a}}]\n")
    for text in (real, "nothing of the kind"):
        with open(kubeconfig, "w", encoding="utf-8") as file:
            file.write(text)
        assert "is not" in refused(driver)
        with open(kubeconfig, encoding="utf-8") as file:
            assert file.read() == text
    os.unlink(kubeconfig)
    path = os.path.join(right, "kubelet", "device-plugins", "kubelet.sock")
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with socket.socket(socket.AF_UNIX) as kubelet:
        kubelet.bind(path)
        kubelet.listen()
        for driver.kind in COMMANDS:
            assert "kubelet.sock" in refused(driver)
    assert os.path.exists(path)


def test_an_address_that_somebody_else_has_is_told(drivers):
    driver = drivers("dra")
    driver.verify("--wait", "1")
    with open(os.path.join(driver.dir, "kubeconfig"), encoding="utf-8") as file:
        port = int(file.read().partition("127.0.0.1:")[2].partition('"')[0])
    with socket.socket() as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        other.bind(("127.0.0.1", port))
        other.listen()
        said = refused(driver)
    assert f"127.0.0.1:{port}" in said and "kubeconfig" in said


@pytest.mark.parametrize("kind", COMMANDS)
def test_two_runs_at_once_are_refused(drivers, kind):
    driver = drivers(kind)
    os.makedirs(driver.dir, exist_ok=True)
    first = driver.begin("--wait", "60")
    try:
        until(lambda: sockets(driver), 30, "the first run")
        assert "another davit verify" in refused(driver)
    finally:
        first.send_signal(signal.SIGINT)
        first.wait(30)
    assert not sockets(driver)


@pytest.mark.parametrize("kind", COMMANDS)
@pytest.mark.parametrize("send", [os.kill, os.killpg])
def test_nothing_but_the_driver_is_left_when_davit_is_killed(drivers, kind, send):
    driver = drivers(kind)
    starting = threading.Thread(target=driver.start)
    starting.start()
    run = driver.begin(*CLAIM if kind == "dra" else [], start_new_session=True)
    starting.join()
    until(lambda: "pass" in driver.output(), 60, "a first case")
    below = until(lambda: descendants(run.pid), 10, "a case")
    send(run.pid, signal.SIGKILL)
    run.wait(30)
    until(lambda: group_is_gone(below), 30, lambda: f"still there: {below}")
    # Its next case may have begun before it was killed.
    until(lambda: not sockets(driver), 30, "the end of its last case")
    assert driver.runs()
    case = "prepare.one" if kind == "dra" else "allocate.one"

    def again():
        result = driver.verify(*only(case))
        # Who cleans up after the run has the directory until all is clean.
        return None if "another davit verify" in str(result) else result

    code, outcomes, reasons = until(again, 60, "the directory to be free")
    assert (code, outcomes) == (0, {case: "passed"}), reasons


def test_hooks_that_cannot_be_meant_are_refused(scratch):
    for words, said in ((["--attach", scratch, "--hook", "unhealthy=kill -USR1 {pid}"], "{pid}"),
                        (["--exec", "x", "--hook", "unhealty=true"], "unhealty"),
                        (["--exec", "x", "--hook", "healthy"], "NAME=COMMAND")):
        done = subprocess.run([DAVIT, "verify", "dra", *words], stdout=subprocess.DEVNULL,
                              stderr=subprocess.PIPE, text=True, check=False)
        assert done.returncode == 2 and said in done.stderr
