"""One list of devices: davit devices, status and top, the page's documents and PodResources tell the same."""

import json
import re

import pytest

from leases import Taking, give
from procs import until
from servers import CLAIMS, NODES, PODS
from whole_nodes import (
    CLASSES, DEV, GPU, RULES, WAIT_S, claim, device_class, get, pod, rule, wait_ready,
)

pytestmark = pytest.mark.release

WORDS = ("free", "held", "blocked", "tainted", "unhealthy", "gone")


def counts_of(text):
    """{"free": 3, ...} of "3 free, 2 held (1 leased), 1 tainted"."""
    found = {word: int(n) for n, word in re.findall(r"(\d+) (\w+)", text)}
    return {word: found.get(word, 0) for word in WORDS}


def told(counts):
    return {word: int(counts.get(word, 0)) for word in WORDS}


def shown_by_devices(node):
    states = [line.split("   ") for line in node.davit("devices", "--no-headers").stdout.splitlines()]
    states = [[cell.strip() for cell in line if cell.strip()] for line in states]
    return {word: sum(row[2].split(",")[0] == word for row in states) for word in WORDS}


def all_counts(node, api):
    """What each way of looking says, by its name."""
    status = node.davit("status").stdout
    top = node.davit("top", "--once", "--kubeconfig", node.kubeconfig).stdout
    page = api.must("GET", "/davit/v1/node")
    listed = json.loads(node.davit("devices", "-o", "json").stdout)
    states = [d["state"] for group in listed["resources"] + listed["pools"] for d in group["devices"]]
    return {
        "status": counts_of(re.search(r"^devices +\d+: (.*)$", status, re.M)[1]),
        "top": counts_of(top.splitlines()[0].split("up ")[1].split("  ", 1)[1]),
        "page": told(page["counts"]),
        "list": told(listed["counts"]),
        "states": {word: states.count(word) for word in WORDS},
        "table": shown_by_devices(node),
    }


def held_by_pods(node):
    """How many devices PodResources says that containers have, of plugins and of drivers."""
    containers = [c for one in node.podres_list() for c in one.containers]
    return (sum(len(entry.device_ids) for c in containers for entry in c.devices),
            sum(len(one.claim_resources) for c in containers for one in c.dynamic_resources))


def check_same(node, api, **want):
    expected = {word: want.get(word, 0) for word in WORDS}
    until(lambda: all(one == expected for one in all_counts(node, api).values()), WAIT_S,
          lambda: f"{expected}: {all_counts(node, api)}")
    assert sum(expected.values()) == len(node.davit("devices", "--no-headers").stdout.splitlines())


def test_every_list_has_the_same_devices(node, driver):
    api = node.api()
    plugin = node.start_plugin(3)
    until(lambda: get(api, NODES, "n1")["status"]["capacity"].get(DEV) == "3", WAIT_S, "capacity")
    check_same(node, api, free=7)

    api.must("POST", CLASSES, device_class())
    api.must("POST", CLAIMS, claim("c1", count=2))
    api.must("POST", PODS, pod("p1", of_claim="c1", limits={DEV: 1}))
    wait_ready(api, "p1")
    check_same(node, api, free=4, held=3)
    assert held_by_pods(node) == (1, 2)
    rows = node.davit("devices", "-o", "wide").stdout
    assert rows.count("default/p1") == 3 and rows.count("default/c1") == 2, rows
    for holder in [h for pool in api.must("GET", "/davit/v1/node")["pools"]
                   for d in pool["devices"] for h in d["holders"]]:
        assert (holder["claim"], holder["claim_state"]) == ("default/c1", "prepared")
        assert holder["pod"]["name"] == "p1" and int(holder["since_ms"]) > 0

    # A device that is held and tainted is held, and says that it is tainted; a free one is tainted.
    api.must("POST", RULES, rule("all", effect="NoSchedule", driver=GPU))
    check_same(node, api, free=2, held=3, tainted=2)
    assert "held, tainted" in node.davit("devices").stdout
    assert "(2 not well)" in node.davit("status").stdout
    api.must("DELETE", f"{RULES}/all")
    check_same(node, api, free=4, held=3)

    free = re.search(rf"^{GPU} +(\S+) +free", node.davit("devices").stdout, re.M)[1]
    driver.must(f"health {free} unhealthy too-hot")
    check_same(node, api, free=3, held=3, unhealthy=1)
    assert "too-hot" in node.davit("devices", "-o", "wide").stdout

    plugin.stop()
    until(lambda: "gone" in node.davit("devices").stdout, WAIT_S, "the plugin is missed")
    check_same(node, api, free=1, held=3, unhealthy=1, gone=2)
    assert "held, gone" in node.davit("devices", DEV).stdout
    assert DEV not in node.davit("devices", GPU).stdout


def test_a_lease_is_a_holder_like_any_other(node, driver):
    api = node.api()
    api.must("POST", CLASSES, device_class())
    until(lambda: "free" in node.davit("devices").stdout, WAIT_S, "the devices")
    taken = Taking(node, devices=[node.pb.LeaseDevices(device_class="gpu")])
    lease = taken.next("granted").lease
    check_same(node, api, free=3, held=1)
    status = node.davit("status").stdout
    assert "1 held (1 leased)" in status
    # It is no pod, wherever pods are listed and counted.
    assert re.search(r"^pods +0\nleases +1$", status, re.M) and f"lease-{lease.id}" not in status, status
    assert node.davit("status", "-o", "name").stdout == ""
    shown = node.davit("top", "--once", "--kubeconfig", node.kubeconfig).stdout
    assert f"lease/{lease.id}" in shown and f"default/lease-{lease.id}  admitted" not in re.sub(" +", "  ", shown), shown
    (told,) = api.must("GET", "/davit/v1/node")["pods"]
    assert told["lease"] == lease.id
    assert re.search(rf"held +0 +\d+s +lease/{lease.id} of {lease.user}", node.davit("devices").stdout)
    give(node, lease.id)
    check_same(node, api, free=4)


def test_what_others_have_the_counters_of_is_blocked(node):
    """Of a device that also comes in two parts the whole is taken, or one part: then the whole is not free."""
    api = node.api()
    node.start_driver(2, "--partitions", "2")
    check_same(node, api, free=6)
    api.must("POST", CLASSES, device_class())
    api.must("POST", CLAIMS, claim("c1"))
    api.must("POST", PODS, pod("p1", of_claim="c1"))
    wait_ready(api, "p1")
    (held,) = get(api, CLAIMS, "c1")["status"]["allocation"]["devices"]["results"]
    is_whole = "part" not in held["device"]
    check_same(node, api, free=3 if is_whole else 4, held=1, blocked=2 if is_whole else 1)
    rows = [line for line in node.davit("devices").stdout.splitlines() if " blocked " in line]
    assert rows and all(line.endswith(f"shared with {held['device']}") for line in rows), rows
    assert re.search(r"(memory|cores) of device-\d: \w+ wanted, \w+ left", node.davit("devices", "-o", "wide").stdout)
    assert f"shared with {held['device']}" in node.davit("top", "--once", "--kubeconfig", node.kubeconfig).stdout
    api.must("DELETE", f"{PODS}/p1?gracePeriodSeconds=0")
    api.must("DELETE", f"{CLAIMS}/c1")
    check_same(node, api, free=6)
