#!/usr/bin/python3
"""The RPC benchmark: davit beside a bare socket, grpc-go and C-core, in one run.

    bench_rpc.py [--peers DIR] [--davit PROGRAM] [--rounds N] [--json FILE]

DIR is what tests/peers/build filled ($DAVIT_PEERS), PROGRAM is davit-peer (that of $DAVIT_BUILD).
A peer that is not there is named and left out. The rounds are interleaved: each goes through all
pairs, in a new order, so that what else happens on the machine falls on all of them. Figures are
medians over the rounds.
"""

import argparse
import json
import os
import random
import resource
import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "e2e"))

from procs import Procs  # noqa: E402

LATENCY_GOAL = 2.0  # times the bare socket's p50, at most
CPU_GOAL = 3.0  # times less CPU a call than grpc-go, at least

PAIRS = [
    ("raw", "raw"),
    ("davit", "davit"),
    ("go", "go"),
    ("ccore", "ccore"),
    ("davit", "go"),
    ("go", "davit"),
]
NAMES = {"raw": "raw socket", "davit": "davit", "go": "grpc-go", "ccore": "C-core"}

FREE, PINNED = "two cores", "one core"

# How many calls (or messages) make a sample of a few tenths of a second, by client.
CALLS = {
    "seq": {"raw": 8000, "davit": 5000, "go": 3000, "ccore": 4000},
    "inflight": {"raw": 100000, "davit": 40000, "go": 15000, "ccore": 25000},
    "stream500k": {"raw": 1000, "davit": 400, "go": 250, "ccore": 300},
    "connect": {"raw": 1000, "davit": 800, "go": 300, "ccore": 250},
}
SAMPLED = [
    ("seq", FREE),
    ("seq", PINNED),
    ("inflight", FREE),
    ("inflight", PINNED),
    ("stream500k", FREE),
    ("connect", FREE),
]
IDLE_CONNECTIONS = (1, 100)
# Above this share of the machine, what other processes use makes a sample doubtful: with one core
# taken away, "two cores" means one, and a sleeping core need not be woken. It is then taken again,
# a few times, as long as there is patience.
FOREIGN_MAX = 0.06
ATTEMPTS_MAX = 4
PATIENCE_S = 25


class Foreign:
    """How much of the machine processes other than ours have used since it was made."""

    def __init__(self, servers):
        self.servers = list(servers)
        self.before = self._now()

    def _now(self):
        tick = os.sysconf("SC_CLK_TCK")
        with open("/proc/stat", encoding="ascii") as stat:
            user, nice, system, idle, iowait, irq, softirq = map(int, stat.readline().split()[1:8])
        busy = user + nice + system + irq + softirq
        own = sum(server.cpu_s() for server in self.servers)
        for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN):
            usage = resource.getrusage(who)
            own += usage.ru_utime + usage.ru_stime
        return busy / tick, own, (busy + idle + iowait) / tick

    def share(self):
        busy, own, total = (now - then for now, then in zip(self._now(), self.before))
        return max(busy - own, 0) / total if total else 0


class Bench:
    """The programs, the servers that run, and the samples taken."""

    def __init__(self, programs, folder):
        self.programs = programs
        self.folder = folder
        self.procs = Procs(folder)
        self.servers = {}
        self.samples = {}  # (mode, place, pair): list of results
        self.foreign = []  # what other processes used of the machine during each sample
        self.patience_s = PATIENCE_S
        self.core = min(os.sched_getaffinity(0))

    def pairs(self):
        return [pair for pair in PAIRS if set(pair) <= set(self.programs)]

    def command(self, peer, place, *words):
        pin = ["taskset", "-c", self.core] if place == PINNED else []
        return [*pin, self.programs[peer], *words]

    def start_server(self, peer, place):
        socket = os.path.join(self.folder, f"{len(self.servers)}-{peer}")
        command = self.command(peer, place, "server", socket)
        return socket, self.procs.start(*command, ready="ready", lifetime_s=3600)

    def server(self, peer, place):
        if (peer, place) not in self.servers:
            self.servers[peer, place] = self.start_server(peer, place)
        return self.servers[peer, place][0]

    def run(self, client, place, socket, mode, *options):
        command = self.command(client, place, "bench", socket, "--mode", mode, *options)
        proc = self.procs.start(*command)
        if proc.wait() != 0:
            sys.exit(f"bench_rpc: {' '.join(map(str, command))}: {proc.describe()}")
        return json.loads(proc.lines[-1])

    def sample(self, mode, place, pair):
        client, server = pair
        calls = min(CALLS[mode][client], CALLS[mode][server])
        socket = self.server(server, place)
        attempts = []
        while len(attempts) < ATTEMPTS_MAX:
            started = time.monotonic()
            meter = Foreign(proc for _, proc in self.servers.values())
            result = self.run(client, place, socket, mode, "--calls", calls)
            attempts.append((meter.share(), result))
            if attempts[-1][0] <= FOREIGN_MAX or self.patience_s <= 0:
                break
            self.patience_s -= time.monotonic() - started
        foreign, result = min(attempts, key=lambda attempt: attempt[0])
        self.foreign.append(foreign)
        self.samples.setdefault((mode, place, pair), []).append(result)

    def round(self):
        for mode, place in SAMPLED:
            for pair in random.sample(self.pairs(), len(self.pairs())):
                self.sample(mode, place, pair)

    def idle(self):
        """On servers that have done nothing else; both ends are the same peer."""
        for peer in self.programs:
            for n in IDLE_CONNECTIONS:
                socket, proc = self.start_server(peer, FREE)
                result = self.run(peer, FREE, socket, "idle", "--calls", 1, "--connections", n)
                self.samples["idle", n, (peer, peer)] = [result]
                proc.stop()

    def median(self, mode, place, pair, field):
        found = self.samples.get((mode, place, pair))
        return statistics.median(result[field] for result in found) if found else None

    def spread(self, mode, place, pair, field):
        values = [result[field] for result in self.samples[mode, place, pair]]
        return min(values), max(values)

    def cpu(self, mode, place, pair):
        """Client and server together."""
        parts = [
            self.median(mode, place, pair, f"{side}_cpu_us_per_call")
            for side in ("client", "server")
        ]
        return None if None in parts else sum(parts)


# ---------------------------------------------------------------------------------------- tables


def pair_name(pair):
    client, server = pair
    return NAMES[client] if client == server else f"{NAMES[client]} -> {NAMES[server]}"


def show(value, digits=1):
    return "-" if value is None else f"{value:,.{digits}f}"


def ratio(a, b):
    return f"{a / b:.2f}x" if a and b else "-"


def print_table(title, columns, rows):
    widths = [max(len(row[i]) for row in [columns, *rows]) for i in range(len(columns))]
    print(f"\n{title}")
    for row in [columns, ["-" * width for width in widths], *rows]:
        cells = [cell.rjust(width) for cell, width in zip(row[1:], widths[1:])]
        print("  ".join([row[0].ljust(widths[0]), *cells]))


def print_calls(bench, mode, place, title):
    raw = bench.median(mode, place, ("raw", "raw"), "p50_us")
    go = bench.cpu(mode, place, ("go", "go"))
    columns = ["client -> server", "p50 us", "(range)", "p99 us", "x raw", "calls/s",
               "CPU us client", "server", "sum", "less than grpc-go"]  # fmt: skip
    rows = []
    for pair in bench.pairs():
        p50 = bench.median(mode, place, pair, "p50_us")
        low, high = bench.spread(mode, place, pair, "p50_us")
        cpu = bench.cpu(mode, place, pair)
        rows.append([
            pair_name(pair),
            show(p50),
            f"{low:.0f}-{high:.0f}",
            show(bench.median(mode, place, pair, "p99_us")),
            ratio(p50, raw),
            show(bench.median(mode, place, pair, "calls_per_s"), 0),
            show(bench.median(mode, place, pair, "client_cpu_us_per_call")),
            show(bench.median(mode, place, pair, "server_cpu_us_per_call")),
            show(cpu),
            ratio(go, cpu),
        ])  # fmt: skip
    print_table(title, columns, rows)


def print_streams(bench):
    fields = ["ms_per_message", "client_cpu_us_per_message", "server_cpu_us_per_message"]
    rows = []
    raw = bench.median("stream500k", FREE, ("raw", "raw"), "ms_per_message")
    for pair in bench.pairs():
        ms, client, server = (bench.median("stream500k", FREE, pair, field) for field in fields)
        rows.append([pair_name(pair), show(ms, 3), ratio(ms, raw), show(client, 0),
                     show(server, 0)])  # fmt: skip
    columns = ["client -> server", "ms a message", "x raw", "CPU us client", "server"]
    print_table(f"A stream of 500,000-byte messages, {FREE}", columns, rows)


def print_connects(bench):
    raw = bench.median("connect", FREE, ("raw", "raw"), "p50_us")
    rows = []
    for pair in bench.pairs():
        p50 = bench.median("connect", FREE, pair, "p50_us")
        p99 = bench.median("connect", FREE, pair, "p99_us")
        rows.append([pair_name(pair), show(p50), show(p99), ratio(p50, raw)])
    columns = ["client -> server", "p50 us", "p99 us", "x raw"]
    print_table(f"A fresh connection and its first call, {FREE}", columns, rows)


def print_idle(bench):
    rows = []
    few, many = IDLE_CONNECTIONS
    for peer in bench.programs:
        row = [NAMES[peer]]
        for side in ("server_rss_bytes", "client_rss_bytes"):
            low, high = (bench.median("idle", n, (peer, peer), side) for n in IDLE_CONNECTIONS)
            row += [show(low / 1e6), show(high / 1e6), show((high - low) / (many - few) / 1e3)]
        rows.append(row)
    columns = ["peer", f"server MB, {few}", f"{many}", "kB each",
               f"client MB, {few}", f"{many}", "kB each"]  # fmt: skip
    print_table("Resident memory with idle connections", columns, rows)


def print_goal(title, figures, is_met):
    """`figures` are (where, factor or None); the goal is met when it is met everywhere."""
    measured = [(where, factor) for where, factor in figures if factor]
    verdicts = {True: "met", False: "not met"}
    all_met = all(is_met(factor) for _, factor in measured)
    print(f"goal: {title}: {verdicts[all_met] if measured else 'not measured'}")
    for where, factor in measured:
        print(f"      {where}: {factor:.2f}x, {verdicts[is_met(factor)]}")


def quotient(a, b):
    return a / b if a and b else None


def print_goals(bench):
    own, go, raw = ("davit", "davit"), ("go", "go"), ("raw", "raw")
    print()
    print_goal(
        f"sequential p50 within {LATENCY_GOAL:.0f}x of the raw socket",
        [
            (place, quotient(bench.median("seq", place, own, "p50_us"),
                             bench.median("seq", place, raw, "p50_us")))
            for place in (FREE, PINNED)
        ],
        lambda factor: factor <= LATENCY_GOAL,
    )  # fmt: skip
    print_goal(
        f"at least {CPU_GOAL:.0f}x less CPU a call than grpc-go",
        [
            (f"{name}, {place}", quotient(bench.cpu(mode, place, go), bench.cpu(mode, place, own)))
            for mode, name in (("seq", "sequential"), ("inflight", "64 in flight"))
            for place in (FREE, PINNED)
        ],
        lambda factor: factor >= CPU_GOAL,
    )


def find_programs(args):
    """Those that are there, by peer."""
    peers = Path(args.peers)
    candidates = {
        "raw": peers / "pingpong",
        "davit": Path(args.davit) if args.davit else None,
        "go": peers / "go-peer",
        "ccore": peers / "ccore-peer",
    }
    programs = {}
    for peer, path in candidates.items():
        if path and os.access(path, os.X_OK):
            programs[peer] = str(path.resolve())
        else:
            print(f"{NAMES[peer]}: {f'no program {path}' if path else 'not given'}; left out")
    return programs


def davit_by_default():
    build = os.environ.get("DAVIT_BUILD")
    return os.path.join(build, "tests/peers/davit-peer") if build else None


def main():
    parser = argparse.ArgumentParser(description="benchmark of the RPC stacks")
    parser.add_argument("--peers", default=os.environ.get("DAVIT_PEERS"),
                        help="the folder that tests/peers/build filled")  # fmt: skip
    parser.add_argument("--davit", default=davit_by_default(), help="the program davit-peer")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", help="file for all the samples")
    args = parser.parse_args()
    if not args.peers:
        parser.error("neither --peers nor DAVIT_PEERS is given")

    programs = find_programs(args)
    if not programs:
        return "bench_rpc: no peer at all"
    folder = tempfile.mkdtemp(prefix="dvb-")
    bench = Bench(programs, folder)
    try:
        for _ in range(args.rounds):
            bench.round()
        bench.idle()
    finally:
        bench.procs.close()
        shutil.rmtree(folder)

    print(
        f"{len(os.sched_getaffinity(0))} cores, {args.rounds} round(s), request 339 bytes, "
        f"reply 1,603 bytes; other processes used {statistics.median(bench.foreign):.0%} of the "
        f"machine, at most {max(bench.foreign):.0%} during a sample"
    )
    doubtful = sum(share > FOREIGN_MAX for share in bench.foreign)
    if doubtful:
        print(f"WARNING: not a quiet machine, {doubtful} of {len(bench.foreign)} samples doubtful")
    for place in (FREE, PINNED):
        print_calls(bench, "seq", place, f"Sequential calls, {place}")
    for place in (FREE, PINNED):
        print_calls(bench, "inflight", place, f"64 calls in flight on one connection, {place}")
    print_streams(bench)
    print_connects(bench)
    print_idle(bench)
    print_goals(bench)
    if args.json:
        rows = [
            {"mode": mode, "place": place, "client": pair[0], "server": pair[1], "samples": found}
            for (mode, place, pair), found in bench.samples.items()
        ]
        Path(args.json).write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
