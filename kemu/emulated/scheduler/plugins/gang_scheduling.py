"""GangScheduling: no member of a gang is tried before ``minCount`` of them are there, and none is bound before so many
have a node (``plugins/gangscheduling`` in ``pkg/scheduler/framework``)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kemu.emulated.scheduler.cache import pod_groups
from kemu.emulated.scheduler.cache.pods import PodInfo
from kemu.emulated.scheduler.framework.events import Event, Hint, KeyedHint
from kemu.emulated.scheduler.framework.interfaces import Cycle, PermitPlugin, PreEnqueuePlugin
from kemu.emulated.scheduler.framework.statuses import ERROR, WAIT, Status, unresolvable
from kemu.messages.k8s import core_v1_pb2, scheduling_v1alpha2_pb2

_LONGEST_WAIT_S = 300.0
_TOO_FEW = unresolvable("waiting for minCount pods from a gang to appear in scheduling queue")
_WAIT = Status(WAIT, ("waiting for minCount pods from a gang to be scheduled",))


class GangScheduling(PreEnqueuePlugin, PermitPlugin):
    def pre_enqueue(self, pod: PodInfo) -> Status | None:
        groups, key = self.handle.groups, pod_groups.key_of(pod.pod)
        if groups is None or key is None:
            return None
        group = groups.objects.get(key)
        if group is None:
            return unresolvable(f'waiting for pods\'s pod group "{key[1]}" to appear in scheduling queue')
        if not group.spec.schedulingPolicy.HasField("gang"):
            return None
        state = groups.live(key)
        known = 0 if state is None else len(state.pods)
        return _TOO_FEW if known < group.spec.schedulingPolicy.gang.minCount else None

    def permit(self, cycle: Cycle, node: str) -> tuple[Status | None, float]:
        groups, key = self.handle.groups, pod_groups.key_of(cycle.pod.pod)
        if groups is None or key is None:
            return None, 0.0
        group = groups.objects.get(key)
        if group is None:
            why = f'failed to get podGroup {key[0]}/{key[1]}: podgroup.scheduling.k8s.io "{key[1]}" not found'
            return Status(ERROR, (why,)), 0.0
        if not group.spec.schedulingPolicy.HasField("gang"):
            return None, 0.0
        state = groups.state(key)
        if state is None:
            return Status(ERROR, (f"internal error: pod group {key[0]}/{key[1]} not found",)), 0.0
        if state.scheduled_count < group.spec.schedulingPolicy.gang.minCount:
            for uid in list(state.unscheduled):
                self.handle.activate(uid)
            return _WAIT, _LONGEST_WAIT_S
        # Also during an attempt, whose members are not assumed for good yet.
        for uid in list(state.assumed):
            waiting = self.handle.waiting.get(uid)
            if waiting is not None:
                waiting.allow(self.name)
        return None, 0.0

    def events(self) -> Iterable[tuple[Event, Hint | None]]:
        return [
            (Event.POD_ADD, KeyedHint(_helps, _group_of_new, _group_of)),
            (Event.ASSIGNED_POD_ADD, _is_of_its_group),
            (Event.POD_GROUP_ADD, _is_its_group),
        ]


def _is_of_its_group(pod: PodInfo, _old: Any, new: core_v1_pb2.Pod) -> bool:
    key = pod_groups.key_of(pod.pod)
    return key is not None and key == pod_groups.key_of(new)


def _is_its_group(pod: PodInfo, _old: Any, new: scheduling_v1alpha2_pb2.PodGroup) -> bool:
    return pod_groups.key_of(pod.pod) == (new.metadata.namespace, new.metadata.name)


def _helps(_pod: PodInfo, _old: Any, _new: core_v1_pb2.Pod) -> bool:
    """Any pod of the same group."""
    return True


def _group_of_new(_old: Any, new: core_v1_pb2.Pod) -> str:
    return "".join(_group_of(new))


def _group_of(pod: core_v1_pb2.Pod) -> Iterable[str]:
    key = pod_groups.key_of(pod)
    return () if key is None else (f"group {key[0]}/{key[1]}",)
