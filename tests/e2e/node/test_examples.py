"""The example driver of the documentation, as a reader would try it."""

import os

import pytest

from peers import folder_of

pytestmark = pytest.mark.release


def test_the_plugin_of_the_guide_offers_device_nodes(node, procs):
    procs.start(
        os.path.join(folder_of("DAVIT_BUILD"), "examples", "davit-example-plugin"),
        "example.com/node", "null", "zero", "nothing-of-this-name",
        env={"DEVICE_PLUGINS_DIR": node.plugin_dir}, ready="registered",
    )
    node.wait_devices("example.com/node", 2)
    health = {device.id: device.healthy for device in node.resources()["example.com/node"].values()}
    assert health == {"null": True, "zero": True, "nothing-of-this-name": False}
    pod = {"metadata": {"name": "p", "uid": "u"}, "spec": {"containers": [
        {"name": "c", "resources": {"limits": {"example.com/node": 2}}}]}}
    assert node.admit(pod).admitted
    options = node.container_options("u", "c")
    assert sorted(device.host_path for device in options.devices) == ["/dev/null", "/dev/zero"]
    assert {env.key: env.value for env in options.envs} == {"DEVICES": "null,zero"}
