"""Files of the state that are damaged, removed or replaced: davitd starts, and says what is lost."""

import glob
import os
import random
import shutil
import threading
import time

import pytest

from procs import until
from servers import MAPS, config_map, merge_patch

WAIT_S = 60
# Tries of one test, and tests: more than seventy damages together.
N_TRIES = 12
N_SERIES = 6


def database(node):
    return os.path.join(node.state_dir, "state.db")


def contents(api):
    """{name: data} of all config maps."""
    return {item["metadata"]["name"]: item["data"]["v"]
            for item in api.must("GET", MAPS)["items"] if item["metadata"]["name"][0] == "m"}


def events(api, what):
    """How often it was counted."""
    text = api.ask("GET", "/metrics").body.decode()
    (line,) = [line for line in text.splitlines()
               if line.startswith(f'davit_state_events_total{{what="{what}"}}')]
    return int(line.rpartition(" ")[2])


def fill(api):
    """Acknowledged one by one: many commits, and rows that were written again."""
    for number in range(24):
        api.must("POST", MAPS, config_map(f"m{number}", {"v": "1" * (50 + 200 * (number % 7))}))
    for number in range(0, 24, 3):
        assert merge_patch(api, f"{MAPS}/m{number}", {"data": {"v": "2"}}).status == 200


def flip(data, at, chance):
    data[at] ^= 1 << chance.randrange(8)


def zero(data, at, chance):
    n = chance.choice((8, 24, 512, 4096))
    data[at:at + n] = bytes(len(data[at:at + n]))


def scramble(data, at, chance):
    n = chance.choice((4, 24, 512, 4096, 8192))
    data[at:at + n] = chance.randbytes(len(data[at:at + n]))


def cut(data, at, _):
    del data[at:]


def damage(node, chance):
    """Of the log mostly; returns what was done."""
    path = database(node) + chance.choice(("", "-wal", "-wal", "-wal"))
    with open(path, "rb") as file:
        data = bytearray(file.read())
    at = chance.randrange(len(data))
    how = chance.choice((flip, flip, zero, scramble, cut))
    how(data, at, chance)
    with open(path, "wb") as file:
        file.write(data)
    return f"{how.__name__} {os.path.basename(path)} at {at}"


@pytest.fixture
def killed(node, api, tmp_path):
    """A node that was killed; `saved` is what it left, `node.before` what it had acknowledged."""
    fill(api)
    node.before = contents(api)
    node.kill()
    node.saved = str(tmp_path / "saved")
    shutil.copytree(node.state_dir, node.saved)
    return node


def restore(node):
    for path in glob.glob(database(node) + "*"):
        os.unlink(path)
    for path in glob.glob(os.path.join(node.saved, "state.db*")):
        shutil.copy(path, node.state_dir)


@pytest.mark.parametrize("series", range(N_SERIES))
def test_nothing_is_lost_without_a_word(killed, series):
    node = killed
    seed = time.time_ns() + series
    chance = random.Random(seed)
    for _ in range(N_TRIES):
        restore(node)
        done = f"seed {seed}: {damage(node, chance)}"
        node.start()
        api = node.api()
        found = contents(api)
        log = node.proc.log
        is_told = bool(node.status().notes)
        if found != node.before:
            assert is_told, done
            assert 'what="writes_lost"' in log or "state_damaged" in log, done
            assert events(api, "writes_lost") + events(api, "state_damaged") > 0, done
            assert "look at" in node.davit("status").stdout, done
        api.must("POST", MAPS, config_map("new", {"v": "x"}))
        node.kill()


def test_what_is_whole_is_not_told(killed):
    node = killed
    restore(node)
    for _ in range(3):
        node.start()
        assert contents(node.api()) == node.before
        assert not node.status().notes
        node.kill()
    node.start()
    assert node.stop() == 0
    node.start()
    assert contents(node.api()) == node.before and not node.status().notes


def test_a_damaged_frame_in_the_middle_is_told_with_its_file(killed):
    node = killed
    wal = database(node) + "-wal"
    with open(wal, "r+b") as file:
        file.seek(32 + 4120 * 20 + 1000)
        byte = file.read(1)
        file.seek(-1, os.SEEK_CUR)
        file.write(bytes([byte[0] ^ 0x10]))
    with open(wal, "rb") as file:
        damaged = file.read()
    node.start()
    notes = "\n".join(node.status().notes)
    assert wal in notes and "acknowledged are lost" in notes, notes
    (aside,) = glob.glob(database(node) + ".damaged-*-wal")
    with open(aside, "rb") as file:
        assert file.read() == damaged
    found = contents(node.api())
    assert 0 < len(found) < len(node.before) or found != node.before
    # The next start has nothing to say.
    assert node.stop() == 0
    node.start()
    assert not node.status().notes and contents(node.api()) == found


@pytest.mark.parametrize("name", ["state.db-wal", "state.db"])
def test_a_file_that_is_gone_is_told(killed, name):
    node = killed
    os.unlink(os.path.join(node.state_dir, name))
    node.start()
    assert contents(node.api()) != node.before
    assert any(name in note for note in node.status().notes)


def test_a_huge_sparse_log_does_not_delay_the_start(killed):
    node = killed
    os.truncate(database(node) + "-wal", 4 << 30)
    node.start()
    assert contents(node.api()) == node.before


def remove(path):
    os.unlink(path)


def replace(path):
    shutil.copy(path, path + ".copy")
    os.rename(path + ".copy", path)


def shorten(path):
    os.truncate(path, 100)


@pytest.mark.parametrize("name", ["state.db", "state.db-wal"])
@pytest.mark.parametrize("how", [remove, replace, shorten])
def test_files_taken_away_under_it_are_noticed(node, api, how, name):
    fill(api)
    before = contents(api)
    how(os.path.join(node.state_dir, name))
    until(lambda: node.status().notes, WAIT_S, "it to be noticed")
    assert "written anew from memory" in node.status().notes[0]
    assert contents(api) == before

    def is_written():
        try:
            return api.ask("POST", MAPS, config_map("later", {"v": "x"})).status in (201, 409)
        except OSError:
            return False

    until(is_written, WAIT_S, "the new file to take writes")
    until(lambda: api.ask("GET", "/readyz").status == 200, WAIT_S, "it to be ready")
    assert node.stop() == 0
    node.start()
    assert contents(node.api()) == before


def cut_all(path, _):
    os.truncate(path, 0)


def cut_behind_the_header(path, _):
    os.truncate(path, 32)


def cut_in_the_middle(path, _):
    os.truncate(path, os.path.getsize(path) // 2)


def overwrite_the_header(path, _):
    with open(path, "r+b") as file:
        file.write(bytes(32))


def put_the_older_one(path, older):
    with open(path, "r+b") as file:
        file.truncate()
        file.write(older)


@pytest.mark.parametrize("name, how", [
    ("state.db-wal", cut_all), ("state.db-wal", cut_behind_the_header),
    ("state.db-wal", cut_in_the_middle), ("state.db-wal", overwrite_the_header),
    ("state.db-wal", put_the_older_one), ("state.db", cut_all), ("state.db", cut_in_the_middle)])
def test_what_is_acknowledged_while_files_are_damaged_is_kept(node, api, name, how):
    """Writes go on meanwhile, and it is killed as soon as the damage is told."""
    path = os.path.join(node.state_dir, name)
    api.must("POST", MAPS, config_map("m-first", {"v": "x"}))
    with open(path, "rb") as file:
        older = file.read()
    fill(api)
    acknowledged = set(contents(api))
    stop = threading.Event()

    def write(api=node.api()):
        number = 0
        while not stop.is_set():
            try:
                if api.ask("POST", MAPS, config_map(f"m-{number}", {"v": "x"})).status == 201:
                    acknowledged.add(f"m-{number}")
            except OSError:
                api = node.api()
            number += 1
            time.sleep(0.005)  # the log is not brought into the database before it is damaged

    thread = threading.Thread(target=write)
    thread.start()
    try:
        until(lambda: len(acknowledged) > 40, WAIT_S, "writes")
        how(path, older)
        until(lambda: node.status().notes, WAIT_S, "it to be noticed")
        n_noticed = len(acknowledged)
        until(lambda: len(acknowledged) > n_noticed + 5, WAIT_S, "the new file to take writes")
    finally:
        stop.set()
        thread.join()
    node.kill()
    node.start()
    assert acknowledged <= set(contents(node.api()))


def test_a_pipe_in_the_place_of_a_file_is_refused(node):
    assert node.stop() == 0
    for name in ("state.db", "state.db-wal", "state.db.lock", "state.db.mark", "pki/ca.key",
                 "pki/ca.crt", "admin.kubeconfig"):
        path = os.path.join(node.state_dir, name)
        kept = path + ".kept"
        if os.path.exists(path):
            os.rename(path, kept)
        os.mkfifo(path)
        node.start(ready=False)
        assert node.proc.wait(WAIT_S) == 1, name
        assert path in node.proc.log and "not a regular file" in node.proc.log
        os.unlink(path)
        if os.path.exists(kept):
            os.rename(kept, path)
    node.start()


@pytest.mark.parametrize("name", ["ca.key", "ca.crt"])
@pytest.mark.parametrize("text", [b"", b"garbage", b"-----BEGIN CERTIFICATE-----\nAAAA\n"])
def test_a_garbled_certificate_is_named(node, name, text):
    assert node.stop() == 0
    path = os.path.join(node.state_dir, "pki", name)
    with open(path, "rb") as file:
        good = file.read()
    with open(path, "wb") as file:
        file.write(text)
    node.start(ready=False)
    assert node.proc.wait(WAIT_S) == 1
    assert path in node.proc.log and "move" in node.proc.log, node.proc.log
    with open(path, "wb") as file:
        file.write(good)
    node.start()


def test_it_does_not_matter_when_it_is_killed(node, api):
    """Under load, again and again: nothing is said, because nothing is lost."""
    for number in range(5):
        stop = threading.Event()

        def write(api=node.api(), number=number):
            i = 0
            while not stop.is_set():
                try:
                    api.ask("POST", MAPS, config_map(f"m{number}-{i}", {"v": "x" * 3000}))
                except OSError:
                    return
                i += 1

        thread = threading.Thread(target=write)
        thread.start()
        until(lambda number=number: len(node.api().must("GET", MAPS)["items"]) > 20 * (number + 1),
              WAIT_S, "writes")
        node.kill()
        stop.set()
        thread.join()
        node.start()
        assert not node.status().notes, node.status().notes
