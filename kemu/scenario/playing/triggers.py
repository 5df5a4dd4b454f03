"""Watches a run that goes on for what is to come true in it: ``until``, and ``when`` of faults.

Role: below the recorder of :mod:`plays`, which feeds it the run log. What it looks for is judged on the same history as
expectations are (:mod:`kemu.scenario.verdicts`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from kemu.checks.history import History
from kemu.scenario import verdicts
from kemu.scenario.playing import judging
from kemu.scenario.scenarios import Scenario, Trigger

_MAY_DECIDE = frozenset(
    (
        "store.txn", "sched.attempt", "sched.scores", "sched.victim", "sched.bind", "rescheduler.victim",
        "kubelet.admit", "kubelet.running", "kubelet.oom_killed", "kubelet.preempting", "kubelet.terminated",
        "kubelet.finished", "machine.off", "actor.stopped", "user.pod", "controller.pod", "api.refused", "user.refused",
        "api.throttled", "chaos.begin", "chaos.hit",
    )
)  # fmt: skip
"""Events after which something may be true that was not before."""


class Triggers:
    """Of one run."""

    def __init__(self, scenario: Scenario, history: History | None = None) -> None:
        """``history``: one that has seen an event before :meth:`feed` gets it; without it they fold their own."""
        self._meant = judging.meant(scenario, scenario.duration_ns)
        needed = scenario.until is not None or any(fault.when is not None for fault in scenario.chaos)
        # Faults can undo changes, so they are kept where there are any.
        self._own = History(keep_changes=bool(scenario.chaos)) if history is None and needed else None
        self._history = history if history is not None else self._own
        self._waiting: list[tuple[Trigger, asyncio.Event]] = []

    def feed(self, time_ns: int, actor: str, kind: str, data: Mapping[str, Any]) -> None:
        if self._own is not None:
            self._own.feed(time_ns, actor, kind, data)
        if self._waiting and kind in _MAY_DECIDE:
            come_true = [waiting for waiting in self._waiting if self._is_true(waiting[0])]
            if come_true:
                self._waiting = [waiting for waiting in self._waiting if waiting not in come_true]
                for _, reached in come_true:
                    reached.set()

    def watch(self, trigger: Trigger) -> asyncio.Event:
        """Set as soon as it has come true; at once, if it has already. What ``after_ns`` says is up to the caller."""
        reached = asyncio.Event()
        if self._is_true(trigger):
            reached.set()
        else:
            self._waiting.append((trigger, reached))
        return reached

    def _is_true(self, trigger: Trigger) -> bool:
        assert self._history is not None, "the scenario has no such trigger"
        if trigger.nth > 1:
            return verdicts.times_happened(trigger.statement, self._history) >= trigger.nth
        return verdicts.happened(trigger.statement, self._history, self._meant)
