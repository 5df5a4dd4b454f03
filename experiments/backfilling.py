"""A scheduler plugin that keeps nodes for a gang that waits: which small pods may pass it (back-filling).

kube-scheduler lets all of them pass: a gang that does not fit leaves the active queue, whatever sorts that.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from kemu.scheduler.framework import ArgumentError, Cycle, Event, Handle, Hint, MaskFilterPlugin, unresolvable


class Backfilling(MaskFilterPlugin):
    """For each member that gangs lack which are not less important than a pod, ``keep`` nodes, those with the least CPU
    requested, do not take it. Enough of them hold back every pod that is in no gang."""

    rejection = unresolvable("node(s) were kept for a gang that waits")

    def __init__(self, args: Mapping[str, Any], handle: Handle) -> None:
        super().__init__(args, handle)
        self._keep = args.get("keep", 1)
        if not isinstance(self._keep, int) or self._keep < 1:
            raise ArgumentError("keep", f"must be a whole number of at least 1: {self._keep!r}")

    def mask(self, pod: Cycle, cluster: Any) -> Any:
        passes = np.ones(len(cluster), dtype=np.bool_)
        if not pod.message.spec.HasField("schedulingGroup"):
            requested = cluster.resources().requested[cluster.names.names.index("cpu"), : len(cluster)]
            passes[np.argsort(requested, kind="stable")[: self._keep * self._missing(pod.priority)]] = False
        return passes

    def _missing(self, priority: int) -> int:
        """How many members the gangs lack that have come and are not less important."""
        groups, found = self.handle.groups, 0
        if groups is None:
            return 0
        for key, group in groups.objects.items():
            state, size = groups.live(key), group.spec.schedulingPolicy.gang.minCount
            if state is not None and any(pod.spec.priority >= priority for pod in state.pods.values()):
                found += max(0, size - state.scheduled_count)
        return found

    def events(self) -> Iterable[tuple[Event, Hint | None]]:
        """A gang that has started needs no nodes any more."""
        return [(Event.ASSIGNED_POD_ADD, lambda pod, before, after: after.spec.HasField("schedulingGroup"))]
