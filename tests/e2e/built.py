"""What the programs under test were built with."""

import json
import os
import subprocess

import pytest

from peers import folder_of


def need_ui():
    """Skips where davitd has no page, as the options say that Meson wrote into the build folder."""
    path = os.path.join(folder_of("DAVIT_BUILD"), "meson-info", "intro-buildoptions.json")
    with open(path, encoding="utf-8") as file:
        options = {option["name"]: option["value"] for option in json.load(file)}
    if "disabled" in (options["ui"], options["ui"] == "auto" and options["auto_features"]):
        pytest.skip("built with -Dui=disabled")


def need_systemd():
    """Skips where davitd tells no service manager anything."""
    davit = os.path.join(folder_of("DAVIT_BUILD"), "davit")
    said = subprocess.run([davit, "version", "-o", "json"], check=True, stdout=subprocess.PIPE)
    if all(library["name"] != "libsystemd" for library in json.loads(said.stdout)["built_with"]):
        pytest.skip("built without libsystemd")
