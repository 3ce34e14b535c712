"""What it costs davitd that one device of a plugin falls ill, or is well again.

    ./dev bench flip

A plugin sends its whole list with each change. davitd has all roles, so a flip ends in a durable
write of the Node. `CPU` is the processor time of all threads of davitd for each flip, less what it
takes when nothing happens; `loop` is the loop's part of it, the rest is the store's thread. The floor
is a process that reads the same bytes from a socket, and one that writes a page and has it synced.
"""

import os
import shutil
import socket
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
E2E = os.path.join(HERE, os.pardir, "e2e")
for folder in (HERE, E2E, *(os.path.join(E2E, name) for name in ("claims", "api", "node"))):
    sys.path.insert(0, folder)

from plugin import Plugin  # noqa: E402
from procs import Procs, until  # noqa: E402
from servers import ApiNode  # noqa: E402

SIZES = (1000, 10000, 100000)
N_FLIPS = 60
PAUSE_S = 0.06
PATIENCE_S = 120
CPUCLOCK_SCHED = 2  # what the kernel calls the clock of processor time in ns
RESOURCE = "a.b/dev"


def cpu_ms(pid):
    """(of all threads, of the loop's)"""
    with open(f"/proc/{pid}/task/{pid}/schedstat", encoding="ascii") as text:
        loop_ns = int(text.read().split()[0])
    return time.clock_gettime(~pid << 3 | CPUCLOCK_SCHED) * 1000, loop_ns / 1e6


def spent(pid, action):
    """(ms of all threads, ms of the loop) while the action runs."""
    before = cpu_ms(pid)
    action()
    return [now - then for now, then in zip(cpu_ms(pid), before)]


def has_healthy(node, n_devices):
    line = f'davit_device_allocatable{{resource_name="{RESOURCE}"}} {n_devices}\n'
    return line in node.api().ask("GET", "/metrics").body.decode()


def start(procs, root):
    node = ApiNode(procs, root)
    node.proc = procs.start(
        os.path.join(os.environ["DAVIT_BUILD"], "davitd"),
        "--kubelet-dir", node.kubelet_dir, "--state-dir", node.state_dir,
        "--runtime-dir", node.runtime_dir, "--cdi-dirs", os.path.join(root, "cdi"),
        "--node-name", "bench", "--cri", "none", "--listen", "127.0.0.1:0", ready=None,
        lifetime_s=10 * PATIENCE_S)
    node.proc.wait_line("ready", PATIENCE_S)
    return node


def measure(n_devices):
    folder = tempfile.mkdtemp(prefix="dvl-")
    procs = Procs(folder)
    try:
        node = start(procs, folder)
        plugin = Plugin(node.plugin_dir, RESOURCE, [f"d{i}" for i in range(n_devices)])
        well = {device: ("Healthy", None) for device in plugin.devices}
        ill = {**well, "d0": ("Unhealthy", None)}
        plugin.serve()
        plugin.register()
        until(lambda: has_healthy(node, n_devices), PATIENCE_S, "all devices are there")

        def flip():
            for number in range(N_FLIPS):
                plugin.set_devices(well if number % 2 else ill)
                time.sleep(PAUSE_S)

        flip()  # once for nothing
        pid = node.proc.pid
        began = time.monotonic()
        busy = spent(pid, flip)
        lasted = time.monotonic() - began
        idle = spent(pid, lambda: time.sleep(lasted))
        assert has_healthy(node, n_devices), "the last flip was to well"
        plugin.stop()
        return [(of_busy - of_idle) / N_FLIPS for of_busy, of_idle in zip(busy, idle)]
    finally:
        procs.close()
        shutil.rmtree(folder, ignore_errors=True)


def read_ms(n_bytes):
    """The processor time of a thread that reads so many bytes from a socket, as they come."""
    ours, theirs = socket.socketpair()
    text = b"x" * n_bytes
    times = []

    def read():
        room = bytearray(65536)
        before = time.thread_time()
        left = n_bytes * N_FLIPS
        while left > 0:
            left -= theirs.recv_into(room)
        times.append((time.thread_time() - before) * 1000 / N_FLIPS)

    reader = threading.Thread(target=read)
    reader.start()
    for _ in range(N_FLIPS):
        ours.sendall(text)
    reader.join()
    return times[0]


def sync_ms():
    """The processor time of a page that is written and synced."""
    with tempfile.NamedTemporaryFile(prefix="dvl-") as file:
        os.write(file.fileno(), b"x" * 4096)
        os.fsync(file.fileno())
        before = time.thread_time()
        for _ in range(N_FLIPS):
            os.pwrite(file.fileno(), b"x" * 4096, 0)
            os.fdatasync(file.fileno())
            time.sleep(PAUSE_S / 10)
        return (time.thread_time() - before) * 1000 / N_FLIPS


def main():
    floor = sync_ms()
    print(f"{'devices':>10} {'CPU ms':>10} {'loop ms':>10} {'read ms':>10} {'sync ms':>10}")
    for n_devices in SIZES:
        cpu, loop = measure(n_devices)
        print(f"{n_devices:>10} {cpu:>10.3f} {loop:>10.3f} {read_ms(24 * n_devices):>10.3f}"
              f" {floor:>10.3f}", flush=True)


if __name__ == "__main__":
    main()
