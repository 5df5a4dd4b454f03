"""The cycle of a group: from the queue to the binding cycles of its members, or back (``scheduleOnePodGroup``).

Nodes are looked for on one snapshot. If the group fits, each member goes the way of any pod from its node on; else all
of them return to the queue. What became of it is written to the condition PodGroupScheduled of the PodGroup.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kemu.emulated.client import retries
from kemu.emulated.objects import times
from kemu.emulated.objects.meta import get_condition
from kemu.emulated.scheduler.cache import pod_groups
from kemu.emulated.scheduler.cache.pod_groups import Groups, Key
from kemu.emulated.scheduler.configuration.timings import Timing
from kemu.emulated.scheduler.cycle.decisions import Decider
from kemu.emulated.scheduler.cycle.status_updates import Reporter
from kemu.emulated.scheduler.extenders.clients import Extenders
from kemu.emulated.scheduler.failures import SCHEDULER_ERROR, UNSCHEDULABLE, Failure, FailureHandler
from kemu.emulated.scheduler.framework.interfaces import Api, Handle
from kemu.emulated.scheduler.groups import placements, preemption
from kemu.emulated.scheduler.groups.attempts import UNSCHEDULABLE as GROUP_UNSCHEDULABLE
from kemu.emulated.scheduler.groups.attempts import Attempts, GroupResult, MemberResult
from kemu.emulated.scheduler.groups.parts import GroupQueue
from kemu.emulated.scheduler.preemption.evictions import Evictor
from kemu.emulated.scheduler.queue.queues import QueuedPod
from kemu.emulated.scheduler.scheduling_cycles import SchedulingCycles
from kemu.errors import ApiError
from kemu.runtime.env import SECOND_NS, Env

SCHEDULED = "PodGroupScheduled"


class GroupCycles:
    """Of one scheduler."""

    def __init__(
        self,
        env: Env,
        api: Api,
        handle: Handle,
        timing: Timing,
        reporter: Reporter,
        queue: GroupQueue,
        failures: FailureHandler,
        deciders: Mapping[str, Decider],
        extenders: Extenders | None,
        evictor: Evictor,
        one_by_one: SchedulingCycles,
    ) -> None:
        assert handle.groups is not None
        self._env = env
        self._clock = env.clock
        self._api = api
        self._handle = handle
        self._cluster = handle.cluster
        self._groups: Groups = handle.groups
        self._timing = timing
        self._reporter = reporter
        self._queue = queue
        self._failures = failures
        self._one_by_one = one_by_one
        self._attempts = Attempts(handle.cluster, self._groups, deciders, extenders, lambda: evictor)
        self._preemption = preemption.GroupPreemption(env, handle, self._groups, evictor, deciders)
        self._deciders = deciders
        self._asks = extenders is not None

    async def run(self, first: QueuedPod) -> None:
        """The cycle of the group of a pod that the queue has handed out."""
        started_ns = self._clock.now_ns()
        key = pod_groups.key_of(first.info.pod)
        assert key is not None
        state = self._groups.live(key)
        if state is None:
            self._handle.scheduling_cycle += 1
            message = f"error while retrieving pod group state: internal error: pod group {key[0]}/{key[1]} not found"
            await self._failures.handle(first, Failure(message, reason=SCHEDULER_ERROR), None)
            return
        members = self._queue.take_members(first, list(state.unscheduled))
        self._handle.scheduling_cycle += len(members)
        members.sort(key=lambda pod: self._groups.order(pod.info, pod.stamp))
        mixed = self._mixed_schedulers(members)
        if mixed:
            for pod in members:
                self._log_member(pod, started_ns, "error", None, mixed)
                await self._failures.handle(pod, Failure(mixed, reason=SCHEDULER_ERROR), "")
            return
        members = [pod for pod in members if not self._is_skipped(pod, started_ns)]
        if not members:
            return
        result = await self._decide(key, members)
        # Even an attempt that takes no time lets other tasks run.
        await self._env.work(sum(self._timing.cycle_s(self._env, one) for one in self._attempts.evaluated))
        self._attempts.evaluated.clear()
        self._attempt_over(members)
        self._cluster.release_snapshot()
        await self._submit(key, members, result, started_ns)

    def _mixed_schedulers(self, members: list[QueuedPod]) -> str:
        name = members[0].profile.scheduler_name
        for pod in members:
            other = pod.profile.scheduler_name
            if other != name:
                wanted = "all pods in a single pod group should have the same .spec.schedulerName set"
                return f'{wanted}, got: "{other}" and "{name}"'
        return ""

    def _is_skipped(self, pod: QueuedPod, started_ns: int) -> bool:
        """As of any other pod (``skipPodSchedule``)."""
        info = pod.info
        if not info.terminating and info.uid not in self._cluster.assumed:
            return False
        if info.terminating:
            self._reporter.skipped(info.pod)
        self._queue.done(info.uid)
        self._log_member(pod, started_ns, "skipped", None, "")
        return True

    def _attempt_over(self, members: list[QueuedPod]) -> None:
        batches = self._deciders[members[0].profile.scheduler_name].batches
        if batches is not None:
            batches.attempt_over()

    # The decision -----------------------------------------------------------------------------------------------------

    async def _decide(self, key: Key, members: list[QueuedPod]) -> GroupResult:
        """Choose nodes, or victims. From here on the cache keeps its snapshot."""
        self._cluster.settle()
        if self._asks:
            self._cluster.hold_snapshot()
        # Of a nominated pod that is in no queue, as all members are now, the nominator gives out but the name.
        nominator = self._cluster.nominator
        nominated = [(pod.info, nominator.remove(pod.info.uid)) for pod in members] if nominator.nodes else []
        result = await self._place_or_preempt(key, members)
        for info, node in nominated:
            if node:
                nominator.nominate(info, node)
        self._cluster.hold_snapshot()
        return result

    async def _place_or_preempt(self, key: Key, members: list[QueuedPod]) -> GroupResult:
        run: preemption.Attempt = lambda preempts: self._run(key, members, preempts)  # noqa: E731
        result = await run(True)
        if pod_groups.PREEMPTION not in self._groups.gates or result.fits or result.error:
            return result
        made_room, message = await self._preemption.preempt(key, members, run)
        if made_room:
            return result._replace(awaits_preemption=True)
        return result._replace(message=f"{result.message}, {message}")

    async def _run(self, key: Key, members: list[QueuedPod], preempts: bool) -> GroupResult:
        if pod_groups.TOPOLOGY not in self._groups.gates:
            return await self._attempts.run(key, members, preempts=preempts)
        decider = self._deciders[members[0].profile.scheduler_name]
        return await placements.best(self._handle, self._groups, key, members, decider, self._attempts, preempts)

    # What follows -----------------------------------------------------------------------------------------------------

    async def _submit(self, key: Key, members: list[QueuedPod], result: GroupResult, started_ns: int) -> None:
        """``submitPodGroupAlgorithmResult``."""
        for place, pod in enumerate(members):
            one = result.members[place] if place < len(result.members) else None
            if result.fits and one is not None and one.failure is None:
                assert one.result is not None
                one.result.node = one.node
                await self._one_by_one.place(pod, one.result, started_ns)
                continue
            failure, nominate = failure_of(one, result)
            outcome = "error" if failure.reason == SCHEDULER_ERROR else "unschedulable"
            self._log_member(pod, started_ns, outcome, one, failure.message)
            await self._failures.handle(pod, failure, nominate)
        await self._report(key, result)

    async def _report(self, key: Key, result: GroupResult) -> None:
        """Write the condition of the PodGroup, unless it says already that the group was scheduled."""
        group = self._groups.objects.get(key)
        if group is None:
            return
        status, reason, message = condition_of(result)
        known = get_condition(group.status.conditions, SCHEDULED)
        if known is not None and known.status == "True" and status != "True":
            return
        generation = group.metadata.generation
        wanted: dict[str, Any] = {"status": status, "reason": reason, "message": message}
        if known is not None and all(getattr(known, name) == value for name, value in wanted.items()):
            return
        changed = known is None or known.status != status
        since = times.format_time(self._clock.unix_ns() // SECOND_NS)
        condition = {"type": SCHEDULED, **wanted, **({"lastTransitionTime": since} if changed else {})}
        if generation:
            condition["observedGeneration"] = generation
        patch = {"status": {"conditions": [condition]}}
        try:
            await retries.status_patch(self._env, self._api, "podgroups", key[1], key[0], patch)
        except ApiError:
            # The next attempt writes again.
            return

    # The run log ------------------------------------------------------------------------------------------------------

    def _log_member(
        self, pod: QueuedPod, started_ns: int, outcome: str, one: MemberResult | None, message: str
    ) -> None:
        self._one_by_one.log_attempt(pod, started_ns, outcome, None if one is None else one.result, message)


def failure_of(one: MemberResult | None, result: GroupResult) -> tuple[Failure, str | None]:
    """Why a member returns to the queue, and its nomination."""
    if result.error:
        if one is not None and one.is_error and one.failure is not None:
            return one.failure, ""
        return Failure(result.error, reason=SCHEDULER_ERROR), ""
    if one is None:
        return Failure(result.message), None
    if one.failure is not None and not one.needs_preemption:
        return one.failure, one.nominate
    if one.failure is not None and result.awaits_preemption:
        return one.failure, one.nominate
    if result.awaits_preemption:
        return Failure(result.message), one.node
    # No plugin rejected it: it is retried after the backoff of an error.
    return Failure(f"{GROUP_UNSCHEDULABLE}, {one.permit}"), ""


def condition_of(result: GroupResult) -> tuple[str, str, str]:
    """Status, reason and message of the PodGroup's condition."""
    if result.error:
        return "False", SCHEDULER_ERROR, result.error
    return ("True", "Scheduled", "") if result.fits else ("False", UNSCHEDULABLE, result.message)
