"""The guides' commands, run from the guides' own text. Every command of every guide is run here or in a test that is
named, or there is a reason why not: a new one is noticed."""

import glob
import os
import re
import shutil
import socket
import subprocess

import pytest
from peers import folder_of
from procs import until

pytestmark = pytest.mark.release
ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), *[os.pardir] * 3))
WAIT_S = 60
END = "-- the end --"

# Run elsewhere, or not: why.
ELSEWHERE = {
    "run.md": "tests/e2e/engines/test_run_guide.py",
    "explain.md": "tests/e2e/cli/test_davit_explain.py",
    "build.md": "it builds and installs davit: ./dev distro does that; the image is tests/e2e/cdi/test_image.py",
    "cluster.md": "it needs the control plane of a real cluster",
    "drivers.md": "it needs the drivers of vendors, and writes where services do; tests/e2e/api/test_in_cluster.py",
    "run-pods.md": "below, on a runtime of the test's own; containers that others start are tests/e2e/cdi/test_inject_pod.py",
    "record.md": "tests/e2e/claims/test_claim_record.py and tests/e2e/whole record and replay",
    "verify.md": "tests/e2e/verify",
}
HERE = ["device-plugin.md", "dra-driver.md", "embed.md", "offer.md", "write-a-driver.md"]


def read(name):
    with open(os.path.join(ROOT, "docs", name), encoding="utf-8") as page:
        return page.read()


def blocks(name):
    return re.findall(r"^```(\w*)\n(.*?)^```$", read(name), re.M | re.S)


def commands(name):
    """What stands behind `$` or `#`, without what is said about it behind two blanks."""
    for kind, text in blocks(name):
        if not kind:
            for line in re.findall(r"^[$#] (\S.*)$", text, re.M):
                yield re.split(r"\s{2,}", line)[0]


def files(name):
    """Those that the guide shows: their name is their first line, as a comment."""
    for kind, text in blocks(name):
        match = re.match(r"(?:# |/\* )(\S+\.\w+)\n", text)
        if kind and match:
            yield match.group(1), text


class Shell:
    """A shell in which davitd is one of the test's own, and the driver that a reader has is a sample."""

    def __init__(self, folder, build, cri="none"):
        self.folder = folder
        self.bin = os.path.join(folder, "bin")
        self.socket = os.path.join(folder, "r/davit.sock")
        os.mkdir(self.bin)
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        kubelet = f"--kubelet-dir {folder}/k"
        self.program("davitd", f'{build}/davitd "$@" {kubelet} --state-dir {folder}/s --runtime-dir {folder}/r --cdi-dirs {folder}/c'
                     f" --cri {cri} --pod-logs-dir {folder}/l --listen 127.0.0.1:{port}")
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
               "CDI_DIR": f"{folder}/c"}
        self.proc = subprocess.Popen(["bash"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                     cwd=folder, env=env, start_new_session=True)

    def program(self, name, line):
        path = os.path.join(self.bin, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(f"#!/bin/sh\nexec {line}\n")
        os.chmod(path, 0o755)

    def run(self, command):
        """(status, output); what goes on in the background writes into a file."""
        command = command.replace("/run/", f"{self.folder}/r/")
        if command.endswith("&") or command.startswith("davitd "):
            command = f"{command.rstrip('&')} >>background.log 2>&1 &"
        self.proc.stdin.write(f"{command}\necho '{END}' $?\n")
        self.proc.stdin.flush()
        lines = []
        while (line := self.proc.stdout.readline()) and not line.startswith(END):
            lines.append(line)
        assert line, "".join(lines)
        return int(line.split()[-1]), "".join(lines)

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


@pytest.fixture
def shell(short_dir):
    build = folder_of("DAVIT_BUILD")
    if "asan" in build:
        pytest.skip("programs without a sanitizer cannot use libraries with one")
    made = Shell(short_dir, build)
    yield made
    made.close()


@pytest.mark.parametrize("name", HERE)
def test_the_commands_of_the_guide_work(shell, name):
    todo = list(commands(name))
    assert todo
    for path, text in files(name):
        with open(os.path.join(shell.folder, path), "w", encoding="utf-8") as file:
            file.write(text)
    if name != "embed.md" and not any(command.startswith("davitd") for command in todo):
        shell.run("davitd --node-name here &")
        shell.settle("davitd")
    for command in todo:
        status, output = shell.run(command)
        assert status == 0, f"{name}: {command}\n{output}"
        shell.settle(command)


def test_a_pod_runs_as_the_guide_says(containerd, short_dir):
    build = folder_of("DAVIT_BUILD")
    shell = Shell(short_dir, build, cri=f"unix://{containerd.socket}")
    text = dict(files("run-pods.md"))["pod.yaml"]
    # The image that is there, and a program that is in it.
    for old, new in (("registry.example/reader:1", containerd.image), ("exec reader", "exec sleep 1000")):
        assert old in text
        text = text.replace(old, new)
    with open(os.path.join(short_dir, "pod.yaml"), "w", encoding="utf-8") as file:
        file.write(text)
    todo = [command for command in commands("run-pods.md") if "reader -c main" not in command]
    todo = todo[:todo.index("davit devices") + 1]
    assert len(todo) == 8
    try:
        for command in ("davitd --node-name here &", f"{build}/drivers/davit-sample-device-plugin --resource example.com/port"
                        f" --virtual 2 --env PORTS --kubelet-dir {short_dir}/k &"):
            shell.run(command)
            shell.settle(command)
        for command in todo:
            command = command.replace("/var/lib/davit", f"{short_dir}/s").replace("/var/log/pods", f"{short_dir}/l")
            if command.endswith("-w"):
                command = f"timeout 2 {command} || [ $? = 124 ]"  # it goes on until Ctrl-C
            if "-it" in command:
                command = command.replace("-it", "-i") + " </dev/null"  # there is no terminal here
            if command.startswith("ls /var/log/containers"):
                continue  # of the whole machine
            status, output = shell.run(command)
            assert status == 0, f"{command}\n{output}"
            if "apply" in command:
                until(lambda: "Running" in shell.run("davit get pods")[1], WAIT_S, "the pod to run")
            if "logs" in command:
                assert output == "PORTS=virtual-0\n", output
        assert "reader" in output  # who holds what
        shell.run("davit delete pod reader --force")
        until(lambda: "reader" not in shell.run("davit devices")[1], WAIT_S, "the device to be free")
    finally:
        shell.close()


def test_every_guide_is_replayed_or_says_where():
    names = {os.path.basename(path) for path in glob.glob(os.path.join(ROOT, "docs/*.md"))}
    with_commands = {name for name in names if list(commands(name))}
    assert with_commands == set(HERE) | set(ELSEWHERE)
    for text in ELSEWHERE.values():
        for path in re.findall(r"tests/[\w/]+(?:\.py)?", text):
            assert os.path.exists(os.path.join(ROOT, path)), path


def test_guides_show_the_files_that_they_name():
    """`-f pod.yaml` in a guide is a file that it shows, or one of the tree."""
    for path in glob.glob(os.path.join(ROOT, "docs/*.md")):
        name = os.path.basename(path)
        shown = {file for file, _ in files(name)}
        text = read(name)
        for file in re.findall(r"(?:apply -f|admit -f|--claim) ([\w./-]+\.yaml)", text):
            assert file in shown or os.path.exists(os.path.join(ROOT, file)), f"{name} names {file}"
