"""Images are removed when their disk counts as full; those that somebody needs stay."""

import busybox_image
from procs import until
from runtime_nodes import WAIT_S, pod

# Anything on the disk is too much, and no image too young.
EAGER = ("--image-gc", "1:0:0")


def names(runtime):
    listed = runtime.cri().call("ListImages").images
    return {name for image in listed for name in image.repo_tags}


def has_run(node):
    """It could not free all that it wanted, and said so."""
    listed = node.api().ask("GET", "/api/v1/namespaces/default/events").doc["items"]
    return any(one["reason"] == "FreeDiskSpaceFailed" and one["involvedObject"]["kind"] == "Node"
               for one in listed)


def test_an_image_that_nobody_uses_goes(make_node, containerd):
    node = make_node(*EAGER).start()
    until(lambda: containerd.image not in names(containerd), WAIT_S, "the image is gone")
    until(lambda: has_run(node), WAIT_S, "an event of the node")
    assert names(containerd) == {busybox_image.PAUSE}  # each pod needs it


def test_an_image_in_use_stays(make_node, containerd):
    node = make_node().start()
    node.add(pod("p"))
    node.wait_phase("p", "Running")
    node.stop()
    node.start(*EAGER)
    until(lambda: has_run(node), WAIT_S, "an event of the node")
    assert names(containerd) == {containerd.image, busybox_image.PAUSE}
    assert node.phase("p") == "Running"
