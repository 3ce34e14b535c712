"""What takes davitd most of a minute, begun with the first test of this folder and looked at by
the last one, so that nobody waits for it: a call that hangs past its deadline of 45 s, the slices
of a driver that is gone for 30 s."""

import os
import threading
import time

from claim_nodes import GPU, NIC, ClaimNode, make_claim, pod
from python_driver import ClaimReader, Driver
from procs import Procs
from servers import SLICES, device_slice

GONE = "gone.example.com"
BACK = "back.example.com"
CALL_S = 45
WIPE_S = 30


class LongProcs(Procs):
    """They live as long as all tests of the folder take."""

    def start(self, *command, **options):
        return super().start(*command, lifetime_s=900, **options)


class SlowNode:
    def __init__(self, procs, folder):
        self.node = ClaimNode(procs, os.path.join(folder, "n"))
        self.procs = procs
        self.gate = threading.Event()
        self.drivers = []

    def driver(self, name):
        driver = Driver(self.node.kubelet_dir, self.node.cdi_dir, name,
                        ClaimReader(self.node.kubeconfig)).serve()
        self.drivers.append(driver)
        self.node.wait_connected(name)
        return driver

    def begin(self):
        node = self.node.start()
        api = node.api()
        self.hanging = self.driver(GPU)
        self.working = self.driver(NIC)
        gone, back = self.driver(GONE), self.driver(BACK)
        for i, name in enumerate((GPU, GONE, BACK)):
            api.must("POST", SLICES, device_slice(f"s{i}", "n1", name))
        api.must("POST", SLICES, device_slice("elsewhere", "n2", GONE))
        # Both calls hang; of the second pod also a driver that works is asked.
        make_claim(api, "c1", (GPU, "device-0"), pods=["p"])
        make_claim(api, "c2", (GPU, "device-1"), (NIC, "port-0"), pods=["q"])
        self.hanging.before = lambda kind, claims: (
            self.gate.wait(2 * CALL_S) if kind == "prepare" else None)
        self.began = time.monotonic()
        self.admissions = [node.admit_later(pod(name, {"g": claim}), wait=0)
                           for name, claim in (("p", "c1"), ("q", "c2"))]
        self.ended = [None, None]
        for i in range(2):
            threading.Thread(target=self._time, args=(i,), daemon=True).start()
        # One goes for good, one comes back within its time.
        gone.stop()
        back.stop_serving()
        self.gone_at = time.monotonic()
        back.serve_again()
        node.wait_connected(BACK)
        return self

    def _time(self, i):
        self.admissions[i].join()
        self.ended[i] = time.monotonic() - self.began

    def slices(self):
        items = self.node.api().must("GET", SLICES)["items"]
        return {one["metadata"]["name"] for one in items}

    def end(self):
        """As soon as nobody looks at it any more; again is fine."""
        self.gate.set()
        while self.drivers:
            self.drivers.pop().stop()
        if self.node.proc and self.node.proc.is_alive:
            assert self.node.stop() == 0, self.node.proc.describe()
