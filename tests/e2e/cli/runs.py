"""davit, run against an API server that a kubeconfig names."""

import json
import os
import pty
import subprocess

from peers import folder_of


def davit_path():
    return os.path.join(folder_of("DAVIT_BUILD"), "davit")


def write_config(path, server, token="admintoken", **cluster):
    with open(path, "w", encoding="utf-8") as file:
        json.dump({
            "apiVersion": "v1", "kind": "Config", "current-context": "c",
            "clusters": [{"name": "d", "cluster": {"server": server, **cluster}}],
            "users": [{"name": "a", "user": {"token": token} if token else {}}],
            "contexts": [{"name": "c", "context": {"cluster": "d", "user": "a"}},
                         {"name": "ml", "context": {"cluster": "d", "user": "a",
                                                    "namespace": "ml"}}],
        }, file)
    return path


def run_on_terminal(words, env=None):
    """davit with a terminal as its standard output and error; what it wrote there."""
    ours, theirs = pty.openpty()
    child = subprocess.Popen([davit_path(), *words], stdin=subprocess.DEVNULL, stdout=theirs,
                             stderr=theirs, env={**os.environ, **(env or {})})
    os.close(theirs)
    text = b""
    while True:
        try:
            more = os.read(ours, 65536)
        except OSError:  # nobody holds the other end any more
            break
        if not more:
            break
        text += more
    os.close(ours)
    child.wait(30)
    return text.decode().replace("\r\n", "\n")


class Davit:
    """Runs davit with a kubeconfig, by default through the environment."""

    def __init__(self, config, folder):
        self.config = config
        self.folder = folder

    def run(self, *words, stdin=None, config=None, timeout=30, env=None):
        done = subprocess.run(
            [davit_path(), *map(str, words)],
            input=stdin,
            stdin=subprocess.DEVNULL if stdin is None else None,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
            cwd=self.folder,
            env={**os.environ, "KUBECONFIG": config or self.config, **(env or {})},
        )
        assert done.returncode >= 0, done
        for sign in ("Sanitizer", "runtime error:"):
            assert sign not in done.stderr, done.stderr
        return done

    def ok(self, *words, **options):
        done = self.run(*words, **options)
        assert (done.returncode, done.stderr) == (0, ""), done
        return done.stdout
