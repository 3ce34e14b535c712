#!/usr/bin/python3
"""What tools/check-duplicates finds and what it leaves alone, each shown by a made-up tree."""
import importlib.machinery
import importlib.util
import sys
import tempfile
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
SCRIPT = str(Path(__file__).with_name("check-duplicates"))
LOADER = importlib.machinery.SourceFileLoader("check_duplicates", SCRIPT)
SPEC = importlib.util.spec_from_loader("check_duplicates", LOADER)
check_duplicates = importlib.util.module_from_spec(SPEC)
LOADER.exec_module(check_duplicates)

FIVE = "".join(f"    step({i});\n" for i in range(5))
SIX = FIVE + "    step(5);\n"


def findings(files):
    """The findings for a tree of {path: text}."""
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder).resolve()
        for name, text in files.items():
            path = tree / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        return check_duplicates.check(tree)


class CheckDuplicates(unittest.TestCase):
    def test_finds_six_equal_lines_in_two_files(self):
        self.assertEqual(findings({"src/a/x.c": "first\n" + SIX, "drivers/y.c": SIX + "last\n"}),
                         ["drivers/y.c:1-6: also in src/a/x.c:2-7"])

    def test_finds_them_in_one_file(self):
        self.assertEqual(findings({"src/a/x.c": SIX + "between\n" + SIX}),
                         ["src/a/x.c:8-13: also in src/a/x.c:1-6"])

    def test_a_declaration_and_its_definition_are_no_duplicate(self):
        head = "void f(int a,\n" + "".join(f"       int b{i},\n" for i in range(6)) + "       int c)"
        self.assertEqual(findings({"src/a/x.h": head + ";\n", "src/a/x.c": head + "\n{\n}\n"}), [])

    def test_tells_a_longer_run_once_and_whole(self):
        self.assertEqual(findings({"src/a/x.c": SIX + FIVE, "src/b/y.h": SIX + FIVE}),
                         ["src/b/y.h:1-11: also in src/a/x.c:1-11"])

    def test_tells_each_further_place(self):
        self.assertEqual(findings({f"src/{name}/x.c": SIX for name in "abc"}),
                         ["src/b/x.c:1-6: also in src/a/x.c:1-6",
                          "src/c/x.c:1-6: also in src/a/x.c:1-6"])

    def test_looks_through_blanks_comments_and_punctuation(self):
        spread = SIX.replace("step(2);\n", "step(2); /* why */\n\n{\n/* one\ntwo */\n")
        self.assertEqual(findings({"src/a/x.c": SIX, "src/b/x.c": spread.replace("    ", "\t\t")}),
                         ["src/b/x.c:1-10: also in src/a/x.c:1-6"])

    def test_keeps_what_looks_like_a_comment_in_a_text(self):
        urls = "".join(f'put("http://{i}");\n' for i in range(6))
        other = urls.replace("http://", "http://other")
        self.assertEqual(findings({"src/a/x.c": urls, "src/b/x.c": other}), [])

    def test_finds_a_tag_that_two_places_define(self):
        self.assertEqual(findings({"src/a/x.h": "struct dv_a;\nstruct dv_a {\n    int n;\n};\n",
                                   "src/b/tests/test_y.c": "enum dv_a { DV_A_ONE };\n"}),
                         ["src/b/tests/test_y.c:1: dv_a is defined in src/a/x.h:2, too"])

    def test_leaves_a_files_own_tags_alone(self):
        self.assertEqual(findings({"src/a/x.c": "struct wait {\n    int n;\n};\n",
                                   "src/b/y.c": "struct wait {\n    char c;\n};\n"}), [])

    def test_leaves_five_lines_alone(self):
        self.assertEqual(findings({"src/a/x.c": FIVE + "x\n", "src/b/x.c": FIVE + "y\n"}), [])

    def test_leaves_includes_and_declarations_alone(self):
        head = "".join(f'#include "base/{i}.h"\nstruct dv_{i};\n' for i in range(6))
        self.assertEqual(findings({"src/a/x.h": head, "src/b/x.h": head}), [])

    def test_leaves_a_pattern_that_overlaps_itself_alone(self):
        self.assertEqual(findings({"src/a/x.c": "    step();\n" * 11}), [])

    def test_leaves_tests_alone(self):
        self.assertEqual(findings({"src/a/x.c": SIX, "src/a/tests/world.c": SIX,
                                   "src/a/bench_x.c": SIX, "src/b/fuzz_x.c": SIX,
                                   "tests/e2e/x.c": SIX, "src/b/test_x.c": SIX}), [])


if __name__ == "__main__":
    unittest.main()
