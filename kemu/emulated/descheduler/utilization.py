"""LowNodeUtilization and HighNodeUtilization: requests of pods against what nodes could allocate."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from kemu.emulated.descheduler import policies
from kemu.emulated.descheduler.clusters import Node, Pod, usage
from kemu.emulated.descheduler.evictions import NODE, TOTAL, EvictionError
from kemu.emulated.descheduler.strategies import Strategy, by_priority
from kemu.emulated.objects import selectors
from kemu.emulated.objects.amounts import requests
from kemu.emulated.scheduler.preemption import sorts

Amounts = dict[str, int]
"""By resource: millicores and whole units."""
Shares = Mapping[str, float]
"""By resource, in percent."""
BASIC = ("cpu", "memory", "pods")


@dataclass
class _Info:
    """A node as one round sees it."""

    node: Node
    pods: list[Pod]
    usage: Amounts
    """Goes down as pods are evicted."""
    target: Amounts
    """Up to which it should be used."""


class _Utilization(Strategy):
    """What both have in common."""

    args: policies.LowNodeUtilization | policies.HighNodeUtilization

    def _names(self) -> list[str]:
        return list(dict.fromkeys((*self.args.thresholds, *BASIC)))

    def _info(self, node: Node, pods: list[Pod], used: Amounts, share: Shares) -> _Info:
        return _Info(node, pods, used, {name: _capped(node, name, share.get(name)) for name in used})

    async def _move(
        self,
        sources: Sequence[_Info],
        destinations: Sequence[_Info],
        is_removable: Callable[[Pod], bool],
        goes_on: Callable[[_Info, Amounts], bool],
        most: int | None = None,
    ) -> None:
        """Evict pods from the sources as long as there is room on the destinations (``evictPodsFromSourceNodes``)."""
        free = {name: sum(one.target[name] - one.usage[name] for one in destinations) for name in self._names()}
        taints = [list(one.node.spec.taints) for one in destinations]
        for info in sources:
            pods = [pod for pod in info.pods if is_removable(pod)]
            by_priority(pods)
            if not await self._evict_from(info, pods, free, taints, goes_on, most):
                return

    async def _evict_from(
        self,
        info: _Info,
        pods: Sequence[Pod],
        free: Amounts,
        taints: Sequence[Sequence[object]],
        goes_on: Callable[[_Info, Amounts], bool],
        most: int | None,
    ) -> bool:
        """False: no more in this round."""
        if not goes_on(info, free):
            return True
        spared = self.args.evictable_namespaces
        count = 0
        for pod in pods:
            if most is not None and count >= most:
                break
            if not _has_a_place(pod, taints) or (spared is not None and not spared.have(pod.metadata.namespace)):
                continue
            if not self.handle.filter.pre_eviction(pod):
                continue
            try:
                await self.handle.evictor.evict(pod, self.name)
            except EvictionError as error:
                if error.limit in (NODE, TOTAL):
                    return error.limit != TOTAL
                continue
            count += 1
            for name, amount in usage([pod], free).items():
                info.usage[name] -= amount
                free[name] -= amount
            if not goes_on(info, free):
                break
        return True


class LowNodeUtilization(_Utilization):
    args: policies.LowNodeUtilization

    async def run(self, nodes: Sequence[Node]) -> None:
        args, names = self.args, self._names()
        pods = {node.metadata.name: self.cluster.pods_on(node.metadata.name) for node in nodes}
        used = {name: usage(those, names) for name, those in pods.items()}
        shares = {node.metadata.name: _shares(node, used[node.metadata.name]) for node in nodes}
        low, high = (
            _deviations(args, list(shares.values()))
            if args.use_deviation_thresholds
            else (
                args.thresholds,
                args.target_thresholds,
            )
        )
        under: list[_Info] = []
        over: list[_Info] = []
        for node in nodes:
            name = node.metadata.name
            share = shares[name]
            info = self._info(node, pods[name], used[name], high)
            if not node.spec.unschedulable and all(share.get(one, 0) <= most for one, most in low.items()):
                under.append(info)
            elif any(share.get(one, 0) > most for one, most in high.items()):
                over.append(info)
        if not under or len(under) <= args.number_of_nodes or len(under) == len(nodes) or not over:
            return

        def goes_on(info: _Info, free: Amounts) -> bool:
            is_above = any(amount > info.target[name] for name, amount in info.usage.items())
            return is_above and all(amount > 0 for amount in free.values())

        sorts.sort(over, lambda one: -sum(one.usage.values()))
        most = args.eviction_limits.node if args.eviction_limits is not None else None
        await self._move(over, under, self.handle.filter.filter, goes_on, most)


class HighNodeUtilization(_Utilization):
    args: policies.HighNodeUtilization

    async def run(self, nodes: Sequence[Node]) -> None:
        args, names = self.args, self._names()
        under: list[_Info] = []
        others: list[_Info] = []
        for node in nodes:
            pods = self.cluster.pods_on(node.metadata.name)
            used = usage(pods, names)
            share = _shares(node, used)
            info = self._info(node, pods, used, dict.fromkeys(args.thresholds, 100.0))
            if all(share.get(one, 0) <= most for one, most in args.thresholds.items()):
                under.append(info)
            elif not node.spec.unschedulable:
                others.append(info)
        if not under or len(under) <= args.number_of_nodes or len(under) == len(nodes) or not others:
            return
        sorts.sort(under, lambda one: sum(one.usage.values()))
        await self._move(under, others, self._may_go, lambda info, free: all(amount > 0 for amount in free.values()))

    def _may_go(self, pod: Pod) -> bool:
        if not self.handle.filter.filter(pod):
            return False
        if "OnlyThresholdingResources" not in self.args.eviction_modes:
            return True
        containers = (*pod.spec.containers, *pod.spec.initContainers)
        return any(name in one.resources.requests for one in containers for name in self.args.thresholds)


def _shares(node: Node, used: Amounts) -> dict[str, float]:
    """What is used, in percent of what the node could allocate; of resources that it does not have, nothing."""
    capacity = _capacity(node)
    return {
        name: amount / capacity[name] * 100 if capacity[name] > 0 else 0.0
        for name, amount in used.items()
        if name in capacity
    }


def _capacity(node: Node) -> Amounts:
    return requests.machine(node.status.allocatable if node.status.allocatable else node.status.capacity)


def _capped(node: Node, name: str, share: float | None) -> int:
    capacity = _capacity(node)
    if name not in capacity or share is None:
        return capacity.get(name, 0)
    return int(share * 0.01 * capacity[name])


def _deviations(args: policies.LowNodeUtilization, shares: Sequence[Shares]) -> tuple[Shares, Shares]:
    """The thresholds around the average of all nodes."""
    low: dict[str, float] = {}
    high: dict[str, float] = {}
    for name in args.thresholds:
        known = [one[name] for one in shares if name in one]
        if known:
            average = sum(known) / len(known)
            low[name] = min(max(average - args.thresholds[name], 0.0), 100.0)
            high[name] = min(max(average + args.target_thresholds[name], 0.0), 100.0)
    return low, high


def _has_a_place(pod: Pod, taints: Sequence[Sequence[object]]) -> bool:
    """Whether it tolerates all taints of one of the destinations; those with fewer tolerations than the node has
    taints are not even asked (``PodToleratesTaints``)."""
    tolerations = pod.spec.tolerations
    return any(
        len(tolerations) >= len(ones) and all(selectors.tolerates_any(tolerations, one) for one in ones)  # type: ignore[arg-type]
        for ones in taints
    )
