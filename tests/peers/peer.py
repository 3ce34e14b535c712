"""The test peer on grpcio. Its commands are the contract in README.md.

The generated peer_pb2 must be importable: tests/peers/build makes the wrapper python-peer, which
sees to that.
"""

import argparse
import asyncio
import os
import resource
import signal
import sys
import time

import grpc
import grpc.aio

import peer_pb2 as pb

# Large enough for the 32 MiB scenarios, with room to see a limit being kept.
MESSAGE_BYTES_MAX = 64 << 20
OPTIONS = [("grpc.max_receive_message_length", MESSAGE_BYTES_MAX)]
STOP_GRACE_S = 1
# No scenario's ordinary call takes longer, on the slowest of builds.
CALL_TIMEOUT_S = 30
# Bytes outside ASCII and a bare percent sign: what percent-encoding must carry.
ODD_MESSAGE = "Gerät belegt: „gpu-0“ 100% 试"

CODES = {code.value[0]: code for code in grpc.StatusCode}


def pattern(n):
    """The repeating pattern byte(i % 251), of n bytes."""
    return (bytes(range(251)) * (n // 251 + 1))[:n]


# ---------------------------------------------------------------------------------------- server


class Peer:
    """The service, all on one asyncio loop."""

    def __init__(self):
        self.calls = self.cancelled = self.open = 0
        self.pattern = b""  # the longest asked for so far; shorter ones are its beginning

    def payload(self, ask):
        if ask.reply_bytes == 0:
            return ask.payload
        if len(self.pattern) < ask.reply_bytes:
            self.pattern = pattern(ask.reply_bytes)
        return self.pattern[: ask.reply_bytes]

    async def counted(self, work):
        self.calls += 1
        self.open += 1
        try:
            return await work
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        finally:
            self.open -= 1

    async def unary(self, ask, context):
        return await self.counted(self._unary(ask, context))

    async def _unary(self, ask, context):
        await asyncio.sleep(ask.delay_ms / 1000)
        if ask.code:
            await context.abort(CODES[ask.code], ask.message)
        return pb.Answer(
            payload=self.payload(ask), had_deadline=context.time_remaining() is not None
        )

    async def watch(self, ask, context):
        await self.counted(self._watch(ask, context))

    async def _watch(self, ask, context):
        answer = pb.Answer(
            payload=self.payload(ask), had_deadline=context.time_remaining() is not None
        )
        while ask.count == 0 or answer.index < ask.count:
            await asyncio.sleep(ask.delay_ms / 1000)
            await context.write(answer)
            answer.index += 1
            if ask.count == 0 and ask.delay_ms == 0:
                await asyncio.Event().wait()  # silent until cancelled
        if ask.code:
            await context.abort(CODES[ask.code], ask.message)

    async def seen(self, _empty, _context):
        usage = resource.getrusage(resource.RUSAGE_SELF)
        with open("/proc/self/statm", encoding="ascii") as statm:
            pages = int(statm.read().split()[1])
        return pb.Counts(
            calls=self.calls,
            cancelled=self.cancelled,
            open=self.open,
            cpu_us=int((usage.ru_utime + usage.ru_stime) * 1e6),
            rss_bytes=pages * resource.getpagesize(),
        )

    def handler(self):
        def codec(request):
            return {
                "request_deserializer": request.FromString,
                "response_serializer": lambda message: message.SerializeToString(),
            }

        return grpc.method_handlers_generic_handler(
            "davit.test.Peer",
            {
                "Unary": grpc.unary_unary_rpc_method_handler(self.unary, **codec(pb.Ask)),
                "Watch": grpc.unary_stream_rpc_method_handler(self.watch, **codec(pb.Ask)),
                "Seen": grpc.unary_unary_rpc_method_handler(self.seen, **codec(pb.Empty)),
            },
        )


async def serve(socket):
    server = grpc.aio.server(options=OPTIONS)
    server.add_generic_rpc_handlers((Peer().handler(),))
    server.add_insecure_port("unix:" + socket)
    await server.start()
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    print("ready", flush=True)
    await stop.wait()
    await server.stop(STOP_GRACE_S)


# ---------------------------------------------------------------------------------------- client


class Failed(Exception):
    """What a scenario found wrong."""


def check(condition, *what):
    if not condition:
        raise Failed(" ".join(str(part) for part in what))


def check_status(error, code, message):
    check(
        (error.code(), error.details()) == (code, message),
        f"status {error.code()} {error.details()!r}, expected {code} {message!r}",
    )


def expected_payload(ask):
    return pattern(ask.reply_bytes) if ask.reply_bytes else ask.payload


class Client:
    """One channel to a peer, and a scenario for each public method of the name."""

    def __init__(self, socket, arg):
        self.channel = grpc.insecure_channel("unix:" + socket, options=OPTIONS)
        self.arg = arg
        self.unary = self.method("Unary", pb.Answer)
        self.seen = self.method("Seen", pb.Counts)
        self.watch = self.channel.unary_stream(
            "/davit.test.Peer/Watch",
            request_serializer=lambda message: message.SerializeToString(),
            response_deserializer=pb.Answer.FromString,
        )

    def method(self, name, response, service="davit.test.Peer"):
        return self.channel.unary_unary(
            f"/{service}/{name}",
            request_serializer=lambda message: message.SerializeToString(),
            response_deserializer=response.FromString,
        )

    def number(self, by_default):
        return self.arg or by_default

    def call(self, **fields):
        """Calls Unary with time enough, and checks that the answer carries what was asked for."""
        ask = pb.Ask(**fields)
        answer = self.unary(ask, timeout=CALL_TIMEOUT_S)
        check(answer.payload == expected_payload(ask), "payload differs")

    def read_all(self, ask, timeout=CALL_TIMEOUT_S):
        """The number of answers of a stream, which must come in order, and its error or None."""
        n = 0
        try:
            for answer in self.watch(ask, timeout=timeout):
                check(answer.index == n, f"answer {n} has index {answer.index}")
                check(answer.payload == expected_payload(ask), f"payload of answer {n} differs")
                n += 1
        except grpc.RpcError as error:
            return n, error
        return n, None

    def wait_seen(self, what, good):
        """Asks the server until its counts are as `good` wants them, for up to two seconds."""
        end = time.monotonic() + 2
        while not good(counts := self.seen(pb.Empty(), timeout=CALL_TIMEOUT_S)):
            check(time.monotonic() < end, f"server does not show {what}:", counts)
            time.sleep(0.01)

    def error_of(self, call, *args, **kwargs):
        try:
            call(*args, **kwargs)
        except grpc.RpcError as error:
            return error
        raise Failed("the call succeeded")

    def test_unary(self):
        self.call(payload=b"hello")
        self.call()  # an empty message both ways
        self.call(payload=b"x", reply_bytes=100000)

    def test_status(self):
        error = self.error_of(self.call, code=9, message=ODD_MESSAGE)
        check_status(error, grpc.StatusCode.FAILED_PRECONDITION, ODD_MESSAGE)
        for code in range(1, 17):
            check_status(self.error_of(self.call, code=code), CODES[code], "")

    def test_status_after_messages(self):
        ask = pb.Ask(payload=b"one of three", count=3, code=9, message=ODD_MESSAGE)
        n, error = self.read_all(ask)
        check(n == 3, f"{n} answers, expected 3 ({error})")
        check(error, "the stream ended without its error")
        check_status(error, grpc.StatusCode.FAILED_PRECONDITION, ODD_MESSAGE)

    def unknown(self, method):
        error = self.error_of(method, pb.Ask(payload=b"x"), timeout=CALL_TIMEOUT_S)
        check(error.code() == grpc.StatusCode.UNIMPLEMENTED, error)
        self.test_unary()

    def test_unknown_method(self):
        self.unknown(self.method("Nothing", pb.Answer))

    def test_unknown_service(self):
        self.unknown(self.method("Unary", pb.Answer, service="davit.test.Nobody"))

    def test_stream(self):
        want = self.number(100)
        n, error = self.read_all(pb.Ask(count=want, reply_bytes=10000))
        check(n == want and not error, f"{n} answers, expected {want} ({error})")

    def test_deadline(self):
        before = self.seen(pb.Empty(), timeout=CALL_TIMEOUT_S)
        started = time.monotonic()
        error = self.error_of(self.unary, pb.Ask(delay_ms=5000), timeout=0.2)
        check(error.code() == grpc.StatusCode.DEADLINE_EXCEEDED, error)
        took = time.monotonic() - started
        check(took < 2, f"the deadline of 200 ms took {took:.3f} s")
        self.wait_seen(
            "the call as cancelled and ended",
            lambda counts: counts.cancelled > before.cancelled and counts.open == 0,
        )
        answer = self.unary(pb.Ask(), timeout=CALL_TIMEOUT_S)
        check(answer.had_deadline, "the server did not see the deadline of a call")
        check(not self.unary(pb.Ask()).had_deadline, "it saw a deadline where there was none")

    def test_cancel(self):
        before = self.seen(pb.Empty(), timeout=CALL_TIMEOUT_S)
        stream = self.watch(pb.Ask(delay_ms=10))
        next(stream)
        stream.cancel()
        error = self.error_of(lambda: [None for _ in stream])
        check(error.code() == grpc.StatusCode.CANCELLED, error)
        self.wait_seen(
            "the stream as cancelled and ended",
            lambda counts: counts.cancelled > before.cancelled and counts.open == 0,
        )

    def test_large(self):
        size = self.number(32) << 20
        self.call(payload=pattern(size))
        n, error = self.read_all(pb.Ask(count=1, reply_bytes=size))
        check(n == 1 and not error, f"{n} answers, expected 1 ({error})")

    def test_many(self):
        asks = [pb.Ask(payload=b"call %d" % i, delay_ms=300) for i in range(self.number(1000))]
        calls = [self.unary.future(ask, timeout=CALL_TIMEOUT_S) for ask in asks]
        for ask, call in zip(asks, calls):
            check(call.result().payload == ask.payload, "payload differs")
        self.test_unary()

    def test_reuse(self):
        for i in range(self.number(2000)):
            self.call(payload=b"call %d" % i)

    def test_interrupted(self):
        stream = self.watch(pb.Ask(delay_ms=50))
        next(stream)
        slow = self.unary.future(pb.Ask(delay_ms=60000))
        self.wait_seen("both calls", lambda counts: counts.open >= 2)
        print("started", flush=True)
        end = time.monotonic() + 5
        errors = [self.error_of(lambda: [None for _ in stream]), slow.exception(timeout=5)]
        check(time.monotonic() < end, "a call was still open after 5 s")
        for error in errors:
            check(error.code() == grpc.StatusCode.UNAVAILABLE, error)

    def test_reconnect(self):
        # Without a watcher an idle grpcio channel does not read its socket, and so cannot see
        # that the server has gone.
        self.channel.subscribe(lambda state: None)
        self.test_unary()
        print("started", flush=True)
        check(sys.stdin.readline(), "stdin ended")
        # A call that was already put on the lost connection ends with it, whatever it waits for.
        end = time.monotonic() + 60
        while True:
            try:
                self.unary(pb.Ask(), timeout=30, wait_for_ready=True)
                return
            except grpc.RpcError as error:
                if error.code() != grpc.StatusCode.UNAVAILABLE or time.monotonic() > end:
                    raise


SCENARIOS = {
    name[len("test_") :].replace("_", "-"): getattr(Client, name)
    for name in dir(Client)
    if name.startswith("test_")
}


def run_client(socket, name, arg):
    if name not in SCENARIOS:
        print(f"FAIL {name}: no such scenario, there are {' '.join(SCENARIOS)}")
        return 2
    client = Client(socket, arg)
    try:
        SCENARIOS[name](client)
    except (Failed, grpc.RpcError, grpc.FutureTimeoutError) as error:
        print(f"FAIL {name}: {' '.join(repr(error).split())}")
        return 1
    finally:
        client.channel.close()
    print(f"ok {name}")
    return 0


def main():
    parser = argparse.ArgumentParser(prog="python-peer")
    commands = parser.add_subparsers(dest="command", required=True)
    server = commands.add_parser("server")
    server.add_argument("socket")
    client = commands.add_parser("client")
    client.add_argument("socket")
    client.add_argument("scenario")
    client.add_argument("--arg", type=int, default=0)
    args = parser.parse_args()
    if args.command == "client":
        return run_client(args.socket, args.scenario, args.arg)
    if os.path.exists(args.socket):
        os.unlink(args.socket)  # stale from an earlier run
    asyncio.run(serve(args.socket))
    return 0


if __name__ == "__main__":
    sys.exit(main())
