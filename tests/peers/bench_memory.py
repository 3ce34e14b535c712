"""The memory of davitd at rest, with 10 plugins of 100 devices each.

    ./dev bench memory

Once with all roles, once as the node agent of another davitd's API. Private memory is what nobody
else can share; beside it stand all resident memory, and what of that is mapped from files: davitd
itself and its libraries.
"""

import os
import shutil
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
E2E = os.path.join(HERE, os.pardir, "e2e")
for folder in (HERE, E2E, *(os.path.join(E2E, name) for name in ("claims", "api", "node"))):
    sys.path.insert(0, folder)

from procs import Procs, until  # noqa: E402
from servers import ApiNode  # noqa: E402

N_PLUGINS = 10
N_DEVICES = 100
PATIENCE_S = 60
SETTLE_S = 12  # davitd gives memory back when it has been at rest for some seconds, twice


def start(procs, root, *options):
    """A davitd in a folder of its own: (the node, the process)"""
    node = ApiNode(procs, root)
    proc = procs.start(
        os.path.join(os.environ["DAVIT_BUILD"], "davitd"),
        "--kubelet-dir", node.kubelet_dir, "--state-dir", node.state_dir,
        "--runtime-dir", node.runtime_dir, "--cdi-dirs", os.path.join(root, "cdi"),
        "--cri", "none", *options, ready=None, lifetime_s=10 * PATIENCE_S)
    proc.wait_line("ready", PATIENCE_S)
    return node, proc


def start_plugins(procs, node):
    program = os.path.join(os.environ["DAVIT_BUILD"], "drivers/davit-sample-device-plugin")
    for number in range(N_PLUGINS):
        procs.start(program, "--resource", f"example.com/r{number}", "--virtual", str(N_DEVICES),
                    "--kubelet-dir", node.kubelet_dir, ready=None, lifetime_s=10 * PATIENCE_S)


def wait_devices(api, name):
    def is_there():
        answer = api.ask("GET", f"/api/v1/nodes/{name}")
        return answer.status == 200 and answer.body.count(b'"example.com/r') >= 2 * N_PLUGINS
    until(is_there, PATIENCE_S, f"{name} has all devices")


def memory_kb(pid):
    with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as rollup:
        rows = [line.split() for line in rollup]
    sizes = {row[0]: int(row[1]) for row in rows if row[-1] == "kB"}
    return {"private": sizes["Private_Dirty:"] + sizes["Private_Clean:"], "all": sizes["Rss:"],
            "of files": sizes["Rss:"] - sizes["Anonymous:"], "anonymous": sizes["Anonymous:"]}


def tell(what, proc):
    time.sleep(SETTLE_S)
    sizes = memory_kb(proc.pid)
    print(f"{what:<40} private {sizes['private']:6} KB; resident {sizes['all']:6} KB, of it"
          f" {sizes['of files']:6} KB mapped from files, {sizes['anonymous']:6} KB its own",
          flush=True)


def main():
    folder = tempfile.mkdtemp(prefix="dvm-")
    procs = Procs(folder)
    try:
        roots = [os.path.join(folder, name) for name in ("all", "agent")]
        for root in roots:
            os.mkdir(root)
        server, all_roles = start(procs, roots[0], "--node-name", "all", "--listen", "127.0.0.1:0")
        tell("all roles, nothing to do", all_roles)
        start_plugins(procs, server)
        wait_devices(server.api(), "all")
        tell(f"all roles, {N_PLUGINS} x {N_DEVICES} devices", all_roles)
        node, agent = start(procs, roots[1], "--node-name", "agent", "--roles", "node",
                            "--kubeconfig", server.kubeconfig, "--listen", "none")
        start_plugins(procs, node)
        wait_devices(server.api(), "agent")
        tell(f"node agent, {N_PLUGINS} x {N_DEVICES} devices", agent)
    finally:
        procs.close()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
