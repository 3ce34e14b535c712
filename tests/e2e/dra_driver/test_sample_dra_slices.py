"""Slices: what the driver publishes, and that it stays so."""

import shutil
import subprocess

import pytest

from dra_kubelet import DRIVER, NODE, SLICES, WAIT_S, device_names, slices_of
from procs import until


def test_devices_appear_with_all_they_have(make_driver, api):
    driver = make_driver("--devices", "3", "--numa", "0,1", "--model", "A9", "--memory", "2048")
    driver.proc.wait_line(f"published {NODE}")
    (item,) = slices_of(api)
    assert item["metadata"]["name"].startswith(f"00000-{DRIVER}-{NODE}-")
    (owner,) = item["metadata"]["ownerReferences"]
    node = api.must("GET", f"/api/v1/nodes/{NODE}")
    assert owner == {"apiVersion": "v1", "kind": "Node", "name": NODE, "controller": True,
                     "uid": node["metadata"]["uid"]}
    assert item["spec"]["nodeName"] == NODE
    assert item["spec"]["pool"] == {"name": NODE, "generation": 1, "resourceSliceCount": 1}
    devices = item["spec"]["devices"]
    assert [device["name"] for device in devices] == ["device-0", "device-1", "device-2"]
    assert [device["attributes"]["numa"]["int"] for device in devices] == [0, 1, 0]
    attributes = devices[1]["attributes"]
    assert attributes["index"] == {"int": 1} and attributes["model"] == {"string": "A9"}
    assert attributes["resource.kubernetes.io/pciBusID"]["string"].endswith(":00:01.0")  # a domain for each driver
    assert len(attributes["uuid"]["string"]) == 36
    assert devices[0]["capacity"]["memory"] == {"value": "2Gi"}
    assert len({device["attributes"]["uuid"]["string"] for device in devices}) == 3


def test_partitions_draw_on_shared_counters(make_driver, api):
    driver = make_driver("--devices", "20", "--partitions", "4")
    driver.proc.wait_line(f"published {NODE}")
    slices = slices_of(api)
    sets = [one for item in slices for one in item["spec"].get("sharedCounters", [])]
    devices = [one for item in slices for one in item["spec"].get("devices", [])]
    assert len(sets) == 20 and len(devices) == 100
    assert [len(item["spec"].get("sharedCounters", [])) for item in slices] == [8, 8, 4, 0, 0]
    assert [len(item["spec"].get("devices", [])) for item in slices] == [0, 0, 0, 64, 36]
    part = next(device for device in devices if device["name"] == "device-7-part-2")
    assert part["consumesCounters"] == [
        {"counterSet": "device-7",
         "counters": {"memory": {"value": "4Gi"}, "cores": {"value": "16"}}}
    ]


def test_slices_follow_the_devices(make_driver, api):
    driver = make_driver()
    driver.proc.wait_line(f"published {NODE}")
    for n, n_slices in ((300, 3), (2, 1), (129, 2), (0, 1)):
        driver.must(f"devices {n}")
        until(lambda: device_names(api) == [f"device-{i}" for i in range(n)], WAIT_S,
              f"{n} devices")
        assert len(slices_of(api)) == n_slices
    driver.must("devices 2")
    driver.must("taint device-1 example.com/broken=yes:NoExecute")

    def tainted():
        devices = slices_of(api)[0]["spec"].get("devices", [])
        return len(devices) == 2 and devices[1].get("taints")

    (taint,) = until(tainted, WAIT_S, "the taint")
    assert (taint["key"], taint["value"], taint["effect"]) == (
        "example.com/broken", "yes", "NoExecute")
    driver.must("health device-0 healthy")  # publishes again: nothing differs
    driver.must("taint device-0 example.com/other:NoSchedule")
    until(lambda: slices_of(api)[0]["spec"]["devices"][0].get("taints"), WAIT_S, "the other taint")
    assert slices_of(api)[0]["spec"]["devices"][1]["taints"] == [taint]  # with its time


def test_what_others_delete_or_change_is_put_right(make_driver, api, cluster):
    driver = make_driver("--correct", "1")
    driver.proc.wait_line(f"published {NODE}")
    wanted = device_names(api)
    kubectl = shutil.which("kubectl")
    if not kubectl:
        pytest.skip("no kubectl is installed here")
    (before,) = slices_of(api)
    subprocess.run([kubectl, "--kubeconfig", cluster.kubeconfig, "delete", "resourceslices",
                    before["metadata"]["name"]], check=True, capture_output=True, timeout=60)
    until(lambda: device_names(api) == wanted, WAIT_S, "the slice is back")
    (item,) = slices_of(api)
    assert item["metadata"]["uid"] != before["metadata"]["uid"]
    item["spec"]["devices"] = item["spec"]["devices"][:1]
    api.must("PUT", f"{SLICES}/{item['metadata']['name']}", item)
    until(lambda: device_names(api) == wanted, WAIT_S, "the devices are back")
    foreign = {"metadata": {"name": "stray"}, "spec": dict(item["spec"])}
    api.must("POST", SLICES, foreign)  # of this driver and node, but nobody wants it
    until(lambda: len(slices_of(api)) == 1 and device_names(api) == wanted, WAIT_S, "it is gone")
    assert driver.counts()["failed"] == 0


def test_nothing_is_written_while_nothing_changes(make_driver, api):
    driver = make_driver("--correct", "1", "--taint", "example.com/t:NoSchedule")
    driver.proc.wait_line(f"published {NODE}")
    (before,) = slices_of(api)
    driver.must("health device-0 healthy")  # publishes the same
    driver.proc.stop()
    (after,) = slices_of(api)  # it leaves them to the agent
    assert after["metadata"]["resourceVersion"] == before["metadata"]["resourceVersion"]
    driver = make_driver("--correct", "1", "--taint", "example.com/t:NoSchedule")
    driver.proc.wait_line(f"published {NODE}")
    (after,) = slices_of(api)
    assert after["metadata"]["resourceVersion"] == before["metadata"]["resourceVersion"]
    assert driver.counts() == {"created": 0, "updated": 0, "deleted": 0, "failed": 0}


def test_it_publishes_when_the_api_comes_back(make_driver, api, cluster):
    driver = make_driver()
    driver.proc.wait_line(f"published {NODE}")
    cluster.listen = f"127.0.0.1:{cluster.port}"  # where the driver looks for it
    assert cluster.stop() == 0
    driver.must("devices 6")
    cluster.start()
    api = cluster.api()
    until(lambda: device_names(api) == [f"device-{i}" for i in range(6)], 90, "the new devices")


def test_it_waits_for_its_node(make_driver, api):
    driver = make_driver("--node", "late")
    until(lambda: "node late" in driver.proc.log, WAIT_S, "a complaint")
    api.must("POST", "/api/v1/nodes", {"metadata": {"name": "late"}})
    driver.proc.wait_line("published late", timeout_s=WAIT_S)


def test_the_next_instance_takes_over_with_other_devices(make_driver, api, kubelet):
    old = make_driver("--instance", "a", "--devices", "2")
    old.proc.wait_line(f"published {NODE}")
    new = make_driver("--instance", "b", "--devices", "3")
    new.proc.wait_line(f"published {NODE}")
    assert old.proc.stop() == 0
    until(lambda: device_names(api) == ["device-0", "device-1", "device-2"], 60, "the new devices")
