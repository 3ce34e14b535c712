"""The logs of containers: of which instance, which lines, in which form, for which clients."""

import datetime
import json
import os

import pytest
from kubectls import OLD, Kubectl, find_kubectl
from kubernetes import client, config
from nodes import run_davit
from procs import until
from runtime_nodes import WAIT_S, container, pod
from servers import PODS


@pytest.fixture(params=[pytest.param("old", marks=pytest.mark.plain), "new"])
def kubectl(request, node, short_dir):
    program = find_kubectl(request.param)
    return Kubectl(program, node.kubeconfig, short_dir, is_old=request.param == OLD)


def read(node, name, **options):
    """The answer to a GET of the log; True and False as clients in Go write them."""
    query = "&".join(f"{key}={str(value).lower() if isinstance(value, bool) else value}"
                     for key, value in options.items())
    return node.api().ask("GET", f"{PODS}/{name}/log?{query}")


def text(node, name, **options):
    answer = read(node, name, **options)
    assert answer.status == 200, answer
    assert answer.fields["Content-Type"] == "text/plain"
    return answer.body.decode()


def test_running_terminated_init_and_previous(node, kubectl):
    script = "echo run >>/v/runs; echo run $(wc -l </v/runs); [ $(wc -l </v/runs) -gt 1 ] || exit 1; sleep 1000"
    mount = {"volumeMounts": [{"name": "v", "mountPath": "/v"}]}
    node.add(pod("p", container(script=script, **mount), container("side", "echo side; exec sleep 1000"),
                 initContainers=[container("first", "echo first; echo to stderr >&2")],
                 volumes=[{"name": "v", "emptyDir": {}}]))
    node.add(pod("done", container(script="echo one; echo two; exit 3"), restartPolicy="Never"))
    node.wait_phase("done", "Failed")
    assert kubectl("logs", "done") == "one\ntwo\n"
    assert kubectl("logs", "-f", "done") == "one\ntwo\n"
    node.wait_status("p", lambda s: s["containerStatuses"][0]["restartCount"] == 1 and
                     "running" in s["containerStatuses"][0]["state"], "it was started again")
    until(lambda: kubectl("logs", "p", "-c", "main") == "run 2\n", WAIT_S, "its log")
    assert kubectl("logs", "p", "-c", "main", "--previous") == "run 1\n"
    assert sorted(kubectl("logs", "p", "-c", "first").splitlines()) == ["first", "to stderr"]
    assert kubectl("logs", "p", "-c", "side") == "side\n"
    assert "side\n" in kubectl("logs", "p", "--all-containers")


LINES = "for i in 1 2 3 4 5; do echo line $i; done; sleep 1000"


def test_which_lines(node):
    node.add(pod("p", container(script=LINES)))
    lines = [f"line {i}\n" for i in range(1, 6)]
    until(lambda: read(node, "p").body.decode() == "".join(lines), WAIT_S, "all lines")
    for tail, shown in {0: [], 1: lines[4:], 3: lines[2:], 5: lines, 1000: lines}.items():
        assert text(node, "p", tailLines=tail) == "".join(shown)
    assert text(node, "p", limitBytes=9) == "line 1\nli"
    assert text(node, "p", tailLines=2, limitBytes=4) == "line"
    stamped = text(node, "p", timestamps=True).splitlines()
    for line, stamp in zip(lines, stamped):
        moment, _, rest = stamp.partition(" ")
        assert rest + "\n" == line
        assert len(moment) == len("2006-01-02T15:04:05.000000000Z") and moment.endswith("Z")
        datetime.datetime.strptime(moment[:26], "%Y-%m-%dT%H:%M:%S.%f")
    third = stamped[2].partition(" ")[0]
    assert text(node, "p", sinceTime=third).startswith("line 3\n")
    assert text(node, "p", sinceTime="2200-01-01T00:00:00Z") == ""
    assert text(node, "p", sinceSeconds=3600) == "".join(lines)
    assert text(node, "p", insecureSkipTLSVerifyBackend=True) == "".join(lines)


def test_a_client_in_python(node):
    config.load_kube_config(node.kubeconfig)
    api = client.CoreV1Api()
    node.add(pod("p", container(script=LINES)))
    until(lambda: read(node, "p").body.count(b"\n") == 5, WAIT_S, "all lines")
    assert api.read_namespaced_pod_log("p", "default", tail_lines=2) == "line 4\nline 5\n"
    with pytest.raises(client.exceptions.ApiException) as refused:
        api.read_namespaced_pod_log("p", "default", tail_lines=-1)
    assert refused.value.status == 422


def test_what_is_refused(node):
    """Texts and codes are the reference's."""
    node.add(pod("p", container(script="sleep 1000"), container("other"),
                 initContainers=[container("first", "exit 0")]))
    node.add(pod("no-image", container(image="davit.test/nothing:1")))
    node.add(pod("no-config", container(envFrom=[{"configMapRef": {"name": "none"}}])))
    node.wait_phase("p", "Running")
    never = pod("never")
    del never["spec"]["nodeName"]
    never["spec"]["nodeSelector"] = {"no": "node"}
    node.add(never)
    elsewhere = pod("elsewhere")
    elsewhere["spec"]["nodeName"] = "n2"
    node.add(elsewhere)
    node.wait_status("no-image", lambda s: s["containerStatuses"][0]["state"].get(
        "waiting", {}).get("reason") == "ImagePullBackOff", "the image is not pulled")
    node.wait_status("no-config", lambda s: s["containerStatuses"][0]["state"].get(
        "waiting", {}).get("reason") == "CreateContainerConfigError", "the config")
    invalid = 'PodLogOptions "p" is invalid: '
    refusals = [
        ("p", "", 400, "a container name must be specified for pod p, choose one of: [main other] "
                       "or one of the init containers: [first]"),
        ("p", "container=x", 400, "container x is not valid for pod p"),
        ("p", "container=main&previous=true", 400,
         'previous terminated container "main" in pod "p" not found'),
        ("no-image", "", 400, 'container "main" in pod "no-image" is waiting to start: trying and '
                              'failing to pull image'),
        ("no-config", "", 400, 'container "main" in pod "no-config" is waiting to start: '
                               'CreateContainerConfigError'),
        ("nobody", "", 404, 'pods "nobody" not found'),
        ("elsewhere", "", 404, 'nodes "n2" not found'),
        ("p", "container=main&tailLines=-1", 422,
         invalid + "tailLines: Invalid value: -1: must be greater than or equal to 0"),
        ("p", "container=main&limitBytes=0", 422,
         invalid + "limitBytes: Invalid value: 0: must be greater than 0"),
        ("p", "container=main&sinceSeconds=0", 422,
         invalid + "sinceSeconds: Invalid value: 0: must be greater than 0"),
        ("p", "container=main&sinceSeconds=1&sinceTime=2020-01-01T00:00:00Z", 422,
         invalid + ": Forbidden: at most one of `sinceTime` or `sinceSeconds` may be specified"),
        ("p", "container=main&stream=Stdout", 422,
         invalid + "stream: Forbidden: may not be specified"),
        ("p", "container=main&tailLines=-1&limitBytes=-1", 422,
         invalid + "[tailLines: Invalid value: -1: must be greater than or equal to 0, "
                   "limitBytes: Invalid value: -1: must be greater than 0]"),
        ("p", "container=main&tailLines=x", 400, 'strconv.ParseInt: parsing "x": invalid syntax'),
        ("p", "container=main&sinceTime=x", 400,
         'parsing time "x" as "2006-01-02T15:04:05Z07:00": cannot parse "x" as "2006"'),
    ]
    for name, query, code, message in refusals:
        answer = node.api().ask("GET", f"{PODS}/{name}/log?{query}")
        assert (answer.status, answer.doc["message"]) == (code, message), (name, query)
        assert answer.doc["kind"] == "Status"
    answer = read(node, "never")
    assert (answer.status, answer.body) == (204, b"")
    for method in ("POST", "PUT", "DELETE"):
        assert node.api().ask(method, f"{PODS}/p/log").status == 405


def test_davit_logs(node):
    where = ("--kubeconfig", node.kubeconfig)
    node.add(pod("p", container(script=LINES), container("side", "echo side; sleep 1000"),
                 initContainers=[container("first", "printf 'no newline'")]))
    until(lambda: read(node, "p", container="main").body.count(b"\n") == 5 and
          read(node, "p", container="side").body == b"side\n", WAIT_S, "all lines")
    assert run_davit("logs", "p", "-c", "main", "--tail", "2", *where).stdout == "line 4\nline 5\n"
    assert run_davit("logs", "pod/p", "-c", "main", "--limit-bytes", "4", *where).stdout == "line"
    assert run_davit("logs", "p", "-c", "main", "--tail", "-1", "--since", "1h",
                     *where).stdout.count("\n") == 5
    stamped = run_davit("logs", "p", "-c", "side", "--timestamps", *where).stdout
    assert stamped.endswith("Z side\n") and len(stamped) > 30
    assert run_davit("logs", "p", "--all-containers", *where).stdout == (
        "[pod/p/first] no newline\n" + "".join(f"[pod/p/main] line {i}\n" for i in range(1, 6)) +
        "[pod/p/side] side\n")
    for words, status, said in [
            (["p"], 1, "a container name must be specified for pod p"),
            (["p", "-c", "x"], 1, "container x is not valid for pod p"),
            (["p", "-c", "main", "--previous"], 1, "previous terminated container"),
            (["p", "-c", "main", "--tail", "x"], 1, 'parsing "x": invalid syntax'),
            (["p", "-c", "main", "--since", "1s", "--since-time", "2020-01-01T00:00:00Z"], 1,
             "at most one of"),
            (["nobody"], 1, 'pods "nobody" not found'),
            ([], 2, "it needs one pod"),
            (["claim/p"], 2, "it needs one pod"),
            (["p", "-c", "main", "--all-containers"], 2, "exclude each other"),
            (["p", "--since", "x"], 2, "--since takes DURATION, and not \"x\"")]:
        done = run_davit("logs", *words, *where)
        assert done.returncode == status and said in done.stderr, done


def test_of_a_static_pod_and_of_one_that_is_being_deleted(make_node, short_dir):
    folder = os.path.join(short_dir, "m")
    os.mkdir(folder)
    node = make_node("--pod-manifest-path", folder).start()
    made = pod("web", container(script="echo from a file; sleep 1000"))
    del made["spec"]["nodeName"]
    with open(os.path.join(folder, "web.json"), "w", encoding="utf-8") as file:
        json.dump(made, file)
    node.add(pod("ends", container(script="trap 'echo last; sleep 3; exit' TERM; echo first; "
                                          "while :; do sleep 0.1; done"),
                 terminationGracePeriodSeconds=20))
    until(lambda: read(node, "web-n1").body == b"from a file\n", WAIT_S, "the mirror's log")
    until(lambda: read(node, "ends").body == b"first\n", WAIT_S, "the pod runs")
    connection, answer = node.api().open("GET", f"{PODS}/ends/log?follow=true")
    node.delete("ends")
    assert answer.read() == b"first\nlast\n"  # to the container's end
    connection.close()
    node.wait_gone("ends")
    assert read(node, "ends").status == 404
