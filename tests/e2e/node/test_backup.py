"""davit state backup and restore: all durable state as one file, made while davitd works."""

import os
import shutil
import subprocess
import threading

import pytest

from nodes import pod
from procs import until

GPU = "example.com/gpu"
N_BEFORE = 20

pytestmark = pytest.mark.release


class Load:
    """Admits and releases pods until it is told to stop."""

    def __init__(self, node):
        self.node = node
        self.n = 0
        self.is_over = False
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def run(self):
        while not self.is_over:
            name = f"load-{self.n}"
            assert self.node.admit(pod(name, ("c", {GPU: "1"}))).admitted
            self.node.release(f"uid-{name}")
            self.n += 1

    def stop(self):
        self.is_over = True
        self.thread.join()


def holders(node):
    return {device.id: device.holders[0].pod.name
            for device in node.resource(GPU).devices if device.holders}


def begin(node, plugins):
    plugins(node, GPU, [f"gpu-{number}" for number in range(64)]).register()
    node.wait_devices(GPU, 64)
    for number in range(N_BEFORE):
        assert node.admit(pod(f"kept-{number}", ("c", {GPU: "1"}))).admitted
    return {device: name for device, name in holders(node).items()}


def test_a_backup_under_load_is_a_state_of_one_moment(node, plugins, tmp_path):
    kept = begin(node, plugins)
    file = tmp_path / "backup.db"
    load = Load(node)
    try:
        for _ in range(3):
            answer = node.davit("state", "backup", str(file))
            assert answer.returncode == 0 and "and checked" in answer.stdout, answer
        until(lambda: load.n > 3, 20, "the load goes on")
    finally:
        load.stop()
    assert file.stat().st_mode & 0o777 == 0o600
    assert not os.path.exists(os.path.join(node.state_dir, "state.db.copying"))
    for number in range(N_BEFORE):
        node.release(f"uid-kept-{number}")
    refused = node.davit("state", "restore", str(file), "--state-dir", node.state_dir)
    assert refused.returncode == 1 and "stop davitd first" in refused.stderr
    assert node.stop() == 0
    restored = node.davit("state", "restore", str(file), "--state-dir", node.state_dir)
    assert restored.returncode == 0 and "is kept as" in restored.stdout, restored
    node.start()
    plugins(node, GPU, [f"gpu-{number}" for number in range(64)], name="again.sock").register()
    node.wait_devices(GPU, 64)
    now = holders(node)
    assert kept.items() <= now.items()
    assert len(now) <= N_BEFORE + 1  # at most the one that was there at that moment
    assert not node.status().notes


def test_a_bad_backup_is_refused_and_changes_nothing(node, plugins, tmp_path):
    kept = begin(node, plugins)
    good = tmp_path / "good.db"
    assert node.davit("state", "backup", str(good)).returncode == 0
    bad = tmp_path / "bad.db"
    shutil.copy(good, bad)
    cut = tmp_path / "cut.db"
    cut.write_bytes(good.read_bytes()[:5000])
    with open(bad, "r+b") as file:
        file.seek(8192)
        file.write(b"\xff" * 8192)
    text = tmp_path / "text.db"
    text.write_text("no database")
    assert node.stop() == 0
    before = sorted(os.listdir(node.state_dir))
    new = tmp_path / "new"
    for path in (text, tmp_path / "absent.db"):
        assert node.davit("state", "restore", str(path), "--state-dir", str(new)).returncode == 1
        assert not new.exists()
    for path in (bad, cut, text, tmp_path / "absent.db"):
        answer = node.davit("state", "restore", str(path), "--state-dir", node.state_dir)
        assert answer.returncode == 1 and str(path) in answer.stderr, answer
        assert sorted(os.listdir(node.state_dir)) == before
    node.start()
    assert holders(node) == kept


def test_backups_by_others_and_to_nowhere(node, tmp_path):
    """A client that leaves in the middle leaves nothing; a file that cannot be made is told."""
    answer = node.davit("state", "backup", str(tmp_path / "no" / "such" / "folder"))
    assert answer.returncode == 1 and "No such file" in answer.stderr
    assert node.davit("state", "backup").returncode == 2
    answer = node.davit("state", "backup", str(tmp_path))
    assert answer.returncode == 1 and "is no file" in answer.stderr
    program = os.path.join(os.environ["DAVIT_BUILD"], "davit")
    for _ in range(5):
        with open("/dev/full", "wb") as full:
            answer = subprocess.run([program, "state", "backup", "-", "--socket", node.socket],
                                    stdout=full, stderr=subprocess.PIPE, check=False)
        assert answer.returncode == 1 and b"No space left" in answer.stderr
    until(lambda: not os.path.exists(os.path.join(node.state_dir, "state.db.copying")), 20,
          "nothing is left")
    whole = tmp_path / "whole.db"
    assert node.davit("state", "backup", str(whole)).returncode == 0
    assert whole.read_bytes().startswith(b"SQLite format 3")
