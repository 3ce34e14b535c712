"""e2e_suite.py - the end-to-end tests against one build, by pytest.

All of them run when nothing is known of them, for CI and for --all. After a pass of all, a change
brings: what failed at its last run, what stands in files that changed, and a sample of the others
for as long as a person waits: of each file the quickest tests.

What fails is run once more, alone, when all suites are over; a sanitizer's report stays a failure.
"""
import os
import shutil
import xml.etree.ElementTree
from pathlib import Path

from passes import PYCACHE, Record, data_files, files_under, hash_of, key_of, programs
from steps import BUILD, JOBS, RETRIED_MAX, ROOT, Failed, Tally, note_unsteady, run

PEERS = BUILD / "peers"
# One test that takes longer hangs; it is ended and named.
TEST_TIMEOUT_S = 240
# They wait more than they compute, and with sanitizers they are the last to end.
WORKERS = 3 * JOBS
SANITIZED_WORKERS = 5 * JOBS
# Of the sample, the times of all workers together: about ten seconds, for each of two builds.
SAMPLE_S = 10 * WORKERS


def file_of(name):
    """Of a test, as pytest names it."""
    return name.partition("::")[0]


def sample(times, budget_s):
    """Tests for the budget: each file's quickest, then each file's second, and so on."""
    by_file = {}
    for name in sorted(times, key=times.get):
        by_file.setdefault(file_of(name), []).append(name)
    rounds = sorted((round_, times[name], name) for names in by_file.values()
                    for round_, name in enumerate(names))
    chosen = set()
    for _, seconds, name in rounds:
        budget_s -= seconds
        if budget_s < 0:
            break
        chosen.add(name)
    return chosen


class E2eSuite:
    def __init__(self, name, build_dir, options=(), workers=WORKERS, retries=True):
        """options: of pytest, which choose the tests of this suite."""
        self.workers = workers
        self.retries = retries
        self.name = name
        self.build_dir = build_dir
        self.options = options
        self.record = Record(name)
        self.times = {}  # by test, in seconds
        # Also of programs whose end no test looks at.
        self.reports = BUILD / "logs" / f"sanitizer-{build_dir.name}"

    def run(self, log, results, options):
        """(exit status, {test: its outcomes}); None for the tests when none was run."""
        results.unlink(missing_ok=True)
        status = run(log, ["/usr/bin/python3", "-m", "pytest", "-q", "-ra", "--tb=short",
                           "-o", f"cache_dir={BUILD}/pytest-{self.build_dir.name}",
                           *self.options, *options, f"--junitxml={results}",
                           "tests/e2e", "tests/attack"],
                     timeout_s=None,  # each test has its own
                     # Every worker reads all scripts: 4.5 s of a processor, and 1.5 when they are
                     # compiled already.
                     env={"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": str(PYCACHE),
                          "DAVIT_BUILD": str(self.build_dir), "DAVIT_PEERS": str(PEERS),
                          "ASAN_OPTIONS": f"log_path={self.reports}/report",
                          "UBSAN_OPTIONS":
                              f"log_path={self.reports}/report:print_stacktrace=1"})
        if not results.exists():
            return status, None
        # By name, because a test that fails and whose clean-up fails too is there twice.
        outcomes = {}
        for test in xml.etree.ElementTree.parse(results).getroot().iter("testcase"):
            name = f"{test.get('classname').replace('.', '/')}.py::{test.get('name')}"
            outcomes.setdefault(name, set()).update(child.tag for child in test)
            self.times[name] = self.times.get(name, 0) + float(test.get("time", 0))
        return status, outcomes

    def choose(self, known, files):
        """Names of tests and of files with tests; None for all."""
        changed = {path for path in known["files"].keys() | files.keys()
                   if known["files"].get(path) != files.get(path)}
        if any(not Path(path).name.startswith("test_") for path in changed):
            return None  # what tests share
        return set(known["owed"]) | changed | sample(known["times"], SAMPLE_S)

    def __call__(self, log, run_all):
        shutil.rmtree(self.reports, ignore_errors=True)
        self.reports.mkdir(parents=True)
        shutil.rmtree(BUILD / f"pytest-{self.build_dir.name}", ignore_errors=True)
        scripts = [*files_under("tests/e2e", "tests/attack"), ROOT / "tests/conftest.py"]
        files = {os.path.relpath(path, ROOT / "tests"): hash_of(path)
                 for path in scripts if path.suffix == ".py"}
        key = key_of([*programs(self.build_dir), *data_files("proto", "tests", "drivers", "ui"),
                      ROOT / "tools/run"])
        known = {} if run_all else self.record.load()
        if known and known["key"] == key and not known["owed"]:
            return Tally(known["passed"], 0, known["skipped"],
                         f"unchanged since last pass {known['note']}".rstrip())
        chosen = self.choose(known, files) if known else None
        options = [f"--timeout={TEST_TIMEOUT_S}", "-n", self.workers, "--dist", "loadfile"]
        if chosen is not None:
            names = BUILD / "logs" / f"{self.record.path.stem}.chosen"
            names.write_text("".join(f"{name}\n" for name in sorted(chosen)), encoding="utf-8")
            options.append(f"--only={names}")
        results = BUILD / "logs" / f"{self.record.path.stem}.xml"
        status, outcomes = self.run(log, results, options)
        if outcomes is None:
            raise Failed(f"pytest exits with {status}")
        failed = {name for name, outcome in outcomes.items() if outcome & {"failure", "error"}}
        skipped = sum("skipped" in outcome and name not in failed
                      for name, outcome in outcomes.items())
        total = Tally(len(outcomes) - len(failed) - skipped, 0, skipped)
        if chosen is not None:
            total.note = f"of {len(known['times'])}; --all runs them all  "
        if self.retries and 0 < len(failed) <= RETRIED_MAX:
            total.note += f"{len(failed)} to be run again, alone"
            total.again = lambda log: self.run_again(log, results.with_suffix(".again.xml"), failed)
        else:
            total.failed = len(failed)
        self.count_reports(log, total)
        if status != 0 and not failed and total.failed == 0:
            raise Failed(f"pytest exits with {status}")
        times = {**known.get("times", {}), **self.times}
        self.record.save({"key": key, "files": files, "times": times, "passed": total.passed,
                          "skipped": total.skipped, "note": total.note,
                          "owed": sorted(failed) if total.failed == 0 else sorted(outcomes)})
        return total

    def count_reports(self, log, total):
        for report in sorted(self.reports.iterdir()):
            log.write(f"\n{report.name}:\n" + report.read_text(encoding="utf-8", errors="replace"))
            total.failed += 1
            report.unlink()

    def run_again(self, log, results, failed):
        _, again = self.run(log, results, [f"--timeout={2 * TEST_TIMEOUT_S}", "--last-failed",
                                           "--last-failed-no-failures", "none"])
        again = again or {}
        unsteady = {name for name in failed & again.keys()
                    if not again[name] & {"failure", "error"}}
        total = Tally(len(unsteady), len(failed - unsteady), note=note_unsteady(unsteady))
        self.count_reports(log, total)
        known = self.record.load()
        known["owed"] = sorted(failed - unsteady)
        known["passed"] += len(unsteady)
        self.record.save(known)
        return total
