"""Which pods have to leave the cluster to make room for a group (feature gate WorkloadAwarePreemption).

Mirrors ``podgrouppreemption.go`` in ``pkg/scheduler/framework/preemption``: all pods of lower priority are taken away;
if the group fits then, they are put back one unit after the other, the most important ones first and before all those
whose disruption budget would be violated, as long as the group still fits. A group with ``disruptionMode: PodGroup`` is
one unit.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field

from kemu.emulated.scheduler.cache.pod_groups import Groups, Key
from kemu.emulated.scheduler.cache.pods import PodInfo
from kemu.emulated.scheduler.cycle.decisions import Decider
from kemu.emulated.scheduler.framework.interfaces import Handle
from kemu.emulated.scheduler.framework.results import Candidate
from kemu.emulated.scheduler.groups.attempts import GroupResult
from kemu.emulated.scheduler.plugins.default_preemption import DefaultPreemption
from kemu.emulated.scheduler.preemption.candidates import NEVER, Preemptor
from kemu.emulated.scheduler.preemption.evictions import Evictor
from kemu.emulated.scheduler.queue.queues import QueuedPod
from kemu.messages.k8s import core_v1_pb2, scheduling_v1alpha2_pb2
from kemu.runtime.env import Env

_NO_PLUGIN = "default preemption plugin is not registered, workload aware preemption is disabled"
_CONSTRAINED = "workload aware preemption is not supported for pod groups with scheduling constraints"
_NO_VICTIMS = "No preemption victims found for incoming preemptor"
_WHOLE_CLUSTER = "cluster"


@dataclass(slots=True, eq=False)
class _Unit:
    """Pods that leave together."""

    priority: int
    start_s: int | None
    """Of the pod that was met first; None: it has not started."""
    pods: list[PodInfo] = field(default_factory=list)

    @property
    def importance(self) -> tuple[int, ...]:
        """Smaller is more important."""
        in_group = self.pods[0].pod.spec.HasField("schedulingGroup")
        start = self.start_s if self.start_s is not None else 1 << 62
        if not in_group:
            return (-self.priority, 1, 0, start)
        return (-self.priority, 0, -len(self.pods), start)


Attempt = Callable[[bool], Awaitable[GroupResult]]
"""One at the whole group; the argument: whether PostFilter plugins are asked."""


class GroupPreemptor:
    """A group in the place of a pod that preempts."""

    kind = "podgroup"

    def __init__(self, group: scheduling_v1alpha2_pb2.PodGroup, members: list[QueuedPod]) -> None:
        metadata = group.metadata
        self.uid: str = metadata.uid
        self.name: str = metadata.name
        self.key = f"{metadata.namespace}/{metadata.name}"
        self.priority: int = group.spec.priority
        self.members = [pod.info.uid for pod in members]
        self.pod = core_v1_pb2.Pod(metadata=metadata)
        """What events name as the preemptor."""
        self.pod.spec.schedulerName = members[0].profile.scheduler_name


class GroupPreemption:
    def __init__(
        self, env: Env, handle: Handle, groups: Groups, evictor: Evictor, deciders: Mapping[str, Decider]
    ) -> None:
        self._env = env
        self._handle = handle
        self._cluster = handle.cluster
        self._groups = groups
        self._evictor = evictor
        self._deciders = deciders

    async def preempt(self, key: Key, members: list[QueuedPod], attempt: Attempt) -> tuple[bool, str]:
        """Whether room is being made; if not, why."""
        plugin = self._deciders[members[0].profile.scheduler_name].profile.plugins.get("DefaultPreemption")
        if not isinstance(plugin, DefaultPreemption):
            return False, _NO_PLUGIN
        group = self._groups.objects.get(key)
        if group is None:
            return False, f'failed to get pod group object: podgroup.scheduling.k8s.io "{key[1]}" not found'
        if group.spec.schedulingConstraints.topology:
            return False, _CONSTRAINED
        if any(pod.info.template.never_preempts for pod in members):
            return False, NEVER
        units = [unit for unit in self._units() if unit.priority < group.spec.priority]
        if not units:
            return False, _NO_VICTIMS
        orders = {name: list(self._cluster.nodes[name].pods.values()) for name in _nodes(units)}
        try:
            victims, message = await self._choose(units, plugin.preemptor, attempt)
        finally:
            self._restore(orders)
        if message:
            return False, message
        candidate = Candidate(_WHOLE_CLUSTER, tuple(victims), 0, ())
        self._evictor.start(GroupPreemptor(group, members), candidate)
        return True, ""

    def _units(self) -> list[_Unit]:
        """What could leave together, in the order of the nodes and of the pods on them."""
        found: dict[str, _Unit] = {}
        for node in self._cluster.rows:
            for pod in node.pods.values():
                group = self._groups.object_of(pod.pod)
                if group is None or group.spec.disruptionMode != "PodGroup":
                    found[pod.uid] = _Unit(pod.priority, pod.start_s, [pod])
                    continue
                unit = found.setdefault(group.metadata.uid, _Unit(group.spec.priority, pod.start_s))
                unit.pods.append(pod)
        return list(found.values())

    async def _choose(self, units: list[_Unit], preemptor: Preemptor, attempt: Attempt) -> tuple[list[PodInfo], str]:
        where = {pod.uid: pod.node_name for unit in units for pod in unit.pods}
        for unit in units:
            self._take_away(unit)
        result = await attempt(False)
        if not result.fits:
            return [], result.error or result.message
        units.sort(key=lambda unit: unit.importance)
        violating = preemptor.violating_units([unit.pods for unit in units])
        leave: list[_Unit] = []
        in_turn = [unit for unit, bad in zip(units, violating, strict=True) if bad]
        in_turn += [unit for unit, bad in zip(units, violating, strict=True) if not bad]
        for unit in in_turn:
            for pod in unit.pods:
                self._cluster.add_pod(pod, where[pod.uid])
            if not (await attempt(False)).fits:
                self._take_away(unit)
                leave.append(unit)
        leave.sort(key=lambda unit: unit.importance)
        return [pod for unit in leave for pod in unit.pods], ""

    def _take_away(self, unit: _Unit) -> None:
        for pod in unit.pods:
            self._remove(pod)

    def _remove(self, pod: PodInfo) -> None:
        """An assumed pod stays assumed: while extenders are asked its binding may be seen, or fail."""
        assumed = self._cluster.assumed
        is_assumed = pod.uid in assumed
        self._cluster.remove_pod(pod.uid)
        if is_assumed:
            assumed[pod.uid] = pod

    def _restore(self, orders: Mapping[str, list[PodInfo]]) -> None:
        """All pods as they were, also in the order of their nodes."""
        for name, pods in orders.items():
            for pod in pods:
                self._remove(pod)
            for pod in pods:
                self._cluster.add_pod(pod, name)


def _nodes(units: list[_Unit]) -> list[str]:
    return list(dict.fromkeys(pod.node_name for unit in units for pod in unit.pods))
