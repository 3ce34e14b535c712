#!/usr/bin/python3
"""What tools/check-words finds and what it leaves alone, each shown by a made-up tree."""
import importlib.machinery
import importlib.util
import sys
import tempfile
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
SCRIPT = str(Path(__file__).with_name("check-words"))
LOADER = importlib.machinery.SourceFileLoader("check_words", SCRIPT)
SPEC = importlib.util.spec_from_loader("check_words", LOADER)
check_words = importlib.util.module_from_spec(SPEC)
LOADER.exec_module(check_words)


def findings(text, **others):
    """The findings for src/a/x.c with that text, in a tree with documents {name: path}."""
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder).resolve()
        for name, content in {"src/a/x.c": text, **{path: "" for path in others.values()}}.items():
            path = tree / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content, encoding="utf-8")
        return check_words.check(tree)


class CheckWords(unittest.TestCase):
    def test_finds_a_document_that_is_not_there(self):
        self.assertEqual(findings("int a;\n/* As in\n * spec/wire.md. */\n"),
                         ["src/a/x.c:3: document: spec/wire.md is not in the tree"])
        self.assertEqual(findings("int a; // wire.md has it\n"),
                         ["src/a/x.c:1: document: wire.md is not in the tree"])

    def test_knows_documents_by_path_by_name_and_from_the_file(self):
        for name in ("docs/policy.md", "policy.md", "../../docs/policy.md"):
            self.assertEqual(findings(f"/* See {name}. */\n", policy="docs/policy.md"), [])
        self.assertEqual(findings("/* See y.md. */\n", policy="docs/policy.md"),
                         ["src/a/x.c:1: document: y.md is not in the tree"])

    def test_finds_the_name_of_another_file(self):
        self.assertEqual(findings("/* y.c - words. */\n", y="src/b/y.c"),
                         ["src/a/x.c:1: title: it says y.c"])
        for text in ("/* x.c - words. */\n", "/* Words. */\n", "int a;\n/* y.c - words. */\n"):
            self.assertEqual(findings(text, y="src/b/y.c"), [], text)

    def test_finds_a_source_that_is_not_there(self):
        self.assertEqual(findings("int a;\n/* What follows is decided\n * in b/y.h. */\n"),
                         ["src/a/x.c:3: file: b/y.h is not in the tree"])
        self.assertEqual(findings("/* As z.c has it. */\n", y="src/b/y.c"),
                         ["src/a/x.c:1: file: z.c is not in the tree"])

    def test_knows_sources_by_name_and_leaves_what_is_none_alone(self):
        for words in ("y.c", "b/y.c", "src/b/y.c", "<sys/stat.h>", "a.b.c", "x.pb-c.h", "*.c",
                      "step_*.c", "<what>.c"):
            self.assertEqual(findings(f"/* See {words} too. */\n", y="src/b/y.c"), [], words)

    def test_finds_what_a_page_names_and_the_code_has_not(self):
        with tempfile.TemporaryDirectory() as folder:
            tree = Path(folder).resolve()
            (tree / "src/a").mkdir(parents=True)
            (tree / "src/a/x.c").write_text("int dv_f(void);\n", encoding="utf-8")
            (tree / "ARCHITECTURE.md").write_text(
                "`a/x.c` has `dv_f`, as all of `dv_*` and `dv_a_*`.\n"
                "`y.c` has `dv_g`.\n", encoding="utf-8")
            self.assertEqual(check_words.check(tree),
                             ["ARCHITECTURE.md:2: file: y.c is not in the tree",
                              "ARCHITECTURE.md:2: function: nothing is called dv_g"])

    def test_finds_numbers_in_brackets(self):
        for numbers in ("(6)", "(5.3)", "(5.3, 7)", "(6; 7.2)", "(2, 3 and 4)", "(22 to 24)"):
            self.assertEqual(findings(f"/* It is prepared {numbers}. */\n"),
                             [f"src/a/x.c:1: number: {numbers} says nothing: use words"])

    def test_finds_numbers_before_words(self):
        for number in ("5.1:", "9:", "12:"):
            self.assertEqual(findings(f"/* It may have it ({number} its owner). */\n"),
                             [f"src/a/x.c:1: number: {number} says nothing: use words"])
        for words in ("(0: none)", "(1: the next)", "(85:80)"):
            self.assertEqual(findings(f"/* So many of them {words}. */\n"), [], words)

    def test_finds_them_over_the_end_of_a_line(self):
        self.assertEqual(findings("/* health (2.3,\n * 10.1). */\n"),
                         ["src/a/x.c:1: number: (2.3, 10.1) says nothing: use words"])

    def test_finds_sections_of_nothing(self):
        self.assertEqual(findings("/* ---- pools: section 2 ---- */\n"),
                         ["src/a/x.c:1: number: section 2 of which text? Use words"])
        self.assertEqual(findings("/* (behaviour 12) */\n"),
                         ["src/a/x.c:1: number: behaviour 12 of which text? Use words"])

    def test_finds_drawings_that_were_wrapped(self):
        for line in ("name     what it is, and more", "here -> there", "a <- b", "a --x b"):
            self.assertEqual(findings(f"/* So:\n *\n *     {line}\n * it goes on.\n */\n"),
                             ["src/a/x.c:3: drawing: its line goes on at the margin: make it shorter"])

    def test_leaves_drawings_and_lists_alone(self):
        for text in ("/* So:\n *\n *     a -> b\n *\n * And on. */\n",
                     "/* So:\n *     a -> b\n *       -> c\n */\n",
                     "/* So:\n *   - one and\n *     more of it\n */\n"):
            self.assertEqual(findings(text), [], text)

    def test_leaves_sections_of_an_rfc_alone(self):
        self.assertEqual(findings("/* RFC 9112, section 6.1. */\n"), [])

    def test_leaves_lists_in_a_comment_alone(self):
        self.assertEqual(findings("/* Either (1) it is there, or (2) not, or (3) both. */\n"), [])

    def test_leaves_other_numbers_alone(self):
        for words in ("getrandom(2)", "(404)", "(429, 5xx)", "(16384)", "(4 bits)", "(PCRE2 10.42)",
                      "(the year 9999)", "DV_TAG(1, 2)", "12", "-1, 0, 1", "1.37: as there"):
            self.assertEqual(findings(f"/* What {words} is. */\n"), [], words)

    def test_leaves_code_and_texts_alone(self):
        self.assertEqual(findings('int a = (6); puts("/* (5.3) wire.md"); char c = \'"\';\n'), [])


if __name__ == "__main__":
    unittest.main()
