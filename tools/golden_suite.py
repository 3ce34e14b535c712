"""golden_suite.py - the replays of the reference corpora by tools/golden, those that changed."""
import re
from pathlib import Path

from passes import Record, hash_of, key_of
from steps import FILLING, ROOT, Failed, Tally, run


class GoldenSuite:
    def __init__(self, name, build_dir):
        self.build_dir = build_dir
        self.record = Record(name)
        self.times = {}  # by corpus, in seconds

    def keys(self):
        """{corpus: what the outcome of its replay depends on}"""
        folder = self.build_dir / "tests/golden"
        keys = {}
        for archive in sorted((ROOT / "tests/golden/corpora").glob("*.tar.xz")):
            name = archive.name.removesuffix(".tar.xz")
            programs = sorted(folder.glob(f"golden_{name.replace('-', '_')}*"))
            if programs:  # their folders of objects hold nothing that is run
                keys[name] = key_of([archive, *(path for path in programs if path.is_file())])
                if "api_transcripts" in programs[0].name:
                    keys[name] += hash_of(folder / "api_server")
        return keys

    def __call__(self, log, run_all):
        keys = self.keys()
        known = {} if run_all else self.record.load()
        known = {name: pass_ for name, pass_ in known.items()
                 if name in keys and pass_["key"] == keys[name]}
        total = Tally(sum(pass_["passed"] for pass_ in known.values()))
        names = sorted(keys.keys() - known.keys())
        if known:
            total.note = f"{len(names)} of {len(keys)} corpora, the others as at their last pass"
        if known and not names:
            return total
        status = run(log, [*FILLING, ROOT / "tools/golden", *(["", *names] if known else [])],
                     env={"DAVIT_BUILD_ROOT": str(self.build_dir)})
        log.flush()
        text = Path(log.name).read_text(encoding="utf-8", errors="replace")
        found = Tally.parse(text.rstrip().rpartition("\n")[2])
        if not found or (status != 0 and found.failed == 0):
            raise Failed(f"tools/golden exits with {status}")
        counts = {}
        for name, seconds, passed, failed in re.findall(
                r"^golden (\S+) +([\d.]+) s  (\d+) passed, (\d+) failed$", text, re.M):
            self.times[name] = self.times.get(name, 0) + float(seconds)
            count = counts.setdefault(name, Tally())
            count.add(Tally(int(passed), int(failed)))
        for name, count in counts.items():
            if name in keys and count.passed and not count.failed:
                known[name] = {"key": keys[name], "passed": count.passed}
        self.record.save(known)
        total.add(found)
        rest = re.search(r"^(not replayed yet: .*|no reference corpora.*)$", text, re.M)
        total.note = total.note or (rest.group(1) if rest else "")
        return total
