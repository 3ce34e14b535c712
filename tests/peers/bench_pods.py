"""Pods through a real containerd, beside the bare calls that they take.

    ./dev bench pods [PART...]    only these parts: one, burst, idle

davitd and a containerd of their own, in a scratch folder. One pod at a time: from the moment before
it is sent to the API to the moment its container was started, as containerd has it; beside it, in
turn, the same calls (RunPodSandbox, ImageStatus, CreateContainer, StartContainer) made by a small
client on grpcio, with what davitd has sent for a pod of that kind: what a runtime is asked for (a
profile of seccomp, paths that are hidden, mounts) decides how long it takes. Then many pods at
once, both ways. Then what pods cost that do nothing: processor time of davitd, and its memory.
"""

import base64
import json
import os
import shutil
import statistics
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor

HERE = os.path.dirname(os.path.abspath(__file__))
E2E = os.path.join(HERE, os.pardir, "e2e")
for folder in (HERE, E2E, *(os.path.join(E2E, name) for name in ("claims", "api", "node"))):
    sys.path.insert(0, folder)

import containerd  # noqa: E402
from google.protobuf import json_format  # noqa: E402
from procs import Procs, until  # noqa: E402
from servers import ApiNode  # noqa: E402

N_SINGLE = 12
N_BURST = 50
N_IDLE = 100
SETTLE_S = 30  # what a burst leaves behind is given back after some time
IDLE_S = 20
PATIENCE_S = 180
LIFETIME_S = 1200
PODS = "/api/v1/namespaces/default/pods"
MODEL = "model"
COMMAND = ["sleep", "100000"]
LIMIT_MS = 15  # over the bare calls
LIMIT_IDLE_PERCENT = 0.5
LIMIT_POD_KB = 30


def pod(name, image):
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {
            "terminationGracePeriodSeconds": 0,
            "containers": [{"name": "main", "image": image, "imagePullPolicy": "IfNotPresent",
                            "command": COMMAND}],
        },
    }


class World:
    def __init__(self, folder):
        self.folder = folder
        self.procs = Procs(folder)
        self.runtime = containerd.Containerd(folder)
        self.node = ApiNode(self.procs, folder)

    def start(self):
        self.runtime.start()
        self.cri = self.runtime.cri()
        self.node.proc = self.procs.start(
            os.path.join(os.environ["DAVIT_BUILD"], "davitd"),
            "--kubelet-dir", self.node.kubelet_dir,
            "--state-dir", self.node.state_dir,
            "--runtime-dir", self.node.runtime_dir,
            "--cdi-dirs", os.path.join(self.folder, "cdi"),
            "--pod-logs-dir", os.path.join(self.folder, "logs"),
            "--cri", f"unix://{self.runtime.socket}",
            "--node-name", "n1",
            "--listen", "127.0.0.1:0",
            ready=None,
            lifetime_s=LIFETIME_S,
        )
        self.node.proc.wait_line("ready", PATIENCE_S)
        self.api = self.node.api()
        until(self.is_ready, PATIENCE_S, "the node is ready")

    def is_ready(self):
        answer = self.api.ask("GET", "/api/v1/nodes/n1")
        if answer.status != 200:
            return False
        conditions = answer.doc.get("status", {}).get("conditions", [])
        return any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)

    def close(self):
        self.node.disconnect()
        self.procs.close()
        self.runtime.close()

    # ---- davit's way ----

    def phases(self):
        items = self.api.ask("GET", PODS).doc["items"]
        return {item["metadata"]["name"]: item["status"].get("phase") for item in items}

    def apply(self, name):
        """When it was sent, in ns since 1970."""
        sent = time.time_ns()
        answer = self.api.ask("POST", PODS, pod(name, self.runtime.image))
        assert answer.status == 201, answer
        return sent

    def started(self):
        """{pod: when its container was started}"""
        found = {}
        for one in self.cri.call("ListContainers").containers:
            at = self.cri.container(one.id).started_at
            if at:
                found[one.labels["io.kubernetes.pod.name"]] = at
        return found

    def are_running(self, names):
        time.sleep(0.002 * len(names))  # asking takes processor time from who is measured
        phases = self.phases()
        return all(phases.get(name) == "Running" for name in names)

    def wait_running(self, names):
        until(lambda: self.are_running(names), PATIENCE_S, f"{len(names)} pods run")

    def remove(self, names):
        for name in names:
            self.api.ask("DELETE", f"{PODS}/{name}")
        until(lambda: not set(names) & set(self.phases()), PATIENCE_S, "the pods are gone")
        until(lambda: self.n_sandboxes() == 1, PATIENCE_S, "only the model is left")

    def n_sandboxes(self):
        return len(self.cri.call("ListPodSandbox").items)

    def davit_once(self, name):
        """(until the container runs, until the API says so) in ms."""
        sent = self.apply(name)
        self.wait_running([name])
        told_ms = (time.time_ns() - sent) / 1e6
        ran_ms = (self.started()[name] - sent) / 1e6
        self.remove([name])
        return ran_ms, told_ms

    # ---- the bare calls ----

    def take_model(self):
        """Has davitd run a pod, and keeps the configs that it sent for it. The pod stays: its
        volumes and files are mounted by the containers of bare calls, too."""
        self.apply(MODEL)
        self.wait_running([MODEL])
        found = {"io.kubernetes.pod.name": MODEL}
        sandbox = self.cri.call(
            "ListPodSandbox", filter={"label_selector": found}).items[0].id
        container = self.cri.call(
            "ListContainers", filter={"label_selector": found}).containers[0].id
        self.model = self.cri.pb.PodSandboxConfig(), self.cri.pb.ContainerConfig()
        answers = (
            self.cri.call("PodSandboxStatus", pod_sandbox_id=sandbox, verbose=True),
            self.cri.call("ContainerStatus", container_id=container, verbose=True),
        )
        for config, answer in zip(self.model, answers):
            told = json.loads(answer.info["info"])["config"]
            for env in told.get("envs", []):  # bytes in our proto
                env["value"] = base64.b64encode(env["value"].encode()).decode()
            json_format.ParseDict(told, config, ignore_unknown_fields=True)
            config.ClearField("labels")  # by these davitd would take it for a pod that is nobody's

    def bare_configs(self, name):
        sandbox, container = (type(config).FromString(config.SerializeToString())
                              for config in self.model)
        sandbox.metadata.name = sandbox.hostname = name
        sandbox.metadata.uid = f"uid-{name}"
        sandbox.log_directory = os.path.join(self.folder, "logs", name)
        os.makedirs(os.path.join(sandbox.log_directory, os.path.dirname(container.log_path)))
        return sandbox, container

    def bare_start(self, name):
        """(how long it took until the container was started, in ms, its sandbox)"""
        config, container = self.bare_configs(name)
        began = time.time_ns()
        sandbox = self.cri.call("RunPodSandbox", config=config).pod_sandbox_id
        self.cri.call("ImageStatus", image={"image": self.runtime.image})
        made = self.cri.call("CreateContainer", pod_sandbox_id=sandbox, config=container,
                             sandbox_config=config).container_id
        self.cri.call("StartContainer", container_id=made)
        return (self.cri.container(made).started_at - began) / 1e6, sandbox

    def bare_remove(self, sandboxes):
        for sandbox in sandboxes:
            self.cri.call("StopPodSandbox", pod_sandbox_id=sandbox)
            self.cri.call("RemovePodSandbox", pod_sandbox_id=sandbox)

    # ---- what davitd takes ----

    def cpu_s(self):
        with open(f"/proc/{self.node.proc.pid}/stat", encoding="ascii") as stat:
            fields = stat.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def memory_kb(self):
        """What is davitd's own: what it has of libraries depends on who else uses them."""
        with open(f"/proc/{self.node.proc.pid}/smaps_rollup", encoding="ascii") as rollup:
            return next(int(line.split()[1]) for line in rollup if line.startswith("Pss_Anon:"))


def one_at_a_time(world):
    bare, ran, told = [], [], []
    for number in range(N_SINGLE):
        took_ms, sandbox = world.bare_start(f"bare-{number}")
        world.bare_remove([sandbox])
        bare.append(took_ms)
        one = world.davit_once(f"pod-{number}")
        ran.append(one[0])
        told.append(one[1])
    bare_ms, ran_ms, told_ms = map(statistics.median, (bare, ran, told))
    is_over = ran_ms - bare_ms > LIMIT_MS
    print(f"one pod, median of {N_SINGLE}")
    print(f"  bare calls, until the container was started    {bare_ms:8.1f} ms")
    print(f"  applied, until the container was started       {ran_ms:8.1f} ms"
          f"   {ran_ms - bare_ms:+.1f}{'  OVER' if is_over else ''}")
    print(f"  applied, until the API says Running            {told_ms:8.1f} ms")
    return is_over


def at_once(world):
    names = [f"burst-{number}" for number in range(N_BURST)]
    began = time.time_ns()
    with ThreadPoolExecutor(N_BURST) as pool:
        sandboxes = [row[1] for row in pool.map(world.bare_start, names)]
    bare_s = (time.time_ns() - began) / 1e9
    world.bare_remove(sandboxes)
    began = time.time_ns()
    for name in names:
        world.apply(name)
    world.wait_running(names)
    ran_s = (max(world.started().values()) - began) / 1e9
    told_s = (time.time_ns() - began) / 1e9
    world.remove(names)
    print(f"{N_BURST} pods at once")
    print(f"  bare calls, each pod in a thread of its own    {bare_s:8.2f} s")
    print(f"  applied, until the last container was started  {ran_s:8.2f} s"
          f"   {ran_s / bare_s:.2f}x")
    print(f"  applied, until the API says Running of all     {told_s:8.2f} s")
    return False


def idle(world):
    before_kb = world.memory_kb()
    names = [f"idle-{number}" for number in range(N_IDLE)]
    for name in names:
        world.apply(name)
    world.wait_running(names)
    time.sleep(SETTLE_S)
    after_kb = world.memory_kb()
    cpu_s = world.cpu_s()
    time.sleep(IDLE_S)
    percent = (world.cpu_s() - cpu_s) / IDLE_S * 100
    each_kb = (after_kb - before_kb) / N_IDLE
    world.remove(names)
    is_busy, is_large = percent > LIMIT_IDLE_PERCENT, each_kb > LIMIT_POD_KB
    print(f"{N_IDLE} pods that do nothing, {IDLE_S} s")
    print(f"  processor time of davitd                       {percent:8.2f} % of a core"
          f"{'  OVER' if is_busy else ''}")
    print(f"  memory of davitd for each                      {each_kb:8.1f} KB"
          f"{'  OVER' if is_large else ''}   ({before_kb} KB before)")
    return is_busy or is_large


PARTS = {"one": one_at_a_time, "burst": at_once, "idle": idle}


def main():
    reason = containerd.why_not()
    if reason:
        print(f"not run: {reason}")
        return 0
    scratch = tempfile.mkdtemp(prefix="dvb-")
    world = World(scratch)
    try:
        world.start()
        world.take_model()
        world.bare_remove([world.bare_start("warm")[1]])
        is_over = False
        for part in sys.argv[1:] or PARTS:
            is_over |= PARTS[part](world)
    finally:
        world.close()
        shutil.rmtree(scratch, ignore_errors=True)
    return 1 if is_over else 0


if __name__ == "__main__":
    sys.exit(main())
