"""Objects of resource.k8s.io are written in one version, and read and watched in others."""

import itertools

import pytest

from servers import RESOURCE, claim, device_slice, merge_patch

VERSIONS = ["v1", "v1beta2", "v1beta1"]


def claims(version):
    return f"{RESOURCE}/{version}/namespaces/default/resourceclaims"


def slices(version):
    return f"{RESOURCE}/{version}/resourceslices"


def request_of(doc):
    request = doc["spec"]["devices"]["requests"][0]
    return request if doc["apiVersion"].endswith("v1beta1") else request["exactly"]


def device_of(doc):
    device = doc["spec"]["devices"][0]
    return device["basic"] if doc["apiVersion"].endswith("v1beta1") else device


@pytest.mark.parametrize("written,read", itertools.permutations(VERSIONS, 2))
def test_what_one_version_writes_the_others_read(api, written, read):
    made = api.must("POST", claims(written), claim("c", written))
    got = api.must("GET", f"{claims(read)}/c")
    assert got["apiVersion"] == f"resource.k8s.io/{read}"
    assert {"deviceClassName": "gpu", "count": 1}.items() <= request_of(got).items()
    assert got["metadata"]["uid"] == made["metadata"]["uid"]
    got["metadata"]["labels"] = {"by": read}
    api.must("PUT", f"{claims(read)}/c", got)
    back = api.must("GET", f"{claims(written)}/c")
    assert back["spec"] == made["spec"]
    assert back["metadata"]["labels"] == {"by": read}
    api.must("POST", slices(written), device_slice("s", version=written))
    listed = api.must("GET", slices(read))
    assert listed["apiVersion"] == f"resource.k8s.io/{read}"
    assert device_of(listed["items"][0] | {"apiVersion": listed["apiVersion"]})["attributes"] == \
        {"index": {"int": 0}}


def test_older_versions_keep_what_only_newer_ones_have(api):
    """A choice of devices has another shape in v1beta1, and survives a change through it."""
    body = claim("c")
    body["spec"]["devices"]["requests"] = [{"name": "r", "firstAvailable": [
        {"name": "a", "deviceClassName": "gpu", "count": 2},
        {"name": "b", "deviceClassName": "nic"}]}]
    made = api.must("POST", claims("v1"), body)
    old = api.must("GET", f"{claims('v1beta1')}/c")
    assert not old["spec"]["devices"]["requests"][0].get("deviceClassName")
    old["metadata"]["annotations"] = {"x": "y"}
    api.must("PUT", f"{claims('v1beta1')}/c", old)
    assert api.must("GET", f"{claims('v1')}/c")["spec"] == made["spec"]


@pytest.mark.parametrize("watched", VERSIONS)
def test_a_watch_sees_what_all_versions_write(api, watched):
    with api.watch(claims(watched)) as watch:
        for number, version in enumerate(VERSIONS):
            api.must("POST", claims(version), claim(f"c{number}", version))
        answer = merge_patch(api, f"{claims('v1')}/c2", {"metadata": {"labels": {"a": "b"}}})
        assert answer.status == 200, answer
        api.must("DELETE", f"{claims('v1beta1')}/c0")
        events = [watch.next() for _ in range(5)]
    assert [(event["type"], event["object"]["metadata"]["name"]) for event in events] == [
        ("ADDED", "c0"), ("ADDED", "c1"), ("ADDED", "c2"), ("MODIFIED", "c2"), ("DELETED", "c0")]
    for event in events:
        assert event["object"]["apiVersion"] == f"resource.k8s.io/{watched}"
        assert request_of(event["object"])["deviceClassName"] == "gpu"


def test_versions_outlive_a_restart(node, api):
    for version in VERSIONS:
        api.must("POST", claims(version), claim(f"c-{version}", version))
    before = api.must("GET", claims("v1"))
    assert node.stop() == 0
    node.start()
    after = node.api().must("GET", claims("v1"))
    assert after["items"] == before["items"]
    assert int(after["metadata"]["resourceVersion"]) >= int(before["metadata"]["resourceVersion"])


def test_a_body_of_another_version_than_its_path_is_refused(api):
    api.refused(400, "POST", claims("v1"), claim("c", "v1beta1"))
    api.refused(404, "GET", f"{RESOURCE}/v1alpha2/resourceclaims")
