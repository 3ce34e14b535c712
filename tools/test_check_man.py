#!/usr/bin/python3
"""The rules of tools/check-man, each with a page that breaks it."""
import importlib.machinery
import importlib.util
import shutil
import sys
import tempfile
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
PATH = Path(__file__).resolve().parent / "check-man"
LOADER = importlib.machinery.SourceFileLoader("check_man", str(PATH))
check_man = importlib.util.module_from_spec(importlib.util.spec_from_loader("check_man", LOADER))
LOADER.exec_module(check_man)

HELP = """\
davit - devices

usage: davit VERB [OPTION...]

Objects, over the API:
  get        objects

This node, over davitd's socket:
  status     the node

Every verb of the second group has:
      --socket PATH                  of davitd

Files of this node, and davit itself:
  cdi        CDI specs

Exit status: 0 done, 1 failed, 3 pod refused;
of explain 3: it cannot.
davit help VERB tells more.
"""
GET = """\
davit get KIND - objects

  davit get pods --all      an example

  -o, --output json|yaml             for programs
      --wait[=true|false]            until they are gone
      --ignore-not-found[=true|false] what is not there
      --kubeconfig FILE              where the server is
"""
STATUS = "davit status - the node\n\n      --socket PATH                  of davitd\n"
CDI = "davit cdi - CDI specs\n"
DAVITD = "  --wait SECONDS   how long\n  --strict         as the kubelet\n  -v LEVEL         log\n" \
         "  --config FILE    YAML\n  --help           this\n"
SAMPLE = "  --resource NAME        what\n  --version, --help\n"


def page(name, summary, synopsis, rest=""):
    # Long enough to be taken for a page.
    return (f"{name}(1)\n\n# NAME\n\n{name} - {summary}\n\n# SYNOPSIS\n\n{synopsis}\n\n"
            f"# DESCRIPTION\n\n{'It does what it says. ' * 30}\n\n{rest}")


def option(*lines):
    return "# OPTIONS\n\n" + "".join(f"{line}\n\tText.\n\n" for line in lines)


PAGES = {
    "davit.1": page("davit", "devices", "*davit* _VERB_", """\
# VERBS

*davit-get*(1)
	Objects.

*davit-status*(1)
	The node.

*davit-cdi*(1)
	CDI specs.

# OPTIONS

## Of all verbs of the API

*--kubeconfig* _FILE_
	Where.

## Of all verbs of the node

*--socket* _PATH_
	Where.

# EXIT STATUS

[[ *Status*
:< *Meaning*
|  0
:  Done.
|  1
:  Failed.
|  3
:  Refused.
"""),
    "davit-get.1": page("davit-get", "objects", "*davit get* _KIND_", option(
        "*-o*, *--output* _json|yaml_", "*--wait*[=_true|false_]",
        "*--ignore-not-found*[=_true|false_]")),
    "davit-status.1": page("davit-status", "the node", "*davit status*"),
    "davit-cdi.1": page("davit-cdi", "CDI specs", "*davit cdi*"),
    "davitd.8": page("davitd", "devices", "*davitd*", option(
        "*--wait* _SECONDS_", "*--strict*", "*-v* _LEVEL_", "*--config* _FILE_", "*--help*")),
    "davitd.yaml.5": page("davitd.yaml", "settings", "_x_", """\
# SETTINGS

*wait*: _SECONDS_
	Text.

*strict*: _true|false_
	Text.

*v*: _LEVEL_
	Text.
"""),
    **{f"davit-sample-{name}.1": page(f"davit-sample-{name}", "x", "x", option(
        "*--resource* _NAME_", "*--version*", "*--help*"))
       for name in ("device-plugin", "dra-driver")},
}
SETTINGS = "# How long.\n#wait: 60\n#strict: false\nv: info\n"


def run(program, *words):
    if program == "davitd":
        return DAVITD
    if program != "davit":
        return SAMPLE
    return {(): HELP, ("get",): GET, ("status",): STATUS, ("cdi",): CDI}[words[1:]]


CAN_RENDER = unittest.skipUnless(shutil.which("scdoc") and shutil.which("man"),
                                 "needs scdoc and man")


class CheckMan(unittest.TestCase):
    def findings(self, pages=None, settings=SETTINGS, renders=False, built=PAGES, guide=""):
        with tempfile.TemporaryDirectory() as folder:
            tree = Path(folder)
            (tree / "docs/man").mkdir(parents=True)
            (tree / "packaging").mkdir()
            (tree / "docs/guide.md").write_text(guide, encoding="utf-8")
            (tree / "packaging/davitd.yaml").write_text(settings, encoding="utf-8")
            (tree / "docs/man/meson.build").write_text(str([*built, *(pages or {})]),
                                                       encoding="utf-8")
            for name, text in {**PAGES, **(pages or {})}.items():
                if text:
                    (tree / f"docs/man/{name}.scd").write_text(text, encoding="utf-8")
            checked = check_man.Pages(tree, run)
            return checked.check() if renders else checked.check_words()

    def expect(self, *parts, **options):
        findings = self.findings(**options)
        self.assertEqual(len(findings), len(parts), findings)
        for part, finding in zip(parts, findings):
            self.assertIn(part, finding)

    def changed(self, name, old, new):
        self.assertIn(old, PAGES[name])
        return {"pages": {name: PAGES[name].replace(old, new)}}

    def test_good_pages(self):
        self.expect()

    @CAN_RENDER
    def test_good_pages_render(self):
        self.expect(renders=True)

    def test_a_verb_without_a_page(self):
        self.expect("davit-cdi.1.scd: is missing", pages={"davit-cdi.1": None})

    def test_a_page_without_a_verb(self):
        self.expect("davit-old.1.scd: is about a verb that there is not",
                    pages={"davit-old.1": PAGES["davit-cdi.1"]})

    def test_a_verb_that_davit_1_does_not_list(self):
        self.expect("does not have davit-cdi",
                    **self.changed("davit.1", "*davit-cdi*(1)\n\tCDI specs.\n\n", ""))

    def test_another_summary_in_davit_1(self):
        self.expect('davit.1.scd: says "Specs." of cdi, and the help "CDI specs."',
                    **self.changed("davit.1", "\tCDI specs.", "\tSpecs."))

    def test_a_guide_shows_commands_that_there_are(self):
        self.expect(guide="`davit get pods -o json` prints, and davit gut is prose:\n\n```\n"
                          "$ davit get a \\\n    --wait=true    what --nothing of it is\n"
                          "$ davit get 'davit get --quoted' -- --of-others\n```\n")

    def test_a_guide_shows_what_there_is_not(self):
        self.expect("docs/guide.md: shows davit gut", "docs/guide.md: shows davit get --wiat",
                    guide="```\n$ davit gut\n```\nor `davit get --wiat`\n")

    def test_an_example_shows_what_there_is_not(self):
        self.expect("davit-get.1.scd: shows davit get -x", pages={
            "davit-get.1": PAGES["davit-get.1"] + "# EXAMPLES\n\n```\ndavit get pods -x\n```\n"})

    def test_a_page_that_is_not_built(self):
        self.expect("davitd.8.scd: is not in docs/man/meson.build",
                    built=[page for page in PAGES if page != "davitd.8"])

    def test_an_option_that_is_missing(self):
        self.expect("does not have --wait[=true|false]",
                    **self.changed("davit-get.1", "*--wait*[=_true|false_]\n\tText.\n\n", ""))

    def test_an_option_too_many(self):
        self.expect("has --wiat[=true|false]", "has --tail N", pages={
            "davit-get.1": PAGES["davit-get.1"].replace(
                "*--wait*[=_true|false_]",
                "*--wait*[=_true|false_]\n\tText.\n\n*--wiat*[=_true|false_]\n\tText.\n\n"
                "*--tail* _N_")})

    def test_another_value(self):
        self.expect("does not have -o, --output json|yaml", "has -o, --output json,",
                    **self.changed("davit-get.1", "_json|yaml_", "_json_"))

    def test_a_common_option_that_some_verb_has_not(self):
        self.expect("says that all verbs of its kind have --all", **self.changed(
            "davit.1", "## Of all verbs of the node", "*--all*\n\tText.\n\n"
                                                      "## Of all verbs of the node"))

    def test_another_summary(self):
        self.expect('NAME does not say "the node"',
                    **self.changed("davit-status.1", "- the node", "- a node"))

    def test_an_exit_status_that_is_not_documented(self):
        self.expect("does not have exit status 3",
                    **self.changed("davit.1", "|  3\n:  Refused.\n", ""))

    def test_options_of_the_daemon(self):
        self.expect("davitd.8.scd: does not have --strict",
                    **self.changed("davitd.8", "*--strict*\n\tText.\n\n", ""))
        self.expect("davitd.yaml.5.scd: does not have strict",
                    **self.changed("davitd.yaml.5", "*strict*: _true|false_\n\tText.\n\n", ""))

    def test_settings(self):
        self.expect("strict is missing", settings=SETTINGS.replace("#strict: false\n", ""))
        self.expect("colour is no option", settings=SETTINGS + "#colour: red\n")

    @CAN_RENDER
    def test_a_page_that_scdoc_refuses(self):
        self.expect("davit-cdi.1.scd: ", renders=True,
                    **self.changed("davit-cdi.1", "# DESCRIPTION\n\n", "# DESCRIPTION\n\n*"))

    @CAN_RENDER
    def test_a_page_with_warnings(self):
        self.expect("warning", renders=True, pages={
            "davit-cdi.1": PAGES["davit-cdi.1"] + "```\n" + "x" * 200 + "\n```\n\n" +
                           "x" * 200 + "\n"})


if __name__ == "__main__":
    unittest.main()
