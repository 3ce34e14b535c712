"""A plugin with very many devices: nobody waits for its list, and nothing stays of one that is
being read when the plugin or davitd goes."""

import random
import time

import pytest

from procs import until

GPU = "example.com/gpu"
MANY = 200_000


@pytest.mark.parametrize("part", range(6))
def test_davitd_ends_while_a_long_list_is_read(make_node, plugins, part):
    node = make_node().start()
    plugin = plugins(node, GPU, [f"gpu-{number}" for number in range(MANY)])
    plugin.register()
    # Somewhere between the call and the end of the reading: any moment is a right one.
    time.sleep(random.random() * 0.1 * part)
    assert node.stop() == 0, node.proc.describe()


def test_a_plugin_that_goes_while_its_long_list_is_read_can_come_back(node, plugins):
    names = [f"gpu-{number}" for number in range(MANY)]
    for part in range(4):
        plugin = plugins(node, GPU, names)
        plugin.register()
        time.sleep(random.random() * 0.1 * part)
        plugin.stop()
    plugins(node, GPU, names[:100]).register()
    node.wait_devices(GPU, 100, 60)
    until(lambda: node.api().ask("GET", "/readyz").status == 200, 60, "ready")
