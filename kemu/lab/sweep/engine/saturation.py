"""Whether a cluster kept up with its load.

A run that exceeds a limit is ended there and counts as saturated: what can only grow is known to be at least that much.
In a run that came to its end the queue may have grown for as long as pods came: it has no steady state, and waiting
times tell how long it lasted. That is told of the cell; its figures are those of that time, and count.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from kemu.lab.checks.history import History
from kemu.lab.checks.history.facts import PodHistory
from kemu.lab.exploration.executions import Stop
from kemu.lab.sweep.experiments.experiments import Limits

QUARTERS = 4
LEAST_PODS = 20
"""That have to come after the first quarter; fewer are a burst, not a load."""
LEAST_GROWTH = 10
"""Pods, by which the queue has to grow from the second quarter to the last."""
SHARE = 0.1
"""The share of the pods that come between the middles of these quarters which have to be left over."""
EVERY = 64
"""Events, after which limits are looked at."""


class TooMuch(Exception):
    """A limit is exceeded, and there are no figures that another machine would have, too."""


class Watch:
    """A watcher of a run's events that ends it at its limits."""

    def __init__(self, limits: Limits, history: History, stop: Stop, spent_s: float = 0.0) -> None:
        """``history``: of the same events. ``spent_s``: CPU time that the run has taken before."""
        self.reached = ""
        """Which limit was exceeded, and when; empty: none."""
        self.is_broken = False
        """Whether the run was broken off at once, whatever its actors made of that."""
        self._limits = limits
        self._history = history
        self._stop = stop
        self._events = 0
        self._begun_s = time.process_time() - spent_s

    def take(self, time_ns: int, actor: str, kind: str, data: Mapping[str, Any]) -> None:
        """Has the signature of a ``LogSink``. Raises TooMuch."""
        self._events += 1
        if self._events % EVERY == 0 or self._events == self._limits.events:
            self._check(time_ns)

    def _check(self, time_ns: int) -> None:
        limits = self._limits
        if time.process_time() - self._begun_s > limits.cpu_s:
            self.reached, self.is_broken = f"{limits.cpu_s:g} s of CPU time", True
            raise TooMuch(self.reached)
        if self.reached:
            return
        if self._events >= limits.events:
            self.reached = f"{limits.events:,} events"
        elif limits.waiting and self._waiting() > limits.waiting:
            self.reached = f"more than {limits.waiting:,} waiting pods"
        else:
            return
        self.reached += f" at {time_ns / 1e9:.1f} s of virtual time"
        self._stop.now()

    def _waiting(self) -> int:
        counts = self._history.counts
        if counts["pods_created"] - counts["pods_bound"] <= self._limits.waiting:
            return 0  # whatever was deleted meanwhile
        pods = self._history.pods.values()
        return sum(pod.bound_ns is None and pod.gone_ns is None and not pod.preset_node for pod in pods)


def growth(history: History) -> str:
    """How the queue grew, if it did so for as long as pods came; else empty.

    The time in which pods are created is cut into quarters; what counts is how many pods wait on average in each.
    """
    pods = [pod for pod in history.pods.values() if not pod.preset_node]
    if not pods:
        return ""
    first_ns, last_ns = min(pod.created_ns for pod in pods), max(pod.created_ns for pod in pods)
    step_ns = (last_ns - first_ns) / QUARTERS
    later = sum(pod.created_ns > first_ns + step_ns for pod in pods)
    if step_ns <= 0 or later < LEAST_PODS:
        return ""
    ends = [(pod.created_ns, _waited_until(pod, history.now_ns)) for pod in pods]
    waiting = []
    for quarter in range(QUARTERS):
        begin, end = first_ns + quarter * step_ns, first_ns + (quarter + 1) * step_ns
        waited = sum(max(0.0, min(until, end) - max(since, begin)) for since, until in ends)
        waiting.append(waited / step_ns)
    came = sum(first_ns + 1.5 * step_ns < pod.created_ns <= first_ns + 3.5 * step_ns for pod in pods)
    _, second, third, fourth = waiting
    if second < third < fourth and fourth - second >= max(LEAST_GROWTH, SHARE * came):
        told = ", ".join(f"{each:.0f}" for each in waiting)
        return f"the queue grows as long as pods come: {told} pods wait on average in the quarters of that time"
    return ""


def _waited_until(pod: PodHistory, end_ns: int) -> int:
    bound = pod.first("bound")
    return min(bound.time_ns if bound is not None else end_ns, pod.gone_ns if pod.gone_ns is not None else end_ns)
