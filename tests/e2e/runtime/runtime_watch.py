"""Looks at a runtime all the time, from outside of davitd, while a test does its worst to davitd.

What has to hold at every moment:
- no device is in two containers that run;
- a pod has one container of a name that runs, and one sandbox that is ready;
- a container that runs has its pod in the API;
- the claim of a container that runs is prepared: its driver's CDI spec is there.

Who looks first at the runtime, then elsewhere, then at the runtime again, and finds a container
running both times, knows that it ran at the time of the look elsewhere.
"""

import collections
import json
import os
import threading

from bound_pods import GPU
from cri_client import RpcError
from servers import CLAIMS, PODS

PAUSE_S = 0.02


class RuntimeWatch:
    """As a context: `check` fails with the first thing that was wrong."""

    def __init__(self, node):
        self.node = node
        self.n_looks = 0
        self.wrong = None
        self._devices = {}  # by the container's id; they never change
        self._claims = {}  # {uid of the pod: uid of its claim}
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._end.set()
        self._thread.join()

    def check(self):
        assert not self.wrong, self.wrong

    @property
    def n_containers(self):
        """How many were seen running."""
        return len(self._devices)

    def _run(self):
        cri = self.node.runtime.cri()
        while not self._end.wait(PAUSE_S) and not self.wrong:
            try:
                self._look(cri)
            except AssertionError as error:
                self.wrong = str(error)
            self.n_looks += 1

    def _look(self, cri):
        before = self._running(cri)
        self._check_alone(cri, before.values())
        specs = set(os.listdir(self.node.cdi_dir))
        pods, claims = self._objects()
        after = self._running(cri)
        both = [one for key, one in before.items() if key in after]
        for one in both:
            uid = one.labels["io.kubernetes.pod.uid"]
            name = one.labels["io.kubernetes.pod.name"]
            assert pods is None or uid in pods, f"{name} runs, and the API has no such pod"
            claim = self._claims.get(uid)
            assert not claim or f"{GPU}-{claim}.json" in specs, \
                f"{name} runs, and its claim is not prepared"
        self._claims.update(claims)

    @staticmethod
    def _running(cri):
        listed = cri.call("ListContainers").containers
        return {one.id: one for one in listed if one.state == cri.pb.CONTAINER_RUNNING}

    def _check_alone(self, cri, running):
        pairs = ((one.labels["io.kubernetes.pod.uid"], one.metadata.name) for one in running)
        check_once(pairs, "containers of one name")
        check_once((device for one in running for device in self._devices_of(cri, one.id)),
                   "containers with a device")
        check_once((one.labels["io.kubernetes.pod.uid"]
                    for one in cri.call("ListPodSandbox").items if one.state == 0),
                   "sandboxes of a pod")

    def _devices_of(self, cri, container):
        """What the drivers have put into its environment."""
        if container not in self._devices:
            try:
                info = cri.call("ContainerStatus", container_id=container, verbose=True).info
            except RpcError:  # it has been removed meanwhile
                return ()
            variables = json.loads(info["info"])["runtimeSpec"]["process"]["env"]
            self._devices[container] = [
                device for name, _, value in (text.partition("=") for text in variables)
                if name == "GIVEN" or name.startswith("SAMPLE_") for device in value.split(",")]
        return self._devices[container]

    def _objects(self):
        """The uids of all pods, None while davitd is away; {uid of a pod: uid of its claim}."""
        try:
            api = self.node.api()
            claims = {owner["uid"]: one["metadata"]["uid"]
                      for one in api.must("GET", CLAIMS)["items"]
                      for owner in one["metadata"].get("ownerReferences", ())}
            return {one["metadata"]["uid"] for one in api.must("GET", PODS)["items"]}, claims
        except (OSError, ValueError, AttributeError):
            return None, {}


def check_once(things, what):
    twice = [thing for thing, n in collections.Counter(things).items() if n > 1]
    assert not twice, f"two {what}: {twice}"
