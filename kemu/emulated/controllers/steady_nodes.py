"""Nodes that the node lifecycle controller can skip: ready ones whose heartbeats are known beforehand.

The kubelet of such a node states when it will renew its lease (:mod:`kemu.emulated.objects.heartbeats`), so every look
would find the node healthy. :mod:`kemu.emulated.controllers.node_lifecycle` skips it until its Node or its Lease
changes, or the statement ends. What the skipped looks would have left in memory is computed then.
"""

from __future__ import annotations

import heapq
from collections import deque
from dataclasses import dataclass, replace

from kemu.emulated.controllers import node_health
from kemu.emulated.controllers.node_health import Health, NodeLifecycle, NodeView
from kemu.emulated.objects import heartbeats
from kemu.messages.k8s import coordination_v1_pb2, core_v1_pb2

_FEW = 64
"""So many entries that are out of date do no harm."""
_LOST_TAINTS = tuple((key, node_health.NO_EXECUTE) for key in (node_health.NOT_READY, node_health.UNREACHABLE))


@dataclass(frozen=True, slots=True)
class Known:
    """What the watches have brought of a node."""

    node: core_v1_pb2.Node
    lease: coordination_v1_pb2.Lease | None
    """None: there is none."""
    written: NodeView
    """As the objects say."""
    epoch_ns: int
    """Unix time of virtual time 0."""
    later_ns: int
    """How much later than in the API server's cache things are seen here."""

    def seen(self, now_ns: int) -> NodeView:
        """With the heartbeats that would have been seen by now."""
        written, now = self.written, self.epoch_ns + now_ns
        if node_health.READY not in written.conditions:
            heartbeat_ns = written.heartbeat_ns
        else:
            heartbeat_ns = heartbeats.reported_ns(self.node, written.heartbeat_ns, now, self.later_ns)
        lease_ns = self.renewed_ns(now_ns)
        if heartbeat_ns == written.heartbeat_ns and lease_ns == written.lease_ns:
            return written
        return replace(written, heartbeat_ns=heartbeat_ns, lease_ns=lease_ns)

    def renewed_ns(self, now_ns: int) -> int | None:
        if self.lease is None:
            return None
        return heartbeats.renewed_ns(self.lease, self.epoch_ns + now_ns, self.later_ns)


@dataclass(frozen=True, slots=True)
class _Steady:
    known: Known
    health: Health
    """As it was when the node became steady."""
    look: int
    """The number of that look."""
    until_ns: int | None


class SteadyNodes:
    """``by_zone``: how many there are that count in their zone."""

    def __init__(self, health: NodeLifecycle, grace_ns: int) -> None:
        self.by_zone: dict[str, int] = {}
        self._health = health
        self._grace_ns = grace_ns
        self._steady: dict[str, _Steady] = {}
        self._looks: deque[int] = deque()
        """Times of the latest looks, which may still decide what is remembered of a node."""
        self._first = 0
        """The number of the first of them."""
        self._ends: list[tuple[int, str]] = []
        """A heap of when statements end; some are out of date."""
        self._longest_ns = 0
        """Pause between two heartbeats of a steady node."""

    def __contains__(self, name: str) -> bool:
        return name in self._steady

    def __len__(self) -> int:
        return len(self._steady)

    def begin(self, now_ns: int) -> None:
        """A look begins: wake those that it has to see."""
        while self._ends and self._ends[0][0] <= now_ns:
            self.wake(heapq.heappop(self._ends)[1])
        if self._looks and now_ns - self._looks[-1] + self._longest_ns > self._grace_ns:
            # The looks come too seldom for anything to be certain.
            for name in list(self._steady):
                self.wake(name)
        self._looks.append(now_ns)
        # A renewal is younger than the grace period, or the node would not be steady.
        while self._looks[0] < now_ns - 3 * self._grace_ns:
            self._looks.popleft()
            self._first += 1

    def settle(self, view: NodeView, known: Known) -> None:
        """A node has just been looked at: perhaps it need not be for a while."""
        if view.conditions.get(node_health.READY) != node_health.TRUE or known.lease is None:
            return
        if any(taint in view.taints for taint in _LOST_TAINTS):
            return
        # Reports of its status may be sent: they change the Node, which wakes it.
        renewals = heartbeats.stated(known.lease)
        if renewals is None:
            return
        longest_ns = renewals.schedule.every + renewals.schedule.jitter
        now_ns = self._looks[-1]
        period_ns = now_ns - self._looks[-2] if len(self._looks) > 1 else 0
        until_ns = None if renewals.until is None else renewals.until - known.epoch_ns
        if longest_ns + period_ns > self._grace_ns or (until_ns is not None and until_ns <= now_ns):
            return
        self._longest_ns = max(self._longest_ns, longest_ns)
        self._steady[view.name] = _Steady(known, self._health.release(view.name), self._last_number(), until_ns)
        if not view.excluded:
            self.by_zone[view.zone] = self.by_zone.get(view.zone, 0) + 1
        if until_ns is not None:
            heapq.heappush(self._ends, (until_ns, view.name))
            if len(self._ends) > 2 * len(self._steady) + _FEW:
                self._ends = [
                    (steady.until_ns, name) for name, steady in self._steady.items() if steady.until_ns is not None
                ]
                heapq.heapify(self._ends)

    def wake(self, name: str) -> None:
        """Something is new, or will be: look at this node again, if it was steady."""
        steady = self._steady.pop(name, None)
        if steady is None:
            return
        known, health = steady.known, steady.health
        if not known.written.excluded:
            zone = known.written.zone
            self.by_zone[zone] -= 1
            if not self.by_zone[zone]:
                del self.by_zone[zone]
        # What is remembered follows from the look that saw the latest renewal for the first time.
        looks = list(self._looks)
        oldest = max(steady.look - self._first, 0)
        at = len(looks) - 1
        while at > oldest:
            renewed_ns = known.renewed_ns(looks[at])
            if renewed_ns != known.renewed_ns(looks[at - 1]):
                health = Health(known.seen(looks[at]).heartbeat_ns, renewed_ns, looks[at])
                break
            at -= 1
        self._health.resume(name, health, ((when_ns, known.seen(when_ns)) for when_ns in looks[at + 1 :]))

    def _last_number(self) -> int:
        return self._first + len(self._looks) - 1
