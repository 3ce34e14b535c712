"""davit run with processes: what they get, how they end, and what is left."""

import os
import pty
import signal
import subprocess

import pytest
from lease_server import LeaseServer
from nodes import run_davit
from peers import folder_of
from procs import until


def davit(leases, *words, **options):
    return run_davit(words[0], "--socket", leases.socket, *words[1:], **options)


def start(leases, *words, **options):
    program = os.path.join(folder_of("DAVIT_BUILD"), "davit")
    return subprocess.Popen([program, words[0], "--socket", leases.socket, *map(str, words[1:])],
                            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True, **options)


def test_a_process_gets_variables_and_the_lease_ends_with_it(leases):
    leases.grant = {"envs": [leases.pb.KeyValue(key="NVIDIA_VISIBLE_DEVICES", value="GPU-7")]}
    done = davit(leases, "run", "example.com/gpu=1", "--", "sh", "-c",
                 "echo $DAVIT_LEASE $DAVIT_DEVICES $NVIDIA_VISIBLE_DEVICES $CUDA_VISIBLE_DEVICES")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "l-1 example.com/gpu=g0 GPU-7 GPU-7\n"
    assert not leases.held
    request = leases.leases[0].request
    assert [(r.resource, r.count) for r in request.resources] == [("example.com/gpu", 1)]
    assert request.command[:2] == ["sh", "-c"]


def test_davitd_finds_out_what_a_name_without_a_vendor_is(leases):
    davit(leases, "run", "serial=2", "gpu=1", "--", "true")
    request = leases.leases[0].request
    assert [(r.resource, r.count) for r in request.resources] == [("serial", 2), ("gpu", 1)]
    assert not request.devices


def test_the_command_is_the_owner(leases):
    done = davit(leases, "run", "--gpu", 2, "--", "sh", "-c", "echo $$")
    assert int(done.stdout) == leases.leases[0].request.owner.pid
    assert [(r.resource, r.count) for r in leases.leases[0].request.resources] == [("gpu", 2)]


def test_classes_with_conditions_are_asked_for(leases):
    davit(leases, "run", "--class", "gpu.example.com", "--count", 2, "--where", "memory >= 40Gi",
          "--same", "numa", "--class", "nic.example.com", "--max-time", "2h", "--wait", "5m",
          "--priority", "3", "--", "true")
    request = leases.leases[0].request
    gpu, nic = request.devices
    assert (gpu.device_class, gpu.count, list(gpu.where), list(gpu.same)) == (
        "gpu.example.com", 2, ["memory >= 40Gi"], ["numa"])
    assert (nic.device_class, nic.count, list(nic.where)) == ("nic.example.com", 1, [])
    assert (request.max_seconds, request.wait_seconds, request.priority) == (7200, 300, 3)
    assert len(request.key) == 36


@pytest.mark.parametrize("line,code", [("exit 7", 7), ("kill -TERM $$", 143), ("kill -9 $$", 137)])
def test_the_exit_code_is_the_commands(leases, line, code):
    assert davit(leases, "run", "x.com/a", "--", "sh", "-c", line).returncode == code
    assert not leases.held


def test_signals_are_passed_on(leases):
    proc = start(leases, "run", "x.com/a=1", "--", "sh", "-c",
                 "trap 'echo caught; exit 5' USR1; echo up; while :; do sleep 0.05; done")
    assert proc.stdout.readline() == "up\n"
    proc.send_signal(signal.SIGUSR1)
    out, _ = proc.communicate(timeout=100)
    assert (out, proc.returncode) == ("caught\n", 5)


def test_waiting_is_told_and_ends_with_the_turn(leases, short_dir):
    holder = start(leases, "run", "x.com/a=1", "--", "sleep", "100")
    until(lambda: leases.held, 20, "a holder")
    waiter = start(leases, "run", "x.com/a=1", "--", "echo", "mine")
    line = waiter.stderr.readline()
    owner = leases.held[0].pid
    assert line == (f"waiting: 0 of 1 wanted example.com/gpu is free; held by sleep (user ada, pid "
                    f"{owner}, 2h10m); you are next\n")
    os.kill(owner, signal.SIGKILL)  # the command itself: its davit tells, and the lease is free
    out, err = waiter.communicate(timeout=100)
    assert (out, err, waiter.returncode) == ("mine\n", "", 0)
    assert holder.wait(20) == 137


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_who_gives_up_waiting_leaves_nothing(leases, number):
    holder = start(leases, "run", "x.com/a=1", "--", "sleep", "100")
    until(lambda: leases.held, 20, "a holder")
    waiter = start(leases, "run", "x.com/a=1", "--", "echo", "mine")
    waiter.stderr.readline()
    child = leases.leases[1].request.owner.pid
    waiter.send_signal(number)
    assert waiter.wait(20) == (-9 if number == signal.SIGKILL else 128 + number)
    until(lambda: not os.path.exists(f"/proc/{child}"), 20, "the process that waited")
    assert [lease.id for lease in leases.held] == ["l-1"]
    holder.send_signal(signal.SIGTERM)
    assert holder.wait(20) == 143


def test_a_killed_davit_leaves_the_lease_to_its_command(leases):
    proc = start(leases, "run", "x.com/a=1", "--", "sh", "-c", "echo up; exec sleep 100")
    proc.stdout.readline()
    owner = leases.held[0].pid
    proc.kill()
    proc.wait(20)
    assert leases.held[0].pid == owner and os.path.exists(f"/proc/{owner}")
    os.kill(owner, signal.SIGKILL)
    assert "no leases" in until(
        lambda: (done := davit(leases, "leases")).stderr, 20, "no leases")


def test_a_davitd_that_is_restarted_is_waited_for(leases, short_dir):
    """Who waits goes on waiting with the same key, and a command goes on running."""
    holder = start(leases, "run", "x.com/a=1", "--", "sleep", "100")
    until(lambda: leases.held, 20, "a holder")
    waiter = start(leases, "run", "x.com/a=1", "--", "echo", "mine")
    waiter.stderr.readline()
    key, command = leases.leases[1].request.key, leases.held[0].pid
    leases.close()
    again = LeaseServer(short_dir, n_devices=2)  # it knows of nobody: both come back
    try:
        out, _ = waiter.communicate(timeout=30)
        assert (out, waiter.returncode) == ("mine\n", 0)
        assert key in [lease.request.key for lease in again.leases]
        os.kill(command, signal.SIGTERM)
        assert holder.wait(20) == 143
    finally:
        again.close()


def test_no_waiting_with_0(leases):
    holder = start(leases, "run", "x.com/a=1", "--", "sleep", "100")
    until(lambda: leases.held, 20, "a holder")
    done = davit(leases, "run", "x.com/a=1", "--wait", "0", "--", "true")
    assert (done.returncode, done.stderr) == (3, "davit: 0 of 1 wanted are free\n")
    os.kill(leases.held[0].pid, signal.SIGKILL)
    holder.wait(20)


def test_a_terminal_has_one_line_that_is_replaced(leases):
    holder = start(leases, "run", "x.com/a=1", "--", "sleep", "100")
    until(lambda: leases.held, 20, "a holder")
    master, slave = pty.openpty()
    program = os.path.join(folder_of("DAVIT_BUILD"), "davit")
    waiter = subprocess.Popen([program, "run", "--socket", leases.socket, "x.com/a=1", "--", "tty"],
                              stdin=slave, stdout=slave, stderr=slave, start_new_session=True)
    os.close(slave)
    text = os.read(master, 4096).decode()
    assert text.startswith("\r\x1b[Kwaiting: ") and "\n" not in text
    os.kill(leases.held[0].pid, signal.SIGKILL)
    until(lambda: waiter.poll() is not None, 20, "the command")
    rest = text
    try:
        while part := os.read(master, 4096):
            rest += part.decode()
    except OSError:  # the other end is closed
        pass
    os.close(master)
    assert waiter.returncode == 0
    assert rest.rpartition("\r\x1b[K")[2].startswith("/dev/pts/"), rest  # its terminal is ours
    holder.wait(20)


def test_the_end_of_its_time_is_told(leases):
    leases.warning_ms = 601000
    done = davit(leases, "run", "x.com/a=1", "--", "sleep", "0.3")
    assert "davit: the lease l-1 ends in 10m: its owner gets SIGTERM then (MaxTime)" in done.stderr


@pytest.mark.parametrize("words,code,message", [
    (["x.com/a=1", "true"], 2, "put -- before the command"),
    (["--", "true"], 2, "say which devices"),
    (["x.com/a=0", "--", "true"], 2, '"0" is no number of devices'),
    (["x.com/a:2", "--", "true"], 2, "write RESOURCE=N"),
    (["--where", "a == 1", "--", "true"], 2, "are about a --class"),
    (["--gpu", "1", "--engine", "dokcer", "--", "true"], 2, 'no engine "dokcer"'),
    (["--gpu", "1", "--wiat", "3", "--", "true"], 2, "did you mean --wait?"),
    (["--gpu", "1", "--", "no-such-program"], 127, "no-such-program: there is no such program"),
    (["--gpu", "1", "--", "/etc/passwd"], 126, "/etc/passwd: this file cannot be run"),
    (["--gpu", "1", "--", "sudo", "no-such-program"], 127, "there is no such program"),
    (["--gpu", "1", "--isolate", "--", "runc", "run", "x"], 2, "isolates by itself"),
])
def test_mistakes_are_told_before_anything_is_asked(leases, words, code, message):
    done = davit(leases, "run", *words)
    assert done.returncode == code, done
    assert message in done.stderr
    assert not leases.leases


@pytest.mark.parametrize("status,message,code", [
    ("INVALID_ARGUMENT", "--where: character 8: unknown name memroy; did you mean memory?", 2),
    ("FAILED_PRECONDITION", "9 x.com/a are wanted, and 8 exist", 3),
    ("PERMISSION_DENIED", "the policy gives user ada 1 x.com/a at a time", 3),
])
def test_what_davitd_says_no_to_is_told(leases, status, message, code):
    import grpc

    leases.refusal = (getattr(grpc.StatusCode, status), message)
    done = davit(leases, "run", "x.com/a=9", "--", "true")
    assert (done.returncode, done.stderr) == (code, f"davit: {message}\n")


def test_no_davitd_is_told(short_dir):
    done = run_davit("run", "--socket", short_dir + "/none.sock", "--gpu", "1", "--", "true")
    assert done.returncode == 4
    assert "no davitd answers" in done.stderr


def test_a_socket_that_is_not_for_this_user_is_told(leases, short_dir):
    os.chmod(short_dir, 0o755)
    os.chmod(leases.socket, 0o600)
    program = os.path.join(folder_of("DAVIT_BUILD"), "davit")
    done = subprocess.run(["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", program,
                           "run", "--socket", leases.socket, "--gpu", "1", "--", "true"],
                          capture_output=True, text=True, timeout=20, check=False)
    if "setpriv" in done.stderr:
        pytest.skip(done.stderr)
    assert (done.returncode, done.stderr) == (
        4, f"davit: {leases.socket} is for root alone: use sudo, or let davitd give it to a group (--group)\n")


def test_print_shows_the_command_and_runs_nothing(leases, short_dir):
    leases.grant = {"envs": [leases.pb.KeyValue(key="A", value="b c")]}
    done = davit(leases, "run", "--gpu", "1", "--print", "--", "touch", short_dir + "/made")
    assert done.stdout == (
        f"env DAVIT_LEASE=l-1 DAVIT_DEVICES=example.com/gpu=g0 'A=b c' touch {short_dir}/made\n")
    assert not os.path.exists(short_dir + "/made")
    assert not leases.held
