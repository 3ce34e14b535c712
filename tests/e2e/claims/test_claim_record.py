"""The flight recorder with DRA drivers that are not ours: in Python (grpcio) and in Go (grpc-go)."""

import json
import os
import shutil

import pytest

from claim_nodes import GPU, WAIT_S, make_claim, pod
from nodes import run_davit
from peers import folder_of
from procs import until
from test_claim_peers import PROGRAMS, Peer


def show(place, *options):
    done = run_davit("record", "show", place, "-o", "json", *options)
    assert done.returncode == 0, done
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.fixture
def place(short_dir):
    return os.path.join(short_dir, "rec")


def write_spec(node, claim):
    """What the driver would write: a recording has the names only."""
    spec = {"cdiVersion": "0.5.0", "kind": f"{GPU}/claim", "devices": [
        {"name": f"{claim}-0", "containerEdits": {"env": ["REPLAYED=1"]}}]}
    with open(os.path.join(node.cdi_dir, "replayed.json"), "w", encoding="ascii") as file:
        json.dump(spec, file)


@pytest.mark.parametrize("language", PROGRAMS)
def test_a_driver_is_recorded_shown_and_played_back(make_node, procs, place, language):
    node = make_node("--record", place).start()
    peer = Peer(node, language)
    device = "gpu-1"
    claim = make_claim(node.api(), "c", (GPU, device), pods=["a"])
    assert node.admit(pod("a", {"gpu": "c"}), wait=WAIT_S).admitted
    until(lambda: any(one["kind"] == "end" for one in show(place, "--claim", "default/c")), WAIT_S,
          "the call in the recording")
    asked, answered, ended = show(place, "--claim", claim)
    assert asked["name"] == GPU and asked["podUID"] == "uid-a" and ended["status"] == "OK"
    (prepared,) = answered["message"]["claims"][claim]["devices"]
    assert prepared["cdi_device_ids"] == [f"{GPU}/claim={claim}-0"]
    assert any(one["method"].endswith("/GetInfo") for one in show(place, "--driver", GPU)
               if "method" in one)

    # The same driver answers the same; the claim is prepared already.
    words = ("record", "replay", "--as", "kubelet", place, "--driver", GPU, "--socket", asked["socket"])
    same = run_davit(*words, "--driver", GPU)
    assert same.returncode == 0, same

    # Served again, it answers for a claim of another name and UID.
    assert node.stop() == 0
    peer.proc.kill()
    for name in os.listdir(node.cdi_dir):
        os.unlink(os.path.join(node.cdi_dir, name))
    shutil.rmtree(node.state_dir)
    shutil.rmtree(node.kubelet_dir)
    fresh = make_node().start()
    replay = procs.start(
        os.path.join(folder_of("DAVIT_BUILD"), "davit"), "record", "replay", "--as", "driver", place,
        "--driver", GPU, "--kubelet-dir", fresh.kubelet_dir)
    fresh.wait_connected(GPU)
    other = make_claim(fresh.api(), "other", (GPU, device), pods=["b"])
    write_spec(fresh, other)
    assert fresh.admit(pod("b", {"gpu": "other"}), wait=WAIT_S).admitted
    assert other != claim and fresh.cdi_devices("uid-b") == [f"{GPU}/claim={other}-0"]
    assert fresh.stop() == 0
    assert replay.stop() == 0
