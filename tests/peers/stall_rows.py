"""The rows of bench_stall.py: worst requests, in groups that share a davitd."""

import stall_claims
import stall_devices
import stall_listings
import stall_lists
import stall_node_api
import stall_objects
import stall_runtime
import stall_sched
import stall_workloads


class Row:
    def __init__(self, name, act, prepare=None):
        self.name = name
        self.act = act  # function(world)
        self.prepare = prepare  # function(world): not measured


def groups():
    """(name, rows, options of davitd...), in turn."""
    for part in (stall_objects, stall_lists, stall_devices, stall_listings, stall_sched,
                 stall_claims, stall_runtime, stall_node_api, stall_workloads):
        yield from part.groups(Row)
