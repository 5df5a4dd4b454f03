"""The loop of the eviction manager: when it makes a pass, and how its evictions are carried out.

A real kubelet makes a pass every 10 s. Here passes without an effect are skipped: the usage curves
(:mod:`kemu.emulated.kubelet.usage.machines`) tell when a threshold or a limit can next be met, and the loop sleeps
until the pass that follows, or until the pods change. While a threshold is met, or a condition is still reported, no
pass is skipped. The kernel's OOM killer (:mod:`kemu.emulated.kubelet.pressure.oom_kills`) comes before the pass of the
same instant.

With ``kernelMemcgNotification`` there is another pass whenever memory crosses a threshold
(:mod:`kemu.emulated.kubelet.pressure.notifiers`). Then no regular pass is skipped, as each of them sets anew what the
kernel waits for.

Mirrors ``managerImpl.Start``, ``evictPod`` and ``waitForPodsCleanup`` of ``pkg/kubelet/eviction``; the decisions are in
:mod:`kemu.emulated.kubelet.pressure.eviction`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Any, ClassVar, Protocol

from kemu.emulated.client import recorders
from kemu.emulated.kubelet.admission import predicates
from kemu.emulated.kubelet.images import garbage, stores
from kemu.emulated.kubelet.pods import statuses
from kemu.emulated.kubelet.pods.workers import ACTIVE, STOPPING, Worker
from kemu.emulated.kubelet.pressure import eviction, notifiers, oom_kills, ranking
from kemu.emulated.kubelet.settings import kubelet_configurations, thresholds
from kemu.emulated.kubelet.usage import curves, machines, usages
from kemu.emulated.objects.amounts import quantities
from kemu.messages.k8s import core_v1_pb2
from kemu.runtime.env import SECOND_NS, Env, Timer
from kemu.runtime.runlog.events import GarbageCollected, PodEvicting, PressureChanged, ThresholdsMet

KILL_TIMEOUT_S = 10
"""The manager waits at least this long for a pod to be killed (``killPodNow``); else one and a half grace periods."""
SEARCH_S = 3600
"""How far ahead the loop looks for the next crossing where curves never settle."""

CONDITION_REASON = "TerminationByKubelet"

_LIMITED = ("memory", "ephemeral-storage")
"""Resources of a node with an eviction threshold by default."""


class EvictionHost(Protocol):
    """The pods of the node."""

    def images_in_use(self) -> Iterable[str]:
        """By the names that the containers give them."""

    def forget_ended(self) -> None:
        """Containers of pods that have ended are removed."""

    def active(self) -> Iterable[Worker]: ...

    def kill(
        self,
        worker: Worker,
        failure: statuses.Failure,
        gone: Callable[[], None] | None = None,
        grace_s: int | None = None,
    ) -> None: ...

    def oom_kill(self, worker: Worker, name: str, limit_bytes: int | None) -> bool: ...


def failure_of(one: eviction.Eviction) -> statuses.Failure:
    """What the status of an evicted pod says."""
    if not one.disrupts:
        return statuses.Failure(eviction.REASON, one.message, makes_room=True)
    return statuses.Failure(eviction.REASON, one.message, CONDITION_REASON, one.message, makes_room=True)


def refusal_of(manager: eviction.Manager, pod: core_v1_pb2.Pod) -> predicates.Decision | None:
    """What a manager says of a pod that arrives; None: nothing against it."""
    message = manager.admit(pod)
    return predicates.Decision(False, eviction.REASON, message) if message else None


class EvictionLoop:
    """``on_conditions`` is told the pressure conditions of the node when they change."""

    leaves_out: ClassVar[bool] = True
    """Whether passes without an effect are skipped. Tests compare with a loop that skips none."""

    def __init__(
        self,
        env: Env,
        node: core_v1_pb2.Node,
        config: Mapping[str, Any],
        host: EvictionHost,
        on_conditions: Callable[[tuple[str, ...]], None],
        here: stores.Images,
        recorder: recorders.Recorder | None = None,
    ) -> None:
        """``config``: of the kubelet actor (``kubelet``, ``machine``, ``usage``, ``policy``). ``node``: as given."""
        self._env = env
        self._clock = env.clock
        self._node_name: str = node.metadata.name
        self._host = host
        self._on_conditions = on_conditions
        kubelet = config.get("kubelet") or {}
        settings = kubelet_configurations.configuration(kubelet)
        configured = settings.eviction_thresholds
        self._interval_ns = settings.housekeeping_interval_ns
        self._manager = eviction.Manager(
            configured,
            transition_ns=settings.eviction_pressure_transition_period_ns,
            max_pod_grace_period_s=settings.eviction_max_pod_grace_period,
            local_storage_isolation=settings.local_storage_capacity_isolation,
            order=(config.get("policy") or {}).get("evictionRanking", ranking.CURRENT),
        )
        self._gauges: dict[str, usages.Gauge] = {}
        """By UID: the pods that say what they use, from their admission until their containers are gone."""
        self._meter = machines.Meter(
            machines.machine_of(node, kubelet, config.get("machine") or {}),
            usages.parse_node(config.get("usage") or {}, self._node_name),
            self._gauges.values,
            lambda: here.bytes,
            env.disk,
        )
        self.collector = garbage.Collector(
            env,
            self._node_name,
            settings.image_policy,
            here,
            self._meter,
            host.images_in_use,
            self._is_about_to_look,
            recorder,
        )
        self._oom_killer = oom_kills.OomKiller(
            env, self._meter, self._gauges, host.oom_kill, self._plan, leaves_out=self.leaves_out
        )
        watched = configured if settings.kernel_memcg_notification else ()
        self._notifiers = notifiers.Notifiers(env, self._meter, watched, self._notice)
        self._looks_ns = 0
        """When the manager last looked of its own accord; the next ones follow every 10 s, unless told otherwise."""
        self._next_look_ns: int | None = None
        self._look_timer: Timer | None = None
        self._evicting = False
        self._started = False
        self._is_planned = False
        self._is_stuck = False
        """The last pass changed nothing."""

    def admit(self, pod: core_v1_pb2.Pod) -> predicates.Decision | None:
        """The manager's refusal of a pod; None: it does not refuse it."""
        return refusal_of(self._manager, pod)

    def start(self, began_ns: int, *, was_unused: bool = False) -> None:
        """The kubelet runs since then: the first look is at once. One in the past did nothing. ``was_unused``: so far
        nothing at all has been used here, which was looked at."""
        self._started = True
        self._meter.start()
        self.collector.start(began_ns)
        now_ns = self._clock.now_ns()
        self._looks_ns = began_ns
        machine = self._meter.machine
        if was_unused and (learnt := _unused(self._manager.thresholds, machine)) is not None:
            self._manager.layout, self._manager.thresholds = machine.layout, learnt
        elif not self.leaves_out or self._notifiers.are_there:
            self._set_look(now_ns)
        elif self._meter.is_unused:
            if (learnt := _unused(self._manager.thresholds, machine)) is None:
                self._set_look(now_ns)
            else:
                self._manager.layout, self._manager.thresholds = machine.layout, learnt
                self._plan()
        elif self._may_matter(now_ns, now_ns):
            self._set_look(now_ns)
        else:
            self._manager.learn(machine.layout)
            self._plan()

    # --- pods ---------------------------------------------------------------------------------------------------------

    def take(self, worker: Worker) -> None:
        """A pod was admitted."""
        usage = usages.of(worker.pod)
        if usage is not None:
            self._gauges[worker.uid] = usages.Gauge(worker, usage)

    def resized(self, worker: Worker, memory_limits: dict[str, int]) -> None:
        """Its containers have other limits of memory, in bytes."""
        gauge = self._gauges.get(worker.uid)
        if gauge is not None:
            gauge.limit_memory(memory_limits)
            self.note()

    def changed(self, worker: Worker) -> None:
        """Containers of a pod have started or ended."""
        if worker.uid in self._gauges:
            self.note()

    def container_gone(self, image: str, created_ns: int) -> None:
        """A container that existed since then has been removed."""
        if self.collector.container_gone(image, created_ns):
            self.note()

    def note(self) -> None:
        """What is used has changed, or what can be given back."""
        if self._started and not self._is_planned:
            # One plan for everything that happens in this instant.
            self._is_planned = True
            self._clock.call_at_ns(self._clock.now_ns(), self._plan)

    def release(self, worker: Worker) -> None:
        """Its containers are gone, and what they held."""
        self.changed(worker)
        self._gauges.pop(worker.uid, None)

    # --- when to look ------------------------------------------------------------------------------------------------

    def _plan(self) -> None:
        self._is_planned = False
        self.collector.plan()
        if not self._gauges and not self._meter.has_own:
            self._oom_killer.stop()
            if not self._is_pressed():
                self._set_look(None)
                self._notifiers.ask(self._clock.now_ns(), anew=True)
                return
        now_ns = self._clock.now_ns()
        settled_ns = self._meter.settled_ns
        end_ns = now_ns + SEARCH_S * SECOND_NS if settled_ns is None else max(settled_ns, now_ns) + self._interval_ns
        self._oom_killer.plan(now_ns, end_ns, endless=settled_ns is None)
        if not self._evicting:
            self._plan_look(now_ns, end_ns, settled_ns)
        if self._notifiers.are_there:
            next_ns = now_ns + self._interval_ns if self._next_look_ns is None else self._next_look_ns
            self._notifiers.plan(now_ns, next_ns)

    def _plan_look(self, now_ns: int, end_ns: int, settled_ns: int | None) -> None:
        if self._next_look_ns is not None and self._next_look_ns <= now_ns:
            return  # It is due, and will come.
        since_ns, interval_ns = self._looks_ns, self._interval_ns
        # One that falls on this very instant has not been yet.
        number = max(1, -(-(now_ns - since_ns) // interval_ns))
        if not self.leaves_out:
            self._set_look(since_ns + number * interval_ns, background=True)
            return
        is_still = settled_ns is not None and settled_ns <= now_ns
        if self._is_pressed():
            # Where usage does not change any more and the last pass changed nothing, no later pass will.
            self._set_look(since_ns + number * interval_ns, background=is_still and self._is_stuck)
            return
        found = curves.first_second(
            lambda first, last: self._may_matter(since_ns + first * interval_ns, since_ns + last * interval_ns),
            number,
            max(number, (end_ns - since_ns) // interval_ns + 1),
        )
        if self._notifiers.are_there:
            matters = found is not None or (not is_still and self._notifiers.may_speak(now_ns, end_ns))
            self._set_look(since_ns + number * interval_ns, background=not matters)
        elif found is not None:
            self._set_look(since_ns + found * interval_ns)
        elif settled_ns is None:
            self._set_look(since_ns + (end_ns - since_ns) // interval_ns * interval_ns, background=True)
        else:
            self._set_look(None)

    def _set_look(self, when_ns: int | None, *, background: bool = False) -> None:
        if self._look_timer is not None:
            self._look_timer.cancel()
        self._next_look_ns = when_ns
        self._look_timer = (
            None if when_ns is None else self._clock.call_at_ns(when_ns, self._look_is_due, background=background)
        )

    def _look_is_due(self) -> None:
        """After everything else that happens in this instant, the OOM killer included."""
        self._look_timer = self._clock.call_at_ns(self._clock.now_ns(), self._look_last)

    def _look_last(self) -> None:
        now_ns = self._clock.now_ns()
        if self._is_planned:
            self._look_is_due()
            return
        self._oom_killer.kill_if_due(now_ns)
        self._look()

    def _is_pressed(self) -> bool:
        return bool(self._manager.first_observed_ns or self._manager.conditions)

    def _may_matter(self, first_ns: int, last_ns: int) -> bool:
        """Whether a look between these times may find anything."""
        if _is_any_met(self._manager.thresholds, self._meter.signals(first_ns, last_ns)):
            return True
        return any(self._may_exceed(gauge, first_ns, last_ns) for gauge in self._gauges.values())

    def _may_exceed(self, gauge: usages.Gauge, first_ns: int, last_ns: int) -> bool:
        """Whether a pod may use more local storage than its smallest limit."""
        limit = gauge.storage_limit
        return limit is not None and sum(gauge.local_bytes(first_ns, last_ns)) > limit

    # --- the manager looks -------------------------------------------------------------------------------------------

    def _look(self) -> None:
        self._looks_ns, self._next_look_ns = self._clock.now_ns(), None
        workers, outcome = self._pass()
        if outcome.evictions:
            self._evicting = True
            self._set_look(None)
            self._env.spawn(self._evict(workers, outcome), "evict")
        if not outcome.evictions or self._notifiers.are_there:
            self._plan()

    def _pass(self) -> tuple[dict[str, Worker], eviction.Outcome]:
        """Pass of the manager over the pods that are there; returns them, by UID, and what it wants."""
        manager, now_ns = self._manager, self._clock.now_ns()
        # Terminating pods too: they use memory and disk until they are gone.
        workers = {worker.uid: worker for worker in self._host.active() if worker.state in (ACTIVE, STOPPING)}
        active = [worker.pod for worker in workers.values()]
        before = manager.conditions, manager.met, tuple(manager.first_observed_ns)
        self._notifiers.ask(now_ns)
        outcome = manager.synchronize(
            now_ns,
            active,
            eviction.Surroundings(
                lambda: self._meter.machine.layout, lambda: self._meter.summary(now_ns, active), self._collect
            ),
        )
        if manager.first_observed_ns.keys() != set(before[2]):
            self._env.log(ThresholdsMet(node=self._node_name, met=manager.told()))
        if manager.conditions != before[0]:
            self._env.log(
                PressureChanged(
                    node=self._node_name,
                    conditions=list(manager.conditions),
                    signals=sorted({threshold.signal for threshold in manager.first_observed_ns}),
                ),
            )
            self._on_conditions(manager.conditions)
        is_unchanged = before == (manager.conditions, manager.met, tuple(manager.first_observed_ns))
        self._is_stuck = is_unchanged and not manager.is_changing and not outcome.evictions
        return workers, outcome

    def _is_about_to_look(self) -> bool:
        """In this very instant."""
        now_ns = self._clock.now_ns()
        return self._is_planned or (self._next_look_ns is not None and self._next_look_ns <= now_ns)

    def _collect(self, collection: str) -> None:
        if collection == eviction.IMAGE_GC:
            self.collector.delete_unused()
            return
        freed_bytes = self._meter.free_dead_containers(self._clock.now_ns())
        self._host.forget_ended()
        what = machines.DEAD_CONTAINERS
        self._env.log(GarbageCollected(node=self._node_name, what=what, freed_bytes=freed_bytes))

    async def _evict(self, workers: Mapping[str, Worker], outcome: eviction.Outcome) -> None:
        """Kill the pods, one after the other; wait until they have been cleaned up; look again at once."""
        victims = await self._kill(workers, outcome)
        for _ in range(eviction.CLEANUP_TIMEOUT_S // eviction.CLEANUP_POLL_S):
            await self._clock.sleep(eviction.CLEANUP_POLL_S)
            if all(worker.claim is None for worker in victims):
                break
        self._evicting = False
        self._look()

    async def _kill(self, workers: Mapping[str, Worker], outcome: eviction.Outcome) -> list[Worker]:
        """Returns the pods when they have been killed, or that has taken too long."""
        victims = []
        for one in outcome.evictions:
            worker = workers[one.pod.metadata.uid]
            victims.append(worker)
            used = {} if outcome.used is None or not one.signal else {"used": outcome.used}
            self._env.log(
                PodEvicting(
                    pod=worker.key,
                    uid=worker.uid,
                    node=self._node_name,
                    signal=one.signal,
                    grace_s=one.grace_s,
                    message=one.message,
                    **used,
                ),
            )
            gone = asyncio.Event()
            self._host.kill(worker, failure_of(one), gone.set, one.grace_s)
            timeout_s = max(KILL_TIMEOUT_S, one.grace_s + one.grace_s // 2)
            timer = self._clock.call_at_ns(self._clock.now_ns() + timeout_s * SECOND_NS, gone.set)
            await gone.wait()
            timer.cancel()
        return victims

    # --- the kernel speaks -------------------------------------------------------------------------------------------

    def _notice(self) -> None:
        """The kernel may have something to tell: after everything else that happens in this instant."""
        self._clock.call_at_ns(self._clock.now_ns(), self._notice_last)

    def _notice_last(self) -> None:
        now_ns = self._clock.now_ns()
        if self._is_planned:
            self._notice()
            return
        self._oom_killer.kill_if_due(now_ns)
        for one in self._notifiers.crossed(now_ns):
            self._notified(one)
        self._plan()

    def _notified(self, by: notifiers.Notifier) -> None:
        """A pass besides the regular ones, which go on meanwhile. It does not wait until its victims are cleaned up; as
        long as it kills, what the same notifier says waits."""
        if by.is_busy:
            by.is_pending = True
            return
        workers, outcome = self._pass()
        if outcome.evictions:
            by.is_busy = True
            self._env.spawn(self._evict_at_once(by, workers, outcome), "evict at once")

    async def _evict_at_once(
        self, by: notifiers.Notifier, workers: Mapping[str, Worker], outcome: eviction.Outcome
    ) -> None:
        await self._kill(workers, outcome)
        by.is_busy = False
        if by.is_pending:
            by.is_pending = False
            self._notified(by)
        self._plan()


class LateLoop:
    """In place of an :class:`EvictionLoop` on a node where nothing has been used so far, and that is short of nothing:
    it is made when a pod says what it uses, or an image comes. Until then it would have found nothing."""

    __slots__ = ("_began_ns", "_loop", "_make")

    def __init__(self, make: Callable[[], EvictionLoop]) -> None:
        self._make = make
        self._loop: EvictionLoop | None = None
        self._began_ns: int | None = None

    def _demand(self) -> EvictionLoop:
        if self._loop is None:
            self._loop = self._make()
            if self._began_ns is not None:
                self._loop.start(self._began_ns, was_unused=True)
        return self._loop

    def admit(self, pod: core_v1_pb2.Pod) -> predicates.Decision | None:
        return None if self._loop is None else self._loop.admit(pod)

    def start(self, began_ns: int) -> None:
        self._began_ns = began_ns
        if self._loop is not None:
            self._loop.start(began_ns)

    def take(self, worker: Worker) -> None:
        if self._loop is not None or usages.of(worker.pod) is not None:
            self._demand().take(worker)

    def resized(self, worker: Worker, memory_limits: dict[str, int]) -> None:
        if self._loop is not None:
            self._loop.resized(worker, memory_limits)

    def changed(self, worker: Worker) -> None:
        if self._loop is not None:
            self._loop.changed(worker)

    def container_gone(self, image: str, created_ns: int) -> None:
        if self._loop is not None:
            self._loop.container_gone(image, created_ns)

    def note(self) -> None:
        self._demand().note()

    def release(self, worker: Worker) -> None:
        if self._loop is not None:
            self._loop.release(worker)


def is_short_of_something(node: core_v1_pb2.Node) -> bool:
    """Whether a threshold is met although nothing runs on this node, which is configured as kubelets are by default."""
    capacity, allocatable = node.status.capacity, node.status.allocatable
    given = (capacity if name in capacity else allocatable for name in _LIMITED)
    return _is_short(
        *(there[name].string if name in there else "" for there, name in zip(given, _LIMITED, strict=True))
    )


@lru_cache(256)
def _is_short(*amounts: str) -> bool:
    node = core_v1_pb2.Node()
    for name, amount in zip(_LIMITED, amounts, strict=True):
        if amount:
            node.status.capacity[name].string = amount
    meter = machines.Meter(machines.machine_of(node, {}, {}), {}, tuple, int)
    return _is_any_met(kubelet_configurations.configuration({}).eviction_thresholds, meter.signals(0, 0))


_Thresholds = tuple[thresholds.Threshold, ...]
_UNUSED: dict[tuple[int, int], tuple[_Thresholds, machines.Machine, _Thresholds | None]] = {}
"""By the identities of thresholds and machine, which are kept beside the answer: nodes of a kind share both, and to
hash them takes longer than all the rest."""
_MOST_UNUSED = 256


def _unused(configured: _Thresholds, machine: machines.Machine) -> _Thresholds | None:
    """The thresholds, with those of containerfs, of a machine on which nothing is used; None: one of them is met."""
    key = id(configured), id(machine)
    kept = _UNUSED.get(key)
    if kept is None:
        if len(_UNUSED) >= _MOST_UNUSED:
            _UNUSED.clear()
        is_met = _is_any_met(configured, machines.Meter(machine, {}, tuple, int).signals(0, 0))
        learnt = None if is_met else thresholds.with_container_filesystem(configured, machine.layout)[0]
        kept = _UNUSED[key] = configured, machine, learnt
    return kept[2]


def _is_any_met(configured: Iterable[thresholds.Threshold], signals: Mapping[str, machines.Used]) -> bool:
    for threshold in configured:
        used = signals[threshold.signal]
        if threshold.active and threshold.value.of(used.capacity).nano > used.available * quantities.NANO:
            return True
    return False
