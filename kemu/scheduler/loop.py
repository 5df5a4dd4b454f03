"""The scheduler without its connections: cycles over a queue, fed by events, writing through an API.

The loop takes one pod at a time: decide, then either assume and bind (in the background), or make room and requeue.
What an attempt costs in virtual time passes between the decision and what follows from it; meanwhile the cache keeps
the state that the decision was made on. Bindings and evictions run beside the loop; the status write after a failed
attempt holds it up, as with kube-scheduler's defaults (:mod:`kemu.scheduler.cycle.status_updates`).
"""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Callable
from typing import Any

from kemu.client.recorders import Recorder
from kemu.runtime.env import Env
from kemu.scheduler.binding import cycles
from kemu.scheduler.cache.cluster import Cluster
from kemu.scheduler.cache.feeds import NodeFeed, PodFeed
from kemu.scheduler.cache.pods import PodInfo
from kemu.scheduler.configuration.configurations import Configuration
from kemu.scheduler.configuration.timings import Timing
from kemu.scheduler.cycle import diagnoses
from kemu.scheduler.cycle.decisions import Decider, Decision
from kemu.scheduler.cycle.filtering import Filtering
from kemu.scheduler.cycle.profiles import Profile
from kemu.scheduler.cycle.status_updates import Reporter
from kemu.scheduler.experiments.avoided_nodes import AvoidedNodes
from kemu.scheduler.experiments.overcommitments import Overcommitter
from kemu.scheduler.experiments.searches import Effort
from kemu.scheduler.experiments.switches import Policy
from kemu.scheduler.extenders.clients import Extenders
from kemu.scheduler.framework import events
from kemu.scheduler.framework.events import Event
from kemu.scheduler.framework.interfaces import Api, Cycle, Handle
from kemu.scheduler.framework.registries import Registry
from kemu.scheduler.framework.results import PostFilterResult
from kemu.scheduler.framework.statuses import Status
from kemu.scheduler.plugins.avoid_evicted_node import AvoidEvictedNode
from kemu.scheduler.plugins.priority_sort import FirstInFirstOut
from kemu.scheduler.preemption.candidates import Preemptor
from kemu.scheduler.preemption.evictions import Evictor
from kemu.scheduler.queue.queues import QueuedPod, SchedulingQueue

NO_NODES = "no nodes available to schedule pods"
REJECTED, SCHEDULER_ERROR = "Unschedulable", "SchedulerError"
_LEFT_ALONE = ("Conflict", "NotFound")
"""Refusals of a binding after which the pod is not ours to write to."""


class Engine:
    """One scheduler. Give events to ``pod_feed`` and ``node_feed``, then :meth:`run`."""

    def __init__(
        self,
        env: Env,
        api: Api,
        configuration: Configuration,
        policy: Policy,
        timing: Timing,
        registry: Registry,
        recorders: Callable[[str], Recorder] | None = None,
    ) -> None:
        """``registry``: the plugins that profiles may name; ``recorders`` makes those of events, by scheduler name.

        Raises ConfigurationError.
        """
        self._env = env
        self._clock = env.clock
        self._api = api
        self._policy = policy
        self._timing = timing
        self.cluster = Cluster()
        handle = Handle(self.cluster, env.random, policy)
        handle.api, handle.clock = api, env.clock
        self._handle = handle
        if policy.avoidEvictedNode:
            handle.avoided = AvoidedNodes(env.clock, env.spawn, policy.avoidEvictedNode, self._avoidance_over)
        self.avoided = handle.avoided
        """To be told of pods that failed, where there is one."""
        self._extenders = Extenders(env, self.cluster, configuration.extenders) if configuration.extenders else None
        self.profiles: dict[str, Profile] = {}
        self._deciders: dict[str, Decider] = {}
        self._overcommitters: dict[str, Overcommitter] = {}
        for one in configuration.profiles:
            last_filters = [AvoidEvictedNode({}, handle)] if handle.avoided is not None else []
            profile = Profile(one, handle, registry, last_filters)
            if policy.queue == "fifo":
                profile.queue_sort = FirstInFirstOut({}, handle)
            decider = Decider(profile, self.cluster, env.random, configuration.percentage_of_nodes_to_score)
            decider.tries_nominated_node = policy.nomination
            if self._extenders is not None and self._extenders.compare_nodes:
                decider.takes_first = False
            self.profiles[one.scheduler_name] = profile
            self._deciders[one.scheduler_name] = decider
            if policy.preemptor == "kubelet" and not policy.disablePreemption:
                unhurried = Preemptor(self.cluster, policy, env.random, lambda nodes: nodes)
                self._overcommitters[one.scheduler_name] = Overcommitter(decider, unhurried)
        made = {} if recorders is None else {name: recorders(name) for name in self.profiles}
        self._reporter = Reporter(env, api, policy, made)
        self.queue = SchedulingQueue(
            env.clock,
            self.profiles,
            initial_backoff_s=configuration.initial_backoff_s,
            max_backoff_s=configuration.max_backoff_s,
            pops_from_backoff=configuration.pops_from_backoff,
            on_leave=self._log_queued,
        )
        self.queue.on_ready = self._on_ready
        self._ready = asyncio.Event()
        self._binding: dict[str, QueuedPod] = {}
        self._bindings = cycles.BindingCycles(env, policy, timing, self._reporter, self.queue, self._extenders)
        handle.waiting = self._bindings.waiting
        self.pod_feed = PodFeed(
            self.cluster,
            self.queue,
            self.profiles,
            policy.cooperate and policy.nomination,
            self._bindings.reject,
            lambda uid: handle.preempted_on.pop(uid, None),
        )
        self.node_feed = NodeFeed(self.cluster, self.queue)
        self._evictor = Evictor(
            env,
            api,
            self.cluster,
            policy,
            self._reporter,
            configuration.parallelism,
            self.pod_feed.find,
            self.queue.activate,
            self._bindings.preempt,
        )
        handle.is_preempting = self._evictor.is_preempting
        handle.latest = lambda info: self.pod_feed.find(info.uid)
        self.is_binding: Callable[[str], bool] = self._binding.__contains__
        """Whether a pod, by UID, is in its binding cycle."""
        self.between_attempts: Callable[[], object] = lambda: None
        """Called when no attempt is under way: what the watches have shown is all in the cache."""

    async def run(self) -> None:
        """Schedule for ever."""
        self.queue.start()
        while True:
            self.between_attempts()
            pod = self.queue.take()
            if pod is None:
                self._ready.clear()
                await self._ready.wait()
            else:
                await self._attempt(pod)

    def _on_ready(self) -> None:
        if not self._ready.is_set():
            self._ready.set()

    def _log_queued(self, pod: QueuedPod, place: str, since_ns: int, cause: str) -> None:
        info = pod.info
        self._env.log(
            "sched.queued", {"pod": info.key, "uid": info.uid, "queue": place, "start": since_ns, "event": cause}
        )

    # The scheduling cycle -------------------------------------------------------------------------------------------

    async def _attempt(self, pod: QueuedPod) -> None:
        info, uid = pod.info, pod.info.uid
        started_ns = self._clock.now_ns()
        if info.terminating or uid in self.cluster.pods:
            if info.terminating:
                self._reporter.skipped(info.pod)
            self.queue.done(uid)
            self._log_attempt(pod, started_ns, "skipped", None, "")
            return
        decider = self._deciders[pod.profile.scheduler_name]
        if self._extenders is None:
            decision = decider.decide(info)
        else:
            self.cluster.freeze()
            decision = await self._extenders.decide(decider, info)
        if not decision.node and decision.error is None and self._overcommitters:
            self._overcommitters[pod.profile.scheduler_name].choose(decision)
        cost_s = self._timing.cycle_s(self._env.random, decision.evaluated)
        self.cluster.freeze()
        # Also an attempt that takes no time lets the others have their turn.
        await self._clock.sleep(cost_s)
        if decision.node:
            await self._place(pod, decision, started_ns)
        elif decision.error is not None:
            self.cluster.thaw()
            self._log_attempt(pod, started_ns, "error", decision, decision.error.message)
            await self._requeue_and_report(pod, (), decision.error.message, None, SCHEDULER_ERROR)
        else:
            await self._fail(pod, decision, started_ns)

    async def _place(self, pod: QueuedPod, decision: Decision, started_ns: int) -> None:
        """Assume the pod on its node and begin the binding cycle."""
        info, node, filtering = pod.info, decision.node, decision.filtering
        assert filtering is not None
        self.cluster.thaw()
        if info.uid in self.cluster.pods:
            # Somebody else bound it while we were thinking.
            self.queue.done(info.uid)
            self._log_attempt(pod, started_ns, "skipped", decision, "the pod has been assigned meanwhile")
            return
        self.cluster.assume(info, node)
        self.cluster.nominator.remove(info.uid)
        cycle = filtering.cycle
        status = self._reserve(pod.profile, cycle, node)
        if status is None:
            status = self._bindings.permit(pod.profile, cycle, node)
        if status is not None:
            self._unreserve(pod.profile, cycle, node)
            self.cluster.forget(info.uid)
            rejectors, message, reason = _told(status, status.plugin)
            self._log_attempt(pod, started_ns, "unschedulable" if rejectors else "error", decision, message)
            await self._requeue_and_report(pod, rejectors, message, "", reason)
            return
        self._log_attempt(pod, started_ns, "scheduled", decision, "")
        if info.uid not in self._bindings.waiting:
            self.queue.done(info.uid)
        self._binding[info.uid] = pod
        self._env.spawn(self._bind(pod, cycle, node), f"bind {info.key}")

    async def _fail(self, pod: QueuedPod, decision: Decision, started_ns: int) -> None:
        """No node: make room if possible, requeue, write the status."""
        filtering = decision.filtering
        if filtering is None:
            self.cluster.thaw()
            self._log_attempt(pod, started_ns, "unschedulable", decision, NO_NODES)
            await self._requeue_and_report(pod, (), NO_NODES, "", REJECTED)
            return
        result = self._post_filter(pod.profile, filtering)
        if self._extenders is not None and result.candidate is not None:
            result = await self._extenders.preempt(pod.info, result, pod.profile.post_filters)
        for effort in result.efforts:
            await self._spend(pod, effort)
        message = f"{filtering.message()} {result.message}".rstrip()
        rejectors = filtering.rejectors()
        self._log_attempt(pod, started_ns, "unschedulable", decision, message)
        nominate = result.node
        if result.candidate is not None:
            candidate = result.candidate
            self._env.log(
                "sched.preemption",
                {
                    "pod": pod.info.key,
                    "uid": pod.info.uid,
                    "start": started_ns,
                    "node": candidate.node,
                    "candidates": result.candidates,
                    "victims": [[victim.key, victim.uid, victim.priority] for victim in candidate.victims],
                },
            )
            self._evictor.start(pod.info, candidate)
            if not self._policy.nomination:
                self._handle.preempted_on[pod.info.uid] = candidate.node
        if not self._policy.nomination:
            nominate = None
        self.cluster.thaw()
        await self._requeue_and_report(pod, rejectors, message, nominate, REJECTED)

    def _post_filter(self, profile: Profile, filtering: Filtering) -> PostFilterResult:
        """The first plugin that makes room ends it; the messages of those that did not are joined."""
        found = PostFilterResult()
        for plugin in profile.post_filters:
            result = plugin.post_filter(filtering)
            efforts = (*found.efforts, *result.efforts)
            if result.node:
                return dataclasses.replace(result, efforts=efforts) if efforts else result
            message = ", ".join(text for text in (found.message, result.message) if text)
            node = found.node if result.node is None else result.node
            found = dataclasses.replace(found, message=message, node=node, efforts=efforts)
        return found

    async def _spend(self, pod: QueuedPod, effort: Effort) -> None:
        """Let the time pass that a search of an experiment switch takes."""
        started_ns = self._clock.now_ns()
        await self._clock.sleep(self._timing.evaluations_s(self._env.random, effort.evaluations))
        self._env.log(
            "sched.search",
            {
                "pod": pod.info.key,
                "uid": pod.info.uid,
                "start": started_ns,
                "algorithm": effort.algorithm,
                "evaluations": effort.evaluations,
                "found": effort.found,
                "gave_up": effort.gave_up,
            },
        )

    def _avoidance_over(self, thrown_out: Any) -> None:
        self.queue.move(Event.AVOIDANCE_OVER, thrown_out, None)

    def _log_attempt(
        self, pod: QueuedPod, started_ns: int, result: str, decision: Decision | None, message: str
    ) -> None:
        filtering = decision.filtering if decision is not None else None
        nothing_rejected = filtering is None or (decision is not None and decision.feasible == filtering.nodes)
        self._env.log(
            "sched.attempt",
            {
                "pod": pod.info.key,
                "uid": pod.info.uid,
                "start": started_ns,
                "n": pod.attempts,
                "result": result,
                "node": decision.node if decision is not None else "",
                "evaluated": decision.evaluated if decision is not None else 0,
                "feasible": decision.feasible if decision is not None else 0,
                "plugins": {} if nothing_rejected or filtering is None else filtering.rejected_by_plugin(),
                "message": message,
            },
        )

    # After a failure ------------------------------------------------------------------------------------------------

    async def _requeue_and_report(
        self, pod: QueuedPod, rejectors: tuple[str, ...], message: str, nominate: str | None, reason: str
    ) -> None:
        latest = self._requeue(pod, rejectors, nominate)
        await self._reporter.failed(latest, message, nominate, reason)

    def _requeue(self, pod: QueuedPod, rejectors: tuple[str, ...], nominate: str | None) -> Any:
        """Back to the queue, with the pod as it is now, unless it is gone or somebody else placed it.

        ``nominate``: a node, "" to take the nomination back, None to leave it. Returns the pod as it was put there.
        """
        uid, nominator, tried = pod.info.uid, self.cluster.nominator, pod.info.pod
        latest = self.pod_feed.find(uid)
        if latest is None or latest.spec.nodeName:
            self.queue.done(uid)
            nominator.remove(uid)
            return tried
        if latest is not tried:
            pod.info = self.cluster.pending(latest)
        self.queue.failed(pod, rejectors)
        if self._policy.nomination:
            nominator.nominate(pod.info, self._reporter.nomination(latest) if nominate is None else nominate)
        return latest

    # The binding cycle ----------------------------------------------------------------------------------------------

    def _reserve(self, profile: Profile, cycle: Cycle, node: str) -> Status | None:
        for plugin in profile.reserve:
            status = plugin.reserve(cycle, node)
            if status is not None:
                return cycles.answer_of("Reserve", plugin, status)
        return None

    def _unreserve(self, profile: Profile, cycle: Cycle, node: str) -> None:
        for plugin in reversed(profile.reserve):
            plugin.unreserve(cycle, node)

    async def _bind(self, pod: QueuedPod, cycle: Cycle, node: str) -> None:
        info = pod.info
        started_ns = self._clock.now_ns()
        failure = await self._bindings.run(pod.profile, cycle, node)
        del self._binding[info.uid]
        reason = text = ""
        if failure is not None:
            reason = failure.refusal or failure.status.plugin or SCHEDULER_ERROR
            text = _told(failure.status, failure.rejector)[1]
        self._env.log(
            "sched.bind",
            {
                "pod": info.key,
                "uid": info.uid,
                "node": node,
                "start": started_ns,
                "ok": failure is None,
                "reason": reason,
                "message": text,
            },
        )
        if failure is None:
            self._handle.preempted_on.pop(info.uid, None)
            self._reporter.bound(info.pod, node)
            for plugin in pod.profile.post_bind:
                plugin.post_bind(cycle, node)
            return
        self._unreserve(pod.profile, cycle, node)
        await self._take_back(pod, info, node, failure)

    async def _take_back(self, pod: QueuedPod, info: PodInfo, node: str, failure: cycles.Failure) -> None:
        """A binding failed: what was assumed is not so, which is news for everybody.

        Not for the pod itself when it was rejected: so it hears of it only when all is done, and left out. It is news
        once more when the pod was deleted, and forgotten, before: ForgetPod only minds a pod that the watch has shown
        on a node.
        """
        seen = self.pod_feed.find(info.uid)
        is_news = seen is None or not seen.spec.nodeName
        rejected = failure.status.rejected
        gone = events.assigned(info.pod, node)
        self.cluster.forget(info.uid)
        rejectors, message, reason = _told(failure.status, failure.rejector)
        if is_news and not rejected:
            self.queue.move(Event.ASSIGNED_POD_DELETE, gone, None)
        latest = self._requeue(pod, rejectors, "")
        await self._reporter.failed(latest, message, "", reason, writes_status=failure.refusal not in _LEFT_ALONE)
        if is_news and rejected:
            self.queue.move(Event.ASSIGNED_POD_DELETE, gone, None, lambda waiting: waiting.uid != info.uid)


def _told(status: Status, rejector: str | None) -> tuple[tuple[str, ...], str, str]:
    """Of a status from Reserve on: who rejected the pod (nobody: it is an error), the message, the reason."""
    if not status.rejected:
        return (), status.message, SCHEDULER_ERROR
    if rejector is None:
        return (), status.message, REJECTED
    return (rejector,), diagnoses.failure_message(1, [(status, 1)]), REJECTED
