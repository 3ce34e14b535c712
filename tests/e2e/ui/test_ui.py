"""The page at /ui, in a real browser."""

import nodes
from claim_nodes import make_claim
from claim_nodes import pod as claim_pod
from leases import Taking, give, want
from procs import until
from servers import CLAIMS, PODS, claim

GPU = "gpu.example.com"
MARKUP = "<img src=x onerror=alert(1)><script>alert(2)</script>&lt;b&gt;"


def add_pending(api):
    """A claim that nothing fits, the pod that waits for it, and what was said about them."""
    api.must("POST", CLAIMS, claim("big"))
    made = api.must("POST", PODS, {
        "metadata": {"name": "wants-big", "annotations": {"note": MARKUP}},
        "spec": {
            "containers": [{"name": "main", "image": "x",
                            "resources": {"claims": [{"name": "big"}]}}],
            "resourceClaims": [{"name": "big", "resourceClaimName": "big"}],
        },
    })
    made["status"] = {"phase": "Pending", "conditions": [{
        "type": "PodScheduled", "status": "False", "reason": "Unschedulable",
        "message": "0/1 nodes are available: 1 cannot allocate all claims",
    }]}
    api.must("PUT", f"{PODS}/wants-big/status", made)
    add_event(api, "big", "AllocationFailed", f"no device fits {MARKUP}")


def add_event(api, about, reason, message):
    api.must("POST", "/api/v1/namespaces/default/events", {
        "metadata": {"generateName": "e-"}, "reason": reason, "message": message,
        "type": "Warning", "source": {"component": "test"},
        "firstTimestamp": "2030-01-01T00:00:00Z", "lastTimestamp": "2030-01-01T00:00:00Z",
        "involvedObject": {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim",
                           "namespace": "default", "name": about},
    })


def populate(node, api):
    """Some of everything: devices in each state, claims and pods that run and that wait."""
    gpus = node.add_plugin("example.com/gpu", 12, "--numa", "0,1")
    node.add_plugin("example.com/nic", 4)
    node.add_driver(GPU, 8, "--numa", "0,1", "--model", "t9")
    for name, n in (("train-0", 3), ("train-1", 2)):
        pod = nodes.pod(name, ("main", {"example.com/gpu": str(n)}))
        assert node.admit(pod).admitted
    make_claim(api, "fast", (GPU, "device-2"), pods=["with-claim"])
    assert node.admit(claim_pod("with-claim", {"gpu": "fast"})).admitted
    make_claim(api, "late", ("nic.example.com", "nic-0"), pods=["late-0"])
    node.admit_later(claim_pod("late-0", {"nic": "late"}), wait=300)
    node.wait_awaited("late-0", "nic.example.com")
    gpus.must("health virtual-7 unhealthy")
    add_pending(api)
    return gpus


def test_the_node_as_a_map(node, api, browser, tmp_path):
    gpus = populate(node, api)
    browser.tell("open", url=node.url(node.token))
    browser.until_text("#link", "live")
    browser.until_legend(free=17, held=6, unhealthy=1, preparing=1, tainted=0, gone=0, bad=1)
    browser.until_text("#waiting", "AllocationFailed")
    browser.until_text("#waiting", "1 cannot allocate all claims")

    assert browser.eval("location.hash + location.search") == ""
    assert browser.text("#node") == "n1"
    assert "0.2.0" in browser.text("#about")
    assert "example.com/nic" in browser.text("#devices") and GPU in browser.text("#devices")
    claims = browser.text("#claims")
    assert "fast" in claims and "prepared" in claims and "device-2" in claims
    waiting = browser.text("#waiting")
    assert "late-0" in waiting and "waits for" in waiting and "nic.example.com" in waiting
    assert waiting.count("1 cannot allocate all claims") == 1  # of the pod, not again of its claim
    browser.tell("shot", path=str(tmp_path / "light.png"), whole=True)

    # Who holds it, and what has happened to it while the page looks.
    browser.tell("hover", selector=".strip canvas", x=5, y=5)
    card = browser.text("#card")
    assert "virtual-0" in card and "default/train-0 (main)" in card and "no change" in card
    gpus.must("health virtual-0 unhealthy")
    browser.until_legend(held=6, unhealthy=1, bad=2)  # who has it has it still
    browser.until_text("#waiting", "main: example.com/gpu virtual-0 Unhealthy")
    browser.tell("hover", selector=".strip canvas", x=5, y=5)  # the row above has moved the map
    browser.until_text("#card", "held → held, unhealthy")
    gpus.must("health virtual-0 healthy")
    browser.until_legend(held=6, unhealthy=1, bad=1)
    node.release("uid-train-0")
    browser.until_legend(free=20, held=3, unhealthy=1)
    browser.tell("hover", selector=".strip canvas", x=5, y=5)
    browser.until_text("#card", "held → free, was default/train-0 (main)")
    browser.tell("shot", path=str(tmp_path / "card.png"))

    # Markup is text, wherever it comes from.
    assert MARKUP in browser.text("#events") and MARKUP in browser.text("#waiting")
    assert browser.eval("document.querySelectorAll('main img, main script').length") == 0
    assert browser.complaints() == []


def test_a_device_has_the_colour_of_its_state(node, api, browser, tmp_path):
    nics = node.add_plugin("example.com/nic", 5)
    driver = node.add_driver(GPU, 4)
    make_claim(api, "bad", (GPU, "device-0"), pods=["p0"])
    assert node.admit(claim_pod("p0", {"gpu": "bad"})).admitted
    driver.must("hang prepare")
    make_claim(api, "slow", (GPU, "device-1"), pods=["p1"])
    slow = node.admit_later(claim_pod("p1", {"gpu": "slow"}))
    driver.must("health device-0 unhealthy the fan is slow")
    nics.must("quit")
    browser.tell("open", url=node.url(node.token), width=900, height=620, scheme="dark")
    browser.until_legend(free=2, preparing=1, unhealthy=0, gone=5, held=1, bad=1)
    browser.until_text("#claims", "preparing")
    browser.tell("hover", selector="article:last-child canvas", x=5, y=5)
    assert "Unhealthy: the fan is slow" in browser.text("#card") and "default/bad (p0)" in browser.text("#card")
    browser.tell("shot", path=str(tmp_path / "states.png"))
    driver.must("hang off")
    assert slow.result().admitted
    browser.until_legend(held=2, preparing=0)
    browser.tell("scheme", scheme="light")
    browser.tell("hover", selector="article:last-child canvas", x=27, y=5)
    browser.until_text("#card", "preparing → held, default/slow (p1)")
    assert browser.complaints() == []


def test_the_page_is_usable_by_keyboard_and_on_a_phone(node, api, browser, tmp_path):
    populate(node, api)
    browser.tell("open", url=node.url(), width=360, height=740, scheme="dark", ratio=2)
    browser.until("document.activeElement.id === 'token'")
    browser.tell("shot", path=str(tmp_path / "ask.png"))
    browser.tell("fill", selector="#token", value="not-a-token")
    browser.tell("press", key="Enter")
    browser.until_text("#ask-error", "not, or no longer, good")
    assert all("401" in one for one in browser.complaints())
    browser.tell("fill", selector="#token", value=node.token)
    browser.tell("press", key="Enter")
    browser.until_legend(free=17, held=6, unhealthy=1)
    browser.until_text("#claims", "big")
    assert browser.eval("document.documentElement.scrollWidth") <= 360
    assert browser.eval("localStorage.length") == 0
    browser.tell("shot", path=str(tmp_path / "phone.png"), whole=True)

    # By keyboard alone: to the first device, on to the next one, and to the next NUMA node.
    browser.tell("focus", selector="#waiting tr:last-child a")
    browser.tell("press", key="Tab")
    browser.until_text("#card", "virtual-0")
    browser.tell("press", key="ArrowRight")
    browser.until_text("#card", "virtual-2")
    assert "virtual-2, held" in browser.text("#spoken")
    browser.tell("press", key="Tab")
    browser.until_text("#card", "virtual-1\n")
    browser.tell("press", key="Escape")
    browser.until("document.getElementById('card').hidden")

    browser.tell("fill", selector="#filter", value="wants-big")
    browser.until_text("#pods h2", "1 of")
    assert "with-claim" not in browser.text("#pods")
    assert browser.complaints() == []


def test_ten_thousand_devices_stay_fluid(make_node, browser, tmp_path):
    node = make_node("--insecure-http").start()
    plugin = node.add_plugin("example.com/port", 10000, "--numa", "0,1,2,3")
    browser.tell("open", url=node.url(node.token), width=1440, height=900)
    browser.until_legend(free=10000)
    browser.eval("""
        window.frames = [];
        let last = performance.now();
        const step = (now) => { frames.push(now - last); last = now; requestAnimationFrame(step); };
        requestAnimationFrame(step);
    """)
    for i in range(8):
        browser.tell("hover", selector=".strip canvas", x=40 + 100 * i, y=5 + 9 * i)
        plugin.must(f"health virtual-{i} unhealthy")
    browser.until_legend(unhealthy=8)
    frames = sorted(browser.eval("frames"))
    print(f"frames: {len(frames)}, median {frames[len(frames) // 2]:.0f} ms, longest {frames[-1]:.0f}")
    assert frames[len(frames) // 2] < 40 and frames[-1] < 1000, frames[-5:]
    browser.tell("shot", path=str(tmp_path / "many.png"))
    assert browser.complaints() == []


def test_a_page_outlives_the_daemon(node, api, browser):
    node.add_plugin("example.com/gpu", 2)
    browser.tell("open", url=node.url(node.token))
    browser.until_legend(free=2)
    node.kill()
    browser.until_text("#link", "connection lost")
    assert browser.legend()["free"] == 2  # what was known stays in sight
    node.start()
    browser.until_text("#link", "live")
    node.wait_devices("example.com/gpu", 2, timeout_s=40)
    browser.until_legend(free=2)
    assert all("ERR_" in one for one in browser.complaints())


def test_who_may_not_see_all_sees_what_he_may(node, api, browser):
    node.add_driver(GPU, 3)
    tokens = {
        name: api.must("POST", "/davit/v1/tokens", wish)["token"]
        for name, wish in (("node", {"node": "n1"}), ("other", {"node": "n2"}),
                           ("driver", {"node": "n1", "driver": GPU}))
    }
    browser.tell("open", url=node.url(tokens["node"]))
    browser.until_legend(free=3)
    browser.until_text("#claims", "This token may not see them.")
    for name in ("other", "driver"):
        browser.tell("open", url=node.url(tokens[name]))
        browser.until_text("#ask-error", "cannot get path")
        assert node.api(token=tokens[name]).ask("GET", "/davit/v1/node").status == 403


def test_the_document_of_the_node(node, api):
    node.add_plugin("example.com/gpu", 2, "--numa", "1")
    doc = api.must("GET", "/davit/v1/node")
    assert doc["node_name"] == "n1" and doc["pods"] == [] and doc["claims"] == []
    device = {"id": "virtual-0", "healthy": True, "numa_nodes": [1], "holders": [],
              "state": "free", "trouble": ""}
    assert doc["resources"][0]["devices"][0] == device
    with api.watch("/davit/v1/node") as watch:
        first = watch.next()
        assert first["resources"] == doc["resources"] and first["plugins"] == doc["plugins"]
        assert node.admit(nodes.pod("p", ("main", {"example.com/gpu": "1"}))).admitted
        changed = watch.until(lambda change: change.get("pods"))[-1]
        assert changed["pods"][0]["state"] == "admitted" and "plugins" not in changed
        assert node.stop() == 0  # who watches does not keep it
        while watch.next() is not None:
            pass  # to a proper end


def test_files_are_kept_by_browsers_until_they_change(node):
    nobody = node.api(token=None)
    page = nobody.ask("GET", "/ui")
    assert page.status == 200 and page.fields["Content-Type"].startswith("text/html")
    policy = page.fields["Content-Security-Policy"]
    assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self'")
    assert page.fields["X-Content-Type-Options"] == "nosniff"
    again = nobody.ask("GET", "/ui", If_None_Match=page.fields["ETag"])
    assert (again.status, again.body) == (304, b"")
    assert nobody.ask("GET", "/ui/main.js").fields["Content-Type"].startswith("text/javascript")
    assert nobody.ask("HEAD", "/ui/style.css").status == 200
    assert nobody.ask("POST", "/ui").status == 405
    assert nobody.ask("GET", "/ui/../davit").status == 404
    assert nobody.ask("GET", "/uix").status == 401
    assert nobody.ask("GET", "/davit/v1/node").status == 401


def test_a_reader_who_is_slow_gets_the_newest(node, api):
    plugin = node.add_plugin("example.com/port", 10000)
    with api.watch("/davit/v1/node") as watch:
        before = node.proc.rss_bytes()
        for i in range(40):
            plugin.must(f"health virtual-{i} unhealthy")
        until(lambda: node.resource("example.com/port").allocatable == 9960, 40, "40 bad ones")
        n_documents = 0
        n_bad = 0
        while n_bad < 40:
            doc = watch.next()
            n_documents += 1
            for resource in doc.get("resources", []):
                n_bad = sum(not device["healthy"] for device in resource["devices"])
        assert n_documents < 20
        assert node.proc.rss_bytes() - before < 200 << 20


def test_leases_are_shown_beside_pods(node, api, browser):
    node.add_plugin("example.com/gpu", 2)
    taking = Taking(node, command=["/usr/bin/train.py"], **want(node, "example.com/gpu", 2))
    lease = taking.next("granted").lease
    waiting = Taking(node, command=["late.py"], **want(node, "example.com/gpu", 1))
    place = waiting.next("waiting")
    browser.tell("open", url=node.url(node.token))
    browser.until_text("#leases", f"{lease.id} train.py of {lease.user}")
    browser.until_text("#leases", f"{place.lease} late.py of")
    browser.until_text("#waiting", "waits for 1 example.com/gpu, 1 in the queue")
    assert f"lease-{lease.id}" not in browser.text("#pods")
    browser.tell("hover", selector=".strip canvas", x=5, y=5)
    browser.until_text("#card", f"lease {lease.id} of {lease.user}")
    give(node, lease.id)
    browser.until("document.getElementById('waiting').hidden")
    waiting.cancel()
