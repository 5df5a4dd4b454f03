"""The strategies that judge pods one by one (extension point ``deschedule``)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from kemu.emulated.descheduler import policies
from kemu.emulated.descheduler.clusters import (
    Cluster,
    Node,
    Pod,
    enemies,
    grouped,
    is_enemy,
    matches_node,
    statuses,
    tolerates,
)
from kemu.emulated.descheduler.evictions import NODE, TOTAL, EvictionError, Evictor, Filter
from kemu.emulated.objects import meta, selectors
from kemu.emulated.objects.amounts import qos
from kemu.emulated.scheduler.preemption import sorts
from kemu.messages.k8s import core_v1_pb2

REQUIRED_AFFINITY = "requiredDuringSchedulingIgnoredDuringExecution"


@dataclass
class Handle:
    """What a strategy is given."""

    cluster: Cluster
    evictor: Evictor
    filter: Filter

    async def evict(self, pod: Pod, strategy: str) -> str:
        """The limit that is reached, or nothing: another failure ends nothing."""
        try:
            await self.evictor.evict(pod, strategy)
        except EvictionError as error:
            return error.limit
        return ""


class Strategy:
    """``run(nodes)``: one turn of it over the ready nodes."""

    def __init__(self, args: Any, handle: Handle) -> None:
        self.args = args
        self.handle = handle
        self.cluster = handle.cluster
        self.name = type(args).__name__

    async def run(self, nodes: Sequence[Node]) -> None:
        raise NotImplementedError

    def selects(self) -> Callable[[Pod], bool]:
        """Whether a pod is one of those that the arguments name: by namespace and labels."""
        namespaces = self.args.namespaces
        stated = getattr(self.args, "label_selector", None)
        labels = selectors.EVERYTHING if stated is None else policies.compiled(stated)

        def is_meant(pod: Pod) -> bool:
            inside = namespaces is None or namespaces.have(pod.metadata.namespace)
            return inside and labels.matches(pod.metadata.labels)

        return is_meant

    async def evict_all(self, pods: Iterable[Pod]) -> bool:
        """Those of one node. False: no more in this round."""
        for pod in pods:
            limit = await self.handle.evict(pod, self.name)
            if limit == NODE:
                return True
            if limit == TOTAL:
                return False
        return True


def by_priority(pods: list[Pod]) -> None:
    """From low to high, then by quality of service (``SortPodsBasedOnPriorityLowToHigh``). There, of two equal pods
    each goes before the other; what Go's sort makes of that is done here."""
    order = (qos.BEST_EFFORT, qos.BURSTABLE, qos.GUARANTEED)

    def key(pod: Pod) -> tuple[bool, int, int, bool]:
        has, annotations = pod.spec.HasField("priority"), pod.metadata.annotations
        return has, pod.spec.priority if has else 0, order.index(qos.qos_class(pod)), PREFER in annotations

    sorts.sort(pods, key, lambda pod: True)


PREFER = "descheduler.alpha.kubernetes.io/prefer-no-eviction"


class NodeTaints(Strategy):
    args: policies.RemovePodsViolatingNodeTaints

    async def run(self, nodes: Sequence[Node]) -> None:
        is_meant = self.selects()
        effects = ("NoSchedule", "PreferNoSchedule") if self.args.include_prefer_no_schedule else ("NoSchedule",)
        for node in nodes:
            taints = [one for one in node.spec.taints if self._counts(one)]
            pods = [
                pod
                for pod in self.cluster.pods_on(node.metadata.name)
                if is_meant(pod) and self.handle.filter.both(pod)
            ]
            if not await self.evict_all(pod for pod in pods if not tolerates(pod, taints, effects)):
                return

    def _counts(self, taint: core_v1_pb2.Taint) -> bool:
        words = {taint.key, f"{taint.key}={taint.value}"} if taint.value else {taint.key}
        included = self.args.included_taints
        return not words & set(self.args.excluded_taints) and (included is None or bool(words & set(included)))


class NodeAffinity(Strategy):
    args: policies.RemovePodsViolatingNodeAffinity

    async def run(self, nodes: Sequence[Node]) -> None:
        is_meant = self.selects()
        for kind in self.args.node_affinity_type:
            is_violated = _violates_required if kind == REQUIRED_AFFINITY else _has_better
            for node in nodes:
                pods = [
                    pod
                    for pod in self.cluster.pods_on(node.metadata.name)
                    if is_meant(pod)
                    and self.handle.filter.both(pod)
                    and is_violated(pod, node, nodes)
                    and self.cluster.fits_somewhere(pod, nodes)
                ]
                if not await self.evict_all(pods):
                    return


def _violates_required(pod: Pod, node: Node, nodes: Sequence[Node]) -> bool:
    return pod.spec.affinity.nodeAffinity.HasField(REQUIRED_AFFINITY) and not matches_node(pod, node)


def _has_better(pod: Pod, node: Node, nodes: Sequence[Node]) -> bool:
    """Whether it prefers another node to its own."""
    preferred = pod.spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution
    terms = [(selectors.NodeSelectorTerm(one.preference), one.weight) for one in preferred]

    def weight(one: Node) -> int:
        return sum(amount for term, amount in terms if term.matches(one.metadata.labels, one.metadata.name))

    return bool(terms) and max(0, *map(weight, nodes)) > weight(node)


class InterPodAntiAffinity(Strategy):
    args: policies.RemovePodsViolatingInterPodAntiAffinity

    async def run(self, nodes: Sequence[Node]) -> None:
        is_meant = self.selects()
        by_node = {
            node.metadata.name: [pod for pod in self.cluster.pods_on(node.metadata.name) if is_meant(pod)]
            for node in nodes
        }
        named = {node.metadata.name: node for node in nodes}
        by_namespace = grouped((pod for pods in by_node.values() for pod in pods), lambda pod: pod.metadata.namespace)
        for node in nodes:
            pods = by_node[node.metadata.name]
            by_priority(pods)
            for pod in pods:
                if not _meets_enemies(pod, by_namespace, named) or not self.handle.filter.both(pod):
                    continue
                try:
                    await self.handle.evictor.evict(pod, self.name)
                except EvictionError as error:
                    if error.limit == TOTAL:
                        return
                    if error.limit == NODE:
                        break
                else:
                    rest = [one for one in by_namespace[pod.metadata.namespace] if one is not pod]
                    by_namespace[pod.metadata.namespace] = rest


def _meets_enemies(pod: Pod, by_namespace: dict[str, list[Pod]], nodes: dict[str, Node]) -> bool:
    mine = nodes[pod.spec.nodeName]
    return any(
        is_enemy(pod, term, other) and _share(mine, nodes[other.spec.nodeName], term.topologyKey)
        for term in enemies(pod)
        for namespace in term.namespaces or (pod.metadata.namespace,)
        for other in by_namespace.get(namespace, ())
    )


def _share(one: Node, other: Node, key: str) -> bool:
    """Whether they are in the same domain."""
    if one.metadata.name == other.metadata.name:
        return True
    value = one.metadata.labels.get(key)
    return value is not None and value == other.metadata.labels.get(key)


class TooManyRestarts(Strategy):
    args: policies.RemovePodsHavingTooManyRestarts

    async def run(self, nodes: Sequence[Node]) -> None:
        is_meant = self.selects()
        for node in nodes:
            pods = [
                pod
                for pod in self.cluster.all_pods_on(node.metadata.name)
                if is_meant(pod)
                and self.handle.filter.both(pod)
                and self._restarts(pod) >= self.args.pod_restart_threshold
                and self._is_in_state(pod)
            ]
            sorts.sort(pods, lambda pod: -self._restarts(pod))
            if not await self.evict_all(pods):
                return

    def _restarts(self, pod: Pod) -> int:
        return sum(one.restartCount for one in statuses(pod, init=self.args.including_init_containers))

    def _is_in_state(self, pod: Pod) -> bool:
        states = self.args.states
        if not states or pod.status.phase in states:
            return True
        return any(
            one.state.HasField("waiting") and one.state.waiting.reason in states
            for one in statuses(pod, init=self.args.including_init_containers)
        )


class PodLifeTime(Strategy):
    args: policies.PodLifeTime

    async def run(self, nodes: Sequence[Node]) -> None:
        is_meant = self.selects()
        pods = [
            pod
            for node in nodes
            for pod in self.cluster.all_pods_on(node.metadata.name)
            if is_meant(pod) and self.handle.filter.both(pod) and self._is_due(pod)
        ]
        sorts.sort(pods, lambda pod: meta.unix_ns(pod.metadata.creationTimestamp))
        for pod in pods:
            if await self.handle.evict(pod, self.name) == TOTAL:
                return

    def _is_due(self, pod: Pod) -> bool:
        args = self.args
        if args.max_pod_life_time_seconds is not None:
            age_s = self.cluster.age_s(meta.unix_ns(pod.metadata.creationTimestamp))
            if int(age_s) <= args.max_pod_life_time_seconds:
                return False
        if args.states and not self._is_in_state(pod):
            return False
        if (kinds := args.owner_kinds) is not None:
            owners = [one.kind for one in pod.metadata.ownerReferences]
            if kinds.include and not set(owners) & set(kinds.include):
                return False
            if set(owners) & set(kinds.exclude):
                return False
        if args.conditions and not any(self._has(pod, wanted) for wanted in args.conditions):
            return False
        return not args.exit_codes or any(
            one.state.HasField("terminated") and one.state.terminated.exitCode in args.exit_codes
            for one in statuses(pod, init=args.including_init_containers)
        )

    def _is_in_state(self, pod: Pod) -> bool:
        args = self.args
        if pod.status.phase in args.states or pod.status.reason in args.states:
            return True
        among = statuses(pod, init=args.including_init_containers, ephemeral=args.including_ephemeral_containers)
        return any(reason in args.states for one in among for reason in _reasons(one))

    def _has(self, pod: Pod, wanted: policies.Condition) -> bool:
        least_s = wanted.min_time_since_last_transition_seconds
        for one in pod.status.conditions:
            if wanted.type not in ("", one.type) or wanted.status not in ("", one.status):
                continue
            if wanted.reason not in ("", one.reason):
                continue
            if least_s is None:
                return True
            if one.HasField("lastTransitionTime"):
                idle_s = self.cluster.age_s(meta.unix_ns(one.lastTransitionTime))
                if idle_s >= 0 and int(idle_s) >= least_s:
                    return True
        return False


class FailedPods(Strategy):
    args: policies.RemoveFailedPods

    async def run(self, nodes: Sequence[Node]) -> None:
        is_meant = self.selects()
        for node in nodes:
            pods = [
                pod
                for pod in self.cluster.all_pods_on(node.metadata.name)
                if pod.status.phase == "Failed" and is_meant(pod) and self.handle.filter.both(pod) and self._is_due(pod)
            ]
            if not await self.evict_all(pods):
                return

    def _is_due(self, pod: Pod) -> bool:
        args = self.args
        least_s = args.min_pod_lifetime_seconds
        if least_s is not None and int(self.cluster.age_s(meta.unix_ns(pod.metadata.creationTimestamp))) < least_s:
            return False
        if any(one.kind in args.exclude_owner_kinds for one in pod.metadata.ownerReferences):
            return False
        ended = list(statuses(pod, init=args.including_init_containers))
        if args.reasons:
            reasons = [reason for one in ended for reason in _reasons(one)]
            reasons += [pod.status.reason] if pod.status.reason else []
            if not set(reasons) & set(args.reasons):
                return False
        return not args.exit_codes or any(
            one.state.HasField("terminated") and one.state.terminated.exitCode in args.exit_codes for one in ended
        )


def _reasons(status: core_v1_pb2.ContainerStatus) -> list[str]:
    """Why a container waits, or has ended."""
    state = status.state
    found = [state.waiting.reason] if state.HasField("waiting") else []
    return [one for one in found + ([state.terminated.reason] if state.HasField("terminated") else []) if one]
