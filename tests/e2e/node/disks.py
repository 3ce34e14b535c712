"""Disks that a test can fill or break."""

import fcntl
import os
import shutil
import struct
import subprocess

import pytest

EXT4_SHUTDOWN = 0x8004587D  # EXT4_IOC_SHUTDOWN
WITHOUT_FLUSH = 2


def mount_or_skip(*words):
    done = subprocess.run(["mount", *words], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        pytest.skip(f"cannot mount here: {done.stderr.strip()}")


class Disk:
    """A file system of its own at `path`."""

    def __init__(self, path):
        self.path = path
        self.is_mounted = False
        os.makedirs(path, exist_ok=True)

    def mount(self):
        raise NotImplementedError

    def unmount(self):
        if self.is_mounted:
            subprocess.run(["umount", self.path], check=True)
            self.is_mounted = False


class Tmpfs(Disk):
    def __init__(self, path, options="size=2m"):
        super().__init__(path)
        self.options = options

    def mount(self):
        mount_or_skip("-t", "tmpfs", "-o", self.options, "davit-test", self.path)
        self.is_mounted = True
        return self

    def fill(self):
        """Not a byte is left."""
        with open(os.path.join(self.path, "filler"), "wb", buffering=0) as filler:
            for size in (1 << 16, 1 << 12, 1):
                try:
                    while True:
                        filler.write(bytes(size))
                except OSError:
                    pass  # full, as far as this size goes

    def empty(self):
        os.unlink(os.path.join(self.path, "filler"))


class Ext4(Disk):
    """In a file beside its mount point; can be lost like a disk that is pulled out."""

    def __init__(self, path):
        super().__init__(path)
        self.image = path + ".img"

    def mount(self):
        if not os.path.exists(self.image):
            if not shutil.which("mkfs.ext4", path="/usr/sbin:/sbin"):
                pytest.skip("needs mkfs.ext4")
            with open(self.image, "wb") as image:
                image.truncate(8 << 20)
            subprocess.run(["/usr/sbin/mkfs.ext4", "-q", self.image], check=True)
        mount_or_skip("-o", "loop", self.image, self.path)
        self.is_mounted = True
        return self

    def lose(self):
        """Every write fails from now on, until it is mounted again."""
        fd = os.open(self.path, os.O_RDONLY)
        try:
            fcntl.ioctl(fd, EXT4_SHUTDOWN, struct.pack("I", WITHOUT_FLUSH))
        except OSError as error:
            pytest.skip(f"cannot shut the file system down: {error}")
        finally:
            os.close(fd)
