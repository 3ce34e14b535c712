"""davit lease and davit leases, for scripts and units."""

import json
import os
import subprocess

from peers import folder_of
from test_run_plain import davit


def give_things(leases):
    pb = leases.pb
    leases.grant = {
        "envs": [pb.KeyValue(key="A", value="it's b")],
        "devices": [pb.DeviceNode(host_path="/dev/null", container_path="/dev/gpu0")],
        "cdi_devices": ["vendor.com/gpu=0", "vendor.com/gpu=1"],
    }


def test_a_shell_reads_what_take_prints(leases, short_dir):
    give_things(leases)
    davit_program = os.path.join(folder_of("DAVIT_BUILD"), "davit")
    script = (f'set -a; eval "$({davit_program} lease take --socket {leases.socket} --gpu 1)"; set +a; '
              'env | grep -E "^(A|DAVIT_(LEASE|DEVICES|CDI_.|NODE_.))=" | sort; echo $$')
    done = subprocess.run(["sh", "-c", script], capture_output=True, text=True, timeout=30,
                          check=True)
    *lines, shell = done.stdout.splitlines()
    assert lines == ["A=it's b", "DAVIT_CDI_0=vendor.com/gpu=0", "DAVIT_CDI_1=vendor.com/gpu=1",
                     "DAVIT_DEVICES=example.com/gpu=g0", "DAVIT_LEASE=l-1",
                     "DAVIT_NODE_0=/dev/null:/dev/gpu0:rwm"]
    assert leases.leases[0].request.owner.pid == int(shell)


def test_an_environment_file_and_cdi_names(leases, short_dir):
    give_things(leases)
    path = os.path.join(short_dir, "lease.env")
    done = davit(leases, "lease", "take", "--gpu", "1", "--unit", "train.service", "--env-file", path)
    assert done.stdout == "vendor.com/gpu=0\nvendor.com/gpu=1\n"
    with open(path, encoding="utf-8") as file:
        assert "A='it'\\''s b'\n" in file.read()
    assert os.stat(path).st_mode & 0o777 == 0o600
    assert leases.leases[0].request.owner.unit == "train.service"


def test_take_as_json(leases):
    give_things(leases)
    done = davit(leases, "lease", "take", "--gpu", "1", "--pid", os.getpid(), "-o", "json")
    assert json.loads(done.stdout)["lease"]["id"] == "l-1"


def test_leases_are_given_renewed_and_ended(leases):
    leases.n_devices = 2
    for _ in range(2):
        davit(leases, "lease", "take", "--gpu", "1", "--pid", os.getpid())
    assert davit(leases, "lease", "renew", "l-1", "--max-time", "2h").returncode == 0
    assert davit(leases, "lease", "give", "l-1").returncode == 0
    assert davit(leases, "lease", "end", "l-2", "--reason", "maintenance").returncode == 0
    assert leases.ended == [("l-2", "maintenance")]
    done = davit(leases, "lease", "give", "l-2")
    assert (done.returncode, "there is no lease l-2" in done.stderr) == (1, True)


def test_the_list(leases):
    davit(leases, "run", "--gpu", "1", "--", "true")
    davit(leases, "lease", "take", "--gpu", "1", "--pid", os.getpid())
    done = davit(leases, "leases")
    header, line = done.stdout.splitlines()
    assert header.split() == ["LEASE", "WHO", "DEVICES", "COMMAND", "SINCE", "ENDS"]
    assert line.split() == ["l-2", "ada", "example.com/gpu=g0", "-", "61s", "-"]


def test_mistakes_are_told(leases):
    for words, message in (
            (["take"], "say which devices"),
            (["take", "--gpu", "1", "--pid", "x"], "--pid takes the number"),
            (["take", "--gpu", "1", "--pid", "1", "--unit", "a"], "say one of"),
            (["give"], "needs the id of a lease"),
            (["tkae"], "say take, give, renew or end")):
        done = davit(leases, "lease", *words)
        assert done.returncode == 2 and message in done.stderr, done
    assert not leases.leases
