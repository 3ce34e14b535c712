"""Runs of davit verify against the sample drivers."""

import json
import os
import subprocess

import fault_rows
from peers import folder_of

BUILD = folder_of("DAVIT_BUILD")
DAVIT = os.path.join(BUILD, "davit")
PLUGIN = (
    f"exec {BUILD}/drivers/davit-sample-device-plugin --resource example.com/dev --virtual 4"
    " --numa 0,1 --kubelet-dir {kubelet} --env DEVS --prestart --preferred lowest"
)
DRA = (
    f"exec {BUILD}/drivers/davit-sample-dra-driver --kubelet-dir {{kubelet}}"
    " --kubeconfig {kubeconfig} --node {node} --cdi-dir {cdi} --correct 1 --instance {instance}"
)
# A claim with parameters for the driver.
CLAIM = ["--claim", os.path.join(os.path.dirname(os.path.abspath(__file__)), "claim.yaml")]
HOOKS = ["--hook", "unhealthy=kill -USR1 {pid}", "--hook", "healthy=kill -USR2 {pid}"]


def verify(kind, command, folder, *options, tmpdir=None):
    """(exit status, {case: outcome}, {case: reason})"""
    report = os.path.join(folder, "report.json")
    # Freed memory that a sanitizer keeps back would count as growth.
    options_before = os.environ.get("ASAN_OPTIONS", "")
    env = {**os.environ, "ASAN_OPTIONS": f"{options_before}:quarantine_size_mb=0".lstrip(":")}
    env["TMPDIR"] = tmpdir or env.get("TMPDIR", "/tmp")
    done = subprocess.run(
        [DAVIT, "verify", kind, "--exec", command, "--dir", os.path.join(folder, "kept"),
         "--json", report, *(HOOKS if kind == "device-plugin" else []), *options],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=110, check=False, env=env,
    )
    return (done.returncode, *read_report(report, done.stdout))


def read_report(path, output):
    """({case: outcome}, {case: reason}); without a report the reason is what was printed."""
    if not os.path.exists(path):
        return {}, {"output": output}
    with open(path, encoding="utf-8") as file:
        cases = json.load(file)["cases"]
    return ({case["id"]: case["outcome"] for case in cases}, {case["id"]: case["reason"] for case in cases})


def group_is_gone(pids):
    return not any(os.path.exists(f"/proc/{pid}") for pid in pids)


def descendants(pid):
    """The processes below this one."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/stat", encoding="ascii", errors="replace") as stat:
                parent = int(stat.read().rpartition(")")[2].split()[1])
        except OSError:
            continue
        if parent == pid:
            found += [int(name), *descendants(int(name))]
    return found


def requires(kind, cases=None):
    """Options by which the cases fail that would be skipped where drivers may differ."""
    return [word for case in fault_rows.REQUIRED[kind] if cases is None or case in cases
            for word in ("--require", case)]


def listed(kind):
    """All cases of the kind."""
    said = subprocess.run([DAVIT, "verify", kind, "--list"], stdout=subprocess.PIPE, text=True,
                          check=True).stdout
    return [line.split()[0] for line in said.splitlines()]


def note(kind, fault, found):
    """For the table that ./dev test prints: what was found, not what was hoped for. Nothing found:
    the row of an earlier run goes."""
    folder = os.path.join(BUILD, "verify-faults")
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, f"{kind}-{fault}")
    if not found:
        if os.path.exists(path):
            os.unlink(path)
        return
    with open(path, "w", encoding="utf-8") as file:
        file.write(f"{kind:14} {fault:22} {' '.join(found)}\n")
