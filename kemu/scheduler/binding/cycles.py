"""The binding cycle: from the choice of a node until the pod is bound, beside the scheduling loop.

PreBindPreFlight asks the PreBind plugins whether they have work to do. If one has, or the pod has to wait for its
permit, it may be long before it is bound, so its node is written to its status first (``nominatedNodeName``, under the
feature gate NominatedNodeNameForExpectation): others see where it will go. Then come Permit's wait, PreBind, Bind. As
long as Bind has not begun, a preemptor turns the pod away instead of deleting it.

Mirrors ``bindingCycle`` (``pkg/scheduler``), RunPreBindPreFlights, WaitOnPermit and ``podInPreBind``
(``pkg/scheduler/framework/runtime``).
"""

from __future__ import annotations

import asyncio
from typing import NamedTuple

from kemu.errors import ApiError
from kemu.runtime.env import Env
from kemu.scheduler.configuration.timings import Timing
from kemu.scheduler.cycle.profiles import Profile
from kemu.scheduler.cycle.status_updates import Reporter
from kemu.scheduler.experiments.switches import Policy
from kemu.scheduler.extenders.clients import Extenders
from kemu.scheduler.framework.interfaces import SKIP, Cycle, Plugin, PreBindPlugin, Skip
from kemu.scheduler.framework.permits import WaitingPod
from kemu.scheduler.framework.statuses import ERROR, WAIT, Status
from kemu.scheduler.queue.queues import SchedulingQueue

_PREEMPTION = "DefaultPreemption"


class Failure(NamedTuple):
    """Why a pod was not bound."""

    status: Status
    refusal: str = ""
    """The API server's reason, if it was that which refused."""
    rejector: str | None = None
    """The plugin whose events may help. None for an error, and from PreBind on: the pod is just tried again later."""


class BindingCycles:
    """All pods that have a node and are not bound yet."""

    def __init__(
        self,
        env: Env,
        policy: Policy,
        timing: Timing,
        reporter: Reporter,
        queue: SchedulingQueue,
        extenders: Extenders | None,
    ) -> None:
        self._env = env
        self._policy = policy
        self._timing = timing
        self._reporter = reporter
        self._queue = queue
        self._extenders = extenders
        self.waiting: dict[str, WaitingPod] = {}
        """Pods that wait for their permit, by UID."""
        self._in_pre_bind: dict[str, _PodInPreBind] = {}
        """Pods for which PreBind plugins work, by UID."""

    # From outside ---------------------------------------------------------------------------------------------------

    def permit(self, profile: Profile, cycle: Cycle, node: str) -> Status | None:
        """A status turns the pod away. None: it may go on, perhaps when it has waited."""
        limits_s: dict[str, float] = {}
        for plugin in profile.permit:
            status, limit_s = plugin.permit(cycle, node)
            if status is None:
                continue
            if status.code != WAIT:
                return answer_of("Permit", plugin, status)
            limits_s[plugin.name] = limit_s
        if limits_s:
            self.waiting[cycle.pod.uid] = WaitingPod(cycle.pod, node, limits_s, self._env.clock)
        return None

    def reject(self, uid: str) -> bool:
        """The pod was removed. False: it does not wait for its permit."""
        waiting = self.waiting.get(uid)
        return waiting is not None and waiting.reject("", "removed")

    def preempt(self, uid: str) -> bool:
        """Give the room of a pod to another one. False: that takes a DELETE, as Bind has begun or the pod is bound."""
        waiting = self.waiting.get(uid)
        if waiting is not None:
            return waiting.preempt(_PREEMPTION, "preempted")
        in_pre_bind = self._in_pre_bind.get(uid)
        return in_pre_bind is not None and in_pre_bind.cancel(f"preempted by {_PREEMPTION}")

    # The cycle ------------------------------------------------------------------------------------------------------

    async def run(self, profile: Profile, cycle: Cycle, node: str) -> Failure | None:
        """None when the pod is bound."""
        uid = cycle.pod.uid
        waiting = self.waiting.get(uid)
        plugins, status = _pre_flight(profile, cycle, node)
        if status is None and self._policy.nomination and (plugins or waiting is not None):
            await self._reporter.expect(cycle.message, node)
        if waiting is not None:
            if status is None:
                status = await waiting.decision()
            waiting.end()
            del self.waiting[uid]
        if status is not None:
            return Failure(status, rejector=status.plugin if status.rejected else None)
        if waiting is not None:
            # Up to here the attempt may yet fail for what happens meanwhile.
            self._queue.done(uid)
        if plugins:
            status = await self._pre_bind(plugins, cycle, node)
            if status is not None:
                return Failure(status)
        bind_s = self._timing.bind_s(self._env.random)
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
                    return answer_of("PreBind", plugin, status)
            return Status(ERROR, (pod.cancelled,)) if pod.cancelled else None
        finally:
            del self._in_pre_bind[uid]

    async def _bind(self, profile: Profile, cycle: Cycle, node: str) -> Failure | None:
        answer = SKIP if self._extenders is None else await self._extenders.bind(cycle.pod, node)
        if not isinstance(answer, Skip):
            return None if answer is None else Failure(answer)
        for binder in profile.bind:
            try:
                answer = await binder.bind(cycle, node)
            except ApiError as error:
                return Failure(answer_of("Bind", binder, Status(ERROR, (error.message,))), error.reason)
            if not isinstance(answer, Skip):
                return None if answer is None else Failure(answer_of("Bind", binder, answer))
        return Failure(Status(ERROR, ("no plugin bound the pod",)))


class _PodInPreBind:
    """While its plugins work they may be interrupted at whatever they wait for."""

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
    """The PreBind plugins that have something to do; or how one of them failed."""
    working: list[PreBindPlugin] = []
    for plugin in profile.pre_bind:
        answer = plugin.pre_bind_pre_flight(cycle, node)
        if isinstance(answer, Skip):
            continue
        if answer is not None and answer.code == ERROR:
            return [], Status(ERROR, (f'running PreBindPreFlight "{plugin.name}": {answer.message}',))
        if answer is not None:
            wanted = "It is supposed to return Success, Skip, or Error status"
            why = f'PreBindPreFlight {plugin.name} returned "{answer.code}", which is unsupported. {wanted}'
            return [], Status(ERROR, (why,))
        working.append(plugin)
    return working, None


def answer_of(point: str, plugin: Plugin, status: Status) -> Status:
    """What a plugin said no with, and that it was this plugin."""
    if status.rejected:
        return status._replace(plugin=plugin.name)
    return Status(status.code, (f'running {point} plugin "{plugin.name}": {status.message}',), plugin.name)
