"""The example driver of the documentation, as a reader would try it."""

import os
import subprocess

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


def test_the_examples_build_from_the_build_folder(tmp_path):
    """As docs/write-a-driver.md says, before anything is installed."""
    build = folder_of("DAVIT_BUILD")
    if "asan" in build:
        pytest.skip("programs without a sanitizer cannot use libraries with one")
    env = {**os.environ, "PKG_CONFIG_PATH": os.path.join(build, "meson-uninstalled")}
    source = os.path.join(os.path.dirname(__file__), "../../../examples")
    for name, package in (("plugin", "davit-driver"), ("dra", "davit-driver"), ("allocate", "davit")):
        flags = subprocess.run(["pkg-config", "--cflags", "--libs", package], env=env, capture_output=True, text=True,
                               check=True).stdout.split()
        subprocess.run(["cc", f"{source}/{name}.c", *flags, "-o", tmp_path / name], check=True)
