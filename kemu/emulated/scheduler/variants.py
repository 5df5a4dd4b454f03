"""What a scheduler may be made of instead: the classes of its variants (:mod:`kemu.emulated.variants`).

    Cluster           the cache: which pods take room on a node, and what filters know of nominations
    SchedulingQueue   the queue: which events requeue which pods, and in which order and how soon they are tried
    FailureHandler    what becomes of a pod whose attempt failed, and of its nomination
    BindingCycles     what happens around a binding
    Preemptor         whether a pod may preempt again, and whom budgets protect
    Evictor           when a preemption is over
    PodFeed           what the watch's news of pods mean to the queue
    Devices           which devices are allocated

Each class is its base but for one thing.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, ClassVar

from kemu.emulated.scheduler.binding_cycles import BindingCycles
from kemu.emulated.scheduler.cache.cluster import Cluster
from kemu.emulated.scheduler.cache.nodes import NodeInfo
from kemu.emulated.scheduler.cache.pods import PodInfo
from kemu.emulated.scheduler.cycle.filtering import Filtering
from kemu.emulated.scheduler.devices.states import AllocatedState
from kemu.emulated.scheduler.devices.trackers import Claim, Devices
from kemu.emulated.scheduler.failures import Failure, FailureHandler
from kemu.emulated.scheduler.feeds import PodFeed
from kemu.emulated.scheduler.framework.events import Event
from kemu.emulated.scheduler.framework.interfaces import Cycle
from kemu.emulated.scheduler.preemption.candidates import Preemptor
from kemu.emulated.scheduler.preemption.evictions import Evictor
from kemu.emulated.scheduler.queue.queues import PREEMPTION_OVER, UNSCHEDULABLE, QueuedPod, SchedulingQueue
from kemu.emulated.variants import replaces
from kemu.messages.k8s import core_v1_pb2
from kemu.messages.k8s.objects import KubernetesObject
from kemu.runtime.env import SECOND_NS, Clock

# The cache ------------------------------------------------------------------------------------------------------------


@replaces(Cluster, "assume-cache")
class _AssumesNothing(Cluster):
    """It remembers which pods are being bound, so that none is tried twice, but they take no room."""

    def assume(self, pod: PodInfo, node_name: str) -> None:
        self.assumed[pod.uid] = pod
        pod.node_name = node_name


@replaces(Cluster, "two-pass-filtering")
class _FiltersOnce(Cluster):
    """The filters see each node as it is: nodes do not know who is nominated to them."""

    def _share_nominations(self, info: NodeInfo) -> None:
        return


@replaces(Cluster, "second-filtering-pass")
class _TrustsNominations(Cluster):
    """The filters see each node only with the pods that are nominated to it, as if they were running there."""

    filters_again: ClassVar[bool] = False


# The queue ------------------------------------------------------------------------------------------------------------

FOR_ALL_PODS = frozenset(
    event for event in Event if event.value.startswith(("AssignedPod/", "Node/")) and event != Event.ASSIGNED_POD_ADD
)


@replaces(SchedulingQueue, "requeue: all")
class _RequeuesAll(SchedulingQueue):
    """The queue of the preemption design, from before the hints of plugins.

    "When any pod is terminated, a node is added/removed, or when pods or nodes updated, remove all the pods from
    the unschedulable pods list and add them to the scheduling queue. (Scheduler should keep its existing rate
    limiting.)" The backoff stays. When a pod is added to a node, only the pods that it may help are requeued, as
    the document says further.

    Preemptors are on that list, too. While their victims are being told to go, DefaultPreemption holds them back,
    which the document does not know: its scheduler preempts before it moves the pod to the list. So an event during
    that time counts as soon as the preemption is carried out, and afterwards they are requeued like any other pod.
    """

    def move(
        self,
        event: Event,
        old: KubernetesObject | None,
        new: KubernetesObject | None,
        only: Callable[[PodInfo], bool] | None = None,
    ) -> None:
        if event not in FOR_ALL_PODS:
            super().move(event, old, new, only)
            return
        held = list(self._held.values())
        self._requeue_all(event, only)
        for pod in held:
            if _is_preemptor(pod) and (only is None or only(pod.info)):
                self._requeue(pod, event.value)
        self._remember(event, old, new)

    def _move_held(
        self,
        held: Iterable[QueuedPod],
        event: Event,
        old: KubernetesObject | None,
        new: KubernetesObject | None,
        only: Callable[[PodInfo], bool] | None,
    ) -> None:
        gated = []
        for pod in held:
            if not _is_preemptor(pod):
                gated.append(pod)
            elif only is None or only(pod.info):
                worth = self._worth(pod, event, old, new)
                if worth:
                    self._requeue(pod, event.value, worth)
        super()._move_held(gated, event, old, new, only)

    def preemption_over(self, uid: str) -> None:
        pod = self._held.get(uid)
        if pod is not None and _is_preemptor(pod):
            self._requeue(pod, PREEMPTION_OVER)

    def _was_worth(
        self, pod: QueuedPod, event: Event, old: KubernetesObject | None, new: KubernetesObject | None
    ) -> int:
        if event in FOR_ALL_PODS:
            # As for a retry of whatever pod.
            return super()._was_worth(pod, Event.ACTIVATE, None, None)
        return super()._was_worth(pod, event, old, new)


@replaces(SchedulingQueue, "k8s-71486")
class _LastInFirstOut(SchedulingQueue):
    """Among pods of equal priority, the one that came or failed last is tried first; none backs off; any event, a
    heartbeat of a node too, requeues all. (The real order was that of a heap without a second key: mostly this one.)"""

    heeds_heartbeats: ClassVar[bool] = True

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._sort_key = lambda pod, timestamp_ns: (-pod.priority,)

    def _restamp(self, pod: QueuedPod) -> None:
        super()._restamp(pod)
        pod.stamp = -pod.stamp

    def move(
        self,
        event: Event,
        old: KubernetesObject | None,
        new: KubernetesObject | None,
        only: Callable[[PodInfo], bool] | None = None,
    ) -> None:
        self._requeue_all(event, only)
        self._remember(event, old, new)

    def _was_worth(
        self, pod: QueuedPod, event: Event, old: KubernetesObject | None, new: KubernetesObject | None
    ) -> int:
        return super()._was_worth(pod, Event.ACTIVATE, None, None)

    def _backoff_end_ns(self, pod: QueuedPod) -> int | None:
        return None


@replaces(SchedulingQueue, "k8s-120413")
class _LosesEvents(SchedulingQueue):
    """A pod in flight knows the last event before its flight, and asks the list what came after it. Once no pod in
    flight needs that event it is taken out of the list, and nothing comes after it any more."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._anchors: dict[str, int] = {}
        """UID → number of the last event before the flight, of pods whose flight began with one in the list."""

    def take(self) -> QueuedPod | None:
        has_anchor = bool(self._events)
        pod = super().take()
        if pod is not None and has_anchor:
            self._anchors[pod.info.uid] = self._in_flight[pod.info.uid] - 1
        return pod

    def _land(self, uid: str) -> list[tuple[Event, KubernetesObject | None, KubernetesObject | None]]:
        is_lost = self._anchors.pop(uid, self._forgotten) < self._forgotten
        met = super()._land(uid)
        return [] if is_lost else met


@replaces(SchedulingQueue, "requeue-on-events")
class _MovesNone(SchedulingQueue):
    """Unschedulable pods wait for the flush of old ones; events still count during an attempt."""

    def move(
        self,
        event: Event,
        old: KubernetesObject | None,
        new: KubernetesObject | None,
        only: Callable[[PodInfo], bool] | None = None,
    ) -> None:
        if event in self._of_interest:
            self._remember(event, old, new)


@replaces(SchedulingQueue, "in-flight-events")
class _ForgetsFlights(SchedulingQueue):
    """The events of an attempt are forgotten at its end."""

    def _land(self, uid: str) -> list[tuple[Event, KubernetesObject | None, KubernetesObject | None]]:
        super()._land(uid)
        return []


# After a failed attempt -----------------------------------------------------------------------------------------------


@replaces(FailureHandler, "k8s-102339")
class _NominatesDeleted(FailureHandler):
    """A pod that was deleted during its attempt keeps its nomination."""

    def _retired(self, pod: QueuedPod, latest: core_v1_pb2.Pod | None, nominate: str | None) -> None:
        super()._retired(pod, latest, nominate)
        if latest is None:
            self._cluster.nominator.nominate(pod.info, nominate or pod.info.pod.status.nominatedNodeName)


@replaces(FailureHandler, "k8s-109236")
class _NominatesPlaced(FailureHandler):
    """A pod that another scheduler has bound during its attempt is nominated as the attempt's object says."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._stated: dict[str, str] = {}
        """Nominations, by UID."""

    def assumed(self, uid: str, nomination: str) -> None:
        self._stated[uid] = nomination

    def _retired(self, pod: QueuedPod, latest: core_v1_pb2.Pod | None, nominate: str | None) -> None:
        super()._retired(pod, latest, nominate)
        if latest is not None:
            self._cluster.nominator.nominate(pod.info, nominate or self._stated.get(pod.info.uid, ""))


@replaces(FailureHandler, "k8s-72124")
class _NominatesLate(FailureHandler):
    """Nominations are left to the watch."""

    def _nominate(self, pod: QueuedPod, latest: core_v1_pb2.Pod, nominate: str | None) -> None:
        return


@replaces(FailureHandler, "k8s-106780")
class _NeverClears(FailureHandler):
    """A nomination stays until another takes its place."""

    async def handle(self, pod: QueuedPod, failure: Failure, nominate: str | None = "") -> None:
        await super().handle(pod, failure, nominate or None)


# Bindings -------------------------------------------------------------------------------------------------------------


@replaces(BindingCycles, "k8s-106361")
class _Expires(BindingCycles):
    """A bound pod stays assumed for a time only, if the watch does not confirm it."""

    EXPIRY_S = 30

    def _bound(self, info: PodInfo, node: str) -> None:
        super()._bound(info, node)
        clock = self._env.clock
        clock.call_at_ns(clock.now_ns() + self.EXPIRY_S * SECOND_NS, self._cluster.forget, info.uid, background=True)


@replaces(BindingCycles, "k8s-125491")
class _TellsNone(BindingCycles):
    """A pod that waits before its binding is not nominated meanwhile."""

    async def _expect(self, cycle: Cycle, node: str) -> None:
        return


# Preemption -----------------------------------------------------------------------------------------------------------


@replaces(Preemptor, "eligibility: alpha")
class _AwaitsAll(Preemptor):
    """Any terminating pod of lower priority on the nominated node bars another preemption."""

    def _is_beyond_help(self, filtering: Filtering, node: NodeInfo) -> bool:
        return False

    def _is_awaited(self, terminating: PodInfo) -> bool:
        return True


@replaces(Preemptor, "pdb: ignore")
class _IgnoresBudgets(Preemptor):
    """No disruption violates a budget."""

    def _split_by_budget(self, lower: list[PodInfo]) -> tuple[list[PodInfo], list[PodInfo]]:
        return [], lower


@replaces(Evictor, "k8s-134249")
class _PreemptsAgain(Evictor):
    """The preemptor may be tried again as soon as only the last victim is left."""

    def _is_to_go(self, last: str) -> bool:
        return False


@replaces(Evictor, "k8s-141694")
class _AlwaysWakes(Evictor):
    """The preemptor is tried again at the end of its preemption, without waiting for an event."""

    def _end(self, uid: str, is_complete: bool) -> None:
        super()._end(uid, is_complete=False)


# News of pods ---------------------------------------------------------------------------------------------------------


@replaces(PodFeed, "k8s-126700")
class _IgnoresNominations(PodFeed):
    """The end of a nomination requeues no pod."""

    def _nomination_ended(self, pod: core_v1_pb2.Pod) -> None:
        return


# Devices --------------------------------------------------------------------------------------------------------------


class _Undelivered:
    """Events of the assume cache that are delivered together, a while after the first."""

    def __init__(self, clock: Clock, wait_s: float, deliver: Callable[[Claim | None, Claim | None], None]) -> None:
        self._clock = clock
        self._wait_ns = round(wait_s * SECOND_NS)
        self._deliver_one = deliver
        self._events: deque[tuple[Claim | None, Claim | None]] = deque()
        self.is_on_its_way = False
        """Whether they are being delivered."""

    def __bool__(self) -> bool:
        return bool(self._events)

    def add(self, old: Claim | None, new: Claim | None) -> None:
        if not self._events:
            self._clock.call_at_ns(self._clock.now_ns() + self._wait_ns, self._deliver, background=True)
        self._events.append((old, new))

    def _deliver(self) -> None:
        self.is_on_its_way = True
        while self._events:
            self._deliver_one(*self._events.popleft())
        self.is_on_its_way = False


@replaces(Devices, "k8s-133602")
class _LosesSight(Devices):
    """Devices that PreBind has just written are off the list of what is in flight, and not yet on that of what is
    allocated, in two ways. The informer's goroutine delivers the events of the assume cache, those of PreBind among
    them, and PreBind does not wait for it. And whoever gathers what is allocated reads that list first, the other one
    afterwards: what moves from the second to the first in between is in neither."""

    DELIVERY_S, GATHERING_S = 0.01, 0.001
    """How long the two take: in Kubernetes as a rule microseconds, more on a machine that is busy."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._is_left = False
        """Whether the event that is made now is left to it."""
        self._undelivered = _Undelivered(self._clock, self.DELIVERY_S, self._count)
        self._counted: list[tuple[int, Claim]] = []
        """Allocations that were counted a moment ago."""

    def set_claim(self, claim: Claim) -> None:
        self._is_left = True
        super().set_claim(claim)
        self._is_left = False

    def assume(self, claim: Claim) -> bool:
        self._is_left = bool(self._undelivered)
        is_assumed = super().assume(claim)
        self._is_left = False
        return is_assumed

    def _count(self, old: Claim | None, new: Claim | None) -> None:
        if not self._undelivered.is_on_its_way and (self._is_left or self._undelivered):
            self._undelivered.add(old, new)
            return
        super()._count(old, new)
        if new is not None and new.status.HasField("allocation") and not (old and old.status.HasField("allocation")):
            self._counted.append((self._clock.now_ns(), new))

    def allocated(self) -> AllocatedState:
        begun_ns = self._clock.now_ns() - round(self.GATHERING_S * SECOND_NS)
        self._counted = [one for one in self._counted if one[0] > begun_ns]
        found = self._allocated.copy()
        for _, claim in self._counted:
            found.remove(claim)
        for claim in self.in_flight.values():
            found.add(claim)
        return found


def _is_preemptor(pod: QueuedPod) -> bool:
    """Whether a pod that a PreEnqueue plugin holds back has been tried. Scheduling gates hold back others."""
    return pod.place == UNSCHEDULABLE
