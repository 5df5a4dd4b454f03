"""The parts of a cluster in which a group may be placed, and which of them is best.

Mirrors ``podGroupSchedulingPlacementAlgorithm`` with the plugins TopologyPlacementGenerator, PodGroupPodsCount and
NodeResourcesFit (feature gate TopologyAwareWorkloadScheduling). The nodes with one value of the label that the PodGroup
names are one placement; members that have a node already bind the group to theirs. How many pods a placement takes and
how full it gets are its score; a lot decides between equal ones.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from kemu.emulated.objects import meta
from kemu.emulated.scheduler.cache.cluster import Cluster
from kemu.emulated.scheduler.cache.nodes import NodeInfo
from kemu.emulated.scheduler.cache.pod_groups import Groups, Key
from kemu.emulated.scheduler.cache.pods import CPU, MEMORY, PodInfo, is_scalar_resource
from kemu.emulated.scheduler.cycle.decisions import Decider
from kemu.emulated.scheduler.framework.interfaces import MAX_SCORE, Handle
from kemu.emulated.scheduler.groups.attempts import UNSCHEDULABLE, Attempts, GroupResult
from kemu.emulated.scheduler.plugins.node_resources_fit import NodeResourcesFit
from kemu.emulated.scheduler.queue.queues import QueuedPod


async def best(
    handle: Handle,
    groups: Groups,
    key: Key,
    members: list[QueuedPod],
    decider: Decider,
    attempts: Attempts,
    preempts: bool,
) -> GroupResult:
    """The result of the attempt in the best placement."""
    if groups.objects.get(key) is None:
        return GroupResult([], error=f'podgroup.scheduling.k8s.io "{key[1]}" not found')
    found = _placements(handle, groups, key)
    if isinstance(found, str):
        return GroupResult([], error=found)
    if not found:
        return GroupResult([], "no feasible placements found")
    state = groups.live(key)
    scheduled = 0 if state is None else state.scheduled_count
    results: list[tuple[list[int] | None, GroupResult]] = []
    for rows in found.values():
        with _within(decider, rows):
            result = await attempts.run(key, members, preempts=preempts)
        if result.error:
            return result
        results.append((rows, result))
    possible = [(rows, one) for rows, one in results if one.fits or one.awaits_preemption]
    if not possible:
        message = f"0/{len(found)} placements are available, first placement status: {UNSCHEDULABLE}"
        return results[0][1]._replace(message=message)
    if len(possible) == 1:
        return possible[0][1]
    counts = [scheduled + sum(1 for one in result.members if one.node) for _rows, result in possible]
    scores = [count * MAX_SCORE // max(counts) for count in counts]
    fit = decider.profile.plugins.get("NodeResourcesFit")
    if isinstance(fit, NodeResourcesFit):
        for place, (rows, result) in enumerate(possible):
            placed = [pod for pod, one in zip(members, result.members, strict=False) if one.node]
            scores[place] += _fullness(handle.cluster, fit, placed, rows)
    top = [place for place, score in enumerate(scores) if score == max(scores)]
    return possible[top[0] if len(top) == 1 else top[handle.random.randrange(len(top))]][1]


def _fullness(cluster: Cluster, fit: NodeResourcesFit, placed: list[QueuedPod], rows: list[int] | None) -> int:
    """How much of the placement is requested with these pods, in percent (``scorePlacement`` of NodeResourcesFit)."""
    nodes = cluster.rows if rows is None else [cluster.rows[row] for row in rows]
    weighted = weights = 0
    for name, weight in fit.weights:
        number = cluster.names.of(name)
        requested = sum(_request(pod.info, number) for pod in placed)
        if not requested and is_scalar_resource(name):
            continue
        allocatable = 0
        for node in nodes:
            if node.allocatable[number]:
                allocatable += node.allocatable[number]
                requested += _requested(node, number)
        if allocatable:
            weighted += weight * (min(requested, allocatable) * MAX_SCORE // allocatable)
            weights += weight
    return weighted // weights if weights else 0


def _request(pod: PodInfo, number: int) -> int:
    if number in (CPU, MEMORY):
        return int(pod.template.score_non_zero[number])
    return dict(pod.template.score_requests).get(number, 0)


def _requested(node: NodeInfo, number: int) -> int:
    if number == CPU:
        return node.non_zero_cpu
    return node.non_zero_memory if number == MEMORY else node.requested[number]


def _placements(handle: Handle, groups: Groups, key: Key) -> dict[str, list[int] | None] | str:
    """By domain, the rows of its nodes; None stands for all nodes. A text: what went wrong."""
    constraints = groups.objects[key].spec.schedulingConstraints
    if not constraints.topology:
        return {"": None}
    label, cluster = constraints.topology[0].key, handle.cluster
    state = groups.live(key)
    required = ""
    for pod, name in [] if state is None else state.scheduled_nodes():
        node = cluster.nodes.get(name)
        domain = None if node is None or node.held is None else node.labels.get(label)
        if domain is None:
            why = f"no topology domain found for pod {meta.namespaced_name(pod)}"
            return f"cannot determine domain for already scheduled pods: {why}"
        if required and required != domain:
            why = f"more than 1 domain found for pod group: {required}, {domain}"
            return f"cannot determine domain for already scheduled pods: {why}"
        required = domain
    domains: dict[str, list[int] | None] = {}
    for row, node in enumerate(cluster.rows):
        domain = node.labels.get(label)
        if domain is not None and required in ("", domain):
            rows = domains.setdefault(domain, [])
            assert rows is not None
            rows.append(row)
    every = len(cluster.rows)
    return {name: None if rows is not None and len(rows) == every else rows for name, rows in domains.items()}


@contextmanager
def _within(decider: Decider, rows: list[int] | None) -> Iterator[None]:
    """Decisions look at these nodes only."""
    decider.placement = None if rows is None else np.array(rows, dtype=np.int64)
    try:
        yield
    finally:
        decider.placement = None
