"""The kubelet's lease, and when it may state its heartbeats instead of sending them
(:mod:`kemu.emulated.objects.heartbeats`).

The times of all renewals follow from a schedule that is drawn once. While nothing can happen to the kubelet or its
connection, it writes the schedule itself, and its timer waits for the first renewal after that. Mirrors
``component-helpers/apimachinery/lease``.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

from kemu import errors
from kemu.emulated.client import clients
from kemu.emulated.kubelet.settings import kubelet_configurations
from kemu.emulated.objects import heartbeats, meta
from kemu.emulated.objects.wire import shared_objects
from kemu.messages.k8s import coordination_v1_pb2
from kemu.runtime.env import SECOND_NS, Env, Timer

NAMESPACE = "kube-node-lease"
MAX_UPDATES = 5
"""How often a renewal is tried at once, before the lease is read or created anew (``maxUpdateRetries``)."""
JITTER_PERCENT = 4
"""Renewals come up to so much later than their interval (``wait.JitterUntil``)."""


class Calms:
    """When a kubelet may state its heartbeats."""

    __slots__ = ("_arrives_ns", "_epoch_ns", "_restless")

    def __init__(self, standing: Mapping[str, Any] | None, epoch_ns: int) -> None:
        """``standing``: ``restless``, pairs of times in ns between which heartbeats must be sent (None: from then on),
        in their order and apart; and ``arrives_ns``, see :class:`kemu.emulated.objects.heartbeats.Statement`. None:
        never."""
        self._epoch_ns = epoch_ns
        self._restless: list[tuple[int, int | None]] | None = None
        self._arrives_ns = 0
        if standing is not None:
            self._restless = [(begin, end) for begin, end in standing["restless"]]
            self._arrives_ns = standing["arrives_ns"]

    def statement(self, schedule: heartbeats.Schedule, now_ns: int) -> heartbeats.Statement | None:
        """None: heartbeats must be sent now."""
        if self._restless is None:
            return None
        until: int | None = None
        for begin, end in self._restless:
            if end is None or now_ns < end:
                if begin <= now_ns:
                    return None
                until = begin + self._epoch_ns
                break
        return heartbeats.Statement(schedule, until, self._arrives_ns)


def calms(standing: Mapping[str, Any] | None, epoch_ns: int) -> Calms:
    """One for all kubelets to which nothing can happen."""
    if standing is None or standing["restless"]:
        return Calms(standing, epoch_ns)
    return _always(standing["arrives_ns"], epoch_ns)


@functools.cache
def _always(arrives_ns: int, epoch_ns: int) -> Calms:
    return Calms({"restless": (), "arrives_ns": arrives_ns}, epoch_ns)


class OwnLease:
    """Own lease of one node. Nothing is renewed by itself before :meth:`start`."""

    __slots__ = ("_calms", "_client", "_clock", "_created", "_duration_s", "_env", "_lease", "_name",
                 "_owner", "_renewing", "_schedule", "_statement", "_timer")  # fmt: skip

    def __init__(
        self,
        env: Env,
        client: clients.Client,
        config: kubelet_configurations.Settings,
        name: str,
        calms: Calms,
        owner: Callable[[], Any],
    ) -> None:
        """``owner``: the Node, to whom the lease belongs."""
        self._env = env
        self._clock = env.clock
        self._client = client
        self._duration_s = config.configuration.node_lease_duration_seconds
        self._name = name
        self._calms = calms
        self._owner = owner
        self._lease: shared_objects.Held | None = None
        """As it was last answered; bytes take a tenth of the memory, and there is one for every node."""
        self._created = False
        """It was there once."""
        self._renewing = False
        self._schedule: heartbeats.Schedule | None = None
        self._statement: heartbeats.Statement | None = None
        """What the latest renewal says."""
        self._timer: Timer | None = None

    def plan(self) -> None:
        """Draw the times of the renewals."""
        random, every = self._env.random, self._duration_s * SECOND_NS // 4
        first = self._now() + int(random.random() * every)
        self._schedule = heartbeats.Schedule(first, every, every * JITTER_PERCENT // 100, random.getrandbits(64))

    def start(self) -> None:
        """From now on, each at its time."""
        self._wait(self._now())

    @property
    def _epoch_ns(self) -> int:
        """In real time it is known for good when set-up ends."""
        return self._clock.epoch_unix_s * SECOND_NS

    def _now(self) -> int:
        return self._epoch_ns + self._clock.now_ns()

    def _wait(self, begin: int) -> None:
        """Until the first renewal at ``begin`` or later that has to be sent."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._statement is not None:
            if self._statement.until is None:
                return
            begin = max(begin, self._statement.until)
        assert self._schedule is not None, "plan() comes first"
        when_ns = self._schedule.next_from(begin) - self._epoch_ns
        self._timer = self._clock.call_at_ns(when_ns, self._renew_due, background=True)

    def _renew_due(self) -> None:
        self._statement = None
        self._wait(self._now() + 1)
        if not self._renewing:
            self._renewing = True
            self._env.spawn(self._renew(), "renew lease")

    async def _renew(self) -> None:
        await self.renew()
        self._renewing = False
        if self._statement is not None:
            self._wait(self._now())

    async def renew(self) -> None:
        """Create the lease or renew it. Whatever comes of it, a kubelet goes on: the lease just grows older."""
        try:
            await self._write()
        except errors.ApiError:
            self._lease = None
            self._statement = None

    async def _write(self) -> None:
        if self._lease is not None:
            lease = await self._update(self._lease.get().SerializeToString(deterministic=True))
        elif self._created and (known := await self._read()):
            lease = await self._update(known)
        else:
            lease = await self._create()
        self._lease = shared_objects.OBJECTS.hold(lease)
        self._created = True

    async def _read(self) -> bytes:
        """Empty: it is gone."""
        try:
            lease = await self._client.get("leases", self._name, NAMESPACE)
        except errors.NotFound:
            return b""
        return lease.SerializeToString(deterministic=True)

    async def _update(self, known: bytes) -> coordination_v1_pb2.Lease:
        """``retryUpdateLease``: again at once while an API server that is overloaded refuses it."""
        attempts = MAX_UPDATES
        while True:
            attempts -= 1
            try:
                return await self._client.update(self._renewed(coordination_v1_pb2.Lease.FromString(known)))
            except errors.TooManyRequests:
                if not attempts:
                    raise

    async def _create(self) -> coordination_v1_pb2.Lease:
        client = self._client
        lease = coordination_v1_pb2.Lease()
        lease.metadata.name = self._name
        lease.metadata.namespace = NAMESPACE
        lease.metadata.ownerReferences.append(meta.owner_reference(self._owner(), "v1", "Node", controller=False))
        creation = client.create(self._renewed(lease))
        del lease  # it takes more memory than its bytes
        try:
            return await creation
        except errors.AlreadyExists:
            return await client.update(self._renewed(await client.get("leases", self._name, NAMESPACE)))

    def _renewed(self, lease: coordination_v1_pb2.Lease) -> coordination_v1_pb2.Lease:
        lease.spec.holderIdentity = self._name
        lease.spec.leaseDurationSeconds = self._duration_s
        meta.set_time(lease.spec.renewTime, self._clock.unix_ns())
        assert self._schedule is not None, "plan() comes first"
        self._statement = self._calms.statement(self._schedule, self._clock.now_ns())
        heartbeats.state(lease, self._statement)
        return lease
