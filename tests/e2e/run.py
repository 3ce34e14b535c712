"""Runs a folder of end-to-end tests for `meson test`: tests/e2e/run.py FOLDER

DAVIT_BUILD names the build folder. Peers on other stacks are those in DAVIT_PEERS, or in the build
folder; tests that need them are skipped where there are none.
"""
import importlib.util
import os
import subprocess
import sys
from pathlib import Path

SKIPPED = 77  # for Meson
# Debian's package of each module that the tests cannot do without.
NEEDED = {"pytest": "python3-pytest", "grpc": "python3-grpcio", "google.protobuf": "python3-protobuf"}
TEST_TIMEOUT_S = 120


def is_there(module):
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:  # of the package that it is in
        return False


def main(folder):
    missing = [f"{module} (Debian: {package})" for module, package in NEEDED.items()
               if not is_there(module)]
    if missing:
        print(f"not run: {sys.executable} has no module " + ", ".join(missing))
        return SKIPPED
    build = Path(os.environ["DAVIT_BUILD"])
    if "DAVIT_PEERS" not in os.environ and (build / "peers/go-peer").exists():
        os.environ["DAVIT_PEERS"] = str(build / "peers")
    options = ["-q", "-ra", "--tb=short", "-p", "no:cacheprovider"]
    if is_there("pytest_timeout"):
        options.append(f"--timeout={TEST_TIMEOUT_S}")
    if is_there("xdist"):
        options += ["-n", str(len(os.sched_getaffinity(0))), "--dist", "loadfile"]
    return subprocess.run([sys.executable, "-B", "-m", "pytest", *options, folder],
                          check=False).returncode


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
