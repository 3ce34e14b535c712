"""docs/run.md: every command on the page gives what the page says. And the examples' leases."""

import glob
import os
import pwd
import re
import shlex
import subprocess

import pytest
from nodes import Node
from peers import folder_of
from test_run_plain import davit

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), *[os.pardir] * 3))
END = "-- the end --"
# A device that is everywhere stands for the page's, and whoever runs the tests for its user.
DEVICE = "null"


def blocks():
    with open(os.path.join(ROOT, "docs/run.md"), encoding="utf-8") as page:
        return [block for block in re.findall(r"^```\n(.*?)^```$", page.read(), re.M | re.S)
                if block.startswith("$ ")]


def steps(block):
    """(command, what it prints) each."""
    parts = re.split(r"^\$ ", block, flags=re.M)[1:]
    return [tuple(part.split("\n", 1)) for part in parts]


def plain(text):
    """Numbers and times are others each time; columns are as wide as they."""
    text = re.sub(r"pid \d+", "pid 1", text)
    text = re.sub(r"\b(\d+[smh])+\b", "1s", text)
    text = re.sub(rf"\b{pwd.getpwuid(os.getuid()).pw_name}\b", "ada", text)
    text = re.sub(r" +", " ", re.sub(rf"\b{DEVICE}\b", "gpu0", text))
    # The names of leases.
    return re.sub(r"(?<=DAVIT_LEASE=)\w+|^\w{6}(?= ada | has )", "k4qz7w", text, flags=re.M)


@pytest.fixture
def new_node():
    return Node


@pytest.fixture
def shell(node, procs, short_dir):
    """A shell in which davit is ours, beside a davitd with a plugin of one device; what a command
    prints can be read."""
    procs.start(os.path.join(folder_of("DAVIT_BUILD"), "drivers", "davit-sample-device-plugin"),
                "--kubelet-dir", node.kubelet_dir, "--resource", "example.com/gpu", "--devices",
                f"/dev/{DEVICE}", "--env", "GPU", ready="registered")
    node.wait_devices("example.com/gpu", 1)
    program = os.path.join(os.environ["DAVIT_BUILD"], "davit")
    path = os.path.join(short_dir, "davit")
    with open(path, "w", encoding="utf-8") as file:
        file.write(f'#!/bin/sh\nverb=$1; shift\nexec {program} $verb --socket {node.socket} "$@"\n')
    os.chmod(path, 0o755)
    proc = subprocess.Popen(["bash"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT, text=True, cwd=short_dir,
                            env={**os.environ, "PATH": short_dir + ":" + os.environ["PATH"]})

    def run(command):
        proc.stdin.write(f"{command}\necho '{END}'\n")
        proc.stdin.flush()
        lines = []
        while (line := proc.stdout.readline()) and line != END + "\n":
            lines.append(line)
        return "".join(lines)

    yield run
    proc.stdin.close()
    proc.wait(20)


@pytest.mark.parametrize("block", blocks(), ids=range(len(blocks())))
def test_the_page_says_what_happens(shell, block):
    for command, expected in steps(block):
        got = shell(command)
        # What the shell itself says about its jobs is not on the page.
        got = "".join(line for line in got.splitlines(True)
                      if not re.match(r"\[\d+\]|bash: line \d+:.*Terminated", line))
        assert plain(got) == plain(expected), command


def test_the_messages_of_the_page_are_those_of_the_programs():
    sources = ""
    for folder in ("cli", "engines", "cdi"):
        for path in glob.glob(os.path.join(ROOT, "src", folder, "**", "*.c"), recursive=True):
            with open(path, encoding="utf-8") as file:
                sources += re.sub(r'"\s*\n\s*"', "", file.read()).replace('\\"', '"')
    with open(os.path.join(ROOT, "docs/run.md"), encoding="utf-8") as page:
        table = page.read().partition("## When it does not work")[2]
    messages = re.findall(r"^\| (?!message|-)(.+?) \|", table, re.M)
    assert len(messages) == 6
    for message in messages:
        # What stands for a name, a path or a number is not in the source.
        for part in re.split(r"\.\.\.|/run\S+|\b[A-Z]\b|podman create", message):
            words = part.strip(' :"')
            assert len(words) < 4 or words in sources, (message, words)


@pytest.mark.parametrize("name", ["train.service", "train.container", "davit-compose.service"])
def test_the_examples_take_leases(leases, short_dir, name):
    leases.grant = {"cdi_devices": ["vendor.com/gpu=0"],
                    "devices": [leases.pb.DeviceNode(host_path="/dev/null",
                                                     container_path="/dev/gpu0")]}
    with open(os.path.join(ROOT, "examples/run", name), encoding="utf-8") as file:
        text = file.read()
    line = re.search(r"^ExecStartPre=\+?/usr/bin/davit (.*)$", text, re.M).group(1)
    words = shlex.split(line.replace("%n", name))
    path = words[words.index("--env-file") + 1]
    assert f"\nEnvironmentFile=-{path}\n" in text
    words[words.index("--env-file") + 1] = os.path.join(short_dir, "env")
    done = davit(leases, *words)
    assert (done.returncode, done.stdout) == (0, "vendor.com/gpu=0\n"), done
    assert leases.held[0].unit == name
    with open(os.path.join(short_dir, "env"), encoding="utf-8") as file:
        made = file.read()
    for variable in re.findall(r"\$\{(\w+)\}", text):
        assert f"\n{variable}=" in made
