"""davit against the embedded API alone (tests/golden/api_server.c), and against one that is made up."""

import os
import sys

import pytest

sys.path.insert(0, os.path.dirname(__file__))

from fake_api import FakeApi  # noqa: E402
from peers import folder_of  # noqa: E402
from runs import Davit, write_config  # noqa: E402


@pytest.fixture
def fake():
    server = FakeApi()
    yield server
    server.stop()


@pytest.fixture
def davit(fake, short_dir):
    """davit, and the fake server that it talks to."""
    return Davit(write_config(os.path.join(short_dir, "config"), fake.url, token=""), short_dir)


@pytest.fixture
def api_server(procs, short_dir):
    ca = os.path.join(short_dir, "ca.crt")
    program = os.path.join(folder_of("DAVIT_BUILD"), "tests", "golden", "api_server")
    proc = procs.start(program, "--ca", ca, ready="ready")
    proc.url = f"https://127.0.0.1:{int(proc.lines[0])}"
    proc.ca = ca
    yield proc
    if proc.is_alive:
        assert proc.stop() == 0, proc.describe()


@pytest.fixture
def real(api_server, short_dir):
    """davit, and the embedded API that it talks to, over TLS."""
    config = write_config(os.path.join(short_dir, "config"), api_server.url,
                          **{"certificate-authority": api_server.ca})
    return Davit(config, short_dir)
