"""A davitd with all roles under attack. Where time, memory, descriptors or an end are attacked the tests
run in every build: what an attacker gets then depends on how the compiler laid things out."""

from pathlib import Path

import pytest
from servers import ApiNode

# What these attack is a decision (who may, what is read, which device), which is the same C in every
# build; they run with sanitizers alone.
DECISIONS = {
    "test_admin_access", "test_admit_and_sched", "test_damage", "test_driver_token", "test_http_smuggling",
    "test_impersonation", "test_ledger_first", "test_modes", "test_node_token", "test_plugin_ids", "test_pod_names",
    "test_policy", "test_pools", "test_read_back", "test_revoked", "test_slice_grace", "test_stale_sockets",
    "test_user_agent",
}


def pytest_collection_modifyitems(items):
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent) and item.path.stem not in DECISIONS:
            item.add_marker(pytest.mark.release)


@pytest.fixture
def new_node():
    return ApiNode
