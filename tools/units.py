"""units.py - our C files as the compiler sees them, and analyses of them that remember what passed.

A unit is one .c file with its command and all files that its last compilation read, as Ninja
recorded them. An analysis of a unit is not repeated while those files, the command, the tool and
its configuration are those of the last clean one.
"""
import hashlib
import json
import os
import re
import shlex
import subprocess
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from pathlib import Path

from steps import BUILD, JOBS, ROOT, Failed

IS_CI = os.environ.get("CI") == "true"  # there, nothing is taken as known
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
            digest.update(path.encode() + content_of(path))
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
    argv = shlex.split(command)[1:]
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
    memory = BUILD / "clean" / name
    memory.mkdir(parents=True, exist_ok=True)

    def one(unit):
        record = memory / re.sub(r"[^a-zA-Z0-9.]", "_", shown(unit.source))
        key = unit.key(salt)
        if not IS_CI and record.exists() and record.read_text(encoding="utf-8") == key:
            return [], False
        lines = action(unit)
        if lines:
            record.unlink(missing_ok=True)
        else:
            record.write_text(key, encoding="utf-8")
        return lines, True

    with ThreadPoolExecutor(JOBS) as pool:
        results = list(pool.map(one, all_units))
    findings = list(dict.fromkeys(line for lines, _ in results for line in lines))
    log.write("".join(f"{line}\n" for line in findings))
    analysed = sum(was_run for _, was_run in results)
    if findings:
        raise Failed(f"{len(findings)} lines of findings")
    return f"{analysed} of {len(results)} files, the others unchanged since last pass" \
        if analysed < len(results) else f"{analysed} files"
