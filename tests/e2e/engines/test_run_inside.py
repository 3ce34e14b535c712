"""davit run with davitd, devices that it offers itself, and real engines: what is seen from inside."""

import os
import subprocess
import uuid

import pytest
from leases import Taking, leases
from machine import FULL, ZERO, Machine
from procs import until
from test_run_engines import IMAGE, bundle, podman, set_line  # noqa: F401 (fixtures)
from test_run_plain import davit
from whole_nodes import CLASSES, WAIT_S, WholeNode, get

# Which of the two devices is there, that it reads as zeros, and its variable.
LOOK = 'ls /dev | grep port; head -c 2 "$DAVIT_PORT" | od -An -tx1; echo "$DAVIT_PORT"'


def seen(i):
    return f"port{i}\n 00 00\n/dev/port{i}\n"


@pytest.fixture
def node(procs, short_dir):
    """Offers two devices that read as zeros."""
    machine = Machine(short_dir)
    for i, number in enumerate([ZERO, FULL]):
        machine.node(f"port{i}", number)
    made = WholeNode(procs, short_dir, "--dev-dir", machine.dev, "--sys-dir", machine.sys, "--offer",
                     "port=/dev/port*").start()
    until(lambda: get(made.api(), CLASSES, "port"), WAIT_S, "the class")
    return made  # whoever asks before its devices are there waits for them


def run(node, *words):
    done = davit(node, "run", "--cdi-dirs", node.cdi_dir, *words, timeout=60)
    until(lambda: not [x for x in leases(node) if x.state != "held"], WAIT_S, "it is given back")
    return done


def take_first(node):
    """Holds the first device, so that the next lease gets the other one."""
    first = Taking(node, devices=[node.pb.LeaseDevices(device_class="port")]).next("granted").lease
    return 1 - int(first.claims[0].device[-1])


def test_podman_sees_only_the_device_that_is_free(node, podman):  # noqa: F811
    other = take_first(node)
    done = run(node, "port=1", "--", *podman.command, "run", *podman.options, IMAGE, "sh", "-c", LOOK)
    assert (done.stdout, done.returncode) == (seen(other), 0), done
    assert len(leases(node)) == 1


def test_bundles_see_only_the_device_that_is_free(node, bundle):  # noqa: F811
    other = take_first(node)
    os.symlink("sh", os.path.join(bundle.path, "rootfs", "bin", "ls"))
    os.symlink("sh", os.path.join(bundle.path, "rootfs", "bin", "grep"))
    set_line(bundle, LOOK)
    done = run(node, "port=1", "--", bundle.program, "run", "--bundle", bundle.path,
               f"dv-{uuid.uuid4()}")
    assert (done.stdout, done.returncode) == (seen(other), 0), done


@pytest.mark.parametrize("uid", [0, 65534])
def test_an_isolated_process_sees_only_the_device_that_is_free(node, short_dir, uid):
    other = take_first(node)
    for path in (short_dir, node.cdi_dir, os.path.join(short_dir, "dev"), os.path.dirname(node.socket)):
        os.chmod(path, 0o755)
    for i in range(2):
        os.chmod(os.path.join(short_dir, "dev", f"port{i}"), 0o666)
    os.chmod(node.socket, 0o777)
    program = os.path.join(os.environ["DAVIT_BUILD"], "davit")
    done = subprocess.run(
        ["setpriv", "--reuid", str(uid), "--regid", str(uid), "--clear-groups", program, "run",
         "--socket", node.socket, "--cdi-dirs", node.cdi_dir, "port=1", "--isolate", "--", "sh", "-c",
         LOOK], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False)
    if "user namespace" in done.stderr or "Permission denied" in done.stderr:
        pytest.skip(done.stderr)
    assert (done.stdout, done.returncode) == (seen(other), 0), done


def test_a_container_in_the_background_holds_its_device(node, podman):  # noqa: F811
    done = run(node, "port=2", "--", *podman.command, "run", *podman.options, "-d", IMAGE, "sleep", "600")
    assert done.returncode == 0, done
    held, = leases(node)
    assert len(held.claims) == 2 and held.state == "held"
    none = run(node, "port=1", "--wait", "0", "--", "true")
    assert none.returncode == 3 and "0 of 1 wanted port are free" in none.stderr, none
    node.kill()  # the container goes on, and has its devices when davitd is back
    node.start()
    until(lambda: [x.id for x in leases(node)] == [held.id], WAIT_S, "it is held")
    podman.run("rm", "-f", "-t", "0", done.stdout.strip())
    until(lambda: not leases(node), WAIT_S, "it is given back")
