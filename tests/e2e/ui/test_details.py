"""What the page asks the server for: why something waits, logs, and a token for its link."""

import os
import re

from claim_nodes import make_claim
from fleets import GPU, add_node
from nodes import run_davit
from procs import until
from servers import CLAIMS, PODS, RESOURCE

ALL_ROLES = ("--roles", "api,control,sched,node")


def add_waiting_pod(api):
    """A pod that wants two devices of one with more memory than any has."""
    api.must("POST", f"{RESOURCE}/v1/deviceclasses", {"metadata": {"name": "gpu"}, "spec": {"selectors": [
        {"cel": {"expression": f'device.driver == "{GPU}"'}}]}})
    api.must("POST", CLAIMS, {"metadata": {"name": "big"}, "spec": {"devices": {"requests": [
        {"name": "gpu", "exactly": {"deviceClassName": "gpu", "count": 9}}]}}})
    api.must("POST", PODS, {"metadata": {"name": "train"}, "spec": {
        "containers": [{"name": "main", "image": "x", "resources": {"claims": [{"name": "big"}]}}],
        "resourceClaims": [{"name": "big", "resourceClaimName": "big"}]}})


def test_a_pod_says_device_by_device_why_it_waits(make_node, browser):
    node = make_node(*ALL_ROLES).start()
    api = node.api()
    node.add_driver(GPU, 3, "--numa", "0,1")
    add_waiting_pod(api)
    until(lambda: api.must("GET", f"{PODS}/train").get("status", {}).get("conditions"), 40, "the scheduler's word")

    told = api.must("GET", "/davit/v1/explain/pods/default/train")
    assert told["subject"] == "pod default/train"
    assert told["summary"] == "It cannot be allocated on n1."
    request = told["nodes"][0]["requests"][0]
    assert (told["nodes"][0]["node"], request["wanted"], len(request["devices"])) == ("n1", 9, 3)
    assert request["devices"][0]["device"] == "device-0" and request["devices"][0]["why"]
    assert api.must("GET", "/davit/v1/explain/claims/default/big")["nodes"] == told["nodes"]
    assert api.ask("GET", "/davit/v1/explain/pods/default/nobody").status == 404
    assert api.ask("POST", "/davit/v1/explain/pods/default/train").status == 405
    of_node = api.must("POST", "/davit/v1/tokens", {"node": "n1"})["token"]
    assert node.api(token=of_node).ask("GET", "/davit/v1/explain/pods/default/train").status == 403

    browser.tell("open", url=node.url(node.token))
    browser.until_text("#waiting", "9 wanted")
    browser.tell("click", selector="#waiting a")
    browser.until_text("#details", "It cannot be allocated on n1.")
    # The same is to be said of all three, and said once.
    browser.until_text("#details .reasons", "device-0, device-1, device-2")
    browser.until("document.querySelectorAll('#details .reason').length === 1")
    browser.tell("click", selector="#details .reason a")
    browser.until_text("#details h2", "device-0")

    # The address of what is shown says the same to whom it is sent.
    browser.tell("open", url=f"{node.url(node.token)}&show=pod%3Adefault%2Ftrain")
    browser.until_text("#details", "It cannot be allocated on n1.")
    assert browser.complaints() == []


def add_pod_on(api, node, name, **status):
    """A pod whose containers are as the node says."""
    made = api.must("POST", PODS, {"metadata": {"name": name}, "spec": {
        "nodeName": node, "containers": [{"name": "main", "image": "registry.example/x:1"}]}})
    made["status"] = {"phase": "Pending", "containerStatuses": [
        {"name": "main", "image": "registry.example/x:1", "imageID": "", "ready": False, "restartCount": 0, **status}]}
    api.must("PUT", f"{PODS}/{name}/status", made)


def test_a_pod_says_what_its_containers_say(node, api, browser):
    """Why an image does not come, and what ends again and again although its pod is Running."""
    add_node(api, "n2")
    add_pod_on(api, "n2", "no-image", state={"waiting": {"reason": "ErrImagePull", "message": "no route to registry.example"}})
    add_pod_on(api, "n2", "fails", restartCount=3, state={"terminated": {"exitCode": 7, "reason": "Error"}})
    add_pod_on(api, "n2", "starts", state={"waiting": {"reason": "ContainerCreating"}})
    browser.tell("open", url=node.url(node.token))
    browser.until_text("#waiting", "main: ErrImagePull: no route to registry.example")
    browser.until_text("#waiting", "main: Error: it ended with 7, 3 restarts")
    assert "starts" not in browser.text("#waiting").split()
    # There are no devices to explain one by one.
    browser.tell("click", selector="#waiting a[href*='fails']")
    browser.until_text("#details", "it ended with 7")
    browser.tell("settle")
    assert browser.eval("document.querySelector('#details .explain').hidden")
    assert browser.complaints() == []


def test_a_link_signs_in_once(node, api, browser):
    node.add_plugin("example.com/gpu", 2)
    done = run_davit("ui", "--kubeconfig", node.kubeconfig)
    assert done.returncode == 0, done.stderr
    link = done.stdout.strip()
    assert re.fullmatch(rf"https?://127\.0\.0\.1:{node.port}/ui#link=[\w-]+&id=\w+", link), link
    browser.tell("open", url=link)
    browser.until_legend(free=2)
    assert browser.eval("location.hash") == "" and browser.complaints() == []

    # The link's token is gone, that of the tab lasts, and ends with a working day.
    users = {one["user"]: one for one in api.must("GET", "/davit/v1/tokens")["tokens"]}
    assert "link" not in str(users) and any("page" in user and one.get("expires") for user, one in users.items())
    browser.tell("open", url=link)
    browser.until_text("#ask-error", "davit ui prints another")
    assert run_davit("ui", "too", "--kubeconfig", node.kubeconfig).returncode == 2


def test_the_last_hour_is_kept(node, api, browser):
    node.add_plugin("example.com/gpu", 2)
    with api.watch("/davit/v1/node") as watch:
        uses = watch.until(lambda doc: any(use["held"] for use in doc.get("uses", [])))[-1]
    assert uses["use_step_ms"] == 10000 or uses["use_step_ms"] == "10000"
    assert uses["uses"][0]["resource"] == "example.com/gpu" and set(uses["uses"][0]["held"]) == {0}


def test_a_pod_shows_its_logs(containerd, make_node, browser, short_dir):
    node = make_node("--pod-logs-dir", os.path.join(short_dir, "logs"))
    node.cri = f"unix://{containerd.socket}"
    node.start()
    api = node.api()
    until(lambda: api.ask("GET", "/api/v1/nodes/n1").status == 200, 40, "the Node n1")
    main = {"image": containerd.image, "imagePullPolicy": "IfNotPresent"}
    api.must("POST", PODS, {"metadata": {"name": "talks"}, "spec": {
        "nodeName": "n1", "hostNetwork": True, "terminationGracePeriodSeconds": 1, "containers": [
            {"name": "first", "command": ["sh", "-c", "echo one; sleep 2; echo two; sleep 1000"], **main},
            {"name": "second", "command": ["sh", "-c", "echo other; sleep 1000"], **main}]}})
    # There is no log yet, or no pod that the page knows: it comes by itself.
    browser.tell("open", url=f"{node.url(node.token)}&show=pod%3Adefault%2Ftalks")
    browser.until("document.querySelector('#details pre') !== null")
    browser.until_text("#details pre", "one\ntwo")  # and what came later
    browser.tell("click", selector="#details .log button:nth-of-type(2)")
    browser.until_text("#details pre", "other")
    assert browser.complaints() == []
    api.must("DELETE", f"{PODS}/talks", {"gracePeriodSeconds": 1})
    until(lambda: api.ask("GET", f"{PODS}/talks").status == 404, 60, "the pod to be gone")


def partitioned_slices(node):
    """A pool in which a device comes whole or in halves, by counters of a slice of their own."""
    def parts(memory):
        return [{"counterSet": "set-0", "counters": {"memory": {"value": memory}}}]

    devices = [{"name": "whole", "consumesCounters": parts("16Gi")}, {"name": "half-0", "consumesCounters": parts("8Gi")},
               {"name": "half-1", "consumesCounters": parts("8Gi")}]
    contents = {"devices": devices}, {"sharedCounters": [{"name": "set-0", "counters": {"memory": {"value": "16Gi"}}}]}
    for i, content in enumerate(contents):
        yield {"metadata": {"name": f"{node}-parts-{i}"}, "spec": {
            "driver": "part.example.com", "nodeName": node, **content,
            "pool": {"name": node, "generation": 1, "resourceSliceCount": 2}}}


def test_partitions_that_cannot_be_had_are_not_free(node, api, browser):
    """On the node whose davitd is asked, and on one that is only in the API."""
    node.add_driver(GPU, 1, "--partitions", "2")
    make_claim(api, "whole", (GPU, "device-0"), pods=["p"])
    add_node(api, "n2")
    for one in partitioned_slices("n2"):
        api.must("POST", f"{RESOURCE}/v1/resourceslices", one)
    made = api.must("POST", CLAIMS, {"metadata": {"name": "half"}, "spec": {"devices": {"requests": [
        {"name": "r", "exactly": {"deviceClassName": "gpu"}}]}}})
    made["status"] = {"allocation": {"devices": {"results": [
        {"request": "r", "driver": "part.example.com", "pool": "n2", "device": "half-0"}]},
        "nodeSelector": {"nodeSelectorTerms": [{"matchFields": [
            {"key": "metadata.name", "operator": "In", "values": ["n2"]}]}]}}}
    api.must("PUT", f"{CLAIMS}/half/status", made)
    browser.tell("open", url=node.url(node.token) + "&node=n1", width=1280, height=860)
    browser.tell("choose", selector="#node-select", value="n1")
    browser.until_legend(free=0, held=1, blocked=2)
    browser.tell("choose", selector="#node-select", value="n2")
    browser.until_legend(free=1, held=1, blocked=1)
    browser.tell("choose", selector="#node-select", value="n1")
    browser.until_legend(blocked=2)
    browser.tell("click", selector=".strip canvas", x=30, y=8)
    browser.until_text("#details", "shared with")
    browser.until_text("#details", "device-0")
    assert browser.complaints() == []


def test_a_reason_stands_without_its_frame(make_node, browser):
    """What every scheduler says around it is no help."""
    node = make_node(*ALL_ROLES).start()
    api = node.api()
    until(lambda: api.ask("GET", "/api/v1/nodes/n1").status == 200, 60, "the Node n1")
    containers = [{"name": "main", "image": "x"}]
    api.must("POST", PODS, {"metadata": {"name": "gated"}, "spec": {
        "containers": containers, "schedulingGates": [{"name": "example.com/quota"}]}})
    api.must("POST", PODS, {"metadata": {"name": "lost"}, "spec": {
        "containers": containers, "resourceClaims": [{"name": "c", "resourceClaimName": "not-there"}]}})
    api.must("POST", PODS, {"metadata": {"name": "picky"}, "spec": {
        "containers": containers, "nodeSelector": {"disk": "ssd"}}})
    browser.tell("open", url=node.url(node.token), width=1280, height=860)
    browser.until_text("#waiting", "its scheduling gate example.com/quota is closed")
    browser.until_text("#waiting", 'resourceclaim "not-there" not found')
    browser.until_text("#waiting", "pod wants a node with disk=ssd, n1 has no such label")
    assert "nodes are available" not in browser.text("#waiting")
    # It is said once beside the page, too, where there are no devices to tell of.
    browser.tell("click", selector="#waiting a[href*='picky']")
    browser.until_text("#details", "pod wants a node with disk=ssd")
    browser.until_text("#details", "FailedScheduling")
    browser.tell("settle")
    assert browser.eval("document.querySelector('#details .explain').hidden")
    assert browser.complaints() == []
