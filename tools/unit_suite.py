"""unit_suite.py - the unit tests and replays of fuzzers' inputs of one build, by Meson.

A program is not run while it, and what it reads, are those of its last pass. Of those that changed
run all whose own module did, and of those that changed with a module under them the quickest, for
as long as a person waits; the others are owed: the next run goes on with them, and --all runs all.
What is owed is not even linked (build_for).

A program that failed is run once more, alone, when all suites are over: by then nothing else keeps
the machine busy. What passes then is named; what a sanitizer reports is not tried again.
"""
import json
import re
from pathlib import Path

from links import stale_programs, targets
from passes import Record, data_files, files_under, hash_of, key_of
from steps import FILLING, JOBS, RETRIED_MAX, Failed, Tally, build, note_unsteady, run

# Of programs that changed only with what is under them, the times of all jobs together; it takes
# longer to link most of them than to run them.
SAMPLE_S = 5 * JOBS
LINK_S = 0.2


def cmocka_tally(test):
    """One program of Meson's log: its cmocka tests, or itself when it is not one of cmocka's."""
    text = test.get("stdout", "") + test.get("stderr", "")

    def count(word):
        """Names, because cmocka lists those that failed or were skipped again at the end."""
        return len(set(re.findall(rf"^\[ +{word} +\] ([a-zA-Z_]\w*)$", text, re.M)))

    tally = Tally(count("OK"), count("FAILED"), count("SKIPPED"))
    is_cmocka = re.search(r"^\[==========\] Running \d+ test", text, re.M)
    if test["result"] == "SKIP":
        return Tally(skipped=1)
    if test["result"] == "OK":
        return tally if is_cmocka else Tally(passed=1)
    # One that ends badly though none of its tests failed (a leak, a crash) is one failure.
    tally.failed = max(tally.failed, 1)
    return tally


def may_be_late(record):
    """Whether the failure can come from a machine that was too busy: what a sanitizer reports and
    what ends by a signal is a fault, however rare. A test that fails is left in the middle, so that
    what it held is a leak; that alone says nothing."""
    text = record.get("stdout", "") + record.get("stderr", "")
    if cmocka_tally(record).failed and re.search(r"^\[ +FAILED +\]", text, re.M):
        text = re.sub(r"LeakSanitizer|SUMMARY: AddressSanitizer: \d+ byte\(s\) leaked", "", text)
    return record["result"] in ("FAIL", "TIMEOUT") and "Sanitizer" not in text and \
        "runtime error:" not in text and record.get("returncode", 1) >= 0


def name_of(command):
    return Path(command[0]).name


def module_of(test):
    """The module whose test it is: its second suite."""
    return next((suite.partition(":")[2] for suite in test["suite"]
                 if suite.partition(":")[2] not in ("unit", "fuzz")), "")


def sample(programs, passes, budget_s):
    """The quickest programs, by their last pass, for the budget."""
    chosen = set()
    for name in sorted(programs, key=lambda name: passes[name]["seconds"]):
        budget_s -= passes[name]["seconds"] + LINK_S
        if budget_s < 0:
            break
        chosen.add(name)
    return chosen


def is_never_run(program, build_dir):
    """By a suite: benchmarks, and replays but for those of the plain build."""
    name = Path(program).name
    return name.startswith("bench_") or (name.startswith("golden_") and
                                         build_dir.name in ("asan", "tsan"))


def build_for(log, variant, suite, run_all):
    """Builds all, but for programs that the suite would leave out and those that no suite runs."""
    stale = None if run_all else stale_programs(suite.build_dir)
    owed = suite.choose_owed(stale) if stale else set()
    left = owed | {name for name in stale or () if is_never_run(name, suite.build_dir)}
    names = [name for name in targets(suite.build_dir) if name not in left] if left else []
    build(log, variant, *(["--", *names] if names else []))


class UnitSuite:
    def __init__(self, name, build_dir, suites=()):
        """Without `suites`, all modules."""
        self.build_dir = build_dir
        self.suites = suites
        self.record = Record(name)
        self.times = {}  # by program, in seconds

    def tests(self):
        """{program: Meson's description of its test}"""
        path = self.build_dir / "meson-info/intro-tests.json"
        found = {}
        for test in json.loads(path.read_text(encoding="utf-8")):
            suites = {suite.partition(":")[2] for suite in test["suite"]}
            if suites & {"golden", "e2e"} or (self.suites and not suites & set(self.suites)):
                continue
            found[name_of(test["cmd"])] = test
        return found

    def keys(self, tests):
        """{program: what its outcome depends on}; programs may read what is beside the sources."""
        data = key_of(path for path in data_files("src", "proto", "tests")
                      if path.suffix != ".py")
        return {name: data + hash_of(test["cmd"][0]) for name, test in tests.items()}

    def modules(self, tests):
        """{module: a hash of all that is in its folders}"""
        return {module: key_of(files_under(f"src/{module}", f"tests/{module}"))
                for module in {module_of(test) for test in tests.values()}}

    @staticmethod
    def owed(tests, changed, passes, modules):
        """Those of `changed` that are left for later: they have passed before, in the same state of
        their own module, and are not among the quickest."""
        far = {name for name in changed
               if name in passes and passes[name].get("module") == modules[module_of(tests[name])]}
        return far - sample(far, passes, SAMPLE_S)

    def choose_owed(self, stale):
        """Of programs that are to be linked, those that can be left for later."""
        tests = self.tests()
        return self.owed(tests, stale & tests.keys(), self.record.load(), self.modules(tests))

    def run(self, log, tests, n_jobs, patience):
        """(exit status, {program: Meson's record})"""
        results = self.build_dir / "meson-logs/testlog.json"
        results.unlink(missing_ok=True)
        status = run(log, [*FILLING, "meson", "test", "-C", self.build_dir, "--no-rebuild",
                           "--num-processes", n_jobs, "--timeout-multiplier", patience, "--quiet",
                           *(arg for suite in self.suites for arg in ("--suite", suite)),
                           *sorted({test["name"] for test in tests.values()})],
                     timeout_s=None)  # each test has its own
        if not results.exists():
            return status, {}
        # Programs of two modules may have tests of one name, by which Meson chooses.
        records = map(json.loads, results.read_text(encoding="utf-8").splitlines())
        found = {name_of(record["command"]): record for record in records}
        return status, {name: record for name, record in found.items() if name in tests}

    def __call__(self, log, run_all):
        tests = self.tests()
        keys = self.keys(tests)
        modules = self.modules(tests)
        passes = {} if run_all else self.record.load()
        stale = set() if run_all else (stale_programs(self.build_dir) or set()) & passes.keys()
        known = {name: pass_ for name, pass_ in passes.items()
                 if name in keys and pass_["key"] == keys[name] and name not in stale}
        owed = stale & tests.keys() | self.owed(tests, tests.keys() - known.keys() - stale, passes,
                                                modules)
        chosen = {name: test for name, test in tests.items()
                  if name not in known and name not in owed}
        total = Tally()
        for pass_ in known.values():
            total.add(Tally(pass_["passed"], 0, pass_["skipped"]))
        if known or owed:
            total.note = f"{len(chosen)} of {len(tests)} programs, the others as at their last pass"
        if owed:
            total.note += f" but for {len(owed)} that only link what changed: --all runs them"
        late = {}
        if chosen:
            status, records = self.run(log, chosen, JOBS + 1, 3)  # some wait
            for name, record in records.items():
                tally = cmocka_tally(record)
                self.times[name] = record.get("duration", 0)
                if not tally.failed:
                    known[name] = {"key": keys[name], "passed": tally.passed,
                                   "skipped": tally.skipped, "seconds": self.times[name],
                                   "module": modules[module_of(tests[name])]}
                    total.add(tally)
                    continue
                log.write(f"\n{name}: {record['result']}\n")
                log.write(record.get("stdout", "") + record.get("stderr", ""))
                if may_be_late(record) and len(late) < RETRIED_MAX:
                    late[name] = record
                else:
                    total.add(tally)
            if status != 0 and total.failed == 0 and not late:
                raise Failed(f"meson test exits with {status}")
        self.record.save({**known, **{name: passes[name] for name in owed}})
        if late:
            total.note = f"{len(late)} programs to be run again, alone"
            total.again = lambda log: self.run_again(log, tests, late)
        return total

    def run_again(self, log, tests, late):
        _, records = self.run(log, {name: tests[name] for name in late}, 1, 9)
        total, unsteady = Tally(), []
        for name, first in late.items():
            tally = cmocka_tally(records.get(name, first))
            total.add(tally)
            if not tally.failed:
                unsteady.append(name)
        total.note = note_unsteady(unsteady)
        return total
