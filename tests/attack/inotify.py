"""inotify without a library: a thread that reacts on files at once, as many plugins do."""

import ctypes
import os
import select
import struct
import threading

IN_CREATE = 0x100
IN_DELETE = 0x200
IN_MOVED_TO = 0x80
EVENT = struct.Struct("iIII")

libc = ctypes.CDLL(None, use_errno=True)


class Watch:
    """Calls `react(mask, name)` for what comes and goes in a folder, on a thread of its own."""

    def __init__(self, folder, react):
        self._react = react
        self._fd = libc.inotify_init1(os.O_CLOEXEC)
        assert self._fd >= 0, os.strerror(ctypes.get_errno())
        mask = IN_CREATE | IN_DELETE | IN_MOVED_TO
        added = libc.inotify_add_watch(self._fd, os.fsencode(folder), mask)
        assert added >= 0, os.strerror(ctypes.get_errno())
        self._stop_read, self._stop_write = os.pipe()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self):
        while True:
            ready, _, _ = select.select([self._fd, self._stop_read], [], [])
            if self._stop_read in ready:
                return
            data = os.read(self._fd, 1 << 16)
            at = 0
            while at < len(data):
                _, mask, _, size = EVENT.unpack_from(data, at)
                at += EVENT.size
                self._react(mask, os.fsdecode(data[at : at + size].rstrip(b"\0")))
                at += size

    def close(self):
        os.write(self._stop_write, b"x")
        self._thread.join()
        for fd in (self._fd, self._stop_read, self._stop_write):
            os.close(fd)
