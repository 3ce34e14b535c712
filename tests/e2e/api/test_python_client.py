"""Debian's Python client of Kubernetes, unmodified: its typed and dynamic interfaces, its watches,
and a loop as informers have it, which has to end up with what is stored."""

import random
import threading

import pytest
from kubernetes import client, config, dynamic, watch
from kubernetes.client.exceptions import ApiException

from procs import until
from servers import PATIENCE_S, claim, config_map, device_slice

GROUP = "resource.k8s.io"


@pytest.fixture
def connect(node):
    """Makes clients, each with connections of its own."""
    made = []

    def make():
        made.append(config.new_client_from_config(config_file=node.kubeconfig))
        return made[-1]

    yield make
    for one in made:
        one.close()


def refusal(code, call, *args, **options):
    with pytest.raises(ApiException) as caught:
        call(*args, **options)
    assert caught.value.status == code, caught.value
    return caught.value


def pod_body(name, **labels):
    return client.V1Pod(
        metadata=client.V1ObjectMeta(name=name, labels=labels),
        spec=client.V1PodSpec(containers=[client.V1Container(
            name="c", image="i",
            resources=client.V1ResourceRequirements(limits={"cpu": "1", "memory": "1Gi"}))]))


def test_pods_are_made_read_changed_and_deleted(connect):
    core = client.CoreV1Api(connect())
    made = core.create_namespaced_pod("default", pod_body("p1", app="a"))
    assert made.metadata.uid and int(made.metadata.resource_version) > 0
    assert made.spec.containers[0].resources.requests == {"cpu": "1", "memory": "1Gi"}
    assert core.read_namespaced_pod("p1", "default").metadata.uid == made.metadata.uid
    refusal(409, core.create_namespaced_pod, "default", pod_body("p1"))
    core.create_namespaced_pod("default", pod_body("p2", app="b"))
    listed = core.list_namespaced_pod("default", label_selector="app in (a)")
    assert [item.metadata.name for item in listed.items] == ["p1"]
    page = core.list_pod_for_all_namespaces(limit=1)
    rest = core.list_pod_for_all_namespaces(limit=1, _continue=page.metadata._continue)
    assert [item.metadata.name for item in page.items + rest.items] == ["p1", "p2"]
    assert page.metadata.resource_version == rest.metadata.resource_version
    made.metadata.labels["app"] = "changed"
    changed = core.replace_namespaced_pod("p1", "default", made)
    assert int(changed.metadata.resource_version) > int(made.metadata.resource_version)
    made.metadata.labels["app"] = "late"
    refusal(409, core.replace_namespaced_pod, "p1", "default", made)
    status = {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}
    patched = core.patch_namespaced_pod_status("p1", "default", status)
    assert patched.status.conditions[0].type == "Ready"
    binding = client.V1Binding(metadata=client.V1ObjectMeta(name="p2"),
                               target=client.V1ObjectReference(kind="Node", name="n1"))
    core.create_namespaced_pod_binding("p2", "default", binding, _preload_content=False)
    assert core.read_namespaced_pod("p2", "default").spec.node_name == "n1"
    options = client.V1DeleteOptions(preconditions=client.V1Preconditions(uid="other"))
    refusal(409, core.delete_namespaced_pod, "p1", "default", body=options)
    core.delete_namespaced_pod("p1", "default")
    refusal(404, core.read_namespaced_pod, "p1", "default")
    core.delete_collection_namespaced_pod("default", label_selector="app=b",
                                          grace_period_seconds=0)
    assert core.list_namespaced_pod("default").items == []


def test_other_kinds_are_served_to_typed_clients(connect):
    api = connect()
    core = client.CoreV1Api(api)
    leases = client.CoordinationV1Api(api)
    lease = leases.create_namespaced_lease("default", client.V1Lease(
        metadata=client.V1ObjectMeta(name="l"),
        spec=client.V1LeaseSpec(holder_identity="me", lease_duration_seconds=15)))
    stale = leases.read_namespaced_lease("l", "default")
    lease.spec.holder_identity = "you"
    leases.replace_namespaced_lease("l", "default", lease)
    refusal(409, leases.replace_namespaced_lease, "l", "default", stale)
    core.create_node(client.V1Node(metadata=client.V1ObjectMeta(name="w1")))
    core.patch_node_status("w1", {"status": {"capacity": {"example.com/x": "3"}}})
    assert core.read_node("w1").status.capacity == {"example.com/x": "3"}
    core.create_namespace(client.V1Namespace(metadata=client.V1ObjectMeta(name="ns2")))
    core.create_namespaced_secret("ns2", client.V1Secret(
        metadata=client.V1ObjectMeta(name="s"), string_data={"k": "v"}))
    assert core.read_namespaced_secret("s", "ns2").data == {"k": "dg=="}
    core.create_namespaced_event("default", client.CoreV1Event(
        metadata=client.V1ObjectMeta(name="e"), reason="R", message="m", type="Normal",
        involved_object=client.V1ObjectReference(kind="Pod", name="p", namespace="default")))
    assert core.list_namespaced_event("default").items[0].reason == "R"
    assert client.VersionApi(api).get_code().git_version.startswith("v1.36")
    groups = [group.name for group in client.ApisApi(api).get_api_versions().groups]
    assert GROUP in groups


@pytest.mark.parametrize("version", ["v1", "v1beta2", "v1beta1"])
def test_custom_objects_reach_the_resource_group(connect, version):
    custom = client.CustomObjectsApi(connect())
    where = (GROUP, version, "default", "resourceclaims")
    made = custom.create_namespaced_custom_object(*where, claim("c1", version))
    assert made["spec"]["devices"]["requests"][0]["name"] == "r"
    custom.patch_namespaced_custom_object(*where, "c1", {"metadata": {"labels": {"a": "b"}}})
    got = custom.get_namespaced_custom_object(*where, "c1")
    assert got["metadata"]["labels"] == {"a": "b"}
    got["metadata"]["annotations"] = {"x": "y"}
    custom.replace_namespaced_custom_object(*where, "c1", got)
    refusal(409, custom.replace_namespaced_custom_object, *where, "c1", got)
    got = custom.get_namespaced_custom_object(*where, "c1")
    got["status"] = {"reservedFor": [{"resource": "pods", "name": "p", "uid": "u"}],
                     "allocation": {"devices": {"results": [
                         {"request": "r", "driver": "gpu.example.com", "pool": "n1",
                          "device": "d0"}]}}}
    custom.replace_namespaced_custom_object_status(*where, "c1", got)
    status = custom.get_namespaced_custom_object_status(*where, "c1")["status"]
    assert status["reservedFor"][0]["uid"] == "u"
    slices = (GROUP, version, "resourceslices")
    custom.create_cluster_custom_object(*slices, device_slice("s1", version=version))
    custom.create_cluster_custom_object(*slices, device_slice("s2", "n2", version=version))
    listed = custom.list_cluster_custom_object(*slices, field_selector="spec.nodeName=n2")
    assert [item["metadata"]["name"] for item in listed["items"]] == ["s2"]
    assert len(custom.list_cluster_custom_object(*slices)["items"]) == 2
    custom.delete_collection_cluster_custom_object(*slices)
    assert custom.list_cluster_custom_object(*slices)["items"] == []
    custom.delete_namespaced_custom_object(*where, "c1")
    refusal(404, custom.get_namespaced_custom_object, *where, "c1")


def test_the_dynamic_client_finds_its_way(connect):
    api = dynamic.DynamicClient(connect())
    claims = api.resources.get(api_version=f"{GROUP}/v1", kind="ResourceClaim")
    classes = api.resources.get(api_version=f"{GROUP}/v1", kind="DeviceClass")
    maps = api.resources.get(api_version="v1", kind="ConfigMap")
    classes.create(body={"metadata": {"name": "gpu"}})
    made = claims.create(body=claim("c1"), namespace="default")
    assert made.spec.devices.requests[0].exactly.count == 1
    claims.patch(body={"metadata": {"labels": {"a": "b"}}}, name="c1", namespace="default",
                 content_type="application/merge-patch+json")
    listed = claims.get(namespace="default", label_selector="a=b")
    assert [item.metadata.name for item in listed.items] == ["c1"]
    maps.create(body=config_map("m", {"a": "1"}), namespace="default")
    assert maps.get(name="m", namespace="default").data.a == "1"
    seen = [(event["type"], event["object"].metadata.name)
            for event in maps.watch(namespace="default", timeout=1)]
    assert seen == [("ADDED", "m")]
    claims.delete(name="c1", namespace="default")
    refusal(404, claims.get, name="c1", namespace="default")


def test_a_watch_goes_on_where_a_list_ended(connect):
    core = client.CoreV1Api(connect())
    core.create_namespaced_config_map("default", config_map("before"))
    version = core.list_namespaced_config_map("default").metadata.resource_version
    core.create_namespaced_config_map("default", config_map("m", {"a": "1"}))
    core.patch_namespaced_config_map("m", "default", {"data": {"a": "2"}})
    core.create_namespaced_config_map("default", config_map("n"))
    core.delete_namespaced_config_map("m", "default")
    core.delete_namespaced_config_map("n", "default")
    seen = []
    follower = watch.Watch()
    for event in follower.stream(core.list_namespaced_config_map, "default",
                                 resource_version=version, timeout_seconds=PATIENCE_S):
        seen.append((event["type"], event["object"].metadata.name))
        if seen[-1] == ("DELETED", "n"):
            follower.stop()
    assert seen == [("ADDED", "m"), ("MODIFIED", "m"), ("ADDED", "n"), ("DELETED", "m"),
                    ("DELETED", "n")]


def test_a_version_that_is_too_old_is_gone(connect, api, node):
    core = client.CoreV1Api(connect())
    old = core.list_namespaced_config_map("default").metadata.resource_version
    node.outgrow_history(api)
    with pytest.raises(ApiException) as caught:
        for _ in watch.Watch().stream(core.list_namespaced_config_map, "default",
                                      resource_version=old, timeout_seconds=PATIENCE_S):
            break
    assert caught.value.status == 410
    # Without a version to go on from the client begins anew by itself.
    for event in watch.Watch().stream(core.list_namespaced_config_map, "default",
                                      timeout_seconds=PATIENCE_S):
        assert event["type"] == "ADDED"
        break


class Informer(threading.Thread):
    """Lists, watches from there, lists anew when that is gone; its `objects` are what it knows."""

    def __init__(self, core):
        super().__init__(daemon=True)
        self.core = core
        self.objects = {}
        self.trouble = []
        self.stopping = False
        self.n_events = 0
        self.n_lists = 0

    def run(self):
        try:
            while not self.stopping:
                self.follow(self.begin())
        except Exception as error:  # told by the test
            self.trouble.append(error)

    def begin(self):
        listed = self.core.list_namespaced_config_map("default")
        self.n_lists += 1
        self.objects = {item.metadata.name: item for item in listed.items}
        return listed.metadata.resource_version

    def follow(self, version):
        while not self.stopping:
            try:
                for event in watch.Watch().stream(
                        self.core.list_namespaced_config_map, "default",
                        resource_version=version, allow_watch_bookmarks=True,
                        timeout_seconds=1):
                    version = self.take(event, int(version))
            except ApiException as error:
                if error.status != 410:
                    raise
                return

    def take(self, event, version):
        thing = event["object"]
        if event["type"] == "BOOKMARK":
            return thing["metadata"]["resourceVersion"] if isinstance(thing, dict) \
                else thing.metadata.resource_version
        name, seen = thing.metadata.name, int(thing.metadata.resource_version)
        assert seen > version, f"{event['type']} {name}: {seen} after {version}"
        known = self.objects.get(name)
        self.n_events += 1
        if event["type"] == "ADDED":
            assert known is None, f"{name} was added twice"
            self.objects[name] = thing
        elif event["type"] == "MODIFIED":
            assert known is not None, f"{name} was changed before it was added"
            self.objects[name] = thing
        else:
            assert known is not None, f"{name} was deleted before it was added"
            del self.objects[name]
        return str(seen)


def write(core, number, n_writes, trouble):
    """Makes, changes and deletes things of its own; stays with what the server says."""
    chance = random.Random(number)
    there = {}
    try:
        for count in range(n_writes):
            if there and chance.random() < 0.3:
                name, _ = there.popitem()
                core.delete_namespaced_config_map(name, "default")
            elif there and chance.random() < 0.6:
                name = chance.choice(list(there))
                core.patch_namespaced_config_map(name, "default", {"data": {"n": str(count)}})
            else:
                name = f"w{number}-{count}"
                core.create_namespaced_config_map("default", config_map(name))
                there[name] = True
    except Exception as error:  # told by the test
        trouble.append(error)


def test_informers_end_up_with_what_is_stored(connect):
    informers = [Informer(client.CoreV1Api(connect())) for _ in range(3)]
    for informer in informers:
        informer.start()
    trouble = []
    writers = [threading.Thread(target=write, daemon=True,
                                args=(client.CoreV1Api(connect()), number, 120, trouble))
               for number in range(4)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(PATIENCE_S)
        assert not writer.is_alive()
    assert not trouble, trouble

    stored = {item.metadata.name: item.metadata.resource_version
              for item in client.CoreV1Api(connect()).list_namespaced_config_map("default").items}
    assert stored

    def is_same(informer):
        assert not informer.trouble, informer.trouble
        known = dict(informer.objects)
        return {name: item.metadata.resource_version for name, item in known.items()} == stored

    for informer in informers:
        until(lambda i=informer: is_same(i), PATIENCE_S, "an informer that knows what is stored")
        informer.stopping = True
    for informer in informers:
        informer.join(PATIENCE_S)
        assert not informer.trouble, informer.trouble
    print(f"informers: {sum(i.n_events for i in informers)} events, "
          f"{sum(i.n_lists for i in informers)} lists")


def test_a_stranger_is_told_so(connect, node):
    api = connect()
    api.configuration.api_key["authorization"] = "Bearer nope"
    core = client.CoreV1Api(api)
    assert refusal(401, core.list_node).reason == "Unauthorized"
    api.configuration.api_key["authorization"] = f"Bearer {node.token}"
    core.list_node()
