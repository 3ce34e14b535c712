"""The Tab key beside a davitd: names of pods, resources, devices, leases, classes and containers."""

import pytest
from leases import Taking, give
from procs import until
from servers import PODS
from tab_keys import complete, shell_of
from whole_nodes import CLASSES, DEV, GPU, WAIT_S, device_class, pod


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_tab_key_knows_what_davitd_knows(node, driver, shell, short_dir):
    shell_of(shell)
    api = node.api()
    plugin = node.start_plugin(2)
    api.must("POST", CLASSES, device_class())
    api.must("POST", PODS, pod("train-0", limits={DEV: 1}))
    until(lambda: "train-0" in node.davit("status", "-o", "name").stdout, WAIT_S, "the pod")
    until(lambda: "device-3" in node.davit("devices").stdout, WAIT_S, "the driver's devices")
    lease = Taking(node, devices=[node.pb.LeaseDevices(device_class="gpu")]).next("granted").lease

    def tab(line, **env):
        return complete(shell, line, short_dir, **{"DAVIT_SOCKET": node.socket, "KUBECONFIG": node.kubeconfig, **env})

    assert tab("davit devices ") == sorted([DEV, GPU])
    assert tab("davit devices example.com/d") == [DEV]
    assert tab(f"davit devices {DEV} ") == ["virtual-0", "virtual-1"]
    assert tab(f"davit devices {DEV} virtual-0 ") == ["virtual-0", "virtual-1"]
    assert tab(f"davit devices {GPU} device-3") == ["device-3"]
    assert tab("davit release ") == ["default/train-0"]
    assert tab("davit options default/tr") == ["default/train-0"]
    assert tab("davit lease give ") == [lease.id]
    assert tab("davit run ") == sorted([DEV, GPU])
    assert tab("davit run --class ") == ["gpu"]
    assert tab("davit describe pod ") == ["train-0"]
    assert tab("davit logs train-0 -c ") == [one["name"] for one in pod("x")["spec"]["containers"]]
    # What the line says of where to ask counts more than the environment; options may come first.
    elsewhere = {"DAVIT_SOCKET": "/nowhere", "KUBECONFIG": ""}
    assert tab("davit release ", **elsewhere) == []
    assert tab(f"davit --socket {node.socket} release ", **elsewhere) == ["default/train-0"]
    assert tab(f"davit release --socket={node.socket} ", **elsewhere) == ["default/train-0"]
    assert tab(f"davit get pods --kubeconfig {node.kubeconfig} ", **elsewhere) == ["train-0"]
    give(node, lease.id)
    plugin.stop()
