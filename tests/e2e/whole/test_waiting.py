"""davit wait: until objects are as they shall be."""

import threading

from nodes import run_davit
from runs import run_on_terminal
from servers import CLAIMS, PODS
from whole_nodes import CLASSES, claim, device_class, pod


def wait(node, *words):
    return run_davit("wait", *words, "--kubeconfig", node.kubeconfig, timeout=60)


def test_waiting_for_a_condition_a_value_and_an_end(node, driver):
    api = node.api()
    api.must("POST", CLASSES, device_class())
    api.must("POST", CLAIMS, claim("c1"))
    done = wait(node, "claim/c1", "--for", "jsonpath={.status.allocation}", "--timeout", "1")
    # A file gets no line of what is over in seconds, a terminal has one that is gone in the end.
    assert done.returncode == 1 and done.stderr.startswith("davit: resourceclaim/c1: ") and " within the time; davit explain" in done.stderr, done
    shown = run_on_terminal(["wait", "claim/c1", "--for", "jsonpath={.status.allocation}", "--timeout", "1",
                             "--kubeconfig", node.kubeconfig])
    assert "jsonpath={.status.allocation} ... 0 of 1 (resourceclaim/c1)" in shown, shown
    assert shown.count("\r\033[K") == 1 and "\r\033[K" in shown.rpartition("davit:")[0], shown
    api.must("POST", PODS, pod("p1", of_claim="c1"))
    done = wait(node, "pod", "p1", "--for", "condition=davit.node/DevicesReady", "--timeout", "30")
    assert (done.returncode, done.stdout) == (0, "condition met\n"), done
    done = wait(node, "claims", "--for", "jsonpath={.status.allocation.devices.results[0].request}=r")
    assert done.returncode == 0, done
    later = threading.Timer(0.5, lambda: node.api().must("DELETE", f"{PODS}/p1"))
    later.start()
    done = wait(node, "pod/p1", "--for=delete", "--timeout", "30")
    later.join()
    assert (done.returncode, done.stdout) == (0, "gone\n"), done
    assert wait(node, "pod/p1", "--for=delete").returncode == 0
    done = wait(node, "pod/p1", "--for=condition=Ready")
    assert done.returncode == 1 and "not found" in done.stderr, done
    assert wait(node, "pod/p1", "--for=Ready").returncode == 2


def test_paths_without_braces_and_templates_that_are_none(node):
    api = node.api()
    api.must("POST", CLASSES, device_class())
    name = api.must("GET", CLASSES)["items"][0]["metadata"]["name"]
    for path in (".metadata.name", "metadata.name", "{.metadata.name}"):
        for goal, status in ((path, 0), (f"{path}={name}", 0), (f"{path}=other", 1)):
            done = wait(node, "deviceclass", name, "--for", f"jsonpath={goal}", "--timeout", "1")
            assert done.returncode == status, (goal, done)
    for goal in ("{.metadata.name", "{.metadata.name}=", ".metadata.name=", "{x}", ""):
        done = wait(node, "deviceclass", name, "--for", f"jsonpath={goal}", "--timeout", "1")
        assert done.returncode == 2 and "--for" in done.stderr, (goal, done)
