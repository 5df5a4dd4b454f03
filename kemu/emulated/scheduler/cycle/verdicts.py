"""Combined verdicts: which filter rejected a node and what it said, in one integer.

A **combined verdict** is ``(place + 1) << 40 | verdict``, with the place of the filter in the profile's line-up; 0
where the node passes. Of two combined verdicts the smaller one belongs to the filter that is asked first.

:func:`with_nominated` is ``RunFilterPluginsWithNominatedPods`` (``pkg/scheduler/framework/runtime``) for one node; it
serves kept evaluations, complete filterings and simulations alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from kemu.emulated.scheduler.cache.cluster import Cluster
from kemu.emulated.scheduler.cache.columns import IntArray
from kemu.emulated.scheduler.cache.nodes import NodeInfo
from kemu.emulated.scheduler.cache.pods import PodInfo
from kemu.emulated.scheduler.framework.interfaces import FilterPlugin

SHIFT = 40
_VERDICT = (1 << SHIFT) - 1

Active = list[tuple[int, FilterPlugin, Any]]
"""Filters that have something to do for a pod: place in the line-up, plugin, its state; in order of the places."""


def combined(place: int, verdict: int) -> int:
    return (place + 1) << SHIFT | verdict


def split(verdict: int) -> tuple[int, int]:
    """Place of the plugin and its own verdict."""
    return (verdict >> SHIFT) - 1, verdict & _VERDICT


# One node -----------------------------------------------------------------------------------------------------------


def first(active: Active, node: NodeInfo) -> int:
    """The combined verdict of the first filter that rejects the node; 0 when none does."""
    for place, plugin, state in active:
        verdict = plugin.verdict(state, node)
        if verdict:
            return (place + 1) << SHIFT | verdict
    return 0


def with_nominated(
    active: Active,
    node: NodeInfo,
    others: Sequence[PodInfo],
    of_object: int = 0,
    *,
    cluster_wide: bool = False,
    again: bool = True,
) -> int:
    """The two passes of the filters: with ``others`` on the node, the pods nominated to it, then without them.

    ``of_object`` is the combined verdict of the filters that look at the node object alone and are not among the
    active ones. ``cluster_wide``: there are CLUSTER filters among these, whose states must learn of the added pods.
    ``again``: False leaves out the second pass, if there was a first one (:mod:`kemu.emulated.scheduler.variants`).
    """
    if others:
        crowded = node.copy()
        told = forked(active) if cluster_wide else active
        for other in others:
            crowded.add(other)
            if cluster_wide:
                for _place, plugin, state in told:
                    plugin.add_pod(state, crowded, other)
        verdict = first(told, crowded)
        if verdict or of_object or not again:
            return verdict if verdict and (not of_object or verdict < of_object) else of_object
    verdict = first(active, node)
    if of_object and (not verdict or of_object < verdict):
        return of_object
    return verdict


def forked(active: Active) -> Active:
    """The same filters with copies of their states, which may be told of pods added and removed."""
    return [(place, plugin, plugin.fork(state)) for place, plugin, state in active]


def nominated_above(node: NodeInfo, priority: int, pod: PodInfo | None) -> list[PodInfo]:
    """The pods nominated to the node that a pod of this priority must leave room for."""
    uid = pod.uid if pod is not None else None
    return [other for other in node.nominated if other.priority >= priority and other.uid != uid]


# Columns ------------------------------------------------------------------------------------------------------------


def fill(verdicts: IntArray, active: Active, cluster: Cluster) -> None:
    """Write the combined verdicts of several filters over 0 and over those of filters that are asked later."""
    for place, plugin, state in active:
        column = plugin.verdicts(state, cluster)
        if column is not None:
            merge(verdicts, place, column)


def merge(verdicts: IntArray, place: int, column: IntArray) -> None:
    """Take one filter's verdicts into combined ones, in place."""
    rejected = np.flatnonzero(column)
    if not len(rejected):
        return
    own = column[rejected] | np.int64((place + 1) << SHIFT)
    before = verdicts[rejected]
    verdicts[rejected] = np.where((before == 0) | (own < before), own, before)


_FEW_VERDICTS = 6


def tally_of(verdicts: IntArray) -> dict[int, int]:
    """How many nodes have which combined verdict."""
    rejected = verdicts[np.flatnonzero(verdicts)]
    tally = {0: len(verdicts) - len(rejected)} if len(rejected) < len(verdicts) else {}
    counted: dict[int, int] = {}
    for _ in range(_FEW_VERDICTS):  # as a rule there are two or three, and np.unique sorts all of them
        if not len(rejected):
            break
        value = rejected[0]
        others = rejected[rejected != value]
        counted[int(value)] = len(rejected) - len(others)
        rejected = others
    if len(rejected):
        values, counts = np.unique(rejected, return_counts=True)
        counted.update(zip(values.tolist(), counts.tolist(), strict=True))
    return tally | dict(sorted(counted.items()))
