"""The whole path through the API's front door: TLS, with a client in Go.

    ./dev bench front [SIZE...]   a size is PODS/NODES, "objects" or "floor"; without one: all

davitd (all roles) runs on one core, the client (go-front) on the other. Of each size: nodes with a
slice each are made; then pods that have a claim template are created, and a watch shows them bound.
The figures of the server come from the kernel when it has come to rest: a pod's share of them holds
its claim and its events. `stall` is the longest GET of a client that asks for a node every 2 ms
meanwhile.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
E2E = os.path.join(HERE, os.pardir, "e2e")
for folder in (HERE, E2E, *(os.path.join(E2E, name) for name in ("claims", "api", "node"))):
    sys.path.insert(0, folder)

from procs import Procs, until  # noqa: E402
from servers import ApiNode  # noqa: E402

SIZES = ("500/100", "2000/100", "5000/500", "20000/2000")
SERVER_CORE = "0"
CLIENT_CORE = "1"
PATIENCE_S = 900
LIFETIME_S = 1800
REST_S = 0.5  # without work for so long, the server has come to rest
N_FSYNCS = 400
N_LISTED = 50000
CPUCLOCK_SCHED = 2  # what the kernel calls the clock of processor time in ns
PAGE = b"x" * 4096
HEAD = ("pods/nodes", "pods/s", "p50 ms", "p99 ms", "CPU ms", "of it loop", "KB disk", "KB memory",
        "GET p99", "stall ms", "events", "restart ms")


class World:
    """A davitd in a folder of its own."""

    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="dvf-")
        self.procs = Procs(self.folder)
        self.node = ApiNode(self.procs, self.folder)
        self.start()

    def start(self):
        self.node.proc = self.procs.start(
            "/usr/bin/taskset", "-c", SERVER_CORE,
            os.path.join(os.environ["DAVIT_BUILD"], "davitd"),
            "--kubelet-dir", self.node.kubelet_dir,
            "--state-dir", self.node.state_dir,
            "--runtime-dir", self.node.runtime_dir,
            "--cdi-dirs", os.path.join(self.folder, "cdi"),
            "--node-name", "bench",
            "--cri", "none",
            "--listen", "127.0.0.1:0",
            ready=None,
            lifetime_s=LIFETIME_S,
        )
        self.node.proc.wait_line("ready", PATIENCE_S)

    def restart_ms(self):
        """From the start of the program until it is ready."""
        self.node.proc.stop(PATIENCE_S)
        began = time.monotonic()
        self.start()
        return (time.monotonic() - began) * 1000

    def front(self, *words):
        return front(self.node.kubeconfig, *words)

    def proc_file(self, name):
        with open(f"/proc/{self.node.proc.pid}/{name}", encoding="ascii") as text:
            return text.read()

    def cpu_ms(self):
        """(of all threads, of the loop's)"""
        pid = self.node.proc.pid
        # The process's own clock, as clock_getcpuclockid(3) makes it: with threads that have ended.
        all_ms = time.clock_gettime(~pid << 3 | CPUCLOCK_SCHED) * 1000
        return all_ms, int(self.proc_file(f"task/{pid}/schedstat").split()[0]) / 1e6

    def written_kb(self):
        fields = dict(line.split(": ") for line in self.proc_file("io").splitlines())
        return int(fields["write_bytes"]) / 1024

    def private_kb(self):
        return sum(int(line.split()[1]) for line in self.proc_file("smaps_rollup").splitlines()
                   if line.startswith("Private_"))

    def rest(self):
        """Waits until there is nothing left to do."""
        def is_idle():
            before, _ = self.cpu_ms()
            time.sleep(REST_S)
            return self.cpu_ms()[0] - before < 50 * REST_S
        until(is_idle, PATIENCE_S, "the server rests")

    def n_events(self):
        doc = self.node.api().must("GET", "/api/v1/namespaces/default/events?limit=1")
        return len(doc["items"]) + doc["metadata"].get("remainingItemCount", 0)

    def close(self):
        self.node.disconnect()
        self.procs.close()
        shutil.rmtree(self.folder, ignore_errors=True)


def front(*words):
    command = ["/usr/bin/taskset", "-c", CLIENT_CORE,
               os.path.join(os.environ["DAVIT_PEERS"], "go-front"), *(str(word) for word in words)]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True, timeout=PATIENCE_S)
    return json.loads(done.stdout)


def place(world, n_pods, n_nodes):
    """The row of a size."""
    world.front("setup", n_nodes, max(8, 2 * n_pods // n_nodes))
    world.rest()
    cpu_ms, loop_ms = world.cpu_ms()
    written_kb, private_kb = world.written_kb(), world.private_kb()
    seen = world.front("place", n_pods)
    world.rest()
    cpu_ms, loop_ms = (now - then for now, then in zip(world.cpu_ms(), (cpu_ms, loop_ms)))
    written_kb = world.written_kb() - written_kb
    private_kb = world.private_kb() - private_kb
    n_events = world.n_events()
    restart_ms = world.restart_ms()
    return (f"{n_pods}/{n_nodes}", f"{seen['pods_per_s']:.0f}", f"{seen['p50_ms']:.1f}",
            f"{seen['p99_ms']:.1f}", f"{cpu_ms / n_pods:.3f}", f"{loop_ms / n_pods:.3f}",
            f"{written_kb / n_pods:.1f}", f"{private_kb / n_pods:.1f}", f"{seen['get_p99_ms']:.1f}",
            f"{seen['get_max_ms']:.1f}", str(n_events), f"{restart_ms:.0f}")


def print_row(words):
    print(" ".join(f"{word:>10}" for word in words), flush=True)


def run_sizes(sizes):
    print_row(HEAD)
    for size in sizes:
        world = World()
        try:
            print_row(place(world, *(int(word) for word in size.split("/"))))
        finally:
            world.close()


def run_objects():
    world = World()
    try:
        for n_clients, count in ((1, 1000), (64, 10000)):
            cpu_ms, _ = world.cpu_ms()
            seen = world.front("creates", n_clients, count)
            print(f"durable creates, {n_clients:2} clients: {seen['per_s']:8.0f} a second,"
                  f" p50 {seen['p50_ms']:.1f} ms, p99 {seen['p99_ms']:.1f} ms,"
                  f" CPU {(world.cpu_ms()[0] - cpu_ms) / count:.3f} ms", flush=True)
        for form, seen in world.front("list", N_LISTED).items():
            print(f"LIST of {N_LISTED:,}, {form.rpartition('.')[2].rpartition('/')[2]}: first byte"
                  f" {seen['first_byte_ms']:.1f} ms, all {seen['mb']:.1f} MB"
                  f" {seen['total_ms']:.1f} ms, another's GET at most {seen['get_max_ms']:.1f} ms")
        cpu_ms, _ = world.cpu_ms()
        seen = world.front("fanout", 100, 500)
        print(f"watch fan-out 100 x 500: {seen['events_per_s']:8.0f} a second,"
              f" p50 {seen['p50_ms']:.1f} ms, p99 {seen['p99_ms']:.1f} ms,"
              f" CPU {(world.cpu_ms()[0] - cpu_ms) / 50000 * 1000:.1f} us an event")
    finally:
        world.close()


def fsyncs_per_s():
    with tempfile.NamedTemporaryFile(prefix="dvf-") as file:
        os.write(file.fileno(), PAGE * N_FSYNCS)
        os.fsync(file.fileno())
        began = time.monotonic()
        for number in range(N_FSYNCS):
            os.pwrite(file.fileno(), PAGE, number * len(PAGE))
            os.fdatasync(file.fileno())
        return N_FSYNCS / (time.monotonic() - began)


def run_floor():
    seen = front("-", "floor")
    print(f"floor: {fsyncs_per_s():.0f} fdatasync a second; bare TLS requests, both ends Go on one"
          f" core: {seen['per_s_1']:.0f} a second from 1 client, {seen['per_s_64']:.0f} from 64;"
          f" load {os.getloadavg()[0]:.1f}", flush=True)


def main():
    words = sys.argv[1:] or ["floor", *SIZES, "objects"]
    if "floor" in words:
        run_floor()
    sizes = [word for word in words if "/" in word]
    if sizes:
        run_sizes(sizes)
    if "objects" in words:
        run_objects()


if __name__ == "__main__":
    main()
