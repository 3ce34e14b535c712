"""davitd's own sockets: what others remove is made anew, and what cannot be made is told."""

import os
import shutil
import socket
import stat

import grpc
import pytest

from nodes import pod
from peers import folder_of
from procs import until

GPU = "example.com/gpu"
PODRES_DIR = "pod-resources"
WAIT_S = 60

pytestmark = pytest.mark.release


def plugin(procs, node):
    """The sample device plugin: it registers with kubelet.sock, and again when that is a new one."""
    return procs.start(
        os.path.join(folder_of("DAVIT_BUILD"), "drivers", "davit-sample-device-plugin"),
        "--resource", GPU, "--kubelet-dir", node.kubelet_dir, "--virtual", "2")


def podres_socket(node):
    return os.path.join(node.kubelet_dir, PODRES_DIR, "kubelet.sock")


def is_serving(path):
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(5)
        try:
            client.connect(path)
        except OSError:
            return False
        return True


def identity(path):
    found = os.lstat(path)
    return (found.st_dev, found.st_ino, stat.S_IMODE(found.st_mode))


@pytest.mark.parametrize("which", ["device-plugins", "pod-resources", "davit"])
def test_a_removed_socket_is_there_again(node, which):
    path = {"device-plugins": node.kubelet_sock, "pod-resources": podres_socket(node),
            "davit": node.socket}[which]
    before = identity(path)
    os.unlink(path)
    until(lambda: os.path.exists(path) and is_serving(path), WAIT_S, f"{path} to be made anew")
    assert identity(path)[2] == before[2]
    until(lambda: "was removed, and has been made anew" in node.proc.log, WAIT_S, "a word about it")
    node.disconnect()  # who comes now is served
    assert node.status().node_name == "n1"
    assert list(node.podres_list()) == []
    assert not node.status().state_error


def remove(folder):
    """With all that is in it. False: davitd has made a socket there anew meanwhile."""
    try:
        shutil.rmtree(folder)
    except OSError:
        return False
    return True


def test_plugins_register_again(node, procs):
    plugin(procs, node)
    node.wait_devices(GPU, 2)
    answer = node.admit(pod("p", ("main", {GPU: 1})))
    assert answer.admitted
    until(lambda: remove(node.plugin_dir), WAIT_S, "all to be removed")  # with the plugin's own socket
    until(lambda: os.path.exists(node.kubelet_sock), WAIT_S, "the directory to be made anew")
    node.wait_devices(GPU, 2, timeout_s=WAIT_S)
    assert node.admit(pod("q", ("main", {GPU: 1}))).admitted  # p has kept its own
    assert not node.admit(pod("r", ("main", {GPU: 1})), wait=0).admitted


def test_what_cannot_be_made_is_told_until_it_is(node):
    with socket.socket(socket.AF_UNIX) as other:
        other.bind(f"{node.kubelet_sock}.other")
        other.listen(64)
        os.rename(f"{node.kubelet_sock}.other", node.kubelet_sock)  # another agent was faster, whatever davitd does
        until(lambda: "another process listens" in node.status().state_error, WAIT_S, "the trouble")
        told = node.davit("status").stdout
        assert "trouble" in told and node.kubelet_sock in told
        assert "cannot be connected to part=device-plugins/kubelet.sock" in node.proc.log
    until(lambda: not node.status().state_error, WAIT_S, "the socket to be made again")
    assert is_serving(node.kubelet_sock)
    until(lambda: "can be connected to again part=device-plugins/kubelet.sock" in node.proc.log, WAIT_S, "a word about it")


def test_a_socket_for_a_group_stays_its_group_s(make_node):
    node = make_node("--group", "daemon").start()
    mode = identity(node.socket)[2]
    owner = os.lstat(node.socket).st_gid
    assert mode & 0o060 == 0o060
    os.unlink(node.socket)
    until(lambda: os.path.exists(node.socket) and is_serving(node.socket), WAIT_S, "a new socket")
    until(lambda: identity(node.socket)[2] == mode, WAIT_S, "its mode")
    assert os.lstat(node.socket).st_gid == owner


def test_calls_under_way_go_on(node):
    channel = grpc.insecure_channel(f"unix:{node.socket}")
    watch = channel.unary_stream(
        "/davit.node.v1.Node/WatchPods", request_serializer=lambda r: r.SerializeToString(),
        response_deserializer=node.pb.WatchPodsResponse.FromString)
    answers = watch(node.pb.WatchPodsRequest(), timeout=60, wait_for_ready=True)
    next(answers)
    os.unlink(node.socket)
    until(lambda: os.path.exists(node.socket), WAIT_S, "a new socket")
    node.disconnect()
    assert node.admit(pod("p", ("main", {}))).admitted
    assert any(p.pod.name == "p" for p in next(answers).pods)
    channel.close()
