"""The binding cycle: from an assumed pod to a bound one, beside the scheduling loop.

The steps in their order (``bindingCycle`` in ``pkg/scheduler``, schedule_one.go; RunPreBindPreFlights, WaitOnPermit and
``podInPreBind`` in ``pkg/scheduler/framework/runtime``):

1. PreBindPreFlight asks the PreBind plugins whether they have work to do.
2. If one has, or the pod waits for its permit, its node is written to its status (``nominatedNodeName``, feature gate
   NominatedNodeNameForExpectation), because binding may take long: others see where the pod will go.
3. Permit's wait.
4. PreBind.
5. Bind, by an extender or a plugin; then PostBind.

Until Bind begins, a preemptor turns the pod away instead of deleting it. Whatever fails, the pod gives its room back
and returns to the queue (:mod:`kemu.emulated.scheduler.failures`).
"""

from __future__ import annotations

import asyncio
from typing import NamedTuple

from kemu.emulated.scheduler.cache.pods import PodInfo
from kemu.emulated.scheduler.configuration.timings import Timing
from kemu.emulated.scheduler.cycle.profiles import Profile
from kemu.emulated.scheduler.cycle.status_updates import Reporter
from kemu.emulated.scheduler.extenders.clients import Extenders
from kemu.emulated.scheduler.failures import SCHEDULER_ERROR, Failure, FailureHandler, failure_of
from kemu.emulated.scheduler.framework import answers, events
from kemu.emulated.scheduler.framework.events import Event
from kemu.emulated.scheduler.framework.interfaces import SKIP, Cycle, Handle, PreBindPlugin, Skip
from kemu.emulated.scheduler.framework.statuses import ERROR, Status
from kemu.emulated.scheduler.queue.queues import QueuedPod, SchedulingQueue
from kemu.emulated.scheduler.scheduling_cycles import Placement
from kemu.errors import ApiError
from kemu.runtime.env import Env
from kemu.runtime.runlog.events import PodBound

_PREEMPTION = "DefaultPreemption"


class _NotBound(NamedTuple):
    """Why a pod was not bound."""

    status: Status
    refusal: str = ""
    """The API server's reason, if it refused."""
    rejector: str | None = None
    """The plugin whose events may help. None for an error, and from PreBind on: the pod is just retried later."""


class BindingCycles:
    """All pods that are assumed on a node and not bound yet."""

    def __init__(
        self,
        env: Env,
        handle: Handle,
        timing: Timing,
        reporter: Reporter,
        queue: SchedulingQueue,
        failures: FailureHandler,
        extenders: Extenders | None,
    ) -> None:
        self._env = env
        self._handle = handle
        self._cluster = handle.cluster
        self._timing = timing
        self._reporter = reporter
        self._queue = queue
        self._failures = failures
        self._extenders = extenders
        self._tells = handle.policy.nomination
        """Where a pod will be bound, before it waits for that."""
        self.under_way: dict[str, QueuedPod] = {}
        """By UID."""
        self._in_pre_bind: dict[str, _PodInPreBind] = {}
        """Pods for which PreBind plugins work, by UID."""

    def start(self, placement: Placement) -> None:
        """Begin the binding cycle of a pod, as a task of its own."""
        info = placement.pod.info
        self.under_way[info.uid] = placement.pod
        self._env.spawn(self._run(placement), f"bind {info.key}")

    # From outside ----------------------------------------------------------------------------------------------------

    def reject(self, uid: str) -> bool:
        """The pod was deleted. False: it does not wait for its permit."""
        waiting = self._handle.waiting.get(uid)
        return waiting is not None and waiting.reject("", "removed")

    def preempt(self, uid: str) -> bool:
        """Turn the pod away for another one. False: that takes a DELETE, as Bind has begun or the pod is bound."""
        waiting = self._handle.waiting.get(uid)
        if waiting is not None:
            return waiting.preempt(_PREEMPTION, "preempted")
        in_pre_bind = self._in_pre_bind.get(uid)
        return in_pre_bind is not None and in_pre_bind.cancel(f"preempted by {_PREEMPTION}")

    # The cycle -------------------------------------------------------------------------------------------------------

    async def _run(self, placement: Placement) -> None:
        pod, cycle, node = placement
        info = pod.info
        started_ns = self._env.clock.now_ns()
        failed = await self._attempt(pod.profile, cycle, node)
        if failed is None:
            self._env.step("after-bind")
        del self.under_way[info.uid]
        failure = None if failed is None else failure_of(failed.status, failed.rejector)
        self._log_bind(placement, started_ns, failed, failure)
        if failed is not None and failure is not None:
            pod.profile.unreserve(cycle, node)
            await self._give_back(placement, failed, failure)
            return
        self._handle.preempted_on.pop(info.uid, None)
        self._bound(info, node)
        for plugin in pod.profile.post_bind:
            plugin.post_bind(cycle, node)

    async def _expect(self, cycle: Cycle, node: str) -> None:
        """Tell others where the pod will be bound, before it waits for that."""
        await self._reporter.expect(cycle.message, node)

    def _bound(self, info: PodInfo, node: str) -> None:
        self._reporter.bound(info.pod, node)

    async def _attempt(self, profile: Profile, cycle: Cycle, node: str) -> _NotBound | None:
        """The steps until the pod is bound (None) or one of them fails."""
        uid = cycle.pod.uid
        waiting = self._handle.waiting.get(uid)
        plugins, status = _pre_flight(profile, cycle, node)
        if status is None and self._tells and (plugins or waiting is not None):
            await self._expect(cycle, node)
        if waiting is not None:
            if status is None:
                status = await waiting.decision()
            waiting.end()
            del self._handle.waiting[uid]
        if status is not None:
            return _NotBound(status, rejector=status.plugin if status.rejected else None)
        if waiting is not None:
            # The queue remembered events until here: the attempt could still be rejected.
            self._queue.done(uid)
        if plugins:
            status = await self._pre_bind(plugins, cycle, node)
            if status is not None:
                return _NotBound(status)
        bind_s = self._timing.bind_s(self._env)
        if bind_s:
            await self._env.clock.sleep(bind_s)
        if self._reporter.in_background:
            await self._reporter.settled(uid)
        return await self._bind(profile, cycle, node)

    async def _pre_bind(self, plugins: list[PreBindPlugin], cycle: Cycle, node: str) -> Status | None:
        uid = cycle.pod.uid
        pod = self._in_pre_bind[uid] = _PodInPreBind()
        try:
            for plugin in plugins:
                try:
                    status = await plugin.pre_bind(cycle, node)
                except ApiError as error:
                    status = Status(ERROR, (error.message,))
                except asyncio.CancelledError:
                    if not pod.cancelled:
                        raise
                    pod.resume()
                    status = Status(ERROR, (pod.cancelled,))
                if status is not None:
                    return answers.answer_of("PreBind", plugin.name, "pre_bind", status)
            return Status(ERROR, (pod.cancelled,)) if pod.cancelled else None
        finally:
            del self._in_pre_bind[uid]

    async def _bind(self, profile: Profile, cycle: Cycle, node: str) -> _NotBound | None:
        answer = SKIP if self._extenders is None else await self._extenders.bind(cycle.pod, node)
        if not isinstance(answer, Skip):
            return None if answer is None else _NotBound(answer)
        for binder in profile.bind:
            try:
                answer = await binder.bind(cycle, node)
            except ApiError as error:
                # As answers.answer_of: most bindings of schedulers that race end here.
                why = f'running Bind plugin "{binder.name}": {error.message}'
                return _NotBound(Status(ERROR, (why,), binder.name), error.reason)
            if not isinstance(answer, Skip):
                return None if answer is None else _NotBound(answers.answer_of("Bind", binder.name, "bind", answer))
        return _NotBound(Status(ERROR, ("no plugin bound the pod",)))

    # After a failure -------------------------------------------------------------------------------------------------

    async def _give_back(self, placement: Placement, failed: _NotBound, failure: Failure) -> None:
        """Forget the assumed pod, which frees its room for others, and requeue it (``handleBindingCycleError``).

        The freed room is an event for waiting pods. A pod that a plugin rejected must not be woken by it itself, so in
        that case the event comes after the pod was requeued and leaves it out. If the watch already shows the pod on a
        node, ForgetPod does nothing and there is no event. A pod deleted earlier, which was forgotten then, causes the
        event a second time, as in kube-scheduler.
        """
        pod, _cycle, node = placement
        info = pod.info
        frees_room = self._failures.is_unassigned(info.uid)
        rejected = failure.reason != SCHEDULER_ERROR
        gone = events.assigned(info.pod, node) if frees_room else None
        self._cluster.forget(info.uid)
        if frees_room and not rejected:
            self._queue.move(Event.ASSIGNED_POD_DELETE, gone, None)
        await self._failures.handle(pod, failure, "")
        if frees_room and rejected:
            self._queue.move(Event.ASSIGNED_POD_DELETE, gone, None, lambda waiting: waiting.uid != info.uid)

    def _log_bind(
        self, placement: Placement, started_ns: int, failed: _NotBound | None, failure: Failure | None
    ) -> None:
        reason = message = ""
        if failed is not None and failure is not None:
            reason, message = failed.refusal or failed.status.plugin or SCHEDULER_ERROR, failure.message
        self._env.log(
            PodBound(
                pod=placement.pod.info.key,
                uid=placement.pod.info.uid,
                node=placement.node,
                start=started_ns,
                ok=failed is None,
                reason=reason,
                message=message,
            ),
        )


class _PodInPreBind:
    """While its plugins work they may be interrupted wherever they wait."""

    def __init__(self) -> None:
        self._task = asyncio.current_task()
        self.cancelled = ""
        """Why."""

    def cancel(self, why: str) -> bool:
        if not self.cancelled:
            self.cancelled = why
            assert self._task is not None
            self._task.cancel()
        return True

    def resume(self) -> None:
        """The interruption has arrived; the task itself goes on."""
        assert self._task is not None
        self._task.uncancel()


def _pre_flight(profile: Profile, cycle: Cycle, node: str) -> tuple[list[PreBindPlugin], Status | None]:
    """The PreBind plugins that have work to do; or how one of them failed."""
    working: list[PreBindPlugin] = []
    for plugin in profile.pre_bind:
        answer = plugin.pre_bind_pre_flight(cycle, node)
        if isinstance(answer, Skip):
            continue
        if answer is not None:
            answer = answers.status_of("pre_bind_pre_flight", answer, "None, SKIP or a Status")
        if answer is not None and answer.code == ERROR:
            return [], Status(ERROR, (f'running PreBindPreFlight "{plugin.name}": {answer.message}',))
        if answer is not None:
            wanted = "It is supposed to return Success, Skip, or Error status"
            why = f'PreBindPreFlight {plugin.name} returned "{answer.code}", which is unsupported. {wanted}'
            return [], Status(ERROR, (why,))
        working.append(plugin)
    return working, None
