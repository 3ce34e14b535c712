"""kill -9 of davitd at random moments while clients write over HTTP: every acknowledged write is
there with its last acknowledged content, none is half there, and versions never go back."""

import http.client
import random
import threading
import time

import pytest

from procs import kill_rounds, until
from servers import CLAIMS, MAPS, PATIENCE_S, claim, config_map, merge_patch

pytestmark = pytest.mark.release

N_WRITERS = 4
N_OBJECTS = 8  # of one writer
ABSENT = None


def content_of(item):
    """What a writer put into it: the same number in three places, or it is half written."""
    annotations = item["metadata"].get("annotations", {})
    labels = item["metadata"].get("labels", {})
    assert annotations.get("n") == labels.get("n"), item
    if "data" in item:
        assert item["data"]["n"] == labels["n"] and len(item["data"]["pad"]) == 1000, item
    return labels["n"]


class Writer(threading.Thread):
    """Makes, changes and deletes objects of its own until davitd is gone."""

    def __init__(self, api, number, seed):
        super().__init__(daemon=True)
        self.api = api
        self.number = number
        self.chance = random.Random(seed)
        self.known = {}  # path -> (content, version) as acknowledged
        self.unsure = {}  # path -> content that was asked for, without an answer
        self.n_done = 0
        self.trouble = []

    def run(self):
        try:
            while True:
                self.step()
        except (OSError, http.client.HTTPException):
            pass  # davitd is gone
        except Exception as error:  # told by the test
            self.trouble.append(error)

    def body(self, collection, name, content):
        metadata = {"labels": {"n": content}, "annotations": {"n": content}}
        if collection == CLAIMS:
            return claim(name, **metadata)
        return config_map(name, {"n": content, "pad": "x" * 1000}, **metadata)

    def step(self):
        collection = self.chance.choice((MAPS, CLAIMS))
        name = f"w{self.number}-{self.chance.randrange(N_OBJECTS)}"
        path = f"{collection}/{name}"
        content = f"{self.chance.getrandbits(48):x}"  # never the same twice
        if path not in self.known:
            self.unsure[path] = content
            answer = self.api.ask("POST", collection, self.body(collection, name, content))
        elif self.chance.random() < 0.3:
            self.unsure[path] = content = ABSENT
            answer = self.api.ask("DELETE", path)
        elif self.chance.random() < 0.5:
            self.unsure[path] = content
            answer = self.api.ask("PUT", path, self.body(collection, name, content))
        else:
            self.unsure[path] = content
            patch = self.body(collection, name, content)
            del patch["metadata"]["name"], patch["apiVersion"], patch["kind"]
            patch.pop("spec", None)
            answer = merge_patch(self.api, path, patch)
        assert answer.status in (200, 201), answer
        self.unsure.pop(path)
        if content is ABSENT:
            self.known.pop(path)
        else:
            self.known[path] = content, int(answer.doc["metadata"]["resourceVersion"])
        self.n_done += 1


class Follower(threading.Thread):
    """Watches; what it was told has to be durable."""

    def __init__(self, api):
        super().__init__(daemon=True)
        self.api = api
        self.version = 0
        self.n_events = 0

    def run(self):
        try:
            with self.api.watch(f"{MAPS}?resourceVersion=0") as watch:
                while event := watch.next():
                    told = int(event["object"]["metadata"]["resourceVersion"])
                    self.version = max(self.version, told)
                    self.n_events += 1
        except (OSError, http.client.HTTPException, ValueError):
            pass  # davitd is gone, in the middle of a line perhaps


def check(stored, writers):
    """What is stored against what was acknowledged; returns what the writers may go on with."""
    for writer in writers:
        mine = {path: item for path, item in stored.items()
                if path.rpartition("/")[2].startswith(f"w{writer.number}-")}
        for path in {*mine, *writer.known, *writer.unsure}:
            item = mine.get(path)
            content = content_of(item) if item else ABSENT
            known, version = writer.known.get(path, (ABSENT, 0))
            if path in writer.unsure:
                assert content in (known, writer.unsure[path]), (path, content, known)
            else:
                assert content == known, f"{path}: {content} instead of {known}"
            if item and content == known and known is not ABSENT and path not in writer.unsure:
                assert int(item["metadata"]["resourceVersion"]) == version, path
        writer.known = {path: (content_of(item), int(item["metadata"]["resourceVersion"]))
                        for path, item in mine.items()}
        writer.unsure = {}


def read(api):
    """{path: object}, and the version of the last list."""
    stored = {}
    for collection in (MAPS, CLAIMS):
        listed = api.must("GET", collection)
        stored |= {f"{collection}/{item['metadata']['name']}": item for item in listed["items"]}
    return stored, int(listed["metadata"]["resourceVersion"])


def test_kill_at_random_moments(make_node):
    # Plain HTTP: handshakes would be most of the time.
    node = make_node("--insecure-http").start()
    chance = random.Random()
    started = time.monotonic()
    writers = [Writer(node.api(), number, chance.random()) for number in range(N_WRITERS)]
    n_writes = n_events = n_unsure = newest = 0
    slowest = 0.0
    for _ in range(kill_rounds()):
        follower = Follower(node.api())
        for thread in (follower, *writers):
            thread.start()
        before = [writer.n_done for writer in writers]
        until(lambda: any(w.n_done > n for w, n in zip(writers, before)) or writers[0].trouble,
              PATIENCE_S, "a first write")
        time.sleep(chance.uniform(0, 0.04))
        node.proc.kill()
        for thread in (follower, *writers):
            thread.join(PATIENCE_S)
            assert not thread.is_alive()
        assert not any(writer.trouble for writer in writers), [w.trouble for w in writers]
        n_unsure += sum(len(writer.unsure) for writer in writers)
        n_events += follower.n_events
        newest = max(newest, follower.version,
                     *(version for writer in writers for _, version in writer.known.values()))
        restarted = time.monotonic()
        node.start()
        slowest = max(slowest, time.monotonic() - restarted)
        api = node.api()
        stored, version = read(api)
        assert version >= newest, f"the version went back from {newest} to {version}"
        newest = version
        check(stored, writers)
        api.disconnect()
        n_writes += sum(writer.n_done for writer in writers)
        fresh = [Writer(node.api(), writer.number, chance.random()) for writer in writers]
        for new, old in zip(fresh, writers):
            new.known = old.known
        writers = fresh
    print(
        f"kill -9: {kill_rounds()} rounds, {n_writes} writes acknowledged and {n_events} events told, "
        f"none lost; {n_unsure} without an answer, none half there; versions never went back; "
        f"slowest start {slowest * 1e3:.0f} ms, {time.monotonic() - started:.1f} s"
    )
