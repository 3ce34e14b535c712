"""API servers that have only an older version of resource.k8s.io."""

import os

import pytest

from dra_kubelet import NODE, WAIT_S, device_names, make_claim
from old_server import OldServer
from procs import until


@pytest.mark.parametrize("version", ["v1beta2", "v1beta1"])
def test_it_works_in_the_version_that_there_is(make_driver, cluster, api, kubelet, short_dir,
                                               version):
    server = OldServer(cluster, version)
    try:
        config = server.kubeconfig(os.path.join(short_dir, "old.kubeconfig"))
        driver = make_driver("--kubeconfig", config, "--correct", "1", "--partitions", "2")
        driver.proc.wait_line(f"published {NODE}", timeout_s=WAIT_S)
        wanted = device_names(api)
        assert len(wanted) == 12
        claim = make_claim(api, "c1", "device-0")
        client = kubelet.register()
        (answer,) = client.prepare(claim)
        assert answer.error == "" and answer.devices[0].device_name == "device-0"
        driver.must("devices 5")
        until(lambda: len(device_names(api) or []) == 15, WAIT_S, "the new devices")
        assert all(f"resource.k8s.io/{version}/" in path or "/nodes/" in path
                   for _, path in server.seen), server.seen
        assert driver.counts()["failed"] == 0
    finally:
        server.close()
