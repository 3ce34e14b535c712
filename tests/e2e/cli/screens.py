"""A terminal: a program on a pseudo terminal, and what it shows."""

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import threading

from procs import until

# A loaded machine is slow, not broken.
WAIT_S = 30
SEQUENCE = re.compile(r"\033\[([?]?)([0-9;]*)([A-Za-z])")


class Screen:
    """The part of a terminal that davit needs: places, erasing, modes; colours are counted."""

    def __init__(self, width, height):
        self.modes = set()
        self.n_colours = 0
        self.odd = []  # what was not understood
        self._rest = ""
        self.resize(width, height)

    def resize(self, width, height):
        self.width, self.height = width, height
        self.row = self.column = 0
        self.clear()

    def clear(self):
        self.cells = [[" "] * self.width for _ in range(self.height)]

    @property
    def lines(self):
        return ["".join(line).rstrip() for line in self.cells]

    def feed(self, text):
        text = self._rest + text
        at = 0
        while at < len(text):
            if text[at] != "\033":
                self._put(text[at])
                at += 1
                continue
            found = SEQUENCE.match(text, at)
            if not found:
                break  # the rest of it is still to come
            self._obey(*found.groups())
            at = found.end()
        self._rest = text[at:]

    def _put(self, char):
        if char == "\r":
            self.column = 0
        elif char == "\n":
            self.row += 1
        elif char < " ":
            self.odd.append(char)
        elif self.row < self.height and self.column < self.width:
            self.cells[self.row][self.column] = char
            self.column += 1

    def _obey(self, private, numbers, letter):
        if private:
            (self.modes.add if letter == "h" else self.modes.discard)(numbers)
        elif letter == "H":
            row, column = (int(number) for number in (numbers or "1;1").split(";"))
            self.row, self.column = row - 1, column - 1
        elif letter == "K":
            self.cells[self.row][self.column:] = [" "] * (self.width - self.column)
        elif letter == "J" and numbers == "2":
            self.clear()
        elif letter == "m":
            self.n_colours += 1
        else:
            self.odd.append(numbers + letter)


class Terminal:
    """A program that thinks it is used by a person."""

    def __init__(self, command, width=80, height=24, **env):
        self.screen = Screen(width, height)
        self.master, self.slave = pty.openpty()
        self._set_size(width, height)
        self.before = termios.tcgetattr(self.slave)
        self.raw = ""
        self._lock = threading.Lock()
        self.proc = subprocess.Popen(
            command, stdin=self.slave, stdout=self.slave, stderr=self.slave,
            env={**os.environ, "TERM": "xterm", **env}, start_new_session=True,
        )
        self._is_closed = False
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self):
        while not self._is_closed:
            if not select.select([self.master], [], [], 0.05)[0]:
                continue
            try:
                data = os.read(self.master, 65536).decode(errors="replace")
            except OSError:
                return
            with self._lock:
                self.raw += data
                self.screen.feed(data)

    def _set_size(self, width, height):
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))

    def resize(self, width, height):
        with self._lock:
            self.screen.resize(width, height)
        self._set_size(width, height)
        self.proc.send_signal(signal.SIGWINCH)

    @property
    def lines(self):
        with self._lock:
            return self.screen.lines

    @property
    def text(self):
        return "\n".join(self.lines)

    def until(self, *texts):
        self._until(lambda: all(text in self.text for text in texts), f"{texts}")

    def until_gone(self, text):
        self._until(lambda: text not in self.text, f"no {text}")

    def _until(self, condition, what):
        try:
            until(condition, WAIT_S, what)
        except TimeoutError as error:
            raise TimeoutError(f"{error} on\n{self.text}") from None

    def press(self, keys):
        os.write(self.master, keys.encode())

    def end(self):
        """The exit code, once all of its output has been read."""
        code = self.proc.wait(WAIT_S)
        until(lambda: not select.select([self.master], [], [], 0)[0], WAIT_S, "the last output")
        return code

    @property
    def settings(self):
        return termios.tcgetattr(self.slave)

    def close(self):
        if self.proc.poll() is None:
            self.proc.kill()
            self.proc.wait()
        self._is_closed = True
        self._reader.join()
        os.close(self.slave)
        os.close(self.master)
