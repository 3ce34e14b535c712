"""NUMA alignment, on machines that are made up under --sys-dir."""

import os

import pytest

from nodes import held, pod

GPU = "example.com/gpu"
NIC = "example.com/nic"
REJECTED = "Resources cannot be allocated with Topology locality"


def make_sys(root, n_nodes, distance=lambda a, b: 10 if a == b else 21):
    """A sysfs with so many NUMA nodes; `distance` None: without distances."""
    folder = os.path.join(root, "sys", "devices", "system", "node")
    os.makedirs(folder)
    with open(os.path.join(folder, "online"), "w", encoding="ascii") as online:
        online.write(f"0-{n_nodes - 1}\n" if n_nodes > 1 else "0\n")
    for a in range(n_nodes):
        os.mkdir(os.path.join(folder, f"node{a}"))
        if distance:
            path = os.path.join(folder, f"node{a}", "distance")
            with open(path, "w", encoding="ascii") as file:
                file.write(" ".join(str(distance(a, b)) for b in range(n_nodes)) + "\n")
    return os.path.join(root, "sys")


@pytest.fixture
def machine(make_node, short_dir):
    """Starts davitd on a machine of so many nodes."""

    def start(n_nodes, policy, scope="container", options=None, **made):
        words = ["--topology-policy", policy, "--topology-scope", scope]
        words += ["--topology-options", options] if options else []
        return make_node("--sys-dir", make_sys(short_dir, n_nodes, **made), *words).start()

    return start


def on_nodes(prefix, *nodes):
    """{"g0-0": on node 0, ...}: a device for each number, named by it."""
    return {f"{prefix}{i}-{node}": ("Healthy", [node]) for i, node in enumerate(nodes)}


def nodes_of(ids):
    return {int(device.rpartition("-")[2]) for device in ids}


def offer(node, plugins, resource, devices):
    plugins(node, resource, devices).register()
    node.wait_devices(resource, len(devices))


def ids_of(answer, *containers):
    """All ids that these containers hold, or the whole pod."""
    assert answer.admitted, answer
    got = held(answer)
    names = containers or got
    return [device for name in names for ids in got[name].values() for device in ids]


def assert_rejected(node, answer):
    assert not answer.admitted
    assert (answer.reason, answer.message) == ("TopologyAffinityError", REJECTED)
    uids = [h.pod.uid for r in node.resources().values() for d in r.values() for h in d.holders]
    assert answer.pod.uid not in uids


@pytest.mark.parametrize("policy", ["best-effort", "restricted", "single-numa-node"])
def test_what_fits_on_a_node_comes_from_one(machine, plugins, policy):
    node = machine(2, policy)
    offer(node, plugins, GPU, on_nodes("g", 0, 1, 0, 1, 0, 1))
    offer(node, plugins, NIC, on_nodes("n", 1, 0))
    for i in range(2):
        ids = ids_of(node.admit(pod(f"p{i}", ("main", {GPU: 2, NIC: 1}))))
        assert len(ids) == 3 and len(nodes_of(ids)) == 1, ids


def test_without_a_policy_nothing_is_aligned_or_refused(machine, plugins):
    node = machine(2, "none")
    offer(node, plugins, GPU, on_nodes("g", 0, 1))
    assert nodes_of(ids_of(node.admit(pod("p", ("main", {GPU: 2}))))) == {0, 1}


def test_a_single_device_decides_for_all(machine, plugins):
    node = machine(4, "restricted")
    offer(node, plugins, GPU, on_nodes("g", 0, 0, 1, 1, 2, 2, 3, 3))
    offer(node, plugins, NIC, on_nodes("n", 2))
    assert nodes_of(ids_of(node.admit(pod("p", ("main", {GPU: 2, NIC: 1}))))) == {2}


@pytest.mark.parametrize(
    "policy, is_admitted",
    [("best-effort", True), ("restricted", True), ("single-numa-node", False)],
)
def test_more_than_a_node_has(machine, plugins, policy, is_admitted):
    node = machine(2, policy)
    offer(node, plugins, GPU, on_nodes("g", 0, 0, 1, 1))
    answer = node.admit(pod("p", ("main", {GPU: 3})))
    if is_admitted:
        assert nodes_of(ids_of(answer)) == {0, 1}
    else:
        assert_rejected(node, answer)


@pytest.mark.parametrize(
    "policy, is_admitted",
    [("best-effort", True), ("restricted", False), ("single-numa-node", False)],
)
def test_more_than_a_node_has_left(machine, plugins, policy, is_admitted):
    node = machine(2, policy)
    offer(node, plugins, GPU, on_nodes("g", 0, 0, 1, 1))
    one = ids_of(node.admit(pod("a", ("main", {GPU: 1}))))
    offer(node, plugins, NIC, on_nodes("n", 1 - nodes_of(one).pop()))
    assert node.admit(pod("b", ("main", {GPU: 1, NIC: 1}))).admitted  # now one is left on each
    answer = node.admit(pod("c", ("main", {GPU: 2})))
    if is_admitted:
        assert nodes_of(ids_of(answer)) == {0, 1}
    else:
        assert_rejected(node, answer)
        node.release("uid-a")
        assert len(nodes_of(ids_of(node.admit(pod("c", ("main", {GPU: 2})))))) == 1


@pytest.mark.parametrize("policy, is_admitted", [("best-effort", True), ("restricted", False)])
def test_resources_that_have_no_node_in_common(machine, plugins, policy, is_admitted):
    node = machine(2, policy)
    offer(node, plugins, GPU, on_nodes("g", 0))
    offer(node, plugins, NIC, on_nodes("n", 1))
    answer = node.admit(pod("p", ("main", {GPU: 1, NIC: 1})))
    if is_admitted:
        assert len(ids_of(answer)) == 2
    else:
        assert_rejected(node, answer)


def test_the_container_scope_aligns_each_by_itself(machine, plugins):
    node = machine(2, "single-numa-node")
    offer(node, plugins, GPU, on_nodes("g", 0, 0, 1, 1))
    answer = node.admit(pod("p", ("a", {GPU: 2}), ("b", {GPU: 2})))
    assert len(nodes_of(ids_of(answer, "a"))) == len(nodes_of(ids_of(answer, "b"))) == 1
    assert nodes_of(ids_of(answer)) == {0, 1}


def test_the_pod_scope_aligns_all_together(machine, plugins):
    node = machine(2, "single-numa-node", "pod")
    offer(node, plugins, GPU, on_nodes("g", 0, 0, 1, 1))
    offer(node, plugins, NIC, on_nodes("n", 1))
    assert_rejected(node, node.admit(pod("p", ("a", {GPU: 2}), ("b", {GPU: 2}))))
    answer = node.admit(pod("q", ("a", {GPU: 1}), ("b", {GPU: 1}), ("c", {NIC: 1})))
    assert nodes_of(ids_of(answer)) == {1}


def test_the_pod_scope_counts_init_containers_once(machine, plugins):
    node = machine(2, "single-numa-node", "pod")
    offer(node, plugins, GPU, on_nodes("g", 0, 0, 1, 1))
    answer = node.admit(pod("p", ("a", {GPU: 1}), ("b", {GPU: 1}), init=[("i", {GPU: 2})]))
    assert len(nodes_of(ids_of(answer))) == 1
    assert len(set(ids_of(answer))) == 2


def test_a_rejected_container_gives_back_what_earlier_ones_got(machine, plugins):
    node = machine(2, "single-numa-node")
    offer(node, plugins, GPU, on_nodes("g", 0, 0, 1, 1))
    assert_rejected(node, node.admit(pod("p", ("a", {GPU: 2}), ("b", {GPU: 3}))))
    assert node.admit(pod("q", ("a", {GPU: 2}), ("b", {GPU: 2}))).admitted


def test_devices_without_nodes_or_on_unknown_ones(machine, plugins):
    node = machine(2, "single-numa-node")
    offer(node, plugins, GPU, {"a": ("Healthy", None), "b": ("Healthy", [])})
    assert node.admit(pod("p", ("main", {GPU: 2}))).admitted
    offer(node, plugins, NIC, {"n-0": ("Healthy", [0, 1]), "n-7": ("Healthy", [7])})
    assert node.admit(pod("q", ("main", {NIC: 1}))).admitted


def near(a, b):
    """0 and 2 are neighbours, so are 1 and 3."""
    return 10 if a == b else 11 if (a - b) % 2 == 0 else 21


@pytest.mark.parametrize(
    "options, expected",
    [(None, {0, 1}), ("prefer-closest-numa-nodes=true", {0, 2})],
    ids=["by number", "by distance"],
)
def test_nodes_that_are_close_are_preferred_on_request(machine, plugins, options, expected):
    node = machine(4, "restricted", options=options, distance=near)
    offer(node, plugins, GPU, on_nodes("g", 0, 0, 1, 1, 2, 2, 3, 3))
    assert nodes_of(ids_of(node.admit(pod("p", ("main", {GPU: 4}))))) == expected


def test_a_restart_keeps_what_was_aligned(machine, plugins):
    node = machine(2, "restricted")
    offer(node, plugins, GPU, on_nodes("g", 0, 0, 1, 1))
    before = ids_of(node.admit(pod("p", ("main", {GPU: 2}))))
    node.stop()
    node.start()
    plugins(node, GPU, on_nodes("g", 0, 0, 1, 1), name="again.sock").register()
    node.wait_devices(GPU, 4)
    assert ids_of(node.admit(pod("p", ("main", {GPU: 2})))) == before
    rest = ids_of(node.admit(pod("q", ("main", {GPU: 2}))))
    assert len(nodes_of(rest)) == 1 and not set(rest) & set(before)


# ---- settings


@pytest.mark.parametrize(
    "options, text",
    [
        ("closest=true", 'unknown Topology Manager Policy option: "closest"'),
        ("prefer-closest-numa-nodes=maybe", 'bad value for option "prefer-closest-numa-nodes"'),
        ("max-allowable-numa-nodes=x", "unable to convert policy option to integer"),
        (
            "max-allowable-numa-nodes=7",
            'the minimum value of "max-allowable-numa-nodes" should not be less than 8',
        ),
    ],
)
def test_bad_options_are_refused_at_start(make_node, short_dir, options, text):
    sys_dir = make_sys(short_dir, 2)
    node = make_node(
        "--sys-dir", sys_dir, "--topology-policy", "restricted", "--topology-options", options
    ).start(ready=False)
    assert node.proc.wait(10) == 1
    assert text in node.proc.log.replace('\\"', '"')


@pytest.mark.parametrize(
    "n_nodes, distance, options, text",
    [
        (9, near, "", "unsupported on machines with more than 8 NUMA Nodes"),
        (
            2,
            None,
            "prefer-closest-numa-nodes=true",
            "cannot discover NUMA topology: error getting NUMA distances from cadvisor",
        ),
    ],
    ids=["too many nodes", "no distances"],
)
def test_machines_that_cannot_do_it(make_node, short_dir, n_nodes, distance, options, text):
    sys_dir = make_sys(short_dir, n_nodes, distance)
    words = ["--sys-dir", sys_dir, "--topology-policy", "best-effort"]
    words += ["--topology-options", options] if options else []
    node = make_node(*words).start(ready=False)
    assert node.proc.wait(10) == 1
    assert text in node.proc.log


def test_more_nodes_are_allowed_on_request(machine):
    node = machine(9, "restricted", options="max-allowable-numa-nodes=9")
    assert "more than 8 NUMA nodes" in node.proc.log


def test_without_a_policy_the_machine_does_not_matter(machine):
    machine(9, "none", options="nonsense=1")


@pytest.mark.parametrize(
    "words", [["--topology-policy", "strict"], ["--topology-scope", "node"]], ids=lambda w: w[1]
)
def test_policies_and_scopes_that_do_not_exist(make_node, words):
    node = make_node(*words).start(ready=False)
    assert node.proc.wait(10) == 2
    what = words[0].rsplit("-", 1)[1]
    assert f'{words[0]}: unknown {what}: "{words[1]}"' in node.proc.log


def test_a_sysfs_that_cannot_be_read(make_node, short_dir):
    sys_dir = make_sys(short_dir, 2)
    path = os.path.join(sys_dir, "devices/system/node/online")
    with open(path, "w", encoding="ascii") as online:
        online.write("zero to one\n")
    node = make_node("--sys-dir", sys_dir).start(ready=False)
    assert node.proc.wait(10) == 1
    assert path in node.proc.log


def test_a_machine_without_numa_has_one_node(make_node, short_dir, plugins):
    node = make_node("--sys-dir", short_dir, "--topology-policy", "single-numa-node").start()
    offer(node, plugins, GPU, on_nodes("g", 0, 0))
    assert node.admit(pod("p", ("main", {GPU: 2}))).admitted
