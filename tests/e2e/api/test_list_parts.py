"""Long lists go out in parts, while they are printed: they are whole all the same."""

import json
import socket

import pytest

from kubepb import MEDIA_TYPE, TYPES, unwrap
from procs import until
from servers import MAPS, PATIENCE_S, config_map

N_MAPS = 60
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
PARTIAL = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"


@pytest.fixture(name="maps")
def fill(api):
    """Some MiB of objects, of different sizes."""
    for number in range(N_MAPS):
        size = 300000 if number % 10 == 0 else 100 * number
        api.must("POST", MAPS, config_map(f"map-{number:02}", {"text": "x" * size}))
    return [f"map-{number:02}" for number in range(N_MAPS)]


def names(items):
    return [item["metadata"]["name"] for item in items
            if item["metadata"]["name"].startswith("map-")]


def test_a_list_in_parts_is_whole(api, maps):
    answer = api.ask("GET", MAPS)
    assert answer.fields["Transfer-Encoding"] == "chunked"
    assert answer.body.endswith(b"]}\n")
    doc = answer.doc
    assert (doc["kind"], doc["apiVersion"]) == ("ConfigMapList", "v1")
    assert names(doc["items"]) == maps
    pages, token = [], ""
    while True:  # each page is short, and in one piece
        page = api.must("GET", f"{MAPS}?limit=2&continue={token}")
        pages += page["items"]
        token = page["metadata"].get("continue", "")
        if not token:
            break
    assert pages == doc["items"]


def test_other_forms_are_whole_too(api, maps):
    table = api.ask("GET", MAPS + "?includeObject=Object", Accept=TABLE).doc
    assert [row["cells"][0] for row in table["rows"] if row["cells"][0] in maps] == maps
    assert names(row["object"] for row in table["rows"]) == maps
    partial = api.ask("GET", MAPS, Accept=PARTIAL).doc
    assert partial["kind"] == "PartialObjectMetadataList"
    assert names(partial["items"]) == maps
    pretty = api.ask("GET", MAPS + "?pretty=true")
    assert pretty.doc["items"] == api.must("GET", MAPS)["items"]
    assert pretty.body.startswith(b"{\n")


def test_what_changes_meanwhile_does_not_show(api, maps):
    conn, answer = api.open("GET", MAPS)
    begun = answer.read(100)
    for name in maps:
        api.must("DELETE", f"{MAPS}/{name}")
    doc = json.loads(begun + answer.read())
    conn.close()
    assert names(doc["items"]) == maps
    assert names(api.must("GET", MAPS)["items"]) == []


def test_clients_that_leave_in_the_middle_cost_nothing(node, api, maps):
    request = (f"GET {MAPS} HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer {node.token}\r\n\r\n")
    for read in (0, 1, 100, 50000):
        for _ in range(5):
            bare = socket.create_connection(("127.0.0.1", node.port), PATIENCE_S)
            with node.context().wrap_socket(bare, server_hostname="127.0.0.1") as conn:
                conn.sendall(request.encode())
                if read:
                    conn.recv(read)
    assert names(api.must("GET", MAPS)["items"]) == maps

    def is_counted():
        text = api.ask("GET", "/metrics").body.decode()
        return 'verb="LIST"' in text

    until(is_counted, PATIENCE_S, "lists are counted")


def test_a_list_in_protobuf_is_whole(api, maps):
    answer = api.ask("GET", MAPS, Accept=MEDIA_TYPE)
    assert answer.fields["Content-Type"] == MEDIA_TYPE
    assert answer.fields["Transfer-Encoding"] == "chunked"
    version, kind, message = unwrap(answer.body)
    assert (version, kind) == ("v1", "ConfigMapList")
    got = TYPES["ConfigMapList"].FromString(message)
    doc = api.must("GET", MAPS)
    assert got.metadata.resourceVersion == doc["metadata"]["resourceVersion"]
    assert [(item.metadata.name, dict(item.data)) for item in got.items] == [
        (item["metadata"]["name"], item["data"]) for item in doc["items"]]
    assert maps == [item.metadata.name for item in got.items
                    if item.metadata.name.startswith("map-")]


def test_metadata_in_protobuf_are_whole(api, maps):
    answer = api.ask("GET", MAPS, Accept=PARTIAL.replace("application/json", MEDIA_TYPE))
    version, kind, message = unwrap(answer.body)
    assert (version, kind) == ("meta.k8s.io/v1", "PartialObjectMetadataList")
    got = TYPES["ConfigMapList"].FromString(message)  # whose first members are the same
    assert maps == [item.metadata.name for item in got.items
                    if item.metadata.name.startswith("map-")]
    assert not any(item.data for item in got.items)
