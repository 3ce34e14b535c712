"""Credentials that a program makes, which a kubeconfig names: for davitd as a node, and for davit."""

import json
import os
import time

from bound_pods import capacity, make_token
from claim_nodes import WAIT_S
from nodes import run_davit
from procs import until
from servers import NODES

PROGRAM = """#!/bin/sh
echo "$@" >>{folder}/runs
test -e {folder}/broken && exit 3
printf '{{"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1","status":{{'
printf '"token":"%s","expirationTimestamp":"%s"}}}}' "$(cat {folder}/token)" "$(cat {folder}/end)"
"""


def use_program(second):
    """Puts a program in the place of the node's token."""
    folder = second.root
    with open(second.kubeconfig, encoding="utf-8") as file:
        text = file.read()
    [line] = [line for line in text.splitlines() if "token:" in line]
    put(folder, "token", line.partition(": ")[2].strip().strip('"'))
    put(folder, "end", "2100-01-01T00:00:00Z")
    put(folder, "program", PROGRAM.format(folder=folder))
    os.chmod(os.path.join(folder, "program"), 0o755)
    user = {"apiVersion": "client.authentication.k8s.io/v1", "command": "./program",
            "args": ["get-token"], "env": [{"name": "A", "value": "b"}],
            "interactiveMode": "Never", "provideClusterInfo": True}
    indent = line[:len(line) - len(line.lstrip())]
    put(folder, "n2.kubeconfig", text.replace(line, f"{indent}exec: {json.dumps(user)}"))


def put(folder, name, text):
    with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
        file.write(text)


def runs(second):
    with open(os.path.join(second.root, "runs"), encoding="utf-8") as file:
        return file.read().splitlines()


def test_a_node_renews_what_its_program_makes(node, second):
    second.stop()
    use_program(second)
    end = time.gmtime(time.time() + 35)  # so it is run again at once
    put(second.root, "end", time.strftime("%Y-%m-%dT%H:%M:%SZ", end))
    second.start()
    api = node.api()
    until(lambda: capacity(api, "n2"), WAIT_S, "n2 is there")
    assert runs(second)[0] == "get-token"
    until(lambda: len(runs(second)) > 1, WAIT_S, "it is run again")
    # The token is revoked, and the program has another one.
    listed = api.must("GET", "/davit/v1/tokens")["tokens"]
    [old] = [one["id"] for one in listed if one["user"] == "system:node:n2"]
    other = os.path.join(second.root, "other.kubeconfig")
    make_token(node, other, "--node", "n2")
    with open(other, encoding="utf-8") as file:
        [line] = [line for line in file.read().splitlines() if "token:" in line]
    put(second.root, "token", line.partition(": ")[2].strip().strip('"'))
    assert api.ask("DELETE", f"/davit/v1/tokens/{old}").status == 200
    assert api.ask("DELETE", f"{NODES}/n2").status == 200
    until(lambda: capacity(api, "n2"), WAIT_S, "n2 is there again")


def test_davit_uses_it_and_says_what_is_wrong(node, second):
    until(lambda: capacity(node.api(), "n2"), WAIT_S, "n2 is there")
    use_program(second)
    done = run_davit("get", "node", "n2", "--kubeconfig", second.kubeconfig)
    assert done.returncode == 0 and "n2" in done.stdout, done
    put(second.root, "broken", "")
    done = run_davit("get", "node", "n2", "--kubeconfig", second.kubeconfig)
    assert done.returncode != 0 and "program: it ended with exit code 3" in done.stderr, done
    os.unlink(os.path.join(second.root, "program"))
    done = run_davit("get", "node", "n2", "--kubeconfig", second.kubeconfig)
    assert done.returncode != 0 and "it cannot be run" in done.stderr, done
