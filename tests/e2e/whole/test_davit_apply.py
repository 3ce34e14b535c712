"""davit apply and kubectl apply of the same file, one after the other."""

import json

from nodes import run_davit


def config_map(**data):
    return json.dumps({"apiVersion": "v1", "kind": "ConfigMap",
                       "metadata": {"name": "both", "namespace": "default"}, "data": data})


def davit_apply(node, text):
    done = run_davit("apply", "-f", "-", "--kubeconfig", node.kubeconfig, stdin=text)
    assert done.returncode == 0, done
    return done.stdout.split()[-1]


def test_kubectl_applies_what_davit_has_applied_without_a_warning(node, kubectl):
    assert davit_apply(node, config_map(a="1", b="2")) == "created"
    assert davit_apply(node, config_map(a="1", b="2")) == "unchanged"
    shown = kubectl.run(["apply", "-f", "-"], 0, stdin=config_map(a="1", b="2"))
    assert (shown.returncode, shown.stderr) == (0, ""), shown
    # What kubectl leaves out later is removed, as of an object that it has made itself.
    shown = kubectl.run(["apply", "-f", "-"], 0, stdin=config_map(a="1"))
    assert (shown.returncode, shown.stderr) == (0, ""), shown
    data = node.api().must("GET", "/api/v1/namespaces/default/configmaps/both")["data"]
    assert data == {"a": "1"}
    # And davit goes on with what kubectl has noted.
    assert davit_apply(node, config_map(a="1")) in ("unchanged", "configured")
