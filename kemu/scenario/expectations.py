"""What a scenario expects of its run, as data. :mod:`kemu.checks` judges it on the run log.

An expectation has a subject and a statement about it. Times are in nanoseconds from the start of the run; a window is
closed at both ends, and an end that is None is open.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kemu.checks import history

METRICS = ("waiting.p50_s", "waiting.p99_s", "waiting.max_s", "overtaken.p99", "overtaken.max")
"""What ``compare`` may look at besides the counters; all of them of the pods of one priority or of all."""

COUNTERS = history.COUNTERS


@dataclass(frozen=True, slots=True)
class Statement:
    """Something about one pod."""

    what: str
    """A fact that happens at a time (``created unschedulable nominated nominationCleared bound rejected running
    preempted terminating finished deleted``), or ``phase`` (at the end) or ``waited``."""
    never: bool = False
    """The contrary: no such fact in the window."""
    node: str | None = None
    by: str | None = None
    """``preempted``: the preemptor, ``namespace/name``. ``bound``: the scheduler, ``<name>`` or ``<name>/<replica>``."""
    reason: str | None = None
    """``rejected``: as in the pod's status, ``OutOfcpu``."""
    phase: str | None = None
    """``phase``, ``finished``."""
    after_ns: int | None = None
    before_ns: int | None = None
    at_least_ns: int | None = None
    """``waited``."""
    at_most_ns: int | None = None
    """``waited``."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """Of a number; None: no bound."""

    equals: float | None = None
    at_least: float | None = None
    at_most: float | None = None

    def allow(self, value: float) -> bool:
        return (
            (self.equals is None or value == self.equals)
            and (self.at_least is None or value >= self.at_least)
            and (self.at_most is None or value <= self.at_most)
        )


@dataclass(frozen=True, slots=True)
class Selection:
    """Several pods, as far as they were created; one of the three is set."""

    workload: str | None = None
    selector: Mapping[str, Any] | None = None
    """A LabelSelector as JSON: ``matchLabels``, ``matchExpressions``."""
    names: tuple[str, ...] | None = None
    """``namespace/name``."""


@dataclass(frozen=True, slots=True)
class PodIs:
    """``{pod: a, bound: {}}``"""

    pod: str
    """``namespace/name``."""
    statement: Statement


@dataclass(frozen=True, slots=True)
class PodsAre:
    """``{pods: {workload: w}, all: {running: {}}}``"""

    selection: Selection
    quantifier: str
    """``all any none count``. ``all`` of no pods at all does not hold."""
    statement: Statement
    bounds: Bounds
    """Of ``count``."""


@dataclass(frozen=True, slots=True)
class CounterIs:
    """``{counter: preemptions, equals: 2}``"""

    counter: str
    bounds: Bounds


@dataclass(frozen=True, slots=True)
class CheckIs:
    """``{check: no-node-overcommitted, holds: false}``"""

    check: str
    holds: bool


@dataclass(frozen=True, slots=True)
class InOrder:
    """``{order: [{pod: c, bound: {}}, {pod: d, bound: {}}]}``: the first such fact of each, one before the next."""

    steps: tuple[PodIs, ...]


@dataclass(frozen=True, slots=True)
class Comparison:
    """``{compare: {metric: waiting.p99_s, of: …, timesThatOf: …, atLeast: 2}}``: judged on the whole matrix."""

    metric: str
    """One of METRICS, or a counter."""
    priority: int | None
    of: Mapping[str, Any]
    """Path → value: exactly one variant has them; see :func:`kemu.scenario.matrices.select`."""
    times_that_of: Mapping[str, Any]
    at_least: float | None
    at_most: float | None


Subject = PodIs | PodsAre | CounterIs | CheckIs | InOrder | Comparison


@dataclass(frozen=True, slots=True)
class Expectation:
    """One item of ``expect``, or ``until``."""

    id: str
    """Given by the user, or made from the text."""
    text: str
    """The expectation as its author wrote it, in one line."""
    subject: Subject
    line: int = 0
    """Where it stands in the file."""
    when: Mapping[str, Any] = field(default_factory=dict)
    """Path → value: it counts only in variants that have them."""
