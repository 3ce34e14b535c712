"""Tokens for drivers, nodes and people, made and taken back with davit."""

import json
import os
import re
import stat
import subprocess
import time

import pytest

from procs import until
from runs import davit_path, write_config

DRIVER = ["token", "create", "--driver", "gpu.example.com", "--node", "n1"]

SLICE = """\
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: NAME}
spec:
  driver: DRIVER
  nodeName: n1
  pool: {name: n1, generation: 1, resourceSliceCount: 1}
"""


def slice_of(name, driver):
    return SLICE.replace("NAME", name).replace("DRIVER", driver)


def test_a_token_is_printed_alone(real, api_server, short_dir):
    out = real.ok(*DRIVER)
    assert out.count("\n") == 1 and " " not in out
    config = write_config(os.path.join(short_dir, "driver"), api_server.url, token=out.strip(),
                          **{"certificate-authority": api_server.ca})
    real.ok("apply", "-f", "-", stdin=slice_of("a", "gpu.example.com"), config=config)
    done = real.run("apply", "-f", "-", stdin=slice_of("b", "nic.example.com"), config=config)
    assert done.returncode == 1 and "(Forbidden)" in done.stderr, done
    done = real.run("token", "list", config=config)
    assert done.returncode == 1 and "(Forbidden)" in done.stderr, done


def test_a_kubeconfig_for_a_driver(real, short_dir):
    path = os.path.join(short_dir, "gpu.kubeconfig")
    with open(path, "w", encoding="utf-8") as file:
        file.write("what was there before")
    out = real.ok(*DRIVER, "--write-kubeconfig", path)
    assert out.startswith(f"{path} written: token ") and "davit:driver:gpu.example.com" in out
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
    real.ok("apply", "-f", "-", stdin=slice_of("a", "gpu.example.com"), config=path)
    assert real.ok("get", "slices", "a", "-o", "name", config=path) == "resourceslice/a\n"
    # kubectl reads such files as well: all of them are YAML maps with these keys.
    with open(path, encoding="utf-8") as file:
        text = file.read()
    for key in ("apiVersion: v1", "kind: Config", "certificate-authority-data:", "token:",
                "current-context: davit"):
        assert key in text


def test_what_cannot_be_written_is_taken_back(real):
    before = real.ok("token", "list")
    done = real.run(*DRIVER, "--write-kubeconfig", "/no/such/folder/config")
    assert (done.returncode, done.stdout) == (1, "")
    assert "/no/such/folder/config" in done.stderr and "is taken back" in done.stderr
    assert real.ok("token", "list") == before


def test_tokens_are_listed_and_revoked(real, api_server, short_dir):
    driver = json.loads(real.ok(*DRIVER, "-o", "json"))
    node = json.loads(real.ok("token", "create", "--node", "n2", "--ttl", "24h", "-o", "json"))
    admin = json.loads(real.ok("token", "create", "--admin", "ada", "-o", "json"))
    assert set(driver) == {"id", "user", "node", "created", "token"} and "expires" in node
    lines = real.ok("token", "list").splitlines()
    assert lines[0].split() == ["ID", "USER", "CREATED", "EXPIRES", "NODE", "ALSO"]
    rows = {line.split()[0]: line.split() for line in lines[1:]}
    assert rows[driver["id"]][1] == "davit:driver:gpu.example.com"
    assert rows[driver["id"]][3] == "never" and rows[node["id"]][3] == node["expires"]
    assert len(real.ok("token", "list", "--no-headers").splitlines()) == len(rows)
    config = write_config(os.path.join(short_dir, "ada"), api_server.url, token=admin["token"],
                          **{"certificate-authority": api_server.ca})
    assert real.ok("token", "revoke", driver["id"], node["id"], config=config) == (
        f"token {driver['id']} revoked\ntoken {node['id']} revoked\n")
    done = real.run("token", "revoke", driver["id"], admin["id"])
    assert (done.returncode, done.stdout) == (1, f"token {admin['id']} revoked\n")
    assert f"token {driver['id']}: " in done.stderr and "(NotFound)" in done.stderr
    done = real.run("get", "pods", config=config)
    assert done.returncode == 1 and "(Unauthorized)" in done.stderr


@pytest.mark.parametrize("words", [
    [], ["make"], ["list", "x"], ["list", "--node", "n"], ["revoke"], ["revoke", "../secrets"],
    ["create"], ["create", "--driver", "d"], ["create", "--admin", "a", "--node", "n"],
    ["create", "x", "--node", "n"], ["create", "--node", "n", "--ttl", "0"],
    ["create", "--node", "n", "--ttl", "soon"],
])
def test_wrong_words(davit, words):
    done = davit.run("token", *words)
    assert (done.returncode, done.stdout) == (2, "") and "davit help token" in done.stderr, done


def test_what_the_server_refuses(real):
    done = real.run("token", "create", "--driver", "a/b", "--node", "n")
    assert done.returncode == 1 and '"a/b" is not the name of a driver' in done.stderr, done


def test_a_server_that_has_no_tokens(davit, fake):
    done = davit.run("token", "list")
    assert done.returncode == 1 and "only davitd gives out tokens" in done.stderr, done


BROWSER = """\
#!/bin/sh
echo noise; echo noise >&2
echo "$1" >{opened}.new && mv {opened}.new {opened}
exec sleep 30
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to be somebody else")
def test_the_link_of_the_page_is_opened_where_there_is_a_screen(real, api_server, short_dir):
    """And only by users: root's browser would read pages with the rights of root."""
    somebody = os.path.join(short_dir, "somebody")
    os.mkdir(somebody)
    os.chmod(short_dir, 0o755)
    os.chown(somebody, 65534, 65534)
    for path in (real.config, api_server.ca):
        os.chmod(path, 0o644)
    opened = os.path.join(somebody, "opened")
    browser = os.path.join(somebody, "xdg-open")
    with open(browser, "w", encoding="utf-8") as file:
        file.write(BROWSER.format(opened=opened))
    os.chmod(browser, 0o755)

    def ui(*words, user=65534, path=f"{somebody}:/usr/bin:/bin", **env):
        start = time.monotonic()
        done = subprocess.run([davit_path(), "ui", *words], capture_output=True, text=True, check=False, user=user,
                              group=user, extra_groups=[], timeout=100,
                              env={"KUBECONFIG": real.config, "HOME": somebody, "PATH": path, **env})
        assert done.returncode == 0, done
        assert re.fullmatch(r"https://\S+/ui#link=\S+&id=\S+\n", done.stdout), done
        assert time.monotonic() - start < 25  # the browser goes on, and holds nothing
        return done

    for words, user, env in (((), 65534, {}), (("--no-open",), 65534, {"DISPLAY": ":0"}), ((), 0, {"DISPLAY": ":0"})):
        assert ui(*words, user=user, **env).stderr == ""
        assert not os.path.exists(opened)
    for screen in ("DISPLAY", "WAYLAND_DISPLAY"):
        done = ui(**{screen: ":0"})
        assert done.stderr == ""
        until(lambda: os.path.exists(opened), 60, "the browser")
        with open(opened, encoding="utf-8") as file:
            assert file.read() == done.stdout
        os.remove(opened)
    assert "open the link by hand" in ui(path="/nowhere", DISPLAY=":0").stderr
