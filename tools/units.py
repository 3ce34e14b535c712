"""units.py - our C files as the compiler sees them, and analyses of them that remember what passed.

A unit is one .c file with its command and all files that its last compilation read, as Ninja
recorded them. An analysis of a unit is not repeated on a machine, in whichever clone, while what
those files hold, the command, the tool and its configuration are those of a clean one.
"""
import hashlib
import json
import os
import shlex
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from pathlib import Path

from steps import BUILD, JOBS, ROOT, Failed

# What was found clean, a file a hash; shared by all clones of a user.
CLEAN = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "davit/clean"
CLEAN_DAYS = 30  # those that nothing asked for in this time go
OURS = ("src", "include", "drivers", "tests")


def files(*suffixes, tops=OURS):
    """Files of the tree by how their name ends, corpora and generated ones apart."""
    for top in tops:
        for folder, folders, names in os.walk(ROOT / top):
            folders[:] = sorted(name for name in folders if name not in ("corpus", "__pycache__")
                                and Path(folder, name) != BUILD)
            for name in sorted(names):
                if name.endswith(suffixes):
                    yield Path(folder, name)


def shown(path):
    """As a person would type it."""
    return os.path.relpath(path, ROOT)


def place_of(path):
    """The same in every clone."""
    for name, top in (("build", BUILD), ("", ROOT)):
        if Path(path).is_relative_to(top):
            return os.path.join(name, os.path.relpath(path, top))
    return str(path)


@lru_cache(maxsize=None)
def content_of(path):
    try:
        return hashlib.sha256(Path(path).read_bytes()).digest()
    except FileNotFoundError:
        return b"gone"


class Unit:
    def __init__(self, source, directory, argv, reads):
        self.source = source
        self.directory = directory
        self.argv = argv  # without the compiler, -c, -o and what else is about outputs
        self.reads = reads

    def key(self, salt):
        digest = hashlib.sha256(salt)
        digest.update("\0".join(self.argv).encode())
        for path in sorted(self.reads):
            digest.update(place_of(path).encode() + content_of(path))
        return digest.hexdigest()


def ninja_deps(directory):
    """{object: files that its compilation read}"""
    text = subprocess.run(["ninja", "-C", directory, "-t", "deps"], check=True, text=True,
                          stdout=subprocess.PIPE).stdout
    deps, target = {}, None
    for line in text.splitlines():
        if line.startswith("    "):
            deps[target].append(os.path.normpath(directory / line.strip()))
        elif ": #deps" in line:
            target = line.partition(": #deps")[0]
            deps[target] = []
    return deps


def without_outputs(command):
    argv = shlex.split(command)
    argv = argv[2 if argv[0] == "ccache" else 1:]
    kept, rest = [], iter(argv)
    for arg in rest:
        if arg in ("-o", "-MF", "-MQ", "-MT"):
            next(rest)
        elif arg not in ("-c", "-MD", "-MMD"):
            kept.append(arg)
    return kept[:-1]  # the source is last


def units(directory):
    """One for each .c file of ours in the compile database of a build folder."""
    deps = ninja_deps(directory)
    found = {}
    for entry in json.loads((directory / "compile_commands.json").read_text(encoding="utf-8")):
        source = Path(os.path.normpath(Path(entry["directory"]) / entry["file"]))
        if source.is_relative_to(BUILD) or not source.is_relative_to(ROOT) or source in found:
            continue
        found[source] = Unit(source, directory, without_outputs(entry["command"]),
                             deps.get(entry["output"], [str(source)]))
    return sorted(found.values(), key=lambda unit: unit.source)


def analyse(log, name, tool, configs, all_units, action):
    """Runs action(unit) -> findings, as lines, over all units that are not known to be clean.
    Fails when there are findings."""
    version = subprocess.run([tool, "--version"], check=True, stdout=subprocess.PIPE).stdout
    salt = version + b"".join(content_of(path) for path in configs)
    memory = CLEAN / name
    memory.mkdir(parents=True, exist_ok=True)
    for record in memory.iterdir():
        if record.stat().st_mtime < time.time() - CLEAN_DAYS * 86400:
            record.unlink(missing_ok=True)

    def one(unit):
        record = memory / unit.key(salt)
        if record.exists():
            record.touch()
            return [], False
        lines = action(unit)
        if not lines:
            record.touch()
        return lines, True

    with ThreadPoolExecutor(JOBS) as pool:
        results = list(pool.map(one, all_units))
    findings = list(dict.fromkeys(line for lines, _ in results for line in lines))
    log.write("".join(f"{line}\n" for line in findings))
    analysed = sum(was_run for _, was_run in results)
    if findings:
        raise Failed(f"{len(findings)} lines of findings")
    return f"{analysed} of {len(results)} files, the others known to be clean" \
        if analysed < len(results) else f"{analysed} files"
