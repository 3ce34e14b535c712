#!/usr/bin/python3
"""What tools/check-unused finds and what it takes for used, each shown by a made-up tree."""
import importlib.machinery
import importlib.util
import sys
import tempfile
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
SCRIPT = str(Path(__file__).with_name("check-unused"))
LOADER = importlib.machinery.SourceFileLoader("check_unused", SCRIPT)
SPEC = importlib.util.spec_from_loader("check_unused", LOADER)
check_unused = importlib.util.module_from_spec(SPEC)
LOADER.exec_module(check_unused)

F = '#include "a.h"\n\nint dv_f(int x)\n{\n    return x;\n}\n'
MAIN = "int main(void)\n{\n    return dv_f(1);\n}\n"


class CheckUnused(unittest.TestCase):
    def findings(self, files, allowed=()):
        """The findings for a tree of {path: text}."""
        with tempfile.TemporaryDirectory() as folder:
            tree = Path(folder).resolve()
            for name, text in files.items():
                path = tree / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text, encoding="utf-8")
            return check_unused.check(tree, dict.fromkeys(allowed, "why"))

    def finds(self, files, *starts):
        """Exactly these findings, each known by how it starts."""
        got = self.findings(files)
        self.assertEqual(len(got), len(starts), got)
        for line, start in zip(got, starts):
            self.assertTrue(line.startswith(start), f"{line!r} does not start with {start!r}")

    def test_a_function_that_another_file_calls_is_used(self):
        self.finds({"src/a/a.c": F, "src/a/a.h": "int dv_f(int x);\n", "src/b/main.c": MAIN})

    def test_a_declaration_a_comment_and_a_string_are_no_uses(self):
        self.finds({
            "src/a/a.c": F,
            "src/a/a.h": "/* dv_f(1) */\nint dv_f(int x);\n",
            "src/b/main.c": 'int main(void)\n{\n    return puts("dv_f(1)"); // dv_f\n}\n',
        }, "src/a/a.c:3: nobody: nothing uses the function dv_f")

    def test_a_tag_and_a_field_are_not_the_function_of_that_name(self):
        self.finds({
            "src/a/a.c": F,
            "src/b/main.c": "int main(void)\n{\n    struct dv_f x = {.dv_f = 1};\n"
                            "    return x.dv_f;\n}\n",
        }, "src/a/a.c:3: nobody:")

    def test_tests_fuzzers_and_benchmarks_are_not_production(self):
        for place in ("src/a/tests/test_a.c", "src/a/fuzz_a.c", "src/a/bench_a.c",
                      "tests/golden/golden_a.c"):
            self.finds({"src/a/a.c": F, place: MAIN},
                       "src/a/a.c:3: tests only: no production code uses the function dv_f")

    def test_what_is_only_for_tests_is_not_looked_at(self):
        self.finds({"src/a/tests/test_a.c": F, "tests/support/b.c": F})

    def test_drivers_and_examples_are_production(self):
        for place in ("drivers/main.c", "examples/main.c"):
            self.finds({"src/a/a.c": F, place: MAIN})

    def test_what_one_file_uses_is_static(self):
        self.finds({"src/a/a.c": F + MAIN},
                   "src/a/a.c:3: static: the function dv_f is used in its own file only")
        self.finds({"src/a/a.c": F.replace("int dv", "static int dv") + MAIN})

    def test_what_one_file_and_its_test_use_may_be_global(self):
        self.finds({"src/a/a.c": F + MAIN, "src/a/tests/test_a.c": MAIN})

    def test_a_table_and_a_macro_use_what_they_name(self):
        self.finds({"src/a/a.c": F,
                    "src/b/b.c": "static int (*const table[])(int) = {\n    dv_f,\n};\n"})
        self.finds({"src/a/a.c": F, "src/b/b.c": "CLOSE(part, dv_f)\nint x(void);\n"})
        self.finds({"src/a/a.c": F, "src/b/b.c": "static int (*f)(int) = dv_f;\n"})

    def test_variables_are_looked_at_too(self):
        self.finds({"src/a/a.c": "const struct row dv_rows[] = {\n    {1},\n};\nconst int dv_n = 1;\n",
                    "src/a/a.h": "extern const struct row dv_rows[];\nextern const int dv_n;\n",
                    "src/b/main.c": "int main(void)\n{\n    return dv_n;\n}\n"},
                   "src/a/a.c:1: nobody: nothing uses the variable dv_rows")

    def test_types_and_static_variables_are_not(self):
        self.finds({"src/a/a.c": "struct thing {\n    int x;\n};\nstatic int n;\ntypedef int m;\n"})

    def test_macros_are_used_anywhere(self):
        self.finds({"src/a/a.h": "#define DV_A 1\n#define DV_B 2\n#define DV_C 3\n#define DV_D 4\n",
                    "src/a/a.c": "static int x[DV_A];\n#if DV_B\n#endif\nDV_C int f(void);\n"},
                   "src/a/a.h:4: nobody: nothing uses the macro DV_D")

    def test_a_macro_before_a_librarys_header_is_a_setting_of_it(self):
        self.finds({"src/a/a.c": "#define WIDTH 8\n#include <pcre2.h>\n"})
        self.finds({"src/a/a.c": "#define WIDTH 8\n#include \"a/a.h\"\n"},
                   "src/a/a.c:1: nobody: nothing uses the macro WIDTH")

    def test_enum_values_are_used_beside_their_definition(self):
        self.finds({"src/a/a.h": "enum dv_e {\n    DV_X, /* one */\n    DV_Y = 4,\n};\n",
                    "src/a/a.c": "static int f(void)\n{\n    return DV_Y;\n}\n"},
                   "src/a/a.h:2: nobody: nothing uses the enum value DV_X")

    def test_a_cleanup_and_what_it_frees_with_are_one(self):
        self.finds({"src/a/a.c": "void dv_free(int *x)\n{\n    x++;\n}\n"
                                 "void dv_freep(int **x)\n{\n    dv_free(*x);\n}\n",
                    "src/b/b.c": "static void f(void)\n{\n    DV_CLEANUP(dv_freep) int *x = g;\n}\n"})

    def test_what_generators_and_installed_headers_name_is_used(self):
        self.finds({"src/a/a.c": F, "tools/schema-to-c": "print('dv_f')\n"})
        self.finds({"src/a/a.c": F, "include/davit/a.h": "int dv_f(int x);\n"})

    def test_what_is_allowed_must_be_needed(self):
        files = {"src/a/a.c": F}
        self.assertEqual(self.findings(files, ["dv_f"]), [])
        self.assertEqual(self.findings(files, ["dv_f", "dv_g"]),
                         ["tools/check-unused:1: allowed: dv_g is used, or gone"])


if __name__ == "__main__":
    unittest.main()
