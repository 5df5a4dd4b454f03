"""Plugins that a profile enables for only one of two related points: PreFilter and Filter, or PreScore and Score.

In kube-scheduler the first point writes state that the second reads. Where only the second is enabled, some plugins
compute what they need, and others fail, and the attempt with them. For
:mod:`kemu.emulated.scheduler.cycle.profiles`. The tables follow the plugins of kube-scheduler v1.36.
"""

from __future__ import annotations

from typing import Any

from kemu.emulated.scheduler.framework.interfaces import (
    SKIP,
    Cycle,
    FilterPlugin,
    Narrowed,
    NodeFilterPlugin,
    Plugin,
    ScorePlugin,
)
from kemu.emulated.scheduler.framework.statuses import ERROR, Status

_FILTERS_NEED_STATE = {
    "NodeResourcesFit": "error reading",
    "NodePorts": "reading",
    "VolumeRestrictions": "cannot read",
    "VolumeBinding": "",
    "PodTopologySpread": "reading",
    "InterPodAffinity": "error reading",
    "DynamicResources": "",
}
"""Filters that fail without their PreFilter, and the beginning of the error."""
_PRE_FILTERS = (*_FILTERS_NEED_STATE, "NodeAffinity", "NodeVolumeLimits", "VolumeZone")

_SCORES_NEED_STATE = {"TaintToleration": "reading", "PodTopologySpread": "error reading", "InterPodAffinity": "reading"}
_PRE_SCORES = (*_SCORES_NEED_STATE, "NodeAffinity", "NodeResourcesFit", "NodeResourcesBalancedAllocation")


def has_pre_filter(plugin: Plugin) -> bool:
    """Whether the plugin takes part in PreFilter. Otherwise ``prepare`` is part of its Filter."""
    if isinstance(plugin, NodeFilterPlugin):
        return type(plugin).pre_filter is not NodeFilterPlugin.pre_filter
    return plugin.name in _PRE_FILTERS and isinstance(plugin, FilterPlugin)


def has_pre_score(plugin: Plugin) -> bool:
    return plugin.name in _PRE_SCORES and isinstance(plugin, ScorePlugin)


def filter_failure(plugin: Plugin) -> Status | None:
    """How Filter without PreFilter fails; None if it does not."""
    how = _FILTERS_NEED_STATE.get(plugin.name)
    if how is None:
        return None
    cause = f'{how} "PreFilter{plugin.name}" from cycleState' if how else "not found"
    if how.endswith("reading"):
        cause += ": not found"
    text = f'running "{plugin.name}" filter plugin: {cause}'
    return Status(ERROR, (text,), plugin.name)


def score_failure(plugin: Plugin) -> Status | None:
    """How Score without PreScore fails; None if it does not."""
    how = _SCORES_NEED_STATE.get(plugin.name)
    if how is None:
        return None
    cause = f'{how} "PreScore{plugin.name}" from cycleState: not found'
    return Status(ERROR, (f'running Score plugins: plugin "{plugin.name}" failed with: {cause}',), plugin.name)


class PreFilterAlone(FilterPlugin):
    """The first half of a filter: may reject a pod as a whole and narrow the nodes, but filters none."""

    def __init__(self, plugin: FilterPlugin) -> None:
        super().__init__(plugin.args, plugin.handle)
        self.plugin = plugin
        self.name = plugin.name  # type: ignore[misc]
        self.scope = plugin.scope  # type: ignore[misc]

    def prepare(self, cycle: Cycle) -> Any:
        answer = self.plugin.prepare(cycle)
        if isinstance(answer, Status):
            return answer
        return Narrowed(answer.names) if isinstance(answer, Narrowed) else SKIP
