"""davit cdi inject --pod: all that a container of a pod gets from davitd, in a bundle."""

import json
import os

import pytest

from bundles import davit_cdi, run
from nodes import pod
from peers import folder_of
from procs import until

pytestmark = pytest.mark.release

DEV = "example.com/dev"


@pytest.fixture(name="wanted")
def fixture_wanted(make_node, plugins, short_dir):
    """A pod whose plugin wants everything that there is; (node, folder of CDI specs)."""
    specs = os.path.join(short_dir, "specs")
    host = os.path.join(short_dir, "host")
    for path in (specs, host):
        os.mkdir(path)
    with open(os.path.join(host, "file"), "w", encoding="utf-8") as file:
        file.write("from the host\n")
    os.symlink("/dev/kmsg", os.path.join(host, "link"))  # as udev makes them
    with open(os.path.join(specs, "vendor.json"), "w", encoding="utf-8") as file:
        json.dump({"cdiVersion": "0.6.0", "kind": "vendor.com/gpu", "devices": [
            {"name": "0", "containerEdits": {"env": ["FROM_SPEC=spec", "BOTH=spec"]}}]}, file)
    node = make_node("--cdi-dirs", specs).start()
    plugin = plugins(node, DEV, ["d0"])
    plugin.answer = lambda ids: plugin.pb.AllocateResponse(container_responses=[
        plugin.pb.ContainerAllocateResponse(
            envs={"FROM_PLUGIN": "plugin", "BOTH": "plugin"},
            annotations={"vendor.com/note": "seen"},
            mounts=[plugin.pb.Mount(container_path="/plugin", host_path=host, read_only=True)],
            devices=[plugin.pb.DeviceSpec(container_path="/dev/opt0", permissions="rw",
                                          host_path=os.path.join(host, "link"))],
            cdi_devices=[plugin.pb.CDIDevice(name="vendor.com/gpu=0")])])
    plugin.register()
    until(lambda: node.resource(DEV) and node.resource(DEV).allocatable == 1, 60, "the device")
    assert node.admit(pod("demo", ("main", {DEV: 1}))).admitted
    return node, specs


def test_all_options_arrive(bundle, wanted):
    node, specs = wanted
    words = ("inject", "--bundle", bundle.path, "--cdi-dirs", specs, "--pod", "demo", "-c", "main",
             "--socket", node.socket)
    done = davit_cdi(*words)
    assert done.returncode == 0, done.stderr
    assert "2 env, 1 mount, 1 device node and 1 CDI device injected" in done.stdout, done.stdout
    once = bundle.config
    assert davit_cdi(*words).returncode == 0 and bundle.config == once
    assert once["annotations"]["vendor.com/note"] == "seen"
    after = bundle.run(
        "echo $FROM_PLUGIN $FROM_SPEC $BOTH; cat /plugin/file; true > /dev/opt0 && echo opened;"
        "true > /plugin/file || echo read-only")
    assert after.stdout.splitlines() == [
        "plugin spec spec", "from the host", "opened", "read-only"], after


def merged(config, more):
    """A config with what `davit options --as runc` prints: lists go on, values are set."""
    if isinstance(config, dict) and isinstance(more, dict):
        return {**config, **{key: merged(config[key], value) if key in config else value for key, value in more.items()}}
    if isinstance(config, list) and isinstance(more, list):
        return config + more
    return more


def test_options_as_runc_are_a_part_of_a_config_that_runs(bundle, wanted):
    node, specs = wanted
    done = run(os.path.join(folder_of("DAVIT_BUILD"), "davit"), "options", "demo", "--as", "runc", "--cdi-dirs", specs,
               "--socket", node.socket)
    assert (done.returncode, done.stderr) == (0, ""), done
    more = json.loads(done.stdout)
    del more["ociVersion"]  # runc's own stays
    with open(bundle.config_path, encoding="utf-8") as file:
        config = merged(json.load(file), more)
    with open(bundle.config_path, "w", encoding="utf-8") as file:
        json.dump(config, file)
    after = bundle.run("echo $FROM_PLUGIN $FROM_SPEC $BOTH; cat /plugin/file; true > /dev/opt0 && echo opened")
    assert after.stdout.splitlines() == ["plugin spec spec", "from the host", "opened"], after


def test_what_davitd_does_not_know_changes_nothing(bundle, wanted):
    node, specs = wanted
    before = bundle.config
    for words, text in ((("--pod", "demo", "-c", "other"), "no container"),
                        (("--pod", "other/demo", "-c", "main"), "no pod other/demo"),
                        (("--uid", "nobody", "-c", "main"), "uid nobody")):
        done = davit_cdi("inject", "--bundle", bundle.path, "--cdi-dirs", specs, *words,
                         "--socket", node.socket)
        assert (done.returncode, text in done.stderr) == (1, True), done
    assert bundle.config == before


@pytest.mark.parametrize("words,text", [
    (("inject", "--bundle", "b", "--pod", "p"), "with -c"),
    (("inject", "--bundle", "b", "-c", "c"), "with -c"),
    (("list", "--pod", "p", "-c", "c"), "with -c"),
    (("inject", "--bundle", "b", "--pod", "p", "--uid", "u", "-c", "c"), "--pod or by --uid"),
])
def test_pods_are_named_right(words, text):
    done = davit_cdi(*words)
    assert (done.returncode, text in done.stderr) == (2, True), done
