"""The guides' commands, run from the guides' own text. Every command of every guide is run here or in a test that is
named, or there is a reason why not: a new one is noticed."""

import os
import re

import pytest
import yaml
from guide_shells import ROOT, WAIT_S, Shell, blocks, commands, files, left_out, names, read, unprompted
from peers import folder_of
from procs import until

pytestmark = pytest.mark.release

# Run elsewhere, or not: why.
ELSEWHERE = {
    "README.md": "tests/e2e/whole/test_tour.py is ./dev run; ./dev test is what runs this",
    "run.md": "tests/e2e/engines/test_run_guide.py",
    "explain.md": "tests/e2e/whole/test_guides_apart.py; what is printed: tests/e2e/cli/test_davit_explain.py",
    **{name: "tests/e2e/whole/test_guides_apart.py" for name in
       ("build.md", "cluster.md", "drivers.md", "policy.md", "record.md", "verify.md", "workloads.md")},
    "run-pods.md": "below, on a runtime of the test's own; containers that others start: tests/e2e/whole/test_guides_apart.py",
}
# How many commands a page says that no test runs.
LEFT_OUT = {"build.md": 1, "cluster.md": 1, "operate.md": 2, "run-pods.md": 1}
HERE = ["custom-resources.md", "device-plugin.md", "dra-driver.md", "embed.md", "offer.md", "ui.md", "write-a-driver.md"]


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
    todo = commands(name)
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
    assert len(todo) == 9
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
            if command.startswith("ctr "):
                command = f"CONTAINERD_ADDRESS={containerd.socket} {command}".replace(
                    "FILE.tar", os.path.join(containerd.folder, "image.tar"))
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
    with_commands = {name for name in names() if commands(name)}
    assert with_commands == set(HERE) | set(ELSEWHERE)
    assert {name: len(left_out(name)) for name in names() if left_out(name)} == LEFT_OUT
    for text in ELSEWHERE.values():
        for path in re.findall(r"tests/[\w/]+(?:\.py)?", text):
            assert os.path.exists(os.path.join(ROOT, path)), path


@pytest.mark.parametrize("name", names())
def test_every_command_stands_behind_a_prompt(name):
    """Or nothing above would see it."""
    assert list(unprompted(name)) == []


def test_guides_show_the_files_that_they_name():
    """`-f pod.yaml` in a guide is a file that it shows, or one of the tree."""
    for name in set(names()) - {"README.md"}:  # which shows what the tour prints
        shown = {file for file, _ in files(name)}
        text = read(name)
        for file in re.findall(r"(?:apply -f|admit -f|--claim) ([\w./-]+\.yaml)", text):
            assert file in shown or os.path.exists(os.path.join(ROOT, file)), f"{name} names {file}"


def test_the_objects_that_guides_show_are_taken(shell):
    """As they stand on the page, each block in a namespace of its own."""
    shell.run("davitd --node-name here &")
    shell.settle("davitd")
    n = 0
    for name in names():
        for kind, text in blocks(name):
            if kind != "yaml":
                continue
            documents = [one for one in yaml.safe_load_all(text) if one]
            assert documents, name
            if not all("apiVersion" in one for one in documents):
                continue  # a part of one
            n += 1
            with open(os.path.join(shell.folder, "block.yaml"), "w", encoding="utf-8") as file:
                file.write(f"apiVersion: v1\nkind: Namespace\nmetadata: {{name: guide-{n}}}\n---\n{text}")
            # A kind that another block defines is kubectl's.
            tool = "kubectl" if "fabric.example.com/" in text else "davit"
            status, output = shell.run(f"{tool} apply -n guide-{n} -f block.yaml")
            assert status == 0 and "warning" not in output.lower(), f"{name}:\n{text}\n{output}"
    assert n > 6
