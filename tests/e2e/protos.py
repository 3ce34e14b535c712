"""The messages of proto/, made by protoc when they are first needed.

What was made is kept in the build folder by the content of proto/: hundreds of tests and drivers are
processes of their own, and many of them are killed before they could clean up."""

import atexit
import functools
import hashlib
import importlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

PROTO_DIR = Path(__file__).resolve().parents[2] / "proto"


@functools.lru_cache(maxsize=None)
def _folder():
    build = os.environ.get("DAVIT_BUILD")
    if build:
        content = hashlib.sha256()
        for file in [Path(__file__), *sorted(PROTO_DIR.glob("*.proto"))]:
            content.update(file.read_bytes())
        folder = os.path.join(build, "protos-python", content.hexdigest()[:16])
        os.makedirs(folder, exist_ok=True)
    else:
        folder = tempfile.mkdtemp(prefix="dvp-")
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
    sys.path.insert(0, folder)
    return folder


def _make(name):
    """Packages collide across the APIs, and Python wants each message once in a process: here a file's
    package is its own name, of which the wire knows nothing."""
    text = (PROTO_DIR / f"{name}.proto").read_text(encoding="utf-8")
    imported = re.findall(r'(?m)^import "(.*)";', text)  # by their own names, which are long
    with tempfile.TemporaryDirectory(dir=_folder()) as scratch:
        copy = Path(scratch) / f"{name}.proto"
        copy.write_text(re.sub(r"(?m)^package .*;", f"package {name};", text), encoding="utf-8")
        for other in imported:
            shutil.copy(PROTO_DIR / other, scratch)
        subprocess.run(
            ["protoc", f"--proto_path={scratch}", f"--python_out={scratch}", copy.name, *imported],
            check=True,
            capture_output=True,
        )
        # Others may make the same at this time; the module itself comes last.
        for made in sorted(Path(scratch).glob("*_pb2.py"), key=lambda path: path.stem == f"{name}_pb2"):
            os.replace(made, os.path.join(_folder(), made.name))


@functools.lru_cache(maxsize=None)
def load(name):
    """The module of proto/NAME.proto."""
    if not os.path.exists(os.path.join(_folder(), f"{name}_pb2.py")):
        _make(name)
    importlib.invalidate_caches()
    return importlib.import_module(f"{name}_pb2")
