"""P(failure) over time: how likely a run fails after what has happened so far, and which event decided it.

At an instant the past of the failing run is kept, and its future is drawn anew: from then on every random stream of the
run is that of another seed (latencies, ties of schedulers, jitter, faults), and messages on their way take another
time. Where holds made the run what it is, or where its latencies are constant, messages come late at random, too, and
what a hold still keeps may come. The share of such futures that fail in the same way is P(failure) at that instant. It
jumps where the failure is decided; bisecting the largest jump names the event.

What stays: the pods of workloads come when they come, and what an actor drew before the instant (how long a container
takes to start, when the next fault of a series begins) is known to the run, if not to the log.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kemu.lab.exploration.executions import FAILS, Failure
from kemu.lab.exploration.plans import ChooserSpec, Plan
from kemu.lab.exploration.runs import Task
from kemu.lab.exploration.sources import Source
from kemu.lab.exploration.workers import Executor, Inline
from kemu.lab.tell.explaining.chains import Chain
from kemu.lab.tell.explaining.explanations import Explanation
from kemu.lab.tell.explaining.tellings import Telling
from kemu.runtime import distributions, random_streams
from kemu.runtime.env import MILLISECOND_NS
from kemu.runtime.random_streams import Redraw
from kemu.runtime.sim.steering.messages import Message
from kemu.runtime.sim.wires import LATENCIES

INSTANTS = 30
SUFFIXES = 50
MOST_SUFFIXES = 8
"""At an instant that is hard to tell from others: so many times as many."""
_DOUBT = 2.0
"""Standard errors within which two rises may be the same."""
_SHARE = 0.2
"""The share of the messages of a new future that come later than usual."""
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
    """How many futures each point was drawn from, at least."""


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
    """At up to so many instants of the story, with so many futures each; with more where two rises look alike."""
    before, story = _times(explanation)
    if not story:
        return Curve((), None, suffixes)
    estimates = _Estimates(explanation, executor if executor is not None else Inline())
    # It may have been decided before the story begins: then it rises from 0 to its beginning, and that is bisected.
    estimates.at(sorted({0, *_spread([before[-1], *story], max(instants - 1, 2))}), suffixes)
    jump = _largest_jump(estimates, sorted({*before, *story}), suffixes)
    points = tuple(Point(time_ns, estimates.known[time_ns].share) for time_ns in sorted(estimates.known))
    decision = None
    if jump is not None and jump.rise > 3 * jump.error:
        low, high = jump.low.share, jump.high.share
        decision = _decision(explanation.telling, explanation.chain, jump.high_ns, low, high)
    return Curve(points, decision, suffixes)


@dataclass(frozen=True, slots=True)
class _Estimate:
    failed: int
    runs: int

    @property
    def share(self) -> float:
        return self.failed / self.runs


@dataclass(frozen=True, slots=True)
class _Jump:
    """From one instant to a later one."""

    low_ns: int
    high_ns: int
    low: _Estimate
    high: _Estimate

    @property
    def rise(self) -> float:
        return self.high.share - self.low.share

    @property
    def error(self) -> float:
        """The standard error of the rise, if both were as likely."""
        both = (self.low.failed + self.high.failed) / (self.low.runs + self.high.runs)
        return math.sqrt(both * (1 - both) * (1 / self.low.runs + 1 / self.high.runs))


def _largest_jump(estimates: _Estimates, times: Sequence[int], suffixes: int) -> _Jump | None:
    """Between two neighbours of the times. Wherever it rises most is bisected, until that cannot be; where another rise
    is as large within chance, both get more futures."""
    while True:
        jumps = sorted(estimates.jumps(), key=lambda jump: (-jump.rise, jump.low_ns))
        if not jumps:
            return None
        first = jumps[0]
        between = [time_ns for time_ns in times if first.low_ns < time_ns < first.high_ns]
        if between:
            estimates.at([between[len(between) // 2]], suffixes)
            continue
        unsure = [
            time_ns
            for jump in jumps
            if jump is first or first.rise - jump.rise < _DOUBT * math.hypot(first.error, jump.error)
            for time_ns in (jump.low_ns, jump.high_ns)
        ]
        fewest = min(estimates.known[time_ns].runs for time_ns in unsure)
        is_sure = len(unsure) == 2 or first.rise <= 0
        if is_sure or fewest >= MOST_SUFFIXES * suffixes:
            return first
        estimates.at([time_ns for time_ns in unsure if estimates.known[time_ns].runs == fewest], 2 * fewest)


def _times(explanation: Explanation) -> tuple[list[int], list[int]]:
    """The instants of the run log to the end of the story, between which nothing happens: those before the story, from
    0; and those of the story."""
    told = [one.time_ns for one in explanation.chain.sentences if one.event >= 0 and not one.is_of_passing]
    about = explanation.chain.mentioned.pods
    telling = explanation.telling
    begun = [step.at.time_ns for step in telling.steps if step.pod in about or step in explanation.chain.slice]
    if not told:
        return [], []
    released = [flight.arrived_ns for flight in telling.held.values()]
    first = min([*begun, *told])
    # Details round to milliseconds.
    last = max([*told, *released, *explanation.chain.mentioned.times_ns]) + MILLISECOND_NS
    # A decision is made when it begins.
    times = {event.time_ns for event in telling.events} | {step.begun.time_ns for step in telling.steps}
    before = sorted({0, *(time_ns for time_ns in times if 0 < time_ns < first)})
    return before, sorted(time_ns for time_ns in times if first <= time_ns <= last)


def _spread(times: Sequence[int], count: int) -> list[int]:
    """So many of them, evenly by number, the first and the last among them."""
    if len(times) <= count:
        return list(times)
    return [times[round(index * (len(times) - 1) / (count - 1))] for index in range(count)]


def plan(explanation: Explanation, at_ns: int, number: int) -> Plan:
    """A run with the past of the failing one until that instant, and a future of that number."""
    redraw = Redraw(at_ns, number)
    overrides: dict[str, Any] = {}
    if explanation.telling.recording.execution.outcome != FAILS:
        overrides["expect"] = []  # One of them expects the check to fail; by itself it makes the verdict fail.
    scenario, held = explanation.scenario, explanation.telling.held
    if not scenario.holds and _is_random(scenario.timing):
        return Plan(overrides, redraw=redraw)
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
    holds = tuple(scenario.holds[index] for index in kept)
    chooser = ChooserSpec(f"{__name__}:{Future.__name__}", parameters)
    return Plan(overrides, chooser=chooser, holds=holds, redraw=redraw)


def _is_random(timing: Mapping[str, Any]) -> bool:
    """Whether messages take times that are drawn."""
    return any(key in timing and distributions.parse(timing[key]).constant is None for key in LATENCIES)


class _Estimates:
    """Carries out the runs, and counts."""

    def __init__(self, explanation: Explanation, executor: Executor) -> None:
        self.known: dict[int, _Estimate] = {}
        """By instant."""
        self._explanation = explanation
        self._source = Source.of(explanation.scenario)
        self._failure = explanation.failure
        self._executor = executor
        self._runs = 0

    def at(self, times: Iterable[int], suffixes: int) -> None:
        """Have so many futures of each of these instants."""
        before = {time_ns: self.known.get(time_ns, _Estimate(0, 0)) for time_ns in times}
        asked = [(time_ns, one) for time_ns, known in before.items() for one in range(known.runs, suffixes)]
        tasks = [Task(self._runs + index, plan(self._explanation, *each)) for index, each in enumerate(asked)]
        self._runs += len(tasks)
        failed = dict.fromkeys(before, 0)
        records = self._executor.run(self._source, tasks)
        for (time_ns, _), record in zip(asked, records, strict=True):
            failed[time_ns] += self._is_it(record.failures)
        for time_ns, known in before.items():
            self.known[time_ns] = _Estimate(known.failed + failed[time_ns], max(known.runs, suffixes))

    def jumps(self) -> list[_Jump]:
        """From each known instant to the next."""
        known = self.known
        return [_Jump(low, high, known[low], known[high]) for low, high in itertools.pairwise(sorted(known))]

    def _is_it(self, failures: Iterable[Failure]) -> bool:
        wanted = self._failure
        return any((one.id, one.cause) == (wanted.id, wanted.cause) for one in failures)


def _decision(telling: Telling, chain: Chain, time_ns: int, before: float, after: float) -> Decision:
    """The weightiest event of that instant; a decision that takes time is made when it begins."""
    steps = [step for step in telling.steps if time_ns in (step.at.time_ns, step.begun.time_ns)]
    if steps:
        step = max(steps, key=lambda one: (one in chain.steps, one.begun.time_ns == time_ns, one.weight, -one.at.place))
        return Decision(step.at.place, time_ns, step.actor, step.text, before, after)
    place = next(index for index, event in enumerate(telling.events) if event.time_ns == time_ns)
    return Decision(place, time_ns, telling.events[place].actor, telling.told(place), before, after)
