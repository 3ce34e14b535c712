"""Guides as tests see them: the commands and files of a page, and a shell to run them in.

A command stands behind `$` or `#` in a block without a language, perhaps with the machine's name before it; what is said of
it follows two blanks. A block whose commands need what no test machine has is marked in the page's own text, on the line
above it:

    <!-- not run by tests: it needs ... -->

What looks like a command and has no prompt is found by `unprompted`: nothing that a reader would type escapes.
"""

import glob

import os
import re
import shutil
import socket
import subprocess

from procs import until

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), *[os.pardir] * 3))
WAIT_S = 60
END = "-- the end --"
BLOCK = re.compile(r"^(?:<!-- not run by tests: (.+) -->\n)?```(\w*)\n(.*?)^```$", re.M | re.S)


# What a line begins with that a reader would type.
TYPED = re.compile(r"\s*(?:[$#] )?(?:sudo )?(?:\./dev|davit|davitd|kubectl|ctr|crictl|skopeo|podman|docker|runc|systemctl|systemd-run|"
                   r"apt|apt-get|meson|ninja|cc|gcc|curl|export|mkdir|mv|cp|rm|source|unshare|gdb|git)(?= )(?! *[-=]+>)")


def names():
    """All pages whose commands tests run."""
    return ["README.md", *sorted(os.path.basename(path) for path in glob.glob(os.path.join(ROOT, "docs/*.md")))]


def read(name):
    with open(os.path.join(ROOT, "" if name == "README.md" else "docs", name), encoding="utf-8") as page:
        return page.read()


def blocks(name):
    """(language, text) each."""
    return [(kind, text) for _, kind, text in BLOCK.findall(read(name))]


def prompts(name):
    """(why it is not run, machine, command) each; the first two may be empty."""
    for reason, kind, text in BLOCK.findall(read(name)):
        if kind:
            continue
        for machine, line in re.findall(r"^(?:(\w+) +)?[$#] (\S.*)$", re.sub(r" *\\\n\s*", " ", text), re.M):
            yield reason, machine, re.split(r"\s{2,}", line)[0]


def unprompted(name):
    """Lines of blocks that are commands, and stand behind no prompt where tests would see them."""
    text = read(name)
    shown = [block for reason, kind, block in BLOCK.findall(text) if not reason and kind in ("", "sh", "bash", "console", "shell")]
    shown += re.findall(r"(?:^ {4}\S.*\n)+", BLOCK.sub("", text), re.M)
    for block in shown:
        has_prompt = False  # what follows one may be what the command prints
        for line in block.splitlines():
            is_prompt = re.match(r"(?:\w+ +)?[$#] \S", line)
            has_prompt = has_prompt or is_prompt
            if not is_prompt and TYPED.match(line) and (not has_prompt or re.match(r"\s*[$#] ", line)):
                yield line


def commands(name):
    """Those that can be run here."""
    return [command for reason, _, command in prompts(name) if not reason]


def left_out(name):
    """Those that cannot, as the page says."""
    return [command for reason, _, command in prompts(name) if reason]


def files(name):
    """Those that the guide shows: their name is their first line, as a comment."""
    for kind, text in blocks(name):
        match = re.match(r"(?:# |/\* )(\S+\.\w+)\n", text)
        if kind and match:
            yield match.group(1), text


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Shell:
    """A shell in which davitd is one of the test's own, and the driver that a reader has is a sample."""

    def __init__(self, folder, build, cri="none", before=()):
        """before: words that start the shell with a /run of its own."""
        os.makedirs(folder, exist_ok=True)
        self.folder = folder
        self.has_own_run = bool(before)
        self.bin = os.path.join(folder, "bin")
        self.socket = os.path.join(folder, "r/davit.sock")
        os.mkdir(self.bin)
        self.port, self.node_port = free_port(), free_port()
        kubelet = f"--kubelet-dir {folder}/k"
        self.program("davitd", f'{build}/davitd "$@" {kubelet} --state-dir {folder}/s --runtime-dir {folder}/r --cdi-dirs {folder}/c'
                     f" --cri {cri} --pod-logs-dir {folder}/l $LISTEN")
        self.program("your-device-plugin", f"{build}/drivers/davit-sample-device-plugin --resource example.com/gpu --virtual 2 {kubelet}")
        self.program("your-dra-driver", f"{build}/drivers/davit-sample-dra-driver --driver gpu.example.com --node here"
                     f' --kubeconfig "$2" {kubelet} --cdi-dir {folder}/c')
        os.symlink(os.path.join(build, "davit"), os.path.join(self.bin, "davit"))
        for name in ("plugin.c", "dra.c", "allocate.c"):
            shutil.copy(os.path.join(ROOT, "examples", name), folder)
        shutil.copy(os.path.join(ROOT, "examples/allocate.c"), os.path.join(folder, "example.c"))
        env = {**os.environ, "PATH": f"{self.bin}:{os.environ['PATH']}", "DAVIT_SOCKET": self.socket,
               "KUBECONFIG": f"{folder}/s/admin.kubeconfig", "PKG_CONFIG_PATH": f"{build}/meson-uninstalled",
               "LD_LIBRARY_PATH": f"{build}/drivers:{build}/examples", "DEVICE_PLUGINS_DIR": f"{folder}/k/device-plugins",
               "PLUGIN_DIR": f"{folder}/k/plugins/serial.example.com", "REGISTRY_DIR": f"{folder}/k/plugins_registry",
               "CDI_DIR": f"{folder}/c", "LISTEN": f"--listen 127.0.0.1:{self.port}"}
        self.proc = subprocess.Popen([*before, "bash"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                     cwd=folder, env=env, start_new_session=True)

    def program(self, name, line):
        path = os.path.join(self.bin, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(f"#!/bin/sh\nexec {line}\n")
        os.chmod(path, 0o755)

    def run(self, command):
        """(status, output); what goes on in the background writes into a file."""
        if not self.has_own_run:
            command = command.replace("/run/", f"{self.folder}/r/")
        if command.endswith("&") or command.startswith("davitd "):
            command = f"{command.rstrip('&')} >>background.log 2>&1 &"
        self.proc.stdin.write(f"{command}\necho '{END}' $?\n")
        self.proc.stdin.flush()
        lines = []
        while (line := self.proc.stdout.readline()) and END not in line:
            lines.append(line)
        assert line, "".join(lines)
        last, _, status = line.partition(END)  # not every program ends its line
        return int(status), "".join([*lines, last])

    def davit(self, *words):
        return subprocess.run([os.path.join(self.bin, "davit"), *words], capture_output=True, text=True, check=False,
                              env={**os.environ, "DAVIT_SOCKET": self.socket})

    def settle(self, command):
        """Until what a command has started is there."""
        if command.startswith("davitd"):
            until(lambda: self.davit("status").returncode == 0, WAIT_S, "davitd")
        elif command.endswith("&"):
            until(lambda: "registered" in self.davit("plugins").stdout, WAIT_S, command)

    def close(self):
        """Ends what was started, in the order in which a machine would: drivers, then davitd."""
        self.run("kill $(jobs -p) 2>/dev/null; wait; true")
        self.proc.stdin.close()
        self.proc.wait(WAIT_S)
