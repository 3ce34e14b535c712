#!/usr/bin/python3
"""What tools/links.py reads out of Ninja's answers."""
import sys
import unittest

from links import parse_stale, parse_targets

sys.dont_write_bytecode = True

DRY_RUN = """ninja: Entering directory `build'
[1/5] Compiling C object libdv_base.a.p/src_base_buf.c.o
[2/5] Linking static target libdv_base.a
[3/5] Linking target test_base_text
[4/5] Linking target tests/golden/golden_semver
[5/5] Generating docs/man/davit.1 with a custom command
"""
QUERY = """all:
  input: phony
    meson-test-prereq
    meson-benchmark-prereq
    libdv_base.a
    davitd
  outputs:
"""


class Links(unittest.TestCase):
    def test_programs_are_told_from_libraries(self):
        self.assertEqual(parse_stale(DRY_RUN), {"test_base_text", "tests/golden/golden_semver"})
        self.assertEqual(parse_stale("ninja: no work to do.\n"), set())

    def test_nothing_is_known_before_a_new_configuration(self):
        self.assertIsNone(parse_stale("[0/1] Regenerating build files.\n"))

    def test_targets_are_those_of_all(self):
        self.assertEqual(parse_targets(QUERY), ["libdv_base.a", "davitd"])
        self.assertEqual(parse_targets(""), [])


if __name__ == "__main__":
    unittest.main()
