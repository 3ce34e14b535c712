"""The whole path through the API's front door: TLS, with a client in Go.

    ./dev bench front [SIZE...]   a size is PODS/NODES, PODS/NODES+HARD, "objects" or "floor";
                                  without one: all

davitd (all roles) runs on one core, the client (go-front) on the other. Of each size: nodes with a
slice each are made; then pods that have a claim template are created, and a watch shows them bound.
The figures of the server come from the kernel when it has come to rest: a pod's share of them holds
its claim and its events. `stall` is the longest GET of a client that asks for a node every 2 ms
meanwhile. `turn CPU` is the most processor time of one turn of the server's loop since the pods
began to come: other programs on the machine add nothing to it, as they do to a GET. `MB all` is all
private memory in the end, and `MB anew` after a restart.

With HARD, so many pods wait from the beginning whose claims no node can meet, each after a search
of its own: half for a selector that costs much and is false on all devices, half for devices of
which no two are as alike as the claim wants all.
"""

import json
import os
import re
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
from servers import CLAIMS, PODS, ApiNode  # noqa: E402

SIZES = ("500/100", "2000/100", "5000/500", "5000/500+8", "20000/2000")
SERVER_CORE = "0"
CLIENT_CORE = "1"
PATIENCE_S = 900
LIFETIME_S = 1800
REST_S = 0.5  # without work for so long, the server has come to rest
SETTLE_S = 12  # at rest for some seconds, it gives memory back, twice
N_FSYNCS = 400
N_LISTED = 50000
CPUCLOCK_SCHED = 2  # what the kernel calls the clock of processor time in ns
PAGE = b"x" * 4096
HEAD = ("pods/nodes", "pods/s", "p50 ms", "p99 ms", "CPU ms", "of it loop", "KB disk", "KB memory",
        "GET p99", "stall ms", "turn CPU", "events", "restart ms",
        "MB all", "MB anew")


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
        """Of a server that has come to rest."""
        time.sleep(SETTLE_S)
        return sum(int(line.split()[1]) for line in self.proc_file("smaps_rollup").splitlines()
                   if line.startswith("Private_"))

    def rest(self):
        """Waits until there is nothing left to do."""
        def is_idle():
            before, _ = self.cpu_ms()
            time.sleep(REST_S)
            return self.cpu_ms()[0] - before < 50 * REST_S
        until(is_idle, PATIENCE_S, "the server rests")

    def longest_turn_ms(self):
        """Of the loop's processor time, since it was last asked."""
        text = self.node.api().ask("GET", "/metrics").body.decode()
        return 1000 * float(re.search(r"^davit_loop_longest_hold_cpu_seconds (\S+)$", text,
                                      re.M).group(1))

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


def costly_request(number):
    """False on every device, after some thousand steps."""
    ten = "[0,1,2,3,4,5,6,7,8,9]"
    expression = (f"{ten}.all(a, {ten}.all(b, {ten}.all(c, a + b + c >= 0)))"
                  f" && device.driver == 'none-{number}'")
    return {"requests": [{"name": "r", "exactly": {
        "deviceClassName": "gpu", "selectors": [{"cel": {"expression": expression}}]}}]}


def unlike_request(number):
    """Of all devices, no two have the same index."""
    return {"requests": [{"name": f"r{i}", "exactly": {"deviceClassName": "gpu", "count": 2}}
                         for i in range(1 + number)],
            "constraints": [{"matchAttribute": "gpu.example.com/index"}]}


def make_hard(world, n_hard):
    """Pods that no node can take."""
    api = world.node.api()
    for number in range(n_hard):
        devices = costly_request(number) if number % 2 else unlike_request(number)
        meta = {"name": f"hard-{number}"}
        api.must("POST", CLAIMS, {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim",
                                  "metadata": meta, "spec": {"devices": devices}})
        api.must("POST", PODS, {
            "apiVersion": "v1", "kind": "Pod", "metadata": meta,
            "spec": {"containers": [{"name": "c", "image": "pause"}],
                     "resourceClaims": [{"name": "e", "resourceClaimName": meta["name"]}]}})


def place(world, size):
    """The row of a size."""
    n_pods, n_nodes, n_hard = (int(word or 0) for word in
                               re.fullmatch(r"(\d+)/(\d+)(?:\+(\d+))?", size).groups())
    world.front("setup", n_nodes, max(8, 2 * n_pods // n_nodes))
    world.rest()
    world.longest_turn_ms()
    private_kb = world.private_kb()
    (cpu_ms, loop_ms), written_kb = world.cpu_ms(), world.written_kb()
    make_hard(world, n_hard)
    seen = world.front("place", n_pods)
    turn_ms = world.longest_turn_ms()
    world.rest()
    cpu_ms, loop_ms = (now - then for now, then in zip(world.cpu_ms(), (cpu_ms, loop_ms)))
    written_kb = world.written_kb() - written_kb
    all_kb = world.private_kb()
    n_events = world.n_events()
    restart_ms = world.restart_ms()
    world.rest()
    return (size, f"{seen['pods_per_s']:.0f}", f"{seen['p50_ms']:.1f}",
            f"{seen['p99_ms']:.1f}", f"{cpu_ms / n_pods:.3f}", f"{loop_ms / n_pods:.3f}",
            f"{written_kb / n_pods:.1f}", f"{(all_kb - private_kb) / n_pods:.1f}",
            f"{seen['get_p99_ms']:.1f}", f"{seen['get_max_ms']:.1f}", f"{turn_ms:.1f}",
            str(n_events), f"{restart_ms:.0f}",
            f"{all_kb / 1024:.1f}", f"{world.private_kb() / 1024:.1f}")


def print_row(words):
    print(" ".join(f"{word:>10}" for word in words), flush=True)


def run_sizes(sizes):
    print_row(HEAD)
    for size in sizes:
        world = World()
        try:
            print_row(place(world, size))
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
