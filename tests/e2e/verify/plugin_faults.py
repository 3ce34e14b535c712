"""The mistakes that python_plugin.py can make, one class each, by name: what libraries do not forbid,
and plugins in the field have done."""

import os
import subprocess
import time

import grpc

from python_plugin import LOOK_S, Plugin

FAULTS = {}


def fault(*cases, says, waits=False):
    """The class's name in lower case, with hyphens, is the mistake's. `cases` of davit verify find it,
    for a reason in which these words are; `waits`: by what does not happen in time."""
    def note(kind):
        name = "".join("-" + c.lower() if c.isupper() else c for c in kind.__name__).lstrip("-")
        kind.cases, kind.says, kind.waits = cases, says, waits
        FAULTS[name] = kind
        return kind
    return note


def crash():
    """As a panic in a language where that ends the process."""
    os._exit(2)


# ---- registration ----


@fault("register.version", says='registered with version "v1alpha"')
class OtherVersion(Plugin):
    version = "v1alpha"


@fault("register.resource-name", says='"dev" is no resource name')
class NameWithoutDomain(Plugin):
    resource = "dev"


@fault("register.resource-name", says="is reserved")
class ReservedName(Plugin):
    resource = "devices.kubernetes.io/dev"


@fault("register.endpoint", says="without a path", waits=True)
class PathAsEndpoint(Plugin):
    def register(self):
        self.endpoint = self.served.path
        return super().register()


@fault("register.serves-first", says="does not serve on the socket that it named", waits=True)
class RegistersFirst(Plugin):
    """Serves when the kubelet has answered."""

    def introduce(self):
        while not self.stopping.is_set() and not (os.path.exists(self.kubelet) and self.register()):
            self.pause_refused()
        self.serve()
        return None

    def is_other_kubelet(self, kubelet):
        return False


@fault("register.late-kubelet", says="after a kubelet came that was not there", waits=True)
class TriesOnce(Plugin):
    """A kubelet that is not there at its start is none."""

    def introduce(self):
        if os.path.exists(self.kubelet):
            return super().introduce()
        self.serve()
        self.stopping.wait()
        return None


@fault("register.kubelet-restart", "register.kubelet-restart-twice",
       says="after a restart of the kubelet", waits=True)
class NeverLooksAgain(Plugin):
    def must_come_back(self, kubelet):
        return False


@fault("register.kubelet-restart-twice", says="after a second restart of the kubelet", waits=True)
class LooksOnce(Plugin):
    n_times = 0

    def introduce(self):
        self.n_times += 1
        return super().introduce()

    def must_come_back(self, kubelet):
        return self.n_times < 2 and super().must_come_back(kubelet)


@fault("register.socket-removed", says="does not miss its socket", waits=True)
class TrustsItsSocket(Plugin):
    """Watches kubelet.sock only."""

    def must_come_back(self, kubelet):
        return self.is_other_kubelet(kubelet)


@fault("register.refused", says="after the kubelet had refused it before", waits=True)
class GivesUp(Plugin):
    def pause_refused(self):
        if os.path.exists(self.kubelet):
            self.stopping.wait()


@fault("register.refused", says="it has to wait between")
class TriesWithoutPause(Plugin):
    def pause_refused(self):
        pass


@fault("register.two-instances", says="removed the socket of the second", waits=True)
class RemovesByName(Plugin):
    """Whose socket has the name is not looked at, and nobody looks whether it is still there."""

    def leave(self):
        if os.path.lexists(self.served.path):
            os.unlink(self.served.path)
        super().leave()

    def must_come_back(self, kubelet):
        return self.is_other_kubelet(kubelet)


@fault("register.notify-false", says="after NotifyRegistrationStatus(false)", waits=True)
class HidesWhenRefused(Plugin):
    """Refused once, its socket of the registry is gone for good."""

    def notify(self, request, context):
        if not request.plugin_registered:
            self.registrar.remove()
        return super().notify(request, context)


# ---- the list ----


@fault("list.first", says="the first list took")
class SlowFirstList(Plugin):
    def lists(self, stream):
        time.sleep(6)
        yield from super().lists(stream)


@fault("list.first", says="no list of devices came", waits=True)
class OnlyChanges(Plugin):
    def lists(self, stream):
        while (message := stream.get()) is not None:
            yield message


class OtherList(Plugin):
    """Changes the list before it is sent."""

    def change(self, devices):
        raise NotImplementedError

    def list_message(self):
        message = super().list_message()
        self.change(message.devices)
        return message


@fault("list.valid", says="is there twice")
class DoubleId(OtherList):
    def change(self, devices):
        devices[1].ID = devices[0].ID


@fault("list.valid", says="more than 63 characters")
class LongId(OtherList):
    def change(self, devices):
        devices[0].ID = "d" * 64


@fault("list.valid", says="has an empty id")
class EmptyId(OtherList):
    def change(self, devices):
        devices[0].ID = ""


@fault("list.health-words", says='is "healthy"')
class LowerCaseHealth(OtherList):
    def change(self, devices):
        devices[2].health = "healthy"


@fault("list.topology", says="NUMA node -1")
class NumaMinusOne(OtherList):
    def change(self, devices):
        devices[3].topology.nodes[0].ID = -1


@fault("list.topology", says="names NUMA node 1 twice")
class NumaTwice(OtherList):
    def change(self, devices):
        devices[3].topology.nodes.add(ID=devices[3].topology.nodes[0].ID)


@fault("list.stays-open", says="ended ListAndWatch")
class EndsStream(Plugin):
    def lists(self, stream):
        yield self.list_message()


@fault("list.stays-open", says="although nothing changed")
class RepeatsList(Plugin):
    def lists(self, stream):
        while stream.empty():
            yield self.list_message()
            time.sleep(0.002)


@fault("list.stays-open", says="although nothing changed")
class FloodsLists(Plugin):
    """As fast as it can, with long lists: who keeps them all runs out of memory. Not so long that a busy machine sends
    none of them."""

    def list_message(self):
        message = super().list_message()
        for i in range(500):
            message.devices.add(ID=f"more-{i:040}", health="Healthy")
        return message

    def lists(self, stream):
        message = self.list_message()
        while stream.empty():
            yield message


@fault("list.after-reconnect", says="after a lost connection no list comes", waits=True)
class OneListInItsLife(Plugin):
    has_listed = False

    def lists(self, stream):
        if self.has_listed:
            stream.get()
            return
        self.has_listed = True
        yield from super().lists(stream)


@fault("list.two-watchers", says="a second ListAndWatch ended the first")
class OneWatcher(Plugin):
    """The next stream takes the place of the one before."""

    def lists(self, stream):
        with self.lock:
            for other in self.streams:
                if other is not stream:
                    other.put(None)
        yield from super().lists(stream)


@fault("list.empty", says="all devices are gone")
class EndsWithoutDevices(Plugin):
    def set_devices(self, devices):
        if not devices:
            crash()
        super().set_devices(devices)


@fault("list.empty", says="no empty list tells", waits=True)
class NeverEmpty(Plugin):
    def set_devices(self, devices):
        if devices:
            super().set_devices(devices)


@fault("list.large", says="no list of more than 4 MiB comes")
class DefaultLimit(Plugin):
    server_options = (("grpc.max_send_message_length", 4 << 20),)


# ---- Allocate ----


@fault("allocate.unknown-id", "prestart.unknown-id", says="a device that is in no list")
class TakesAnyId(Plugin):
    def check_ids(self, ids, context):
        pass


@fault("allocate.unknown-id", says="the driver ended (exit status 2)")
class CrashesOnUnknown(Plugin):
    def check_ids(self, ids, context):
        if not set(ids) <= set(self.devices):
            crash()


@fault("allocate.no-ids", says="the driver ended (exit status 2)")
class TakesTheFirst(Plugin):
    """Of an empty list of ids."""

    def give(self, ids):
        if not ids:
            crash()
        return super().give(ids)


class OtherGift(Plugin):
    def change(self, gift):
        raise NotImplementedError

    def give(self, ids):
        gift = super().give(ids)
        self.change(gift)
        return gift


@fault("allocate.mounts", says="does not exist on the host")
class MissingSource(OtherGift):
    def change(self, gift):
        gift.mounts[0].host_path = "/no/such/directory"


@fault("allocate.mounts", says="two mounts have the place")
class OnePlaceForTwo(OtherGift):
    def change(self, gift):
        gift.mounts.add(container_path=gift.mounts[0].container_path, host_path="/etc")


@fault("allocate.mounts", says="is not absolute")
class RelativePlace(OtherGift):
    def change(self, gift):
        gift.mounts[0].container_path = "mnt/dev"


@fault("allocate.cdi-host", says="device node /dev/no-such")
class SpecsWithoutNode(Plugin):
    def edits(self, number, name):
        return {**super().edits(number, name), "deviceNodes": [{"path": "/dev/no-such"}]}


@fault("allocate.cdi-names", says="in none of")
class NamesWithoutSpec(Plugin):
    def write_spec(self):
        pass


@fault("allocate.cdi-names", says="not a name like")
class NamesWithoutKind(OtherGift):
    def change(self, gift):
        for device in gift.cdi_devices:
            device.name = device.name.partition("=")[2]


@fault("allocate.envs", says="is no name of an environment variable")
class NameWithEquals(OtherGift):
    def change(self, gift):
        gift.envs["DEV=0"] = "1"


@fault("allocate.many", says="no more than for")
class FirstIdOnly(Plugin):
    def give(self, ids):
        return super().give(ids[:1])


@fault("allocate.containers", says="for two containers was answered for 1")
class FirstContainerOnly(Plugin):
    def answer(self, containers):
        return super().answer(containers[:1])


@fault("allocate.containers", says="in the order of requests")
class ContainersTurned(Plugin):
    def answer(self, containers):
        return super().answer(containers)[::-1]


@fault("allocate.parallel", says="got the answer of another")
class SharedVariable(Plugin):
    ids = ()

    def give(self, ids):
        self.ids = ids
        time.sleep(LOOK_S)
        return super().give(self.ids)


@fault("allocate.without-watch", says="there is no kubelet")
class StopsWithStream(Plugin):
    def allocate(self, request, context):
        time.sleep(LOOK_S)  # for the end of the stream to be told
        if not self.streams:
            context.abort(grpc.StatusCode.UNAVAILABLE, "there is no kubelet")
        return super().allocate(request, context)


# ---- options, and what they offer ----


@fault("options.agree", says="tell different options")
class RegistersOtherOptions(Plugin):
    def registered_options(self):
        return self.pb.DevicePluginOptions(pre_start_required=False,
                                           get_preferred_allocation_available=True)


@fault("options.stable", says="has other options")
class OptionsOfTheRun(Plugin):
    """The first run wants PreStartContainer, the next does not."""

    def __init__(self, *args):
        super().__init__(*args)
        mark = os.path.join(self.kubelet_dir, "has-run")
        self.has_run = os.path.exists(mark)
        with open(mark, "w", encoding="utf-8"):
            pass

    def options(self):
        return self.pb.DevicePluginOptions(pre_start_required=not self.has_run,
                                           get_preferred_allocation_available=True)


@fault("prefer.subset", says="which is not available")
class PrefersWhatIsTaken(Plugin):
    def choose(self, available, must, size):
        return sorted(self.devices)[:size]


@fault("prefer.subset", says="twice")
class PrefersTwice(Plugin):
    def choose(self, available, must, size):
        return available[:1] * 2


@fault("prefer.size", says="it chose 4")
class PrefersAll(Plugin):
    def choose(self, available, must, size):
        return available


@fault("prefer.must-include", says="has to be among the chosen")
class ForgetsWhatMust(Plugin):
    def choose(self, available, must, size):
        return [name for name in available if name not in must][:size]


@fault("prefer.one-left", says="no pair is left")
class LooksForPairs(Plugin):
    def prefer(self, request, context):
        if len(request.container_requests[0].available_deviceIDs) < 2:
            context.abort(grpc.StatusCode.INTERNAL, "no pair is left")
        return super().prefer(request, context)


@fault("prefer.none", says="the driver ended (exit status 2)")
class ChoosesFromNothing(Plugin):
    def choose(self, available, must, size):
        if not available:
            crash()
        return super().choose(available, must, size)


# ---- its end, and the wire ----


@fault("shutdown.stream", says="sends an empty list")
class EmptyAtTheEnd(Plugin):
    def leave(self):
        self.set_devices({})
        self.push(None)
        self.served.remove()
        self.served.stop(5)  # ends with the last stream


@fault("shutdown.processes", says="still run")
class LeavesDaemon(Plugin):
    """A helper in a session of its own, which no signal to the plugin's group reaches."""

    def __init__(self, *args):
        super().__init__(*args)
        subprocess.run(["setsid", "--fork", "sleep", "1000"], check=True)


class AnyMethod(grpc.GenericRpcHandler):
    def service(self, handler_call_details):
        return grpc.unary_unary_rpc_method_handler(lambda request, context: b"")


@fault("wire.unknown-method", says="answered with OK")
class AnswersAnyMethod(Plugin):
    def handlers(self):
        return [*super().handlers(), AnyMethod()]


@fault("wire.unknown-method", says="answered with UNAVAILABLE")
class CrashesOnNewMethod(Plugin):
    class Crashing(grpc.GenericRpcHandler):
        def service(self, handler_call_details):
            crash()

    def handlers(self):
        return [*super().handlers(), self.Crashing()]


@fault("wire.unknown-fields", says="a field of a later version was refused")
class StrictDecoding(Plugin):
    def decode(self, kind, data):
        message = kind.FromString(data)
        message.DiscardUnknownFields()
        if message.ByteSize() != len(data):
            raise ValueError("a field that nobody knows")
        return message


@fault("wire.garbage", says="the driver ended (exit status 2)")
class CrashesOnGarbage(Plugin):
    def decode(self, kind, data):
        try:
            return super().decode(kind, data)
        except Exception:
            crash()


@fault("wire.garbage", says="succeeded for bytes that are no message")
class TakesGarbage(Plugin):
    def decode(self, kind, data):
        try:
            return super().decode(kind, data)
        except Exception:
            return kind()
