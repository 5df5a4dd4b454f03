"""P(failure) over time: how likely a run fails after what has happened so far, and which event decided it.

At an instant the past of the failing run is kept, and its future is drawn anew: messages that are sent later, or are on
their way, take longer by random times, and what a hold still keeps may come. The share of such futures that fail in the
same way is P(failure) at that instant. It jumps where the failure is decided; bisecting the largest jump names the
event.

Random numbers of actors and of distributed latencies stay those of the seed: only the delays are drawn anew.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from kemu.exploration.executions import FAILS, Failure
from kemu.exploration.explaining.chains import Chain
from kemu.exploration.explaining.explanations import Explanation
from kemu.exploration.explaining.tellings import Telling
from kemu.exploration.plans import ChooserSpec, Plan
from kemu.exploration.runs import Task
from kemu.exploration.sources import Source
from kemu.exploration.workers import Executor, Inline
from kemu.runtime import random_streams
from kemu.runtime.env import MILLISECOND_NS
from kemu.runtime.sim.steering.messages import Message

INSTANTS = 30
SUFFIXES = 50
_SHARE = 0.2
"""Of the messages of a new future that come later than usual."""
_USUAL_WIDTH_NS = 20 * MILLISECOND_NS


@dataclass(frozen=True)
class Point:
    time_ns: int
    probability: float


@dataclass(frozen=True)
class Decision:
    """Where the probability rises most."""

    event: int
    """Its place in the run log."""
    time_ns: int
    actor: str
    text: str
    before: float
    after: float


@dataclass(frozen=True)
class Curve:
    points: tuple[Point, ...]
    """In the order of time."""
    decision: Decision | None
    """None: it rises nowhere by more than chance explains."""
    suffixes: int
    """How many futures each point was drawn from."""


class Future:
    """A chooser: up to an instant the run is as it was, then messages are late at random."""

    def __init__(self, seed: int, at_ns: int, width_ns: int, let_go: Sequence[Sequence[str | int]]) -> None:
        """``let_go``: source, target and number of the messages that a hold still kept at that instant."""
        self._seed = seed
        self._at_ns = at_ns
        self._width_ns = width_ns
        self._let_go = {(str(source), str(target), int(number)) for source, target, number in let_go}
        self._streams: dict[tuple[str, str], random.Random] = {}

    def delay_ns(self, message: Message) -> int:
        if message.due_ns > self._at_ns:
            return self._drawn_ns(message)
        if (message.source, message.target, message.number) in self._let_go:
            return self._at_ns + 1 - message.due_ns + self._drawn_ns(message)
        return 0

    def _drawn_ns(self, message: Message) -> int:
        link = message.source, message.target
        stream = self._streams.get(link)
        if stream is None:
            stream = self._streams[link] = random_streams.random_stream(self._seed, "future", *link)
        return round(self._width_ns * stream.random()) if stream.random() < _SHARE else 0


def curve(
    explanation: Explanation, executor: Executor | None = None, *, instants: int = INSTANTS, suffixes: int = SUFFIXES
) -> Curve:
    """At up to so many instants of the story, with so many futures each."""
    times = _times(explanation)
    if not times:
        return Curve((), None, suffixes)
    estimates = _Estimates(explanation, executor if executor is not None else Inline(), suffixes)
    estimates.at(_spread(times, instants))
    low, high = _largest_jump(estimates.known)
    while low is not None and high is not None:
        between = [time_ns for time_ns in times if low < time_ns < high]
        if not between:
            break
        middle = between[len(between) // 2]
        estimates.at([middle])
        rises = estimates.known[middle] - estimates.known[low] >= estimates.known[high] - estimates.known[middle]
        low, high = (low, middle) if rises else (middle, high)
    points = tuple(Point(time_ns, estimates.known[time_ns]) for time_ns in sorted(estimates.known))
    decision = None
    if low is not None and high is not None and _is_no_chance(estimates.known[low], estimates.known[high], suffixes):
        decision = _decision(explanation.telling, explanation.chain, high, estimates.known[low], estimates.known[high])
    return Curve(points, decision, suffixes)


def _is_no_chance(before: float, after: float, suffixes: int) -> bool:
    """Whether it rises by more than chance explains: three standard errors of the difference."""
    both = (before + after) / 2
    return after - before > 3 * math.sqrt(2 * both * (1 - both) / suffixes)


def _times(explanation: Explanation) -> list[int]:
    """The instants of the run log from shortly before the story to its end: between them nothing happens."""
    told = [one.time_ns for one in explanation.chain.sentences if one.event >= 0 and not one.is_of_passing]
    about = explanation.chain.concerns.pods
    begun = [
        step.at.time_ns for step in explanation.telling.steps if step.pod in about or step in explanation.chain.slice
    ]
    if not told:
        return []
    released = [flight.arrived_ns for flight in explanation.telling.held.values()]
    first = min([*begun, *told])
    # Details round to milliseconds.
    last = max([*told, *released, *explanation.chain.concerns.times_ns]) + MILLISECOND_NS
    seen = sorted({event.time_ns for event in explanation.telling.events if first <= event.time_ns <= last})
    return [max(first - MILLISECOND_NS, 0), *seen]


def _spread(times: Sequence[int], count: int) -> list[int]:
    """So many of them, evenly by number, the first and the last among them."""
    if len(times) <= count:
        return list(times)
    return [times[round(index * (len(times) - 1) / (count - 1))] for index in range(count)]


def _largest_jump(known: dict[int, float]) -> tuple[int | None, int | None]:
    times = sorted(known)
    pairs = list(itertools.pairwise(times))
    if not pairs:
        return None, None
    return max(pairs, key=lambda pair: known[pair[1]] - known[pair[0]])


def plan(explanation: Explanation, at_ns: int, number: int) -> Plan:
    """A run with the past of the failing one until that instant, and a future of that number."""
    held = explanation.telling.held
    late = [flight.arrived_ns - flight.due_ns for flight in held.values() if flight.arrived_ns >= 0]
    kept = [index for index in held if 0 <= held[index].arrived_ns <= at_ns]
    let_go = [flight for index, flight in held.items() if index not in kept and flight.due_ns <= at_ns]
    parameters = {
        "seed": number,
        "at_ns": at_ns,
        # As late as what the holds kept was, and more.
        "width_ns": max([2 * one for one in late], default=0) or _USUAL_WIDTH_NS,
        "let_go": [[flight.source, flight.target, flight.number] for flight in let_go],
    }
    holds = tuple(explanation.scenario.holds[index] for index in kept)
    overrides: dict[str, Any] = {}
    if explanation.telling.recording.execution.outcome != FAILS:
        overrides["expect"] = []  # One of them expects the check to fail; by itself it makes the verdict fail.
    return Plan(overrides, chooser=ChooserSpec(f"{__name__}:{Future.__name__}", parameters), holds=holds)


class _Estimates:
    """Carries out the runs, and counts."""

    def __init__(self, explanation: Explanation, executor: Executor, suffixes: int) -> None:
        self.known: dict[int, float] = {}
        """By instant."""
        self._explanation = explanation
        self._source = Source.of(explanation.scenario)
        self._failure = explanation.failure
        self._executor = executor
        self._suffixes = suffixes
        self._runs = 0

    def at(self, times: Iterable[int]) -> None:
        new = [time_ns for time_ns in times if time_ns not in self.known]
        tasks = [Task(self._runs + index * self._suffixes + one, plan(self._explanation, time_ns, one))
                 for index, time_ns in enumerate(new) for one in range(self._suffixes)]  # fmt: skip
        self._runs += len(tasks)
        failed = [self._is_it(record.failures) for record in self._executor.run(self._source, tasks)]
        for index, time_ns in enumerate(new):
            own = failed[index * self._suffixes : (index + 1) * self._suffixes]
            self.known[time_ns] = sum(own) / len(own)

    def _is_it(self, failures: Iterable[Failure]) -> bool:
        wanted = self._failure
        return any((one.id, one.cause) == (wanted.id, wanted.cause) for one in failures)


def _decision(telling: Telling, chain: Chain, time_ns: int, before: float, after: float) -> Decision:
    """Of the events of that instant the weightiest; a decision that takes time is made when it begins."""
    steps = [step for step in telling.steps if time_ns in (step.at.time_ns, step.begun.time_ns)]
    if steps:
        step = max(steps, key=lambda one: (one in chain.steps, one.begun.time_ns == time_ns, one.weight, -one.at.place))
        return Decision(step.at.place, time_ns, step.actor, step.text, before, after)
    place = next(index for index, event in enumerate(telling.events) if event.time_ns == time_ns)
    return Decision(place, time_ns, telling.events[place].actor, telling.told(place), before, after)
