"""The durable state: full and broken disks, damaged files, and the kubelet's own state file."""

import base64
import glob
import json
import os
import shutil
import sqlite3
import tarfile
from pathlib import Path

import grpc
import pytest

from disks import Ext4, Tmpfs
from nodes import held, pod, run_davit
from procs import until

pytestmark = pytest.mark.release

GPU = "example.com/gpu"
CORPUS = Path(__file__).resolve().parents[2] / "golden/corpora/checkpoints.tar.xz"


def holders(node):
    """{(resource, device): [(uid, container)]}"""
    return {
        (resource, device): sorted((h.pod.uid, h.container) for h in seen.holders)
        for resource, devices in node.resources().items()
        for device, seen in devices.items()
        if seen.holders
    }


def database(node):
    return os.path.join(node.state_dir, "state.db")


def set_aside(node):
    found = glob.glob(database(node) + ".damaged-*")
    return sorted(path for path in found if not path.endswith("-wal"))


def start_and_fail(node):
    """The log of a start that ends with status 1."""
    node.start(ready=False)
    assert node.proc.wait(10) == 1, node.proc.describe()
    return node.proc.log


def admit_until_it_fails(node, n=200):
    """(the uids admitted, the error)"""
    admitted = []
    for i in range(n):
        try:
            assert node.admit(pod(f"fill{i}", ("main", {GPU: 1}))).admitted
        except grpc.RpcError as error:
            return admitted, error
        admitted.append(f"uid-fill{i}")
    raise AssertionError(f"{n} pods were admitted to a full disk")


# ---- disks


def test_a_full_disk_refuses_and_loses_nothing(disk, make_node, plugins):
    node = make_node()
    full = disk(Tmpfs, node.state_dir)
    node.start()
    plugin = plugins(node, GPU, [f"g{i}" for i in range(300)]).register()
    node.wait_devices(GPU, 300)
    assert node.admit(pod("first", ("main", {GPU: 2}))).admitted
    assert node.status().state_error == ""
    full.fill()
    admitted, error = admit_until_it_fails(node)
    assert error.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
    assert "full" in error.details() and node.state_dir in error.details()
    before = holders(node)
    assert {uid for held_by in before.values() for uid, _ in held_by} == {"uid-first", *admitted}
    assert {p.pod.uid for p in node.status().pods} == {"uid-first", *admitted}
    # It goes on, says what is wrong, and fails again and again without harm.
    assert "full" in node.status().state_error
    assert "trouble" in node.davit("status").stdout
    for _ in range(3):
        with pytest.raises(grpc.RpcError):
            node.admit(pod("more", ("main", {GPU: 5})))
    plugin.set_devices([f"g{i}" for i in range(299)])
    node.wait_devices(GPU, 299)
    assert holders(node) == before
    full.empty()
    more = node.admit(pod("more", ("main", {GPU: 5})))
    assert more.admitted
    assert node.status().state_error == ""
    assert "trouble" not in node.davit("status").stdout
    after = holders(node)
    assert len(after) == len(before) + 5
    node.kill()
    node.start()
    assert holders(node) == after


def test_a_full_disk_keeps_a_release_from_being_acknowledged(disk, make_node, plugins):
    node = make_node()
    full = disk(Tmpfs, node.state_dir)
    node.start()
    plugins(node, GPU, [f"g{i}" for i in range(300)]).register()
    node.wait_devices(GPU, 300)
    assert node.admit(pod("first", ("main", {GPU: 2}))).admitted
    full.fill()
    admit_until_it_fails(node)
    with pytest.raises(grpc.RpcError) as refused:
        node.release("uid-first")
    assert refused.value.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
    assert "release pod default/first" in refused.value.details()
    assert "uid-first" in {p.pod.uid for p in node.status().pods}
    full.empty()
    assert node.release("uid-first").was_known
    node.kill()
    node.start()
    assert "uid-first" not in {p.pod.uid for p in node.status().pods}
    assert not any(uid == "uid-first" for by in holders(node).values() for uid, _ in by)


def test_it_saves_by_itself_when_space_returns(disk, make_node, plugins):
    node = make_node()
    full = disk(Tmpfs, node.state_dir)
    node.start()
    plugins(node, GPU, [f"g{i}" for i in range(300)]).register()
    node.wait_devices(GPU, 300)
    full.fill()
    admit_until_it_fails(node)
    full.empty()
    until(lambda: node.status().state_error == "", 10, "the state to be saved again")


def test_a_disk_without_any_room_at_start(disk, make_node):
    node = make_node()
    full = disk(Tmpfs, node.state_dir, "size=64k")
    full.fill()
    assert "full" in start_and_fail(node)
    full.empty()


def test_a_read_only_state_dir_at_start(disk, make_node):
    node = make_node()
    disk(Tmpfs, node.state_dir, "size=64k,ro")
    log = start_and_fail(node)
    assert "Read-only file system" in log or "read-only file system" in log
    assert node.state_dir in log
    assert not os.path.exists(node.socket)


def test_a_state_dir_that_cannot_be(make_node, short_dir):
    node = make_node()
    with open(node.state_dir, "w", encoding="ascii"):
        pass
    assert node.state_dir in start_and_fail(node)


def test_a_mistyped_option_leaves_nothing_behind(make_node, short_dir):
    """Whatever can be known before the start is known before anything is made."""
    node = make_node()
    node_api = ["--node-listen", "127.0.0.1:0"]
    no_file = os.path.join(short_dir, "none")
    for status, said, *options in [
            (2, "--node-healthz: \"x\"", "--node-healthz", "x"),
            (1, "--policy: ", "--policy", no_file),
            (1, "--kubeconfig: ", "--kubeconfig", no_file, "--roles", "node"),
            (1, "--kubeconfig: ", "--kubeconfig", "/etc/passwd"),
            (1, "offers: ", "--offer-file", no_file),
            (1, "has its name already", "--offer", "a=/dev/null", "--offer", "a=/dev/zero"),
            (1, "--group: there is no group", "--group", "no-such-group"),
            (1, "the id of this boot: ", "--boot-id-file", no_file),
            (1, "--node-cert: ", "--node-cert", no_file, "--node-key", no_file, *node_api),
            (1, "--node-cert: ", "--node-cert", __file__, "--node-key", __file__, *node_api),
            (1, "--client-ca: ", "--client-ca", no_file, *node_api),
            (1, "--client-ca: ", "--client-ca", __file__, *node_api)]:
        node.start(*options, ready=False)
        assert node.proc.wait(10) == status and said in node.proc.log, node.proc.describe()
        for made in (node.state_dir, node.runtime_dir,
                     os.path.join(node.kubelet_dir, "pod-resources")):
            assert not os.path.exists(made), (options, made)


def test_a_disk_that_is_lost_later(disk, make_node, plugins):
    """All that can still be asked is answered; what was acknowledged is there afterwards.

    The kernel makes no file system read-only that is being written to; this is what comes next."""
    node = make_node()
    lost = disk(Ext4, node.state_dir)
    node.start()
    plugins(node, GPU, [f"g{i}" for i in range(20)]).register()
    node.wait_devices(GPU, 20)
    for i in range(5):
        assert node.admit(pod(f"p{i}", ("main", {GPU: 2}))).admitted
    before = holders(node)
    lost.lose()
    with pytest.raises(grpc.RpcError) as refused:
        node.admit(pod("more", ("main", {GPU: 1})))
    assert node.state_dir in refused.value.details(), refused.value
    assert node.status().state_error
    assert holders(node) == before
    assert node.container_options("uid-p0", "main").envs
    assert node.stop() == 0
    lost.unmount()
    lost.mount()
    node.start()
    assert holders(node) == before


# ---- damage


@pytest.fixture
def stopped(node, plugins):
    """A node with five pods, stopped; `node.before` is who holds what."""
    plugin = plugins(node, GPU, [f"g{i}" for i in range(10)]).register()
    node.wait_devices(GPU, 10)
    for i in range(5):
        assert node.admit(pod(f"p{i}", ("main", {GPU: 2}))).admitted
    node.before = holders(node)
    assert node.stop() == 0
    plugin.stop()
    return node


def overwrite(path, at, data):
    with open(path, "r+b") as file:
        file.seek(at)
        file.write(data)


def other_file(path):
    with open(path, "w", encoding="ascii") as file:
        file.write("this is not a database, but somebody's notes\n" * 200)


DAMAGES = {
    "its first bytes": lambda path: overwrite(path, 0, b"SQLite formaT 3"),
    "its first page": lambda path: overwrite(path, 100, b"\xff" * 900),
    "a later page": lambda path: overwrite(path, 4096, os.urandom(4096)),
    "half of it": lambda path: os.truncate(path, os.path.getsize(path) // 2),
    "an odd end": lambda path: os.truncate(path, os.path.getsize(path) - 4097),
    "all of it": lambda path: os.truncate(path, 0),
    "another file": other_file,
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_database_is_set_aside(stopped, plugins, damage):
    node = stopped
    DAMAGES[damage](database(node))
    damaged = Path(database(node)).read_bytes()
    node.start()
    aside = set_aside(node)
    assert len(aside) == 1, os.listdir(node.state_dir)
    assert os.path.basename(aside[0]) in node.proc.log
    assert Path(aside[0]).read_bytes() == damaged
    # What could not be read is gone; the node works.
    kept = holders(node)
    assert kept.items() <= node.before.items()
    plugins(node, GPU, [f"g{i}" for i in range(10)], name="again.sock").register()
    node.wait_devices(GPU, 10)
    for i in range(5):
        assert node.admit(pod(f"p{i}", ("main", {GPU: 2}))).admitted
    assert kept.items() <= holders(node).items() and len(holders(node)) == 10
    after = holders(node)
    assert node.stop() == 0
    node.start()
    assert holders(node) == after
    assert set_aside(node) == aside
    assert "damaged" not in node.proc.log  # it was told once


def test_a_flipped_byte_anywhere_does_not_keep_it_from_starting(stopped):
    """Each start finds all, or less and says so."""
    node = stopped
    good = Path(database(node)).read_bytes()
    n_told = 0
    for at in range(7, len(good), 701):
        for path in glob.glob(database(node) + "*"):
            os.unlink(path)
        flipped = bytearray(good)
        flipped[at] ^= 0x55
        Path(database(node)).write_bytes(flipped)
        node.start()
        if "damaged" in node.proc.log:
            n_told += 1
        else:
            assert holders(node) == node.before, f"byte {at}"
        assert node.stop() == 0
    assert n_told > 0


@pytest.mark.parametrize("space", ["devices", "pods"])
def test_damage_in_one_row_costs_that_row(stopped, space):
    """What else can be read is kept, in the other space too."""
    node = stopped
    with sqlite3.connect(database(node)) as sql:
        key, value = sql.execute(f"SELECT k, v FROM {space} ORDER BY k LIMIT 1").fetchone()
        spoilt = value[:-1] + bytes([value[-1] ^ 1])
        sql.execute(f"UPDATE {space} SET v = ? WHERE k = ?", (spoilt, key))
    sql.close()
    pods = {uid for by in node.before.values() for uid, _ in by}
    node.start()
    assert len(set_aside(node)) == 1 and os.path.basename(set_aside(node)[0]) in node.proc.log
    left = {p.pod.uid for p in node.status().pods}
    kept = holders(node)
    assert kept.items() < node.before.items()
    assert len(pods - {uid for by in kept.values() for uid, _ in by}) == 1
    assert left == pods if space == "devices" else len(pods - left) == 1
    assert node.stop() == 0
    node.start()
    assert holders(node) == kept and "damaged" not in node.proc.log


def test_a_newer_version_and_anothers_database_are_left_alone(stopped):
    node = stopped
    with sqlite3.connect(database(node)) as sql:
        sql.execute("PRAGMA user_version = 99")
    sql.close()
    newer = Path(database(node)).read_bytes()
    log = start_and_fail(node)
    assert "made by a newer davit" in log and "99" in log and database(node) in log
    assert Path(database(node)).read_bytes() == newer and not set_aside(node)
    os.unlink(database(node))
    with sqlite3.connect(database(node)) as sql:
        sql.execute("CREATE TABLE notes (text)")
    sql.close()
    assert database(node) in start_and_fail(node)
    assert not set_aside(node)


def test_another_davitd_holds_the_state(node, make_node):
    other = make_node()
    other.kubelet_dir += "2"
    other.runtime_dir += "2"
    assert f"process {node.proc.pid} has it open" in start_and_fail(other)


def test_damage_that_is_found_while_it_runs(node, plugins):
    """What is in memory goes into a new file, and nothing that was acknowledged is lost."""
    plugins(node, GPU, [f"g{i}" for i in range(200)]).register()
    node.wait_devices(GPU, 200)
    for i in range(60):  # more than SQLite keeps in memory, so that it has to read the file again
        large = pod(f"p{i}", ("main", {GPU: 2}))
        large["metadata"]["annotations"] = {"x": "y" * 100_000}
        assert node.admit(large).admitted
    for path in (database(node), database(node) + "-wal"):
        overwrite(path, 0, os.urandom(os.path.getsize(path)))
    released = set()
    for i in range(60):
        try:
            node.release(f"uid-p{i}")
            released.add(f"uid-p{i}")
        except grpc.RpcError as error:
            assert error.code() == grpc.StatusCode.DATA_LOSS, error
            break
    until(lambda: "set aside and written anew" in node.proc.log, 10, "the damage to be told")
    assert os.path.basename(set_aside(node)[0]) in node.proc.log
    until(lambda: node.status().state_error == "", 10, "the state to be saved")
    assert node.admit(pod("after", ("main", {GPU: 1}))).admitted
    unsure = f"uid-p{i}"  # its release failed: it may be there or not
    kept = {f"uid-p{k}" for k in range(60)} - released - {unsure}

    def uids():
        return {uid for by in holders(node).values() for uid, _ in by} - {unsure}

    assert uids() == kept | {"uid-after"}
    before = holders(node)
    node.kill()
    node.start()
    assert uids() == kept | {"uid-after"}
    assert {p.pod.uid for p in node.status().pods} - {unsure} == kept | {"uid-after"}
    assert {k: v for k, v in holders(node).items() if v[0][0] != unsure} == {
        k: v for k, v in before.items() if v[0][0] != unsure
    }


# ---- the kubelet's state file


def checkpoint(kubelet_dir):
    return os.path.join(kubelet_dir, "device-plugins", "kubelet_internal_checkpoint")


def state(verb, kubelet_dir, state_dir):
    return run_davit("state", verb, "--kubelet-dir", kubelet_dir, "--state-dir", state_dir)


def entries(path):
    data = json.loads(Path(path).read_text(encoding="utf-8"))["Data"]
    return sorted(data["PodDeviceEntries"] or [], key=lambda e: json.dumps(e, sort_keys=True))


def test_a_state_moves_by_export_and_import(node, make_node, plugins):
    devices = {f"g{i}": ("Healthy", [i % 2, 2] if i % 3 == 0 else [i % 2]) for i in range(10)}
    plugin = plugins(node, GPU, devices).register()
    node.wait_devices(GPU, 10)
    for i in range(4):
        answer = node.admit(pod(f"p{i}", ("main", {GPU: 1}), ("side", {GPU: 1})))
        assert answer.admitted
    before = holders(node)
    options = node.container_options("uid-p1", "side")
    node.stop()
    plugin.stop()
    done = state("export", node.kubelet_dir, node.state_dir)
    assert (done.returncode, done.stderr) == (0, ""), done
    assert "8 allocations" in done.stdout
    exported = Path(checkpoint(node.kubelet_dir)).read_bytes()

    node.state_dir += "-new"
    done = state("import", node.kubelet_dir, node.state_dir)
    assert (done.returncode, done.stderr) == (0, ""), done
    assert "8 allocations" in done.stdout
    node.start()
    assert holders(node) == before
    plugin.serve().register()
    node.wait_devices(GPU, 10)
    assert holders(node) == before
    assert node.container_options("uid-p1", "side") == options
    assert Path(checkpoint(node.kubelet_dir)).read_bytes() == exported  # davitd leaves it alone
    # The pods come as themselves, and keep what they had.
    for i in range(4):
        answer = node.admit(pod(f"p{i}", ("main", {GPU: 1}), ("side", {GPU: 1})))
        assert answer.admitted, answer
    assert holders(node) == before
    assert {p.pod.name for p in node.status().pods} == {f"p{i}" for i in range(4)}
    rest = held(node.admit(pod("rest", ("main", {GPU: 2}))))["main"][GPU]
    assert not set(rest) & {device for _, device in before}
    for i in range(4):
        assert node.release(f"uid-p{i}").was_known
    assert {uid for by in holders(node).values() for uid, _ in by} == {"uid-rest"}


def test_export_goes_byte_for_byte_there_and_back(stopped, short_dir):
    node = stopped
    assert state("export", node.kubelet_dir, node.state_dir).returncode == 0
    first = Path(checkpoint(node.kubelet_dir)).read_bytes()
    state_dir = node.state_dir + "-new"
    assert state("import", node.kubelet_dir, state_dir).returncode == 0
    kubelet_dir = os.path.join(short_dir, "k2")
    os.makedirs(os.path.dirname(checkpoint(kubelet_dir)))
    assert state("export", kubelet_dir, state_dir).returncode == 0
    assert entries(checkpoint(kubelet_dir)) == entries(checkpoint(node.kubelet_dir))
    assert len(json.loads(first)["Data"]["PodDeviceEntries"]) == 5


def test_the_health_of_devices_moves_too(stopped, short_dir):
    node = stopped
    assert state("export", node.kubelet_dir, node.state_dir).returncode == 0
    path = Path(node.kubelet_dir, "dra_health_state")
    assert path.read_bytes() == b"{}"
    device = {
        "PoolName": "pool",
        "DeviceName": "gpu-0",
        "Health": "Unhealthy",
        "LastUpdated": "2026-01-02T03:04:05.000000006+01:00",
        "HealthCheckTimeout": 600000000000,
        "Message": "too <hot>",
    }
    drivers = {"gpu.example.com": {"Devices": {"pool/gpu-0": device}}}
    text = json.dumps(drivers, separators=(",", ":"))
    path.write_text(text.replace("<", "\\u003c").replace(">", "\\u003e"), encoding="utf-8")
    done = state("import", node.kubelet_dir, os.path.join(short_dir, "s2"))
    assert done.returncode == 0 and f"1 devices' health read from {path}" in done.stdout, done
    kubelet_dir = os.path.join(short_dir, "k2")
    os.makedirs(os.path.dirname(checkpoint(kubelet_dir)))
    assert state("export", kubelet_dir, os.path.join(short_dir, "s2")).returncode == 0
    assert Path(kubelet_dir, "dra_health_state").read_bytes() == path.read_bytes()
    # As for the kubelet, a file that makes no sense is no reason to stay away.
    path.write_text("{", encoding="utf-8")
    done = state("import", node.kubelet_dir, os.path.join(short_dir, "s3"))
    assert done.returncode == 0 and str(path) in done.stderr, done


def kubelet_files():
    with tarfile.open(CORPUS) as corpus:
        lines = corpus.extractfile("checkpoints/from_a_running_kubelet.jsonl").read().splitlines()
    records = [json.loads(line) for line in lines]
    return [r for r in records if r["file"] == "kubelet_internal_checkpoint"]


def test_files_of_a_running_kubelet(make_node, short_dir):
    files = kubelet_files()
    assert files
    for number, record in enumerate(files):
        node = make_node()
        node.kubelet_dir = os.path.join(short_dir, f"k{number}")
        node.state_dir = os.path.join(short_dir, f"s{number}")
        path = checkpoint(node.kubelet_dir)
        os.makedirs(os.path.dirname(path))
        Path(path).write_bytes(base64.b64decode(record["file_b64"]))
        assert record["verdict"] == "ok"
        done = state("import", node.kubelet_dir, node.state_dir)
        assert done.returncode == 0, done
        expected = entries(path)
        assert expected
        os.unlink(path)
        assert state("export", node.kubelet_dir, node.state_dir).returncode == 0
        assert entries(path) == expected
        node.start()
        assert holders(node) == holders_of(expected)
        assert node.stop() == 0


def holders_of(listed):
    found = {}
    for entry in listed:
        for device in {i for ids in entry["DeviceIDs"].values() for i in ids}:
            holder = (entry["PodUID"], entry["ContainerName"])
            found.setdefault((entry["ResourceName"], device), []).append(holder)
    return {key: sorted(value) for key, value in found.items()}


def test_imports_that_are_refused(stopped, short_dir):
    node = stopped
    assert state("export", node.kubelet_dir, node.state_dir).returncode == 0
    path = Path(checkpoint(node.kubelet_dir))
    good = path.read_bytes()
    # into a state that has pods
    done = state("import", node.kubelet_dir, node.state_dir)
    assert done.returncode == 1 and "has 5 pods already" in done.stderr, done
    # a file that is no such file, or a damaged one
    new = os.path.join(short_dir, "new")
    for bad in (b"", b"{", b"[]", b"\x00" * 100, good[:-10], good.replace(b"uid-p1", b"uid-p7")):
        path.write_bytes(bad)
        done = state("import", node.kubelet_dir, new)
        assert done.returncode == 1 and str(path) in done.stderr, (bad[:40], done)
    # a directory without any of the files
    done = state("import", short_dir, new)
    assert done.returncode == 1 and "there is neither" in done.stderr, done
    os.unlink(path)
    # while davitd runs
    path.write_bytes(good)
    node.start()
    for verb in ("import", "export"):
        done = state(verb, node.kubelet_dir, node.state_dir)
        assert done.returncode == 1 and "has it open" in done.stderr, done
    assert path.read_bytes() == good
    assert holders(node) == node.before
    # and the good one is taken where there is nothing
    assert state("import", node.kubelet_dir, new).returncode == 0


def test_an_import_takes_either_file_alone(stopped, short_dir):
    node = stopped
    assert state("export", node.kubelet_dir, node.state_dir).returncode == 0
    files = [checkpoint(node.kubelet_dir), os.path.join(node.kubelet_dir, "dra_manager_state")]
    for i, path in enumerate(files):
        os.rename(path, path + ".away")
        done = state("import", node.kubelet_dir, os.path.join(short_dir, f"alone{i}"))
        assert (done.returncode, done.stderr) == (0, ""), done
        assert path not in done.stdout and files[1 - i] in done.stdout, done
        os.rename(path + ".away", path)


def test_an_export_never_replaces_a_file_by_nothing(stopped, short_dir):
    node = stopped
    path = Path(checkpoint(node.kubelet_dir))
    path.write_bytes(b"what a kubelet left")
    # a state dir that is not there
    done = state("export", node.kubelet_dir, os.path.join(short_dir, "nowhere"))
    assert done.returncode == 1, done
    assert not os.path.exists(os.path.join(short_dir, "nowhere"))
    # a damaged one
    damaged = os.path.join(short_dir, "damaged")
    shutil.copytree(node.state_dir, damaged)
    overwrite(os.path.join(damaged, "state.db"), 0, b"\xff" * 4096)
    done = state("export", node.kubelet_dir, damaged)
    assert done.returncode == 1 and "damaged" in done.stderr, done
    assert path.read_bytes() == b"what a kubelet left"
