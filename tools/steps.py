"""steps.py - what ./dev's longer commands share: named steps, each with a log, a time and a count.

A step is a function that gets an open log, and returns a Tally or raises Failed. On success it is
one line; on failure also the end of its log. The command ends with `N passed, N failed`.
"""
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

sys.dont_write_bytecode = True

ROOT = Path(__file__).resolve().parent.parent
BUILD = Path(os.environ.get("DAVIT_BUILD_ROOT") or ROOT / "build").absolute()
LOGS = BUILD / "logs"
JOBS = len(os.sched_getaffinity(0))
TAIL_LINES = 40
SLOWEST_SHOWN = 20
# More failures than these are no matter of a busy machine: they are not tried again.
RETRIED_MAX = 12
# No suite of ours takes longer on two cores unless it hangs.
STEP_TIMEOUT_S = 1800
# Before a command that is to run in what others leave of the processors, but not to stand still.
FILLING = ("nice", "-n", "5")
# Who waits hears of what goes on at least this often.
SILENT_S = 15


class Failed(Exception):
    """A step that could not do its work; the message says why in one line."""


@dataclass
class Tally:
    passed: int = 0
    failed: int = 0
    skipped: int = 0
    note: str = ""  # what a reader must know besides the numbers
    again: Callable = None  # a step that tries once more, alone, what is not counted here

    def add(self, other):
        self.passed += other.passed
        self.failed += other.failed
        self.skipped += other.skipped

    def __str__(self):
        text = f"{self.passed} passed, {self.failed} failed"
        return text + (f", {self.skipped} skipped" if self.skipped else "")

    @classmethod
    def parse(cls, text):
        """The sum of all lines of `text` that are counts; None when there is none."""
        found = re.findall(r"^(\d+) passed, (\d+) failed(?:, (\d+) skipped)?$", text, re.M)
        if not found:
            return None
        return cls(*(sum(int(row[i] or 0) for row in found) for i in range(3)))


class Report:
    """Runs steps and keeps the sum. A step that only prepares (a build) is not counted."""

    def __init__(self):
        self.total = Tally()
        self.failures = []
        self.again = []  # (step, action): what is tried once more when all is over
        self.lock = threading.Lock()  # steps may run side by side
        self.running = {}  # when each step began
        self.told = time.monotonic()
        threading.Thread(target=self.tell_of_running, daemon=True).start()

    def say(self, text):
        print(text, flush=True)
        self.told = time.monotonic()

    def tell_of_running(self):
        while True:
            time.sleep(1)
            with self.lock:
                now = time.monotonic()
                if self.running and now - self.told >= SILENT_S:
                    self.say("    still at it: " + ", ".join(
                        f"{name} ({now - start:.0f} s)" for name, start in self.running.items()))

    @contextmanager
    def under_way(self, name):
        """What goes on meanwhile is told of."""
        with self.lock:
            self.running[name] = time.monotonic()
        try:
            yield
        finally:
            with self.lock:
                del self.running[name]

    def step(self, name, action, *args, is_counted=True):
        """Returns whether nothing failed."""
        LOGS.mkdir(parents=True, exist_ok=True)
        path = LOGS / (re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") + ".log")
        start = time.monotonic()
        with self.under_way(name), open(path, "w", encoding="utf-8", errors="replace") as log:
            try:
                tally = action(log, *args) or Tally(passed=1 if is_counted else 0)
            except Failed as failure:
                tally = Tally(failed=1, note=str(failure))
        with self.lock:
            self.tell(name, path, tally, time.monotonic() - start)
            if tally.again:
                self.again.append((f"{name} again, alone", tally.again))
        return tally.failed == 0

    def tell(self, name, path, tally, seconds):
        self.total.add(tally)
        note = f"  {tally.note}" if tally.note else ""
        count = f"  {tally}" if tally.passed + tally.failed + tally.skipped > 1 else ""
        state = "  FAILED" if tally.failed else ""
        self.say(f"{name:<28}{seconds:7.1f} s{count}{state}{note}")
        if tally.failed:
            self.failures.append((name, path))
            print_tail(path)

    def leave_out(self, names, why):
        """Steps that cannot run; what they depend on has failed, and is counted."""
        for name in names:
            print(f"{name:<28}  not run: {why}", flush=True)

    def run_again(self):
        """What failed when the machine was busy, one by one."""
        steps, self.again = self.again, []
        for name, action in steps:
            self.step(name, action)

    def close(self, times=None):
        """The closing lines; returns the exit status. `times`: of tests, in seconds."""
        slowest = sorted((times or {}).items(), key=lambda row: -row[1])[:SLOWEST_SHOWN]
        if slowest:
            print(f"the slowest {len(slowest)} tests of {len(times)}:")
        for name, seconds in slowest:
            print(f"    {seconds:7.1f} s  {name}")
        for name, path in self.failures:
            print(f"FAILED: {name}: see {path}")
        print(self.total, flush=True)
        return 1 if self.total.failed else 0


def note_unsteady(names):
    return f"UNSTEADY, passed when run again alone: {', '.join(sorted(names))}" if names else ""


def print_tail(path):
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    if len(lines) > TAIL_LINES:
        print(f"    ... {len(lines) - TAIL_LINES} lines before these in {path}")
    for line in lines[-TAIL_LINES:]:
        print(f"    {line}")


def run(log, argv, env=None, timeout_s=STEP_TIMEOUT_S):
    """Runs a program with its output in the log; returns its exit status. Nothing it started
    outlives it when it ends late or is interrupted."""
    log.write("$ " + " ".join(str(arg) for arg in argv) + "\n")
    log.flush()
    with subprocess.Popen([str(arg) for arg in argv], stdin=subprocess.DEVNULL, stdout=log,
                          stderr=subprocess.STDOUT, cwd=ROOT, env={**os.environ, **(env or {})},
                          start_new_session=True) as process:
        try:
            return process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            raise Failed(f"still running after {timeout_s} s") from None
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)


def need(log, argv, **options):
    """Runs what must succeed for the step to go on."""
    status = run(log, argv, **options)
    if status != 0:
        raise Failed(f"{Path(argv[0]).name} exits with {status}")


def build(log, variant, *patterns):
    # However slow the machine: a compiler ends.
    need(log, [ROOT / "tools/build", variant, *patterns], timeout_s=None)
