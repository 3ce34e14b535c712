"""@kubernetes/client-node, unmodified: tests/peers/js."""

import os

import pytest

from peers import folder_of


def run(procs, node, scenario):
    program = os.path.join(folder_of("DAVIT_PEERS"), "js-client")
    proc = procs.start(program, node.kubeconfig, scenario)
    assert proc.wait() == 0, "\n".join([*proc.lines, proc.log])
    assert proc.lines[-1] == f"ok {scenario}"


@pytest.mark.parametrize("scenario", ["crud", "objects", "watch", "informer"])
def test_javascript(procs, node, scenario):
    run(procs, node, scenario)


def test_javascript_is_told_that_a_version_is_gone(procs, node, api):
    node.outgrow_history(api)
    run(procs, node, "gone")
