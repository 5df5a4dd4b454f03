"""The scheduling cycle: one attempt to find a node for a pod, until the pod is assumed there or returned to the queue.

The steps in their order (``schedulingCycle`` in ``pkg/scheduler``, schedule_one.go): filters and scores choose a node
(:mod:`kemu.emulated.scheduler.cycle.decisions`); the pod is assumed on it; Reserve; Permit. Where no node is feasible:
PostFilter, evictions, a nomination. What comes after a node was found is the binding cycle.

The cost of an attempt in virtual time passes between the decision and its consequences; meanwhile the cache keeps the
snapshot on which the decision was made.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from kemu.emulated.scheduler.cache.pods import PodInfo
from kemu.emulated.scheduler.configuration.timings import Timing
from kemu.emulated.scheduler.cycle.decisions import Decider, ScheduleResult
from kemu.emulated.scheduler.cycle.profiles import Profile
from kemu.emulated.scheduler.cycle.status_updates import Reporter
from kemu.emulated.scheduler.experiments import unfit_nominations
from kemu.emulated.scheduler.experiments.overcommitments import Overcommitter
from kemu.emulated.scheduler.experiments.searches import Effort
from kemu.emulated.scheduler.extenders.clients import Extenders
from kemu.emulated.scheduler.failures import SCHEDULER_ERROR, Failure, FailureHandler, failure_of
from kemu.emulated.scheduler.framework import answers
from kemu.emulated.scheduler.framework.interfaces import Cycle, Handle
from kemu.emulated.scheduler.framework.permits import WaitingPod
from kemu.emulated.scheduler.framework.results import Candidate, PostFilterResult
from kemu.emulated.scheduler.framework.statuses import WAIT, Status
from kemu.emulated.scheduler.preemption.evictions import Evictor
from kemu.emulated.scheduler.queue.queues import QueuedPod, SchedulingQueue
from kemu.runtime.env import Env
from kemu.runtime.runlog.events import PodAttempted, PreemptionPlanned, VictimsSearched

NO_NODES = "no nodes available to schedule pods"


class Placement(NamedTuple):
    """What a successful scheduling cycle hands to the binding cycle: a pod assumed on its node."""

    pod: QueuedPod
    cycle: Cycle
    node: str


class SchedulingCycles:
    """Scheduling cycles of one scheduler. ``deciders`` and ``overcommitters``: by scheduler name."""

    def __init__(
        self,
        env: Env,
        handle: Handle,
        timing: Timing,
        reporter: Reporter,
        queue: SchedulingQueue,
        failures: FailureHandler,
        deciders: Mapping[str, Decider],
        extenders: Extenders | None,
        overcommitters: Mapping[str, Overcommitter],
        evictor: Evictor,
        start_binding: Callable[[Placement], object],
    ) -> None:
        self._env = env
        self._clock = env.clock
        self._handle = handle
        self._policy = handle.policy
        self._cluster = handle.cluster
        self._timing = timing
        self._reporter = reporter
        self._queue = queue
        self._failures = failures
        self._deciders = deciders
        self._extenders = extenders
        self._overcommitters = overcommitters
        self._evictor = evictor
        self._start_binding = start_binding

    async def run(self, pod: QueuedPod) -> None:
        """Afterwards the binding cycle of the pod has begun; or it is back in the queue, or needs no node.

        A pod that is skipped (``skipPodSchedule``) is being deleted, or an update has returned it to the queue although
        it is assumed.
        """
        info = pod.info
        started_ns = self._clock.now_ns()
        self._handle.scheduling_cycle += 1
        if info.terminating or info.uid in self._cluster.assumed:
            if info.terminating:
                self._reporter.skipped(info.pod)
            self._queue.done(info.uid)
            self.log_attempt(pod, started_ns, "skipped", None, "")
            return
        result = await self._decide(pod)
        # Even an attempt that takes no time lets other tasks run.
        await self._env.work(self._timing.cycle_s(self._env, result.evaluated))
        batches = self._deciders[pod.profile.scheduler_name].batches
        if batches is not None:
            batches.attempt_over()
        if result.node:
            await self.place(pod, result, started_ns)
        elif result.error is not None:
            self._cluster.release_snapshot()
            self.log_attempt(pod, started_ns, "error", result, result.error.message)
            await self._failures.handle(pod, Failure(result.error.message, reason=SCHEDULER_ERROR), "")
        else:
            await self._make_room(pod, result, started_ns)

    async def _decide(self, pod: QueuedPod) -> ScheduleResult:
        """Choose a node. From here on the cache keeps its snapshot."""
        name = pod.profile.scheduler_name
        decider = self._deciders[name]
        try:
            if self._extenders is None:
                result = decider.decide(pod.info)
            else:
                self._cluster.hold_snapshot()
                result = await self._extenders.decide(decider, pod.info)
            if not result.node and result.error is None and name in self._overcommitters:
                self._overcommitters[name].choose(result)
        except answers.InvalidAnswer as invalid:
            result = ScheduleResult(None)
            result.error = invalid.status
        if self._extenders is None:
            self._cluster.hold_snapshot()
        return result

    # A node was found ------------------------------------------------------------------------------------------------

    async def place(self, pod: QueuedPod, result: ScheduleResult, started_ns: int) -> None:
        """Assume the pod on its node, reserve what it needs there, ask for its permit."""
        info, node, filtering = pod.info, result.node, result.filtering
        assert filtering is not None
        cycle = filtering.cycle
        self._cluster.release_snapshot()
        if info.uid in self._cluster.pods:
            # Another scheduler has bound it meanwhile (``AssumePod`` in ``backend/cache``, cache.go).
            message = f"pod {info.uid}({info.key}) is in the cache, so can't be assumed"
            self.log_attempt(pod, started_ns, "error", result, message)
            await self._failures.handle(pod, Failure(message, reason=SCHEDULER_ERROR), "")
            return
        self._cluster.assume(info, node)
        nominated = self._cluster.nominator.remove(info.uid) if self._cluster.nominator.nodes else ""
        self._failures.assumed(info.uid, nominated)
        profile = pod.profile
        status = self._reserve(profile, cycle, node) if profile.reserve else None
        if status is None and profile.permit:
            status = self._permit(profile, cycle, node)
        if status is not None:
            pod.profile.unreserve(cycle, node)
            self._cluster.forget(info.uid)
            failure = failure_of(status, status.plugin)
            outcome = "unschedulable" if failure.rejectors else "error"
            self.log_attempt(pod, started_ns, outcome, result, failure.message)
            await self._failures.handle(pod, failure, "")
            return
        self.log_attempt(pod, started_ns, "scheduled", result, "")
        if info.uid not in self._handle.waiting:
            self._queue.done(info.uid)
        self._env.step("after-assume")
        self._start_binding(Placement(pod, cycle, node))

    def _reserve(self, profile: Profile, cycle: Cycle, node: str) -> Status | None:
        for plugin in profile.reserve:
            status = plugin.reserve(cycle, node)
            if status is not None:
                return answers.answer_of("Reserve", plugin.name, "reserve", status)
        return None

    def _permit(self, profile: Profile, cycle: Cycle, node: str) -> Status | None:
        """None: the pod may go on, perhaps after a wait (it is among ``handle.waiting`` then)."""
        limits_s: dict[str, float] = {}
        for plugin in profile.permit:
            answer = plugin.permit(cycle, node)
            if not (isinstance(answer, tuple) and len(answer) == 2):
                wrong = answers.status_of("permit", answer, "a pair, of None or a Status and seconds")
                return answers.answer_of("Permit", plugin.name, "permit", wrong)
            status, limit_s = answer
            if status is None:
                continue
            if not (isinstance(status, Status) and status.code == WAIT):
                return answers.answer_of("Permit", plugin.name, "permit", status)
            limits_s[plugin.name] = limit_s
        if limits_s:
            self._handle.waiting[cycle.pod.uid] = WaitingPod(cycle.pod, node, limits_s, self._clock)
        return None

    # No node was found -----------------------------------------------------------------------------------------------

    async def _make_room(self, pod: QueuedPod, result: ScheduleResult, started_ns: int) -> None:
        """PostFilter; then the pod is requeued, perhaps with a nomination, while its victims are evicted."""
        filtering = result.filtering
        if filtering is None:
            self._cluster.release_snapshot()
            self.log_attempt(pod, started_ns, "unschedulable", result, NO_NODES)
            await self._failures.handle(pod, Failure(NO_NODES), "")
            return
        found = pod.profile.post_filter(filtering)
        if self._extenders is not None and found.candidate is not None:
            found = await self._extenders.preempt(pod.info, found, pod.profile.post_filters)
        for effort in found.efforts:
            await self._spend(pod, effort)
        error = await found.write() if found.write is not None else ""
        message = f"{filtering.message()} {error or found.message}".rstrip()
        failure = Failure(message, filtering.rejectors(), pending=filtering.pending())
        self.log_attempt(pod, started_ns, "unschedulable", result, message)
        if found.candidate is not None:
            self._log_preemption(pod, started_ns, found)
            self._evictor.start(pod.info, found.candidate, self._unfit_beside(pod.info, found.candidate))
            if not self._policy.nomination:
                self._handle.preempted_on[pod.info.uid] = found.candidate.node
        self._cluster.release_snapshot()
        await self._failures.handle(pod, failure, found.node if self._policy.nomination else None)

    def _unfit_beside(self, pod: PodInfo, candidate: Candidate) -> list[str] | None:
        """Who loses a lower nomination to the node, where only those do that no longer fit; None: all."""
        if self._policy.clearLowerNominations != "if-unfit":
            return None
        return unfit_nominations.beside(pod, candidate, self._cluster, self._deciders)

    async def _spend(self, pod: QueuedPod, effort: Effort) -> None:
        """Let the time pass that a search of an experiment switch takes."""
        started_ns = self._clock.now_ns()
        await self._env.work(self._timing.evaluations_s(self._env.random, effort.evaluations))
        self._env.log(
            VictimsSearched(
                pod=pod.info.key,
                uid=pod.info.uid,
                start=started_ns,
                algorithm=effort.algorithm,
                evaluations=effort.evaluations,
                found=effort.found,
                gave_up=effort.gave_up,
            ),
        )

    # The run log -----------------------------------------------------------------------------------------------------

    def log_attempt(
        self, pod: QueuedPod, started_ns: int, outcome: str, result: ScheduleResult | None, message: str
    ) -> None:
        rejected: dict[str, int] = {}
        if result is not None and result.filtering is not None and result.feasible != result.filtering.nodes:
            rejected = result.filtering.rejected_by_plugin()
        self._env.log(
            PodAttempted(
                pod=pod.info.key,
                uid=pod.info.uid,
                start=started_ns,
                n=pod.attempts,
                result=outcome,
                node=result.node if result is not None else "",
                evaluated=result.evaluated if result is not None else 0,
                feasible=result.feasible if result is not None else 0,
                plugins=rejected,
                message=message,
            ),
        )

    def _log_preemption(self, pod: QueuedPod, started_ns: int, found: PostFilterResult) -> None:
        candidate = found.candidate
        assert candidate is not None
        self._env.log(
            PreemptionPlanned(
                pod=pod.info.key,
                uid=pod.info.uid,
                start=started_ns,
                node=candidate.node,
                candidates=found.candidates,
                victims=[[victim.key, victim.uid, victim.priority] for victim in candidate.victims],
                **({"violations": candidate.violations} if candidate.violations else {}),
            ),
        )
