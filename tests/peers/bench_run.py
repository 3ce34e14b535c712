"""davit run beside the same command without it, and beside a bare admission.

    ./dev bench run [PART...]    only these parts: one, queue

davitd and a sample plugin with virtual devices, in a scratch folder. `true` by itself, `davit version`
(what it costs to start davit at all), `davit admit` and `davit release` of a pod with one device, and
`davit run ... -- true`, in turn; the median of each.

queue: so many leases wait for all devices, which one holds; it is given back, and the next has to get
them: davitd's processor time of a turn, from the call to the grant, with the calls themselves.
"""

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
E2E = os.path.join(HERE, os.pardir, "e2e")
for folder in (HERE, E2E, os.path.join(E2E, "node")):
    sys.path.insert(0, folder)

import grpc  # noqa: E402
from leases import give, leases  # noqa: E402
from nodes import Node  # noqa: E402
from peers import folder_of  # noqa: E402
from procs import Procs, until  # noqa: E402

RESOURCE = "example.com/gpu"
N_ROUNDS = 100
LIMIT_MS = 10  # over the admission
N_DEVICES = 4
N_TURNS = 200
STREAMS = 50  # of one connection
TURN_LIMIT_MS = 1
POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "p", "uid": "u-1"},
    "spec": {"containers": [{"name": "main", "image": "x",
                             "resources": {"limits": {RESOURCE: "1"}}}]},
}


def timed(*commands):
    """Milliseconds that the commands take, one after the other."""
    start = time.perf_counter()
    for command in commands:
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return (time.perf_counter() - start) * 1000


def run_one(node, folder):
    davit = os.path.join(folder_of("DAVIT_BUILD"), "davit")
    pod = os.path.join(folder, "pod.json")
    with open(pod, "w", encoding="utf-8") as file:
        json.dump(POD, file)
    where = ["--socket", node.socket]
    rows = {
        "true": [["true"]],
        "davit version": [[davit, "version"]],
        "davit admit": [[davit, "admit", *where, "-f", pod]],
        "davit release": [[davit, "release", *where, "p"]],
        "davit run -- true": [[davit, "run", *where, f"{RESOURCE}=1", "--", "true"]],
    }
    times = {name: [] for name in rows}
    for _ in range(N_ROUNDS):
        for name, commands in rows.items():
            times[name].append(timed(*commands))
    medians = {name: statistics.median(values) for name, values in times.items()}
    print(f"median of {N_ROUNDS}, ms")
    for name, value in medians.items():
        print(f"  {name:20} {value:7.2f}   longest {max(times[name]):7.2f}")
    more = medians["davit run -- true"] - medians["davit admit"]
    print(f"  davit run takes {more:.2f} ms more than the admission (at most {LIMIT_MS})")


def wait_in_line(node, n):
    """Streams of so many requests, in the order of their places; the first one is granted."""
    channels = [grpc.insecure_channel(f"unix:{node.socket}", options=[("bench.n", i)])
                for i in range(1 + n // STREAMS)]
    request = node.pb.TakeLeaseRequest(
        resources=[node.pb.LeaseResource(resource=RESOURCE, count=N_DEVICES)])
    calls = []
    for i in range(n + 1):
        take = channels[i // STREAMS].unary_stream(
            "/davit.node.v1.Node/TakeLease",
            request_serializer=node.pb.TakeLeaseRequest.SerializeToString,
            response_deserializer=node.pb.LeaseNews.FromString)
        calls.append(take(request, wait_for_ready=True))
        next(calls[-1])  # it waits, or is granted: so the next one comes after it
    return channels, calls


def run_queue(node, _):
    print(f"processor time of davitd for a turn, of {N_TURNS}, ms")
    for n in (25, 1000):
        channels, calls = wait_in_line(node, n + N_TURNS)
        holder = leases(node)[0].id
        start = node.proc.cpu_s()
        for call in calls[1:N_TURNS + 1]:
            give(node, holder)
            holder = next(news.granted.lease.id for news in call if news.HasField("granted"))
        used_ms = (node.proc.cpu_s() - start) * 1000 / N_TURNS
        print(f"  {n:5} wait {used_ms:7.2f} (at most {TURN_LIMIT_MS})")
        for channel in channels:
            channel.close()
        until(lambda: len(leases(node)) == 1, 60, "nobody waits")
        give(node, holder)


PARTS = {"one": run_one, "queue": run_queue}


def main(parts):
    folder = tempfile.mkdtemp(prefix="dvb-")
    procs = Procs(folder)
    try:
        node = Node(procs, folder).start()
        procs.start(os.path.join(folder_of("DAVIT_BUILD"), "drivers", "davit-sample-device-plugin"),
                    "--kubelet-dir", node.kubelet_dir, "--resource", RESOURCE, "--virtual", str(N_DEVICES),
                    ready="registered")
        for part in parts or PARTS:
            PARTS[part](node, folder)
        node.stop()
    finally:
        procs.close()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main(sys.argv[1:])
