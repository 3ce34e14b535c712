"""Devices that are offered without a driver: made-up /dev and sysfs, real nodes in them."""

import json
import os
import signal

import pytest

from machine import FULL, NULL, RANDOM, ZERO, Machine
from procs import until
from servers import CLAIMS, PODS, RESOURCE
from whole_nodes import (
    CLASSES, WAIT_S, WholeNode, claim, devices_of, get, items, pod, wait_gone, wait_ready,
    wait_unscheduled,
)

DRIVER = "offer.davit.node"
SLICES = f"{RESOURCE}/v1/resourceslices"

@pytest.fixture
def machine(short_dir):
    return Machine(short_dir)


@pytest.fixture
def new_node(machine):
    def make(procs, root, *options):
        return WholeNode(procs, root, "--dev-dir", machine.dev, "--sys-dir", machine.sys, *options)
    return make


def offered(api):
    """{device: its attributes} of the built-in driver."""
    return {device["name"]: {name: next(iter(value.values()))
                             for name, value in device.get("attributes", {}).items()}
            for one in items(api, SLICES) if one["spec"]["driver"] == DRIVER
            for device in one["spec"].get("devices", [])}


def wait_offered(api, *names):
    until(lambda: set(offered(api)) == set(names), WAIT_S, f"{names} are offered")


def specs(node):
    return sorted(os.listdir(node.cdi_dir))


def edits(node, name):
    """What the container of the pod is started with."""
    text = node.davit("options", name, "-c", "a", "-o", "json").stdout
    names = [word for word in text.split('"') if word.startswith(f"{DRIVER}/claim=")]
    found = {}
    for file in specs(node):
        with open(os.path.join(node.cdi_dir, file), encoding="utf-8") as stream:
            for device in json.load(stream)["devices"]:
                found[f"{DRIVER}/claim={device['name']}"] = device["containerEdits"]
    return [found[name] for name in names]


def test_a_limit_gets_a_port_and_gives_it_back(make_node, machine):
    machine.usb("1-4", "ttyUSB0", FULL, idVendor="0403", idProduct="6001", serial="A5",
                manufacturer="FTDI", product="UART")
    machine.usb("1-5", "ttyUSB1", ZERO, idVendor="0403", idProduct="6001", serial="B7")
    node = make_node("--offer", "serial=/dev/ttyUSB*").start()
    api = node.api()
    first, second = "serial-usb-0403-6001-a5-if00", "serial-usb-0403-6001-b7-if00"
    wait_offered(api, first, second)
    assert offered(api)[first] == {
        "offer": "serial", "path": "/dev/ttyUSB0", "vendor": "0403", "product": "6001",
        "serial": "A5", "vendorName": "FTDI", "productName": "UART", "usbPort": "1-4"}
    until(lambda: get(api, CLASSES, "serial"), WAIT_S, "the class")
    for name in ("p1", "p2", "p3"):
        api.must("POST", PODS, pod(name, limits={"davit.node/serial": "1"}))
        if name != "p3":
            wait_ready(api, name)
    wait_unscheduled(api, "p3", "")
    assert len(specs(node)) == 2
    given = [edits(node, name) for name in ("p1", "p2")]
    paths = sorted(one["deviceNodes"][0]["path"] for (one,) in given)
    assert paths == ["/dev/ttyUSB0", "/dev/ttyUSB1"]
    for (one,) in given:
        node_of = one["deviceNodes"][0]
        assert one["env"] == [f"DAVIT_SERIAL={node_of['path']}"]
        assert node_of["hostPath"] == machine.dev + node_of["path"][len("/dev"):]
        assert node_of["permissions"] == "rw"

    shown = node.davit("offers").stdout.splitlines()
    assert shown[0].split() == ["OFFER", "DEVICE", "NODES", "IS", "CLAIM"]
    assert shown[1].split()[:3] == ["serial", first, "/dev/ttyUSB0"] and "FTDI UART A5" in shown[1]
    assert "default/p" in shown[1] and "default/p" in shown[2]

    api.must("DELETE", f"{PODS}/p1")
    wait_gone(api, PODS, "p1")
    wait_ready(api, "p3")
    for name in ("p2", "p3"):
        api.must("DELETE", f"{PODS}/{name}")
        wait_gone(api, PODS, name)
    until(lambda: specs(node) == [], WAIT_S, "no specs are left")
    assert os.listdir(os.path.join(node.kubelet_dir, "plugins", DRIVER)) == []


def test_a_claim_selects_by_attributes(make_node, machine):
    machine.usb("1-4", "ttyUSB0", FULL, idVendor="0403", idProduct="6001", serial="A5")
    machine.usb("1-5", "ttyUSB1", ZERO, idVendor="0403", idProduct="6001", serial="B7")
    node = make_node("--offer", "serial=usb:0403").start()
    api = node.api()
    wanted = claim("c", of_class="serial")
    wanted["spec"]["devices"]["requests"][0]["exactly"]["selectors"] = [
        {"cel": {"expression": f'device.attributes["{DRIVER}"].serial == "B7"'}}]
    api.must("POST", CLAIMS, wanted)
    api.must("POST", PODS, pod("p", of_claim="c"))
    wait_ready(api, "p")
    assert devices_of(get(api, CLAIMS, "c")) == ["n1/serial-usb-0403-6001-b7"]


def test_a_shared_device_has_as_many_users_as_it_may(make_node, machine):
    machine.node("kvm", NULL)
    node = make_node("--offer", "kvm=/dev/kvm,shared=2").start()
    api = node.api()
    wait_offered(api, "kvm")
    for name in ("p1", "p2", "p3"):
        api.must("POST", PODS, pod(name, limits={"davit.node/kvm": "1"}))
        if name != "p3":
            wait_ready(api, name)
    wait_unscheduled(api, "p3", "")
    api.must("DELETE", f"{PODS}/p2")
    wait_ready(api, "p3")


def test_what_is_plugged_in_and_out_is_followed(make_node, machine):
    node = make_node("--offer", "serial=/dev/ttyUSB*").start()
    api = node.api()
    until(lambda: get(api, CLASSES, "serial"), WAIT_S, "the class")
    assert "serial: /dev/ttyUSB*: nothing matches now" in node.davit("offers").stderr
    api.must("POST", PODS, pod("p", limits={"davit.node/serial": "1"}))
    wait_unscheduled(api, "p", "")
    machine.usb("1-4", "ttyUSB0", FULL, idVendor="0403", idProduct="6001", serial="A5")
    wait_ready(api, "p")
    name = "serial-usb-0403-6001-a5-if00"
    machine.remove("ttyUSB0")
    wait_offered(api)

    def health():
        return [device["health"] for claimed in json.loads(
            node.davit("claim", "list", "-o", "json").stdout)["claims"]
            for driver in claimed["drivers"] for device in driver["devices"]]
    until(lambda: health() == ["Unhealthy"], WAIT_S, "the device is not well")
    # It comes back under another number: the same device, and the claim follows.
    machine.usb("1-6", "ttyUSB3", ZERO, idVendor="0403", idProduct="6001", serial="A5")
    wait_offered(api, name)
    until(lambda: health() == ["Healthy"], WAIT_S, "the device is well")
    until(lambda: edits(node, "p")[0]["deviceNodes"][0]["path"] == "/dev/ttyUSB3", WAIT_S,
          "the new node")


def test_what_is_held_stays_over_a_kill_and_without_the_offer(make_node, machine):
    machine.node("ttyS0", NULL)
    node = make_node().start("--offer", "serial=/dev/ttyS*")
    api = node.api()
    wait_offered(api, "serial-ttys0")
    api.must("POST", PODS, pod("p", limits={"davit.node/serial": "1"}))
    wait_ready(api, "p")
    before = edits(node, "p")
    node.kill()
    node.start("--offer", "serial=/dev/ttyS*")
    assert edits(node, "p") == before
    assert node.stop() == 0
    # Nothing is offered any more, and what is held is still given back.
    node.start()
    api = node.api()
    assert edits(node, "p") == before
    api.must("DELETE", f"{PODS}/p")
    wait_gone(api, PODS, "p")
    until(lambda: specs(node) == [], WAIT_S, "the spec is gone")
    until(lambda: items(api, CLASSES) == [], WAIT_S, "the class is gone")


def test_a_file_is_read_again_and_mistakes_change_nothing(make_node, machine, short_dir):
    machine.node("ttyS0", NULL)
    machine.node("kvm", RANDOM)
    path = os.path.join(short_dir, "offers.yaml")

    def write(text):
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
    write("offers:\n- name: serial\n  devices: /dev/ttyS*\n")
    node = make_node("--offer-file", path).start()
    api = node.api()
    wait_offered(api, "serial-ttys0")
    write("offers:\n- name: serial\n  device: /dev/ttyS*\n")
    node.proc.signal(signal.SIGHUP)
    until(lambda: "line 3" in node.proc.log, WAIT_S, "the mistake is told")
    write("offers:\n- name: vm\n  devices: /dev/kvm\n  shared: true\n")
    node.proc.signal(signal.SIGHUP)
    wait_offered(api, "vm-kvm")
    until(lambda: [one["metadata"]["name"] for one in items(api, CLASSES)] == ["vm"], WAIT_S,
          "the classes")


def test_a_cdi_spec_is_offered(make_node, machine):
    machine.node("gpu0", NULL)
    machine.node("gpu1", ZERO)
    node = make_node("--offer", "gpu=cdi:vendor.com/gpu")

    def device(name, *nodes):
        return {"name": name, "containerEdits": {"deviceNodes": [
            {"path": f"/dev/{one}", "hostPath": f"{machine.dev}/{one}"} for one in nodes]}}
    with open(os.path.join(node.cdi_dir, "vendor.json"), "w", encoding="utf-8") as file:
        json.dump({"cdiVersion": "0.5.0", "kind": "vendor.com/gpu", "devices": [
            device("0", "gpu0"), device("1", "gpu1"), device("all", "gpu0", "gpu1")]}, file)
    node.start()
    api = node.api()
    wait_offered(api, "gpu-0", "gpu-1")
    api.must("POST", PODS, pod("p", limits={"davit.node/gpu": "1"}))
    wait_ready(api, "p")
    assert "vendor.com/gpu=0" in node.davit("options", "p", "-c", "a", "-o", "json").stdout
    assert specs(node) == ["vendor.json"]


def test_links_that_lead_out_are_no_devices(make_node, machine):
    machine.node("real", NULL)
    os.symlink("/dev/zero", os.path.join(machine.dev, "ttyUSB0"))
    os.symlink("../../../../dev/zero", os.path.join(machine.dev, "ttyUSB1"))
    os.symlink("real", os.path.join(machine.dev, "ttyUSB2"))
    os.symlink("ttyUSB3", os.path.join(machine.dev, "ttyUSB3"))
    node = make_node("--offer", "serial=/dev/ttyUSB*").start()
    wait_offered(node.api(), "serial-real")


def test_a_policy_for_drivers_does_not_shut_out_our_own(make_node, machine, short_dir):
    machine.node("kvm", NULL)
    path = os.path.join(short_dir, "policy.yaml")
    with open(path, "w", encoding="utf-8") as file:
        file.write("mode: enforce\nrules:\n- name: theirs\n  drivers: [gpu.example.com]\n"
                   "  by:\n  - executable: /usr/bin/theirs\n")
    os.chmod(path, 0o600)
    node = make_node("--policy", path, "--offer", "kvm=/dev/kvm,shared").start()
    until(lambda: [one.state for one in node.plugins() if one.name == DRIVER] == ["registered"],
          WAIT_S, "it is registered")


def test_bad_offers_end_the_start_with_the_reason(make_node, short_dir):
    path = os.path.join(short_dir, "offers.yaml")
    with open(path, "w", encoding="utf-8") as file:
        file.write("offers:\n- name: kvm\n  devices: /etc/passwd\n")
    for options, reason in [
            (["--offer", "serial=/dev/*"], "is too wide"),
            (["--offer", "a=/dev/kvm", "--offer", "a=/dev/null"], "has its name already"),
            (["--offer-file", path], "line 3"),
            (["--offer-file", path + ".none"], "No such file")]:
        node = make_node(*options).start(ready=False)
        assert node.proc.wait() != 0
        assert reason in node.proc.log, reason
