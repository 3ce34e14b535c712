"""What other API servers do, and bad ones: pages, old versions, warnings, ends of watches."""

import json
import os
import subprocess
import threading

import pytest

from fake_api import Stream, not_found, status
from procs import until
from runs import davit_path

CLAIMS = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims"
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


def claim(name, version=None, **meta):
    made = {"metadata": {"name": name, "namespace": "default", "uid": f"u-{name}",
                         "resourceVersion": version or "1", **meta},
            "spec": {"devices": {"requests": []}}}
    return made


def whole(item, api_version="resource.k8s.io/v1"):
    return {"apiVersion": api_version, "kind": "ResourceClaim", **item}


def listed(items, version="10", **meta):
    return {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaimList",
            "metadata": {"resourceVersion": version, **meta}, "items": items}


def names(text):
    return [line.split()[0] for line in text.splitlines()]


# ---- lists


def test_pages_are_put_together(davit, fake):
    def answer(request):
        assert request.path == CLAIMS and request.query["limit"] == "500"
        at = int(request.query.get("continue", "0"))
        return 200, listed([claim(f"c{at}")], **({"continue": str(at + 1)} if at < 3 else {}))

    fake.answer = answer
    assert names(davit.ok("get", "claims", "--no-headers")) == ["c0", "c1", "c2", "c3"]
    items = json.loads(davit.ok("get", "claims", "-o", "json"))["items"]
    assert [(i["apiVersion"], i["kind"]) for i in items] == [
        ("resource.k8s.io/v1", "ResourceClaim")] * 4


def test_a_page_that_came_too_late_begins_anew(davit, fake):
    def answer(request):
        if "continue" in request.query:
            return 410, status(410, "Expired", "the continue token is too old")
        if "limit" in request.query:
            return 200, listed([claim("a")], **{"continue": "x"})
        return 200, listed([claim("a"), claim("b")])

    fake.answer = answer
    assert names(davit.ok("get", "claims", "--no-headers")) == ["a", "b"]


def test_selectors_and_names_are_encoded(davit, fake):
    fake.answer = lambda request: (200, listed([]))
    davit.run("get", "claims", "-l", "a in (b,c),d!=é", "--field-selector", "x=a&b")
    assert fake.requests[-1].query["labelSelector"] == "a in (b,c),d!=é"
    assert fake.requests[-1].query["fieldSelector"] == "x=a&b"
    fake.answer = lambda request: not_found("resourceclaims", "a b")
    davit.run("get", "claims", "a b?c", "-n", "x%y")
    assert fake.requests[-1].path == CLAIMS.replace("default", "x%25y") + "/a%20b%3Fc"


def test_an_older_server_is_asked_in_its_version(davit, fake):
    def answer(request):
        if "/v1beta1/" not in request.path:
            return 404, "404 page not found\n"
        old = claim("old")
        old["spec"]["devices"]["requests"] = [{"name": "r", "deviceClassName": "gpu"}]
        if request.path.endswith("/old"):
            return 200, whole(old, "resource.k8s.io/v1beta1")
        if request.path.endswith("/events"):
            return 200, {"kind": "EventList", "apiVersion": "v1", "metadata": {}, "items": []}
        if request.path.endswith("/resourceclaims"):
            return 200, {**listed([old]), "apiVersion": "resource.k8s.io/v1beta1"}
        return not_found("resourceclaims", request.path.rpartition("/")[2])

    fake.answer = answer
    assert names(davit.ok("get", "claims", "--no-headers")) == ["old"]
    assert [r.path.split("/")[3] for r in fake.requests] == ["v1", "v1beta2", "v1beta1"]
    fake.requests.clear()
    done = davit.run("get", "claims", "old", "nope")
    assert done.returncode == 1 and "old" in done.stdout and '"nope" not found' in done.stderr
    assert len(fake.requests) == 4  # what was found out is kept
    done = davit.run("describe", "claim", "old")
    assert "Class:        gpu" in done.stdout and "does not have the kind Event" in done.stdout


def test_a_kind_that_the_server_does_not_have(davit, fake):
    fake.answer = lambda request: (404, "404 page not found\n")
    done = davit.run("get", "taintrules")
    assert done.returncode == 1
    assert "the server does not have the kind DeviceTaintRule" in done.stderr


def test_a_busy_server_is_asked_again(davit, fake):
    answers = [
        (429, status(429, "TooManyRequests", "later"), {"Retry-After": "1"}),
        (200, listed([claim("a")])),
    ]
    fake.answer = lambda request: answers.pop(0)
    assert names(davit.ok("get", "claims", "--no-headers")) == ["a"]
    fake.answer = lambda request: (
        503, status(503, "ServiceUnavailable", "not now"), {"Retry-After": "9"})
    done = davit.run("get", "claims", "--timeout", "1")
    assert done.returncode == 1 and "not now (ServiceUnavailable)" in done.stderr


@pytest.mark.parametrize(
    "code, body, message",
    [
        (200, "{", "the answer"),
        (200, "", "the answer"),
        (200, '{"apiVersion":"v1","kind":"Node"}', "in place of a ResourceClaim"),
        (200, '{"apiVersion":"resource.k8s.io/v1","kind":"ResourceClaim","metadata":{"name":5}}',
         "ResourceClaim from the server"),
        (500, "<h1>oops</h1>", "the server answered 500: <h1>oops</h1>"),
        (301, "", "the server answered 301"),
        (403, '{"kind":"Status","message":"no","reason":"Forbidden"}', "no (Forbidden)"),
        (403, '{"kind":"Status","message":5}', "the server answered 403"),
    ],
)
def test_bad_answers_are_told(davit, fake, code, body, message):
    fake.answer = lambda request: (code, body)
    done = davit.run("get", "claim", "a")
    assert done.returncode == 1 and message in done.stderr, done


def test_long_messages_of_the_server_are_not_cut(davit, fake):
    long = "x" * 2000
    fake.answer = lambda request: (422, status(422, "Invalid", long))
    done = davit.run("get", "claim", "a")
    assert long in done.stderr


def test_a_silent_server_is_given_up(davit, fake):
    ended = threading.Event()

    def answer(request):
        ended.wait(20)
        return 200, listed([])

    fake.answer = answer
    done = davit.run("get", "claims", "--timeout", "1")
    ended.set()
    assert done.returncode == 4 and "no API server answers" in done.stderr


# ---- apply and delete


def test_apply_sends_what_server_side_apply_wants(davit, fake):
    def answer(request):
        if request.method == "GET":
            return not_found("resourceclaims", "a")
        return 201, whole(claim("a")), {"Warning": '299 - "unknown \\"x\\" field"'}

    fake.answer = answer
    done = davit.run("apply", "-f", "-", "--dry-run", "--force-conflicts", "-n", "default",
                     stdin=json.dumps(whole(claim("a"))))
    assert (done.returncode, done.stdout) == (0, "resourceclaim/a created (dry run)\n")
    assert done.stderr == 'davit: warning: unknown "x" field\n'
    request = fake.requests[-1]
    assert (request.method, request.path) == ("PATCH", CLAIMS + "/a")
    assert request.query == {"fieldManager": "davit", "fieldValidation": "Strict", "force": "true",
                             "dryRun": "All"}
    assert request.headers["Content-Type"] == "application/apply-patch+yaml"
    sent = request.json
    note = sent["metadata"].pop("annotations")
    assert sent == whole(claim("a"))
    assert {key: json.loads(text) for key, text in note.items()} == {
        LAST_APPLIED: whole(claim("a", annotations={}))}
    # In the note, as in kubectl's, is the namespace also when the file has none.
    bare = whole(claim("a"))
    del bare["metadata"]["namespace"]
    davit.run("apply", "-f", "-", "--dry-run", "-n", "default", stdin=json.dumps(bare))
    sent = fake.requests[-1].json
    note = sent["metadata"].pop("annotations")
    assert sent == bare and json.loads(note[LAST_APPLIED]) == whole(claim("a", annotations={}))


def test_apply_uses_the_version_of_the_file(davit, fake):
    fake.answer = lambda request: (200, whole(claim("a"), "resource.k8s.io/v1beta2"))
    text = json.dumps(whole(claim("a"), "resource.k8s.io/v1beta2"))
    assert davit.ok("apply", "-f", "-", stdin=text) == "resourceclaim/a unchanged\n"
    assert {r.path.split("/")[3] for r in fake.requests} == {"v1beta2"}
    fake.answer = lambda request: (404, "404 page not found\n")
    done = davit.run("apply", "-f", "-", stdin=text)
    assert done.returncode == 1 and "404 page not found" in done.stderr


def test_apply_stops_when_the_server_is_gone(davit, fake):
    text = "---\n".join(json.dumps(whole(claim(name))) + "\n" for name in "abc")
    fake.stop()
    done = davit.run("apply", "-f", "-", stdin=text)
    assert (done.returncode, done.stdout) == (4, "")
    assert done.stderr.count("no API server answers") == 1
    fake.__init__()  # the fixture stops it again


@pytest.mark.parametrize(
    "options, expected",
    [
        ([], {}),
        (["--grace-period", "5"], {"gracePeriodSeconds": 5}),
        (["--force"], {"gracePeriodSeconds": 0}),
        (["--force", "--grace-period=0"], {"gracePeriodSeconds": 0}),
        (["--dry-run"], {"dryRun": ["All"]}),
    ],
)
def test_delete_sends_its_options(davit, fake, options, expected):
    fake.answer = lambda request: (
        (200, whole(claim("a"))) if request.method == "DELETE" else not_found("resourceclaims", "a")
    )
    assert davit.run("delete", "claim", "a", *options).returncode == 0
    (sent,) = [r.json for r in fake.requests if r.method == "DELETE"]
    assert sent == {"apiVersion": "v1", "kind": "DeleteOptions",
                    "propagationPolicy": "Background", **expected}


def test_another_object_of_the_name_is_not_waited_for(davit, fake):
    looks = []

    def answer(request):
        if request.method == "DELETE":
            return 200, {"kind": "Status", "status": "Success", "details": {"uid": "u-old"}}
        looks.append(request)
        return 200, whole(claim("a", uid="u-old" if len(looks) < 3 else "u-new"))

    fake.answer = answer
    assert davit.ok("delete", "claim", "a") == "resourceclaim/a deleted\n"
    assert len(looks) == 3


# ---- watches


def event(kind, item):
    return {"type": kind, "object": whole(item)}


def test_a_watch_goes_on_where_it_was(davit, fake, procs):
    """Ends, bookmarks, a forgotten point, parts of lines: nothing is lost or comes twice."""
    bookmark = {"type": "BOOKMARK", "object": whole({"metadata": {"resourceVersion": "30"}})}
    expired = {"type": "ERROR", "object": status(410, "Expired", "too old")}
    half = (json.dumps(event("MODIFIED", claim("b", "21"))) + "\n").encode()
    over = threading.Event()
    streams = {
        "10": Stream([event("ADDED", claim("b", "20"))]),
        "20": Stream([half[:30], half[30:], b"\n", bookmark]),
        "30": Stream([expired]),
        "50": Stream([event("DELETED", claim("a", "51")), lambda: over.wait(30)]),
    }
    lists = [listed([claim("a")], "10"), listed([claim("a"), claim("z")], "50")]

    def answer(request):
        if "watch" not in request.query:
            return 200, lists.pop(0)
        assert request.query["allowWatchBookmarks"] == "true"
        return 200, streams.pop(request.query["resourceVersion"])

    fake.answer = answer
    watch = procs.start(davit_path(), "watch", "claims", env={"KUBECONFIG": davit.config})
    until(lambda: len(watch.lines) == 7, 10, "all changes")
    over.set()
    assert watch.lines[0].split() == ["NAME", "STATE", "AGE"]
    assert names("\n".join(watch.lines[1:])) == ["a", "b", "b", "a", "z", "a"]
    watch.kill()


@pytest.mark.parametrize(
    "answer, code, message",
    [
        ((403, status(403, "Forbidden", "not you")), 1, "watch: not you (Forbidden)"),
        ((200, Stream([{"type": "ERROR", "object": status(500, "x", "broken")}])), 1,
         "watch: broken"),
        ((200, Stream([b"not json\n"])), 1, "watch: the server's event"),
        ((200, Stream([{"type": "ADDED", "object": {"apiVersion": "v1", "kind": "Node"}}])), 1,
         "in place of a ResourceClaim"),
    ],
)
def test_a_watch_that_fails_says_why(davit, fake, answer, code, message):
    fake.answer = lambda request: answer if "watch" in request.query else (200, listed([]))
    done = davit.run("watch", "claims")
    assert done.returncode == code and message in done.stderr, done


def test_watched_objects_as_json_and_yaml(davit, fake, procs):
    over = threading.Event()
    fake.answer = lambda request: (
        (200, Stream([event("MODIFIED", claim("a", "11", managedFields=[{}])),
                      lambda: over.wait(30)]))
        if "watch" in request.query else (200, listed([claim("a")]))
    )
    as_json = procs.start(davit_path(), "watch", "claims", "-o", "json",
                          env={"KUBECONFIG": davit.config})
    as_yaml = procs.start(davit_path(), "watch", "claims", "-o", "yaml",
                          env={"KUBECONFIG": davit.config})
    until(lambda: as_json.lines.count("}") == 2, 10, "two objects")
    until(lambda: sum(line.startswith("spec:") for line in as_yaml.lines) == 2, 10, "two objects")
    over.set()
    decoder = json.JSONDecoder()
    first, at = decoder.raw_decode("\n".join(as_json.lines))
    second, _ = decoder.raw_decode("\n".join(as_json.lines)[at:].strip())
    assert first["metadata"]["resourceVersion"] == "1"
    assert second["metadata"]["resourceVersion"] == "11"
    assert "managedFields" not in second["metadata"]
    assert as_yaml.lines.count("---") == 1


def test_a_watch_ends_with_its_reader(davit, fake):
    over = threading.Event()
    fake.answer = lambda request: (
        (200, Stream(part for i in range(100) for part in
                     (event("ADDED", claim(f"c{i}", str(20 + i))), lambda: over.wait(0.05))))
        if "watch" in request.query else (200, listed([claim("a")]))
    )
    done = subprocess.run(
        ["bash", "-c", f"{davit_path()} watch claims | head -1; exit ${{PIPESTATUS[0]}}"],
        capture_output=True, text=True, timeout=20, check=False,
        env={**os.environ, "KUBECONFIG": davit.config},
    )
    over.set()
    assert (done.returncode, done.stderr) == (1, "") and done.stdout.startswith("NAME"), done


# ---- the command line


def test_what_cannot_be_written_is_told(davit, fake):
    fake.answer = lambda request: (200, listed([claim("a")]))
    with open("/dev/full", "w", encoding="ascii") as full:
        done = subprocess.run(
            [davit_path(), "get", "claims"], stdout=full, stderr=subprocess.PIPE, text=True,
            timeout=20, check=False, env={**os.environ, "KUBECONFIG": davit.config},
        )
    assert done.returncode == 1
    assert done.stderr == "davit: standard output: No space left on device\n"


def test_what_would_steer_a_terminal_is_escaped(davit, fake):
    made = whole(claim("a", annotations={"x": "red\x1b[31m"}))
    fake.answer = lambda request: (
        (200, made) if request.path.endswith("/a") else
        (200, {"kind": "EventList", "apiVersion": "v1", "metadata": {}, "items": [
            {"metadata": {"name": "e"}, "reason": "A\x1bB", "message": "one\ntwo\x07",
             "involvedObject": {}, "reportingComponent": "", "reportingInstance": ""}]})
    )
    text = davit.ok("describe", "claim", "a")
    assert "\x1b" not in text and "\x07" not in text
    assert r"x=red\x1b[31m" in text and r"A\x1bB" in text and r"one two\x07" in text


@pytest.mark.parametrize("verb", ["get", "watch", "describe", "apply", "delete"])
def test_every_verb_explains_itself(davit, verb):
    texts = {davit.ok(*words) for words in ([verb, "-h"], [verb, "--help"], ["help", verb])}
    (text,) = texts
    assert text.startswith(f"davit {verb}") and f"\n  davit {verb} " in text
    assert "--kubeconfig FILE" in text
    assert ("--socket" in text) == (verb in ("get", "describe"))  # who ask the node, too


@pytest.mark.parametrize(
    "words, message",
    [
        (["get"], "name a kind"),
        (["get", "clams"], 'there is no kind "clams" (did you mean claims?)'),
        (["get", "pods,ingresses"], 'there is no kind "ingresses"'),
        (["get", "pods", "a", "-l", "x=y"], "names and selectors exclude each other"),
        (["get", "pods", "a", "-A"], "give -n, not -A"),
        (["get", "pods", "-A", "-n", "x"], "-n and -A exclude each other"),
        (["get", "pods,claims", "-w"], "one kind, or one object, can be watched"),
        (["watch", "pods", "a", "b"], "one kind, or one object, can be watched"),
        (["get", "pods", "-o", "xml"], "-o takes wide|json|yaml|name"),
        (["describe"], "name a kind"),
        (["apply"], "name files or folders with -f"),
        (["apply", "x.yaml"], "name files or folders with -f"),
        (["delete"], "name a kind"),
        (["delete", "pods"], "name the objects, or give -l or --all"),
        (["delete", "pods", "a", "--all"], "names and --all exclude each other"),
        (["delete", "pods", "-l", "a", "--all"], "--all and selectors exclude each other"),
        (["delete", "pods", "-f", "x"], "-f stands alone"),
        (["delete", "pod", "a", "--grace-period", "0"], "--grace-period 0 needs --force"),
        (["delete", "pod", "a", "--force", "--grace-period", "9"], "grace period of 0"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_wrong_usage_is_status_2(davit, fake, words, message):
    done = davit.run(*words)
    assert (done.returncode, done.stdout) == (2, ""), done
    assert message in done.stderr and f"see davit help {words[0]}" in done.stderr
    assert not fake.requests


def test_files_that_are_not_there(davit, fake):
    done = davit.run("apply", "-f", "/no/such")
    assert done.returncode == 1 and "/no/such: No such file or directory" in done.stderr
    done = davit.run("apply", "-f", davit.folder)
    assert done.returncode == 1 and "has no *.yaml, *.yml or *.json files" in done.stderr
    done = davit.run("apply", "-f", "-", stdin="# nothing\n")
    assert done.returncode == 1 and "-: no objects in it" in done.stderr
    assert not fake.requests
