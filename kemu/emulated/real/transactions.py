"""What a real etcd does, as ``store.txn``: the watch on all of its keys.

A real kube-apiserver keeps some kinds under other names than kemu, each object in the envelope of Kubernetes' protobuf,
and one without a field that it fills in whenever it reads the object; here all are as kemu's own store has them.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Iterable

import grpc.aio

from kemu.emulated.objects import resources
from kemu.emulated.objects.wire import envelopes, key_ranges
from kemu.messages.etcd import rpc_pb2, rpc_pb2_grpc
from kemu.messages.k8s import core_v1_pb2
from kemu.runtime.host import wall_clocks
from kemu.runtime.runlog.events import Transaction

RETRY_S = 0.2
_OPTIONS = (("grpc.max_receive_message_length", -1), ("grpc.max_reconnect_backoff_ms", 500))
_PLACES = (
    ("/registry/minions/", "/registry/nodes/"),
    ("/registry/services/specs/", "/registry/services/"),
    ("/registry/services/endpoints/", "/registry/endpoints/"),
    ("/registry/controllers/", "/registry/replicationcontrollers/"),
    ("/registry/ingress/", "/registry/ingresses/"),
)
_PODS = "/registry/pods/"
_FILLED_IN = {"/registry/podgroups/": ((2, 5), b"Pod")}
"""By place: a field that is not stored, and its default. Without the feature WorkloadAwarePreemption,
``spec.disruptionMode`` is dropped from new PodGroups."""


class KnownPods:
    """What programs do not say of the pods that they speak of."""

    def __init__(self) -> None:
        self.uids: dict[str, str] = {}
        """By ``namespace/name``: the latest of that name."""
        self.bound: dict[str, int] = {}
        """By uid: the revision at which a pod was bound."""
        self.last: dict[str, int] = {}
        """By ``namespace/name``: the last revision that changed it."""
        self.seen_ns: dict[str, int] = {}
        """By uid: when the transaction was told that created it; nothing is told of a pod before."""

    def changed(self, name: str, revision: int, pod: core_v1_pb2.Pod | None, unix_ns: int) -> None:
        """``pod``: as it is now; None: it is gone."""
        self.last[name] = revision
        if pod is None:
            return
        uid = self.uids[name] = pod.metadata.uid
        self.seen_ns.setdefault(uid, unix_ns)
        if pod.spec.nodeName:
            self.bound.setdefault(uid, revision)


class Transactions:
    """Follows one etcd from its first revision on."""

    def __init__(self, address: str, hear: Callable[[int, Transaction], object]) -> None:
        """``address``: host:port. ``hear``: Unix time in ns, transaction."""
        self._address = address
        self._hear = hear
        self._next = 1
        """The first revision that has not come."""
        self._task: asyncio.Task[None] | None = None
        self.pods = KnownPods()

    def start(self) -> None:
        self._task = asyncio.create_task(self._run(), name="watch of etcd")

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    async def _run(self) -> None:
        async with grpc.aio.insecure_channel(self._address, options=_OPTIONS) as channel:
            watch = rpc_pb2_grpc.WatchStub(channel).Watch  # type: ignore[no-untyped-call]
            while True:
                try:
                    await self._follow(watch())
                except grpc.aio.AioRpcError:
                    await asyncio.sleep(RETRY_S)

    async def _follow(self, call: grpc.aio.StreamStreamCall) -> None:
        request = rpc_pb2.WatchRequest()
        create = request.create_request
        create.key, create.range_end = resources.REGISTRY, key_ranges.prefix_end(resources.REGISTRY)
        create.start_revision = self._next
        await call.write(request)
        async for response in call:
            if response.canceled:
                # What was compacted away is lost: it goes on with what there is.
                self._next = max(self._next, response.compact_revision)
                return
            self._record(response.events)

    def _record(self, events: Iterable[rpc_pb2.Event]) -> None:  # type: ignore[name-defined]
        now_ns = wall_clocks.wall_ns()
        for revision, changes in itertools.groupby(events, key=lambda event: event.kv.mod_revision):
            rows = []
            for event in changes:
                key = _key(event.kv.key.decode("utf-8", "backslashreplace"))
                value = None if event.type else _value(key, event.kv.value)
                if key.startswith(_PODS):
                    pod = None if value is None else core_v1_pb2.Pod.FromString(value)
                    self.pods.changed(key.removeprefix(_PODS), revision, pod, now_ns)
                rows.append([int(event.type), key, value, event.kv.create_revision, event.kv.version])
            self._next = revision + 1
            self._hear(now_ns, Transaction(rev=revision, changes=rows))


def _key(key: str) -> str:
    for real, ours in _PLACES:
        if key.startswith(real):
            return ours + key.removeprefix(real)
    return key


def _value(key: str, value: bytes) -> bytes:
    """The message in the envelope; what is in none (objects of custom resources, as JSON) stays."""
    if not value.startswith(envelopes.MAGIC):
        return value
    raw = envelopes.unwrap(value).raw
    for place, (path, default) in _FILLED_IN.items():
        if key.startswith(place):
            return envelopes.with_text(raw, path, default)
    return raw
