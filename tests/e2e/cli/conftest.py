"""davit against the embedded API alone (tests/golden/api_server.c), and against one that is made up."""

import os

import pytest
from fake_api import FakeApi
from runs import Davit, write_config


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
def real(api_server, short_dir):
    """davit, and the embedded API that it talks to, over TLS."""
    config = write_config(os.path.join(short_dir, "config"), api_server.url,
                          **{"certificate-authority": api_server.ca})
    return Davit(config, short_dir)
