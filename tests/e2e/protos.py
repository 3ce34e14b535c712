"""The messages of proto/, made by protoc when they are first needed."""

import atexit
import functools
import importlib
import re
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
    """The module of proto/NAME.proto. Packages collide across the APIs, and Python wants each message
    once in a process: here a file's package is its own name, of which the wire knows nothing."""
    text = (PROTO_DIR / f"{name}.proto").read_text(encoding="utf-8")
    copy = Path(_folder()) / f"{name}.proto"
    copy.write_text(re.sub(r"(?m)^package .*;", f"package {name};", text), encoding="utf-8")
    imported = re.findall(r'(?m)^import "(.*)";', text)  # by their own names, which are long
    for other in imported:
        shutil.copy(PROTO_DIR / other, _folder())
    subprocess.run(
        ["protoc", f"--proto_path={_folder()}", f"--python_out={_folder()}", copy.name, *imported],
        check=True,
        capture_output=True,
    )
    importlib.invalidate_caches()
    return importlib.import_module(f"{name}_pb2")
