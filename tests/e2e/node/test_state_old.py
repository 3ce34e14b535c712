"""State files that older kubelets wrote: imported, or named as what they are."""

import json
import os
from pathlib import Path

from nodes import run_davit
from plugin import Plugin

GPU = "example.com/gpu"
NAMES = {"PodUID": "uid-old", "ContainerName": "main", "ResourceName": GPU}
ANSWER = "CggKAUsSA3ZhbA=="  # env K=val
FLAT = {**NAMES, "DeviceIDs": ["d1", "d2"], "AllocResp": ANSWER}
FORMS = {
    "Kubernetes 1.8": {"Entries": [{**NAMES, "DeviceID": "d1"}, {**NAMES, "DeviceID": "d2"}]},
    "Kubernetes 1.9": {"Entries": [FLAT]},
    "Kubernetes 1.9 and 1.10": {"PodDeviceEntries": [FLAT], "RegisteredDevices": {GPU: ["d1"]}},
}
CLAIM = {
    "DriverName": "test-driver.cdi.k8s.io",
    "ClassName": "class-name",
    "ClaimUID": "067798be-454e-4be4-9047-1aa06aea63f7",
    "ClaimName": "example",
    "Namespace": "default",
    "PodUIDs": {"139cdb46-f989-4f17-9561-ca10cfb509a6": {}},
    "CDIDevices": {"test-driver.cdi.k8s.io": ["example.com/example=cdi-example"]},
}


def fnv(text):
    total = 2166136261
    for byte in text.encode():
        total = (total ^ byte) * 16777619 % 2**32
    return total


def flat_with_checksum():
    """The form of 1.11 to 1.19."""
    answer = " ".join(map(str, b"\x0a\x08\x0a\x01K\x12\x03val"))
    total = fnv(
        "(checkpoint.checkpointData){PodDeviceEntries:([]checkpoint.PodDevicesEntry)[{PodUID:(string)"
        f"uid-old ContainerName:(string)main ResourceName:(string){GPU} DeviceIDs:([]string)[d1 d2] "
        f"AllocResp:([]uint8)[{answer}]}}] RegisteredDevices:(map[string][]string)map[{GPU}:[d1]]}}"
    )
    data = {"PodDeviceEntries": [FLAT], "RegisteredDevices": {GPU: ["d1"]}}
    return {"Data": data, "Checksum": total}


def write(node, name, content):
    path = Path(node.kubelet_dir, name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return str(path)


def load(node):
    return run_davit("state", "import", "--kubelet-dir", node.kubelet_dir,
                     "--state-dir", node.state_dir)


def test_checkpoints_of_device_plugins_of_all_ages(make_node):
    node = make_node()
    base = node.state_dir
    forms = {**FORMS, "Kubernetes 1.11 to 1.19": flat_with_checksum()}
    for i, (form, content) in enumerate(forms.items()):
        path = write(node, "device-plugins/kubelet_internal_checkpoint", content)
        node.state_dir = f"{base}{i}"
        done = load(node)
        assert (done.returncode, done.stderr) == (0, ""), done
        assert f"{path} is in the form of {form}\n" in done.stdout, done
        assert "1 allocations read" in done.stdout, done
        assert ("no answer of their plugin" in done.stdout) == (form == "Kubernetes 1.8"), done
        node.start()
        assert sorted(d for d, seen in node.resources()[GPU].items() if seen.holders) == ["d1", "d2"]
        plugin = Plugin(node.plugin_dir, GPU, ["d1", "d2", "d3"]).serve().register()
        node.wait_devices(GPU, 3)
        envs = {env.key: env.value for env in node.container_options("uid-old", "main").envs}
        assert envs == ({} if form == "Kubernetes 1.8" else {"K": "val"})
        assert not plugin.allocated
        assert node.stop() == 0
        plugin.stop()


def test_claims_of_1_27_alone(make_node):
    node = make_node()
    path = write(node, "dra_manager_state", {"version": "v1", "entries": [CLAIM],
                                             "checksum": 153446146})
    done = load(node)
    assert (done.returncode, done.stderr) == (0, ""), done
    assert f"{path} is in the form of Kubernetes 1.27\n" in done.stdout, done
    assert "1 claims read" in done.stdout, done
    node.start()
    (claim,) = node.call("ListClaims", node.pb.ListClaimsRequest(),
                         node.pb.ListClaimsResponse).claims
    assert (claim.namespace, claim.name, claim.uid) == ("default", "example", CLAIM["ClaimUID"])


def test_what_cannot_be_imported_is_named_as_what_it_is(make_node):
    node = make_node()
    flat = flat_with_checksum()
    flat["Checksum"] += 1
    path = write(node, "device-plugins/kubelet_internal_checkpoint", flat)
    done = load(node)
    assert done.returncode == 1, done
    assert f"{path}, in the form of Kubernetes 1.11 to 1.19: checkpoint is corrupted" in done.stderr
    os.unlink(path)
    cases = {
        "Kubernetes 1.27: checkpoint is corrupted":
            {"version": "v1", "entries": [CLAIM], "checksum": 1},
        'version "v9"': {"version": "v9", "entries": [], "checksum": 1},
    }
    for text, content in cases.items():
        path = write(node, "dra_manager_state", content)
        done = load(node)
        assert done.returncode == 1 and text in done.stderr and path in done.stderr, done
