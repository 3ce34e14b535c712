"""gRPC with stacks that are not ours: every client with every server, scenario by scenario.

The scenarios are in the peers themselves (tests/peers/README.md); here they are only brought
together. Pairs without davit are there to check the peers: one scenario each, or all of them
with DAVIT_FULL_MATRIX=1, which also takes the C-core server in.
"""

import os

import pytest

from peers import peer_path

pytestmark = pytest.mark.release

FULL = os.environ.get("DAVIT_FULL_MATRIX") == "1"

STACKS = ["davit", "go", "python"]
SANITY = "stream"
SCENARIOS = [
    "unary",
    "status",
    "status-after-messages",
    "unknown-method",
    "unknown-service",
    "stream",
    "deadline",
    "cancel",
    "large",
    "many",
    "reuse",
]
PAIRS = [(client, server) for client in STACKS for server in STACKS]
if FULL:
    PAIRS += [(client, "ccore") for client in STACKS]


def is_wanted(client, server, scenario):
    return FULL or "davit" in (client, server) or scenario == SANITY


def cases(scenarios):
    return [
        pytest.param(client, server, scenario, id=f"{client}-to-{server}-{scenario}")
        for client, server in PAIRS
        for scenario in scenarios
        if is_wanted(client, server, scenario)
    ]


def assert_ok(proc, scenario):
    code = proc.wait(60)
    assert code == 0 and proc.lines[-1:] == [f"ok {scenario}"], proc.describe()


@pytest.mark.parametrize("client, server, scenario", cases(SCENARIOS))
def test_pair(procs, peer_servers, client, server, scenario):
    socket, serving = peer_servers.get(server)
    assert_ok(procs.start(peer_path(client), "client", socket, scenario), scenario)
    assert serving.is_alive, serving.describe()


@pytest.mark.parametrize("client, server, scenario", cases(["interrupted"]))
def test_calls_end_when_the_server_is_killed(procs, short_dir, client, server, scenario):
    socket = os.path.join(short_dir, "s")
    serving = procs.start(peer_path(server), "server", socket, ready="ready")
    calling = procs.start(peer_path(client), "client", socket, scenario, ready="started")
    serving.kill()
    assert_ok(calling, scenario)


@pytest.mark.parametrize("client, server, scenario", cases(["reconnect"]))
def test_client_finds_a_restarted_server(procs, short_dir, client, server, scenario):
    socket = os.path.join(short_dir, "s")
    serving = procs.start(peer_path(server), "server", socket, ready="ready")
    calling = procs.start(peer_path(client), "client", socket, scenario, ready="started")
    serving.kill()
    procs.start(peer_path(server), "server", socket, ready="ready")
    calling.write_line()
    assert_ok(calling, scenario)


@pytest.mark.parametrize("server", STACKS)
def test_server_stops_on_sigterm_with_a_stream_open(procs, short_dir, server):
    socket = os.path.join(short_dir, "s")
    serving = procs.start(peer_path(server), "server", socket, ready="ready")
    watcher = "go" if server != "go" else "python"
    calling = procs.start(peer_path(watcher), "client", socket, "interrupted", ready="started")
    assert serving.stop() == 0, serving.describe()
    calling.wait(10)  # how its calls ended is for the server to choose
