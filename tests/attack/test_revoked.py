"""A token that was taken back: what was begun with it ends, and what waits is refused."""

import http.client
import threading

import pytest

from procs import until
from servers import MAPS, NODES, PATIENCE_S, config_map

TOKENS = "/davit/v1/tokens"


def make_token(api, **wish):
    return api.must("POST", TOKENS, wish)


def read_all(watch):
    """Events up to the end of the stream."""
    events = []
    while event := watch.next():
        events.append(event)
    return events


def check_ended(watch):
    watch.connection.sock.settimeout(PATIENCE_S)
    events = read_all(watch)
    assert events[-1]["type"] == "ERROR" and events[-1]["object"]["code"] == 401, events


def test_watches_end_with_their_token(node, api):
    made = make_token(api, admin="other")
    other = node.api(token=made["token"])
    with other.watch(MAPS) as watch, other.watch(NODES) as second, api.watch(MAPS) as kept:
        api.must("POST", MAPS, config_map("before"))
        watch.until(lambda event: event["object"]["metadata"]["name"] == "before")
        api.must("DELETE", f"{TOKENS}/{made['id']}")
        check_ended(watch)
        check_ended(second)
        api.must("POST", MAPS, config_map("after"))  # nobody else is concerned
        kept.until(lambda event: event["object"]["metadata"]["name"] == "after")
    other.refused(401, "GET", MAPS)


def test_watches_end_when_the_token_expires(node, api):
    other = node.api(token=make_token(api, admin="short", lifetimeSeconds=4)["token"])
    with other.watch(MAPS) as watch:
        check_ended(watch)
    other.refused(401, "GET", MAPS)


def test_the_feed_of_the_node_ends_with_its_token(node, api):
    made = make_token(api, admin="other")
    other = node.api(token=made["token"])
    connection, answer = other.open("GET", "/davit/v1/node?watch=true")
    assert answer.status == 200 and answer.readline()
    api.must("DELETE", f"{TOKENS}/{made['id']}")
    with pytest.raises((http.client.IncompleteRead, OSError)):  # nobody takes it for whole
        answer.read()
    connection.close()


def test_writes_that_wait_are_refused(node, api):
    """All writes of one object take turns; those that come to theirs too late change nothing."""
    api.must("POST", MAPS, config_map("m"))
    made = make_token(api, admin="other")
    codes = []

    def write(number):
        other = node.api(token=made["token"])
        for turn in range(50):
            body = config_map("m", {"by": f"{number}-{turn}"})
            codes.append(other.ask("PUT", f"{MAPS}/m", body).status)
            if codes[-1] == 401:
                return

    writers = [threading.Thread(target=write, args=(number,), daemon=True) for number in range(8)]
    for writer in writers:
        writer.start()
    until(lambda: codes.count(200) > 8, PATIENCE_S, "they write")
    api.must("DELETE", f"{TOKENS}/{made['id']}")
    last = api.must("GET", f"{MAPS}/m")["metadata"]["resourceVersion"]
    for writer in writers:
        writer.join(PATIENCE_S)
    assert set(codes) <= {200, 401}, codes
    assert api.must("GET", f"{MAPS}/m")["metadata"]["resourceVersion"] == last


def test_a_token_of_an_account_ends_with_the_account(node, api):
    accounts = "/api/v1/namespaces/default/serviceaccounts"
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "a"}}
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview"}
    api.must("POST", accounts, account)
    token = api.must("POST", f"{accounts}/a/token", request)["status"]["token"]
    viewer = node.api(token=token)
    viewer.must("GET", "/api")
    api.must("DELETE", f"{accounts}/a")
    viewer.refused(401, "GET", "/api")
    api.must("POST", accounts, account)  # another of the same name
    viewer.refused(401, "GET", "/api")
    said = api.must("POST", "/apis/authentication.k8s.io/v1/tokenreviews",
                    review | {"spec": {"token": token}})
    assert not said["status"].get("authenticated")
