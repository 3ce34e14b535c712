"""The page at the widths that it is looked at: nothing that matters is cut, and it looks as it did."""

import fleets
import pictures
import pytest

SIZES = {390: 844, 820: 1180, 1280: 860, 1920: 1080}

# Of every cell in the column that says why: that all of it is on the screen, and none of it cut.
REASONS_ARE_WHOLE = """[...document.querySelectorAll('#waiting td.text')].every((cell) => {
    const box = cell.getBoundingClientRect();
    return box.width > 150 && box.left >= 0 && box.right <= innerWidth && cell.scrollWidth <= cell.clientWidth + 1;
}) && document.documentElement.scrollWidth <= innerWidth"""


def look(browser, name, tmp_path):
    path = str(tmp_path / f"{name}.png")
    browser.tell("shot", path=path)
    pictures.check(name, path)


def test_the_reason_is_in_sight_at_every_width(node, api, browser, tmp_path):
    fleets.populate(node, api)
    browser.tell("open", url=node.url(node.token), width=390, height=844)
    # What is held and gone is both, and what is tainted or unhealthy is not free.
    browser.until_legend(free=12, held=7, preparing=1, tainted=1, unhealthy=1, gone=3, bad=3)
    browser.until_text("#waiting", fleets.WHY)
    browser.until_text("#waiting", "waits for driver nic.example.com")
    browser.until_text("#claims", "big")
    for scheme, back in (("light", "rgb(246, 247, 248)"), ("dark", "rgb(16, 19, 23)")):
        browser.tell("scheme", scheme=scheme)
        browser.until(f"getComputedStyle(document.body).backgroundColor === '{back}'")
        for width, height in SIZES.items():
            browser.tell("size", width=width, height=height)
            browser.until(f"innerWidth === {width}")
            browser.tell("settle")
            assert browser.eval(REASONS_ARE_WHOLE), f"{width} {scheme}"
            look(browser, f"node-{width}-{scheme}", tmp_path)
    assert browser.complaints() == []


def test_a_fleet_is_a_map(node, api, browser, tmp_path):
    fleets.populate(node, api)
    fleets.add_node(api, "n2", example_com_gpu=0)
    fleets.add_slice(api, "n2", 16)
    fleets.add_node(api, "n3", ready=False)
    fleets.add_slice(api, "n3", 4)
    browser.tell("open", url=node.url(node.token), width=1280, height=860)
    browser.until_text("#node", "All nodes")
    browser.until("document.querySelectorAll('#overview .node').length === 3")
    browser.until_text("#overview", "davitd has not told anything for 40 s")
    browser.until_legend(free=28, held=7, gone=7, bad=3)
    browser.until_text("#waiting", fleets.WHY)
    browser.until_text("#claims", "big")
    look(browser, "fleet-1280-light", tmp_path)
    browser.tell("scheme", scheme="dark")
    browser.tell("size", width=390, height=844)
    browser.until("getComputedStyle(document.body).backgroundColor === 'rgb(16, 19, 23)'")
    browser.tell("settle")
    look(browser, "fleet-390-dark", tmp_path)

    # A node that nobody has told anything of is not said to be ready.
    api.must("POST", "/api/v1/nodes", {"metadata": {"name": "n4"}})
    browser.until("[...document.querySelectorAll('#overview .node')].some("
                  "(card) => card.innerText.includes('n4') && card.innerText.includes('unknown'))")
    api.must("DELETE", "/api/v1/nodes/n4")

    # One of them, by its card and by the switch; and back.
    browser.tell("click", selector="#overview a[href='#node=n2']")
    browser.until_text("#node", "n2")
    browser.until_legend(free=16, held=0, gone=0)
    assert browser.eval("document.getElementById('overview').hidden")
    browser.tell("choose", selector="#node-select", value="n3")
    browser.until_text("#node", "n3")
    browser.until_text("#trouble", "davitd has not told anything")
    browser.until_legend(free=0, gone=4)
    browser.tell("choose", selector="#node-select", value="*")
    browser.until_text("#node", "All nodes")
    assert browser.complaints() == []


def test_a_large_fleet_says_what_it_leaves_out(node, api, browser):
    for i in range(203):
        fleets.add_node(api, f"m{i}")
    browser.tell("open", url=node.url(node.token), width=1280, height=860)
    browser.until("document.querySelectorAll('#overview .node').length === 200")
    browser.until_text("#overview", "and 4 more: the filter finds them by name, the switch above has all")
    browser.tell("fill", selector="#filter", value="m202")
    browser.until("document.querySelectorAll('#overview .node').length === 1")
    browser.until("document.querySelector('#overview').innerText.includes('m202')")
    assert "more:" not in browser.text("#overview")


def test_an_empty_page_says_what_comes_next(node, api, browser, tmp_path):
    browser.tell("open", url=node.url(node.token), width=820, height=1180)
    browser.until_text("#devices", "davitd --offer")
    browser.until_text("#pods", "davit apply -f pod.yaml")
    browser.until_text("#leases", "davit run example.com/gpu=1 -- COMMAND")
    assert browser.eval("document.getElementById('waiting').hidden")
    look(browser, "empty-820-light", tmp_path)


@pytest.mark.parametrize("width", (390, 1280))
def test_devices_pods_and_claims_lead_to_each_other(node, api, browser, tmp_path, width):
    fleets.populate(node, api)
    browser.tell("open", url=node.url(node.token), width=width, height=SIZES[width])
    browser.until_legend(held=7, gone=3)
    browser.until_text("#waiting", fleets.WHY)
    browser.until_text("#claims", "device-2")
    browser.until_text("#claims", "big")
    browser.tell("click", selector="#claims a[href*='claim%3Adefault%2Ffast']")
    browser.until_text("#details h2", "default/fast")
    browser.until_text("#details", "All that it claims is allocated.")
    browser.tell("click", selector="#details a.id")
    browser.until_text("#details h2", "device-2")
    browser.until_text("#details", "default/fast of with-claim")
    browser.tell("click", selector="#details a[href*='pod%3Adefault%2Fwith-claim']")
    browser.until_text("#details h2", "default/with-claim")
    browser.until_text("#details", "device-2")
    look(browser, f"pod-{width}-light", tmp_path)
    browser.tell("back")
    browser.until_text("#details h2", "device-2")
    browser.tell("click", selector="#details .shut")
    browser.until("document.getElementById('details').hidden")
    browser.tell("hover", selector=".strip canvas", x=5, y=5)
    browser.tell("click", selector=".strip canvas", x=5, y=5)
    browser.until_text("#details", "default/train-0 (main)")
    browser.until_text("#details", "held, unhealthy")
    browser.tell("press", key="Escape")
    browser.until("document.getElementById('details').hidden")
