"""Static pods on a container runtime: a file in a folder runs, whatever happens to davitd."""

import json
import os
from pathlib import Path

import pytest

from bound_pods import DEV
from procs import until
from runtime_nodes import WAIT_S, container, pod


@pytest.fixture(name="folder")
def fixture_folder(short_dir):
    path = os.path.join(short_dir, "m")
    os.mkdir(path)
    return path


def put(folder, name, doc):
    aside = os.path.join(folder, f".{name}")
    with open(aside, "w", encoding="utf-8") as file:
        json.dump(doc, file)
    os.rename(aside, os.path.join(folder, name))


def file_pod(script):
    made = pod("web", container(script=script, resources={"limits": {DEV: "1"}}))
    del made["spec"]["nodeName"]
    return made


def logs(node):
    """Of both pods of that name."""
    return Path(node.logs_dir).glob("default_web-n1_*/main/*.log")


def running(node):
    return [key for key, state in node.containers().items()
            if key[0] == "web-n1" and key[1] == "main" and state == "RUNNING"]


def test_a_file_runs_changes_and_ends(make_node, folder):
    node = make_node("--pod-manifest-path", folder).start()
    node.start_plugin("--virtual", "4", "--env", "DEVICES")
    put(folder, "web.json", file_pod("echo has $DEVICES; sleep 1000"))
    until(lambda: node.phase("web-n1") == "Running", WAIT_S, "it to run")
    until(lambda: "has virtual-" in node.log("web-n1"), WAIT_S, "its device, seen from inside")
    status = node.pod("web-n1")["status"]
    assert status["containerStatuses"][0]["ready"], status

    node.delete("web-n1")  # the mirror: nothing happens to the pod
    until(lambda: node.phase("web-n1") == "Running", WAIT_S, "a new mirror")
    assert running(node) == [("web-n1", "main", 0)]

    node.kill()  # nor when davitd is killed
    assert running(node) == [("web-n1", "main", 0)]
    node.start()
    until(lambda: node.phase("web-n1") == "Running", WAIT_S, "it to run")
    assert running(node) == [("web-n1", "main", 0)]

    done = node.davit("container", "ended", "web-n1", "main", "--exit-code", "0")
    assert done.returncode == 1 and "on its container runtime" in done.stderr, done

    put(folder, "web.json", file_pod("echo anew; sleep 1000"))
    until(lambda: any("anew" in path.read_text(encoding="utf-8") for path in logs(node)), WAIT_S,
          "the new pod's words")
    until(lambda: node.phase("web-n1") == "Running", WAIT_S, "it to run")
    os.unlink(os.path.join(folder, "web.json"))
    node.wait_gone("web-n1")
    until(lambda: running(node) == [] and node.pods_here() == set(), WAIT_S, "all to be gone")
