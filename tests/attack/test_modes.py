"""Directories, keys and tokens that others could read or write, or that are not what they should be."""

import os
import stat

import pytest

WAIT_S = 60
PRIVATE = ("state.db", "state.db.lock", "state.db.mark", "admin.kubeconfig", "pki/ca.key")


def mode_of(path):
    return stat.S_IMODE(os.stat(path).st_mode)


def refuse(node, *words):
    """The log of a start that is refused."""
    node.start(ready=False)
    assert node.proc.wait(WAIT_S) == 1, node.proc.describe()
    for word in words:
        assert word in node.proc.log, node.proc.log
    return node.proc.log


@pytest.mark.parametrize("mode", [0o777, 0o755, 0o701, 0o770, 0o1777])
def test_wide_directories_are_narrowed(node, mode):
    paths = [node.state_dir, node.runtime_dir, os.path.join(node.state_dir, "pki")]
    assert node.stop() == 0
    for path in paths:
        os.chmod(path, mode)
    node.start()
    for path in paths:
        assert mode_of(path) == 0o700, path
        assert any(path in note for note in node.status().notes)
        assert path in node.proc.log
    assert 'davit_state_events_total{what="mode_fixed"} 3' in (
        node.api().ask("GET", "/metrics").body.decode())


@pytest.mark.parametrize("name", PRIVATE)
def test_wide_files_are_narrowed(node, name):
    path = os.path.join(node.state_dir, name)
    token = node.token
    assert node.stop() == 0
    os.chmod(path, 0o666)
    node.start()
    assert mode_of(path) == 0o600
    (note,) = node.status().notes
    assert path in note and "0666" in note and path in node.proc.log
    assert node.token == token and token not in node.proc.log


def test_a_log_left_by_a_kill_is_narrowed_too(node, api):
    api.must("POST", "/api/v1/namespaces/default/configmaps", {"metadata": {"name": "c"}})
    node.kill()
    path = os.path.join(node.state_dir, "state.db-wal")
    os.chmod(path, 0o644)
    node.start()
    assert mode_of(path) == 0o600
    node.api().must("GET", "/api/v1/namespaces/default/configmaps/c")


@pytest.mark.parametrize("name", ["", *PRIVATE, "pki", "pki/ca.crt"])
def test_what_belongs_to_others_is_refused(node, name):
    path = os.path.join(node.state_dir, name).rstrip("/")
    assert node.stop() == 0
    os.chown(path, 65534, 65534)
    refuse(node, path, "belongs to user 65534", "chown")
    os.chown(path, 0, 0)
    node.start()
    assert not node.status().notes


def test_a_runtime_directory_of_others_is_refused(node):
    assert node.stop() == 0
    os.chown(node.runtime_dir, 65534, 65534)
    refuse(node, node.runtime_dir, "belongs to user 65534")
    os.chown(node.runtime_dir, 0, 0)


@pytest.mark.parametrize("name", [*PRIVATE, "state.db-wal", "pki/ca.crt", "pki"])
def test_links_in_the_place_of_files_are_refused(node, short_dir, name):
    path = os.path.join(node.state_dir, name)
    elsewhere = os.path.join(short_dir, "elsewhere")
    assert node.stop() == 0
    if os.path.exists(path):
        os.rename(path, elsewhere)
    os.symlink(elsewhere, path)
    refuse(node, path, "a link")
    os.unlink(path)
    if os.path.exists(elsewhere):
        os.rename(elsewhere, path)
    node.start()
    assert not node.status().notes


def test_a_directory_that_others_use_is_not_changed(make_node):
    """Somebody gave a directory for all kinds of things."""
    node = make_node()
    os.makedirs(node.state_dir)
    with open(os.path.join(node.state_dir, "letter"), "w", encoding="ascii") as file:
        file.write("mine")
    os.chmod(node.state_dir, 0o777)
    refuse(node, node.state_dir, "used by others too", "0777")
    assert mode_of(node.state_dir) == 0o777
    os.chmod(node.state_dir, 0o1777)
    node.start()
    assert mode_of(node.state_dir) == 0o1777
    assert "directory of its own" in node.status().notes[0]
    assert mode_of(os.path.join(node.state_dir, "state.db")) == 0o600
