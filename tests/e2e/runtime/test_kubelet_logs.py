"""The log of a container, as an API server reads it from a node."""

import pytest
from procs import until
from runtime_nodes import WAIT_S, container, pod
from test_usage import own_api

LOGS = "/containerLogs/default"


@pytest.fixture
def talker(make_node):
    node = make_node("--node-listen", "127.0.0.1:0").start()
    node.add(pod("talker", container(script="echo one; echo two; sleep 1000"),
                 initContainers=[container("first", "echo zero")]))
    node.wait_phase("talker", "Running")
    return node


def test_the_log_of_a_container(talker):
    api = own_api(talker)
    until(lambda: api.ask("GET", f"{LOGS}/talker/main").body == b"one\ntwo\n", WAIT_S, "its log")
    answer = api.ask("GET", f"{LOGS}/talker/main?tailLines=1")
    assert (answer.status, answer.body) == (200, b"two\n")
    assert answer.fields["Content-Type"] == "text/plain"
    assert api.ask("GET", f"{LOGS}/talker/first").body == b"zero\n"
    for path, status, text in (
            ("nobody/main", 404, b'pod "nobody" does not exist'),
            ("talker/other", 404, b'container "other" not found in pod "talker"'),
            ("talker/main?tailLines=-1", 422, b"tailLines"),
            ("talker/main?previous=true", 400, b"previous terminated container")):
        answer = api.ask("GET", f"{LOGS}/{path}")
        assert answer.status == status and text in answer.body, answer
    assert api.ask("POST", f"{LOGS}/talker/main").status == 405


def test_a_log_that_is_followed_ends_with_the_node(talker):
    connection, answer = own_api(talker).open("GET", f"{LOGS}/talker/main?follow=true")
    assert answer.status == 200
    assert answer.readline() == b"one\n"
    assert talker.stop() == 0
    connection.close()
