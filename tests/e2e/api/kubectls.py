"""kubectl, unmodified: Debian's, which is old, and a newer one where there is one."""

import functools
import json
import os
import re
import shutil
import subprocess

import pytest

from peers import folder_of
from procs import until
from servers import PATIENCE_S

OLD = "old"


@functools.lru_cache(maxsize=None)
def version_of(program):
    return subprocess.run([program, "version", "--client"], capture_output=True, text=True,
                          timeout=PATIENCE_S, check=False).stdout.strip()


def find_kubectl(age):
    if age == OLD:
        return os.path.join(folder_of("DAVIT_PEERS"), "kubectl-old")
    program = shutil.which("kubectl")
    if not program:
        pytest.skip("no kubectl is installed here")
    found = re.search(r"v1\.(\d+)\.", version_of(program))
    if not found or int(found.group(1)) < 32:
        pytest.skip(f"the kubectl that is installed here is an old one: {version_of(program)[:60]}")
    return program


class Kubectl:
    def __init__(self, program, kubeconfig, home, is_old):
        self.program = program
        self.env = {**os.environ, "KUBECONFIG": kubeconfig, "HOME": home}
        self.home = home
        self.is_old = is_old

    def run(self, words, status, stdin=None, env=None):
        done = subprocess.run(
            [self.program, *words], input=stdin, capture_output=True, text=True,
            stdin=subprocess.DEVNULL if stdin is None else None,
            timeout=PATIENCE_S, env={**self.env, **(env or {})}, check=False,
        )
        text = done.stdout + done.stderr
        assert done.returncode == status, f"kubectl {' '.join(words)}: {done.returncode}\n{text}"
        return done

    def __call__(self, *words, status=0, stdin=None, env=None):
        """What it printed, warnings too; it has to end with that status."""
        done = self.run(words, status, stdin, env)
        return done.stdout + done.stderr

    def json(self, *words):
        """The document of a get."""
        return json.loads(self.run(["get", *words, "-o", "json"], 0).stdout)

    def rows(self, *words):
        """The table, as lists of words; the first are the columns."""
        return [line.split() for line in self("get", *words).splitlines()]

    def start(self, procs, *words):
        """In the background, for those that follow."""
        return procs.start(self.program, *words, env=self.env)


def wait_row(proc, *words):
    """Waits until the process has printed a line that has these words in this order."""
    until(lambda: any(line.split()[: len(words)] == list(words) for line in list(proc.lines)),
          PATIENCE_S, f"a line {words} from {proc.describe()}")
