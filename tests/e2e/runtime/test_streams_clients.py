"""Commands in a container by the client libraries of Python and JavaScript, which speak WebSocket in
their own ways."""

import os
import subprocess

import pytest
from kubernetes import client, config
from kubernetes.stream import stream
from peers import folder_of
from runtime_nodes import WAIT_S, container, pod


@pytest.fixture
def running(node):
    node.add(pod("p", container(script="echo begun; exec sleep 1000")))
    node.wait_phase("p", "Running")
    return node


def start(core, command, **options):
    wanted = {"stdin": False, "stdout": True, "stderr": True, "tty": False, **options}
    return stream(core.connect_get_namespaced_pod_exec, "p", "default", container="main",
                  command=command, _preload_content=False, **wanted)


def test_pythons_client_runs_commands(running):
    config.load_kube_config(running.kubeconfig)
    core = client.CoreV1Api()
    call = start(core, ["sh", "-c", "echo out; echo err >&2; exit 5"])
    call.run_forever(timeout=WAIT_S)
    assert (call.read_stdout(), call.read_stderr(), call.returncode) == ("out\n", "err\n", 5)
    call = start(core, ["head", "-n", "1"], stdin=True)
    call.write_stdin("first\n")
    call.run_forever(timeout=WAIT_S)
    assert (call.read_stdout(), call.returncode) == ("first\n", 0)
    assert core.read_namespaced_pod_log("p", "default") == "begun\n"


def test_javascripts_client_runs_commands(running):
    program = os.path.join(folder_of("DAVIT_PEERS"), "js-client")
    done = subprocess.run([program, running.kubeconfig, "streams"], capture_output=True, text=True,
                          timeout=WAIT_S, check=False)
    assert done.stdout == "ok streams\n", done
