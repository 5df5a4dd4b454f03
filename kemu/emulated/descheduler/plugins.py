"""From a policy to its strategies: which runs at which extension point, with which filter."""

from __future__ import annotations

from typing import NamedTuple

from kemu.emulated.descheduler import balances, policies, strategies, utilization
from kemu.emulated.descheduler.clusters import Cluster
from kemu.emulated.descheduler.evictions import Evictor, Filter
from kemu.emulated.descheduler.strategies import Handle, Strategy

STRATEGIES: dict[str, type[Strategy]] = {
    "HighNodeUtilization": utilization.HighNodeUtilization,
    "LowNodeUtilization": utilization.LowNodeUtilization,
    "PodLifeTime": strategies.PodLifeTime,
    "RemoveDuplicates": balances.Duplicates,
    "RemoveFailedPods": strategies.FailedPods,
    "RemovePodsHavingTooManyRestarts": strategies.TooManyRestarts,
    "RemovePodsViolatingInterPodAntiAffinity": strategies.InterPodAntiAffinity,
    "RemovePodsViolatingNodeAffinity": strategies.NodeAffinity,
    "RemovePodsViolatingNodeTaints": strategies.NodeTaints,
    "RemovePodsViolatingTopologySpreadConstraint": balances.TopologySpread,
}


class Running(NamedTuple):
    """One profile as it runs."""

    name: str
    deschedule: list[Strategy]
    balance: list[Strategy]


def built(profile: policies.Profile, cluster: Cluster, evictor: Evictor) -> Running:
    """Raises :class:`kemu.emulated.descheduler.evictions.UnknownClassError`."""
    stated = {one["name"]: policies.restored_arguments(one["name"], one["args"]) for one in profile.plugin_config}
    args = stated.get(policies.DEFAULT_EVICTOR, policies.DefaultEvictor())
    handle = Handle(cluster, evictor, Filter(args, cluster))
    points = [
        [STRATEGIES[name](stated[name], handle) for name in profile.enabled(point)]
        for point in ("deschedule", "balance")
    ]
    return Running(profile.name, *points)
