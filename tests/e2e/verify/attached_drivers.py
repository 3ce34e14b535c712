"""Drivers that run on their own, which davit verify --attach is told of."""

import os
import shlex
import subprocess
import threading

from procs import until
from verify_runs import BUILD, DAVIT, read_report

COMMANDS = {
    "dra": (f"{BUILD}/drivers/davit-sample-dra-driver --kubelet-dir {{dir}}/kubelet --cdi-dir {{dir}}/cdi"
            " --kubeconfig {dir}/kubeconfig --node verify-node --correct 1"),
    "device-plugin": (f"{BUILD}/drivers/davit-sample-device-plugin --resource example.com/dev --virtual 4"
                      " --kubelet-dir {dir}/kubelet --prestart --preferred lowest --register both"),
}
# What an administrator's service does: systemctl start, stop, kill.
SERVICE = """#!/bin/sh
cd "$(dirname "$0")" || exit 1
# One that nobody has reaped yet has ended.
runs() { grep -q '^State:[[:space:]]*[RSDTtI]' "/proc/$1/status" 2>/dev/null; }
gone() { for i in $(seq 500); do runs "$1" || return 0; sleep 0.02; done; return 1; }
case $1 in
start)
    rm -f pid
    setsid sh -c 'echo $$ >pid; eval "exec $0"' "$(cat command)" >>log 2>&1 </dev/null &
    until [ -s pid ]; do sleep 0.01; done ;;
stop) kill "$(cat pid)" && gone "$(cat pid)" ;;
kill) kill -9 "$(cat pid)" && gone "$(cat pid)" ;;
esac
"""


class Driver:
    """It runs on its own, in a directory that davit is told."""

    def __init__(self, folder, kind, more=""):
        self.kind = kind
        self.folder = folder
        self.dir = os.path.join(folder, "d")
        os.makedirs(self.dir, exist_ok=True)
        self.script = os.path.join(folder, "service")
        for name, text in (("service", SERVICE), ("command", COMMANDS[kind].format(dir=self.dir) + more)):
            with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
                file.write(text)
        os.chmod(self.script, 0o755)

    def do(self, what):
        subprocess.run([self.script, what], check=True, timeout=30)

    def pid(self):
        try:
            with open(os.path.join(self.folder, "pid"), encoding="ascii") as file:
                return int(file.read())
        except (OSError, ValueError):
            return 0

    def runs(self):
        try:
            with open(f"/proc/{self.pid()}/status", encoding="utf-8") as file:
                return "\nState:\tZ" not in file.read()
        except OSError:
            return False

    def start(self):
        """When there is something for it to begin with."""
        if self.kind == "dra":
            until(lambda: os.path.exists(os.path.join(self.dir, "kubeconfig")), 30, "a kubeconfig")
        else:
            os.makedirs(os.path.join(self.dir, "kubelet", "device-plugins"), exist_ok=True)
            os.makedirs(os.path.join(self.dir, "kubelet", "plugins_registry"), exist_ok=True)
        self.do("start")
        until(self.runs, 10, "the driver to run")

    def hooks(self):
        return [word for what in ("start", "stop", "kill")
                for word in ("--hook", f"{what}={shlex.quote(self.script)} {what}")]

    def begin(self, *options, **kwargs):
        """A run of davit, as a process."""
        # Not to a pipe of the test's: what a hook starts would hold it open.
        with open(os.path.join(self.folder, "output"), "w", encoding="utf-8") as output:
            return subprocess.Popen(
                [DAVIT, "verify", self.kind, "--attach", self.dir, "--dir", os.path.join(self.folder, "kept"),
                 "--json", os.path.join(self.folder, "report.json"), *options],
                stdout=output, stderr=subprocess.STDOUT, **kwargs)

    def output(self):
        with open(os.path.join(self.folder, "output"), encoding="utf-8") as file:
            return file.read()

    def verify(self, *options):
        """(exit status, {case: outcome}, {case: reason}), with the driver as it is."""
        report = os.path.join(self.folder, "report.json")
        if os.path.exists(report):
            os.unlink(report)
        code = self.begin(*options).wait(200)
        return (code, *read_report(report, self.output()))


def first_run(driver, *options):
    """A DRA driver cannot begin before davit has made its kubeconfig."""
    starting = threading.Thread(target=driver.start)
    starting.start()
    try:
        return driver.verify(*options)
    finally:
        starting.join()


def only(*cases):
    return [word for case in cases for word in ("--only", case)]


def sockets(driver):
    """Those that are not the driver's."""
    return [name for name in ("api.sock", "kubelet/device-plugins/kubelet.sock")
            if os.path.exists(os.path.join(driver.dir, name))]


def assert_nothing_is_left(driver):
    cdi = os.path.join(driver.dir, "cdi")
    assert driver.runs()
    assert not sockets(driver)
    # A driver may be just ending a call that davit gave up.
    until(lambda: os.listdir(cdi) == [], 60, lambda: f"left: {os.listdir(cdi)}")
