#!/usr/bin/python3
"""What tools/telling says and leaves."""
import os
import re
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
TELLING = Path(__file__).resolve().parent / "telling"


def tell(*words):
    return subprocess.run([TELLING, *words], capture_output=True, text=True, check=False, timeout=60,
                          env={**os.environ, "DAVIT_SILENT_S": "0.1"})


class Telling(unittest.TestCase):
    def test_a_long_command_is_told_of(self):
        done = tell("the build", "-", "sh", "-c", "echo begun; sleep 2.5; echo done; exit 3")
        lines = done.stdout.splitlines()
        self.assertEqual((done.returncode, lines[0], lines[-1]), (3, "begun", "done"))
        self.assertGreater(len(lines), 3)
        told = [re.fullmatch(r"    still at it: the build \((\d+) s\)", line) for line in lines[1:-1]]
        self.assertTrue(all(told), lines)
        self.assertGreaterEqual(int(told[-1].group(1)), 1)  # the seconds count

    def test_a_log_has_what_the_command_prints_and_nothing_else(self):
        with tempfile.NamedTemporaryFile("r") as log:
            done = tell("it", log.name, "sh", "-c", "echo out; echo err >&2; sleep 0.5")
            self.assertEqual(log.read(), "out\nerr\n")
        self.assertTrue(done.stdout.startswith("    still at it: it"))
        self.assertNotIn("out", done.stdout)

    def test_a_quick_command_leaves_nothing_behind(self):
        """The output is closed at once: whoever reads it does not wait for a pause to end."""
        start = time.monotonic()
        done = subprocess.run([TELLING, "it", "-", "true"], capture_output=True, text=True, check=False)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))
        self.assertLess(time.monotonic() - start, 10)


if __name__ == "__main__":
    unittest.main()
