"""The flight recorder with device plugins that are not ours: recorded, shown, and played back."""

import json
import os
import shutil

import pytest

from nodes import pod, run_davit
from peers import folder_of
from plugin import Plugin
from procs import until

TTY = "example.com/tty"
SECRET = "token-of-the-vendor"


@pytest.fixture
def place(short_dir):
    return os.path.join(short_dir, "rec")


@pytest.fixture
def recording_node(make_node, place):
    return make_node("--record", place).start()


def show(place, *options):
    done = run_davit("record", "show", place, "-o", "json", *options)
    assert done.returncode == 0, done
    return [json.loads(line) for line in done.stdout.splitlines()]


def wait_ended(place, method, n=1):
    """Until so many calls of the method are in the file, with their end."""

    def count():
        return os.path.isdir(place) and any(os.scandir(place)) and sum(
            one["kind"] == "end" for one in show(place, "--call", method)) >= n

    until(count, 20, f"{n} of {method}")


def give_secret(plugin):
    """What it answers to Allocate has a secret."""
    plugin.answer = lambda ids: plugin.pb.AllocateResponse(container_responses=[
        plugin.pb.ContainerAllocateResponse(envs={"KEY": SECRET, "N": str(len(ids))})])


def start_go_plugin(node, *devices):
    proc = node.procs.start(
        os.path.join(folder_of("DAVIT_PEERS"), "go-device-plugin"), node.plugin_dir, TTY, *devices)
    node.wait_devices(TTY, len(devices))
    return proc


def test_all_of_a_session_is_shown_and_a_kill_leaves_it_readable(recording_node, place):
    start_go_plugin(recording_node, "t0", "t1")
    recording_node.admit(pod("a", ("main", {TTY: 1})))
    wait_ended(place, "Allocate")
    recording_node.kill()
    records = show(place)
    (listed,) = [one for one in records if one["kind"] == "message" and one["name"] == TTY
                 and one["method"].endswith("/ListAndWatch")]
    assert {one["ID"] for one in listed["message"]["devices"]} == {"t0", "t1"}
    asked, answered, ended = show(place, "--pod", "uid-a")
    assert (asked["kind"], asked["container"], asked["to"]) == ("call", "main", "plugin")
    (ids,) = asked["message"]["container_requests"]
    assert len(ids["devices_ids"]) == 1 and asked["timeoutMs"] > 0
    assert answered["to"] == "agent" and ended["status"] == "OK"
    registered = show(place, "--driver", TTY, "--call", "Register")
    assert registered[1]["message"]["resource_name"] == TTY and registered[0]["pid"] > 0
    assert {one["kind"] for one in show(place, "--status", "NOT_FOUND")} == set()
    text = run_davit("record", "show", place, "--pod", "uid-a").stdout
    assert "Allocate OK after" in text and "container main" in text


def test_a_torn_end_is_told_and_a_later_version_refused(recording_node, place):
    start_go_plugin(recording_node, "t0")
    wait_ended(place, "GetDevicePluginOptions")
    assert recording_node.stop() == 0
    (name,) = os.listdir(place)
    path = os.path.join(place, name)
    assert show(path)[-1]["text"] == "davitd stops"
    with open(path, "r+b") as file:
        file.truncate(os.path.getsize(path) - 5)
    done = run_davit("record", "show", path)
    assert done.returncode == 0 and "the last record is torn" in done.stderr
    assert done.stdout.count("\n") > 5
    with open(path, "r+b") as file:
        file.seek(8)
        file.write(b"\x02")
    done = run_davit("record", "show", path)
    assert done.returncode == 1 and "version 2" in done.stderr and "later davit" in done.stderr


@pytest.mark.parametrize("blanks", ["", "env"])
def test_secrets_do_not_reach_the_disk_when_they_are_blanked(make_node, place, blanks):
    options = ["--record-blank", blanks] if blanks else []
    node = make_node("--record", place, *options).start()
    plugin = Plugin(node.plugin_dir, TTY, ["t0"]).serve()
    plugin.register()
    give_secret(plugin)
    node.wait_devices(TTY, 1)
    node.admit(pod("a", ("main", {TTY: 1})))
    wait_ended(place, "Allocate")
    node.stop()
    plugin.stop()
    (name,) = os.listdir(place)
    with open(os.path.join(place, name), "rb") as file:
        assert (SECRET.encode() in file.read()) == (not blanks)
    (answer,) = [one for one in show(place, "--call", "Allocate") if one["kind"] == "message"]
    envs = answer["message"]["container_responses"][0]["envs"]
    assert envs["KEY"] == ("[blanked]" if blanks else SECRET)
    assert answer.get("blanked", False) == bool(blanks)


def test_a_directory_that_is_lost_or_full_hurts_nobody(recording_node, place):
    start_go_plugin(recording_node, "t0", "t1", "t2")
    wait_ended(place, "GetDevicePluginOptions")
    shutil.rmtree(place)
    with open(place, "wb"):  # a file in its place
        recording_node.admit(pod("a", ("main", {TTY: 1})))
    recording_node.admit(pod("b", ("main", {TTY: 1})))
    # What is gathered is written a little later, and only then it is lost.
    until(lambda: "cannot record" in recording_node.proc.log, 30, "the loss to be noticed")
    os.unlink(place)

    def records_again():
        answer = recording_node.admit(pod("c", ("main", {TTY: 1})))
        recording_node.release("uid-c")
        return answer.admitted and os.path.isdir(place) and any(
            one["kind"] == "lost" for one in show(place))

    until(records_again, 30, "the recording to go on")


def test_a_recorded_plugin_is_served_again(make_node, recording_node, place, procs):
    plugin = start_go_plugin(recording_node, "t0", "t1")
    first = recording_node.admit(pod("a", ("main", {TTY: 1})))
    options = recording_node.container_options("uid-a", "main")
    wait_ended(place, "Allocate")
    assert recording_node.stop() == 0
    plugin.kill()
    shutil.rmtree(recording_node.state_dir)
    node = make_node().start()
    replay = procs.start(
        os.path.join(folder_of("DAVIT_BUILD"), "davit"), "record", "replay", "--as", "driver", place,
        "--kubelet-dir", node.kubelet_dir)
    replay.wait_line("the agent has registered it", 20)
    node.wait_devices(TTY, 2)
    again = node.admit(pod("b", ("main", {TTY: 1}), uid="uid-b"))
    assert again.admitted and first.admitted
    replayed = node.container_options("uid-b", "main")
    assert replayed.envs == options.envs and replayed.devices == options.devices
    assert node.stop() == 0
    assert replay.stop() == 0


def test_a_new_build_is_compared_with_the_recording(recording_node, place):
    node = recording_node
    plugin = Plugin(node.plugin_dir, TTY, ["t0", "t1"]).serve()
    plugin.register()
    give_secret(plugin)
    node.wait_devices(TTY, 2)
    node.admit(pod("a", ("main", {TTY: 2})))
    wait_ended(place, "Allocate")
    words = ("record", "replay", "--as", "kubelet", place, "--socket", plugin.socket)
    same = run_davit(*words)
    assert same.returncode == 0 and "0 answered in another way" in same.stdout, same
    plugin.answer = lambda ids: plugin.pb.AllocateResponse(container_responses=[
        plugin.pb.ContainerAllocateResponse(envs={"KEY": "another"})])
    changed = run_davit(*words)
    assert changed.returncode == 3, changed
    assert f'envs.KEY: recorded "{SECRET}", now "another"' in changed.stdout
    assert "1 answered in another way" in changed.stdout
    node.stop()
    plugin.stop()
    assert run_davit(*words).returncode == 4
