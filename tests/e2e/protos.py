"""The messages of proto/, made by protoc when they are first needed."""

import atexit
import functools
import importlib
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

PROTO_DIR = Path(__file__).resolve().parents[2] / "proto"


@functools.lru_cache(maxsize=None)
def _folder():
    folder = tempfile.mkdtemp(prefix="dvp-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    sys.path.insert(0, folder)
    return folder


@functools.lru_cache(maxsize=None)
def load(name):
    """The module of proto/NAME.proto."""
    subprocess.run(
        ["protoc", f"--proto_path={PROTO_DIR}", f"--python_out={_folder()}", f"{name}.proto"],
        check=True,
        capture_output=True,
    )
    importlib.invalidate_caches()
    return importlib.import_module(f"{name}_pb2")
