"""The check of how fast the node lifecycle controller taints lost nodes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self

from kemu.checks.history import NODE_PREFIX, History, parsed
from kemu.checks.limits import DEFAULT, Limits
from kemu.checks.results import Check, Result, counted, seconds, several

_REGION, _ZONE = "topology.kubernetes.io/region", "topology.kubernetes.io/zone"
_CONTROLLER = "controller/node-lifecycle"
_KEYS = ("node.kubernetes.io/not-ready:NoExecute", "node.kubernetes.io/unreachable:NoExecute")
_SLACK_S = 1.0
"""From the decision until the taint is written."""


class NodeEvictionsKeepTheirRate(Check):
    """Lost nodes of one zone are tainted NoExecute no faster than the node lifecycle controller is allowed to.

    One taint at once, and then ``nodeEvictionRate`` nodes per second. A taint that only changes its kind, from
    not-ready to unreachable or back, is none of them; a controller that has lost its memory in a crash begins anew.
    """

    id: ClassVar[str] = "node-evictions-keep-their-rate"
    kinds: ClassVar[tuple[str, ...]] = ("store.txn", "node.tainted", "actor.started", "election.acquired")

    def __init__(self, limits: Limits = DEFAULT) -> None:
        self._rate = limits.node_eviction_rate
        self._zones: dict[str, str] = {}
        """By node."""
        self._room: dict[str, tuple[int, float]] = {}
        """By zone: a time, and the tokens that its rate limiter had then."""
        self._count = 0
        self._findings: list[str] = []

    @classmethod
    def within(cls, limits: Limits) -> Self:
        return cls(limits)

    def on_event(self, time_ns: int, actor: str, kind: str, data: Mapping[str, Any]) -> None:
        if kind == "store.txn":
            for op, key, value, _create, _version in data["changes"]:
                if op == 0 and key.startswith(NODE_PREFIX):
                    node = parsed.node(value)
                    labels = node.metadata.labels
                    self._zones[node.metadata.name] = f"{labels.get(_REGION, '')}:{labels.get(_ZONE, '')}"
        elif actor.startswith(_CONTROLLER):
            if kind == "node.tainted":
                self._tainted(time_ns, data)
            else:
                self._room.clear()

    def _tainted(self, time_ns: int, data: Mapping[str, Any]) -> None:
        if not any(taint in _KEYS for taint in data["add"]) or any(taint in _KEYS for taint in data["remove"]):
            return
        self._count += 1
        zone = self._zones.get(data["node"], "")
        most = 1 + self._rate * _SLACK_S
        before_ns, left = self._room.get(zone, (time_ns, most))
        left = min(most, left + self._rate * (time_ns - before_ns) / 1e9) - 1
        # Rounding must not look like haste.
        if left < -1e-6:
            where = f"zone {zone.removeprefix(':')}" if zone.strip(":") else "the only zone"
            self._findings.append(
                f"{seconds(time_ns)}: {data['node']} in {where} is tainted, faster than {self._rate:g} nodes per second"
            )
        self._room[zone] = (time_ns, max(left, 0.0))

    def result(self, history: History) -> Result:
        if self._findings:
            return Result(self.id, False, several(self._findings))
        if not self._count:
            return Result(self.id, None, "no node was lost")
        return Result(self.id, True, f"{counted(self._count, 'lost node')} tainted")
