#!/usr/bin/env python3
"""Replays golden/api-transcripts and -2 against the embedded API:

    golden_api_transcripts DIR [FILE...]

Each file is played by the corpus' own replay.py against a server of its own, which begins empty.
A difference that is listed in KNOWN is not a failure; one that is listed and not there is told.
"""
import atexit
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from pathlib import Path

HERE = Path(__file__).resolve().parent
SERVER = HERE / "api_server"
TOKENS = {
    "api-transcripts": ["admin=admintoken", "viewer=viewertoken", "node=nodetoken",
                        "driver=drivertoken"],
    "api-transcripts-2": ["admin=tokadmin", "node=toknode", "alice=tokalice", "bob=tokbob"],
}
TIMEOUT_S = 120
# They wait most of the time: for the ends of watches, and for what must not come.
AT_ONCE = 4 * len(os.sched_getaffinity(0))
# An exchange that is known to differ is not repeated until it agrees; what comes after it may need
# what it waited for.
KNOWN_PAUSE_S = 1

# What we do otherwise, by file and number of the exchange, and why.
VERSION = "/version says whose server it is"
PLUGINS = "an admission plugin that we do not have; recorded to show what it would add"
OTHER_READER = "the text of another reader's error"
MODES = "the reference remembers which mode it allowed last, and names what that one lacks"
REMEMBERED = "the reference remembers for ten seconds that the token was good; here it ends at once"
KNOWN = {
    "apply": {14: OTHER_READER},
    "authentication-authorization": {6: VERSION},
    "default-admission": {
        1: PLUGINS, 2: PLUGINS, 3: PLUGINS, 4: PLUGINS,
        6: "recorded before the namespace of the scenario was made",
    },
    "default-service-accounts": {
        **{number: "the recorded server has two certificates" for number in [2, 6, 8]},
        **{number: PLUGINS for number in [9, 11, 13, 14, 15, *range(22, 27)]},
    },
    "discovery": {
        0: VERSION,
        3: "pods: attach, ephemeralcontainers, exec, log, portforward, proxy, resize; nodes: proxy",
        12: "resourcepoolstatusrequests",
    },
    "http-protocol": {
        18: OTHER_READER,
        57: "groups: apiextensions, apiregistration, apps, autoscaling, "
            "certificates, flowcontrol, networking, node, policy, scheduling, storage",
        63: "componentstatuses",
    },
    "impersonation-limited": {11: MODES, 22: MODES},
    "pod-status-binding-eviction": {26: "pods/log"},
    "quota-deviceclass": {22: "two quotas are exceeded, and the reference names any of them"},
    "token-request": {number: REMEMBERED for number in [39, 40, 42, 43]},
}

# Scenarios of kinds and plugins that are not served, by their names or how these begin, and which.
# Whoever serves a kind takes its line out here; what is left does not count as passed.
NOT_PLAYED = {
    "crd-": "custom resources",
    "workload-statefulset": "StatefulSets",
}

DIFFERENCE = re.compile(r"^(\S+) #(\d+) ")


@lru_cache
def key():
    """The file of a key that signs tokens: of RSA, as the recorded server's."""
    file = Path(tempfile.mkdtemp(prefix="davit-key-")) / "tokens.pem"
    atexit.register(shutil.rmtree, file.parent)
    subprocess.run(["openssl", "genrsa", "-out", file, "2048"], check=True, capture_output=True)
    return file


def start(corpus, name, folder):
    """The server and its port; its store is in the folder."""
    anonymous = "off" if name == "no-anonymous" else "on"
    accounts = "on" if name == "default-service-accounts" else "off"
    server = subprocess.Popen([SERVER, "--anonymous", anonymous, "--accounts", accounts,
                               "--token-key", key(),
                               *(["--audience", "second-api"] if corpus.endswith("-2") else []),
                               "--store", os.path.join(folder, "api.db")],
                              stdout=subprocess.PIPE, text=True)
    return server, int(server.stdout.readline())


def tokens_of(folder):
    return TOKENS.get(folder.resolve().name, TOKENS["api-transcripts"])


def without_waits(file, place):
    """The file, or one in `place` whose known differences are not waited for."""
    document = json.loads(file.read_text(encoding="utf-8"))
    awaited = [document["exchanges"][number] for number in KNOWN.get(file.stem, {})
               if document["exchanges"][number].get("repeatUntilMatch")]
    for exchange in awaited:
        exchange.update(repeatUntilMatch=False, pauseBefore=KNOWN_PAUSE_S)
    if not awaited:
        return file
    copy = Path(place) / file.name
    copy.write_text(json.dumps(document), encoding="utf-8")
    return copy


def play(folder, file):
    """(numbers of exchanges that differ: what replay.py says, exchanges played)"""
    # In memory where the system has such a place: the disk's speed is no part of the replay.
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="davit-api-", dir=memory) as place:
        server, port = start(folder.resolve().name, file.stem, place)
        try:
            result = subprocess.run(
                [sys.executable, folder / "replay.py", "--server", f"http://127.0.0.1:{port}",
                 *(word for token in tokens_of(folder) for word in ("--token", token)),
                 without_waits(file, place)],
                capture_output=True, text=True, timeout=TIMEOUT_S)
        finally:
            server.terminate()
            status = server.wait()
    differences, current = {}, None
    for line in result.stdout.splitlines():
        match = DIFFERENCE.match(line)
        if match:
            current = int(match.group(2))
            differences[current] = [line]
        elif current is not None and line.startswith("      "):
            differences[current].append(line)
    played = re.search(r"^(\d+) exchanges in 1 files", result.stdout, re.M)
    if not played:
        differences[-1] = [f"{file.stem}: replay.py failed", result.stdout, result.stderr]
    if status != 0:
        differences[-2] = [f"{file.stem}: the server ended with {status}"]
    return differences, int(played.group(1)) if played else 0


def main():
    folder = Path(sys.argv[1])
    files = [Path(name) for name in sys.argv[2:]] or sorted(
        [*folder.glob("scenarios/*.json"), *folder.glob("random/*.json")],
        key=lambda file: (not file.stem.startswith("watch"), file))  # watches wait longest
    passed = failed = 0
    names = {file.stem for file in files}
    if len(sys.argv) == 2:
        files = [file for file in files if not file.stem.startswith(tuple(NOT_PLAYED))]
    key()  # once, before those who share it
    with ThreadPoolExecutor(AT_ONCE) as pool:
        played_files = list(pool.map(lambda file: play(folder, file), files))
    for file, (differences, played) in zip(files, played_files):
        known = KNOWN.get(file.stem, {})
        for number, lines in sorted(differences.items()):
            if number not in known:
                failed += 1
                print("\n".join(lines))
        for number in sorted(set(known) - set(differences)):
            print(f"{file.stem} #{number}: agrees; it need not be listed")
        passed += max(0, played - len(differences))
        if len(sys.argv) > 2:
            print(f"{file.stem}: {played - len(differences)} of {played}")
    if len(files) > 1:
        for prefix, why in NOT_PLAYED.items():
            if any(name.startswith(prefix) for name in names):
                print(f"{prefix}* is not played: {why}")
        for name, numbers in KNOWN.items():
            if name not in names:
                continue
            for number, why in numbers.items():
                print(f"{name} #{number} is known to differ: {why}")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
