"""A made-up machine: a /dev with real nodes in it, and a sysfs."""

import os
import stat

XHCI = "devices/pci0000:00/0000:00:14.0"
# Real devices that do no harm: what a node is called is nothing to the kernel.
NULL, ZERO, FULL, RANDOM = (1, 3), (1, 5), (1, 7), (1, 8)


class Machine:
    """A /dev and a sysfs of our own."""

    def __init__(self, root):
        self.dev = os.path.join(root, "dev")
        self.sys = os.path.join(root, "sys")
        for folder in ("bus/usb/devices", "bus/pci/devices", "dev/char"):
            os.makedirs(os.path.join(self.sys, folder))
        os.makedirs(self.dev)

    def node(self, name, number):
        path = os.path.join(self.dev, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        os.mknod(path, stat.S_IFCHR | 0o600, os.makedev(*number))

    def remove(self, name):
        os.unlink(os.path.join(self.dev, name))

    def usb(self, port, node, number, **facts):
        """A USB device with one interface and a node."""
        device = f"{XHCI}/usb1/{port}"
        inner = f"{device}/{port}:1.0/{node}/tty/{node}"
        os.makedirs(os.path.join(self.sys, inner))
        for name, text in facts.items():
            with open(os.path.join(self.sys, device, name), "w", encoding="utf-8") as file:
                file.write(text + "\n")
        self._link(f"bus/usb/devices/{port}", device)
        self._link(f"dev/char/{number[0]}:{number[1]}", inner)
        self.node(node, number)

    def _link(self, path, target):
        full = os.path.join(self.sys, path)
        if os.path.lexists(full):
            os.unlink(full)
        os.symlink(os.path.relpath(os.path.join(self.sys, target), os.path.dirname(full)), full)
