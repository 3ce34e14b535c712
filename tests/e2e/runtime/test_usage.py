"""What pods use, as the node's own API tells it: of real containers, read as Prometheus reads it."""

import re
import time

import pytest
from bound_pods import DEV, GPU, allocate, make_claim
from procs import until
from prometheus_client.parser import text_string_to_metric_families
from runtime_nodes import WAIT_S, container, pod
from servers import Api

LOOP = "while :; do :; done"


def own_api(node):
    port = re.search(r"the node's own API serves.*\bport=(\d+)", node.proc.log).group(1)
    return Api(int(port), node.context(), node.token)


def families(text):
    return {family.name: family for family in text_string_to_metric_families(text)}


def samples(api, name):
    """{labels: value} of a family; counters are listed without their _total."""
    found = families(api.ask("GET", "/metrics/resource").body.decode())
    return {tuple(sorted(one.labels.items())): one.value
            for one in found[name.removesuffix("_total")].samples}


@pytest.fixture
def busy(make_node):
    node = make_node("--node-listen", "127.0.0.1:0").start().start_both()
    limits = {DEV: "1"}
    node.add(pod("busy", container(script=LOOP, resources={
        "limits": limits, "claims": [{"name": "g"}]}), container("idle", "sleep 1000"),
                 resourceClaims=[{"name": "g", "resourceClaimName": "c"}]))
    make_claim(node.api(), "c")
    allocate(node.api(), "c", "busy")
    node.wait_phase("busy", "Running")
    return node


def test_metrics_of_use(busy):
    api = own_api(busy)
    whose = {"namespace": "default", "pod": "busy"}
    main = tuple(sorted((whose | {"container": "main"}).items()))
    of_pod = tuple(sorted(whose.items()))
    cpu = "container_cpu_usage_seconds_total"
    until(lambda: samples(api, cpu).get(main, 0) > 0, WAIT_S, "the CPU of a loop")
    first = samples(api, cpu)[main]
    until(lambda: samples(api, cpu)[main] > first + 0.2, WAIT_S, "more CPU")
    answer = api.ask("GET", "/metrics/resource")
    assert answer.fields["Content-Type"].startswith("text/plain; version=0.0.4")
    found = families(answer.body.decode())
    assert set(found) == {
        "container_cpu_usage_seconds", "container_memory_working_set_bytes",
        "container_start_time_seconds", "davit_container_device_info", "node_cpu_usage_seconds",
        "node_memory_working_set_bytes", "pod_cpu_usage_seconds", "pod_memory_working_set_bytes",
        "resource_scrape_error", "scrape_error"}
    assert found["scrape_error"].samples[0].value == 0
    assert samples(api, "pod_cpu_usage_seconds_total")[of_pod] >= first
    assert samples(api, "pod_memory_working_set_bytes")[of_pod] > 0
    assert samples(api, "node_cpu_usage_seconds_total")[()] > first
    started = samples(api, "container_start_time_seconds")[main]
    assert 0 <= time.time() - started < 600
    held = [one.labels for one in found["davit_container_device_info"].samples]
    assert {(one["resource"], one["claim"]) for one in held} == {(DEV, ""), (GPU, "c")}
    for one in held:
        assert (one["namespace"], one["pod"], one["container"]) == ("default", "busy", "main")


def test_the_summary(busy):
    api = own_api(busy)

    def used():
        pods = api.must("GET", "/stats/summary")["pods"]
        return pods and len(pods[0]["containers"]) == 2 and "memory" in pods[0]

    until(used, WAIT_S, "the pod in the summary")
    summary = api.must("GET", "/stats/summary")
    assert summary["node"]["nodeName"] == "n1"
    assert summary["node"]["memory"]["workingSetBytes"] > 1 << 20
    time.sleep(1.1)
    assert api.must("GET", "/stats/summary")["node"]["cpu"]["usageNanoCores"] > 0
    one = summary["pods"][0]
    assert one["podRef"]["name"] == "busy" and len(one["podRef"]["uid"]) == 36
    assert [container["name"] for container in one["containers"]] == ["idle", "main"]
    assert one["memory"]["workingSetBytes"] > 0
    brief = api.must("GET", "/stats/summary?only_cpu_and_memory=true")
    assert "rootfs" not in str(brief)
    running = api.must("GET", "/runningpods/")["items"]
    assert {container["name"] for container in running[0]["spec"]["containers"]} == {"main", "idle"}


def test_a_runtime_that_hangs_is_told(busy):
    api = own_api(busy)
    busy.runtime.freeze()
    time.sleep(1.1)  # what was found before counts for a second
    begin = time.monotonic()
    found = families(api.ask("GET", "/metrics/resource").body.decode())
    assert 5 < time.monotonic() - begin < 20
    assert found["scrape_error"].samples[0].value == 1
    assert found["node_memory_working_set_bytes"].samples[0].value > 0
    assert found["container_cpu_usage_seconds"].samples == []
    busy.runtime.thaw()
    until(lambda: samples(api, "scrape_error")[()] == 0, WAIT_S, "that it is back")
