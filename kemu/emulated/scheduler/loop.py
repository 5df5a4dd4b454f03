"""The scheduler without its connections: cycles over a queue, fed by events, writing through an API.

The way of a pod, as in ``schedule_one.go`` (``pkg/scheduler``): :meth:`Engine.schedule_one` takes it from the queue,
:mod:`kemu.emulated.scheduler.scheduling_cycles` chooses a node for it and assumes it there,
:mod:`kemu.emulated.scheduler.binding_cycles` binds it, beside the loop, and :mod:`kemu.emulated.scheduler.failures`
returns it to the queue when either cycle fails.

The loop takes one pod at a time. Bindings and evictions run beside it; the status write after a failed attempt holds it
up, as with kube-scheduler's defaults (:mod:`kemu.emulated.scheduler.cycle.status_updates`).
"""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Awaitable, Callable, Collection, Coroutine, Iterator
from typing import Any

from kemu.emulated import variants
from kemu.emulated.client.recorders import Recorder
from kemu.emulated.scheduler.binding_cycles import BindingCycles
from kemu.emulated.scheduler.cache import pod_groups
from kemu.emulated.scheduler.cache.cluster import Cluster
from kemu.emulated.scheduler.cache.pod_groups import Groups
from kemu.emulated.scheduler.cache.pods import PodInfo
from kemu.emulated.scheduler.configuration.configurations import Configuration, ProfileConfiguration
from kemu.emulated.scheduler.configuration.timings import Timing
from kemu.emulated.scheduler.cycle.decisions import Decider
from kemu.emulated.scheduler.cycle.profiles import Profile
from kemu.emulated.scheduler.cycle.status_updates import Reporter
from kemu.emulated.scheduler.experiments import switches
from kemu.emulated.scheduler.experiments.avoided_nodes import AvoidedNodes
from kemu.emulated.scheduler.experiments.overcommitments import Overcommitter
from kemu.emulated.scheduler.experiments.switches import Policy
from kemu.emulated.scheduler.extenders.clients import Extenders
from kemu.emulated.scheduler.failures import FailureHandler
from kemu.emulated.scheduler.feeds import NodeFeed, PodFeed
from kemu.emulated.scheduler.framework.events import Event
from kemu.emulated.scheduler.framework.interfaces import Api, Handle
from kemu.emulated.scheduler.framework.registries import Registry
from kemu.emulated.scheduler.groups import parts
from kemu.emulated.scheduler.groups.cycles import GroupCycles
from kemu.emulated.scheduler.plugins.avoid_evicted_node import AvoidEvictedNode
from kemu.emulated.scheduler.plugins.gang_scheduling import GangScheduling
from kemu.emulated.scheduler.plugins.priority_sort import FirstInFirstOut
from kemu.emulated.scheduler.preemption.candidates import Preemptor
from kemu.emulated.scheduler.preemption.evictions import Evictor
from kemu.emulated.scheduler.queue.queues import QueuedPod, SchedulingQueue
from kemu.emulated.scheduler.scheduling_cycles import SchedulingCycles
from kemu.messages.k8s import core_v1_pb2
from kemu.runtime.env import Env
from kemu.runtime.runlog.events import PodQueued


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
        deviations: Collection[str] = (),
        *,
        devices: bool = False,
    ) -> None:
        """``registry``: the plugins that profiles may name; ``recorders`` makes those of events, by scheduler name;
        ``deviations``: ablations, bugs and fixes (:mod:`kemu.emulated.variants`); the policy adds its own. ``devices``:
        whether there may be claims of devices.

        Raises ConfigurationError.
        """
        policy = switches.without_safeguards(policy, deviations)
        varied = (*deviations, *switches.alternatives(policy))
        self._env = env
        self._ready: asyncio.Future[None] | None = None
        """While it waits for pods."""
        self.between_attempts: Callable[[], object] = lambda: None
        """Called when no attempt is under way, from :attr:`due_ns` on: what the watches have shown is all in the
        cache."""
        self.due_ns = 0
        groups = Groups(configuration.groups) if configuration.groups else None
        cluster = variants.choose(Cluster, varied)
        self.cluster = cluster() if groups is None else parts.joined(parts.GroupCluster, cluster)()
        if devices:
            from kemu.emulated.scheduler.devices.trackers import Devices

            self.cluster.devices = variants.choose(Devices, varied)(env.clock)
            self.cluster.devices.of_groups = pod_groups.CLAIMS in configuration.groups
        self.handle = Handle(self.cluster, env.random, policy)
        self.handle.api, self.handle.clock, self.handle.spawn = api, env.clock, env.spawn
        self.handle.groups = groups
        self.handle.draws_lots = configuration.parallelism > 1
        if policy.avoidEvictedNode:
            self.handle.avoided = AvoidedNodes(env.clock, env.spawn, policy.avoidEvictedNode, self._avoidance_over)
        self.avoided = self.handle.avoided
        """Hears of pods that failed; None without the switch."""
        extenders = Extenders(env, self.cluster, configuration.extenders) if configuration.extenders else None
        self.profiles: dict[str, Profile] = {}
        self.deciders: dict[str, Decider] = {}
        overcommitters: dict[str, Overcommitter] = {}
        for one in configuration.profiles:
            name = one.scheduler_name
            profile = self.profiles[name] = self._profile(one, registry)
            percentage = configuration.percentage_of_nodes_to_score
            decider = self.deciders[name] = Decider(profile, self.cluster, env.random, percentage)
            decider.tries_nominated_node = policy.nomination and policy.nominatedNodeFirst
            if extenders is not None and extenders.compare_nodes:
                decider.takes_first = False
            if policy.preemptor == "kubelet" and not policy.disablePreemption:
                unhurried = variants.choose(Preemptor, varied)(self.cluster, policy, env.random, lambda nodes: nodes)
                overcommitters[name] = Overcommitter(decider, unhurried)
        queue = variants.choose(SchedulingQueue, varied)
        self.queue = (queue if groups is None else parts.joined(parts.GroupQueue, queue))(
            env.clock,
            self.profiles,
            initial_backoff_s=configuration.initial_backoff_s,
            max_backoff_s=configuration.max_backoff_s,
            pops_from_backoff=configuration.pops_from_backoff,
            on_leave=self._log_queued,
        )
        self.queue.on_ready = self._wake
        self.handle.activate = self.queue.activate
        made = {} if recorders is None else {name: recorders(name) for name in self.profiles}
        reporter = Reporter(env, api, policy, made)
        self.handle.event = reporter.told
        seen: dict[str, Any] = {}
        """Every pod as the watch last showed it, by UID."""
        failures = variants.choose(FailureHandler, varied)(self.cluster, self.queue, reporter, policy, seen)
        self.bindings = variants.choose(BindingCycles, varied)(
            env, self.handle, timing, reporter, self.queue, failures, extenders
        )
        self.evictor = variants.choose(Evictor, varied)(
            env,
            api,
            self.cluster,
            policy,
            reporter,
            configuration.parallelism,
            seen.get,
            self.queue.activate,
            self.queue.preemption_over,
            self.bindings.preempt,
        )
        self.handle.is_preempting = self.evictor.is_preempting
        self.handle.latest = lambda info: seen.get(info.uid)
        self._scheduling = SchedulingCycles(
            env,
            self.handle,
            timing,
            reporter,
            self.queue,
            failures,
            self.deciders,
            extenders,
            overcommitters,
            self.evictor,
            self.bindings.start,
        )
        self._cycle_of: Callable[[QueuedPod], Coroutine[Any, Any, None]] = self._scheduling.run
        pod_feed = variants.choose(PodFeed, varied)
        self.pod_feed = (pod_feed if groups is None else parts.joined(parts.GroupPodFeed, pod_feed))(
            self.cluster,
            self.queue,
            self.profiles,
            seen,
            policy,
            self.bindings.reject,
            lambda uid: self.handle.preempted_on.pop(uid, None),
        )
        self.node_feed = NodeFeed(self.cluster, self.queue)
        if groups is not None:
            assert isinstance(self.queue, parts.GroupQueue)
            assert isinstance(self.pod_feed, parts.GroupPodFeed)
            assert isinstance(self.cluster, parts.GroupCluster)
            self.cluster.groups = self.queue.groups = self.pod_feed.groups = groups
            self.group_feed = parts.GroupFeed(groups, self.queue)
            one_by_one = self._scheduling
            of_groups = GroupCycles(
                env,
                api,
                self.handle,
                timing,
                reporter,
                self.queue,
                failures,
                self.deciders,
                extenders,
                self.evictor,
                one_by_one,
            )
            self._cycle_of = lambda pod: (
                of_groups.run(pod) if pod.info.pod.spec.HasField("schedulingGroup") else one_by_one.run(pod)
            )

    def _profile(self, configuration: ProfileConfiguration, registry: Registry) -> Profile:
        groups = self.handle.groups
        if groups is not None and pod_groups.GANG in groups.gates:
            registry = dataclasses.replace(registry, default={**registry.default, "GangScheduling": GangScheduling})
        avoided = [AvoidEvictedNode({}, self.handle)] if self.avoided is not None else []
        profile = Profile(configuration, self.handle, registry, last_filters=avoided)
        if groups is not None:
            # Plugins register pods that are added, whether these have a node or not.
            for name, hint in profile.hints[Event.ASSIGNED_POD_ADD].items():
                profile.hints[Event.POD_ADD].setdefault(name, hint)
        if self.handle.policy.queue == "fifo":
            profile.queue_sort = FirstInFirstOut({}, self.handle)
        return profile

    # Each level of coroutines costs every step of the loop a little: those that only pass on are plain methods.

    def run(self) -> Awaitable[None]:
        """Schedule for ever."""
        self.queue.start()
        return self.schedule_all()

    async def schedule_all(self) -> None:
        """Try pod after pod; the queue's timers run."""
        cluster, names, now_ns = self.cluster, self.cluster.names, self._env.clock.now_ns
        while True:
            if now_ns() >= self.due_ns:
                self.between_attempts()
            if len(names.index) > names.limit:
                cluster.forget_resources(self._waiting())
            pod = self.queue.take()
            if pod is None:
                await self.wait_for_pods()
            else:
                await self.schedule_one(pod)

    def wait_for_pods(self) -> Awaitable[None]:
        """Until there may be something to take."""
        self._ready = asyncio.get_running_loop().create_future()
        return self._ready

    def _wake(self) -> None:
        ready = self._ready
        if ready is not None and not ready.done():
            ready.set_result(None)

    def _waiting(self) -> Iterator[PodInfo]:
        """The pods in the queue and in their binding cycles."""
        for pods in (self.queue.pods, self.bindings.under_way):
            for pod in pods.values():
                yield pod.info

    def schedule_one(self, pod: QueuedPod) -> Coroutine[Any, Any, None]:
        """The scheduling cycle of a pod; if it ends with a node, its binding cycle begins beside the loop."""
        return self._cycle_of(pod)

    def _avoidance_over(self, thrown_out: core_v1_pb2.Pod) -> None:
        self.queue.move(Event.AVOIDANCE_OVER, thrown_out, None)

    def _log_queued(self, pod: QueuedPod, place: str, since_ns: int, cause: str) -> None:
        info = pod.info
        self._env.log(
            PodQueued(
                pod=info.key,
                uid=info.uid,
                queue=place,
                start=since_ns,
                event=cause,
            )
        )
