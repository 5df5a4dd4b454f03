"""DefaultPreemption: PostFilter, and the PreEnqueue check that gates a preemptor while its victims are evicted.

The work is done in :mod:`kemu.emulated.scheduler.preemption.candidates` (the choice of victims) and
:mod:`kemu.emulated.scheduler.preemption.evictions` (their eviction).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from kemu.emulated import variants
from kemu.emulated.scheduler.cache import pod_groups
from kemu.emulated.scheduler.cache.pod_groups import Groups
from kemu.emulated.scheduler.cache.pods import PodInfo
from kemu.emulated.scheduler.cycle.filtering import Filtering
from kemu.emulated.scheduler.experiments import switches
from kemu.emulated.scheduler.framework.events import Event, Hint
from kemu.emulated.scheduler.framework.interfaces import (
    ArgumentError,
    Diagnosis,
    Handle,
    PostFilterPlugin,
    PreEnqueuePlugin,
    VictimOrderPlugin,
)
from kemu.emulated.scheduler.framework.results import PostFilterResult
from kemu.emulated.scheduler.framework.statuses import Status, unresolvable
from kemu.emulated.scheduler.preemption.candidates import Preemptor

_GROUP_BUSY = unresolvable("waiting for the preemption for this pod group to be finished")
_BUSY = unresolvable("waiting for the preemption for this pod to be finished")


class DefaultPreemption(PreEnqueuePlugin, PostFilterPlugin):
    def __init__(self, args: Mapping[str, Any], handle: Handle) -> None:
        super().__init__(args, handle)
        self.candidates_percentage: int = args["minCandidateNodesPercentage"]
        self.candidates_absolute: int = args["minCandidateNodesAbsolute"]
        preemptor = variants.choose(Preemptor, switches.alternatives(handle.policy))
        self.preemptor = preemptor(handle.cluster, handle.policy, handle.random, self.candidates_wanted)

    def post_filter(self, diagnosis: Diagnosis) -> PostFilterResult:
        # Dry runs need the states of the filters, which only the scheduling cycle's own type has.
        assert isinstance(diagnosis, Filtering)
        filtering = diagnosis
        policy, pod = self.handle.policy, filtering.cycle.pod
        if not policy.preempts:
            return PostFilterResult()
        latest = self.handle.latest(pod)
        if latest is None:
            return PostFilterResult(message=f'preemption: pod "{pod.name}" not found', failed=True)
        nominated = latest.status.nominatedNodeName
        if not policy.nomination:
            nominated = self.handle.preempted_on.get(pod.uid, "")
        if self.handle.groups is not None and pod.pod.spec.HasField("schedulingGroup"):
            refused = self._refused_to_member(self.handle.groups, pod)
            if refused:
                return PostFilterResult(message=f"preemption: {refused}")
        result = self.preemptor.preempt(filtering, nominated)
        if result.candidate is not None:
            return PostFilterResult(
                result.candidate.node, "", result.candidate, result.candidates, efforts=result.efforts
            )
        message = f"preemption: {result.message}"
        if result.failed:
            return PostFilterResult(message=message, efforts=result.efforts, failed=True)
        if not policy.nomination:
            message = message.replace("the nominated node", "the node where it has preempted")
        return PostFilterResult("" if result.clears_nomination else None, message, efforts=result.efforts)

    def order_victims(self, order: VictimOrderPlugin) -> bool:
        policy = self.handle.policy
        if policy.victimOrder != "priority":
            raise ArgumentError("", f"orders victims, as does victimOrder: {policy.victimOrder} of the policy")
        if policy.preemptor != "scheduler":
            raise ArgumentError("", f"orders the victims of this scheduler, but preemptor: {policy.preemptor} preempts")
        self.preemptor.order_by(order)
        return True

    def _refused_to_member(self, groups: Groups, pod: PodInfo) -> str:
        """Why a member of a group may not preempt on its own."""
        if pod_groups.TOPOLOGY in groups.gates:
            group = groups.object_of(pod.pod)
            if group is None:
                return "pod group for pod not found"
            if group.spec.HasField("schedulingConstraints"):
                return "not eligible due to placement-based pod group scheduling limitation"
        return "not eligible due to workload aware preemption enabled" if pod_groups.PREEMPTION in groups.gates else ""

    def pre_enqueue(self, pod: PodInfo) -> Status | None:
        groups = self.handle.groups
        if groups is not None and pod_groups.PREEMPTION in groups.gates and pod.pod.spec.HasField("schedulingGroup"):
            group = groups.object_of(pod.pod)
            return _GROUP_BUSY if group is not None and self.handle.is_preempting(group.metadata.uid) else None
        return _BUSY if self.handle.is_preempting(pod.uid) else None

    def events(self) -> Iterable[tuple[Event, Hint | None]]:
        # Lets a gated preemptor try PreEnqueue again; whether the event helps is for the plugins that rejected it.
        return [(Event.ASSIGNED_POD_DELETE, lambda pod, old, new: False)]

    def candidates_wanted(self, nodes: int) -> int:
        """The number of candidates with which the search may stop."""
        return min(nodes, max(nodes * self.candidates_percentage // 100, self.candidates_absolute))
