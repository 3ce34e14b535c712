#!/usr/bin/python3
"""What ./dev test leaves out of the unit programs after a change."""
import sys
import unittest

from pathlib import Path

from unit_suite import LINK_S, SAMPLE_S, UnitSuite, is_never_run, module_of, sample

sys.dont_write_bytecode = True


def program(module, kind="unit"):
    """As Meson describes one."""
    return {"suite": [f"davit:{kind}", f"davit:{module}"]}


def last_pass(module_key, seconds):
    return {"key": "old", "passed": 1, "skipped": 0, "module": module_key, "seconds": seconds}


class Owed(unittest.TestCase):
    def test_a_program_is_its_modules(self):
        self.assertEqual(module_of(program("cel")), "cel")
        self.assertEqual(module_of(program("cel", "fuzz")), "cel")

    def test_a_sample_is_the_quickest(self):
        passes = {"a": {"seconds": 3}, "b": {"seconds": 1}, "c": {"seconds": 2}}
        self.assertEqual(sample(passes, passes, 3 + 2 * LINK_S), {"b", "c"})
        self.assertEqual(sample(passes, passes, 0.5), set())

    def test_no_suite_runs_benchmarks_and_replays_with_sanitizers(self):
        self.assertTrue(is_never_run("bench_pod", Path("build")))
        self.assertTrue(is_never_run("tests/golden/golden_semver", Path("build/asan")))
        self.assertFalse(is_never_run("tests/golden/golden_semver", Path("build")))
        self.assertFalse(is_never_run("davitd", Path("build/asan")))

    def test_what_changed_with_its_own_module_is_run(self):
        passes = {"t": last_pass("before", 10 * SAMPLE_S)}
        self.assertEqual(UnitSuite.owed({"t": program("cel")}, {"t"}, passes, {"cel": "after"}),
                         set())

    def test_what_changed_with_a_module_under_it_is_owed_unless_it_is_quick(self):
        tests = {"slow": program("pod"), "quick": program("pod")}
        passes = {"slow": last_pass("same", 10 * SAMPLE_S), "quick": last_pass("same", 0.1)}
        self.assertEqual(UnitSuite.owed(tests, {"slow", "quick"}, passes, {"pod": "same"}),
                         {"slow"})

    def test_what_never_passed_is_run(self):
        self.assertEqual(UnitSuite.owed({"t": program("pod")}, {"t"}, {}, {"pod": "same"}), set())


if __name__ == "__main__":
    unittest.main()
