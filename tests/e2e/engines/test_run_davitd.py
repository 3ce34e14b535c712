"""davit run with davitd itself: devices are taken, waited for and given back."""

import os
import signal

import pytest
from nodes import Node
from peers import folder_of
from procs import until
from test_run_plain import davit, start

RESOURCE = "example.com/gpu"


@pytest.fixture
def new_node():
    return Node


@pytest.fixture
def gpu(node, procs):
    """A node with one device of a sample plugin."""
    procs.start(os.path.join(folder_of("DAVIT_BUILD"), "drivers", "davit-sample-device-plugin"),
                "--kubelet-dir", node.kubelet_dir, "--resource", RESOURCE, "--virtual", "1", "--env",
                "GPU", ready="registered")
    return node


def leases_of(node):
    done = davit(node, "leases", "--no-headers")
    return [line.split() for line in done.stdout.splitlines()]


def test_commands_take_turns(gpu):
    done = davit(gpu, "run", "--gpu", "1", "--", "sh", "-c", "echo $GPU")
    assert (done.stdout, done.returncode) == ("virtual-0\n", 0), done
    holder = start(gpu, "run", f"{RESOURCE}=1", "--", "sh", "-c", "echo $$; exec sleep 100")
    owner = int(holder.stdout.readline())
    done = davit(gpu, "run", f"{RESOURCE}=1", "--wait", "0", "--", "true")
    assert done.returncode == 3, done
    waiter = start(gpu, "run", f"{RESOURCE}=1", "--", "echo", "mine")
    assert f"pid {owner}" in waiter.stderr.readline()
    holder.kill()  # davit alone: the command keeps its device
    holder.wait(20)
    assert waiter.poll() is None
    os.kill(owner, signal.SIGKILL)
    out, _ = waiter.communicate(timeout=30)
    assert (out, waiter.returncode) == ("mine\n", 0)
    until(lambda: not leases_of(gpu), 20, "no leases")


def test_more_than_exist_is_refused_at_once(gpu):
    done = davit(gpu, "run", f"{RESOURCE}=2", "--", "true")
    assert done.returncode == 3 and RESOURCE in done.stderr, done
