#!/usr/bin/python3
"""What tools/abi notices, each shown by a small library that changed."""
import importlib.machinery
import importlib.util
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent))
LOADER = importlib.machinery.SourceFileLoader("abi", str(Path(__file__).with_name("abi")))
abi = importlib.util.module_from_spec(importlib.util.spec_from_loader("abi", LOADER))
LOADER.exec_module(abi)

HEADER = """\
struct davit_handle;
struct davit_thing { int a; long b; };
struct davit_handle *davit_new(void);
int davit_first(const struct davit_thing *thing);
void davit_second(int n);
"""
SOURCE = """\
#include "davit/thing.h"
#include "private/thing.h"
struct davit_handle *davit_new(void) { return 0; }
int davit_first(const struct davit_thing *thing) { return thing->a; }
void davit_second(int n) { (void)n; }
"""
# Of the same name as the public one.
PRIVATE = """\
struct hidden { int x; };
struct davit_handle { struct hidden *hidden; int a; };
"""
MAP = "DAVIT_0.1 { global: davit_*; local: *; };\n"


class Abi(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.tree = Path(self.folder.name)
        (self.tree / "include/davit").mkdir(parents=True)
        (self.tree / "packaging/debian").mkdir(parents=True)
        (self.tree / "private").mkdir()
        self.build()
        self.abi = abi.Abi(self.tree, self.tree)
        self.abi.accept("0.1.0")

    def build(self, old="", new="", version_map=MAP, soname="0"):
        """Both libraries, out of the same source with a change."""
        header = HEADER.replace(old, new) if old else HEADER
        (self.tree / "include/davit/thing.h").write_text(header, encoding="utf-8")
        source = SOURCE.replace(old, new) if old else SOURCE
        (self.tree / "source.c").write_text(source, encoding="utf-8")
        private = PRIVATE.replace(old, new) if old else PRIVATE
        (self.tree / "private/thing.h").write_text(private, encoding="utf-8")
        (self.tree / "map").write_text(version_map, encoding="utf-8")
        for name, place in abi.LIBRARIES.items():
            (self.tree / place).mkdir(exist_ok=True)
            subprocess.run(["gcc", "-g", "-shared", "-fPIC", "-I", "include", "-I", ".", "source.c",
                            "-Wl,--version-script=map", f"-Wl,-soname,{name}.so.{soname}",
                            "-o", f"{place}/{name}.so"], cwd=self.tree, check=True)

    def expect(self, *parts):
        text = "\n".join(self.abi.check())
        for part in parts:
            self.assertIn(part, text)
        return text

    def test_nothing_changed(self):
        self.assertEqual(self.abi.check(), [])

    def test_what_programs_cannot_see(self):
        for old, new in (("int x;", "long y; int x;"), ("hidden; int a;", "hidden; long a; int b;")):
            self.build(old, new)
            self.assertEqual(self.abi.check(), [])

    def test_a_function_that_is_gone(self):
        self.build("davit_second", "davit_other")
        self.expect("libdavit: davit_second@DAVIT_0.1 is gone",
                    "libdavit-driver: davit_other@DAVIT_0.1 is new")

    def test_a_struct_that_grew(self):
        self.build("long b;", "long b; long c;")
        self.expect("davit_thing", "size changed from 128 to 192")

    def test_members_in_another_order(self):
        self.build("int a; long b;", "long b; int a;")
        self.expect("davit_thing", "offset changed")

    def test_a_parameter_of_another_type(self):
        self.build("(int n)", "(long n)")
        self.expect("davit_second", "type name changed from 'int' to 'long int'")

    def test_a_new_version_of_symbols(self):
        self.build(version_map=MAP.replace("0.1", "0.2"))
        self.expect("davit_first@DAVIT_0.1 is gone", "DAVIT_0.2@DAVIT_0.2 is new")

    def test_a_new_soname(self):
        self.build(soname="1")
        self.expect("nothing is promised of libdavit.so.1 yet", "no library is libdavit.so.0")

    def test_what_was_accepted_keeps_its_age(self):
        self.build("{ (void)n; }", "{ (void)n; }\nvoid davit_third(void) {}")
        self.abi.accept("0.2.0")
        self.assertEqual(self.abi.check(), [])
        symbols = abi.read_symbols(self.abi.symbols)["libdavit.so.0"]
        self.assertEqual((symbols["davit_first@DAVIT_0.1"], symbols["davit_third@DAVIT_0.1"]),
                         ("0.1.0", "0.2.0"))


if __name__ == "__main__":
    unittest.main()
