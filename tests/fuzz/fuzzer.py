"""A seeded fuzzer of every gRPC service that kemu offers.

Each attack comes from one random stream, so a seed repeats a run but for the timing of the network. What must hold all
the time: the process lives and goes on serving others, every call ends with a status that says what was wrong, and
memory stays bounded.
"""

from __future__ import annotations

import asyncio
import os
import random
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
from google.protobuf import descriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from kemu.messages.etcd import rpc_pb2
from kemu.messages.k8s import core_v1_pb2, scheduling_v1_pb2
from kemu.messages.v1 import api_pb2, cell_pb2, extender_pb2
from kemu.runtime.host import tokens
from kemu.runtime.host.calls import channels

SERVICES = (
    *api_pb2.DESCRIPTOR.services_by_name.values(),
    *rpc_pb2.DESCRIPTOR.services_by_name.values(),
    *extender_pb2.DESCRIPTOR.services_by_name.values(),
    *cell_pb2.DESCRIPTOR.services_by_name.values(),
)
GROWTH_LIMIT_MIB = 600
"""Of the process's memory, over what it has when the fuzzing begins."""
PATIENCE_S = 20.0
"""Of a call, and of a client that means no harm."""
FORBIDDEN = ("Stop", "Configure")
"""Methods of the Cell that end actors or set the clock of a run, as they should: they get malformed bytes only."""
BUGS = ("Unexpected <class",)
"""In a status: an exception that nobody expected."""

TEXTS = (
    *("", "a", "default", "kube-system", "pods", "nodes", "p", "../..", "a/b", "\0", "é" * 100, "x" * 70_000, "\ud7ff"),
    *("0", "-1", "18446744073709551616", "9" * 400, "a=b,c in (d", "spec.nodeName=,metadata.name!=", "!", "a in ()"),
    *("*", "%s%n", "eyJ2IjogIm1ldGEuazhzLmlvL3YxIn0=", "/registry/pods/"),
)
NUMBERS = (0, 1, -1, 2, 7, 100, 2**31 - 1, -(2**31), 2**32 - 1, 2**53, 2**63 - 1, -(2**63))
PATCHES = (
    b"",
    b"null",
    b"[]",
    b"{",
    b"\xff\xfe",
    b"1e999999",
    b'{"metadata": null}',
    b'{"metadata": {"labels": 5}}',
    b'{"metadata": {"name": {"a": []}}}',
    b'{"spec": {"containers": [{"$patch": "replace"}, 1, null, "x"]}}',
    b'{"spec": {"containers": [{"$patch": "delete"}]}}',
    b'{"status": {"conditions": [{"type": 1e308}]}}',
    b'{"metadata": {"resourceVersion": "' + b"9" * 5000 + b'"}}',
    b'{"a": ' * 100_000,
    b'{"a": ' * 50_000 + b"1" + b"}" * 50_000,
    b"[" * 200_000 + b"]" * 200_000,
    b'{"metadata": {"labels": {' + b",".join(b'"k%d": "v"' % n for n in range(20_000)) + b"}}}",
    b'{"x": ' + b"1" * 100_000 + b"}",
)


class Target:
    """The process that is fuzzed."""

    def __init__(self, *, tls: bool = False) -> None:
        command = [sys.executable, "-m", "tests.fuzz.target", *(["--tls"] if tls else [])]
        # Each failed handshake would be a line.
        environment = {**os.environ, "GRPC_VERBOSITY": "NONE"}
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        )
        assert self.process.stdout is not None
        answer = self.process.stdout.readline().split()
        assert answer, "the target did not start"
        self.address, self.token = answer[:2]
        self.certificate = bytes.fromhex(answer[2]) if tls else b""

    def memory_mib(self) -> float:
        for line in Path(f"/proc/{self.process.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) / 1024
        return 0.0

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()


class Finding(AssertionError):
    """Something that must not be."""


def identity(data: bytes) -> bytes:
    return data


class Fuzzer:
    def __init__(self, target: Target, seed: int) -> None:
        self.target = target
        self.random = random.Random(seed)
        self.counts: Counter[str] = Counter()
        """Calls by how they ended, and attacks by their names."""
        self.last = ""
        self.most_mib = 0.0
        self._channel: Any = None

    async def run(self, seconds: float, least: int = 0) -> None:
        """For so long, and until so many attacks have been tried. Raises Finding."""
        attacks: list[tuple[Callable[[], Awaitable[None]], int]] = [
            (self.malformed, 20),
            (self.random_messages, 30),
            (self.patches, 12),
            (self.oversized, 2),
            (self.many_watches, 2),
            (self.unread_session, 1),
            (self.unread_watch, 1),
            (self.half_open_streams, 4),
            (self.broken_streams, 12),
            (self.nested_transactions, 4),
            (self.lists_in_pages, 4),
        ]
        names, weights = [one for one, _ in attacks], [weight for _, weight in attacks]
        start_mib = self.target.memory_mib()
        end = time.monotonic() + seconds
        async with grpc.aio.insecure_channel(self.target.address, options=channels.CHANNEL_OPTIONS) as channel:
            self._channel = tokens.Signed(channel, tokens.DRIVER, self.target.token)
            await self.serves()
            tried = 0
            while time.monotonic() < end or tried < least:
                tried += 1
                attack = self.random.choices(names, weights)[0]
                self.last = attack.__name__
                self.counts[attack.__name__] += 1
                try:
                    async with asyncio.timeout(PATIENCE_S * 3):
                        await attack()
                except TimeoutError:
                    raise Finding(f"{self.last}: a call did not end") from None
                await self.serves()
                self.most_mib = max(self.most_mib, self.target.memory_mib() - start_mib)
                if self.most_mib > GROWTH_LIMIT_MIB:
                    raise Finding(f"{self.last}: memory has grown by {self.most_mib:.0f} MiB")

    # --- what must hold -----------------------------------------------------------------------------------------------

    async def serves(self) -> None:
        """The process lives, and serves a client that means no harm."""
        if self.target.process.poll() is not None:
            raise Finding(f"{self.last}: the process ended with {self.target.process.returncode}")
        stub = self._stub("/kemu.v1.Api/Create")
        name = f"canary-{self.random.getrandbits(60):x}"  # of no namespace: somebody may delete those
        found = scheduling_v1_pb2.PriorityClass(value=1)
        found.metadata.name = name
        create = api_pb2.CreateRequest(object=found.SerializeToString())
        create.resource.resource = "priorityclasses"
        delete = api_pb2.DeleteRequest(name=name)
        delete.resource.resource = "priorityclasses"
        try:
            await stub(create.SerializeToString(), timeout=PATIENCE_S)
            await self._stub("/kemu.v1.Api/Delete")(delete.SerializeToString(), timeout=PATIENCE_S)
        except grpc.aio.AioRpcError as error:
            raise Finding(f"after {self.last} others are not served: {error.code().name}: {error.details()}") from None

    def judge(self, method: str, error: grpc.aio.AioRpcError) -> None:
        self.counts[error.code().name] += 1
        details = error.details() or ""
        if any(text in details for text in BUGS):
            raise Finding(f"{self.last}: {method}: {error.code().name}: {details[:2000]}")
        if error.code() is grpc.StatusCode.DEADLINE_EXCEEDED:
            raise Finding(f"{self.last}: {method} did not end within {PATIENCE_S:.0f} s")

    # --- calls --------------------------------------------------------------------------------------------------------

    def _stub(self, method: str) -> Any:
        return self._channel.unary_unary(method, request_serializer=identity, response_deserializer=identity)

    def _streaming(self, method: str) -> Any:
        return self._channel.stream_stream(method, request_serializer=identity, response_deserializer=identity)()

    async def send(self, method: descriptor.MethodDescriptor, *requests: bytes) -> None:
        """Whatever comes of it is fine, but for what is a bug."""
        path = f"/{method.containing_service.full_name}/{method.name}"
        try:
            if method.client_streaming:
                call = self._streaming(path)
                for request in requests:
                    await call.write(request)
                await call.done_writing()
                await self._read(call, 3)
            elif method.server_streaming:
                stream = self._channel.unary_stream(path, request_serializer=identity, response_deserializer=identity)
                call = stream(requests[0])
                await self._read(call, 3)
            else:
                await self._stub(path)(requests[0], timeout=PATIENCE_S)
            self.counts["OK"] += 1
        except grpc.aio.AioRpcError as error:
            self.judge(path, error)
        except asyncio.InvalidStateError:
            self.counts["ended by the server"] += 1

    async def _read(self, call: Any, messages: int) -> None:
        """Up to so many answers, then no more."""
        try:
            async with asyncio.timeout(0.3):
                for _ in range(messages):
                    if await call.read() is grpc.aio.EOF:  # type: ignore[attr-defined]
                        return
        except TimeoutError:
            pass
        call.cancel()

    # --- messages -----------------------------------------------------------------------------------------------------

    def method(self) -> descriptor.MethodDescriptor:
        service = self.random.choice(SERVICES)
        return self.random.choice(service.methods)

    def bytes_of(self, most: int) -> bytes:
        return self.random.randbytes(self.random.randrange(most + 1))

    def message(self, cls: Any, depth: int = 0) -> Message:
        """A message with fields at random, of values that tend to be trouble."""
        found: Any = cls()
        choose = self.random
        for field in found.DESCRIPTOR.fields:
            if choose.random() < 0.5 or (field.message_type is not None and depth > 5):
                continue
            count = choose.choice((0, 1, 2, 30)) if field.is_repeated else 1
            if field.message_type is not None and field.message_type.GetOptions().map_entry:
                continue
            for _ in range(count):
                value = self.value(field, depth)
                if field.message_type is not None:
                    into = getattr(found, field.name)
                    (into.add() if field.is_repeated else into).CopyFrom(value)
                elif field.is_repeated:
                    getattr(found, field.name).append(value)
                else:
                    setattr(found, field.name, value)
        if "object" in found.DESCRIPTOR.fields_by_name and choose.random() < 0.7:
            found.object = self.message(core_v1_pb2.Pod, depth + 1).SerializeToString()
        if (
            "resource" in found.DESCRIPTOR.fields_by_name
            and hasattr(found.resource, "resource")
            and choose.random() < 0.8
        ):
            found.resource.resource = choose.choice(("pods", "nodes", "leases", "events", "poddisruptionbudgets"))
        return found

    def value(self, field: Any, depth: int) -> Any:
        choose, kind = self.random, field.type
        if field.message_type is not None:
            return self.message(GetMessageClass(field.message_type), depth + 1)
        if kind == field.TYPE_STRING:
            return choose.choice(TEXTS)
        if kind == field.TYPE_BYTES:
            return choose.choice((b"", b"/registry/pods/default/x", b"\0", b"\xff" * 20, self.bytes_of(300)))
        if kind == field.TYPE_BOOL:
            return choose.random() < 0.5
        if kind in (field.TYPE_DOUBLE, field.TYPE_FLOAT):
            return choose.choice((0.0, -1.0, 1e38, float("inf"), float("nan")))
        if kind == field.TYPE_ENUM:
            return choose.choice(field.enum_type.values).number
        lowest, highest = {
            field.TYPE_INT32: (-(2**31), 2**31 - 1),
            field.TYPE_UINT32: (0, 2**32 - 1),
            field.TYPE_UINT64: (0, 2**64 - 1),
        }.get(kind, (-(2**63), 2**63 - 1))
        return choose.choice([number for number in NUMBERS if lowest <= number <= highest])

    def damaged(self, data: bytes) -> bytes:
        """With bits flipped, cut short, doubled, or filled up."""
        damaged, choose = bytearray(data), self.random
        for _ in range(choose.randrange(1, 6)):
            what = choose.randrange(4)
            place = choose.randrange(len(damaged) + 1)
            if what == 0 and place < len(damaged):
                damaged[place] ^= 1 << choose.randrange(8)
            elif what == 1:
                del damaged[place : place + choose.randrange(20)]
            elif what == 2:
                damaged[place:place] = damaged[place : place + choose.randrange(200)]
            else:
                damaged[place:place] = self.bytes_of(20)
        return bytes(damaged)

    # --- attacks ------------------------------------------------------------------------------------------------------

    async def malformed(self) -> None:
        """Bytes that are no message, or one that was damaged on the way."""
        for _ in range(20):
            method = self.method()
            cls = GetMessageClass(method.input_type)
            requests = [
                self.bytes_of(200)
                if self.random.random() < 0.3
                else self.damaged(self.message(cls).SerializeToString())
                for _ in range(3)
            ]
            if method.name in FORBIDDEN:
                requests = [b"\xff" + request for request in requests]  # certainly malformed
            await self.send(method, *requests)

    async def random_messages(self) -> None:
        """Messages that are well formed and mean nothing good."""
        for _ in range(20):
            method = self.method()
            if method.name in FORBIDDEN:
                continue
            cls = GetMessageClass(method.input_type)
            await self.send(method, *[self.message(cls).SerializeToString() for _ in range(3)])

    async def patches(self) -> None:
        """JSON that is deep, huge, wrong, or of the wrong kind, for an object that exists."""
        service = api_pb2.DESCRIPTOR.services_by_name["Api"]
        for _ in range(4):
            request = api_pb2.PatchRequest(name="default", patch=self.random.choice(PATCHES))
            request.resource.resource = "namespaces"
            request.type = self.random.choice(api_pb2.PatchRequest.DESCRIPTOR.enum_types[0].values).number
            request.removed = self.random.choice((b"", b"\x0a\x05", self.bytes_of(50)))
            await self.send(service.methods_by_name["Patch"], request.SerializeToString())

    async def oversized(self) -> None:
        """Messages of many megabytes: of one value, or of very many."""
        method = self.method()
        size = self.random.choice((2, 4, 16, 70)) << 20
        data = self.random.choice((b"\x0a", b"\x12", b"\x1a", b"\x92\x01"))
        if self.random.random() < 0.5:
            length, encoded = size, bytearray()
            while length > 127:
                encoded.append(length & 127 | 128)
                length >>= 7
            data += bytes(encoded) + bytes([length]) + b"a" * size
        else:
            data = (data + b"\0") * (size // (len(data) + 1) // 8)
        if method.name not in FORBIDDEN:
            await self.send(method, data)

    async def many_watches(self) -> None:
        """Thousands of watches on one stream, with the same ids now and then, then gone without a word."""
        is_etcd = self.random.random() < 0.5
        call = self._streaming("/etcdserverpb.Watch/Watch" if is_etcd else "/kemu.v1.Api/Watch")
        try:
            for number in range(3_000):
                watch_id = self.random.choice((number, 1))
                request: Any = rpc_pb2.WatchRequest() if is_etcd else api_pb2.WatchRequest()
                if is_etcd:
                    request.create_request.key = b"/registry/p%d" % number
                    request.create_request.watch_id = watch_id
                    request.create_request.start_revision = self.random.choice((0, 1, 2**40))
                else:
                    request.create.watch_id = watch_id
                    request.create.resource.resource = self.random.choice(("pods", "nodes", "nothing"))
                    request.create.resource_version = self.random.choice(("", "0", "1", "99999999"))
                    request.create.field_selector = f"metadata.name=p{number}"
                await call.write(request.SerializeToString())
            await self._read(call, 10)
        except grpc.aio.AioRpcError as error:
            self.judge("Watch", error)
        except asyncio.InvalidStateError:
            self.counts["ended by the server"] += 1
        call.cancel()

    async def unread_session(self) -> None:
        """Requests without end whose answers nobody reads."""
        call = self._streaming("/kemu.v1.Api/Session")
        request = api_pb2.SessionRequest()
        for number in range(2_000):
            one = request.calls.add(id=number)
            one.list.resource.resource = "namespaces"
            one.list.resource_version = "0"
        data = request.SerializeToString()
        await self._write_until_stuck(call, data)

    async def unread_watch(self) -> None:
        """Watches that begin with everything there is, whose events nobody reads."""
        call = self._streaming("/kemu.v1.Api/Watch")
        requests = []
        for number in range(200):
            request = api_pb2.WatchRequest()
            request.create.watch_id = number
            request.create.resource.resource = "priorityclasses"
            request.create.resource_version = "0"
            requests.append(request.SerializeToString())
            cancel = api_pb2.WatchRequest()
            cancel.cancel.watch_id = number
            requests.append(cancel.SerializeToString())
        await self._write_until_stuck(call, *requests)

    async def _write_until_stuck(self, call: Any, *messages: bytes) -> None:
        """For two seconds, or until flow control stops it; then break off."""
        written = 0
        try:
            async with asyncio.timeout(2):
                while written < 64 << 20:
                    for message in messages:
                        await call.write(message)
                        written += len(message)
        except TimeoutError:
            self.counts["stopped by flow control"] += 1
        except grpc.aio.AioRpcError as error:
            self.judge("a stream that nobody reads", error)
        except asyncio.InvalidStateError:
            self.counts["ended by the server"] += 1
        call.cancel()

    async def half_open_streams(self) -> None:
        """Streams that say nothing, or end at once; some are left alone."""
        calls = []
        for _ in range(50):
            call = self._streaming(
                self.random.choice(("/kemu.v1.Api/Watch", "/kemu.v1.Api/Session", "/etcdserverpb.Watch/Watch"))
            )
            calls.append(call)
            if self.random.random() < 0.5:
                try:
                    await call.done_writing()
                    await self._read(call, 1)
                except grpc.aio.AioRpcError as error:
                    self.judge("an empty stream", error)
        for call in calls:
            call.cancel()

    async def broken_streams(self) -> None:
        """A stream that begins well and goes wrong."""
        choose = self.random
        session = api_pb2.SessionRequest()
        for number in range(choose.randrange(50)):
            call = session.calls.add(id=number)
            which = choose.choice([field.name for field in call.DESCRIPTOR.fields if field.message_type is not None])
            into = getattr(call, which)
            into.CopyFrom(self.message(type(into)))
        method = api_pb2.DESCRIPTOR.services_by_name["Api"].methods_by_name["Session"]
        data = session.SerializeToString()
        await self.send(method, data, data, self.damaged(data))

    async def nested_transactions(self) -> None:
        """Transactions in transactions, deeper than anybody needs, or with more operations."""
        inner = rpc_pb2.TxnRequest()
        if self.random.random() < 0.5:
            for number in range(500):
                inner.success.add().request_put.key = b"fuzz%d" % number
        depth = self.random.choice((3, 30, 90, 120))
        for _ in range(depth):
            outer = rpc_pb2.TxnRequest()
            outer.success.add().request_txn.CopyFrom(inner)
            inner = outer
            if inner.ByteSize() > 1 << 20:
                break
        method = rpc_pb2.DESCRIPTOR.services_by_name["KV"].methods_by_name["Txn"]
        await self.send(method, inner.SerializeToString())

    async def lists_in_pages(self) -> None:
        """Continue tokens and selectors that were made up."""
        method = api_pb2.DESCRIPTOR.services_by_name["Api"].methods_by_name["List"]
        for _ in range(10):
            request: Any = self.message(api_pb2.ListRequest)
            await self.send(method, request.SerializeToString())
