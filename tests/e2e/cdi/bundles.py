"""OCI bundles with busybox in them, and davit cdi."""

import json
import os
import shutil
import subprocess
import uuid

from peers import folder_of

BUSYBOX = "/bin/busybox"


def run(*words, timeout=60):
    return subprocess.run(
        [str(word) for word in words],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )


def davit_cdi(*words):
    done = run(os.path.join(folder_of("DAVIT_BUILD"), "davit"), "cdi", *words)
    assert "Sanitizer" not in done.stderr, done.stderr
    return done


class Bundle:
    """A folder with busybox in it and runc's own config, made to run one line of shell."""

    def __init__(self, path):
        self.path = str(path)
        self.config_path = os.path.join(self.path, "config.json")
        os.makedirs(os.path.join(self.path, "rootfs", "bin"))
        os.makedirs(os.path.join(self.path, "rootfs", "data"))
        shutil.copy(BUSYBOX, os.path.join(self.path, "rootfs", "bin", "sh"))
        done = run("runc", "spec", "--bundle", self.path)
        assert done.returncode == 0, done.stderr

    @property
    def config(self):
        with open(self.config_path, encoding="utf-8") as file:
            return json.load(file)

    def set_line(self, line):
        """What it runs, without a terminal."""
        config = self.config
        config["process"]["terminal"] = False
        config["process"]["args"] = ["sh", "-c", line]
        with open(self.config_path, "w", encoding="utf-8") as file:
            json.dump(config, file)

    def run(self, line):
        self.set_line(line)
        return run("runc", "run", "--bundle", self.path, f"davit-{uuid.uuid4()}")
