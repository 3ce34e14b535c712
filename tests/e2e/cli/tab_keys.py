"""The Tab key in three shells, as their completion scripts answer it."""

import os
import shutil
import subprocess

import pytest

from peers import folder_of
from runs import davit_path

BASH = """\
source "$1"
COMP_LINE=$2 COMP_POINT=${#2}
_davit davit
printf '%s\\n' "${COMPREPLY[@]}"
"""

# What zsh's completion system would be told, printed instead.
ZSH = """\
compdef() { : }
compset() { : }
_describe() { print -rl -- "${(@)${(P)2}%%:*}" }
_files() { print -rl -- ${PREFIX}*(N) }
compadd() { shift; print -rl -- ${(M)@:#${PREFIX}*} }
source $1
words=("${(@s: :)2}")
CURRENT=${#words}
PREFIX=${words[-1]}
_davit
"""

FISH = 'source $argv[1]; complete -C $argv[2] | string replace -r "\\t.*" ""'


def shell_of(name):
    if not shutil.which(name):
        pytest.skip(f"needs {name}")
    return name


def complete(shell, line, folder, **env):
    """What the Tab key offers at the end of the line."""
    script = os.path.join(folder, "script")
    with open(script, "w", encoding="utf-8") as file:
        subprocess.run([davit_path(), "completion", shell], stdout=file, check=True)
    words = {
        "bash": ["bash", "--norc", "-c", BASH, "bash", script, line],
        "zsh": ["zsh", "-f", "-c", ZSH, "zsh", script, line],
        "fish": ["fish", "--no-config", "-c", FISH, script, line],
    }[shell]
    done = subprocess.run(
        words, capture_output=True, text=True, timeout=60, check=False, cwd=folder,
        stdin=subprocess.DEVNULL,
        env={**os.environ, "PATH": folder_of("DAVIT_BUILD") + ":" + os.environ["PATH"],
             "KUBECONFIG": "", "HOME": folder, **env})
    noise = [line for line in done.stderr.splitlines() if "compopt" not in line]
    assert not noise, done.stderr
    return sorted(word.rstrip() for word in done.stdout.splitlines() if word.strip())
