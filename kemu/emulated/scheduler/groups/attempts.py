"""One attempt to find nodes for all members of a group, in a fixed order, each beside those before it.

Nothing is left of it in the cache: members are counted on their nodes only while the attempt goes on. Evictions that
PostFilter decides on begin at once, as in kube-scheduler, even if the group turns out not to fit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from kemu.emulated.scheduler.cache.cluster import Cluster
from kemu.emulated.scheduler.cache.pod_groups import Groups, Key
from kemu.emulated.scheduler.cache.pods import PodInfo
from kemu.emulated.scheduler.cycle.decisions import Decider, ScheduleResult
from kemu.emulated.scheduler.cycle.profiles import Profile
from kemu.emulated.scheduler.extenders.clients import Extenders
from kemu.emulated.scheduler.failures import SCHEDULER_ERROR, Failure, failure_of
from kemu.emulated.scheduler.framework import answers
from kemu.emulated.scheduler.framework.interfaces import Cycle
from kemu.emulated.scheduler.framework.statuses import WAIT, Status
from kemu.emulated.scheduler.preemption.evictions import Evictor
from kemu.emulated.scheduler.queue.queues import QueuedPod

UNSCHEDULABLE = "pod group is unschedulable"
_AWAITS = "pod group is waiting for preemption to complete"
_WAITS = "one or more plugins asked to wait and no plugin rejected pod"
_NO_NODES = "no nodes available to schedule pods"


class MemberResult:
    """What the attempt found for one member."""

    __slots__ = ("cycle", "failure", "needs_preemption", "node", "nominate", "permit", "result")

    def __init__(self, result: ScheduleResult | None) -> None:
        self.result = result
        self.node = ""
        """Where it was counted; "" if no node was found."""
        self.cycle: Cycle | None = None
        self.failure: Failure | None = None
        """None: a node takes it as it is."""
        self.needs_preemption = False
        self.nominate: str | None = ""
        self.permit = ""
        """What a Permit plugin that lets it wait says."""

    @property
    def is_error(self) -> bool:
        return self.failure is not None and self.failure.reason == SCHEDULER_ERROR


class GroupResult(NamedTuple):
    """``podGroupAlgorithmResult``."""

    members: list[MemberResult]
    """By place in the group; fewer than there are after an error."""
    message: str = ""
    """Why the group is not schedulable."""
    error: str = ""
    """The attempt ended with an error."""
    fits: bool = False
    awaits_preemption: bool = False


class Attempts:
    """Attempts of one scheduler. ``deciders``: by scheduler name."""

    def __init__(
        self,
        cluster: Cluster,
        groups: Groups,
        deciders: Mapping[str, Decider],
        extenders: Extenders | None,
        evictor: Callable[[], Evictor],
    ) -> None:
        self._cluster = cluster
        self._groups = groups
        self._deciders = deciders
        self._extenders = extenders
        self._evictor = evictor
        self.evaluated: list[int] = []
        """How many nodes each decision looked at, since this was last emptied."""

    async def run(self, key: Key, members: list[QueuedPod], *, preempts: bool) -> GroupResult:
        """``podGroupSchedulingDefaultAlgorithm``. ``preempts``: PostFilter plugins are asked."""
        state = self._groups.live(key)
        assert state is not None
        self._groups.trial = (key, state.copy())
        found: list[MemberResult] = []
        counted: list[tuple[QueuedPod, MemberResult]] = []
        message, error, fits, awaits, needs_preemption = UNSCHEDULABLE, "", False, False, False
        try:
            for pod in members:
                one = await self._try(key, pod, preempts)
                found.append(one)
                if one.is_error:
                    assert one.failure is not None
                    error = f"failed to schedule other pod from a pod group: {one.failure.message}"
                    fits = awaits = False
                    break
                if not one.node:
                    continue
                counted.append((pod, one))
                needs_preemption = needs_preemption or one.needs_preemption
                if not one.permit:
                    fits, awaits = not needs_preemption, needs_preemption
                    message = f"{UNSCHEDULABLE}, {_AWAITS}" if awaits else ""
        finally:
            for pod, one in reversed(counted):
                self._take_back(pod, one)
            self._groups.trial = None
        return GroupResult(found, message, error, fits, awaits)

    async def _try(self, key: Key, pod: QueuedPod, preempts: bool) -> MemberResult:
        info, profile = pod.info, pod.profile
        try:
            result = await self.decide(self._deciders[profile.scheduler_name], info)
        except answers.InvalidAnswer as invalid:
            result = ScheduleResult(None)
            result.error = invalid.status
        self.evaluated.append(result.evaluated)
        one = MemberResult(result)
        filtering = result.filtering
        if result.error is not None:
            one.failure = Failure(result.error.message, reason=SCHEDULER_ERROR)
            return one
        if filtering is not None:
            filtering.tally = dict(filtering.tally)  # which is logged when the nodes are as before again
        one.node = result.node
        if not result.node:
            if filtering is None:
                one.failure = Failure(_NO_NODES)
                return one
            await self._make_room(pod, one, preempts)
            if not one.node:
                return one
        assert filtering is not None
        one.cycle = filtering.cycle
        if info.uid in self._cluster.pods:
            one.node = ""
            message = f"pod {info.uid}({info.key}) is in the cache, so can't be assumed"
            one.failure = Failure(message, reason=SCHEDULER_ERROR)
            return one
        self._count(key, pod, one)
        status = self._reserve(profile, one.cycle, one.node)
        if status is None:
            status, one.permit = self._permit(profile, one.cycle, one.node)
        if status is not None:
            self._take_back(pod, one)
            one.node, one.needs_preemption, one.nominate = "", False, ""
            one.failure = failure_of(status, status.plugin)
        return one

    async def decide(self, decider: Decider, pod: PodInfo) -> ScheduleResult:
        """About one member, with those before it on their nodes."""
        if self._extenders is None:
            return decider.decide(pod)
        return await self._extenders.decide(decider, pod)

    async def _make_room(self, pod: QueuedPod, one: MemberResult, preempts: bool) -> None:
        filtering = one.result.filtering if one.result is not None else None
        assert filtering is not None
        one.nominate = None
        message = filtering.message()
        if preempts:
            found = pod.profile.post_filter(filtering)
            if self._extenders is not None and found.candidate is not None:
                found = await self._extenders.preempt(pod.info, found, pod.profile.post_filters)
            error = ""
            if found.write is not None:
                self._cluster.hold_snapshot()
                error = await found.write()
            message = f"{message} {error or found.message}".rstrip()
            one.nominate = found.node
            if found.candidate is not None:
                self._evictor().start(pod.info, found.candidate)
            if found.node:
                one.node, one.needs_preemption = found.node, True
        elif pod.profile.post_filters:
            message = f"{message} All PostFilter plugins are skipped"
        one.failure = Failure(message, filtering.rejectors(), pending=filtering.pending())

    def _count(self, key: Key, pod: QueuedPod, one: MemberResult) -> None:
        info = pod.info
        self._cluster.add_pod(info, one.node)
        assert self._groups.trial is not None
        self._groups.trial[1].assume(info.uid, one.node)

    def _take_back(self, pod: QueuedPod, one: MemberResult) -> None:
        info = pod.info
        if one.cycle is not None:
            pod.profile.unreserve(one.cycle, one.node)
        self._cluster.remove_pod(info.uid)
        if self._groups.trial is not None:
            self._groups.trial[1].forget(info.uid)

    def _reserve(self, profile: Profile, cycle: Cycle, node: str) -> Status | None:
        for plugin in profile.reserve:
            status = plugin.reserve(cycle, node)
            if status is not None:
                return answers.answer_of("Reserve", plugin.name, "reserve", status)
        return None

    def _permit(self, profile: Profile, cycle: Cycle, node: str) -> tuple[Status | None, str]:
        """A refusal; or why the member waits, "" where it need not."""
        last: Status | None = None
        for plugin in profile.permit:
            status, _limit_s = plugin.permit(cycle, node)
            if status is None:
                continue
            if status.code != WAIT:
                return answers.answer_of("Permit", plugin.name, "permit", status), ""
            last = status
        return None, "" if last is None else ", ".join((*last.reasons, _WAITS))
