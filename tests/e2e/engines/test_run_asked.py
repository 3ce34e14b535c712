"""What davit run asks of engines that cannot run here, and what it does with the answers: programs of
their names print what theirs print, and start a process instead of a container."""

import json
import os

import pytest
from lease_server import is_there
from nodes import run_davit
from procs import until

SCRIPT = """#!/bin/sh
# {name}, as far as davit asks it
echo "$@" >> {folder}/asked
case "$*" in
*--version*) echo '{name} version {version}'; exit;;
*CDISpecDirs*) echo '{dirs}'; exit;;
*State.Pid*) cat {folder}/pid; exit;;
*" run "*) ;;
run*) ;;
esac
for word in "$@"; do
    case $last in
    --cidfile) echo 0123456789ab > $word;;
    --pidfile) pidfile=$word;;
    esac
    last=$word
done
sleep 100 < /dev/null > /dev/null 2>&1 &
echo $! > {folder}/pid
[ -z "$pidfile" ] || echo $! > $pidfile
case "$*" in *" -d "*) ;; *) wait;; esac
"""


@pytest.fixture
def engine(short_dir, monkeypatch):
    """Makes a program of that name, the first in PATH."""
    def make(name, version, dirs=None):
        path = os.path.join(short_dir, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(SCRIPT.format(name=name, version=version, folder=short_dir,
                                     dirs=json.dumps(dirs)))
        os.chmod(path, 0o755)
        monkeypatch.setenv("PATH", short_dir + ":" + os.environ["PATH"])

    yield make
    try:
        with open(os.path.join(short_dir, "pid"), encoding="utf-8") as file:
            os.kill(int(file.read()), 9)
    except (FileNotFoundError, ProcessLookupError):
        pass


def asked(short_dir):
    with open(os.path.join(short_dir, "asked"), encoding="utf-8") as file:
        return file.read().splitlines()


def write_spec(folder, **edits):
    os.makedirs(folder, exist_ok=True)
    spec = {"cdiVersion": "0.5.0", "kind": "vendor.com/gpu", "devices": [
        {"name": "0", "containerEdits": {"deviceNodes": [{"path": "/dev/null"}], **edits}}]}
    with open(os.path.join(folder, "vendor.json"), "w", encoding="utf-8") as file:
        json.dump(spec, file)
    return folder


def davit(leases, *words):
    return run_davit("run", "--socket", leases.socket, "--gpu", "1", *words)


def test_dockers_daemon_tells_where_it_looks_for_cdi(leases, engine, short_dir):
    folder = write_spec(os.path.join(short_dir, "cdi"))
    leases.grant = {"cdi_devices": ["vendor.com/gpu=0"]}
    for dirs, option in (([folder], "--device vendor.com/gpu=0"),
                         (["/etc/cdi"], "--device /dev/null:/dev/null:rwm"),
                         ([], "--device /dev/null:/dev/null:rwm")):
        engine("docker", "28.5.2", dirs)
        done = davit(leases, "--cdi-dirs", folder, "--print", "--", "docker", "--context", "x", "run",
                     "image")
        assert f"docker --context x run {option} --env" in done.stdout, done
    assert "--context x info --format {{json .CDISpecDirs}}" in asked(short_dir)


def test_a_hook_names_dockers_setting(leases, engine, short_dir):
    folder = write_spec(os.path.join(short_dir, "cdi"),
                        hooks=[{"hookName": "createRuntime", "path": "/bin/hook"}])
    leases.grant = {"cdi_devices": ["vendor.com/gpu=0"]}
    engine("docker", "25.0.3")
    done = davit(leases, "--cdi-dirs", folder, "--", "docker", "run", "image")
    assert done.returncode == 3 and '"features": {"cdi": true}' in done.stderr, done
    assert not leases.held


@pytest.mark.parametrize("name", ["docker", "nerdctl"])
def test_a_container_in_the_background_gets_the_lease(leases, engine, short_dir, name):
    engine(name, "28.5.2")
    done = davit(leases, "--", name, "run", "-d", "image")
    assert done.returncode == 0, done
    with open(os.path.join(short_dir, "pid"), encoding="utf-8") as file:
        assert leases.held[0].pid == int(file.read())
    os.kill(leases.held[0].pid, 9)
    until(lambda: not is_there(leases.leases[0].pid), 20, "its end")


def test_a_lease_that_cannot_be_given_on_is_told(leases, engine, short_dir):
    engine("docker", "28.5.2")
    leases.may_move = False
    done = davit(leases, "--", "docker", "run", "-d", "image")
    assert "the lease could not be given to it" in done.stderr


def test_a_transient_service_gets_the_lease(leases, engine, short_dir):
    engine("systemd-run", "252")
    leases.grant = {"devices": [leases.pb.DeviceNode(host_path="/dev/null",
                                                     container_path="/dev/null")]}
    done = davit(leases, "--", "systemd-run", "-d", "sleep", "100")
    assert done.returncode == 0, done
    lease, = leases.held
    assert lease.unit == "davit-run-l-1.service"
    assert asked(short_dir)[-1].startswith("--property DeviceAllow=/dev/null rwm --setenv DAVIT_LEASE")
    assert "--unit davit-run-l-1 -d sleep 100" in asked(short_dir)[-1]
