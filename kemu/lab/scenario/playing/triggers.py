"""Watches a run that goes on for what is to come true in it: ``until``, and ``when`` of faults.

Role: below the recorder of :mod:`plays`, which feeds it the run log. What it looks for is judged on the same history as
expectations are (:mod:`kemu.lab.scenario.verdicts`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kemu.lab.checks.history import History
from kemu.lab.checks.history.facts import PodHistory
from kemu.lab.scenario import verdicts
from kemu.lab.scenario.expectations import PodsAre
from kemu.lab.scenario.playing import judging
from kemu.lab.scenario.scenarios import Scenario, Trigger
from kemu.runtime.runlog import events

_MAY_DECIDE = frozenset(
    events.kinds(
        events.Transaction,
        events.PodAttempted,
        events.PodScored,
        events.VictimDeleted,
        events.PodBound,
        events.RescheduledVictimDeleted,
        events.AdmissionDecided,
        events.PodRunning,
        events.OomKilled,
        events.PodPreempting,
        events.PodTerminated,
        events.PodFinished,
        events.MachineOff,
        events.ActorStopped,
        events.UserPodCreated,
        events.PodCreated,
        events.RequestRefused,
        events.UserRefused,
        events.RequestThrottled,
        events.FaultBegun,
        events.FaultHit,
    )
)
"""Events after which something may be true that was not before."""

_ARRIVALS = frozenset(events.kinds(events.UserPodCreated, events.PodCreated, events.RequestRefused, events.UserRefused))


class Triggers:
    """Triggers of one run."""

    def __init__(self, scenario: Scenario, history: History | None = None) -> None:
        """``history``: one that has seen an event before :meth:`feed` gets it; without it they fold their own."""
        self._meant = judging.meant(scenario, scenario.duration_ns)
        needed = scenario.until is not None or any(fault.when is not None for fault in scenario.chaos)
        self.are_possible = needed or history is not None
        """Else there is no need to :meth:`feed` them."""
        # Faults can undo changes, so they are kept where there are any.
        self._own = History(keep_changes=bool(scenario.chaos)) if history is None and needed else None
        self._history = history if history is not None else self._own
        self._waiting: list[_Waiting] = []
        self._arrivals = 0
        """Events by which the pods of a workload become more."""

    def feed(self, time_ns: int, actor: str, kind: str, data: Mapping[str, Any]) -> None:
        if self._own is not None:
            self._own.feed(time_ns, actor, kind, data)
        if self._waiting and kind in _MAY_DECIDE:
            self._arrivals += kind in _ARRIVALS
            come_true = [waiting for waiting in self._waiting if self._is_true(waiting)]
            if come_true:
                self._waiting = [waiting for waiting in self._waiting if waiting not in come_true]
                for waiting in come_true:
                    waiting.reached.set()

    def watch(self, trigger: Trigger) -> asyncio.Event:
        """Set as soon as it has come true; at once, if it has already. What ``after_ns`` says is up to the caller."""
        waiting = _Waiting(trigger)
        if self._is_true(waiting):
            waiting.reached.set()
        else:
            self._waiting.append(waiting)
        return waiting.reached

    def _is_true(self, waiting: _Waiting) -> bool:
        history, trigger = self._history, waiting.trigger
        assert history is not None, "the scenario has no such trigger"
        if trigger.nth > 1:
            return verdicts.times_happened(trigger.statement, history) >= trigger.nth
        subject = trigger.statement.subject
        if isinstance(subject, PodsAre) and _is_settled_pod_by_pod(subject):
            return self._is_true_of_all(waiting, subject, history)
        return verdicts.happened(trigger.statement, history, self._meant)

    def _is_true_of_all(self, waiting: _Waiting, subject: PodsAre, history: History) -> bool:
        """Without asking every pod after every event: as long as one speaks against it, no other has to be asked."""
        pod = waiting.against
        # A crash of the store may have undone the creation of a pod.
        if pod is not None and history.pods.get(pod.uid) is pod and verdicts.speaks_against(pod, subject, history):
            return False
        present = (len(history.pods), self._arrivals)
        if waiting.lacks == present:
            return False
        waiting.against = verdicts.latest_against(subject, history)
        if waiting.against is not None:
            return False
        if verdicts.happened(waiting.trigger.statement, history, self._meant):
            return True
        waiting.lacks = present
        return False


@dataclass(eq=False)
class _Waiting:
    """A trigger that has not come true."""

    trigger: Trigger
    reached: asyncio.Event = field(default_factory=asyncio.Event)
    against: PodHistory | None = None
    """Where ``all`` pods are meant, one of which it was not true."""
    lacks: tuple[int, int] | None = None
    """When it was true of all pods that there were, but some were missing: how many pods and arrivals there were."""


def _is_settled_pod_by_pod(subject: PodsAre) -> bool:
    """Whether it is about ``all`` pods, and the same pods at all times: labels change, and with them who is meant."""
    return subject.quantifier == "all" and not subject.statement.never and subject.selection.selector is None
