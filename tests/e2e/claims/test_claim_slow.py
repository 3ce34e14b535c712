"""What was begun before the first test of this folder; see slow_node.py."""

from claim_nodes import GPU, WAIT_S
from procs import until
from slow_node import CALL_S, WIPE_S


def test_slices_go_when_their_driver_has_been_gone_for_a_while(slow):
    until(lambda: "s1" not in slow.slices(), WIPE_S + WAIT_S, "the wipe")
    assert slow.slices() == {"s0", "s2", "elsewhere"}
    lines = [one for one in slow.node.proc.log.splitlines()
             if "ResourceSlices deleted" in one and "spec.driver=gone.example.com" in one]
    assert len(lines) == 1 and \
        'selector="spec.driver=gone.example.com,spec.nodeName=n1" n=1' in lines[0], lines


def test_a_call_that_hangs_ends_at_its_deadline(slow):
    """The driver has 45 s; what was prepared before that is undone."""
    answers = [one.result() for one in slow.admissions]
    for answer, took in zip(answers, slow.ended):
        assert (answer.admitted, answer.reason) == (False, "FailedPrepareDynamicResources")
        assert answer.message.startswith(
            "prepare dynamic resources: NodePrepareResources: rpc error: code = DeadlineExceeded")
        assert took is None or CALL_S - 1 < took < CALL_S + WAIT_S
    node = slow.node
    until(lambda: node.claims() == {}, WAIT_S, "the claims to be undone")
    assert slow.working.prepared() == set() and node.pods() == {}
    assert sorted(sum(slow.hanging.names("unprepare"), [])) == ["c1", "c2"]
    (counted,) = [value for name, value in node.metrics().items()
                  if name.startswith("dra_grpc_operations_duration_seconds_count")
                  and "DeadlineExceeded" in name and GPU in name]
    assert counted == 2
    slow.end()
