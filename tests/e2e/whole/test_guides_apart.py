"""Guides whose commands need more than one shell on one machine: two machines, a namespace of mounts, a build folder, a
recording, a runtime, a pod that waits, drivers that are proved. They are run from the guides' own text; what stands for a reader's own thing is here."""

import json
import os
import re
import shutil
import subprocess

import pytest
import yaml
from bundles import Bundle
from guide_shells import ROOT, WAIT_S, Shell, commands, files, prompts, read
from peers import folder_of
from procs import until

pytestmark = pytest.mark.release
BUILD = folder_of("DAVIT_BUILD")


@pytest.fixture
def shells(short_dir):
    """Makes shells of machines; those that were made last end first."""
    made = []

    def make(name, **options):
        made.append(Shell(os.path.join(short_dir, name), BUILD, **options))
        return made[-1]

    yield make
    for shell in reversed(made):
        shell.close()


def must(shell, command):
    status, output = shell.run(command)
    assert status == 0, f"{command}\n{output}"
    return output


def log_of(shell):
    with open(os.path.join(shell.folder, "background.log"), encoding="utf-8", errors="replace") as log:
        return log.read()


# ---- build.md ----

# What a build folder that is there can show of each command without building it again: that the options are those of the
# page, that a whole build has its targets, that the suites are there. It is installed into a folder of the test's.
INSTEAD = {
    "meson setup build": "meson introspect --buildoptions build",
    "ninja -C build": "ninja -C build -n davitd davit",
    "meson test -C build": "meson test -C build --no-rebuild --list",
    "meson install -C build": "meson install -C build --no-rebuild --destdir $PWD/installed",
}


def test_the_build_folder_has_what_the_guide_says(short_dir):
    todo = commands("build.md")
    assert todo == list(INSTEAD)
    os.symlink(BUILD, os.path.join(short_dir, "build"))
    shown = {}
    for command in todo:
        done = subprocess.run(INSTEAD[command], shell=True, cwd=short_dir, capture_output=True, text=True, check=False)
        assert done.returncode == 0, (command, done.stdout[-2000:], done.stderr[-2000:])
        shown[command] = done.stdout
    with open(os.path.join(ROOT, "docs/build.md"), encoding="utf-8") as page:
        text = page.read()
    known = {option["name"] for option in json.loads(shown["meson setup build"])}
    told = re.findall(r"^\| `-D(\w+)` \|", text, re.M)
    assert told and set(told) <= known, set(told) - known
    for suite in re.findall(r"^\| `(unit|fuzz|golden|e2e)` \|", text, re.M):
        assert re.search(rf"\b{suite}\b", shown["meson test -C build"]), suite
    names = {name for _, folders, names in os.walk(os.path.join(short_dir, "installed")) for name in folders + names}
    assert {"davitd", "davit", "libdavit.so.0", "libdavit-driver.so.0", "davit.h", "davitd.yaml", "davit.pc"} <= names, names


# ---- cluster.md ----

def commands_of(name, *machines):
    return [(machine, command) for reason, machine, command in prompts(name) if not reason and machine in machines]


def test_two_machines_are_a_cluster(shells):
    machines = {name: shells(name) for name in ("first", "second")}
    todo = commands_of("cluster.md", *machines)
    assert len(todo) == 4
    shown = ""
    for machine, command in todo:
        shell = machines[machine]
        if "--listen 10.0.0.1:6443" in command:
            command = command.replace("10.0.0.1:6443", f"127.0.0.1:{shell.port}")
            must(shell, "unset LISTEN")
        if "second.kubeconfig" in command and machine == "second":
            kept = os.path.join(shell.folder, "second.kubeconfig")
            shutil.copy(os.path.join(machines["first"].folder, "second.kubeconfig"), kept)
            command = command.replace("/etc/davit/second.kubeconfig", kept)
        shown = must(shell, command)
        shell.settle(command)
    until(lambda: re.findall(r"^(\w+) +Ready", must(machines["first"], "kubectl get nodes"), re.M) == ["first", "second"],
          WAIT_S, lambda: shown + log_of(machines["second"]))


def tokens_of(shell):
    with open(os.path.join(shell.folder, "s/admin.kubeconfig"), encoding="utf-8") as file:
        return yaml.safe_load(file)["users"][0]["user"]["token"]


def test_a_node_of_a_cluster_serves_its_own_api(shells):
    """The cluster is another davitd: the guide's command is what the node sees of it."""
    cluster, node = shells("cluster"), shells("node")
    must(cluster, "davitd --node-name control &")
    cluster.settle("davitd")
    must(cluster, "davit token create --node $(hostname) --write-kubeconfig kubelet.conf")
    start, ask = [command for machine, command in commands_of("cluster.md", "") if "kubelet.conf" in command or "curl" in command]
    start = start.replace("/etc/kubernetes/kubelet.conf", f"{cluster.folder}/kubelet.conf")
    start = start.replace("/etc/kubernetes/pki/ca.crt", f"{cluster.folder}/s/pki/ca.crt")
    # The machine's own port may be in use.
    must(node, start.replace(" &", f" --node-listen 127.0.0.1:{node.node_port} &"))
    node.settle("davitd")
    must(node, f"TOKEN={tokens_of(cluster)}")
    ask = ask.replace("curl ", "curl -sS --fail ").replace("NODE:10250", f"127.0.0.1:{node.node_port}")
    until(lambda: node.run(ask)[0] == 0, WAIT_S, lambda: node.run(ask)[1] + log_of(node))
    assert json.loads(must(node, ask))["kind"] == "PodList"


POD = """{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"},
"spec": {"schedulerName": "davit", "containers": [{"name": "c", "image": "i"}]}}"""


def test_a_second_scheduler_binds_the_pods_that_name_it(shells):
    cluster, second = shells("cluster"), shells("second")
    must(cluster, "davitd --node-name control --roles api,control,node &")
    cluster.settle("davitd")
    allow, token, start = [command for _, command in commands_of("cluster.md", "") if "davit-scheduler" in command]
    must(cluster, allow.replace("examples/", f"{ROOT}/examples/"))
    made = must(cluster, token).strip()
    with open(os.path.join(cluster.folder, "s/admin.kubeconfig"), encoding="utf-8") as file:
        config = yaml.safe_load(file)
    config["users"][0]["user"] = {"token": made}
    with open(os.path.join(second.folder, "davit-scheduler.kubeconfig"), "w", encoding="utf-8") as file:
        yaml.safe_dump(config, file)
    must(second, "unset LISTEN")
    must(second, start.replace("/etc/davit/", f"{second.folder}/"))
    with open(os.path.join(cluster.folder, "pod.json"), "w", encoding="utf-8") as file:
        file.write(POD)
    must(cluster, "kubectl apply -f pod.json")
    until(lambda: must(cluster, "kubectl get pod p -o jsonpath={.spec.nodeName}") == "control", WAIT_S,
          lambda: log_of(second))


# ---- drivers.md ----

@pytest.mark.skipif(os.geteuid() != 0, reason="mounts are root's")
def test_a_driver_finds_the_api_as_in_a_pod(shells):
    """/run is the test's own: nothing of the machine is written to."""
    shell = shells("m", before=("unshare", "-m", "sh", "-c", "mount -t tmpfs none /run && exec bash"))
    todo = commands("drivers.md")
    assert "the-driver" in todo[-1]
    shell.program("the-driver", f"{BUILD}/drivers/davit-sample-dra-driver --driver gpu.example.com"
                  f" --kubelet-dir {shell.folder}/k --cdi-dir {shell.folder}/c")
    must(shell, "davitd --node-name $(hostname) &")
    shell.settle("davitd")
    for command in todo:
        command = command.replace("/var/lib/davit", f"{shell.folder}/s").replace("=6443", f"={shell.port}")
        is_driver = "the-driver" in command
        must(shell, command + (" &" if is_driver else ""))
    # Only with a token for its node could it publish.
    until(lambda: re.search(r"^gpu\.example\.com +device-0 +free", shell.davit("devices").stdout, re.M), WAIT_S,
          lambda: log_of(shell))


# ---- explain.md ----

WAITING = """\
{apiVersion: v1, kind: Namespace, metadata: {name: ml}}
---
{apiVersion: resource.k8s.io/v1, kind: DeviceClass, metadata: {name: gpu}}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: train-0, namespace: ml}
spec: {devices: {requests: [{name: gpus, exactly: {deviceClassName: gpu, count: 2}}]}}
---
apiVersion: v1
kind: Pod
metadata: {name: train-0, namespace: ml}
spec:
  containers: [{name: c, image: i}]
  resourceClaims: [{name: gpus, resourceClaimName: train-0}]
"""


def test_what_waits_is_explained_on_the_server_and_from_a_dump(shells):
    shell = shells("m")
    os.symlink(os.path.join(BUILD, "davit"), os.path.join(shell.bin, "kubectl-davit"))
    must(shell, "davitd --node-name here &")
    shell.settle("davitd")
    with open(os.path.join(shell.folder, "waiting.yaml"), "w", encoding="utf-8") as file:
        file.write(WAITING)
    must(shell, "davit apply -f waiting.yaml")
    todo = commands("explain.md")
    # What follows is about a dump that is shown: tests/e2e/cli/test_davit_explain.py
    todo = todo[:todo.index("davit explain claim train-0 -n ml -f dump.yaml") + 1]
    assert len(todo) == 9
    for command in todo:
        if command.endswith("--watch"):
            command = f"timeout 2 {command}"  # until it is allocated, which it never is
        status, shown = shell.run(command)
        if command.startswith("kubectl get"):
            assert status == 0, (command, shown)
        else:
            assert status in ((124,) if "--watch" in command else (3, 1) if "kubectl" in command else (3,)), (command, shown)
            assert "train-0" in shown and re.search("gpus: (2 wanted|there are no devices)", shown), (command, shown)


# ---- policy.md ----

def test_a_policy_is_read(shells):
    shell = shells("m")
    start, = commands("policy.md")
    path = os.path.join(shell.folder, "policy.yaml")
    with open(os.path.join(ROOT, "examples/policy.yaml"), encoding="utf-8") as example, \
            open(path, "w", encoding="utf-8") as file:
        leases, = re.findall(r"^```yaml\n(leases:.*?)^```$", read("policy.md"), re.M | re.S)
        # The groups of the page are not on every machine.
        file.write(example.read() + re.sub(r"group: \w+", "group: 0", leases))
    must(shell, start.replace("/etc/davit/policy.yaml", path))
    shell.settle("davitd")
    must(shell, "your-device-plugin &")
    until(lambda: re.search(r"example\.com/gpu +DevicePlugin +registered", shell.davit("plugins").stdout), WAIT_S,
          lambda: log_of(shell))
    assert re.search(r"example\.com/gpu .* warned ", shell.davit("plugins").stdout), shell.davit("plugins").stdout


# ---- run-pods.md ----

@pytest.mark.skipif(os.geteuid() != 0, reason="containers are root's")
@pytest.mark.skipif(not shutil.which("runc"), reason="needs runc")
def test_containers_that_others_start_are_told(shells):
    shell = shells("m")
    shell.program("runc", f'{shutil.which("runc")} --root {shell.folder}/runc "$@"')
    must(shell, "davitd --node-name here &")
    shell.settle("davitd")
    must(shell, f"{BUILD}/drivers/davit-sample-device-plugin --resource example.com/port --virtual 2 --env PORTS"
                f" --kubelet-dir {shell.folder}/k &")
    until(lambda: "registered" in shell.davit("plugins").stdout, WAIT_S, lambda: log_of(shell))
    with open(os.path.join(shell.folder, "pod.yaml"), "w", encoding="utf-8") as file:
        file.write(dict(files("run-pods.md"))["pod.yaml"])
    must(shell, "davit apply -f pod.yaml")
    until(lambda: "NoContainerRuntime" in must(shell, "davit get pods"), WAIT_S, lambda: must(shell, "davit get pods"))
    bundle = Bundle(f"{shell.folder}/r/bundle")
    bundle.set_line("while :; do read -t 1000 nothing; done")
    todo = commands("run-pods.md")
    todo = todo[todo.index("davit options reader -c main"):]
    assert len(todo) == 5
    try:
        for command in todo[:-1]:
            must(shell, command + (" >/dev/null 2>&1 </dev/null" if "runc run" in command else ""))
        until(lambda: "Running" in must(shell, "davit get pods"), WAIT_S, lambda: must(shell, "davit get pods"))
        assert must(shell, "runc exec reader sh -c 'echo $PORTS' </dev/null") == "virtual-0\n"
    finally:
        shell.run("runc delete --force reader")
    must(shell, todo[-1])
    until(lambda: "Running" not in must(shell, "davit get pods"), WAIT_S, lambda: must(shell, "davit get pods"))


# ---- record.md ----

def prepare_a_claim(shell):
    """A driver and a pod with a claim, by the files of another guide."""
    for path, text in files("dra-driver.md"):
        with open(os.path.join(shell.folder, path), "w", encoding="utf-8") as file:
            file.write(text)
    must(shell, "davit token create --driver gpu.example.com --node here --write-kubeconfig driver.kubeconfig")
    must(shell, "your-dra-driver --kubeconfig driver.kubeconfig &")
    for path, _ in files("dra-driver.md"):
        must(shell, f"davit apply -f {path}")
    until(lambda: "prepared" in must(shell, "davit claim list"), WAIT_S, lambda: log_of(shell))


def test_a_driver_is_recorded_shown_and_played_back(shells):
    shell = shells("m")
    start, show, as_driver, as_kubelet = commands("record.md")
    place = f"{shell.folder}/record"

    def placed(command):
        return command.replace("/var/lib/davit/record", place)

    must(shell, placed(start) + " --node-name here &")
    shell.settle("davitd")
    prepare_a_claim(shell)
    until(lambda: "NodePrepareResources" in shell.run(placed(show))[1], WAIT_S, lambda: shell.run(placed(show))[1])
    # A driver answers what the recorded one was asked: here it is the same one.
    sockets = [os.path.join(folder, name) for folder, _, names in os.walk(f"{shell.folder}/k/plugins") for name in names
               if name.endswith(".sock")]
    shutil.copy(f"{place}/davit-00000001.dav", f"{shell.folder}/recording.dav")
    status, shown = shell.run(as_kubelet.replace("/tmp/new/dra.sock", sockets[0]))
    assert status in (0, 3) and re.search(r"^[2-9] calls made again", shown, re.M), shown
    # And the recording is a driver, of another machine.
    other = shells("o")
    must(other, "davitd --node-name here &")
    other.settle("davitd")
    must(shell, placed(as_driver).replace("/tmp/kubelet", f"{other.folder}/k") + " &")
    until(lambda: re.search(r"gpu\.example\.com.*registered", other.davit("plugins").stdout), WAIT_S, lambda: log_of(shell))
    status, shown = shell.run(placed(as_driver).replace("/tmp/kubelet", f"{shell.folder}/none"))
    assert status == 1 and "--kubelet-dir is not that of a davitd or a kubelet" in shown, shown


# ---- workloads.md ----

def test_a_daemon_set_is_rolled_out_and_back(containerd, shells):
    shell = shells("m", cri=f"unix://{containerd.socket}")
    text = dict(files("workloads.md"))["driver.yaml"]
    assert "image: registry.example/driver:1}" in text
    # The image that is there, and a program that is in it.
    text = text.replace("image: registry.example/driver:1}",
                        f"image: {containerd.image}, command: [sh, -c, 'echo one; exec sleep 1000']}}")
    path = os.path.join(shell.folder, "driver.yaml")

    def write(what):
        with open(path, "w", encoding="utf-8") as file:
            file.write(what)

    write(text.replace("      containers:", "      terminationGracePeriodSeconds: 1\n      containers:"))
    must(shell, "davitd --node-name here &")
    shell.settle("davitd")
    apply, status, logs, undo, delete, *of_job = commands("workloads.md")
    must(shell, apply)
    must(shell, f"{status} --timeout=60s")
    until(lambda: must(shell, logs) == "one\n", WAIT_S, lambda: must(shell, logs))
    with open(path, encoding="utf-8") as file:
        write(file.read().replace("echo one", "echo two"))
    must(shell, apply)
    must(shell, f"{status} --timeout=60s")
    until(lambda: must(shell, logs) == "two\n", WAIT_S, lambda: must(shell, logs))
    must(shell, undo)
    must(shell, f"{status} --timeout=60s")
    until(lambda: must(shell, logs) == "one\n", WAIT_S, lambda: must(shell, logs))
    must(shell, f"{delete} --timeout=60s")
    until(lambda: "No resources" in must(shell, "kubectl get pods"), WAIT_S, lambda: must(shell, "kubectl get pods"))

    create, complete, logs, budget, budgets = of_job
    assert "registry.example/hello:1" in create
    must(shell, create.replace("registry.example/hello:1", containerd.image))
    must(shell, f"{complete} --timeout=60s")
    assert must(shell, logs) == "hello\n"
    must(shell, budget)
    assert must(shell, budgets).splitlines()[1].split()[:4] == ["web", "N/A", "1", "0"]


# ---- verify.md ----

# A reader's driver is a sample, started with the words of the guide; a few cases are enough here: tests/e2e/verify has all.
DRIVERS = {
    "my-plugin": 'drivers/davit-sample-device-plugin --resource example.com/gpu --virtual 2 --kubelet-dir "$(dirname "$2")"',
    "my-driver": 'drivers/davit-sample-dra-driver --driver gpu.example.com --kubelet-dir "$(dirname "$2")" --kubeconfig "$6"'
                 ' --node "$8" --cdi-dir "${10}"',
}


def test_drivers_are_proved(shells):
    shell = shells("m")
    for path, text in files("verify.md"):
        with open(os.path.join(shell.folder, path), "w", encoding="utf-8") as file:
            file.write(text)
    for name, line in DRIVERS.items():
        shell.program(name, f"{BUILD}/{line}")
        os.symlink(os.path.join(shell.bin, name), os.path.join(shell.folder, name))
    started, attached = commands("verify.md")[:2], commands("verify.md")[2:]
    for command, case in zip(started, ("list.first", "prepare.cdi-ids")):
        shown = must(shell, f"{command} --only '{case}'")
        assert re.search(rf"pass +{case}", shown) and ", 0 failed" in shown, shown
    assert os.path.exists(os.path.join(shell.folder, "out.xml"))

    # Drivers that run already: davit waits for the first, and finds the second.
    place = os.path.join(shell.folder, "v")
    of_dra, in_debugger = [command.replace("/tmp/verify", place) for command in attached[:2]]
    plugin, of_plugin = [command.replace("/tmp/verify", f"{place}-plugin") for command in attached[2:]]
    must(shell, f"{of_dra} --only prepare.one &")
    until(lambda: os.path.exists(f"{place}/kubeconfig"), WAIT_S, lambda: log_of(shell))
    assert in_debugger.startswith("gdb --args ")
    must(shell, in_debugger.removeprefix("gdb --args ") + " &")
    until(lambda: "1 passed, 0 failed" in log_of(shell), 2 * WAIT_S, lambda: log_of(shell))
    must(shell, plugin)
    # A reader types more slowly than a plugin starts.
    until(lambda: os.path.isdir(f"{place}-plugin"), WAIT_S, lambda: log_of(shell))
    shown = must(shell, f"{of_plugin} --only list.first")
    assert "1 passed, 0 failed" in shown, shown
