"""kill -9 of davitd at random moments while pods come and go: in the end every pod runs or is gone,
every device is held once, and the driver has prepared what live pods have and nothing else."""

import http.client
import os
import random
import threading
import time

import pytest

from procs import until
from servers import CLAIMS, PODS
from whole_nodes import (
    CLASSES, TEMPLATES, WAIT_S, claim, device_class, devices_of, get, held, is_ready, items, pod,
    template,
)

pytestmark = pytest.mark.release

N_PODS = 20
N_SHARED = 2
N_CHANGES = 30  # each is of all pods


class Users(threading.Thread):
    """Makes and deletes pods, and does not mind an API that is not there."""

    def __init__(self, api, seed):
        super().__init__(daemon=True)
        self.api = api
        self.random = random.Random(seed)
        self.error = None

    def change(self, number):
        name = f"p{number}"
        if self.random.random() < 0.5:
            shared = f"c{number % N_SHARED}" if number % 5 == 0 else None
            answer = self.api.ask("POST", PODS, pod(
                name, of_claim=shared, of_template=None if shared else "one",
                nodeName="n1" if number % 7 == 0 else None))
            assert answer.status in (201, 409, 503), answer
        else:
            grace = self.random.choice([None, None, 0])
            answer = self.api.ask("DELETE", f"{PODS}/{name}", {"gracePeriodSeconds": grace})
            assert answer.status in (200, 404, 409, 503), answer

    def run(self):
        try:
            for _ in range(N_CHANGES):
                for number in self.random.sample(range(N_PODS), N_PODS):
                    try:
                        self.change(number)
                    except (OSError, http.client.HTTPException):
                        time.sleep(0.01)
        except AssertionError as error:
            self.error = error


def why_unsettled(api, driver):
    """What is not as it should be in the end; None: all is."""
    pods = items(api, PODS)
    for one in pods:
        if one["metadata"].get("deletionTimestamp") or not is_ready(one):
            return f"{one['metadata']['name']}: {one['metadata']}, {one['status']}"
    live = {one["metadata"]["uid"] for one in pods}
    claims = items(api, CLAIMS)
    used = {}
    for one in claims:
        users = {who["uid"] for who in one.get("status", {}).get("reservedFor", [])}
        if not users <= live or bool(users) != bool(devices_of(one)):
            return f"{one['metadata']['name']}: {one.get('status')}"
        if users:
            used[one["metadata"]["uid"]] = one["metadata"]["name"]
        elif one["metadata"].get("ownerReferences") or one["metadata"].get("finalizers"):
            return f"{one['metadata']['name']} is left: {one['metadata']}"
    prepared = driver.prepared()
    return None if set(prepared) == set(used) else f"prepared {prepared}, used {used}"


def wait_settled(api, driver):
    until(lambda: why_unsettled(api, driver) is None, 2 * WAIT_S, "all is as it should be")


def test_nothing_is_lost_or_doubled_when_davitd_is_killed(node, api):
    seed = int(os.environ.get("DAVIT_SEED", random.randrange(1 << 32)))
    print("DAVIT_SEED", seed)
    dice = random.Random(seed)
    driver = node.start_driver(N_PODS)
    api.must("POST", CLASSES, device_class())
    api.must("POST", TEMPLATES, template())
    for number in range(N_SHARED):
        api.must("POST", CLAIMS, claim(f"c{number}"))
    users = Users(node.api(), seed)
    users.start()
    n_kills = 0
    while users.is_alive():
        time.sleep(dice.random() * 0.4)
        node.kill()
        n_kills += 1
        node.start()
    users.join()
    assert users.error is None, users.error
    assert n_kills > 3
    api.disconnect()
    try:
        wait_settled(api, driver)
    except TimeoutError:
        raise AssertionError(why_unsettled(api, driver)) from None
    assert set(held(api)) == {
        device for one in driver.prepared().values() for device in one.split(":")[1].split(",")}
    for one in items(api, PODS):
        api.must("DELETE", f"{PODS}/{one['metadata']['name']}")
    until(lambda: not items(api, PODS) and not driver.prepared(), WAIT_S, "all is given back")
    until(lambda: why_unsettled(api, driver) is None, WAIT_S, why_unsettled(api, driver))
    assert sorted(one["metadata"]["name"] for one in items(api, CLAIMS)) == ["c0", "c1"]
    assert held(api) == {} and not get(api, CLAIMS, "c0")["metadata"].get("finalizers")
