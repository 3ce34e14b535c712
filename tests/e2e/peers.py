"""The test peers of tests/peers: where they are, and servers that tests share."""

import os

import pytest

from procs import Procs

# A program that is not there fails the tests that need it; only a folder that nobody named skips.
PATHS = {
    "davit": ("DAVIT_BUILD", "tests/peers/davit-peer"),
    "go": ("DAVIT_PEERS", "go-peer"),
    "python": ("DAVIT_PEERS", "python-peer"),
    "ccore": ("DAVIT_PEERS", "ccore-peer"),
}

# A sanitizer keeps freed memory for a while; by default so much that it would look like a leak.
SANITIZER = {"ASAN_OPTIONS": f"{os.environ.get('ASAN_OPTIONS', '')}:quarantine_size_mb=8"}


def folder_of(variable):
    if variable not in os.environ:
        pytest.skip(f"{variable} is not set")
    return os.environ[variable]


def peer_path(name):
    """The program of the peer on that stack."""
    variable, path = PATHS[name]
    path = os.path.join(folder_of(variable), path)
    if not os.access(path, os.X_OK):
        pytest.fail(f"no program {path}", pytrace=False)
    return path


class PeerServers:
    """One server for each stack, started when first asked for, shared by a module's tests."""

    def __init__(self, folder):
        self.folder = folder
        self.procs = Procs(folder)
        self.running = {}

    def get(self, name):
        """The socket and the process; a new one if a test before has broken the old."""
        socket, proc = self.running.get(name, (None, None))
        if proc is None or not proc.is_alive:
            socket = os.path.join(self.folder, name)
            command = [peer_path(name), "server", socket]
            proc = self.procs.start(*command, ready="ready", lifetime_s=900, env=SANITIZER)
            self.running[name] = socket, proc
        return socket, proc

    def stop(self):
        """All must end by themselves, and well."""
        for _, proc in self.running.values():
            code = proc.stop()
            assert code == 0, f"SIGTERM: {proc.describe()}"
