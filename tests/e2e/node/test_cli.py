"""The command line tool: every verb against a davitd that runs, and what it says when none does."""

import json
import os
import signal
import socket
import subprocess
import threading
import time
from unittest.mock import ANY

import pytest

from nodes import pod, run_davit
from peers import folder_of
from procs import until

GPU = "example.com/gpu"
VERBS = ["devices", "plugins", "admit", "release", "options", "status", "state"]
ITSELF = ["completion", "version", "help"]

POD_YAML = f"""\
# two containers, as people write them
apiVersion: v1
kind: Pod
metadata:
  name: train
  namespace: ml
spec:
  containers:
  - name: main
    image: x
    resources:
      limits: {{{GPU}: 2, cpu: "4"}}
  - name: log
    image: y
"""


def rows(text):
    """The cells of a table, by lines; cells are separated by three blanks at least."""
    cells = [line.split("   ") for line in text.splitlines()]
    return [[cell.strip() for cell in line if cell.strip()] for line in cells]


def table(text):
    """[{header: cell}]"""
    headers, *cells = rows(text)
    return [dict(zip(headers, line)) for line in cells]


@pytest.fixture
def gpus(node, plugins):
    devices = {"g0": ("Healthy", [0]), "g1": ("Healthy", [0, 1]), "g2": ("sick", None)}
    plugin = plugins(node, GPU, devices).register()
    node.wait_devices(GPU, 2)
    return plugin


@pytest.fixture
def pod_file(short_dir):
    path = os.path.join(short_dir, "pod.yaml")
    with open(path, "w", encoding="ascii") as file:
        file.write(POD_YAML)
    return path


# ---- verbs


def test_devices(node, gpus):
    assert node.admit(pod("p", ("main", {GPU: 1}))).admitted
    done = node.davit("devices")
    assert (done.returncode, done.stderr) == (0, "")
    listed = {row["DEVICE"]: row for row in table(done.stdout)}
    held_id, = [d for d, row in listed.items() if row["STATE"] == "held"]
    assert {d: row["STATE"] for d, row in listed.items()} == {
        "g0": "free", "g1": "free", held_id: "held", "g2": "unhealthy",
    }
    assert listed[held_id]["SINCE"].endswith("s")
    assert [listed[d]["NUMA"] for d in ("g0", "g1", "g2")] == ["0", "0,1", "-"]
    assert sorted(row["HELD BY"] for row in listed.values()) == ["-", "-", "default/p:main"]
    listed[held_id]["SINCE"] = ANY  # time goes on
    assert {row["DEVICE"]: row for row in table(node.davit("devices", GPU).stdout)} == listed
    some = node.davit("devices", GPU, "g1", "g8", "g9", "-o", "name")
    assert (some.returncode, some.stdout) == (1, f"{GPU}/g1\n"), some
    assert f"{GPU} has no device g8" in some.stderr and "no device g9" in some.stderr, some
    bare = rows(node.davit("devices", "--no-headers").stdout)
    assert [row[:4] for row in bare] == [row[:4] for row in rows(done.stdout)[1:]]


def test_devices_without_their_plugin(node, gpus):
    gpus.stop()
    until(lambda: not node.resource(GPU).connected, 10, "the plugin to be missed")
    assert {row["STATE"] for row in table(node.davit("devices").stdout)} == {"gone"}


def test_devices_of_nobody(node):
    done = node.davit("devices", "example.com/none")
    assert done.returncode == 1 and done.stdout == ""
    assert "no plugin or driver has offered example.com/none" in done.stderr
    empty = node.davit("devices")
    assert (empty.returncode, empty.stdout) == (0, "")
    assert "no devices: no plugin has listed any" in empty.stderr


def test_watching_devices(node, gpus):
    watch = node.procs.start(
        os.path.join(folder_of("DAVIT_BUILD"), "davit"), "devices", "-w", "--no-headers",
        "--socket", node.socket,
    )
    until(lambda: len(watch.lines) == 3, 10, "the first list")
    gpus.set_devices(["h0"])
    until(lambda: any(line.split()[1] == "h0" for line in watch.lines), 10, "the next list")
    node.stop()
    assert watch.wait(10) != 0  # the daemon has gone
    assert "davit:" in watch.log


def test_watching_ends_by_a_signal(node, gpus):
    watch = node.procs.start(
        os.path.join(folder_of("DAVIT_BUILD"), "davit"), "devices", "-w", "--socket", node.socket
    )
    until(lambda: watch.lines, 10, "the first list")
    watch.signal(signal.SIGINT)
    assert watch.wait(10) == -signal.SIGINT


def test_plugins(node, gpus):
    (row,) = table(node.davit("plugins").stdout)
    assert (row["TYPE"], row["NAME"], row["STATE"]) == ("DevicePlugin", GPU, "registered")
    assert "SOCKET" not in row
    (row,) = table(node.davit("plugins", "-o", "wide").stdout)
    assert row["SOCKET"] == gpus.socket
    assert node.davit("plugins", "-o", "name").stdout == f"{GPU}\n"


def test_tables_fit_a_hundred_columns_and_empty_lists_say_so(node, gpus):
    assert node.admit(pod("a-pod-of-a-usual-length-7d9f8", ("main", {GPU: 1}))).admitted
    for words in (["devices"], ["plugins"], ["status"], ["offers"], ["leases"], ["claim", "list"]):
        done = node.davit(*words)
        assert all(len(line) <= 100 for line in done.stdout.splitlines()), done.stdout
    for words, text in ((["leases"], "no leases"), (["claim", "list"], "no claims on this node"),
                        (["offers"], "nothing is offered")):
        done = node.davit(*words)
        assert (done.returncode, done.stdout) == (0, "") and text in done.stderr, done


def test_names_and_templates(node, gpus):
    assert node.admit(pod("p", ("main", {GPU: 1}))).admitted
    assert node.davit("devices", "-o", "name").stdout == "".join(f"{GPU}/g{i}\n" for i in range(3))
    assert node.davit("status", "-o", "name").stdout == "default/p\n"
    held = '{.resources[0].devices[?(@.state=="held")].holders[*].pod.name}'
    assert node.davit("devices", "-o", f"jsonpath={held}").stdout == "p"
    lines = '{range .resources[*].devices[*]}{.id}={.state}{"\\n"}{end}'
    assert "g2=unhealthy\n" in node.davit("devices", "-o", f"jsonpath={lines}").stdout
    done = node.davit("devices", "-o", "jsonpath={.resources[")
    assert done.returncode == 2 and "jsonpath, character" in done.stderr


def test_admit_options_release(node, gpus, pod_file):
    done = node.davit("admit", "-f", pod_file)
    assert (done.returncode, done.stderr) == (0, ""), done
    first, *rest = done.stdout.splitlines()
    assert first.startswith("pod ml/train admitted, uid ")
    uid = first.split()[-1]
    (row,) = table("\n".join(rest))
    assert row == {"CONTAINER": "main", "RESOURCE": GPU, "DEVICES": "g0,g1"}

    (row,) = table(node.davit("status").stdout.split("\n\n")[-1])
    assert (row["NAMESPACE"], row["POD"], row["STATE"]) == ("ml", "train", "admitted")

    expected = [
        "env          DEVICES_GPU=g0,g1",
        "device       /dev/g0 from /dev/g0 (rw)",
        "device       /dev/g1 from /dev/g1 (rw)",
    ]
    for words in (["ml/train"], ["train", "-n", "ml"], ["--uid", uid], [f"--uid={uid}"]):
        done = node.davit("options", *words, "-c", "main")
        assert done.returncode == 0, done
        assert done.stdout.splitlines() == expected
    done = node.davit("options", "ml/train", "-c", "log")
    assert (done.returncode, done.stdout) == (0, "") and done.stderr.startswith("no options: "), done

    done = node.davit("release", "train", "-n", "ml")
    assert (done.returncode, done.stderr) == (0, ""), done
    assert "ml/train" in done.stdout or "released" in done.stdout
    assert not node.status().pods
    done = node.davit("release", "ml/train")
    assert done.returncode == 0 and "no such pod" in done.stdout


def test_options_in_the_words_of_engines(node, gpus):
    assert node.admit(pod("one", ("main", {GPU: 1}))).admitted
    shown = node.davit("options", "one").stdout.splitlines()  # its only container
    device = next(line.split()[1] for line in shown if line.startswith("device"))
    for engine in ("podman", "docker", "nerdctl"):
        words = node.davit("options", "one", "--as", engine).stdout.split()
        assert any(word.endswith(f"{device}:{device}:rw") or device in word for word in words), words
        assert any("DEVICES_GPU" in word for word in words) and "IMAGE" not in words, words
    done = node.davit("options", "one", "--as", "lxc")
    assert done.returncode == 2 and "--as takes podman, docker, nerdctl or runc, and not lxc" in done.stderr
    assert node.admit(pod("two", ("main", {GPU: 1}), ("log", {}))).admitted
    done = node.davit("options", "two")
    assert done.returncode == 1 and "name one of the pod's containers: main, log" in done.stderr


def test_the_socket_of_the_environment_and_options_before_the_verb(node, gpus):
    davit = os.path.join(folder_of("DAVIT_BUILD"), "davit")

    def run(*words, **env):
        return subprocess.run([davit, *words], capture_output=True, text=True, timeout=100,
                              env={**os.environ, **env}, check=False)

    want = node.davit("plugins", "-o", "name").stdout
    assert run("plugins", "-o", "name", DAVIT_SOCKET=node.socket).stdout == want
    assert run("--socket", node.socket, "-o", "name", "plugins").stdout == want
    assert run(f"--socket={node.socket}", "plugins", "-o", "name").stdout == want
    other = run("--socket", node.socket, "plugins", "-o", "name", DAVIT_SOCKET="/nowhere")
    assert other.stdout == want  # what is said counts more than the environment
    assert run("--socket", "status", "plugins").returncode == 4  # a value that is called like a verb
    assert run("--nothing", "plugins").returncode == 2


def test_a_user_without_permission_is_told_what_helps(node):
    if os.geteuid() != 0:
        pytest.skip("needs root, to be somebody else")
    done = subprocess.run(
        [os.path.join(folder_of("DAVIT_BUILD"), "davit"), "status", "--socket", node.socket],
        capture_output=True, text=True, timeout=100, user=65534, group=65534, extra_groups=[],
        check=False)
    assert done.returncode == 4
    assert "is for root alone" in done.stderr or "you are not in the group" in done.stderr, done
    hidden = os.path.join(node.state_dir, "admin.kubeconfig")  # in a folder that is root's
    done = subprocess.run(
        [os.path.join(folder_of("DAVIT_BUILD"), "davit"), "get", "pods"],
        capture_output=True, text=True, timeout=100, user=65534, group=65534, extra_groups=[],
        env={**os.environ, "KUBECONFIG": hidden}, check=False)
    assert done.returncode == 4
    assert f"KUBECONFIG names no file that you may read: {hidden}" in done.stderr, done


def test_admit_from_standard_input_as_yaml_and_json(node, gpus):
    done = node.davit("admit", "-f", "-", stdin=POD_YAML)
    assert done.returncode == 0, done
    assert node.davit("release", "ml/train").returncode == 0
    done = node.davit("admit", "-f", "-", stdin=json.dumps(pod("j", ("main", {GPU: 1}))))
    assert done.returncode == 0, done
    assert "uid uid-j" in done.stdout


def test_a_pod_without_devices_has_no_table(node):
    done = node.davit("admit", "-f", "-", stdin=json.dumps(pod("p", ("main", {}))))
    assert done.returncode == 0 and len(done.stdout.splitlines()) == 1


def test_a_refused_pod_is_status_3(node, gpus):
    asked = json.dumps(pod("p", ("main", {GPU: 9})))
    done = node.davit("admit", "-f", "-", stdin=asked)
    assert (done.returncode, done.stdout) == (3, ""), done
    assert "pod default/p was refused: UnexpectedAdmissionError: " in done.stderr
    assert "Requested: 9, Available: 2" in done.stderr
    done = node.davit("admit", "-f", "-", "-o", "json", stdin=asked)
    assert done.returncode == 3
    assert json.loads(done.stdout)["admitted"] is False
    done = node.davit("admit", "-f", "-", stdin=json.dumps(pod("p", ("main", {"x.io/y": 1}))))
    assert done.returncode == 3 and "UnknownResource" in done.stderr


@pytest.mark.parametrize(
    "text, message",
    [
        ("", "expected an object"),
        ("a: [", "-: "),
        ("a: 1\na: 2", "-: "),
        ("[]", "pod"),
        ("kind: Service", "not Pod"),
        ("metadata: {name: x}", "spec"),
        ("metadata: {name: x}\nspec: {containers: []}", "spec.containers is empty"),
        (
            "metadata: {name: x}\nspec: {containers: [{name: c, resources: {limits: {a/b: 0.5}}}]}",
            "spec.containers[0].resources.limits",
        ),
    ],
)
def test_what_is_no_pod_is_told_with_the_place(node, text, message):
    done = node.davit("admit", "-f", "-", stdin=text)
    assert done.returncode == 1 and message in done.stderr, done
    assert not node.status().pods


def test_a_mistake_is_told_with_its_line_in_the_file(node, short_dir):
    path = os.path.join(short_dir, "pod.yaml")
    with open(path, "w", encoding="ascii") as file:
        file.write("metadata:\n  name: x\nspec:\n  containers:\n  - name: c\n    resources:\n"
                   "      limits:\n        example.com/gpu: 0.5\n")
    done = node.davit("admit", "-f", path)
    assert done.returncode == 1 and "line 1," not in done.stderr, done
    assert f"{path}, line 8: spec.containers[0].resources.limits" in done.stderr, done


def test_waiting_is_limited_on_request(node, gpus):
    gpus.stop()
    until(lambda: not node.resource(GPU).connected, 10, "the plugin to be missed")
    asked = json.dumps(pod("p", ("main", {GPU: 1})))
    started = time.monotonic()
    assert node.davit("admit", "-f", "-", "--wait", "1", stdin=asked).returncode == 3
    assert 0.9 < time.monotonic() - started < 5
    done = node.davit("admit", "-f", "-", "--timeout", "1", stdin=asked)
    assert done.returncode == 1 and "DEADLINE_EXCEEDED" in done.stderr, done
    until(lambda: not node.status().pods, 10, "the pod to be forgotten")
    for bad in ("soon", "-1", "1.5"):
        done = node.davit("admit", "-f", "-", "--wait", bad, stdin=asked)
        assert done.returncode == 2 and "--wait" in done.stderr


def test_status_tells_what_a_pod_waits_for(node, gpus):
    gpus.stop()
    until(lambda: not node.resource(GPU).connected, 10, "the plugin to be missed")
    asked = json.dumps(pod("p", ("main", {GPU: 1})))
    asking = threading.Thread(target=node.davit, args=("admit", "-f", "-"), kwargs={"stdin": asked})
    asking.start()
    until(lambda: node.status().pods, 10, "the pod")
    done = node.davit("status")
    facts = dict(line.split(None, 1) for line in done.stdout.split("\n\n")[0].splitlines())
    assert facts["node"] == "n1" and facts["resources"] == "1" and facts["pods"] == "1"
    (row,) = table(done.stdout.split("\n\n")[-1])
    assert row["STATE"] == "waiting" and row["WAITS FOR"] == f"the plugin of {GPU}"
    node.stop()
    asking.join(10)
    assert not asking.is_alive()


# ---- formats


def test_json_has_the_fields_of_the_protocol(node, gpus, pod_file):
    admitted = json.loads(node.davit("admit", "-f", pod_file, "-o", "json").stdout)
    assert admitted["admitted"] is True and admitted["pod"]["namespace"] == "ml"
    assert admitted["containers"][0]["resources"][0]["device_ids"] == ["g0", "g1"]
    devices = json.loads(node.davit("devices", "-o", "json").stdout)["resources"][0]
    assert (devices["name"], devices["capacity"], devices["allocatable"]) == (GPU, 3, 2)
    assert devices["devices"][1]["numa_nodes"] == [0, 1]
    assert devices["devices"][0]["holders"][0]["pod"]["name"] == "train"
    plugin = json.loads(node.davit("plugins", "-o=json").stdout)["plugins"][0]
    assert plugin["state"] == "registered" and plugin["retry_at_ms"] == 0
    status = json.loads(node.davit("status", "-o", "json").stdout)
    assert status["pods"][0]["state"] == "admitted" and status["n_devices"] == 3
    options = json.loads(node.davit("options", "ml/train", "-c", "main", "-o", "json").stdout)
    assert options["envs"] == [{"key": "DEVICES_GPU", "value": "g0,g1"}]
    assert json.loads(node.davit("release", "ml/train", "-o", "json").stdout) == {"was_known": True}
    assert json.loads(run_davit("version", "-o", "json").stdout)["version"]


def test_yaml_says_the_same_as_json(node, gpus, pod_file):
    yaml = pytest.importorskip("yaml", reason="needs python3-yaml")
    assert node.davit("admit", "-f", pod_file, "-o", "yaml").returncode == 0
    for words in (["devices"], ["plugins"], ["status"], ["options", "ml/train", "-c", "main"]):
        as_json = node.davit(*words, "-o", "json")
        as_yaml = node.davit(*words, "-o", "yaml")
        assert as_yaml.returncode == 0
        assert yaml.safe_load(as_yaml.stdout) == json.loads(as_json.stdout)


# ---- help and mistakes


@pytest.mark.parametrize("verb", VERBS + ITSELF)
def test_every_verb_explains_itself(verb):
    texts = {
        run_davit(*words).stdout for words in ([verb, "-h"], [verb, "--help"], ["help", verb])
    }
    (text,) = texts
    assert text.startswith(f"davit {verb}")
    assert ("--socket" in text) == (verb in VERBS)


def test_help_lists_all_verbs_and_codes():
    for words in (["help"], ["-h"], ["--help"]):
        done = run_davit(*words)
        assert done.returncode == 0 and done.stderr == ""
        for verb in VERBS + ITSELF:
            assert f"\n  {verb} " in done.stdout
        assert "Exit status: 0 done, 1 failed, 2 wrong usage, 3 pod refused, 4" in done.stdout
    done = run_davit()
    assert done.returncode == 2 and "usage: davit VERB" in done.stdout
    assert run_davit("--version").stdout == run_davit("version").stdout


@pytest.mark.parametrize(
    "mistyped, meant",
    [("device", "devices"), ("plugns", "plugins"), ("relaese", "release"), ("stat", "state")],
)
def test_a_mistyped_verb_is_guessed(mistyped, meant):
    for words in ([mistyped], ["help", mistyped]):
        done = run_davit(*words)
        assert done.returncode == 2
        assert f'no verb "{mistyped}"; did you mean {meant}?' in done.stderr
    done = run_davit("foo")  # a short word that has little of any verb
    assert done.returncode == 2 and 'no verb "foo"; davit help lists them' in done.stderr


def test_a_verb_far_from_all_is_not_guessed():
    done = run_davit("frobnicate")
    assert done.returncode == 2 and "davit help lists them" in done.stderr


@pytest.mark.parametrize(
    "words, message",
    [
        (["devices", "--colour"], "it has no option --colour"),
        (["devices", "-f", "x"], "it has no option -f"),
        (["verify", "device-plugin", "/x"], "the driver is named by --exec COMMAND, or --attach DIR"),
        (["devices", "-o"], "-o needs a value: wide|json|yaml|name|jsonpath=TEMPLATE"),
        (["devices", "-o", "xml"], "-o takes wide|json|yaml|name|jsonpath=TEMPLATE, and not \"xml\""),
        (["devices", "--timeout", "never"], "--timeout takes SECONDS, and not \"never\""),
        (["devices", "--timeout=0"], "--timeout takes SECONDS, and not \"0\""),
        (["devices", "--no-headers=no"], "--no-headers takes no value"),
        (["plugins", "x"], "it takes no words"),
        (["status", "x"], "it takes no words"),
        (["admit"], "name the pod's file with -f"),
        (["admit", "pod.yaml"], "name the pod's file with -f"),
        (["release"], "name one pod, or give --uid"),
        (["release", "a", "--uid", "b"], "name one pod, or give --uid"),
        (["release", "a", "b"], "name one pod, or give --uid"),
        (["options", "-c", "x"], "name one pod, or give --uid"),
        (["state"], "say backup FILE, restore FILE, import or export"),
        (["state", "destroy"], "say backup FILE, restore FILE, import or export"),
        (["devices", *"abcdefghijklmnopqrst"], "too many words"),
    ],
    ids=lambda value: " ".join(value[:4]) if isinstance(value, list) else "",
)
def test_wrong_usage_is_status_2(words, message):
    done = run_davit(*words)
    assert (done.returncode, done.stdout) == (2, ""), done
    assert message in done.stderr and f"see davit help {words[0]}" in done.stderr


def test_what_the_daemon_refuses_is_status_1(node, gpus):
    done = node.davit("options", "nobody", "-c", "main")
    assert done.returncode == 1
    assert "no pod default/nobody is admitted here (NOT_FOUND)" in done.stderr
    done = node.davit("options", "--uid", "u-1", "-c", "main")
    assert "no pod with uid u-1 is admitted here" in done.stderr
    assert node.admit(pod("p", ("main", {GPU: 1}))).admitted
    done = node.davit("options", "p", "-c", "other")
    assert done.returncode == 1 and 'has no container "other"' in done.stderr
    done = node.davit("admit", "-f", "/no/such/file")
    assert done.returncode == 1 and "/no/such/file" in done.stderr


@pytest.mark.parametrize(
    "words",
    [["devices"], ["devices", "-w"], ["plugins"], ["status"], ["release", "p"]],
    ids=" ".join,
)
def test_without_a_daemon_it_is_status_4(short_dir, words):
    path = os.path.join(short_dir, "no.sock")
    started = time.monotonic()
    done = run_davit(*words, "--socket", path)
    assert (done.returncode, done.stdout) == (4, ""), done
    assert f"no davitd answers on {path}" in done.stderr and "--socket" in done.stderr
    assert time.monotonic() - started < 3


def test_a_dead_daemons_socket_is_status_4(node):
    node.kill()
    assert os.path.exists(node.socket)
    assert node.davit("status").returncode == 4


def test_a_daemon_that_is_silent_is_given_up(short_dir):
    path = os.path.join(short_dir, "silent.sock")
    silent = socket.socket(socket.AF_UNIX)
    silent.bind(path)
    silent.listen()
    done = run_davit("status", "--socket", path, "--timeout", "1")
    silent.close()
    assert done.returncode in (1, 4) and "davit:" in done.stderr, done


def test_a_reader_that_goes_away_is_no_crash(node, plugins):
    plugins(node, GPU, [f"g{i}" for i in range(20000)]).register()
    node.wait_devices(GPU, 20000)
    davit = os.path.join(folder_of("DAVIT_BUILD"), "davit")
    done = subprocess.run(
        ["bash", "-c", f"{davit} devices --socket {node.socket} | head -1"],
        capture_output=True, text=True, timeout=100, check=False,
    )
    assert done.returncode == 0 and done.stdout.startswith("RESOURCE")
    assert "Sanitizer" not in done.stderr
