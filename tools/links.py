"""links.py - which programs a build has to link, asked of Ninja, so that some can be left for later.

A change in a low module brings hundreds of programs, a fifth of a second of a processor each, of which
a quick ./dev test runs some dozens.
"""
import re
import subprocess

LINKED = re.compile(r"^\[\d+/\d+\] Linking target (\S+)$", re.M)


def ninja(build_dir, *args):
    return subprocess.run(["ninja", "-C", str(build_dir), *args], text=True, check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout


def parse_stale(text):
    """The programs of a dry run's output; None when the build files are out of date themselves."""
    if "Regenerating build files" in text:
        return None
    return set(LINKED.findall(text))


def stale_programs(build_dir):
    """Those that a build would link; None when that cannot be told."""
    if not (build_dir / "build.ninja").exists():
        return None
    return parse_stale(ninja(build_dir, "-n"))


def parse_targets(text):
    """What `all` consists of, from the answer to a query; tests and benchmarks as such apart, which are
    names for all of their programs."""
    inputs = re.search(r"^  input: \S+\n((?:    \S+\n)*)", text, re.M)
    names = inputs.group(1).split() if inputs else []
    return [name for name in names if not re.fullmatch(r"meson-(test|benchmark)-prereq", name)]


def targets(build_dir):
    return parse_targets(ninja(build_dir, "-t", "query", "all"))
