"""An image made from Debian's busybox-static, so that no registry is needed."""

import hashlib
import io
import json
import os
import platform
import subprocess
import tarfile

BUSYBOX = "/bin/busybox"
# What sandboxes run. Its own name, because an image is what its config says.
PAUSE = "davit.test/pause:1"
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
FILES = {
    "etc/passwd": "root:x:0:0:root:/root:/bin/sh\nuser:x:1000:1000:user:/:/bin/sh\n",
    "etc/group": "root:x:0:\nuser:x:1000:\n",
}


def _add(archive, name, content=b"", kind=tarfile.REGTYPE, mode=0o644, link=""):
    entry = tarfile.TarInfo(name)
    entry.type, entry.mode, entry.linkname, entry.size = kind, mode, link, len(content)
    archive.addfile(entry, io.BytesIO(content))


def _layer():
    """A root file system as a tar: busybox, its applets as links, two users and folders."""
    applets = subprocess.run([BUSYBOX, "--list"], check=True, text=True, stdout=subprocess.PIPE)
    with open(BUSYBOX, "rb") as program:
        busybox = program.read()
    layer = io.BytesIO()
    with tarfile.open(fileobj=layer, mode="w") as archive:
        for folder, mode in {"bin": 0o755, "etc": 0o755, "root": 0o700, "tmp": 0o1777}.items():
            _add(archive, folder, kind=tarfile.DIRTYPE, mode=mode)
        _add(archive, "bin/busybox", busybox, mode=0o755)
        for name in sorted(set(applets.stdout.split()) - {"busybox"}):
            _add(archive, f"bin/{name}", kind=tarfile.SYMTYPE, link="busybox")
        for name, text in FILES.items():
            _add(archive, name, text.encode())
    return layer.getvalue()


def _config(layer, command):
    return json.dumps({
        "architecture": ARCHITECTURES[platform.machine()],
        "os": "linux",
        "config": {"Cmd": command, "Env": ["PATH=/bin"], "WorkingDir": "/"},
        "rootfs": {"type": "layers", "diff_ids": ["sha256:" + hashlib.sha256(layer).hexdigest()]},
    }).encode()


def write(path, name):
    """Writes an archive with the image `name`, which runs a shell, and that of sandboxes."""
    layer = _layer()
    manifest = []
    with tarfile.open(path + ".new", mode="w") as archive:
        _add(archive, "layer.tar", layer)
        images = [(name, ["sh"]), (PAUSE, ["sleep", "2147483647"])]
        for number, (tag, command) in enumerate(images):
            _add(archive, f"config-{number}.json", _config(layer, command))
            manifest.append({"Config": f"config-{number}.json", "RepoTags": [tag],
                             "Layers": ["layer.tar"]})
        _add(archive, "manifest.json", json.dumps(manifest).encode())
    os.rename(path + ".new", path)
