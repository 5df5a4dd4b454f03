"""Which of the groups that could help grows (``expander``).

Filters run one after the other (``--expander=price,least-waste``); of several options that are left, one is drawn.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from kemu.emulated.autoscaler.providers import NodeGroup, Tell
from kemu.emulated.autoscaler.settings import Settings
from kemu.emulated.autoscaler.templates import Template
from kemu.emulated.objects.amounts import requests
from kemu.messages.k8s import core_v1_pb2
from kemu.runtime.env import Random

GPU = "nvidia.com/gpu"
MIB = 1 << 20


@dataclass(frozen=True)
class Option:
    """So many nodes of a group, for these pods."""

    group: NodeGroup
    template: Template
    nodes: int
    pods: Sequence[core_v1_pb2.Pod]


Filter = Callable[[Sequence[Option], Settings, int], Sequence[Option]]
"""The options, the settings, and how many nodes there are."""
NOT_MATCHED, NONE_MATCHED = "PriorityConfigMapNotMatchedGroup", "PriorityConfigMapNoGroupMatched"


def best(
    options: Sequence[Option], settings: Settings, cluster_size: int, rng: Random, tell: Tell | None = None
) -> Option | None:
    """None: the expander wants none of them. ``tell``: of groups without a priority."""
    for name in settings.expander.split(","):
        if name == "random":
            break
        if name == "priority" and tell is not None:
            _complain(options, settings, tell)
        options = FILTERS[name](options, settings, cluster_size)
        if len(options) == 1:
            return options[0]
    return rng.choice(options) if options else None


def _extremes(options: Sequence[Option], score: Callable[[Option], float]) -> Sequence[Option]:
    """Those with the lowest score."""
    scored = [(score(option), option) for option in options]
    lowest = min((each for each, _ in scored), default=0.0)
    return [option for each, option in scored if each == lowest]


def _least_waste(options: Sequence[Option], settings: Settings, cluster_size: int) -> Sequence[Option]:
    """The smallest shares of CPU and memory left over, added up (``expander/waste``)."""

    def waste(option: Option) -> float:
        capacity = requests.resource_list(option.template.node.status.capacity)
        wasted = 0.0
        for name in (requests.CPU, requests.MEMORY):
            there = capacity.get(name, 0) * option.nodes
            wanted = sum(requests.pod_requests(pod).get(name, 0) for pod in option.pods)
            wasted += (there - wanted) / there if there else 0.0
        return wasted

    return _extremes(options, waste)


def _most_pods(options: Sequence[Option], settings: Settings, cluster_size: int) -> Sequence[Option]:
    return _extremes(options, lambda option: -len(option.pods))


def _least_nodes(options: Sequence[Option], settings: Settings, cluster_size: int) -> Sequence[Option]:
    return _extremes(options, lambda option: option.nodes)


def _priority(options: Sequence[Option], settings: Settings, cluster_size: int) -> Sequence[Option]:
    """The group whose name matches an expression of the highest priority (``expander/priority``)."""
    chosen = _extremes(options, lambda option: -_priority_of(option, settings))
    return chosen if chosen and _priority_of(chosen[0], settings) >= 0 else options


def _priority_of(option: Option, settings: Settings) -> int:
    """-1: it has none."""
    matching = (
        int(priority)
        for priority, expressions in settings.priorities.items()
        if any(re.search(expression, option.group.name) for expression in expressions)
    )
    return max(matching, default=-1)


def _complain(options: Sequence[Option], settings: Settings, tell: Tell) -> None:
    strangers = [option.group.name for option in options if _priority_of(option, settings) < 0]
    for name in strangers:
        why = f"node group {name} not found in priority expander configuration. The group won't be used."
        tell("Warning", NOT_MATCHED, f"Priority expander: {why}")
    if options and len(strangers) == len(options):
        why = "no priorities info found for any of the expansion options. No options filtered."
        tell("Warning", NONE_MATCHED, f"Priority expander: {why}")


def _price(options: Sequence[Option], settings: Settings, cluster_size: int) -> Sequence[Option]:
    """How well the money is spent, and how well the size of the nodes suits the cluster (``expander/price``).

    Pods cost what they take of the dearest of the groups' CPU and memory, halves each.
    """
    preferred_milli = _preferred_cpu_milli(cluster_size)
    per_milli, per_byte = _prices(options)

    def score(option: Option) -> float:
        pods = sum(_pod_price(requests.pod_requests(pod), per_milli, per_byte) for pod in option.pods)
        stabilizer = _pod_price({requests.CPU: 500, requests.MEMORY: 500 * MIB}, per_milli, per_byte)
        all_nodes = option.group.price * option.nodes
        spent = (all_nodes + stabilizer) / (pods + stabilizer) if pods + stabilizer else 1.0
        capacity = requests.resource_list(option.template.node.status.capacity)
        milli = capacity.get(requests.CPU, 0) or 1
        unfitness = max(preferred_milli / milli, milli / preferred_milli)
        suppressed = (unfitness - 1.0) * (1.0 - math.tanh((option.nodes - 1) / 15.0)) + 1.0
        if capacity.get(GPU):
            suppressed = 1000.0
        return suppressed * spent

    return _extremes(options, score)


def _preferred_cpu_milli(nodes: int) -> int:
    """For the nodes of a cluster of that size (``SimplePreferredNodeProvider``)."""
    for limit, cores in ((2, 1), (6, 2), (20, 4), (60, 8), (200, 16)):
        if nodes <= limit:
            return cores * 1000
    return 32_000


def _prices(options: Sequence[Option]) -> tuple[float, float]:
    milli, byte = 0.0, 0.0
    for option in options:
        capacity = requests.resource_list(option.template.node.status.capacity)
        if capacity.get(requests.CPU):
            milli = max(milli, option.group.price / 2 / capacity[requests.CPU])
        if capacity.get(requests.MEMORY):
            byte = max(byte, option.group.price / 2 / capacity[requests.MEMORY])
    return milli, byte


def _pod_price(wanted: Mapping[str, int], per_milli: float, per_byte: float) -> float:
    return wanted.get(requests.CPU, 0) * per_milli + wanted.get(requests.MEMORY, 0) * per_byte


FILTERS: Mapping[str, Filter] = {
    "least-waste": _least_waste,
    "most-pods": _most_pods,
    "least-nodes": _least_nodes,
    "price": _price,
    "priority": _priority,
}
