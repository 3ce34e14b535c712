"""The container image: an OCI archive of our programs and the libraries that they load, run by runc."""

import gzip
import hashlib
import io
import json
import os
import subprocess
import tarfile
import uuid

import pytest
from bundles import run
from peers import folder_of
from procs import until

pytestmark = pytest.mark.release
TOOL = os.path.join(os.path.dirname(__file__), "../../../tools/image")


def blob(archive, descriptor):
    """What a descriptor points to, which is what it says."""
    algorithm, digest = descriptor["digest"].split(":")
    data = archive.extractfile(f"blobs/{algorithm}/{digest}").read()
    assert len(data) == descriptor["size"] and hashlib.sha256(data).hexdigest() == digest
    return data


def unpack(path, folder):
    """Puts the image's files into a folder, and returns its configuration."""
    with tarfile.open(path) as archive:
        assert json.load(archive.extractfile("oci-layout"))["imageLayoutVersion"] == "1.0.0"
        index = json.load(archive.extractfile("index.json"))
        manifest = json.loads(blob(archive, index["manifests"][0]))
        config = json.loads(blob(archive, manifest["config"]))
        for layer, diff_id in zip(manifest["layers"], config["rootfs"]["diff_ids"]):
            plain = gzip.decompress(blob(archive, layer))
            assert f"sha256:{hashlib.sha256(plain).hexdigest()}" == diff_id
            with tarfile.open(fileobj=io.BytesIO(plain)) as tar:
                tar.extractall(folder)
    return config["config"]


@pytest.fixture(scope="module")
def image(tmp_path_factory):
    build = folder_of("DAVIT_BUILD")
    if "asan" in build:
        pytest.skip("the image is of the programs that are shipped")
    path = tmp_path_factory.mktemp("image") / "davit.tar"
    done = run(TOOL, "--programs", build, path, timeout=300)
    assert done.returncode == 0, done.stderr
    return path


def test_davitd_and_davit_run_in_the_image(image, tmp_path):
    config = unpack(image, tmp_path / "rootfs")
    assert run("runc", "spec", "--bundle", tmp_path).returncode == 0
    spec = json.loads((tmp_path / "config.json").read_text(encoding="utf-8"))
    spec["root"]["readonly"] = False
    spec["process"].update(terminal=False, env=config["Env"], args=[
        *config["Entrypoint"], "--listen", "none", "--node-name", "boxed", "--cri", "none"])
    (tmp_path / "config.json").write_text(json.dumps(spec), encoding="utf-8")
    name = f"davit-{uuid.uuid4()}"
    with open(tmp_path / "log", "wb") as log:
        daemon = subprocess.Popen(["runc", "run", "--bundle", str(tmp_path), name], stdin=subprocess.DEVNULL, stdout=log,
                                  stderr=log)
    try:
        until(lambda: "ready" in (tmp_path / "log").read_text(encoding="utf-8").split("\n") or daemon.poll() is not None,
              60, "davitd in the image")
        assert daemon.poll() is None, (tmp_path / "log").read_text(encoding="utf-8")
        status = run("runc", "exec", name, "davit", "status")
        assert status.returncode == 0 and "boxed" in status.stdout, status
        # An API is asked with libcurl, which no program names: nothing listens there, and it says so.
        (tmp_path / "rootfs/etc/kubeconfig").write_text(json.dumps({
            "clusters": [{"name": "c", "cluster": {"server": "http://127.0.0.1:1"}}],
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
            "users": [{"name": "u", "user": {"token": "t"}}], "current-context": "c"}), encoding="utf-8")
        asked = run("runc", "exec", name, "davit", "get", "pods", "--kubeconfig", "/etc/kubeconfig")
        assert asked.returncode == 4 and "libcurl" not in asked.stderr, asked
        assert run("runc", "exec", name, "davit-sample-dra-driver", "--help").returncode == 0
    finally:
        run("runc", "kill", name, "TERM")
        daemon.wait(60)
        run("runc", "delete", "--force", name)
    assert daemon.returncode == 0, (tmp_path / "log").read_text(encoding="utf-8")


def test_the_same_programs_give_the_same_image(image, tmp_path):
    done = run(TOOL, "--programs", folder_of("DAVIT_BUILD"), tmp_path / "again.tar", timeout=300)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "again.tar").read_bytes() == image.read_bytes()
