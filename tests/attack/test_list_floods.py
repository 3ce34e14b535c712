"""A plugin that sends lists, or refused lists, without end takes a share of davitd, not all of it."""

import threading
import time

from procs import until

RESOURCE = "example.com/flood"
PATIENCE_S = 60
FLOOD_S = 3


class Flood(threading.Thread):
    """Sends one list after the other, each different from the one before."""

    def __init__(self, plugin, lists):
        super().__init__(daemon=True)
        self.plugin = plugin
        self.lists = lists
        self.n_sent = 0
        self.is_over = threading.Event()

    def run(self):
        while not self.is_over.is_set():
            self.plugin.push(self.lists[self.n_sent % len(self.lists)])
            self.n_sent += 1
            while any(stream.qsize() > 100 for stream in list(self.plugin._streams)):
                time.sleep(0.001)

    def stop(self):
        self.is_over.set()
        self.join()


def messages(plugin, *lists):
    made = []
    for devices in lists:
        plugin.set_devices(devices, push=False)
        made.append(plugin.list_message())
    return made


def flood(node, plugin, *lists):
    """Lists for a while: davitd answers meanwhile, and logs what it reads, some 20 a second."""
    before = node.proc.log.count("\n")
    start = time.monotonic()
    sender = Flood(plugin, messages(plugin, *lists))
    sender.start()
    while time.monotonic() < start + FLOOD_S:
        assert node.status().node_name == "n1"
    sender.stop()
    n_lines = node.proc.log.count("\n") - before
    assert n_lines < 100 + 40 * (time.monotonic() - start), (n_lines, sender.n_sent)


def test_an_endless_stream_of_lists_is_read_at_its_pace(node, plugins):
    plugin = plugins(node, RESOURCE, ["d1"])
    plugin.register()
    node.wait_devices(RESOURCE, 1, PATIENCE_S)
    flood(node, plugin, ["d1", "d2"], ["d1"])
    plugin.set_devices(["d1", "d2", "d3"])  # the last counts
    node.wait_devices(RESOURCE, 3, PATIENCE_S)


def test_an_endless_stream_of_bad_lists_does_not_fill_the_log(node, plugins):
    plugin = plugins(node, RESOURCE, ["d1"])
    plugin.register()
    node.wait_devices(RESOURCE, 1, PATIENCE_S)
    flood(node, plugin, ["d1", ""], ["d1", "\033"])
    assert node.resource(RESOURCE).allocatable == 1
    plugin.set_devices(["d1", "d2"])
    until(lambda: node.resource(RESOURCE).allocatable == 2, PATIENCE_S, "the good list")
