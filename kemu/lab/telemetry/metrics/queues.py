"""Where the pods of a scheduler wait, from what it logs.

The log tells when a pod leaves a part of the queue, and what had put it there. Where it is now follows from its last
attempt: without a node it waits in ``unschedulable``; requeued from there it is in ``backoff`` until its time is over.
"""

from __future__ import annotations

from collections import Counter

from kemu.runtime.env import SECOND_NS
from kemu.runtime.runlog.events import PodQueued

ACTIVE, BACKOFF, UNSCHEDULABLE, GATED = "active", "backoff", "unschedulable", "gated"
PARTS = (ACTIVE, BACKOFF, UNSCHEDULABLE, GATED)
FAILED = "AttemptFailed"
_EVENTS = {"PodAdd": "UnschedulablePodAdd", "PodUpdate": "UnschedulablePodUpdate", FAILED: "ScheduleAttemptFailure"}
"""What kube-scheduler calls what put a pod into a part of the queue, where it is not the event's own name."""
_LONGEST_BACKOFF_S = 10.0


class Waiting:
    """A pod that a scheduler has to place."""

    __slots__ = ("attempts", "failed_ns", "first_ns", "part", "plugins", "profile", "tried_ns")

    def __init__(self, profile: str, part: str) -> None:
        self.profile = profile
        self.part = part
        """"": it is being tried, or bound."""
        self.attempts = 0
        self.first_ns = -1
        """When it was tried first."""
        self.tried_ns = 0
        """When the last attempt began."""
        self.failed_ns = 0
        self.plugins: tuple[str, ...] = ()
        """Those that rejected it last."""

    def is_backing_off(self, now_ns: int) -> bool:
        wait_s = min(2.0 ** max(self.attempts - 1, 0), _LONGEST_BACKOFF_S)
        return now_ns < self.failed_ns + wait_s * SECOND_NS


class Queue:
    """The queue of one scheduler."""

    def __init__(self) -> None:
        self.pods: dict[str, Waiting] = {}
        """By UID."""
        self.came: Counter[tuple[str, str]] = Counter()
        """Pods that came, by event and part, since :meth:`take`."""

    def left(self, event: PodQueued, time_ns: int, profile: str) -> None:
        pod = self.pods.setdefault(event.uid, Waiting(profile, event.queue))
        if event.queue != UNSCHEDULABLE or event.event != FAILED:
            # A failed attempt was counted when it failed.
            cause = event.event
            self.came[_EVENTS.get(cause, cause), UNSCHEDULABLE if event.queue == GATED else event.queue] += 1
        if event.queue == ACTIVE:
            pod.part = ""
        elif event.queue == BACKOFF or event.queue == GATED or not pod.is_backing_off(time_ns):
            pod.part = ACTIVE
        else:
            pod.part = BACKOFF

    def tried(self, uid: str, start_ns: int, attempt: int) -> None:
        pod = self.pods.get(uid)
        if pod is not None:
            # It may have come from the backoff at once.
            pod.part, pod.attempts, pod.tried_ns = "", attempt, start_ns
            if pod.first_ns < 0:
                pod.first_ns = start_ns

    def failed(self, uid: str, time_ns: int, result: str, plugins: tuple[str, ...]) -> None:
        pod = self.pods.get(uid)
        if pod is None:
            return
        pod.failed_ns, pod.plugins = time_ns, plugins
        pod.part = BACKOFF if result == "error" else UNSCHEDULABLE
        if pod.part == UNSCHEDULABLE:
            self.came[_EVENTS[FAILED], UNSCHEDULABLE] += 1

    def take(self) -> Counter[tuple[str, str]]:
        found, self.came = self.came, Counter()
        return found

    def pending(self) -> dict[tuple[str, ...], float]:
        """``scheduler_pending_pods``."""
        counts = Counter(pod.part for pod in self.pods.values())
        return {(part,): counts[part] for part in PARTS}

    def unschedulable(self) -> dict[tuple[str, ...], float]:
        """``scheduler_unschedulable_pods``."""
        found: Counter[tuple[str, ...]] = Counter()
        for pod in self.pods.values():
            if pod.part == GATED:
                found["SchedulingGates", pod.profile] += 1
            elif pod.part in (UNSCHEDULABLE, BACKOFF):
                found.update((plugin, pod.profile) for plugin in pod.plugins)
        return dict(found)
