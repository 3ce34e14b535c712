"""A server of leases, and device nodes that are real: those of null and zero under other names."""

import os
import stat

import pytest
from lease_server import LeaseServer


@pytest.fixture
def leases(short_dir):
    server = LeaseServer(short_dir)
    yield server
    server.close()


@pytest.fixture
def device(short_dir):
    """A device node of this machine, which reads as /dev/zero does."""
    path = os.path.join(short_dir, "gpu0")
    try:
        os.mknod(path, 0o666 | stat.S_IFCHR, os.makedev(1, 5))
        with open(path, "rb") as node:
            node.read(1)
    except OSError as error:
        pytest.skip(f"no device nodes can be made here: {error}")
    os.chmod(path, 0o666)
    return path
