"""The scheduling queue: where a pod waits, for how long, and which events requeue it.

Three places, as in ``pkg/scheduler/backend/queue`` (v1.36):

* **active**: ready to be tried, in the order of the QueueSort plugin.
* **backoff**: requeued before the end of their backoff, and ordered by that end in whole seconds. When no pod is
  active the first one is taken, even if its backoff has not ended. Pods whose attempt ended in an error wait in a heap
  of their own, from which none is taken early.
* **unschedulable**: waiting for an event that may help, according to a plugin that rejected them, or until five minutes
  have passed. Pods that a PreEnqueue plugin rejects (gated pods) wait here too.

A pod whose attempt is under way is *in flight*: the queue records the events that happen meanwhile and shows them to
the plugins that reject the pod, so that none is missed.

The queue knows no cluster and no API. Time comes from a clock; timers run only while they have something to do.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Mapping
from typing import Any, ClassVar

from kemu.emulated.scheduler.cache.pods import PodInfo
from kemu.emulated.scheduler.cycle.profiles import Profile
from kemu.emulated.scheduler.framework import events
from kemu.emulated.scheduler.framework.events import Event, KeyedHint
from kemu.messages.k8s import core_v1_pb2
from kemu.messages.k8s.objects import KubernetesObject
from kemu.runtime.env import SECOND_NS, Clock, Timer

ACTIVE, BACKOFF, ERROR_BACKOFF, UNSCHEDULABLE, GATED, IN_FLIGHT, GONE = (
    "active",
    "backoff",
    "error backoff",
    "unschedulable",
    "gated",
    "in flight",
    "gone",
)

_SKIP, _AFTER_BACKOFF, _IMMEDIATELY = range(3)
"""What an event is worth to a pod (``queueingStrategy``); the higher one wins."""

_HEAPS = (ACTIVE, BACKOFF, ERROR_BACKOFF)

_VOID_ENTRIES = 64
"""So many void entries may stand in a heap, beside as many as twice the pods that wait."""

FLUSH_INTERVAL_S = 30
LONGEST_WAIT_S = 300
"""A pod that waited longer in the unschedulable set is tried again without an event."""

POD_ADD = "PodAdd"
POD_UPDATE = "PodUpdate"
ATTEMPT_FAILED = "AttemptFailed"
BACKOFF_COMPLETE = "BackoffComplete"
PREEMPTION_OVER = "PreemptionOver"

OnLeave = Callable[["QueuedPod", str, int, str], object]
"""(pod, place that it leaves, since when in ns, what put it there)."""


class QueuedPod:
    """A pod in the queue, with the history of its attempts."""

    __slots__ = (
        "attempts",
        "cause",
        "entry",
        "error_count",
        "gate",
        "info",
        "keys",
        "pending",
        "place",
        "profile",
        "rejectors",
        "since_ns",
        "stamp",
        "timestamp_ns",
        "unschedulable_count",
    )

    def __init__(self, info: PodInfo, profile: Profile) -> None:
        self.info = info
        self.profile = profile
        self.timestamp_ns = 0
        """Arrival, or the end of the last failed attempt."""
        self.stamp = 0
        """Breaks ties between equal timestamps."""
        self.attempts = 0
        self.unschedulable_count = 0
        """Attempts that plugins rejected."""
        self.error_count = 0
        """Attempts in a row that ended in an error."""
        self.rejectors: tuple[str, ...] = ()
        """The plugins that rejected the last attempt."""
        self.pending: tuple[str, ...] = ()
        """Those of them that answered Pending: their event requeues the pod without a backoff."""
        self.gate = ""
        """The PreEnqueue plugin that rejects the pod."""
        self.place = GONE
        self.since_ns = 0
        self.cause = ""
        self.entry = 0
        """Number of the valid heap entry; of a pod that waits for events, of its arrival, if any event has a key."""
        self.keys: tuple[str, ...] = ()
        """By which the pod can be found while it waits for events."""


class SchedulingQueue:
    """Pods of one scheduler, of all its profiles."""

    heeds_heartbeats: ClassVar[bool] = False
    """An update of a Node that changes nothing is an event, too."""

    def __init__(
        self,
        clock: Clock,
        profiles: Mapping[str, Profile],
        *,
        initial_backoff_s: float = 1.0,
        max_backoff_s: float = 10.0,
        pops_from_backoff: bool = True,
        on_leave: OnLeave = lambda pod, place, since, cause: None,
    ) -> None:
        self._clock = clock
        self._profiles = profiles
        self._sort_key = next(iter(profiles.values())).queue_sort.sort_key
        self._of_interest = frozenset(
            event for profile in profiles.values() for event, hints in profile.hints.items() if hints
        )
        self._keyed: dict[Event, KeyedHint] = {}
        """Events that are shown only to the pods with their key."""
        for event in self._of_interest:
            hints = [hint for profile in profiles.values() for hint in profile.hints[event].values()]
            by_key = [hint for hint in hints if isinstance(hint, KeyedHint)]
            if len(by_key) == len(hints) and len({(hint.key, hint.keys) for hint in by_key}) == 1:
                self._keyed[event] = by_key[0]
        self._by_key: dict[str, dict[str, QueuedPod]] = {}
        """Pods that wait for events, by their keys and their UID."""
        self._initial_ns = round(initial_backoff_s * SECOND_NS)
        self._max_ns = round(max_backoff_s * SECOND_NS)
        self._pops_from_backoff = pops_from_backoff
        self._on_leave = on_leave
        self.pods: dict[str, QueuedPod] = {}
        """All pods that wait, by UID."""
        self._active: list[tuple[Any, ...]] = []
        self._backoff: list[tuple[Any, ...]] = []
        self._errors: list[tuple[Any, ...]] = []
        self._unschedulable: dict[tuple[str, tuple[str, ...]], dict[str, QueuedPod]] = {}
        """By profile and rejecting plugins, so that an event costs nothing where it concerns none of these plugins."""
        self._held: dict[str, QueuedPod] = {}
        """Pods that a PreEnqueue plugin rejects."""
        self._in_flight: dict[str, int] = {}
        """UID → how many events there had been when the pod was taken; in this order."""
        self._events: list[tuple[Event, Any, Any]] = []
        self._activated: set[str] = set()
        """Pods in flight that have been activated meanwhile; once more makes no difference."""
        self._forgotten = 0
        """How many events happened before ``_events``: no pod in flight saw them."""
        self._entries = 0
        self._stamps = 0
        self._timer: Timer | None = None
        self._timer_at_ns = 0
        self._timer_is_background = False
        self._flush: Timer | None = None
        self._started_ns = 0
        self._running = False
        self.errors_are_background = False
        """Waiting for the backoff after an error keeps a run alive, except without nodes, where no retry can help."""
        self.on_ready: Callable[[], object] = lambda: None
        """Called when there may be something to take."""

    # Coming and going -----------------------------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self.pods)

    def add(self, info: PodInfo, cause: str = POD_ADD) -> QueuedPod:
        """Add a new pod."""
        pod = QueuedPod(info, self._profiles[info.pod.spec.schedulerName])
        self._restamp(pod)
        self.pods[info.uid] = pod
        self._activate(pod, cause)
        return pod

    def remove(self, uid: str) -> QueuedPod | None:
        """Remove a pod that was deleted or scheduled elsewhere. A pod in flight is left to its attempt."""
        pod = self.pods.get(uid)
        if pod is None or pod.place == IN_FLIGHT:
            return None
        self._leave(pod)
        del self.pods[uid]
        return pod

    def take(self) -> QueuedPod | None:
        """The next pod to try; it is in flight until :meth:`done` or :meth:`failed`."""
        heap = self._active
        pod: QueuedPod | None = None
        while heap:  # _pop, inlined
            first = heapq.heappop(heap)
            if first[-1].entry == first[-2]:
                pod = first[-1]
                break
        if pod is None and self._backoff and self._pops_from_backoff:
            pod = self._pop(self._backoff)
        if pod is None:
            return None
        self._leave(pod)
        pod.place = IN_FLIGHT
        pod.attempts += 1
        pod.rejectors = pod.pending = ()
        pod.gate = ""
        self._in_flight[pod.info.uid] = self._forgotten + len(self._events)
        return pod

    def done(self, uid: str) -> None:
        """The attempt succeeded, or the pod was deleted: remove it from the queue."""
        self._end_flight(uid)
        self.pods.pop(uid, None)

    def failed(self, pod: QueuedPod, rejectors: tuple[str, ...], pending: tuple[str, ...] = ()) -> None:
        """The attempt failed. Without rejecting plugins it ended in an error. ``pending``: who said Pending."""
        self._restamp(pod)
        pod.rejectors, pod.pending = rejectors, pending
        uid = pod.info.uid
        met = self._land(uid)
        self.pods[uid] = pod
        if rejectors:
            pod.unschedulable_count += 1
            pod.error_count = 0
            best, cause = _SKIP, ATTEMPT_FAILED
            for event, old, new in met:
                worth = self._was_worth(pod, event, old, new)
                if worth > best:
                    best, cause = worth, event.value
                    if worth == _IMMEDIATELY or not pending:
                        break
            if best == _SKIP:
                self._hold(pod, cause)
            else:
                self._requeue(pod, cause, best)
        else:
            pod.error_count += 1
            self._requeue(pod, ATTEMPT_FAILED)

    def _land(self, uid: str) -> list[tuple[Event, Any, Any]]:
        """End the flight of a pod; returns the events that happened during it."""
        first = self._in_flight.get(uid)
        if first is None:
            return []
        met = self._events[first - self._forgotten :]
        self._end_flight(uid)
        return met

    def _end_flight(self, uid: str) -> None:
        """The same, where nobody asks for the events."""
        if self._in_flight.pop(uid, None) is None:
            return
        self._activated.discard(uid)
        oldest = next(iter(self._in_flight.values()), self._forgotten + len(self._events))
        if oldest > self._forgotten:
            del self._events[: oldest - self._forgotten]
            self._forgotten = oldest

    def _restamp(self, pod: QueuedPod) -> None:
        pod.timestamp_ns = self._clock.now_ns()
        self._stamps += 1
        pod.stamp = self._stamps

    # Events ---------------------------------------------------------------------------------------------------------

    def move(
        self,
        event: Event,
        old: KubernetesObject | None,
        new: KubernetesObject | None,
        only: Callable[[PodInfo], bool] | None = None,
    ) -> None:
        """Requeue the pods that an event may help, of those that ``only`` admits (MoveAllToActiveOrBackoffQueue)."""
        if event not in self._of_interest:
            return
        keyed = self._keyed.get(event)
        key = keyed.key(old, new) if keyed is not None else None
        found: list[QueuedPod] | None = None
        if key is not None:
            found = sorted(self._by_key.get(key, {}).values(), key=lambda pod: pod.entry)
        held = _of(self._held, found) if self._held else None
        if self._unschedulable and found != []:
            for (profile_name, rejectors), members in list(self._unschedulable.items()):
                hints = self._profiles[profile_name].hints[event]
                if not any(name in hints for name in rejectors):
                    continue
                for pod in _of(members, found):
                    if only is None or only(pod.info):
                        worth = self._worth(pod, event, old, new)
                        if worth:
                            self._requeue(pod, event.value, worth)
        if held is not None:
            self._move_held(held, event, old, new, only)
        if self._in_flight:
            self._remember(event, old, new)

    def _move_held(
        self,
        held: Iterable[QueuedPod],
        event: Event,
        old: KubernetesObject | None,
        new: KubernetesObject | None,
        only: Callable[[PodInfo], bool] | None,
    ) -> None:
        for pod in held:
            # A gated pod ignores events that its PreEnqueue plugin did not register.
            interested = pod.gate in pod.profile.hints[event] and (only is None or only(pod.info))
            worth = self._worth(pod, event, old, new) if interested else _SKIP
            if worth:
                self._requeue(pod, event.value, worth)

    def _requeue_all(self, event: Event, only: Callable[[PodInfo], bool] | None) -> None:
        """Requeue the unschedulable pods whatever rejected them: for queues that know no hints."""
        for members in list(self._unschedulable.values()):
            for pod in list(members.values()):
                if only is None or only(pod.info):
                    self._requeue(pod, event.value)

    def _remember(self, event: Event, old: KubernetesObject | None, new: KubernetesObject | None) -> None:
        """For the pods in flight, if there are any."""
        if self._in_flight:
            self._events.append((event, old, new))

    def update(self, info: PodInfo, changes: Iterable[Event], old: core_v1_pb2.Pod) -> bool:
        """The waiting pod itself changed. Returns False when it is not in the queue, or in flight."""
        pod = self.pods.get(info.uid)
        if pod is None:
            return False
        if pod.place == IN_FLIGHT:
            self._events.extend((event, old, info.pod) for event in changes)
            return False
        known, pod.info = pod.info, info
        if pod.place in _HEAPS:
            if self._sort_key(info, pod.timestamp_ns) != self._sort_key(known, pod.timestamp_ns):
                self._sort_in(pod)
        else:
            if self._keyed:
                self._note(pod)
            for event in changes:
                worth = self._worth(pod, event, old, info.pod)
                if worth:
                    self._requeue(pod, event.value, worth)
                    if pod.place in _HEAPS:
                        break
        return True

    def activate(self, uid: str) -> None:
        """Move a pod to the active queue, whatever it waits for."""
        pod = self.pods.get(uid)
        if pod is None:
            return
        if pod.place == IN_FLIGHT:
            if uid not in self._activated:  # each member of a gang that gets a node activates all others
                self._activated.add(uid)
                self._events.append((Event.ACTIVATE, None, uid))
        elif pod.place != ACTIVE:
            self._activate(pod, Event.ACTIVATE.value)

    def preemption_over(self, uid: str) -> None:
        """The victims of a pod have been told to go. It still waits for an event that may help it."""

    def _worth(self, pod: QueuedPod, event: Event, old: KubernetesObject | None, new: KubernetesObject | None) -> int:
        """What the hints of the plugins that rejected a pod make of an event (``isPodWorthRequeuing``)."""
        hints, worth = pod.profile.hints[event], _SKIP
        for name in pod.rejectors:
            if name in hints:
                hint = hints[name]
                if hint is None or hint(pod.info, old, new):
                    if name in pod.pending:
                        return _IMMEDIATELY
                    worth = _AFTER_BACKOFF
                    if not pod.pending:
                        break
        return worth if pod.rejectors else _AFTER_BACKOFF

    def _was_worth(
        self, pod: QueuedPod, event: Event, old: KubernetesObject | None, new: KubernetesObject | None
    ) -> int:
        """The same for an event during the flight, which may concern all plugins."""
        if event in events.FOR_ALL_PLUGINS:
            return _AFTER_BACKOFF if new is None or new == pod.info.uid else _SKIP
        return self._worth(pod, event, old, new)

    # Places ---------------------------------------------------------------------------------------------------------

    def _requeue(self, pod: QueuedPod, cause: str, worth: int = _AFTER_BACKOFF) -> None:
        """To backoff while the backoff lasts, else to active (``requeuePodWithQueueingStrategy``)."""
        end_ns = self._backoff_end_ns(pod) if worth == _AFTER_BACKOFF else None
        if end_ns is not None and self._lasts(end_ns, self._clock.now_ns()):
            # Without PopFromBackoffQ, PreEnqueue runs when the backoff ends.
            if self._pops_from_backoff and self._is_gated(pod, cause):
                return
            self._leave(pod)
            self._enter(pod, BACKOFF if pod.rejectors else ERROR_BACKOFF, cause)
            self._sort_in(pod)
            self._arm()
            if pod.place == BACKOFF and self._pops_from_backoff:
                self.on_ready()
        else:
            self._activate(pod, cause)

    def _activate(self, pod: QueuedPod, cause: str) -> None:
        if self._is_gated(pod, cause):
            return
        if pod.place != GONE:
            self._leave(pod)
        # _enter, inlined.
        pod.place, pod.since_ns, pod.cause = ACTIVE, self._clock.now_ns(), cause
        self._sort_in(pod)
        self.on_ready()

    def _sort_in(self, pod: QueuedPod) -> None:
        """Push the pod onto the heap of its place; an earlier entry becomes invalid."""
        self._entries += 1
        pod.entry = self._entries
        order = (*self._sort_key(pod.info, pod.timestamp_ns), pod.stamp, pod.entry, pod)
        if pod.place == ACTIVE:
            heap = self._active
        else:
            heap = self._backoff if pod.place == BACKOFF else self._errors
            order = (self._backoff_end_ns(pod), *order)
        heapq.heappush(heap, order)
        if len(heap) > 2 * len(self.pods) + _VOID_ENTRIES:
            # Most of them are void, and hold pods that may be gone.
            heap[:] = [one for one in heap if one[-1].entry == one[-2]]
            heapq.heapify(heap)

    def _is_gated(self, pod: QueuedPod, cause: str) -> bool:
        """Run PreEnqueue; True if a plugin rejects the pod, which then waits among the gated ones."""
        for plugin in pod.profile.pre_enqueue:
            status = plugin.pre_enqueue(pod.info)
            if status is not None:
                if pod.gate == plugin.name and pod.info.uid in self._held:
                    return True  # it has not moved
                self._leave(pod)
                pod.gate = plugin.name
                if plugin.name not in pod.rejectors:
                    pod.rejectors = (*pod.rejectors, plugin.name)
                # A pod without an attempt counts as gated; a preemptor that waits for its victims, as unschedulable.
                self._enter(pod, UNSCHEDULABLE if pod.attempts else GATED, cause)
                self._held[pod.info.uid] = pod
                self._wait(pod)
                return True
        pod.gate = ""
        return False

    def _hold(self, pod: QueuedPod, cause: str) -> None:
        self._enter(pod, UNSCHEDULABLE, cause)
        members = self._unschedulable.setdefault((pod.profile.scheduler_name, pod.rejectors), {})
        members[pod.info.uid] = pod
        self._wait(pod)

    def _wait(self, pod: QueuedPod) -> None:
        """For events, in the order of arrival."""
        if self._keyed:
            self._entries += 1
            pod.entry = self._entries
            self._note(pod)
        self._arm_flush()

    def _note(self, pod: QueuedPod) -> None:
        """By which keys a waiting pod can be found."""
        self._forget(pod)
        pod.keys = tuple(dict.fromkeys(key for one in self._keyed.values() for key in one.keys(pod.info.pod)))
        for key in pod.keys:
            self._by_key.setdefault(key, {})[pod.info.uid] = pod

    def _forget(self, pod: QueuedPod) -> None:
        for key in pod.keys:
            pods = self._by_key[key]
            del pods[pod.info.uid]
            if not pods:
                del self._by_key[key]
        pod.keys = ()

    def _enter(self, pod: QueuedPod, place: str, cause: str) -> None:
        pod.place = place
        pod.since_ns = self._clock.now_ns()
        pod.cause = cause

    def _leave(self, pod: QueuedPod) -> None:
        place = pod.place
        if place in (GONE, IN_FLIGHT):
            return
        uid = pod.info.uid
        if pod.keys:
            self._forget(pod)
        if uid in self._held:
            del self._held[uid]
        elif place == UNSCHEDULABLE:
            key = (pod.profile.scheduler_name, pod.rejectors)
            members = self._unschedulable[key]
            del members[uid]
            if not members:
                del self._unschedulable[key]
        pod.entry = 0
        pod.place = GONE
        self._on_leave(pod, BACKOFF if place == ERROR_BACKOFF else place, pod.since_ns, pod.cause)

    def _pop(self, heap: list[tuple[Any, ...]]) -> QueuedPod | None:
        while heap:
            *_key, entry, pod = heapq.heappop(heap)
            if pod.entry == entry:
                found: QueuedPod = pod
                return found
        return None

    # Backoff --------------------------------------------------------------------------------------------------------

    def _backoff_end_ns(self, pod: QueuedPod) -> int | None:
        """When the backoff ends, rounded down to a whole second with PopFromBackoffQ; None: no backoff."""
        count = pod.error_count or pod.unschedulable_count
        if count == 0:
            return None
        duration_ns = min(self._initial_ns << min(count - 1, 40), self._max_ns)
        end_ns = pod.timestamp_ns + duration_ns
        return end_ns - end_ns % SECOND_NS if self._pops_from_backoff else end_ns

    def _lasts(self, end_ns: int, now_ns: int) -> bool:
        """A rounded backoff lasts until the second in which it ends is over."""
        return (now_ns - now_ns % SECOND_NS if self._pops_from_backoff else now_ns) <= end_ns

    def _over_at_ns(self, end_ns: int) -> int:
        """The whole second at which a pod with that end of backoff becomes active."""
        return end_ns - end_ns % SECOND_NS + SECOND_NS

    def start(self) -> None:
        """Timers run from now on."""
        self._running = True
        self._started_ns = self._clock.now_ns()
        self._arm()
        self._arm_flush()

    def nodes_changed(self, any_nodes: bool) -> None:
        """Without nodes no retry can help, so that the backoff after an error must not keep a run alive."""
        if self.errors_are_background is any_nodes:
            self.errors_are_background = not any_nodes
            self._arm()

    def _arm(self) -> None:
        """One timer, for the next pod whose backoff will be over."""
        if not self._running:
            return
        for heap in (self._backoff, self._errors):
            while heap and heap[0][-1].entry != heap[0][-2]:
                heapq.heappop(heap)
        ends = [heap[0][0] for heap in (self._backoff, self._errors) if heap]
        if not ends:
            return
        when_ns = self._over_at_ns(min(ends))
        background = self.errors_are_background and not self._backoff
        if self._timer is not None:
            if self._timer_at_ns == when_ns and self._timer_is_background is background:
                return
            self._timer.cancel()
        self._timer = self._clock.call_at_ns(when_ns, self._complete_backoff, background=background)
        self._timer_at_ns, self._timer_is_background = when_ns, background

    def _complete_backoff(self) -> None:
        self._timer = None
        now_ns = self._clock.now_ns()
        for heap in (self._backoff, self._errors):
            while heap:
                *_key, entry, pod = heap[0]
                if pod.entry != entry:
                    heapq.heappop(heap)
                elif self._lasts(heap[0][0], now_ns):
                    break
                else:
                    heapq.heappop(heap)
                    self._activate(pod, BACKOFF_COMPLETE)
        self._arm()

    # Flush ----------------------------------------------------------------------------------------------------------

    def _arm_flush(self) -> None:
        if self._running and self._flush is None and (self._unschedulable or self._held):
            step_ns = FLUSH_INTERVAL_S * SECOND_NS
            passed_ns = self._clock.now_ns() - self._started_ns
            when_ns = self._started_ns + (passed_ns // step_ns + 1) * step_ns
            self._flush = self._clock.call_at_ns(when_ns, self._wake_the_old, background=True)

    def _wake_the_old(self) -> None:
        self._flush = None
        oldest_ns = self._clock.now_ns() - LONGEST_WAIT_S * SECOND_NS
        old = [pod for members in self._unschedulable.values() for pod in members.values()]
        old = [pod for pod in old if pod.timestamp_ns < oldest_ns]
        for pod in old:
            self._requeue(pod, Event.TIMEOUT.value)
        if self._in_flight and (old or any(pod.timestamp_ns < oldest_ns for pod in self._held.values())):
            # A pod in flight during a flush returns as if it had waited as long. Gated pods count as old pods, although
            # the flush does not requeue them.
            self._events.append((Event.TIMEOUT, None, None))
        self._arm_flush()


def _of(members: Mapping[str, QueuedPod], found: list[QueuedPod] | None) -> list[QueuedPod]:
    """Those that were found, of which None means all."""
    return list(members.values()) if found is None else [pod for pod in found if pod.info.uid in members]
