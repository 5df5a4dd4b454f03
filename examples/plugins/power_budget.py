"""A scheduler plugin of one's own: no more electrical power on a node than its supply gives.

A node says in a label what its supply gives, a pod what it draws at most:

    example.com/watts: "300"

A node without the label has no limit; a pod without it draws ``defaultWatts``, an argument of the plugin.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from kemu.scheduler.framework import (
    MAX_SCORE,
    ArgumentError,
    Cycle,
    Event,
    Handle,
    Hint,
    NodeFilterPlugin,
    NodeInfo,
    NodeScorePlugin,
    Status,
    unresolvable,
    unschedulable,
)

LABEL = "example.com/watts"


class PowerBudget(NodeFilterPlugin, NodeScorePlugin):
    """Filters by what the supply still has, and prefers the node on which the greatest part of it would stay free."""

    def __init__(self, args: Mapping[str, Any], handle: Handle) -> None:
        super().__init__(args, handle)
        self.default_watts = args.get("defaultWatts", 0)
        if not isinstance(self.default_watts, int) or self.default_watts < 0:
            raise ArgumentError("defaultWatts", f"must be a whole number of at least 0: {self.default_watts!r}")

    def filter(self, pod: Cycle, node: NodeInfo) -> Status | None:
        supply = _supply(node)
        if supply is None:
            return None
        if self._drawn_by(pod.labels) > supply:
            return unresolvable("node(s) had too weak a power supply")
        if self._left(pod, node, supply) < 0:
            return unschedulable("node(s) had no power left")
        return None

    def score(self, pod: Cycle, node: NodeInfo) -> int:
        supply = _supply(node)
        if not supply:
            return 0
        return MAX_SCORE * self._left(pod, node, supply) // supply

    def events(self) -> Iterable[tuple[Event, Hint | None]]:
        """A pod that was refused may fit when another goes or needs less, and when a node comes or changes."""
        helpful = (Event.ASSIGNED_POD_DELETE, Event.ASSIGNED_POD_LABELS, Event.NODE_ADD, Event.NODE_LABELS)
        return [(event, None) for event in (*helpful, Event.POD_LABELS)]

    def _left(self, pod: Cycle, node: NodeInfo, supply: int) -> int:
        """What would be left with the pod on the node, in watts."""
        drawn = sum(self._drawn_by(other.labels) for other in node.pods.values())
        return supply - drawn - self._drawn_by(pod.labels)

    def _drawn_by(self, labels: Mapping[str, str]) -> int:
        text = labels.get(LABEL, "")
        return int(text) if text.isdecimal() else self.default_watts


def _supply(node: NodeInfo) -> int | None:
    text = node.labels.get(LABEL, "")
    return int(text) if text.isdecimal() else None
