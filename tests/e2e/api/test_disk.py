"""Disks that are full, read-only or gone: Status errors, nothing acknowledged is lost, and it goes
on when the disk does."""

import os
import subprocess

import pytest

from disks import Ext4
from procs import until
from servers import MAPS, PATIENCE_S, config_map

pytestmark = pytest.mark.release

TEXT = "x" * 30000


def write_until_refused(api, acknowledged):
    """Returns the name and the answer of the first write that fails."""
    for number in range(1000):
        name = f"m{number:03}"
        answer = api.ask("POST", MAPS, config_map(name, {"t": TEXT}))
        if answer.status != 201:
            return name, answer
        acknowledged.append(name)
    raise AssertionError("the disk never became full")


def names(api):
    return [item["metadata"]["name"] for item in api.must("GET", MAPS)["items"]]


def check_refusal(answer):
    doc = answer.doc
    assert answer.status in (500, 503, 507), answer
    assert (doc["kind"], doc["status"], doc["code"]) == ("Status", "Failure", answer.status)
    assert doc["message"] and doc.get("reason")


def test_a_full_disk(small_disk, make_node):
    node = make_node().start()
    api = node.api()
    acknowledged = []
    api.must("POST", MAPS, config_map("first", {"t": "1"}))
    small_disk.fill()
    refused, answer = write_until_refused(api, acknowledged)
    check_refusal(answer)
    known = ["first", *acknowledged]
    for method, path, body in (
        ("PUT", f"{MAPS}/first", config_map("first", {"t": TEXT})),
        ("POST", MAPS, config_map(refused, {"t": TEXT})),
    ):
        check_refusal(api.ask(method, path, body))
    assert names(api) == known  # what was refused is not there, and can be read
    assert api.must("GET", f"{MAPS}/first")["data"] == {"t": "1"}
    version = api.must("GET", MAPS)["metadata"]["resourceVersion"]

    small_disk.empty()
    until(lambda: api.ask("POST", MAPS, config_map(refused)).status == 201, PATIENCE_S,
          "writes work again")
    with api.watch(f"{MAPS}?resourceVersion={version}") as watch:
        event = watch.next()  # and only that was ever told
        assert (event["type"], event["object"]["metadata"]["name"]) == ("ADDED", refused)
    until(lambda: api.ask("GET", "/readyz").status == 200, PATIENCE_S, "it is ready again")
    before = api.must("GET", MAPS)["items"]
    node.kill()
    node.start()
    assert node.api().must("GET", MAPS)["items"] == before


def test_a_full_disk_at_the_start(small_disk, make_node):
    node = make_node()
    small_disk.fill()
    node.start(ready=False)
    if node.proc.is_alive:
        until(lambda: "ready" in node.proc.lines or not node.proc.is_alive, PATIENCE_S,
              "it serves or ends")
    if node.proc.is_alive:
        check_refusal(node.api().ask("POST", MAPS, config_map("m")))
        assert node.stop() == 0
    else:
        assert node.proc.wait() > 0 and node.proc.log.strip(), node.proc.describe()
    small_disk.empty()
    node.start()
    node.api().must("POST", MAPS, config_map("m"))


def test_state_that_is_read_only(small_disk, make_node):
    node = make_node().start()
    node.api().must("POST", MAPS, config_map("m", {"a": "1"}))
    assert node.stop() == 0
    subprocess.run(["mount", "-o", "remount,ro", small_disk.path], check=True)
    node.start(ready=False)
    assert node.proc.wait(PATIENCE_S) > 0, node.proc.describe()  # and says why
    assert small_disk.path in node.proc.log and "ead-only" in node.proc.log, node.proc.log
    subprocess.run(["mount", "-o", "remount,rw", small_disk.path], check=True)
    node.start()
    assert node.api().must("GET", f"{MAPS}/m")["data"] == {"a": "1"}


def test_a_disk_that_is_pulled_out(short_dir, make_node):
    disk = Ext4(os.path.join(short_dir, "s")).mount()
    try:
        node = make_node().start()
        api = node.api()
        for number in range(20):
            api.must("POST", MAPS, config_map(f"m{number}"))
        before = api.must("GET", MAPS)["items"]
        disk.lose()
        check_refusal(api.ask("POST", MAPS, config_map("lost")))
        assert api.must("GET", MAPS)["items"] == before  # reads go on
        node.kill()
        disk.unmount()
        disk.mount()
        node.start()
        assert node.api().must("GET", MAPS)["items"] == before
        assert node.stop() == 0
    finally:
        disk.unmount()
