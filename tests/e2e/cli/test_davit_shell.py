"""What people meet who use davit by hand: the Tab key in three shells, colours, the version."""

import json
import os
import subprocess

import pytest

from runs import davit_path, run_on_terminal
from tab_keys import complete, shell_of

@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
@pytest.mark.parametrize(
    "line, expected",
    [
        ("davit plu", ["plugins"]),
        ("davit get slic", ["slices"]),
        ("davit get pods,cla", ["pods,claims", "pods,classes"]),
        ("davit state ", ["backup", "export", "import", "restore"]),
        ("davit get pods -o ", ["json", "jsonpath=", "name", "wide", "yaml"]),
        ("davit get pods --no-h", ["--no-headers"]),
        ("davit help stat", ["state", "status"]),
        ("davit nosuchverb ", []),
    ],
)
def test_the_tab_key(shell, line, expected, short_dir):
    assert complete(shell_of(shell), line, short_dir) == expected


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_tab_key_offers_files(shell, short_dir):
    open(os.path.join(short_dir, "pod-a.yaml"), "w", encoding="utf-8").close()
    assert complete(shell_of(shell), "davit apply -f pod", short_dir) == ["pod-a.yaml"]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_tab_key_offers_names_of_objects(shell, real, short_dir):
    assert "default" in complete(shell_of(shell), "davit get namespaces ", short_dir, KUBECONFIG=real.config)
    assert complete(shell, "davit get ns/defau", short_dir, KUBECONFIG=real.config) == ["ns/default"]


def test_colours_are_for_terminals(real):
    words = ["get", "namespaces", "--kubeconfig", real.config]
    env = {"TERM": "xterm"}
    coloured = run_on_terminal(words, env)
    assert coloured.startswith("\033[1mNAME\033[0m") and "\033[32mActive\033[0m" in coloured
    assert "\033" not in run_on_terminal(words, {**env, "NO_COLOR": "1"})
    assert "\033" not in run_on_terminal(words, {"TERM": "dumb"})
    piped = real.ok("get", "namespaces", env=env)
    assert "\033" not in piped
    # Colours take no place: the columns are where they are without.
    plain = coloured.replace("\033[1m", "").replace("\033[32m", "").replace("\033[0m", "")
    assert [line.split()[:2] for line in plain.splitlines()] == [
        line.split()[:2] for line in piped.splitlines()]
    assert {line.find("Active") for line in plain.splitlines()[1:]} == {plain.find("STATUS")}


def test_mistakes_are_coloured_on_terminals_only():
    assert run_on_terminal(["sttus"], {"TERM": "xterm"}).startswith("\033[31mdavit:\033[0m no verb")
    assert run_on_terminal(["sttus"], {"TERM": "xterm", "NO_COLOR": "1"}).startswith("davit: no")


def test_version_names_what_it_was_built_with():
    def version(*words):
        return subprocess.run([davit_path(), "version", *words], capture_output=True, text=True,
                              check=True).stdout

    doc = json.loads(version("--json"))
    assert version("-o", "json") == version("--json")
    assert version() == f"davit {doc['version']}\n"
    libraries = {library["name"]: library["version"] for library in doc["built_with"]}
    assert {"libuv", "libnghttp2", "sqlite3", "libcurl", "gnutls"} <= set(libraries)
    assert all(text[0].isdigit() for text in libraries.values())
    assert doc["compiler"]
