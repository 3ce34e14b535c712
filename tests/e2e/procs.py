"""Processes of a test: started, waited for, and ended by the pid that was started.

Every process has a longest life; whatever a test forgets or hangs on is killed when it is over.
"""

import glob
import os
import signal
import subprocess
import threading
import time

# Longer than a test may take, also when it is run again: they are for what hangs, and not for what is slow.
LIFETIME_S = 500
READY_S = 60
STOP_S = 60
# The least that a condition is given to be met.
PATIENCE_S = 60
# Between two looks at a condition: the longer it has not been met, the longer, so that who waits
# for seconds does not take the processor from who is waited for.
LOOK_S = 0.005
LOOK_MAX_S = 0.1
LOOK_SHARE = 0.05  # of the time that was waited so far


def kill_rounds():
    """How often a test kills davitd. Sanitizers make a round three times as long, and look for other mistakes."""
    return int(os.environ.get("DAVIT_KILL_ROUNDS", "60" if "asan" in os.environ["DAVIT_BUILD"] else "200"))


def until(condition, timeout_s, what):
    """Polls until `condition()` is true, and returns what it returned. `what` may be a function:
    it says how things are at the end. Nobody is given less than PATIENCE_S: how long something
    takes on a busy machine says nothing; who wants to know measures it."""
    timeout_s = max(timeout_s, PATIENCE_S)
    begin = time.monotonic()
    while not (result := condition()):
        waited_s = time.monotonic() - begin
        if waited_s > timeout_s:
            raise TimeoutError(f"not within {timeout_s} s: {what() if callable(what) else what}")
        time.sleep(min(max(LOOK_S, waited_s * LOOK_SHARE), LOOK_MAX_S))
    return result


def check_logs(folder):
    """A sanitizer's report counts as a failure, whatever the test saw."""
    for path in sorted(glob.glob(os.path.join(folder, "**", "*-davit*.log"), recursive=True)):
        with open(path, encoding="utf-8", errors="replace") as log:
            text = log.read()
        for sign in ("Sanitizer", "runtime error:", "Assertion"):
            assert sign not in text, f"{path}:\n{text[-8000:]}"


class Proc:
    """A running program. Its lines on stdout can be waited for; stderr is kept in a file."""

    def __init__(self, command, log_path, lifetime_s=LIFETIME_S, env=None):
        self.name = os.path.basename(command[0])
        self.log_path = log_path
        self.lines = []
        self._news = threading.Condition()
        self._at_end = False
        with open(log_path, "wb") as log:
            self._popen = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                errors="replace",
                env={**os.environ, **(env or {})},
            )
        self.pid = self._popen.pid
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        self._watchdog = threading.Timer(lifetime_s, self._popen.kill)
        self._watchdog.daemon = True
        self._watchdog.start()

    def _read(self):
        for line in self._popen.stdout:
            with self._news:
                self.lines.append(line.rstrip("\n"))
                self._news.notify_all()
        with self._news:
            self._at_end = True
            self._news.notify_all()

    @property
    def is_alive(self):
        return self._popen.poll() is None

    @property
    def log(self):
        with open(self.log_path, encoding="utf-8", errors="replace") as log:
            return log.read()

    def describe(self):
        return (
            f"{self.name} (pid {self.pid}, exit code {self._popen.poll()})\n"
            f"stdout: {self.lines[-20:]}\nstderr: {self.log[-4000:]}"
        )

    def wait_line(self, expected, timeout_s=READY_S):
        """Waits until the program has printed the line `expected`."""
        with self._news:
            self._news.wait_for(lambda: expected in self.lines or self._at_end, timeout_s)
            if expected not in self.lines:
                raise TimeoutError(f"no line {expected!r} from {self.describe()}")

    def write_line(self, text=""):
        self._popen.stdin.write(text + "\n")
        self._popen.stdin.flush()

    def end_input(self):
        self._popen.stdin.close()

    def wait(self, timeout_s=LIFETIME_S):
        """The exit code, negative for a signal; all output is in `lines` then."""
        try:
            code = self._popen.wait(timeout_s)
        except subprocess.TimeoutExpired:
            raise TimeoutError(f"still running: {self.describe()}") from None
        self._reader.join()
        self._watchdog.cancel()
        return code

    def signal(self, number):
        self._popen.send_signal(number)

    def stop(self, timeout_s=STOP_S):
        """Asks it to end, and returns the exit code."""
        self.signal(signal.SIGTERM)
        return self.wait(timeout_s)

    def kill(self):
        self._popen.kill()
        code = self.wait()
        self._popen.stdin.close()
        self._popen.stdout.close()
        return code

    def rss_bytes(self):
        with open(f"/proc/{self.pid}/statm", encoding="ascii") as statm:
            return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    def cpu_s(self):
        """What it has used so far; 0 once it has been waited for."""
        if not self.is_alive:
            return 0
        with open(f"/proc/{self.pid}/stat", encoding="ascii", errors="replace") as stat:
            fields = stat.read().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Procs:
    """The processes of one test or one module. Logs go to `folder`."""

    def __init__(self, folder):
        self.folder = folder
        self._all = []

    def start(self, *command, ready=None, **options):
        """Starts a program and, if `ready` is given, waits until it prints that line."""
        command = [str(word) for word in command]
        number = len(self._all)
        log_path = os.path.join(self.folder, f"{number}-{os.path.basename(command[0])}.log")
        proc = Proc(command, log_path, **options)
        self._all.append(proc)
        if ready:
            proc.wait_line(ready)
        return proc

    def close(self):
        for proc in self._all:
            proc.kill()
