"""The etcd v3 API, as far as an API server needs it: one key at a time, compare and swap, ranges at a revision.

Values are the deterministic bytes of an object with ``metadata.resourceVersion`` empty: the store's modification
revision is the resource version. Knows nothing of kinds; :mod:`kemu.emulated.apiserver.watch.feed` holds the watch.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

import grpc

from kemu.emulated.apiserver import dry_runs
from kemu.emulated.apiserver.connections import Connection
from kemu.emulated.apiserver.deadlines import TIMEOUT_NS, Deadlines
from kemu.emulated.objects.wire import shared_objects, swaps, wires
from kemu.errors import Compacted, OutcomeUnknown
from kemu.messages.etcd import rpc_pb2, rpc_pb2_grpc
from kemu.runtime.env import Channel, Env

R = TypeVar("R")

_VERSION_TAGS = wires.VERSION_TAGS
_KEYS, _VALUES, _MASK = shared_objects.KEYS, shared_objects.VALUES, shared_objects.MASK

MAX_OPERATIONS = 128
"""Most operations of one transaction that only reads: etcd's default of ``--max-txn-ops``."""


class Entry:
    """One object as the store holds it: bytes and their revision, parsed only where one must look inside.

    A parsed pod takes ten times the memory of its bytes, and parsing takes less than a microsecond.
    """

    __slots__ = ("fields", "judged_by", "key", "revision", "selected", "value", "wire")

    wire: bytes
    """The object as clients get it."""

    def __init__(self, key: bytes, revision: int, value: bytes) -> None:
        self.key = key
        self.revision = revision
        self.value = value
        """The bytes in the store."""
        # `wires.version_suffix`, written out here because every change passes through.
        digits = b"%d" % revision
        self.wire = b"".join((value, _VERSION_TAGS[len(digits)], digits))
        self.fields: tuple[str, ...] = ()
        """Values of the fields that the watch cache has an index of."""
        self.judged_by: object = None
        """The selection that the object was held against last."""
        self.selected = False
        """What came of that."""

    def __getattr__(self, name: str) -> bytes:
        """``wire``, after :meth:`cool`."""
        if name != "wire":
            raise AttributeError(name)
        return self.value + wires.version_suffix(self.revision)

    def keep(self) -> None:
        """It is to be kept: by the key and the bytes that the store has, where that is in this process."""
        place = self.revision & _MASK
        value, key = _VALUES[place], _KEYS[place]
        if value == self.value:
            self.value = value
        if key == self.key:
            self.key = key

    def cool(self) -> None:
        """Few will ask for :attr:`wire` now: make it when it is asked for."""
        try:  # noqa: SIM105  (contextlib.suppress is three calls, for each change)
            del self.wire
        except AttributeError:
            pass

    @property
    def size(self) -> int:
        return len(self.value)

    def at(self, revision: int) -> bytes:
        """The object as clients get it, with another resource version: for the last state of what was deleted."""
        return Entry(self.key, revision, self.value).wire


NOT_WRITTEN = -1
"""In place of a revision: the object would have been created (:mod:`kemu.emulated.apiserver.dry_runs`)."""


Guard = tuple[bytes, int, bytes]


class Storage:
    """While the store cannot be reached, methods wait (:mod:`kemu.emulated.apiserver.connections`), and raise
    :class:`kemu.errors.ServerTimeout` when the time of the request is over. Those that write raise
    :class:`kemu.errors.OutcomeUnknown` when the store does not answer; all a plain :class:`kemu.errors.ApiError` when
    it refuses."""

    __slots__ = ("_answer", "_crash_steps", "_deadlines", "_hands_over", "_kv", "_maintenance", "_step", "connection")

    def __init__(self, env: Env, channel: Channel) -> None:
        self._step = env.step
        self._crash_steps = env.crash_steps
        self._deadlines = Deadlines(env)
        self._answer = self._deadlines.answer
        self.connection = Connection(env, channel)
        self._kv = rpc_pb2_grpc.KVStub(channel)  # type: ignore[no-untyped-call]
        self._maintenance = rpc_pb2_grpc.MaintenanceStub(channel)  # type: ignore[no-untyped-call]
        # What expects something else says so in a message.
        self._hands_over = getattr(channel, "takes_standins", False) and type(self)._expect is Storage._expect

    async def read(self, key: bytes) -> Entry | None:
        """The object now, linearizable; None when there is none."""
        request = rpc_pb2.RangeRequest(key=key)
        connection, deadlines = self.connection, self._deadlines
        while True:  # as `_read` and `_answer`, which would be two coroutines more: every refused write goes this way
            if connection.is_down:
                await connection.ready()
            call = self._kv.Range(request)
            if deadlines.timer is not None:  # Deadlines.begin, inlined
                deadlines.pending[call] = deadlines.clock.now_ns() + TIMEOUT_NS
            else:
                deadlines.begin(call)
            failed: grpc.aio.AioRpcError | OutcomeUnknown
            try:
                response = await call
                break
            except grpc.aio.AioRpcError as error:
                failed = error
            except asyncio.CancelledError:
                try:
                    deadlines.check(call)
                except OutcomeUnknown as error:
                    failed = error
                else:
                    raise
            finally:
                if deadlines.pending.pop(call, None) is None:
                    deadlines.forget(call)
            await connection.read_failed(failed)
        for pair in response.kvs:
            return Entry(key, pair.mod_revision, pair.value)
        return None

    async def range(
        self, start: bytes, end: bytes = b"", *, limit: int = 0, revision: int = 0
    ) -> rpc_pb2.RangeResponse:
        """A ``RangeResponse``, by key. ``revision`` 0: now. Raises :class:`kemu.errors.Compacted`."""
        request = rpc_pb2.RangeRequest(key=start, range_end=end, limit=limit, revision=revision)
        connection = self.connection
        while True:  # as `_read`, without one more coroutine
            if connection.is_down:
                await connection.ready()
            try:
                return await self._answer(self._kv.Range(request))
            except (grpc.aio.AioRpcError, OutcomeUnknown) as error:
                await connection.read_failed(error, revision)

    async def _read(self, method: Callable[[Any], Awaitable[R]], request: object) -> R:
        """What the store answers to a read, sent as often as it takes."""
        connection = self.connection
        while True:
            if connection.is_down:
                await connection.ready()
            try:
                return await self._answer(method(request))
            except (grpc.aio.AioRpcError, OutcomeUnknown) as error:
                await connection.read_failed(error)

    async def _write(self, method: Callable[[Any], Awaitable[R]], request: object) -> R:
        """What the store answers to a write, sent once."""
        connection = self.connection
        while True:
            if connection.is_down:
                await connection.ready()
            try:
                return await self._answer(method(request))
            except grpc.aio.AioRpcError as error:
                connection.write_failed(error)

    async def version(self) -> str:
        """Of etcd: ``3.6.12``."""
        response = await self._read(self._maintenance.Status, rpc_pb2.StatusRequest())
        return str(response.version)

    async def is_unchanged(self, start: bytes, end: bytes, since: int, until: int) -> bool:
        """Whether no key of the range was written or deleted after one revision, up to another. Raises
        :class:`kemu.errors.Compacted`."""
        # Which keys are gone is not told, but how many there are: a key that came in place of another one is new.
        request = rpc_pb2.RangeRequest(
            key=start, range_end=end, revision=until, min_mod_revision=since + 1, limit=1, keys_only=True
        )
        now = await self._read(self._kv.Range, request)
        if now.kvs:
            return False
        request = rpc_pb2.RangeRequest(key=start, range_end=end, revision=since, count_only=True)
        before = await self._read(self._kv.Range, request)
        return bool(now.count == before.count)

    async def revision(self) -> int:
        """The revision of the store now."""
        response = await self._read(self._kv.Range, rpc_pb2.RangeRequest(key=b"\0", count_only=True))
        return int(response.header.revision)

    async def swap(
        self, key: bytes, expected: int, value: bytes | None, guard: Guard | None = None
    ) -> tuple[int, Entry | None]:
        """Write ``value`` (None: delete the key) if the key's revision is still ``expected`` (0: if it is absent).

        Returns the new revision and None, or 0 and what is there instead. ``guard``: a second key, its expected
        revision (0: absent) and the value that it gets: of writers that share a guard only one gets through at a time.
        """
        if dry_runs.ACTIVE.get():
            return await self._pretend(key, expected)
        txn: rpc_pb2.TxnRequest | swaps.Swap
        if value and guard is None and self._hands_over:
            txn = swaps.Swap((key, expected, value))
        else:
            txn = self._transaction(key, expected, value, guard)
        connection, deadlines = self.connection, self._deadlines
        while True:  # as `_write` and `_answer`, which would be two coroutines more
            if connection.is_down:
                await connection.ready()
            call = self._kv.Txn(txn)
            if deadlines.timer is not None:  # Deadlines.begin, inlined
                deadlines.pending[call] = deadlines.clock.now_ns() + TIMEOUT_NS
            else:
                deadlines.begin(call)
            try:
                response = await call
                break
            except grpc.aio.AioRpcError as error:
                connection.write_failed(error)
            except asyncio.CancelledError:
                deadlines.check(call)
                raise
            finally:
                if deadlines.pending.pop(call, None) is None:
                    deadlines.forget(call)
        is_short = isinstance(response, swaps.Swapped)
        if is_short or response.succeeded:
            if self._crash_steps:
                self._step("after-commit")
            return response[0] if is_short else response.header.revision, None
        for pair in response.responses[0].response_range.kvs:
            return 0, Entry(key, pair.mod_revision, pair.value)
        return 0, None

    def _transaction(self, key: bytes, expected: int, value: bytes | None, guard: Guard | None) -> rpc_pb2.TxnRequest:
        """See :meth:`swap`."""
        txn = rpc_pb2.TxnRequest()
        self._expect(txn, key, expected)
        if value is None:
            txn.success.add().request_delete_range.key = key
        else:
            swaps.put(txn, key, value)
        if guard is not None:
            self._expect(txn, *guard[:2])
            swaps.put(txn, guard[0], guard[2])
        txn.failure.add().request_range.key = key
        return txn

    _expect = staticmethod(swaps.expect)

    async def _pretend(self, key: bytes, expected: int) -> tuple[int, Entry | None]:
        """As :meth:`swap`, which would have been successful: the revision stays what it is, or is NOT_WRITTEN."""
        entry = await self.read(key)
        if (0 if entry is None else entry.revision) != expected:
            return 0, entry
        return expected or NOT_WRITTEN, None

    async def read_all(self, keys: Sequence[bytes]) -> tuple[int, dict[bytes, Entry]]:
        """A revision, and what there is of these keys at that revision or later."""
        found: dict[bytes, Entry] = {}
        revision = 0
        for start in range(0, len(keys), MAX_OPERATIONS):
            txn = rpc_pb2.TxnRequest()
            for key in keys[start : start + MAX_OPERATIONS]:
                txn.success.add().request_range.key = key
            response = await self._read(self._kv.Txn, txn)
            revision = revision or response.header.revision
            for one in response.responses:
                for pair in one.response_range.kvs:
                    found[pair.key] = Entry(pair.key, pair.mod_revision, pair.value)
        return revision, found

    async def remove_all(self, keys: Sequence[bytes]) -> None:
        """Delete these keys, at most :data:`MAX_OPERATIONS`, whatever they hold by now."""
        txn = rpc_pb2.TxnRequest()
        for key in keys:
            txn.success.add().request_delete_range.key = key
        await self._write(self._kv.Txn, txn)

    async def compact(self, revision: int) -> None:
        """Compact the store at ``revision``. It is no error if that has been done already."""
        with contextlib.suppress(Compacted):
            await self._write(self._kv.Compact, rpc_pb2.CompactionRequest(revision=revision))
