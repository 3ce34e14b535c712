"""CDI specs of a machine: what there is, what it adds, what is wrong, and bundles edited."""

import json
import os
import stat

import pytest

SPEC = """\
cdiVersion: "0.6.0"
kind: vendor.com/gpu
containerEdits: {env: [ALL=1]}
devices:
- name: "0"
  containerEdits: {deviceNodes: [{path: /dev/null}], env: [GPU=0]}
- name: "1"
  containerEdits: {deviceNodes: [{path: /dev/zero, type: c, major: 1, minor: 5}], env: [GPU=1]}
"""

CONFIG = {"ociVersion": "1.0.2", "process": {"env": ["PATH=/bin"]}, "kept": {"a": [1.5, None]}}


@pytest.fixture
def cdi(davit, short_dir):
    """davit, with two folders for specs: a, and b which wins."""
    for name in ("a", "b", "bundle"):
        os.mkdir(os.path.join(short_dir, name))
    put(short_dir, "a/vendor.yaml", SPEC)
    put(short_dir, "bundle/config.json", json.dumps(CONFIG))
    return davit


def put(folder, path, text):
    with open(os.path.join(folder, path), "w", encoding="utf-8") as file:
        file.write(text)


def config_of(folder):
    with open(os.path.join(folder, "bundle/config.json"), encoding="utf-8") as file:
        return json.load(file)


def rows(cdi, *words):
    return [line.split() for line in cdi.ok("cdi", "list", *words).splitlines()]


DIRS = ["--cdi-dirs", "a:b:/no/such"]


def test_what_no_spec_has_is_told_with_the_folders(cdi):
    done = cdi.run("cdi", "resolve", "vendor.com/gpu=9", *DIRS)
    assert (done.returncode, done.stdout) == (1, ""), done
    assert "davit: CDI specs of a:b:/no/such: CDI device \"vendor.com/gpu=9\"" in done.stderr, done


def test_list(cdi, short_dir):
    assert rows(cdi, *DIRS) == [
        ["DEVICE", "STATE"], ["vendor.com/gpu=0", "usable"], ["vendor.com/gpu=1", "usable"]]
    assert rows(cdi, *DIRS, "-o", "wide") == [
        ["DEVICE", "STATE", "SPEC", "CONFLICTS", "WITH"],
        ["vendor.com/gpu=0", "usable", "a/vendor.yaml", "-"],
        ["vendor.com/gpu=1", "usable", "a/vendor.yaml", "-"]]
    assert cdi.ok("cdi", "list", *DIRS, "-o", "name") == "vendor.com/gpu=0\nvendor.com/gpu=1\n"
    for other in (["resolve", "vendor.com/gpu=0"], ["check"]):
        done = cdi.run("cdi", *other, *DIRS, "-o", "wide")
        assert (done.returncode, done.stdout) == (2, "") and "for list" in done.stderr, done
    put(short_dir, "b/override.yaml", SPEC)
    put(short_dir, "b/notes.txt", "no spec")
    os.mkfifo(os.path.join(short_dir, "b/pipe.json"))
    assert json.loads(cdi.ok("cdi", "list", *DIRS, "-o", "json")) == [
        {"name": "vendor.com/gpu=0", "spec": "b/override.yaml"},
        {"name": "vendor.com/gpu=1", "spec": "b/override.yaml"}]
    put(short_dir, "b/same.yaml", SPEC)
    for row in json.loads(cdi.ok("cdi", "list", *DIRS, "-o", "json")):
        assert {row["spec"], row["conflictsWith"]} == {"b/override.yaml", "b/same.yaml"}
    assert rows(cdi, *DIRS, "--no-headers") == [
        ["vendor.com/gpu=0", "conflict"], ["vendor.com/gpu=1", "conflict"]]
    done = cdi.run("cdi", "list", "--cdi-dirs", "/no/such")
    assert (done.returncode, done.stdout) == (0, "") and "/no/such" in done.stderr


def test_resolve(cdi):
    doc = json.loads(cdi.ok("cdi", "resolve", "vendor.com/gpu=1", "vendor.com/gpu=0", *DIRS, "-ojson"))
    assert doc["env"] == ["ALL=1", "GPU=1", "GPU=0"]
    assert [node["path"] for node in doc["deviceNodes"]] == ["/dev/zero", "/dev/null"]
    assert "- GPU=1\n" in cdi.ok("cdi", "resolve", "vendor.com/gpu=1", *DIRS)
    for name in ("vendor.com/gpu=7", "nonsense"):
        done = cdi.run("cdi", "resolve", name, *DIRS)
        assert (done.returncode, done.stdout) == (1, "") and name in done.stderr


def test_check(cdi, short_dir):
    assert cdi.ok("cdi", "check", *DIRS) == "1 spec with 2 devices: nothing is wrong\n"
    put(short_dir, "b/bad.yaml", 'cdiVersion: "0.6.0"\nkind: vendor\ndevices: []\n')
    done = cdi.run("cdi", "check", *DIRS)
    assert done.returncode == 1 and 'b/bad.yaml: line 2, column 7: kind: "vendor"' in done.stdout
    lines = json.loads(cdi.run("cdi", "check", *DIRS, "-o", "json").stdout)
    assert lines == done.stdout.splitlines()
    assert cdi.ok("cdi", "check", "a/vendor.yaml") == "1 spec with 2 devices: nothing is wrong\n"
    done = cdi.run("cdi", "check", "a/vendor.yaml", "/no/such.yaml")
    assert done.returncode == 1 and "/no/such.yaml" in done.stdout
    done = cdi.run("cdi", "list", *DIRS)
    assert done.returncode == 0 and "vendor.com/gpu=0" in done.stdout
    assert "warning: b/bad.yaml is left out" in done.stderr


def test_inject(cdi, short_dir):
    path = os.path.join(short_dir, "bundle/config.json")
    os.chmod(path, 0o640)
    words = ["cdi", "inject", "--bundle", "bundle", *DIRS]
    assert cdi.ok(*words, "vendor.com/gpu=0", "vendor.com/gpu=1") == (
        "bundle/config.json: 2 devices injected\n")
    config = config_of(short_dir)
    assert config["process"]["env"] == ["PATH=/bin", "ALL=1", "GPU=1"]
    assert config["kept"] == CONFIG["kept"]
    assert [(node["path"], node["major"], node["minor"]) for node in config["linux"]["devices"]] == [
        ("/dev/null", 1, 3), ("/dev/zero", 1, 5)]
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o640
    assert os.listdir(os.path.join(short_dir, "bundle")) == ["config.json"]
    cdi.ok(*words, "vendor.com/gpu=0", "vendor.com/gpu=1")
    again = config_of(short_dir)
    assert again["linux"] == config["linux"]


def test_inject_what_annotations_ask_for(cdi, short_dir):
    words = ["cdi", "inject", "--bundle", "bundle", *DIRS]
    done = cdi.run(*words)
    assert done.returncode == 1 and "ask for no devices" in done.stderr
    put(short_dir, "bundle/config.json", json.dumps(
        {**CONFIG, "annotations": {"cdi.k8s.io/test_x": "vendor.com/gpu=1"}}))
    assert cdi.ok(*words) == "bundle/config.json: 1 device injected\n"
    assert "GPU=1" in config_of(short_dir)["process"]["env"]


@pytest.mark.parametrize("name, text, says", [
    ("vendor.com/gpu=9", json.dumps(CONFIG), "vendor.com/gpu=9"),
    ("vendor.com/gpu=0", "{", "bundle/config.json"),
    ("vendor.com/gpu=0", "[]", "bundle/config.json"),
    ("vendor.com/gpu=0", '{"process": 7}', "process"),
])
def test_a_failure_changes_nothing(cdi, short_dir, name, text, says):
    put(short_dir, "bundle/config.json", text)
    done = cdi.run("cdi", "inject", "--bundle", "bundle", *DIRS, name)
    assert (done.returncode, done.stdout) == (1, "") and says in done.stderr, done
    with open(os.path.join(short_dir, "bundle/config.json"), encoding="utf-8") as file:
        assert file.read() == text


def test_a_device_that_the_host_does_not_have(cdi, short_dir):
    put(short_dir, "b/lost.yaml", SPEC.replace("/dev/null", "/dev/no-such-node"))
    done = cdi.run("cdi", "inject", "--bundle", "bundle", *DIRS, "vendor.com/gpu=0")
    assert done.returncode == 1 and "/dev/no-such-node" in done.stderr, done
    assert "b/lost.yaml" in done.stderr or "vendor.com/gpu=0" in done.stderr


@pytest.mark.parametrize("words", [
    [], ["show"], ["list", "x"], ["resolve"], ["inject", "vendor.com/gpu=0"],
    ["list", "--bundle", "bundle"], ["list", "--pod", "p", "-c", "c"],
])
def test_wrong_words(cdi, words):
    done = cdi.run("cdi", *words)
    assert (done.returncode, done.stdout) == (2, "") and "davit help cdi" in done.stderr, done
