"""Module cri against a real containerd: tests/peers/davit_cri.c runs pods and tells what it sees."""

import os
import re
import signal
import subprocess

import pytest
from cri_client import RpcError
from peers import folder_of
from procs import check_logs, until

WAIT_S = 60


@pytest.fixture
def watch(containerd, procs, short_dir):
    program = os.path.join(folder_of("DAVIT_BUILD"), "tests", "peers", "davit-cri")
    proc = procs.start(program, containerd.socket)
    proc.wait_line("ready", WAIT_S)
    yield proc
    if proc.is_alive:
        proc.end_input()
        assert proc.wait(WAIT_S) == 0, proc.describe()
    check_logs(short_dir)


def see(proc, pattern, start=0):
    """Waits for a line from the one of that number on; the first that matches."""
    def find():
        return next((line for line in proc.lines[start:] if re.fullmatch(pattern, line)), None)
    return until(find, WAIT_S, f"a line {pattern}: {proc.describe()}")


def test_abilities_of_containerd(watch):
    """1.6 drops the names of CDI devices; later ones apply them where that is switched on."""
    see(watch, r"runtime containerd (1\.6\..* cdi=0|(1\.7|2\.[0-9]+)\..* cdi=1)")


def test_a_pod_is_run_and_seen(containerd, watch):
    watch.write_line(f"run u1 {containerd.image} sh -c sleep${{IFS}}1000")
    see(watch, r"made u1 [0-9a-f]{64}")
    see(watch, r"pod u1 READY main:RUNNING:0:")
    watch.write_line("end u1")
    see(watch, r"ended u1 ")
    see(watch, r"pod u1")
    assert not containerd.containers()


def test_ends_are_told_with_their_reasons(containerd, watch):
    """Completed and Error as they are; StartError fails the call, and is told too."""
    watch.write_line(f"run u1 {containerd.image} true")
    watch.write_line(f"run u2 {containerd.image} sh -c exit${{IFS}}3")
    watch.write_line(f"run u3 {containerd.image} no-such-program")
    see(watch, r"pod u1 READY main:EXITED:0:Completed")
    see(watch, r"pod u2 READY main:EXITED:3:Error")
    see(watch, r'failed StartContainer UNKNOWN: .*"no-such-program": executable file not found.*')
    see(watch, r"pod u3 READY main:EXITED:128:StartError")


def test_commands_in_a_container(containerd, watch):
    """Output and code; one that takes too long and one that is not there are errors."""
    watch.write_line(f"run u1 {containerd.image} sleep 1000")
    see(watch, r"pod u1 READY main:RUNNING:0:")
    watch.write_line("exec u1 60 echo hello")
    see(watch, r"exec u1 0 hello")
    watch.write_line("exec u1 60 sh -c exit${IFS}7")
    see(watch, r"exec u1 7 ")
    watch.write_line("exec u1 60 no-such-program")
    see(watch, r"failed ExecSync UNKNOWN: .*executable file not found.*")
    watch.write_line("exec u1 1 sleep 100")
    see(watch, r"failed ExecSync DEADLINE_EXCEEDED: .*")


def test_a_runtime_is_found_at_its_usual_place(containerd, procs):
    program = os.path.join(folder_of("DAVIT_BUILD"), "tests", "peers", "davit-cri")
    place = "/run/containerd/containerd.sock"  # in its own mounts, where the folder is empty
    subprocess.run([*containerd.enter, "ln", "-s", containerd.socket, place], check=True)
    procs.start(*containerd.enter, program).wait_line("ready", WAIT_S)


def test_an_image_that_is_not_there(watch):
    watch.write_line("run u1 davit.test/nothing:1 true")
    see(watch, r"failed CreateContainer [A-Z_]+: .*davit\.test/nothing:1.*")
    see(watch, r"pod u1 READY")


def test_containerd_killed_and_started_again(containerd, watch):
    watch.write_line(f"run u1 {containerd.image} sleep 1000")
    watch.write_line(f"run u2 {containerd.image} sleep 1000")
    see(watch, r"pod u1 READY main:RUNNING:0:")
    see(watch, r"pod u2 READY main:RUNNING:0:")
    ids = containerd.containers()
    for number in (signal.SIGKILL, signal.SIGTERM):
        before = len(watch.lines)
        containerd.restart(number)
        see(watch, "ready", before)
    watch.write_line("end u2")
    see(watch, "ended u2 ")
    see(watch, "pod u2")
    # Nothing else has changed, and nothing was started anew.
    assert [line for line in watch.lines if line.startswith("pod u1")][-1] \
        == "pod u1 READY main:RUNNING:0:"
    assert len(set(containerd.containers()) & set(ids)) == 2


def view_of(proc):
    """{uid: the states that were told last}, without pods of which nothing is left."""
    told = {words[1]: sorted(words[2:]) for words in map(str.split, proc.lines)
            if words[0] == "pod"}
    return {uid: states for uid, states in told.items() if states}


def truth_of(cri):
    """The same as another client sees it."""
    pods = {}
    for sandbox in cri.call("ListPodSandbox").items:
        state = cri.pb.PodSandboxState.Name(sandbox.state).removeprefix("SANDBOX_")
        pods.setdefault(sandbox.labels["io.kubernetes.pod.uid"], []).append(state)
    for listed in cri.call("ListContainers").containers:
        status = cri.container(listed.id)
        state = cri.pb.ContainerState.Name(status.state).removeprefix("CONTAINER_")
        pods.setdefault(status.labels["io.kubernetes.pod.uid"], []).append(
            f"{status.metadata.name}:{state}:{status.exit_code}:{status.reason}")
    return {uid: sorted(states) for uid, states in pods.items()}


def test_the_view_is_true_after_a_storm(containerd, watch):
    """Pods start, end by themselves and are removed while containerd is killed again and again."""
    commands = ["sleep 1000", "true", "sh -c exit${IFS}3", "sleep 1"]
    for turn in range(3):
        for number in range(4):
            watch.write_line(f"run u{turn}-{number} {containerd.image} {commands[number]}")
        if turn > 0:
            watch.write_line(f"end u{turn - 1}-0")
            watch.write_line(f"end u{turn - 1}-1")
        see(watch, rf"(made u{turn}-1|failed) .*")
        containerd.restart(signal.SIGKILL)
    cri = containerd.cri()

    def agrees():
        try:
            return view_of(watch) == truth_of(cri)
        except RpcError:
            return False  # something has gone between its listing and its status

    until(agrees, WAIT_S, f"a true view: {watch.describe()}")


def test_a_second_client_finds_what_runs(containerd, watch, procs):
    watch.write_line(f"run u1 {containerd.image} sleep 1000")
    see(watch, r"pod u1 READY main:RUNNING:0:")
    watch.kill()
    other = procs.start(os.path.join(folder_of("DAVIT_BUILD"), "tests", "peers", "davit-cri"),
                        containerd.socket)
    see(other, r"pod u1 READY main:RUNNING:0:")
