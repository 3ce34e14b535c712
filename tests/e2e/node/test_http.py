"""/metrics, /healthz and /readyz, and a configuration file."""

import re
import urllib.error
import urllib.request

import pytest

from nodes import pod
from procs import until

GPU = "example.com/gpu"


def port_of(node):
    found = until(lambda: re.search(r"HTTP serves port=(\d+)", node.proc.log), 10, "the port")
    return int(found.group(1))


def get(port, path):
    with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=10) as answer:
        return answer.read().decode()


@pytest.fixture
def http_node(make_node):
    node = make_node("--insecure-http")
    node.listen = "127.0.0.1:0"
    return node.start()


def value_of(metrics, series):
    for line in metrics.splitlines():
        if line.startswith(series + " "):
            return float(line.rsplit(" ", 1)[1])
    return None


def test_metrics_count_what_happened(http_node, plugins):
    port = port_of(http_node)
    assert get(port, "/healthz") == "ok"
    assert get(port, "/readyz") == "ok"
    plugins(http_node, GPU, ["g0", "g1"]).register()
    http_node.wait_devices(GPU, 2)
    assert http_node.admit(pod("p", ("main", {GPU: 1}))).admitted
    assert not http_node.admit(pod("q", ("main", {GPU: 2}))).admitted
    http_node.podres_list()
    metrics = get(port, "/metrics")
    label = f'{{resource_name="{GPU}"}}'
    assert value_of(metrics, f"kubelet_device_plugin_registration_total{label}") == 1
    assert value_of(metrics, f"kubelet_device_plugin_alloc_duration_seconds_count{label}") == 1
    assert value_of(metrics, f"davit_device_capacity{label}") == 2
    assert value_of(metrics, f"davit_device_held{label}") == 1
    assert value_of(metrics, 'davit_pod_admission_duration_seconds_count{result="admitted"}') == 1
    assert value_of(metrics, 'davit_pod_admission_duration_seconds_count{result="refused"}') == 1
    assert value_of(metrics, 'kubelet_pod_resources_endpoint_requests_total{server_api_version="v1"}') == 1
    buckets = [line for line in metrics.splitlines() if "alloc_duration_seconds_bucket" in line]
    assert any('le="1e-05"' in line for line in buckets)


def test_other_paths_and_methods_are_refused(http_node):
    port = port_of(http_node)
    with pytest.raises(urllib.error.HTTPError) as refused:
        get(port, "/api")
    assert refused.value.code == 404
    request = urllib.request.Request(f"http://127.0.0.1:{port}/metrics", data=b"x", method="POST")
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(request, timeout=10)
    assert refused.value.code == 405


def test_plain_http_is_for_loopback_only(make_node):
    node = make_node("--insecure-http")
    node.listen = "0.0.0.0:0"
    node.start(ready=False)
    assert node.proc.wait(10) == 1
    assert "--insecure-http is for loopback addresses" in node.proc.log
