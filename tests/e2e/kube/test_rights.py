"""What the tokens of drivers and nodes reach, and what they do not."""

SLICES = "/apis/resource.k8s.io/v1/resourceslices"
CLAIMS = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims"


def slice_of(name, driver="gpu.example.com", node="worker-1"):
    return {"metadata": {"name": name},
            "spec": {"driver": driver, "nodeName": node,
                     "pool": {"name": node, "generation": 1, "resourceSliceCount": 1}}}


def test_a_driver_writes_only_its_own_slices_of_its_own_node(api):
    assert api.ask("POST", SLICES, slice_of("own"), token="drivertoken")[0] == 201
    for other in (slice_of("a", node="worker-2"), slice_of("b", driver="nic.example.com")):
        status, doc = api.ask("POST", SLICES, other, token="drivertoken")
        assert (status, doc["reason"]) == (403, "Forbidden"), doc
        api.must("POST", SLICES, other)
        path = f"{SLICES}/{other['metadata']['name']}"
        assert api.ask("DELETE", path, token="drivertoken")[0] == 403
        assert api.ask("PATCH", path, {"metadata": {"labels": {"a": "b"}}}, token="drivertoken",
                       Content_Type="application/merge-patch+json")[0] == 403
        assert api.ask("GET", path)[0] == 200
    assert api.ask("DELETE", SLICES, token="drivertoken")[0] == 403
    assert api.ask("DELETE", SLICES + "?fieldSelector=spec.nodeName%3Dworker-1,"
                   "spec.driver%3Dgpu.example.com", token="drivertoken")[0] == 200
    assert api.ask("GET", f"{SLICES}/own")[0] == 404


def allocate(api, name, driver, node):
    api.must("POST", CLAIMS, {"metadata": {"name": name}, "spec": {"devices": {"requests": [
        {"name": "r", "exactly": {"deviceClassName": "gpu"}}]}}})
    claim = api.must("GET", f"{CLAIMS}/{name}")
    claim["status"] = {"allocation": {
        "devices": {"results": [{"request": "r", "driver": driver, "pool": node, "device": "d"}]},
        "nodeSelector": {"nodeSelectorTerms": [{"matchFields": [
            {"key": "metadata.name", "operator": "In", "values": [node]}]}]}}}
    api.must("PUT", f"{CLAIMS}/{name}/status", claim)


def report(api, name, driver, node, **more):
    patch = {"status": {"devices": [{"driver": driver, "pool": node, "device": "d"}]}, **more}
    return api.ask("PATCH", f"{CLAIMS}/{name}/status", patch, token="drivertoken",
                   Content_Type="application/merge-patch+json")


def test_a_driver_reports_only_on_claims_that_it_has_on_its_node(api):
    allocate(api, "own", "gpu.example.com", "worker-1")
    allocate(api, "elsewhere", "gpu.example.com", "worker-2")
    allocate(api, "other", "nic.example.com", "worker-1")
    status, doc = report(api, "own", "gpu.example.com", "worker-1")
    assert status == 200, doc
    assert doc["status"]["devices"][0]["device"] == "d"
    assert report(api, "elsewhere", "gpu.example.com", "worker-2")[0] == 403
    assert report(api, "other", "nic.example.com", "worker-1")[0] == 403
    status, doc = api.ask("PATCH", f"{CLAIMS}/own/status", {"status": {"allocation": None}},
                          token="drivertoken", Content_Type="application/merge-patch+json")
    assert (status, doc["reason"]) == (403, "Forbidden"), doc
    assert api.ask("DELETE", f"{CLAIMS}/own", token="drivertoken")[0] == 403


def test_a_driver_sees_no_secrets_and_no_other_node(api):
    api.must("POST", "/api/v1/namespaces/default/secrets", {"metadata": {"name": "s"}})
    assert api.ask("GET", "/api/v1/namespaces/default/secrets/s", token="drivertoken")[0] == 403
    assert api.ask("GET", "/api/v1/nodes/worker-2", token="drivertoken")[0] == 403
    assert api.ask("GET", "/api/v1/nodes/worker-1", token="drivertoken")[0] == 404


def test_who_shows_nothing_gets_version_and_health_only(api):
    assert api.ask("GET", "/version", token=None)[0] == 200
    assert api.ask("GET", "/api", token=None)[0] == 401
    assert api.ask("GET", "/api", token="nope")[0] == 401


def test_a_node_follows_the_claims_of_its_own_pods(api):
    allocate(api, "c", "gpu.example.com", "worker-1")
    assert api.ask("GET", f"{CLAIMS}/c", token="nodetoken")[0] == 403
    api.must("POST", "/api/v1/namespaces/default/pods", {
        "metadata": {"name": "p"},
        "spec": {"nodeName": "worker-1", "resourceClaims": [{"name": "c", "resourceClaimName": "c"}],
                 "containers": [{"name": "c", "image": "i"}]}})
    assert api.ask("GET", f"{CLAIMS}/c", token="nodetoken")[0] == 200


def test_a_service_account_gets_a_token_that_says_who_it_is(api):
    accounts = "/api/v1/namespaces/default/serviceaccounts"
    api.must("POST", accounts, {"metadata": {"name": "driver"}})
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest",
               "spec": {"expirationSeconds": 600}}
    token = api.must("POST", f"{accounts}/driver/token", request)["status"]["token"]
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    doc = api.must("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", review, token=token)
    assert doc["status"]["userInfo"]["username"] == "system:serviceaccount:default:driver"
    assert api.ask("GET", "/api/v1/pods", token=token)[0] == 403
    assert api.ask("POST", f"{accounts}/nobody/token", request)[0] == 404


TOKENS = "/davit/v1/tokens"


def test_tokens_are_made_listed_and_taken_back(api):
    status, made = api.ask("POST", TOKENS, {"driver": "nic.example.com", "node": "worker-1"})
    assert status == 201, made
    assert made["user"] == "davit:driver:nic.example.com" and "expires" not in made
    own = slice_of("made", driver="nic.example.com")
    assert api.ask("POST", SLICES, own, token=made["token"])[0] == 201
    listed = api.must("GET", TOKENS)["tokens"]
    assert made["id"] in [token["id"] for token in listed]
    assert not any("token" in token for token in listed)
    assert api.ask("DELETE", f"{TOKENS}/{made['id']}")[0] == 200
    assert api.ask("GET", SLICES, token=made["token"])[0] == 401
    assert api.ask("DELETE", f"{TOKENS}/{made['id']}")[0] == 404


def test_only_admins_make_tokens_and_only_for_someone(api):
    for token in ("drivertoken", "nodetoken", "viewertoken"):
        assert api.ask("GET", TOKENS, token=token)[0] == 403
        assert api.ask("POST", TOKENS, {"admin": "me"}, token=token)[0] == 403
    for wish in ({}, {"driver": "a.example.com"}, {"node": "N o"}, {"driver": "a/b", "node": "n"},
                 {"admin": "x", "node": "n"}, {"node": "n", "lifetimeSeconds": -1}, {"node": 7}, []):
        status, doc = api.ask("POST", TOKENS, wish)
        assert (status, doc["reason"]) == (400, "BadRequest"), (wish, doc)
    assert api.ask("PUT", TOKENS, {})[0] == 405
