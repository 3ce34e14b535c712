"""A runtime whose streams are under TLS, with a certificate that it has made for itself or was given."""

import os
import re
import subprocess
import urllib.request

import pytest
from containerd import Containerd, why_not
from procs import until
from runtime_nodes import WAIT_S, container, pod

PAIR = """
[plugins."io.containerd.grpc.v1.cri".x509_key_pair_streaming]
  tls_cert_file = "{0}/stream.crt"
  tls_key_file = "{0}/stream.key"
"""


def make_pair(folder):
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2",
                    "-subj", "/CN=streams", "-keyout", os.path.join(folder, "stream.key"),
                    "-out", os.path.join(folder, "stream.crt")],
                   check=True, stderr=subprocess.DEVNULL)


@pytest.fixture(params=["its own", "given"])
def containerd(request, short_dir):
    if why_not():
        pytest.skip(why_not())
    is_given = request.param == "given"
    if is_given:
        make_pair(short_dir)
    runtime = Containerd(short_dir, cri="enable_tls_streaming = true",
                         config=PAIR.format(short_dir) if is_given else "")
    try:
        yield runtime.start()
    finally:
        runtime.close()


def test_streams_under_tls(containerd, node, kubectl, procs):
    node.add(pod("p", container(script="echo begun; exec httpd -f -p 8080 -h /bin")))
    node.wait_phase("p", "Running")
    url = containerd.cri().call(
        "Exec", container_id=containerd.cri().call("ListContainers").containers[0].id,
        cmd=["true"], stdout=True).url
    assert url.startswith("https://"), url
    text = "in\n" * 100000
    done = subprocess.run([kubectl.program, "exec", "-i", "p", "--", "sh", "-c", "cat; exit 3"],
                          input=text.encode(), capture_output=True, timeout=WAIT_S,
                          env=kubectl.env, check=False)
    assert (done.returncode, done.stdout) == (3, text.encode()), done.stderr
    done = subprocess.run([kubectl.program, "exec", "p", "--", "wc", "-c", "/bin/busybox"],
                          capture_output=True, timeout=WAIT_S, env=kubectl.env, check=True)
    n_bytes = int(done.stdout.split()[0])
    forward = kubectl.start(procs, "port-forward", "p", ":8080")
    until(lambda: any("Forwarding" in line for line in list(forward.lines)), WAIT_S, "it listens")
    port = re.search(r"127\.0\.0\.1:(\d+)", "\n".join(forward.lines)).group(1)
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/busybox", timeout=WAIT_S) as answer:
        assert len(answer.read()) == n_bytes
