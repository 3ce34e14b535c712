"""CustomResourceDefinitions and the objects that they make: with kubectl, by requests, and over kills."""

import json
import os
import shutil
import subprocess
import threading
import time
from pathlib import Path

import pytest
import yaml
from peers import folder_of

HERE = Path(__file__).parent / "custom"
DOMAIN = yaml.safe_load((HERE / "domain.yaml").read_text(encoding="utf-8"))
RULE = yaml.safe_load((HERE / "rule.yaml").read_text(encoding="utf-8"))
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
DOMAINS = "/apis/fabric.example.com/v1beta1/namespaces/default/fabricdomains"
RULES = "/apis/features.example.com/v1/labelrules"

has_kubectl = pytest.mark.skipif(not shutil.which("kubectl"), reason="kubectl is not there")


def wait_for(what, seconds=30):
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.02)


def conditions(definition):
    return {c["type"]: c for c in definition.get("status", {}).get("conditions", [])}


def status_of(api, path):
    connection, answer = api.open("GET", path)
    answer.read()
    connection.close()
    return answer.status


def established(api, name):
    status, doc = api.ask("GET", f"{DEFINITIONS}/{name}")
    return status == 200 and conditions(doc).get("Established", {}).get("status") == "True"


def define(api, definition):
    made = api.must("POST", DEFINITIONS, definition)
    wait_for(lambda: established(api, made["metadata"]["name"]))
    return made


def domain(name="d", **spec):
    return {"apiVersion": "fabric.example.com/v1beta1", "kind": "FabricDomain", "metadata": {"name": name},
            "spec": {"numNodes": 2, "channel": {"resourceClaimTemplate": {"name": "t"}}} | spec}


def test_a_definition_is_accepted_and_then_served(api):
    made = api.must("POST", DEFINITIONS, DOMAIN)
    assert made["spec"]["names"]["singular"] == "fabricdomain"
    assert made["spec"]["names"]["listKind"] == "FabricDomainList"
    assert made["spec"]["conversion"] == {"strategy": "None"}
    assert made["status"]["storedVersions"] == ["v1beta1"]
    wait_for(lambda: established(api, made["metadata"]["name"]))
    doc = api.must("GET", f"{DEFINITIONS}/{made['metadata']['name']}")
    assert [c["type"] for c in doc["status"]["conditions"]] == ["NamesAccepted", "Established"]
    assert conditions(doc)["Established"]["reason"] == "InitialNamesAccepted"
    # Discovery shows it at once, in both forms.
    listed = api.must("GET", "/apis/fabric.example.com/v1beta1")["resources"]
    assert [r["name"] for r in listed] == ["fabricdomains", "fabricdomains/status"]
    assert listed[0]["shortNames"] == ["fd"] and listed[0]["categories"] == ["fabric"]
    groups = {g["name"]: g for g in api.must("GET", "/apis")["groups"]}
    assert groups["fabric.example.com"]["preferredVersion"]["version"] == "v1beta1"
    whole = api.must("GET", "/apis", Accept="application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList")
    assert "fabric.example.com" in [g["metadata"]["name"] for g in whole["items"]]


def test_both_forms_of_openapi_have_the_schema(api):
    define(api, DOMAIN)
    name = "com.example.fabric.v1beta1.FabricDomain"
    v3 = api.must("GET", "/openapi/v3/apis/fabric.example.com/v1beta1")
    schema = v3["components"]["schemas"][name]
    assert schema["properties"]["spec"]["description"] == "What is wanted of the domain."
    assert schema["x-kubernetes-group-version-kind"] == [
        {"group": "fabric.example.com", "kind": "FabricDomain", "version": "v1beta1"}]
    patch = v3["paths"]["/apis/fabric.example.com/v1beta1/namespaces/{namespace}/fabricdomains/{name}"]["patch"]
    assert "application/strategic-merge-patch+json" not in patch["requestBody"]["content"]
    assert "apis/fabric.example.com/v1beta1" in api.must("GET", "/openapi/v3")["paths"]
    assert name in api.must("GET", "/openapi/v2")["definitions"]
    api.must("DELETE", f"{DEFINITIONS}/{DOMAIN['metadata']['name']}")
    wait_for(lambda: name not in api.must("GET", "/openapi/v2")["definitions"])


def test_objects_are_pruned_filled_in_and_checked(api):
    define(api, DOMAIN)
    made = api.must("POST", DOMAINS, domain(bogus=1) | {"status": {"status": "Ready"}})
    assert made["spec"] == {"numNodes": 2, "channel": {"resourceClaimTemplate": {"name": "t"},
                                                       "allocationMode": "Single"}}
    assert "status" not in made and made["metadata"]["generation"] == 1
    status, why = api.ask("POST", f"{DOMAINS}?fieldValidation=Strict", domain("e", bogus=1))
    assert status == 400 and 'strict decoding error: unknown field "spec.bogus"' in why["message"]
    status, why = api.ask("POST", DOMAINS, domain("f", numNodes=-1, channel={}))
    assert status == 422
    assert {(c["reason"], c["field"]) for c in why["details"]["causes"]} == {
        ("FieldValueInvalid", "spec.numNodes"), ("FieldValueRequired", "spec.channel.resourceClaimTemplate"),
        ("FieldValueInvalid", "<nil>")}  # rules were not checked
    status, why = api.ask("PATCH", f"{DOMAINS}/d", {}, Content_Type="application/strategic-merge-patch+json")
    assert status == 415


def test_the_status_is_written_apart(api):
    define(api, DOMAIN)
    made = api.must("POST", DOMAINS, domain())
    changed = api.must("PUT", f"{DOMAINS}/d/status",
                       made | {"spec": {}, "status": {"nodes": [{"name": "a", "address": "192.0.2.1"}]}})
    assert changed["spec"] == made["spec"] and changed["metadata"]["generation"] == 1
    assert changed["status"] == {"status": "NotReady", "nodes": [{"name": "a", "address": "192.0.2.1", "index": 0}]}
    labelled = api.must("PUT", f"{DOMAINS}/d", changed | {
        "status": {"status": "Ready"}, "metadata": changed["metadata"] | {"labels": {"a": "b"}}})
    assert labelled["status"] == changed["status"] and labelled["metadata"]["generation"] == 1
    define(api, RULE)
    status, _ = api.ask("GET", f"{RULES}/x/status")
    assert status == 404


def test_documents_stay_as_they_were_written(api):
    define(api, RULE)
    things = {"e": [], "m": {}, "n": None, "t": "", "f": 1.5, "z": 0, "b": False, "big": 123456789012345678}
    api.must("POST", RULES, {"apiVersion": "features.example.com/v1", "kind": "LabelRule",
                             "metadata": {"name": "r"},
                             "spec": {"rules": [{"name": "a", "vars": things, "weight": "50%"}]}})
    rule = api.must("GET", f"{RULES}/r")
    assert rule["spec"]["rules"] == [{"name": "a", "vars": things, "weight": "50%"}]
    # What means the same writes nothing.
    again = api.must("PUT", f"{RULES}/r", rule)
    assert again["metadata"]["resourceVersion"] == rule["metadata"]["resourceVersion"]


def test_objects_that_a_stricter_schema_refuses_can_still_be_changed(api):
    made = define(api, RULE)
    api.must("POST", RULES, {"apiVersion": "features.example.com/v1", "kind": "LabelRule",
                             "metadata": {"name": "r"}, "spec": {"rules": [{"name": "long", "labels": {}}]}})
    live = api.must("GET", f"{DEFINITIONS}/{made['metadata']['name']}")
    rules = live["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["rules"]
    rules["items"]["properties"]["name"]["maxLength"] = 2
    api.must("PUT", f"{DEFINITIONS}/{made['metadata']['name']}", live)

    def refuses():
        status, _ = api.ask("POST", f"{RULES}?dryRun=All", {
            "apiVersion": "features.example.com/v1", "kind": "LabelRule", "metadata": {"name": "s"},
            "spec": {"rules": [{"name": "long"}]}})
        return status == 422
    wait_for(refuses)
    # What is read follows the schema that there is now.
    live = api.must("GET", f"{DEFINITIONS}/{made['metadata']['name']}")
    rules = live["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["rules"]
    rules["items"]["properties"]["level"] = {"type": "integer", "default": 4}
    del rules["items"]["properties"]["labels"]
    api.must("PUT", f"{DEFINITIONS}/{made['metadata']['name']}", live)
    wait_for(lambda: api.must("GET", f"{RULES}/r")["spec"]["rules"] == [{"name": "long", "level": 4}])
    listed = api.must("GET", RULES)["items"][0]
    assert listed["spec"]["rules"][0]["level"] == 4 and listed["kind"] == "LabelRule"
    rule = api.must("GET", f"{RULES}/r")
    rule["metadata"]["labels"] = {"a": "b"}
    rule = api.must("PUT", f"{RULES}/r", rule)
    rule["spec"]["rules"].append({"name": "longer"})
    status, why = api.ask("PUT", f"{RULES}/r", rule)
    assert status == 422, why


def test_rules_judge_what_is_written(api):
    define(api, DOMAIN)
    made = api.must("POST", DOMAINS, domain())
    status, why = api.ask("PUT", f"{DOMAINS}/d", made | {"spec": made["spec"] | {"numNodes": 3}})
    assert status == 422
    assert why["message"] == ('FabricDomain.fabric.example.com "d" is invalid: spec: Invalid value: '
                              "A fabricDomain.spec is immutable")
    api.must("PUT", f"{DOMAINS}/d", made | {"metadata": made["metadata"] | {"labels": {"a": "b"}}})
    api.must("PATCH", f"{DOMAINS}/d/status", {"status": {"status": "Ready"}},
             Content_Type="application/merge-patch+json")


def test_a_later_rule_warns_of_what_stays_as_it_was(api):
    made = define(api, RULE)
    path = f"{DEFINITIONS}/{made['metadata']['name']}"
    rule = api.must("POST", RULES, {"apiVersion": "features.example.com/v1", "kind": "LabelRule",
                                    "metadata": {"name": "r"}, "spec": {"rules": [{"name": "long", "labels": {}}]}})
    live = api.must("GET", path)
    schema = live["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    schema["x-kubernetes-validations"] = [{"rule": "self.rules.all(r, size(r.name) < 3)", "message": "short names"}]
    api.must("PUT", path, live)
    other = {**rule, "metadata": {"name": "s"}}
    wait_for(lambda: api.ask("POST", f"{RULES}?dryRun=All", other)[0] == 422)
    rule["metadata"]["labels"] = {"a": "b"}
    connection, answer = api.open("PUT", f"{RULES}/r", rule)
    answer.read()
    assert answer.status == 200
    assert answer.headers["Warning"] == '299 - "spec: Invalid value: short names"'
    connection.close()


def apply(api, manager, body, path, **options):
    force = options.pop("force", "false")
    return api.ask("PATCH", f"{path}?fieldManager={manager}&force={force}", json.dumps(body),
                   Content_Type="application/apply-patch+yaml", **options)


def test_configurations_are_applied_by_the_schema(api):
    define(api, DOMAIN)
    status, made = apply(api, "one", domain(), f"{DOMAINS}/d")
    assert status == 201, made
    owned = {m["manager"]: m["fieldsV1"] for m in made["metadata"]["managedFields"]}
    assert owned["one"] == {"f:spec": {"f:numNodes": {}, "f:channel": {"f:resourceClaimTemplate": {"f:name": {}}}}}
    head = {"apiVersion": "fabric.example.com/v1beta1", "kind": "FabricDomain", "metadata": {"name": "d"}}

    def nodes(manager, *names):
        return apply(api, manager, head | {"status": {"nodes": [{"name": n} for n in names]}}, f"{DOMAINS}/d/status")
    # Items of a list with keys are each their manager's.
    assert nodes("a", "x", "y")[0] == 200
    assert nodes("b", "z")[0] == 200
    names = [n["name"] for n in api.must("GET", f"{DOMAINS}/d")["status"]["nodes"]]
    assert names == ["x", "y", "z"]
    status, doc = nodes("a", "y")
    assert status == 200 and [n["name"] for n in doc["status"]["nodes"]] == ["y", "z"]
    # Who changes what another one has applied is told.
    status, why = apply(api, "two", head | {"spec": {"numNodes": 5}}, f"{DOMAINS}/d")
    assert status == 409 and why["details"]["causes"] == [
        {"reason": "FieldManagerConflict", "message": 'conflict with "one"', "field": ".spec.numNodes"}]
    status, why = apply(api, "one", domain(bogus=1), f"{DOMAINS}/d")
    assert status == 500 and ".spec.bogus: field not declared in schema" in why["message"]


def test_what_is_left_out_of_a_configuration_goes(api):
    define(api, RULE)
    head = {"apiVersion": "features.example.com/v1", "kind": "LabelRule", "metadata": {"name": "r"}}
    rules = {"spec": {"rules": [{"name": "a", "labels": {"x": "1"}}]}}
    assert apply(api, "one", head | {"metadata": {"name": "r", "labels": {"l": "1"}}} | rules, f"{RULES}/r")[0] == 201
    status, doc = apply(api, "one", head | rules, f"{RULES}/r")
    assert status == 200 and "labels" not in doc["metadata"]
    # An update by another manager is its own.
    doc["spec"]["rules"][0]["labels"] = {"x": "2"}
    doc = api.must("PUT", f"{RULES}/r?fieldManager=two", doc)
    assert [(m["manager"], m["operation"]) for m in doc["metadata"]["managedFields"]] == [("two", "Update")]


def test_an_object_is_scaled_by_the_paths_of_its_definition(api):
    scaled = json.loads(json.dumps(DOMAIN))
    version = scaled["spec"]["versions"][0]
    version["subresources"]["scale"] = {"specReplicasPath": ".spec.numNodes", "statusReplicasPath": ".status.ready"}
    del version["schema"]["openAPIV3Schema"]["properties"]["spec"]["x-kubernetes-validations"]
    version["schema"]["openAPIV3Schema"]["properties"]["status"]["properties"]["ready"] = {"type": "integer"}
    define(api, scaled)
    api.must("POST", DOMAINS, domain())
    scale = api.must("GET", f"{DOMAINS}/d/scale")
    assert scale["kind"] == "Scale" and scale["spec"] == {"replicas": 2} and scale["status"]["replicas"] == 0
    api.must("PUT", f"{DOMAINS}/d/scale", scale | {"spec": {"replicas": 5}})
    assert api.must("GET", f"{DOMAINS}/d")["spec"]["numNodes"] == 5
    api.must("PATCH", f"{DOMAINS}/d/scale", {"spec": {"replicas": 7}}, Content_Type="application/merge-patch+json")
    assert api.must("GET", f"{DOMAINS}/d")["metadata"]["generation"] == 3
    status, _ = api.ask("PUT", f"{DOMAINS}/d/scale", scale)
    assert status == 409


def test_a_version_is_taken_out_when_nothing_is_stored_in_it(api):
    two = json.loads(json.dumps(RULE))
    name = two["metadata"]["name"]
    define(api, two)
    rule = {"apiVersion": "features.example.com/v1", "kind": "LabelRule", "metadata": {"name": "r"},
            "spec": {"rules": []}}
    api.must("POST", RULES, rule)
    live = api.must("GET", f"{DEFINITIONS}/{name}")
    live["spec"]["versions"].append(json.loads(json.dumps(live["spec"]["versions"][0])) | {"name": "v2"})
    live["spec"]["versions"][0] |= {"storage": False, "deprecated": True}
    live = api.must("PUT", f"{DEFINITIONS}/{name}", live)
    assert live["status"]["storedVersions"] == ["v1", "v2"]
    wait_for(lambda: status_of(api, RULES.replace("/v1/", "/v2/") + "/r") == 200)
    assert api.must("GET", RULES.replace("/v1/", "/v2/") + "/r")["apiVersion"] == "features.example.com/v2"
    groups = {g["name"]: g for g in api.must("GET", "/apis")["groups"]}
    assert [v["version"] for v in groups["features.example.com"]["versions"]] == ["v2", "v1"]
    connection, answer = api.open("GET", f"{RULES}/r")
    assert "is deprecated" in answer.headers["Warning"]
    connection.close()
    del live["spec"]["versions"][0]
    status, why = api.ask("PUT", f"{DEFINITIONS}/{name}", live)
    assert status == 422 and "status.storedVersions[0]" in [c["field"] for c in why["details"]["causes"]]
    live = api.must("GET", f"{DEFINITIONS}/{name}")
    api.must("PUT", f"{DEFINITIONS}/{name}/status", live | {"status": live["status"] | {"storedVersions": ["v2"]}})
    live = api.must("GET", f"{DEFINITIONS}/{name}")
    del live["spec"]["versions"][0]
    api.must("PUT", f"{DEFINITIONS}/{name}", live)
    wait_for(lambda: status_of(api, f"{RULES}/r") == 404)


def test_a_rival_gets_the_names_when_they_are_free(api):
    define(api, RULE)
    rival = json.loads(json.dumps(RULE))
    rival["metadata"]["name"] = "others.features.example.com"
    rival["spec"]["names"] = {"plural": "others", "kind": "LabelRule", "shortNames": ["o"]}
    api.must("POST", DEFINITIONS, rival)

    def refused():
        doc = api.must("GET", f"{DEFINITIONS}/others.features.example.com")
        return conditions(doc).get("NamesAccepted", {}).get("status") == "False"
    wait_for(refused)
    doc = api.must("GET", f"{DEFINITIONS}/others.features.example.com")
    assert conditions(doc)["Established"]["reason"] == "NotAccepted"
    assert status_of(api, "/apis/features.example.com/v1/others") == 404
    api.must("DELETE", f"{DEFINITIONS}/{RULE['metadata']['name']}")
    wait_for(lambda: established(api, "others.features.example.com"))
    api.must("GET", "/apis/features.example.com/v1/others")


def test_a_definition_goes_after_its_objects(api):
    made = define(api, DOMAIN)
    name = made["metadata"]["name"]
    api.must("POST", DOMAINS, domain("a"))
    held = domain("b")
    held["metadata"]["finalizers"] = ["example.com/held"]
    api.must("POST", DOMAINS, held)
    api.must("DELETE", f"{DEFINITIONS}/{name}")
    wait_for(lambda: api.ask("GET", f"{DOMAINS}/a")[0] == 404)
    doc = api.must("GET", f"{DEFINITIONS}/{name}")
    assert doc["metadata"]["finalizers"] == ["customresourcecleanup.apiextensions.k8s.io"]
    wait_for(lambda: conditions(api.must("GET", f"{DEFINITIONS}/{name}")).get("Terminating"))
    status, why = api.ask("POST", DOMAINS, domain("c"))
    assert status == 403 and "create not allowed while custom resource definition is terminating" in why["message"]
    verbs = api.must("GET", "/apis/fabric.example.com/v1beta1")["resources"][0]["verbs"]
    assert verbs == ["delete", "deletecollection", "get", "list", "watch"]
    api.must("PATCH", f"{DOMAINS}/b", {"metadata": {"finalizers": None}}, Content_Type="application/merge-patch+json")
    wait_for(lambda: api.ask("GET", f"{DEFINITIONS}/{name}")[0] == 404)
    assert status_of(api, DOMAINS) == 404
    define(api, DOMAIN)
    assert api.must("GET", DOMAINS)["items"] == []


def test_a_definition_that_is_taken_away_by_force_takes_its_objects_along(api):
    name = define(api, DOMAIN)["metadata"]["name"]
    held = domain("b")
    held["metadata"]["finalizers"] = ["example.com/held"]
    api.must("POST", DOMAINS, held)
    api.must("DELETE", f"{DEFINITIONS}/{name}")
    wait_for(lambda: api.must("GET", f"{DOMAINS}/b")["metadata"].get("deletionTimestamp"))
    api.must("PATCH", f"{DEFINITIONS}/{name}", {"metadata": {"finalizers": None}},
             Content_Type="application/merge-patch+json")
    wait_for(lambda: status_of(api, DOMAINS) == 404)
    define(api, DOMAIN)
    wait_for(lambda: api.must("GET", DOMAINS)["items"] == [])
    api.must("POST", DOMAINS, domain("b"))


def test_objects_are_found_by_labels_and_names(api):
    define(api, DOMAIN)
    for name in ("a", "b"):
        made = domain(name)
        made["metadata"]["labels"] = {"is": name}
        api.must("POST", DOMAINS, made)
    time.sleep(1.5)  # unused objects are packed by then
    for query in ("labelSelector=is%3Db", "fieldSelector=metadata.name%3Db"):
        assert [o["metadata"]["name"] for o in api.must("GET", f"{DOMAINS}?{query}")["items"]] == ["b"]
    status, _ = api.ask("GET", f"{DOMAINS}?fieldSelector=spec.numNodes%3D2")
    assert status == 400
    api.must("DELETE", f"{DOMAINS}?labelSelector=is%3Da")
    assert [o["spec"]["numNodes"] for o in api.must("GET", DOMAINS)["items"]] == [2]


def test_a_watch_tells_objects_and_ends_with_the_definition(api):
    made = define(api, DOMAIN)
    version = api.must("GET", DOMAINS)["metadata"]["resourceVersion"]
    connection, answer = api.open("GET", f"{DOMAINS}?watch=1&resourceVersion={version}")
    events = []

    def read():
        for line in answer:
            events.append(json.loads(line))
    reader = threading.Thread(target=read)
    reader.start()
    api.must("POST", DOMAINS, domain())
    api.must("DELETE", f"{DOMAINS}/d")
    wait_for(lambda: len(events) == 2)
    assert [(e["type"], e["object"]["kind"]) for e in events] == [("ADDED", "FabricDomain"),
                                                                   ("DELETED", "FabricDomain")]
    api.must("DELETE", f"{DEFINITIONS}/{made['metadata']['name']}")
    reader.join(timeout=30)
    assert not reader.is_alive()
    connection.close()


def test_what_custom_objects_own_goes_with_them(api):
    define(api, DOMAIN)
    made = api.must("POST", DOMAINS, domain())
    owner = {"apiVersion": made["apiVersion"], "kind": made["kind"], "name": "d", "uid": made["metadata"]["uid"]}
    api.must("POST", "/api/v1/namespaces/default/configmaps",
             {"metadata": {"name": "owned", "ownerReferences": [owner]}})
    time.sleep(0.1)
    api.must("GET", "/api/v1/namespaces/default/configmaps/owned")
    api.must("DELETE", f"{DOMAINS}/d")
    wait_for(lambda: api.ask("GET", "/api/v1/namespaces/default/configmaps/owned")[0] == 404)


def test_a_namespace_takes_its_custom_objects_along(api):
    define(api, DOMAIN)
    api.must("POST", "/api/v1/namespaces", {"metadata": {"name": "n"}})
    there = DOMAINS.replace("/default/", "/n/")
    api.must("POST", there, domain())
    api.must("DELETE", "/api/v1/namespaces/n")
    wait_for(lambda: api.ask("GET", "/api/v1/namespaces/n")[0] == 404, 60)
    assert api.must("GET", DOMAINS.replace("/namespaces/default", ""))["items"] == []


def refused(definition, change):
    changed = json.loads(json.dumps(definition))
    change(changed)
    return changed


@pytest.mark.parametrize("change,field", [
    (lambda d: d["spec"].update(group="resource.k8s.io"), "spec.group"),
    (lambda d: d["metadata"].update(name="x.fabric.example.com"), "metadata.name"),
    (lambda d: d["spec"].update(scope="Node"), "spec.scope"),
    (lambda d: d["spec"].update(versions=[]), "spec.versions"),
    (lambda d: d["spec"]["versions"][0].update(storage=False), "spec.versions"),
    (lambda d: d["spec"]["versions"][0]["schema"]["openAPIV3Schema"].pop("type"),
     "spec.validation.openAPIV3Schema.type"),
    (lambda d: d["spec"].update(conversion={"strategy": "Webhook"}), "spec.conversion.strategy"),
])
def test_a_definition_that_cannot_be_is_refused(api, change, field):
    status, why = api.ask("POST", DEFINITIONS, refused(DOMAIN, change))
    assert status == 422, why
    assert field in [c["field"] for c in why["details"]["causes"]]


def kubeconfig(server, folder):
    config = os.path.join(folder, "config")
    with open(config, "w", encoding="utf-8") as file:
        json.dump({
            "apiVersion": "v1", "kind": "Config", "current-context": "c",
            "clusters": [{"name": "d", "cluster": {"server": f"https://127.0.0.1:{server.port}",
                                                   "certificate-authority": server.ca}}],
            "users": [{"name": "a", "user": {"token": "admintoken"}}],
            "contexts": [{"name": "c", "context": {"cluster": "d", "user": "a"}}],
        }, file)
    return config


@has_kubectl
def test_kubectl_works_with_custom_objects(server, short_dir):
    config = kubeconfig(server, short_dir)

    def kubectl(*args, stdin=None, status=0):
        result = subprocess.run(["kubectl", *args], input=stdin, capture_output=True, text=True, timeout=60,
                                env={**os.environ, "KUBECONFIG": config, "HOME": short_dir})
        assert result.returncode == status, result.stdout + result.stderr
        return result.stdout + result.stderr

    kubectl("apply", "-f", str(HERE / "domain.yaml"))
    kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=30s")
    manifest = json.dumps(domain())
    assert "created" in kubectl("apply", "-f", "-", stdin=manifest)
    assert "unchanged" in kubectl("apply", "-f", "-", stdin=manifest)
    table = kubectl("get", "fd").splitlines()
    assert table[0].split() == ["NAME", "NODES", "STATUS", "AGE"] and table[1].split()[:2] == ["d", "2"]
    assert "Num Nodes:" in kubectl("describe", "fd", "d")
    assert "How many nodes are joined." in kubectl("explain", "fd.spec.numNodes")
    kubectl("label", "fd", "d", "a=b")
    assert kubectl("get", "fd", "-l", "a=b", "-o", "name").split() == ["fabricdomain.fabric.example.com/d"]
    assert kubectl("get", "fabric", "-o", "name").split() == ["fabricdomain.fabric.example.com/d"]
    kubectl("delete", "fd", "d")
    kubectl("get", "fd", "d", status=1)
    kubectl("delete", "-f", str(HERE / "domain.yaml"))
    kubectl("get", "fd", status=1)


@pytest.mark.release
def test_definitions_and_objects_survive_kills(procs, short_dir, requests_to):
    """A definition, then an object, and a kill after each answer: nothing that was answered is lost, and what is
    there can be served."""
    ca = os.path.join(short_dir, "ca.crt")
    store = os.path.join(short_dir, "api.db")
    program = os.path.join(folder_of("DAVIT_BUILD"), "tests", "golden", "api_server")

    def start():
        proc = procs.start(program, "--ca", ca, "--store", store, ready="ready")
        return proc, requests_to(int(proc.lines[0]), ca)

    proc, api = start()
    api.must("POST", DEFINITIONS, DOMAIN)
    proc.kill()
    for i in range(5):
        proc, api = start()
        wait_for(lambda api=api: established(api, DOMAIN["metadata"]["name"]))
        items = api.must("GET", DOMAINS)["items"]
        assert [o["metadata"]["name"] for o in items] == [f"d{k}" for k in range(i)]
        assert all(o["spec"]["channel"]["allocationMode"] == "Single" for o in items)
        made = api.must("POST", DOMAINS, domain(f"d{i}"))
        assert made["metadata"]["uid"]
        proc.kill()
    proc, api = start()
    api.must("DELETE", f"{DEFINITIONS}/{DOMAIN['metadata']['name']}")
    proc.kill()
    proc, api = start()
    wait_for(lambda: api.ask("GET", f"{DEFINITIONS}/{DOMAIN['metadata']['name']}")[0] == 404)
    assert proc.stop() == 0, proc.describe()


def test_the_python_client_works_with_custom_objects(server):
    client = pytest.importorskip("kubernetes.client")
    from kubernetes import watch

    config = client.Configuration()
    config.host = f"https://127.0.0.1:{server.port}"
    config.ssl_ca_cert = server.ca
    config.api_key = {"authorization": "Bearer admintoken"}
    with client.ApiClient(config) as talk:
        definitions = client.ApiextensionsV1Api(talk)
        definitions.create_custom_resource_definition(DOMAIN)
        wait_for(lambda: any(c.type == "Established" and c.status == "True" for c in (
            definitions.read_custom_resource_definition(DOMAIN["metadata"]["name"]).status.conditions or [])))
        objects = client.CustomObjectsApi(talk)
        where = {"group": "fabric.example.com", "version": "v1beta1", "namespace": "default", "plural": "fabricdomains"}
        objects.create_namespaced_custom_object(**where, body=domain())
        objects.patch_namespaced_custom_object_status(**where, name="d", body={"status": {"status": "Ready"}})
        assert objects.get_namespaced_custom_object(**where, name="d")["status"]["status"] == "Ready"
        seen = [e["type"] for e in watch.Watch().stream(objects.list_namespaced_custom_object, **where,
                                                        timeout_seconds=1)]
        assert seen == ["ADDED"]
        objects.delete_namespaced_custom_object(**where, name="d")
        assert objects.list_namespaced_custom_object(**where)["items"] == []
