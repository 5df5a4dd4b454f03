"""The check that a node group keeps its sizes."""

from __future__ import annotations

from typing import ClassVar

from kemu.lab.checks.autoscaling.machines import Machines
from kemu.lab.checks.history import History
from kemu.lab.checks.limits import Limits
from kemu.lab.checks.results import Fold, LimitedCheck, Result, seconds
from kemu.runtime.runlog.events import InstanceChanged
from kemu.runtime.words import counted


class NodeGroupsKeepTheirSizes(LimitedCheck):
    """A group never grows beyond its ``max``, and no machine that ran is deleted where fewer than ``min`` are left.

    Counted are the provider's instances but for those whose deletion was ordered. Instances that could not be created,
    or that are given up before they run, never counted as a loss.
    """

    id: ClassVar[str] = "node-groups-keep-their-sizes"
    folds: ClassVar[tuple[type[Fold], ...]] = (Machines,)

    def __init__(self, limits: Limits) -> None:
        self._groups = {group.name: group for group in limits.autoscaled.groups} if limits.autoscaled else {}
        self._judged = 0
        self._findings: list[str] = []

    def given(self, *folds: Machines) -> None:
        (self._machines,) = folds

    def on_event(self, time_ns: int, actor: str, event: InstanceChanged) -> None:
        group = self._groups.get(event.group)
        if group is None or event.what not in ("requested", "deleting"):
            return
        self._judged += 1
        size = len(self._machines.living(group.name))
        what = f"{seconds(time_ns)}: {group.name} has {counted(size, 'machine')}"
        if event.what == "requested" and size > group.max:
            self._findings.append(f"{what} with {event.node}, which is more than its max, {group.max}")
        elif event.what == "deleting" and size < group.min:
            self._findings.append(f"{what} without {event.node}, which is less than its min, {group.min}")

    def result(self, history: History) -> Result:
        good = f"{counted(self._judged, 'machine')} added or removed"
        return self.concluded(self._findings, self._judged, "no node group has changed its size", good)
