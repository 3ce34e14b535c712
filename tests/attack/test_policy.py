"""The peer policy: who may register what, whose sockets are called, and who may call ours."""

import os
import shutil
import signal
import stat
import subprocess
import sys
import textwrap

import grpc
import pytest

from peers import folder_of
from procs import until

PATIENCE_S = 60
GPU = "gpu.example.com"
RESOURCE = "example.com/gpu"
NOBODY = 65534
PEER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "policy_peer.py")
PYTHON = os.path.realpath(sys.executable)

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="takes other users")


class Policy:
    """The file, and the daemon that reads it."""

    def __init__(self, folder):
        self.path = os.path.join(folder, "policy.yaml")

    def write(self, text, mode=0o600):
        with open(self.path, "w", encoding="utf-8") as file:
            file.write(textwrap.dedent(text))
        os.chmod(self.path, mode)
        return self

    def reload(self, node, sign):
        before = node.proc.log.count(sign)
        node.proc.signal(signal.SIGHUP)
        until(lambda: node.proc.log.count(sign) > before, PATIENCE_S, f"the log to say: {sign}")


@pytest.fixture
def policy(short_dir):
    return Policy(short_dir)


@pytest.fixture
def guarded(make_node, policy):
    """A node whose directories everybody may enter, with this policy."""

    def make(text):
        policy.write(text)
        node = make_node("--policy", policy.path)
        os.chmod(node.root, 0o755)
        for folder in ("", "plugins_registry", "device-plugins"):
            path = os.path.join(node.kubelet_dir, folder)
            os.makedirs(path, exist_ok=True)
            os.chmod(path, 0o777)
        return node.start()

    return make


class Peer:
    def __init__(self, *words, uid=0, python=PYTHON):
        self._popen = subprocess.Popen(
            [python, "-B", PEER, *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            user=uid, group=uid, extra_groups=[],
            env={"PYTHONPATH": ":".join(sys.path), "PATH": os.environ["PATH"],
                 "DAVIT_PEERS": folder_of("DAVIT_PEERS"), "DAVIT_BUILD": folder_of("DAVIT_BUILD")})
        self.lines = []

    def wait(self, *starts):
        """The next line that begins so."""
        for line in self._popen.stdout:
            self.lines.append(line.rstrip("\n"))
            if line.startswith(starts):
                return self.lines[-1]
        raise AssertionError(f"ended: {self.lines}")

    def stop(self):
        self._popen.kill()
        self._popen.wait()
        self._popen.stdin.close()
        self._popen.stdout.close()


@pytest.fixture
def peers():
    made = []

    def make(node, kind, name, **options):
        folder = "device-plugins" if kind == "classic" else "plugins_registry"
        socket = os.path.join(node.kubelet_dir, folder, f"peer-{len(made)}.sock")
        made.append(Peer(kind, socket, name, **options))
        made[-1].wait("there")
        return made[-1]

    yield make
    for peer in made:
        peer.stop()


def refusals(node, action):
    text = node.api().ask("GET", "/metrics").body.decode()
    return {mode: int(line.rsplit(" ", 1)[1])
            for line in text.splitlines() for mode in ("enforce", "warn")
            if line.startswith(f'davit_policy_refusals_total{{action="{action}",mode="{mode}"}}')}


def states(node, name):
    return {p.state for p in node.plugins() if p.name == name}


def wait_registered(node, name):
    """It is told first."""
    until(lambda: "registered" in states(node, name), PATIENCE_S, f"{name} to be registered")


OF_ROOT = f"""
    mode: enforce
    rules:
    - name: gpu
      drivers: [{GPU}]
      resources: ["example.com/*"]
      by: [{{uid: 0}}]
    """


def test_a_driver_of_another_user_is_refused(guarded, peers):
    node = guarded(OF_ROOT)
    bad = peers(node, "driver", GPU, uid=NOBODY)
    told = bad.wait("told")
    assert told.startswith("told False") and "policy" in told and "rule gpu" in told, told
    assert f"uid {NOBODY}" in told
    assert "refused" in states(node, GPU) and "registered" not in states(node, GPU)
    good = peers(node, "driver", GPU)
    assert good.wait("told") == "told True "
    wait_registered(node, GPU)
    assert refusals(node, "drivers")["enforce"] >= 1
    table = node.davit("plugins").stdout
    assert "refused" in table and "policy" in table
    assert f'uid {NOBODY}' in node.proc.log and "refused by the policy" in node.proc.log


def test_names_that_no_rule_has_are_refused(guarded, peers):
    node = guarded(OF_ROOT)
    told = peers(node, "driver", "other.example.com").wait("told")
    assert told.startswith("told False") and "no rule" in told


@pytest.mark.parametrize("kind", ["classic", "plugin"])
def test_a_device_plugin_of_another_user_is_refused(guarded, peers, kind):
    node = guarded(OF_ROOT)
    answer = peers(node, kind, RESOURCE, uid=NOBODY).wait("refused", "told", "registered")
    assert "policy" in answer and answer.startswith(("refused", "told False")), answer
    assert not node.resource(RESOURCE)
    answer = peers(node, kind, RESOURCE).wait("refused", "told", "registered")
    assert answer in ("registered", "told True "), answer
    node.wait_devices(RESOURCE, 2, PATIENCE_S)
    assert refusals(node, "resources")["enforce"] >= 1


def test_warn_tells_and_lets_through(guarded, peers):
    node = guarded(OF_ROOT.replace("enforce", "warn"))
    assert peers(node, "driver", GPU, uid=NOBODY).wait("told") == "told True "
    wait_registered(node, GPU)
    assert "warned" in states(node, GPU)
    assert refusals(node, "drivers")["warn"] >= 1
    assert refusals(node, "drivers")["enforce"] == 0
    assert "the policy would refuse this" in node.proc.log


def test_off_looks_at_nothing(guarded, peers):
    node = guarded(OF_ROOT.replace("enforce", "'off'"))
    assert peers(node, "driver", GPU, uid=NOBODY).wait("told") == "told True "
    wait_registered(node, GPU)
    assert states(node, GPU) == {"registered"}


def test_executables_are_told_apart(guarded, peers, short_dir):
    other = os.path.join(short_dir, "other-python")
    shutil.copy(PYTHON, other)
    node = guarded(f"""
        mode: enforce
        rules:
        - name: by path
          drivers: [{GPU}]
          by: [{{executable: {other}}}]
        """)
    told = peers(node, "driver", GPU).wait("told")
    assert told.startswith("told False"), told
    good = peers(node, "driver", GPU, python=other)
    assert good.wait("told") == "told True "
    good.stop()
    # An executable that is gone, or another file by now, is nobody's.
    replaced = peers(node, "driver", "later.example.com", python=other)
    assert replaced.wait("told").startswith("told False")
    replaced.stop()
    gone = Peer("driver", os.path.join(node.kubelet_dir, "plugins_registry", "early"), GPU,
                python=other)
    gone.wait("pid")
    os.unlink(other)
    try:
        told = gone.wait("told")
        assert told.startswith("told False") and "not the file there" in told, told
    finally:
        gone.stop()


def test_sockets_that_nobody_may_serve_are_not_called(guarded, peers):
    node = guarded("""
        mode: enforce
        rules:
        - name: root's
          sockets: ["*"]
          by: [{uid: 0}]
        """)
    bad = peers(node, "driver", GPU, uid=NOBODY)
    until(lambda: any(p.error and "policy" in p.error for p in node.plugins()), PATIENCE_S,
          "the refusal")
    assert peers(node, "driver", GPU).wait("told") == "told True "
    assert not [line for line in bad.lines if line.startswith("told")]
    assert refusals(node, "sockets")["enforce"] >= 1


def test_callers_are_judged(guarded, peers, short_dir):
    node = guarded(f"""
        mode: enforce
        rules:
        - calls: [davit.sock]
          by: [{{uid: 0}}]
        - calls: [kubelet.sock]
          by: [{{uid: {NOBODY}}}]
        """)
    assert node.status().node_name == "n1"  # we are root
    with pytest.raises(grpc.RpcError):
        node.podres_list()  # which no rule has, and others have `calls`
    before = refusals(node, "calls")["enforce"]
    peers(node, "classic", RESOURCE)  # tries for a while
    until(lambda: refusals(node, "calls")["enforce"] > before, PATIENCE_S, "the refusal")
    assert not node.resource(RESOURCE)
    assert peers(node, "classic", RESOURCE, uid=NOBODY).wait("refused", "registered") \
        == "registered"
    assert refusals(node, "calls")["enforce"] >= 2


def test_a_reload_judges_again(guarded, peers, policy):
    node = guarded(OF_ROOT)
    driver = peers(node, "driver", GPU)
    assert driver.wait("told") == "told True "
    assert peers(node, "classic", RESOURCE).wait("registered", "refused") == "registered"
    node.wait_devices(RESOURCE, 2, PATIENCE_S)
    wait_registered(node, GPU)
    # What cannot be read keeps what was.
    for text, mode in (("mode: [", 0o600), ("mode: enforce\nrule: []\n", 0o600),
                       (OF_ROOT, 0o622)):
        policy.write(text, mode)
        policy.reload(node, "the policy is not taken")
    assert "registered" in states(node, GPU)
    policy.write(OF_ROOT.replace("uid: 0", f"uid: {NOBODY}"))
    policy.reload(node, "policy loaded")
    assert driver.wait("told").startswith("told False")
    until(lambda: "registered" not in states(node, GPU), PATIENCE_S, "the driver to be gone")
    until(lambda: not node.resource(RESOURCE).connected, PATIENCE_S, "the plugin to be gone")
    policy.write(OF_ROOT)
    policy.reload(node, "policy loaded")
    assert driver.wait("told True") == "told True "


@pytest.mark.parametrize("text, mode, sign", [
    ("mode: enforce\nrules:\n- driver: [x]\n", 0o600, "line 3"),
    ("mode: strict\n", 0o600, "off, warn, enforce"),
    (OF_ROOT, 0o622, "chmod go-w"),
    (OF_ROOT, 0o602, "chmod go-w"),
])
def test_a_bad_file_keeps_the_daemon_from_starting(make_node, policy, text, mode, sign):
    policy.write(text, mode)
    assert stat.S_IMODE(os.stat(policy.path).st_mode) == mode
    node = make_node("--policy", policy.path)
    node.start(ready=False)
    assert node.proc.wait() != 0
    assert sign in node.proc.log and policy.path in node.proc.log


def test_a_file_of_another_user_is_refused(make_node, policy):
    policy.write(OF_ROOT)
    os.chown(policy.path, NOBODY, NOBODY)
    node = make_node("--policy", policy.path)
    node.start(ready=False)
    assert node.proc.wait() != 0
    assert "chown root" in node.proc.log
