"""davit run while davit, its commands and davitd are killed: a command that runs has its lease and its
devices, nobody else has them, and what is not there any more holds nothing."""

import os
import random
import signal
import subprocess
import time

import pytest

from leases import leases
from machine import Machine
from procs import until
from servers import CLAIMS
from whole_nodes import CLASSES, DEV, WAIT_S, WholeNode, get, items

pytestmark = pytest.mark.release
N_EACH = 4  # devices of the plugin, and of the offer
WANTS = [f"{DEV}=1", "port=1", f"{DEV}=1 port=1"]
COMMAND = 'echo "$$ $DAVIT_LEASE $DAVIT_DEVICES"; exec sleep 600'


@pytest.fixture
def node(procs, plugins, short_dir):
    machine = Machine(short_dir)
    for i in range(N_EACH):
        machine.node(f"port{i}", (1, 50 + i))
    made = WholeNode(procs, short_dir, "--dev-dir", machine.dev, "--sys-dir", machine.sys, "--offer",
                     "port=/dev/port*")
    made.start()
    made.plugin = plugins(made, DEV, [f"d{i}" for i in range(N_EACH)])
    made.plugin.answer = lambda ids: made.plugin.pb.AllocateResponse(
        container_responses=[made.plugin.pb.ContainerAllocateResponse()])
    made.plugin.register()
    made.wait_devices(DEV, N_EACH)
    until(lambda: get(made.api(), CLASSES, "port"), WAIT_S, "the class")
    until(lambda: sum(len(s["spec"].get("devices", [])) for s in items(
        made.api(), "/apis/resource.k8s.io/v1/resourceslices")) == N_EACH, WAIT_S, "the offer")
    return made


class Run:
    """A davit run, and the command that it has started; isolated, because /dev is made up."""

    def __init__(self, node, wanted):
        self.pid = 0
        self.lease = None
        self.devices = None
        self.davit = subprocess.Popen(
            [os.path.join(os.environ["DAVIT_BUILD"], "davit"), "run", "--socket", node.socket,
             "--cdi-dirs", node.cdi_dir, "-q", "--isolate", *wanted.split(), "--", "sh", "-c", COMMAND],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)

    def read(self):
        """Waits until the command runs; False: it never will."""
        line = self.davit.stdout.readline()
        if line:
            pid, self.lease, self.devices = line.split(maxsplit=2)
            self.pid = int(pid)
        return bool(line)

    def kill_davit(self):
        self.davit.kill()
        self.davit.wait()

    def kill_command(self):
        os.kill(self.pid, signal.SIGKILL)

    def close(self):
        if self.pid:
            self.kill_command()
        self.kill_davit()
        self.davit.stdout.close()


def held(node):
    """{lease: what it holds}, as davit run tells it to its command."""
    made = {}
    for one in leases(node):
        words = [f"{r.resource}={','.join(r.device_ids)}" for r in one.resources]
        words += [f"{c.driver}/{c.pool}/{c.device}" for c in one.claims]
        made[one.id] = " ".join(words)
    return made


def check(node, runs, what):
    expected = {run.lease: run.devices.strip() for run in runs}
    until(lambda: held(node) == expected, WAIT_S, lambda: f"{what}: {held(node)}, not {expected}")
    everything = [word for devices in expected.values() for word in devices.split()]
    assert len(set(everything)) == len(everything), f"{what}: held twice: {everything}"
    taken = sorted(i for i, d in node.resources()[DEV].items() if d.holders)
    assert taken == sorted(w.split("=")[1] for w in everything if w.startswith(DEV)), what
    names = sorted(c["metadata"]["name"] for c in items(node.api(), CLAIMS))
    assert names == sorted(f"lease-{r.lease}" for r in runs if "port" in r.devices), what


def kill_some(node, runs, chance):
    """Kills a choice of davit, a command and davitd; returns what was killed."""
    what = chance.choice(["davit", "command", "davitd", "davit command", "davitd command",
                          "davit davitd", "davitd davit command"])
    one = chance.choice(runs)
    for word in what.split():
        if word == "davit":
            one.kill_davit()
        elif word == "command":
            one.kill_command()
        else:
            node.kill()
    if "command" in what:
        one.pid = 0
        one.close()
        runs.remove(one)
    # One that is killed somewhere between its first step and its command.
    late = Run(node, chance.choice(WANTS)) if "davitd" not in what else None
    if late:
        time.sleep(chance.random() * 0.06)
        late.kill_davit()
        if late.read():
            runs.append(late)
        else:
            late.close()
    if "davitd" in what:
        node.start()
        node.plugin.stop()
        node.plugin.serve().register()
        node.wait_devices(DEV, N_EACH, WAIT_S)
    return what + (" and one that began" if late else "")


def test_kills_of_davit_its_commands_and_davitd(node):
    seed = random.randrange(1 << 30)
    chance = random.Random(seed)
    runs = []
    try:
        for i in range(int(os.environ.get("DAVIT_LEASE_KILLS", "6"))):
            while len(runs) < 3:
                run = Run(node, chance.choice(WANTS))
                assert run.read(), f"seed {seed}, round {i}"
                runs.append(run)
            what = kill_some(node, runs, chance)
            check(node, runs, f"seed {seed}, round {i}: {what}")
            while len(runs) > 3:
                runs.pop().close()
    finally:
        for run in runs:
            run.close()
    check(node, [], f"seed {seed}, at the end")
