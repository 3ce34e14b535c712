"""A client's name becomes the manager of the fields it sets: it is stored, and read at the start."""

from servers import MAPS, config_map

# What is sent: the manager that is stored. As the reference: whole printable characters, 128 bytes.
AGENTS = {
    b"kubectl/v1.36 (linux)": "kubectl",
    b"\xff\xfe/1": "\ufffd\ufffd",
    b"a\xc3": "a\ufffd",
    b"x" * 127 + "é".encode() + b"y": "x" * 127,
    "é".encode() * 100: "é" * 64,
    b"a\tb\xc2\x85c": "abc",
    b"\xed\xa0\x80": "\ufffd\ufffd\ufffd",
    b"/1": "unknown",
}


def create(api, name, agent):
    """With a User-Agent of any bytes."""
    connection = api.connect()
    body = str(config_map(name, {"a": "b"})).replace("'", '"')
    connection.putrequest("POST", MAPS, skip_accept_encoding=True)
    for field, value in api.fields({"Content_Type": "application/json"}).items():
        connection.putheader(field, value)
    connection.putheader("User-Agent", agent)
    connection.putheader("Content-Length", str(len(body)))
    connection.endheaders(body.encode())
    try:
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def managers(api, name):
    return [one["manager"] for one in api.must("GET", f"{MAPS}/{name}")["metadata"]["managedFields"]]


def test_a_user_agent_of_any_bytes_is_read_back(node, api):
    for number, (agent, manager) in enumerate(AGENTS.items()):
        status, body = create(api, f"m{number}", agent)
        assert status == 201, (agent, status, body)
        assert managers(api, f"m{number}") == [manager], agent
    assert node.stop() == 0, node.proc.describe()
    node.start()
    for number, manager in enumerate(AGENTS.values()):
        assert managers(node.api(), f"m{number}") == [manager]
