"""The longest time in which davitd serves nobody else, under a list of worst requests.

    ./dev bench stall [GROUP]   one group of rows instead of all

A davitd of its own, in a scratch folder, is given each request of tests/peers/stall_rows*.py, and
tells the longest turn of its loop since it was last asked (davit_loop_longest_hold_seconds of
/metrics). `floor` is how long the kernel let the loop's thread wait for a processor in the same time:
what other processes on this machine may have added. A row is OVER when the turn took more than 50 ms
of processor time, or more than 50 ms by the clock beyond the floor.
"""

import os
import re
import shutil
import sys
import tempfile
import time
import traceback

HERE = os.path.dirname(os.path.abspath(__file__))
E2E = os.path.join(HERE, os.pardir, "e2e")
for folder in (HERE, E2E, *(os.path.join(E2E, name) for name in ("claims", "api", "node"))):
    sys.path.insert(0, folder)

from procs import Procs  # noqa: E402
from servers import ApiNode  # noqa: E402
import stall_rows  # noqa: E402

LIMIT_MS = 50
LIFETIME_S = 1200


class World:
    """A davitd and what a row needs of it; rows of one group share it."""

    def __init__(self, folder, options):
        os.makedirs(folder)
        self.folder = folder
        self.options = [one.format(folder=folder) for one in options]  # more of davitd's
        self.procs = Procs(folder)
        self.node = ApiNode(self.procs, folder)
        self.kept = {}
        self.started = []
        self.worst = (0, 0)
        self.start()

    def start(self):
        self.node.proc = self.procs.start(
            os.path.join(os.environ["DAVIT_BUILD"], "davitd"),
            "--kubelet-dir", self.node.kubelet_dir,
            "--state-dir", self.node.state_dir,
            "--runtime-dir", self.node.runtime_dir,
            "--cdi-dirs", os.path.join(self.folder, "cdi"),
            "--node-name", "n1",
            "--listen", "127.0.0.1:0",
            *self.options,
            ready=None,
            lifetime_s=LIFETIME_S,
        )
        self.node.proc.wait_line("ready", 120)
        self.api = self.node.api()

    def restart(self):
        self.node.disconnect()
        self.node.proc.kill()
        self.start()

    def metrics(self):
        """Their text. Reading them begins the longest turn anew, so it is remembered here."""
        text = self.api.ask("GET", "/metrics").body.decode()
        found = dict(re.findall(r"^davit_loop_longest_hold_(\w+) (\S+)$", text, re.M))
        hold = (float(found["seconds"]) * 1000, float(found["cpu_seconds"]) * 1000)
        self.worst = tuple(map(max, self.worst, hold))
        return text

    def take_hold_ms(self):
        """The most (wall, cpu) of a turn since the last time, each by whichever turn."""
        self.metrics()
        worst, self.worst = self.worst, (0, 0)
        return worst

    def waited_ms(self):
        """How long the loop's thread was ready to run, and did not."""
        pid = self.node.proc.pid
        with open(f"/proc/{pid}/task/{pid}/schedstat", encoding="ascii") as stat:
            return int(stat.read().split()[1]) / 1e6

    def close(self):
        for one in self.started:
            one.stop()
        self.node.disconnect()
        self.procs.close()


def run_row(world, row):
    """(wall, cpu, floor) in ms."""
    if row.prepare:
        row.prepare(world)
    world.take_hold_ms()
    waited_ms = world.waited_ms()
    row.act(world)
    wall_ms, cpu_ms = world.take_hold_ms()
    return wall_ms, cpu_ms, max(0, world.waited_ms() - waited_ms)


def run_group(rows, folder, options):
    """How many rows were over."""
    n_over = 0
    world = World(folder, options)
    try:
        for row in rows:
            began = time.monotonic()
            try:
                wall_ms, cpu_ms, floor_ms = run_row(world, row)
            except Exception:
                traceback.print_exc()
                print(f"{row.name:<58} FAILED", flush=True)
                n_over += 1
                if not world.node.proc.is_alive:
                    print(world.node.proc.describe())
                    break
                continue
            is_over = cpu_ms > LIMIT_MS or wall_ms - floor_ms > LIMIT_MS
            n_over += is_over
            print(
                f"{row.name:<58} {wall_ms:9.1f} {cpu_ms:9.1f} {floor_ms:9.1f}"
                f" {time.monotonic() - began:7.1f}{'  OVER' if is_over else ''}",
                flush=True,
            )
    finally:
        world.close()
    return n_over


def main():
    only = sys.argv[1:]
    scratch = tempfile.mkdtemp(prefix="dvs-")
    n_over = n_rows = 0
    print(f"{'request':<58} {'hold ms':>9} {'CPU ms':>9} {'floor':>9} {'row s':>7}")
    try:
        for name, rows, *options in stall_rows.groups():
            if not only or name in only:
                n_rows += len(rows)
                n_over += run_group(rows, os.path.join(scratch, name), options)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    print(f"{n_rows} rows, {n_over} over {LIMIT_MS} ms")
    return 1 if n_over else 0


if __name__ == "__main__":
    sys.exit(main())
