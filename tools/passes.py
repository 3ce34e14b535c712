"""passes.py - what ./dev test remembers of tests that passed, so that it need not repeat them.

A test is not repeated while all files that it depends on are those of its last pass.
"""
import hashlib
import json
import os
from functools import lru_cache
from pathlib import Path

from steps import BUILD, ROOT

PASSES = BUILD / "passes"
PYCACHE = BUILD / "pycache"  # of the tests' scripts, and of what they import


class Record:
    """What is remembered under a name: a dictionary, in a file of its own."""

    def __init__(self, name):
        self.path = PASSES / f"{name.replace(' ', '-')}.json"

    def load(self):
        try:
            return json.loads(self.path.read_text(encoding="utf-8"))
        except (FileNotFoundError, ValueError):  # never written, or not to its end
            return {}

    def save(self, content):
        PASSES.mkdir(parents=True, exist_ok=True)
        self.path.write_text(json.dumps(content), encoding="utf-8")


@lru_cache(maxsize=None)
def hash_of(path):
    """A hash of what the file holds; of one that is not there too."""
    try:
        return hashlib.sha256(Path(path).read_bytes()).hexdigest()
    except FileNotFoundError:
        return "gone"


def key_of(paths):
    digest = hashlib.sha256()
    for path in paths:
        digest.update(f"{path}\0{hash_of(path)}\n".encode())
    return digest.hexdigest()


def files_under(*tops):
    for top in tops:
        for folder, folders, names in os.walk(ROOT / top):
            folders[:] = sorted(name for name in folders if name != "__pycache__")
            yield from (Path(folder, name) for name in sorted(names))


def data_files(*tops):
    """All that programs read, and are not made of."""
    yield from (path for path in files_under(*tops) if path.suffix not in (".c", ".h", ".build"))
    yield Path("/var/lib/dpkg/status")  # another version of a library or of a peer's language


def programs(build_dir):
    """What was built there and can be run, without the builds in folders of their own under it."""
    apart = (BUILD / "peers", BUILD / "logs", BUILD / "corpora", PASSES, PYCACHE)
    for folder, folders, names in os.walk(build_dir):
        folders[:] = sorted(name for name in folders
                            if not name.endswith(".p") and not name.startswith("meson-")
                            and not (Path(folder) / name / "build.ninja").exists()
                            and Path(folder, name) not in apart)
        for name in sorted(names):
            path = Path(folder, name)
            is_test = name.startswith(("test_", "fuzz_", "bench_", "golden_"))
            if not is_test and os.access(path, os.X_OK) and path.is_file():
                yield path
