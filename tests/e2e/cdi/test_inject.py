"""davit cdi inject, and what a real runtime makes of the result.

The container is busybox under runc. Its device is one that no runtime allows by itself, so that it
can only be opened if the rule for it arrived too.
"""

import json

import pytest

from bundles import davit_cdi

pytestmark = pytest.mark.release

# The kernel's log: every machine has it, and opening it for writing does nothing.
MAJOR, MINOR = 1, 11


@pytest.fixture
def cdi_dirs(tmp_path):
    """A spec in each of two directories; the second has the device that counts."""
    (tmp_path / "host").mkdir()
    (tmp_path / "host" / "file").write_text("from the host\n")
    hook = tmp_path / "hook"
    hook.write_text(f"#!/bin/sh\ncat > {tmp_path}/hook-was-here\n")
    hook.chmod(0o755)
    spec = {
        "cdiVersion": "0.6.0",
        "kind": "vendor.com/gpu",
        "containerEdits": {"env": ["VENDOR=1", "TERM=cdi"]},
        "devices": [
            {
                "name": "0",
                "containerEdits": {
                    "env": ["GPU=0"],
                    "deviceNodes": [
                        {"path": "/dev/gpu0", "type": "c", "major": MAJOR, "minor": MINOR},
                        {"path": "/dev/nothing", "hostPath": "/dev/null"},
                    ],
                    "mounts": [
                        {"hostPath": str(tmp_path / "host"), "containerPath": "/data", "options": ["ro"]}
                    ],
                    "hooks": [{"hookName": "createRuntime", "path": str(hook)}],
                },
            }
        ],
    }
    for name in ("etc", "run"):
        (tmp_path / name).mkdir()
    stale = json.loads(json.dumps(spec))
    stale["devices"][0]["containerEdits"] = {"env": ["GPU=stale"]}
    (tmp_path / "etc" / "vendor.json").write_text(json.dumps(stale))
    (tmp_path / "run" / "vendor.json").write_text(json.dumps(spec))
    return f"{tmp_path}/etc:{tmp_path}/run"


def test_a_container_gets_device_mount_hook_and_env(bundle, cdi_dirs, tmp_path):
    shell = (
        'echo "$VENDOR $GPU $TERM"; cat /data/file; test -c /dev/gpu0 && true > /dev/gpu0 && '
        "echo opened; test -c /dev/nothing && echo nothing; true > /data/x || echo read-only"
    )
    assert bundle.run(shell).stdout.splitlines() == ["  xterm", "read-only"]

    done = davit_cdi("inject", "--cdi-dirs", cdi_dirs, "--bundle", bundle.path, "vendor.com/gpu=0")
    assert done.returncode == 0, done.stderr
    after = bundle.run(shell)
    assert after.stdout.splitlines() == [
        "1 0 cdi",
        "from the host",
        "opened",
        "nothing",
        "read-only",
    ], after
    state = json.loads((tmp_path / "hook-was-here").read_text())
    assert state["bundle"] == bundle.path


def test_a_device_without_permissions_is_there_but_closed(bundle, tmp_path):
    node = {"path": "/dev/gpu0", "type": "c", "major": MAJOR, "minor": MINOR, "permissions": "none"}
    device = {"name": "x", "containerEdits": {"deviceNodes": [node]}}
    spec = {"cdiVersion": "0.6.0", "kind": "vendor.com/gpu", "devices": [device]}
    (tmp_path / "vendor.json").write_text(json.dumps(spec))
    done = davit_cdi("inject", "--cdi-dirs", tmp_path, "--bundle", bundle.path, "vendor.com/gpu=x")
    assert done.returncode == 0, done.stderr
    after = bundle.run("test -c /dev/gpu0 && echo there; true > /dev/gpu0 && echo opened")
    assert after.stdout == "there\n", after


def test_injecting_again_changes_nothing(bundle, cdi_dirs):
    words = ("inject", "--cdi-dirs", cdi_dirs, "--bundle", bundle.path, "vendor.com/gpu=0")
    assert davit_cdi(*words).returncode == 0
    once = bundle.config
    assert davit_cdi(*words).returncode == 0
    assert bundle.config == once


def test_a_name_that_is_not_there_changes_nothing(bundle, cdi_dirs):
    before = bundle.config
    done = davit_cdi("inject", "--cdi-dirs", cdi_dirs, "--bundle", bundle.path, "vendor.com/gpu=9")
    assert done.returncode == 1
    assert 'CDI device "vendor.com/gpu=9": in none of 2 specs' in done.stderr
    assert bundle.config == before
