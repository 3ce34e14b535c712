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


ALIGNED = "kubelet_container_aligned_compute_resources"


def test_what_the_reference_exports_is_there_from_the_start(http_node):
    metrics = get(port_of(http_node), "/metrics")
    version = '{server_api_version="v1"}'
    for series in (
        "kubelet_topology_manager_admission_requests_total",
        "kubelet_topology_manager_admission_errors_total",
        "kubelet_topology_manager_admission_duration_ms_count",
        f"kubelet_pod_resources_endpoint_errors_list{version}",
        f"kubelet_pod_resources_endpoint_errors_get_allocatable{version}",
        f"kubelet_pod_resources_endpoint_errors_get{version}",
    ):
        assert value_of(metrics, series) == 0, series
    assert ALIGNED + "_count{" not in metrics  # without a policy
    bounds = [
        float(re.search(r'le="([^"+]+)"', line).group(1))
        for line in metrics.splitlines()
        if line.startswith("kubelet_topology_manager_admission_duration_ms_bucket") and "+Inf" not in line
    ]
    assert bounds == [pytest.approx(0.05 * 2**i) for i in range(15)]


@pytest.mark.parametrize("scope", ["container", "pod"])
def test_alignment_is_counted_by_scope(make_node, plugins, scope):
    node = make_node(
        "--insecure-http", "--topology-policy", "single-numa-node", "--topology-scope", scope
    )
    node.listen = "127.0.0.1:0"
    port = port_of(node.start())

    def aligned(which, of):
        return value_of(
            get(port, "/metrics"), f'{ALIGNED}_{which}{{scope="{of}",boundary="numa_node"}}'
        )

    other = "pod" if scope == "container" else "container"
    assert [aligned(w, s) for w in ("count", "failure_count") for s in (scope, other)] == [0] * 4
    plugins(node, GPU, {f"g{i}": ("Healthy", [0]) for i in range(2)}).register()
    node.wait_devices(GPU, 2)
    assert node.admit(pod("p", ("a", {GPU: 1}), ("b", {GPU: 1}))).admitted
    assert not node.admit(pod("q", ("a", {GPU: 1}))).admitted
    assert aligned("count", scope) == (2 if scope == "container" else 1)
    assert aligned("failure_count", scope) == 1
    assert aligned("count", other) == aligned("failure_count", other) == 0
    metrics = get(port, "/metrics")
    assert value_of(metrics, "kubelet_topology_manager_admission_requests_total") == 2
    assert value_of(metrics, "kubelet_topology_manager_admission_errors_total") == 1
    assert value_of(metrics, "kubelet_topology_manager_admission_duration_ms_count") == 2


def test_other_paths_and_methods_are_refused(http_node):
    port = port_of(http_node)
    with pytest.raises(urllib.error.HTTPError) as refused:
        get(port, "/api")
    assert refused.value.code == 401  # the API wants to know who asks
    request = urllib.request.Request(f"http://127.0.0.1:{port}/metrics", data=b"x", method="POST")
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(request, timeout=10)
    assert refused.value.code == 405


def test_plain_http_is_for_loopback_only(make_node):
    node = make_node("--insecure-http")
    node.listen = "0.0.0.0:0"
    node.start(ready=False)
    assert node.proc.wait(10) == 2
    assert "--insecure-http is for loopback addresses" in node.proc.log
