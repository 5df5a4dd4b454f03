"""The check of how fast the node lifecycle controller taints lost nodes."""

from __future__ import annotations

import bisect
from typing import ClassVar

from kemu.lab.checks.history import NODE_PREFIX, History, parsed
from kemu.lab.checks.limits import DEFAULT, Limits
from kemu.lab.checks.results import LimitedCheck, Result, seconds, several
from kemu.runtime.runlog.events import ActorStarted, LeaseAcquired, NodeTainted, Transaction
from kemu.runtime.words import counted

_Events = Transaction | NodeTainted | ActorStarted | LeaseAcquired

_REGION, _ZONE = "topology.kubernetes.io/region", "topology.kubernetes.io/zone"
_CONTROLLER = "controller/node-lifecycle"
_KEYS = ("node.kubernetes.io/not-ready:NoExecute", "node.kubernetes.io/unreachable:NoExecute")


class NodeEvictionsKeepTheirRate(LimitedCheck):
    """Lost nodes of one zone are tainted NoExecute no faster than the node lifecycle controller is allowed to.

    One taint at once, and then ``nodeEvictionRate`` nodes per second. What counts is when the controller decides: its
    limiter (``TryAccept`` in the RateLimitedTimedQueue) knows nothing of how long the writes take. A taint that only
    changes its kind, from not-ready to unreachable or back, is none of them; a controller that has lost its memory in a
    crash begins anew, and so does a zone that has had no nodes.
    """

    id: ClassVar[str] = "node-evictions-keep-their-rate"
    keys: ClassVar[tuple[str, ...]] = (NODE_PREFIX,)

    def __init__(self, limits: Limits = DEFAULT) -> None:
        self._rate = limits.node_eviction_rate
        self._zones: dict[str, str] = {}
        """By node, gone ones included."""
        self._present: dict[str, dict[str, None]] = {}
        """By zone: its nodes."""
        self._emptied: dict[str, list[int]] = {}
        """By zone: when its last node went."""
        self._lives: dict[str, int] = {}
        """By controller: how often it has begun anew."""
        self._taints: list[tuple[int, str, str, tuple[str, int, int]]] = []
        """When each was decided, the node, the zone, and what tells limiters of that zone apart."""

    def on_event(self, time_ns: int, actor: str, event: _Events) -> None:
        if isinstance(event, Transaction):
            for op, key, value, _create, _version in event.changes:
                if key.startswith(NODE_PREFIX):
                    self._node_changed(time_ns, key.removeprefix(NODE_PREFIX), value if op == 0 else None)
        elif actor.startswith(_CONTROLLER):
            if isinstance(event, NodeTainted):
                self._tainted(actor, event)
            else:
                self._lives[actor] = self._lives.get(actor, 0) + 1

    def _node_changed(self, time_ns: int, name: str, value: bytes | None) -> None:
        before = self._zones.get(name)
        after = None
        if value is not None:
            labels = parsed.node(value).metadata.labels
            after = self._zones[name] = f"{labels.get(_REGION, '')}:{labels.get(_ZONE, '')}"
            self._present.setdefault(after, {})[name] = None
        if before is not None and before != after and name in self._present[before]:
            del self._present[before][name]
            if not self._present[before]:
                self._emptied.setdefault(before, []).append(time_ns)

    def _tainted(self, actor: str, event: NodeTainted) -> None:
        if not any(taint in _KEYS for taint in event.add) or any(taint in _KEYS for taint in event.remove):
            return
        name, decided_ns = event.node, event.start
        zone = self._zones.get(name, "")
        emptied = bisect.bisect_right(self._emptied.get(zone, ()), decided_ns)
        self._taints.append((decided_ns, name, zone, (actor, self._lives.get(actor, 0), emptied)))

    def _findings(self) -> list[str]:
        findings = []
        room: dict[tuple[str, tuple[str, int, int]], tuple[int, float]] = {}
        """By limiter: a time, and the tokens that it had then."""
        for decided_ns, name, zone, limiter in sorted(self._taints):
            before_ns, left = room.get((zone, limiter), (decided_ns, 1.0))
            left = min(1.0, left + self._rate * (decided_ns - before_ns) / 1e9) - 1
            # Rounding must not look like haste.
            if left < -1e-6:
                where = f"zone {zone.removeprefix(':')}" if zone.strip(":") else "the only zone"
                findings.append(
                    f"{seconds(decided_ns)}: {name} in {where} is tainted, faster than {self._rate:g} nodes per second"
                )
            room[zone, limiter] = (decided_ns, max(left, 0.0))
        return findings

    def result(self, history: History) -> Result:
        if findings := self._findings():
            return Result(self.id, False, several(findings))
        if not self._taints:
            return Result(self.id, None, "no node was lost")
        return Result(self.id, True, f"{counted(len(self._taints), 'lost node')} tainted")
