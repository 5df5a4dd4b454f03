"""``requeue: all``: the queue of the preemption design, from before the hints of plugins.

"When any pod is terminated, a node is added/removed, or when pods or nodes updated, remove all the pods from the
unschedulable pods list and add them to the scheduling queue. (Scheduler should keep its existing rate limiting.)" The
backoff stays. When a pod is added to a node, only the pods that it may help are requeued, as the document says further.

Preemptors are on that list, too. While their victims are being told to go, DefaultPreemption holds them back, which the
document does not know: its scheduler preempts before it moves the pod to the list. So an event during that time counts
as soon as the preemption is carried out, and afterwards they are requeued like any other pod.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from kemu.emulated.scheduler.cache.pods import PodInfo
from kemu.emulated.scheduler.experiments.switches import Policy
from kemu.emulated.scheduler.framework.events import Event
from kemu.emulated.scheduler.queue.queues import PREEMPTION_OVER, UNSCHEDULABLE, QueuedPod, SchedulingQueue
from kemu.messages.k8s.objects import KubernetesObject

FOR_ALL_PODS = frozenset(
    event for event in Event if event.value.startswith(("AssignedPod/", "Node/")) and event != Event.ASSIGNED_POD_ADD
)


class _RequeuesAll(SchedulingQueue):
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


def _is_preemptor(pod: QueuedPod) -> bool:
    """Of a pod that a PreEnqueue plugin holds back: whether it has been tried. Scheduling gates hold back others."""
    return pod.place == UNSCHEDULABLE


def queue(kind: type[SchedulingQueue], policy: Policy) -> type[SchedulingQueue]:
    """``kind``, or the queue that the policy asks for on top of it."""
    return kind if policy.requeue == "hints" else type("RequeuesAll", (_RequeuesAll, kind), {})
