"""Requests that are wrong, too big or too deep: each gets a Status that says so, and changes
nothing."""

import json
import socket
import urllib.parse

import pytest

from servers import CLAIMS, CORE, MAPS, NODES, PODS, RESOURCE, SLICES, claim, config_map

JSON = "application/json"
YAML = "application/yaml"
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
JSON_PATCH = "application/json-patch+json"
APPLY = "application/apply-patch+yaml"
MIB = 1 << 20

DEEP_JSON = b'{"metadata":{"name":"m"},"data":' + b'{"a":' * 20000 + b"1" + b"}" * 20000 + b"}"
DEEP_LIST = b'{"metadata":' + b"[" * 20000 + b"]" * 20000 + b"}"
DEEP_YAML = b"metadata: {name: m}\ndata: " + b"{a: " * 20000 + b"1" + b"}" * 20000
LAUGHS = b"a: &a [x,x,x,x,x,x,x,x,x]\n" + b"".join(
    f"{chr(98 + n)}: &{chr(98 + n)} [{','.join(['*' + chr(97 + n)] * 9)}]\n".encode()
    for n in range(12))
MANY_STEPS = json.dumps([{"op": "add", "path": "/data/a", "value": "1"}] * 10001).encode()


@pytest.mark.parametrize("media,body", [
    (JSON, b""),
    (JSON, b"{"),
    (JSON, b'{"metadata":{"name":"m"}'),
    (JSON, b'{"metadata":{"name":"m"}}}'),
    (JSON, b'{"metadata":{"name":"m"}} {}'),
    (JSON, b'{"metadata":{"name":}}'),
    (JSON, b"{'metadata':{}}"),
    (JSON, b"nothing"),
    (JSON, b"[]"),
    (JSON, b"7"),
    (JSON, b"null"),
    (JSON, b'"text"'),
    (JSON, b"\x00\x01\x02"),
    (JSON, b"\xff\xfe{}"),
    (JSON, b'{"metadata":{"name":7}}'),
    (JSON, b'{"metadata":"m"}'),
    (JSON, b'{"metadata":[]}'),
    (JSON, b'{"metadata":{"name":"m"},"data":[]}'),
    (JSON, b'{"metadata":{"name":"m"},"data":{"a":{"b":"c"}}}'),
    (JSON, b'{"metadata":{"name":"m","labels":{"a":1}}}'),
    (JSON, b'{"metadata":{"name":"m","creationTimestamp":"yesterday"}}'),
    (JSON, b'{"metadata":{"name":"m","generation":1e999}}'),
    (JSON, b'{"apiVersion":"v1","kind":"Secret","metadata":{"name":"m"}}'),
    (JSON, b'{"apiVersion":"v2","kind":"ConfigMap","metadata":{"name":"m"}}'),
    (JSON, b'{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"m"}}'),
    (JSON, b'{"metadata":{"name":"../../etc"}}'),
    (JSON, b'{"metadata":{"name":"UPPER"}}'),
    (JSON, b'{"metadata":{}}'),
    (JSON, b'{"metadata":{"name":"m","namespace":"other"}}'),
    (JSON, b'{"metadata":{"name":"' + b"m" * 300 + b'"}}'),
    (JSON, DEEP_JSON),
    (JSON, DEEP_LIST),
    (YAML, b"metadata: {name: m"),
    (YAML, b"metadata:\n\tname: m"),
    (YAML, b"a: *nowhere"),
    (YAML, b"- a\n- b"),
    (YAML, b"%YAML 9.9\n---\n{}"),
    (YAML, b"\xff\xff"),
    (YAML, DEEP_YAML),
    (YAML, LAUGHS),
], ids=range(40))
def test_bodies_that_are_no_object(api, media, body):
    answer = api.ask("POST", MAPS, body, Content_Type=media)
    assert answer.status in (400, 404, 422, 500), answer
    doc = answer.doc
    assert (doc["kind"], doc["status"], doc["code"]) == ("Status", "Failure", answer.status)
    assert doc["message"] and len(answer.body) < 10000
    assert api.must("GET", MAPS)["items"] == []


def test_how_a_body_is_told(api):
    media_types = ("text/plain", "application/cbor", "application/x-www-form-urlencoded", "odd")
    for media in media_types:
        doc = api.refused(415, "POST", MAPS, b"{}", Content_Type=media)
        assert doc["reason"] == "UnsupportedMediaType"
    for media in ("text/html", "image/png"):
        assert api.refused(406, "GET", MAPS, Accept=media)["reason"] == "NotAcceptable"
    api.refused(415, "PATCH", f"{MAPS}/m", b"{}", Content_Type=JSON)


@pytest.mark.parametrize("media,body", [
    (MERGE, b"{"), (MERGE, b"[]"), (MERGE, b"7"), (MERGE, b'{"metadata":{"name":"other"}}'),
    (MERGE, b'{"metadata":7}'), (MERGE, b'{"data":{"a":7}}'), (MERGE, DEEP_JSON),
    (STRATEGIC, b"{"), (STRATEGIC, b'{"$patch":"nope"}'), (STRATEGIC, b'{"data":[]}'),
    (JSON_PATCH, b"{}"), (JSON_PATCH, b"["), (JSON_PATCH, b"[7]"),
    (JSON_PATCH, b'[{"op":"nope"}]'),
    (JSON_PATCH, b'[{"op":"remove","path":"/nope/nope"}]'),
    (JSON_PATCH, b'[{"op":"add","path":"no-slash","value":1}]'),
    (JSON_PATCH, b'[{"op":"test","path":"/data/a","value":"2"}]'),
    (JSON_PATCH, b'[{"op":"move","from":"/data","path":"/data/x"}]'),
    (JSON_PATCH, MANY_STEPS),
    (APPLY, b"{"), (APPLY, b"- a"), (APPLY, b'{"metadata":{"name":"m"}}'),
    (APPLY, b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: other}"),
], ids=range(23))
def test_patches_that_do_not_fit(api, media, body):
    made = api.must("POST", MAPS, config_map("m", {"a": "1"}))
    answer = api.ask("PATCH", f"{MAPS}/m?fieldManager=test", body, Content_Type=media)
    assert answer.status in (400, 409, 413, 422, 500), answer
    assert answer.doc["kind"] == "Status" and answer.doc["code"] == answer.status
    assert api.must("GET", f"{MAPS}/m") == made


@pytest.mark.parametrize("path,code", [
    (f"{MAPS}?limit=x", 400),
    (f"{MAPS}?limit=99999999999999999999", 400),
    (f"{MAPS}?timeoutSeconds=x", 400),
    (f"{MAPS}?labelSelector=a%20in", 400),
    (f"{MAPS}?labelSelector=a%3D%3D%3Db", 400),
    (f"{MAPS}?labelSelector=-bad-", 400),
    (f"{MAPS}?labelSelector=a%20in%20(b", 400),
    (f"{MAPS}?labelSelector=%2C%2C", 400),
    (f"{MAPS}?labelSelector={'x' * 300}", 400),
    (f"{MAPS}?fieldSelector=nope%3Dx", 400),
    (f"{MAPS}?fieldSelector=nonsense", 400),
    (f"{PODS}?fieldSelector=spec.image%3Dx", 400),
    (f"{MAPS}?continue=nonsense", 400),
    (f"{MAPS}?continue=eyJ2IjoibWV0YS5rOHMuaW8vdjEifQ", 400),
    (f"{MAPS}?resourceVersion=nonsense", 400),
    (f"{MAPS}?resourceVersion=-1", 400),
    (f"{MAPS}?resourceVersionMatch=Exact", 422),
    (f"{MAPS}?resourceVersion=0&resourceVersionMatch=Exact", 422),
    (f"{MAPS}?resourceVersion=1&resourceVersionMatch=Nope", 422),
    (f"{MAPS}?resourceVersion=999999999", 504),
    (f"{MAPS}?watch=1&sendInitialEvents=true", 422),
    (f"{MAPS}?sendInitialEvents=true", 422),
    ("/api/v1/namespaces/default/nothings", 404),
    ("/api/v2/pods", 404),
    (f"{MAPS}/m/nope", 404),
    (f"{MAPS}/..%2F..%2Fetc", 404),
])
def test_reads_that_make_no_sense(api, path, code):
    api.refused(code, "GET", path)


def test_paths_that_lead_nowhere(api):
    """The reference has no Status for these."""
    for path in ("/apis/nope.example.com/v1", "/%00", "//api//v1//pods", "/" + "x" * 4000, "/x%zz",
                 "/api/v1/../../etc/passwd"):
        assert api.ask("GET", path).status in (400, 404), path


def test_a_negative_limit_is_none(api):
    for number in range(3):
        api.must("POST", MAPS, config_map(f"m{number}"))
    for limit in (-1, -9999999999, 0):
        listed = api.must("GET", f"{MAPS}?limit={limit}")
        assert len(listed["items"]) == 3 and "continue" not in listed["metadata"]


@pytest.mark.parametrize("method,path,body,code", [
    ("POST", f"{MAPS}?dryRun=Some", config_map("m"), 422),
    ("POST", f"{MAPS}?fieldValidation=Perhaps", config_map("m"), 422),
    ("POST", f"{MAPS}?fieldManager={'x' * 200}", config_map("m"), 422),
    ("POST", f"{MAPS}/m", config_map("m"), 405),
    ("PUT", MAPS, config_map("m"), 405),
    ("PUT", f"{MAPS}/m", config_map("other"), 400),
    ("PUT", f"{MAPS}/m", config_map("m"), 404),
    ("PATCH", MAPS, None, 405),
    ("DELETE", f"{MAPS}/m", None, 404),
    ("POST", f"{CORE}/namespaces/nowhere/configmaps", config_map("m"), 404),
    ("POST", CLAIMS, {**claim("c"), "spec": {"devices": {"requests": [{}]}}}, 422),
    ("POST", SLICES, {"metadata": {"name": "s"}}, 422),
    ("POST", NODES, {"metadata": {"name": "bad_name"}}, 422),
    ("POST", f"{PODS}/nope/binding",
     {"metadata": {"name": "nope"}, "target": {"kind": "Node", "name": "n"}}, 404),
    ("POST", f"{PODS}/nope/eviction", {"metadata": {"name": "nope"}}, 404),
    ("POST", f"{RESOURCE}/v1/deviceclasses",
     {"metadata": {"name": "g"}, "spec": {"selectors": [{"cel": {"expression": "1 +"}}]}}, 422),
    ("POST", f"{RESOURCE}/v1/deviceclasses",
     {"metadata": {"name": "g"}, "spec": {"selectors": [
         {"cel": {"expression": "(" * 3000 + "true" + ")" * 3000}}]}}, 422),
])
def test_writes_that_make_no_sense(api, method, path, body, code):
    answer = api.ask(method, path, body)
    assert answer.status == code, answer
    assert answer.doc["kind"] == "Status" and answer.doc["code"] == code
    assert api.must("GET", MAPS)["items"] == []


def test_odd_methods(api):
    for method in ("TRACE", "OPTIONS", "LINK", "PROPFIND", "X" * 50):
        answer = api.ask(method, MAPS)
        assert answer.status in (400, 404, 405, 501), answer


def test_bodies_of_more_than_three_mib(api):
    for size, method, path, media in (
        (3 * MIB, "POST", MAPS, JSON),
        (3 * MIB, "PUT", f"{MAPS}/m", JSON),
        (3 * MIB, "PATCH", f"{MAPS}/m", MERGE),
        (3 * MIB, "POST", MAPS, YAML),
        (3 * MIB, "POST", MAPS, "application/vnd.kubernetes.protobuf"),
        (8 * MIB, "POST", MAPS, JSON),
    ):
        body = b'{"metadata":{"name":"m"},"data":{"a":"' + b"x" * size + b'"}}'
        try:
            answer = api.ask(method, path, body, Content_Type=media)
        except OSError:
            assert size > 3 * MIB  # answered and hung up before all of it was sent
            continue
        assert answer.status == 413, answer
        if size == 3 * MIB:
            assert answer.doc["reason"] == "RequestEntityTooLarge"
    big = config_map("m", {"a": "x" * MIB})  # what a map may hold, and no more
    assert api.ask("POST", MAPS, big).status in (201, 422)
    api.refused(422, "POST", MAPS, config_map("n", {"a": "x" * (2 * MIB)}))


def test_a_body_that_is_too_long_gets_its_answer_at_once(api, node):
    """Its length says so: nobody waits for the rest."""
    with socket.create_connection(("127.0.0.1", node.port)) as raw:
        with node.context().wrap_socket(raw, server_hostname="127.0.0.1") as tls:
            tls.settimeout(30)
            tls.sendall(f"POST {MAPS} HTTP/1.1\r\nHost: x\r\nContent-Type: {JSON}\r\n"
                        f"Authorization: Bearer {node.token}\r\nContent-Length: 99999999999\r\n"
                        "\r\n{".encode())
            assert b" 413 " in tls.recv(4096).splitlines()[0]
    api.must("GET", MAPS)


@pytest.mark.parametrize("text", [
    b"\r\n\r\n", b"GET\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", b"\x16\x03\x01\x02\x00\x01" * 10,
    b"GET / HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
    b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    b"GET / HTTP/1.1\r\nHost: x\r\n" + b"".join(b"A%d: b\r\n" % n for n in range(5000)) + b"\r\n",
    b"GET /" + b"x" * 100000 + b" HTTP/1.1\r\n\r\n",
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
], ids=range(9))
def test_what_is_not_http(api, node, text):
    with socket.create_connection(("127.0.0.1", node.port)) as raw:
        with node.context().wrap_socket(raw, server_hostname="127.0.0.1") as tls:
            tls.settimeout(30)
            try:
                tls.sendall(text)
                tls.settimeout(1)
                answer = tls.recv(4096)
                assert not answer or answer.split()[1] in (b"400", b"401", b"404", b"405", b"411",
                                                           b"413", b"414", b"431", b"505"), answer
            except OSError:
                pass  # it hung up, or waits for more
    api.must("GET", MAPS)


def test_what_is_not_tls(api, node):
    for text in (b"GET / HTTP/1.1\r\n\r\n", b"\x00" * 100, b"\x16\x03\x01\xff\xff" + b"x" * 1000):
        with socket.create_connection(("127.0.0.1", node.port)) as raw:
            raw.settimeout(30)
            try:
                raw.sendall(text)
                raw.shutdown(socket.SHUT_WR)
                while raw.recv(4096):
                    pass
            except OSError:
                pass  # it hung up
    api.must("GET", MAPS)


def test_pages_end_when_their_version_is_forgotten(api, node):
    for number in range(5):
        api.must("POST", MAPS, config_map(f"m{number}"))
    page = api.must("GET", f"{MAPS}?limit=2")
    token = urllib.parse.quote(page["metadata"]["continue"])
    assert page["metadata"]["remainingItemCount"] == 3
    api.must("DELETE", f"{MAPS}/m2")
    api.must("POST", MAPS, config_map("m9"))
    second = api.must("GET", f"{MAPS}?limit=2&continue={token}")
    assert [item["metadata"]["name"] for item in second["items"]] == ["m2", "m3"]  # as it was
    assert second["metadata"]["resourceVersion"] == page["metadata"]["resourceVersion"]
    node.outgrow_history(api)
    doc = api.refused(410, "GET", f"{MAPS}?limit=2&continue={token}")
    assert doc["reason"] == "Expired"
    again = doc["metadata"].get("continue")  # goes on, though not at that version
    if again:
        rest = api.must("GET", f"{MAPS}?continue={urllib.parse.quote(again)}")
        assert [item["metadata"]["name"] for item in rest["items"]][:2] == ["m3", "m4"]


def test_watches_of_forgotten_versions_are_told_so(api, node):
    old = api.must("GET", MAPS)["metadata"]["resourceVersion"]
    node.outgrow_history(api)
    with api.watch(f"{MAPS}?resourceVersion={old}") as watch:
        event = watch.next()
        assert (event["type"], event["object"]["code"]) == ("ERROR", 410)
        assert event["object"]["reason"] == "Expired"
        assert watch.next() is None
