"""What a trial has found: tried again, made smaller, and repeated."""

from __future__ import annotations

import math
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from kemu.lab.hunt import perturbations
from kemu.lab.hunt.explaining import causes, pictures, tellings
from kemu.lab.hunt.judging.oracles import Reference, Symptom, Unsettled
from kemu.lab.hunt.perturbations import Kind, Plan
from kemu.lab.hunt.projects import Step
from kemu.lab.hunt.running.trials import Outcome

REPETITIONS = 20
_Z = 1.96
_MOST_TRIES = 3
"""Times so many as wanted, until it shows."""
_MOST_WEAKER = 12
"""Weaker plans that are tried with a finding."""
_USUAL_RETRIES = 2
_RETRIES = {Kind.FREEZE: 4, Kind.LAG: 4, Kind.DELAY: 4, Kind.HIDE: 3, Kind.PAUSE: 3}
"""Trials in which what has shown once has to show once more: where it is up to the timing of the controller's threads
whether a perturbation does harm, more of them."""


@dataclass
class Finding:
    """A plan after which something goes wrong that goes right without it."""

    number: int
    plan: Plan
    steps: tuple[Step, ...]
    symptoms: list[Symptom]
    folder: Path
    """The run folder of the trial that showed it."""
    shown: int = 1
    tried: int = 1
    alike: list[Plan] = field(default_factory=list)
    """Others after which the same goes wrong."""
    told: list[str] = field(default_factory=list)
    """What the controller was told and did, line by line."""
    cause: str = ""
    """Why it goes wrong, in one sentence."""
    picture: str = ""
    """An SVG file; empty: it did not show again."""
    drawing: str = ""
    """The same for a page, without words."""

    @property
    def often(self) -> str:
        """``20 of 20 times``; where it does not always show, with the interval of its share."""
        text = f"{self.shown} of {self.tried} times"
        if self.shown == self.tried:
            return text
        low, high = self.interval
        return f"{text} ({100 * low:.0f} to {100 * high:.0f} %)"

    @property
    def interval(self) -> tuple[float, float]:
        """The share of trials in which it shows, with a confidence of 95 % (Wilson)."""
        count, share = self.tried, self.shown / self.tried
        spread = _Z * math.sqrt(share * (1 - share) / count + _Z**2 / (4 * count**2))
        middle, scale = share + _Z**2 / (2 * count), 1 + _Z**2 / count
        return max(0.0, (middle - spread) / scale), min(1.0, (middle + spread) / scale)

    @property
    def id(self) -> str:
        return f"finding-{self.number}"


class Trials(Protocol):
    """Who carries out trials."""

    def trial(self, steps: Sequence[Step], plan: Plan) -> Outcome: ...

    def trials(self, steps: Sequence[Step], plan: Plan, times: int) -> Iterator[Outcome]:
        """So many of the same, side by side."""
        ...

    def reference(self, steps: Sequence[Step]) -> Reference:
        """Raises Unsettled."""
        ...


def shows(
    trials: Trials,
    reference: Reference,
    steps: Sequence[Step],
    plan: Plan,
    symptoms: Sequence[Symptom],
    retries: int = 0,
) -> bool:
    """Whether it goes wrong once more, in the same way, in one of so many trials; 0: as many as such plans need."""
    outcomes = trials.trials(steps, plan, retries or max(_RETRIES.get(one.what, _USUAL_RETRIES) for one in plan))
    return any(outcome.struck and is_alike(reference.symptoms(outcome), symptoms) for outcome in outcomes)


def examine(
    trials: Trials,
    steps: Sequence[Step],
    plan: Plan,
    symptoms: list[Symptom],
    number: int,
    out: Path,
    times: int,
    *,
    shrink: bool = True,
) -> Finding:
    """Shrinks it, unless it shall stay as it is, and repeats it so many times. Its folder goes below ``out``."""
    if shrink:
        steps, reference = _fewer(trials, steps, plan, symptoms)
        plan = _weaker(trials, reference, steps, plan, symptoms)
    else:
        reference = trials.reference(steps)
    kept = out / f"finding-{number}" / "run"
    shown = tried = 0
    last: Outcome | None = None
    for outcome in trials.trials(steps, plan, _MOST_TRIES * max(1, times)):
        tried += 1
        if is_alike(reference.symptoms(outcome), symptoms):
            shown += 1
            last = outcome
            if kept.exists():
                shutil.rmtree(kept)
            kept.parent.mkdir(parents=True, exist_ok=True)
            shutil.copytree(outcome.folder, kept)
        if tried >= times and last is not None:
            break
    again = reference.symptoms(last) if last is not None else symptoms
    found = Finding(number, plan, tuple(steps), again, kept, shown, tried)
    if last is not None:
        found.told = tellings.told(last.course, plan, last.begun_ns)
        cause = causes.of(last, reference.outcomes[0], plan, again[0])
        found.cause = cause.text
        diagram = pictures.diagram(last, steps, plan, cause, again)
        found.picture, found.drawing = pictures.alone(diagram, plan, cause, again), pictures.within(diagram)
    return found


def _weaker(
    trials: Trials, reference: Reference, steps: Sequence[Step], plan: Plan, symptoms: Sequence[Symptom]
) -> Plan:
    """The plan without what it does not need: perturbations, kinds, earlier points, time. Locally minimal, unless it
    takes too long to find out."""
    tries = 0
    found = True
    while found and tries < _MOST_WEAKER:
        found = False
        for fewer in _smaller(plan):
            tries += 1
            if shows(trials, reference, steps, fewer, symptoms):
                plan, found = fewer, True
                break
            if tries >= _MOST_WEAKER:
                break
    return plan


def _smaller(plan: Plan) -> Iterator[Plan]:
    """Plans that do a little less."""
    if len(plan) > 1:
        for place in range(len(plan)):
            yield (*plan[:place], *plan[place + 1 :])
    for place, one in enumerate(plan):
        for less in perturbations.weaker(one):
            yield (*plan[:place], less, *plan[place + 1 :])


def _fewer(
    trials: Trials, wanted: Sequence[Step], plan: Plan, symptoms: Sequence[Symptom]
) -> tuple[Sequence[Step], Reference]:
    """The steps without those that it does not need, one after the other from the last one on."""
    steps = wanted
    reference = trials.reference(steps)
    for step in reversed(wanted):
        fewer = tuple(one for one in steps if one is not step)
        if not fewer:
            continue
        try:
            smaller = trials.reference(fewer)
        except Unsettled:
            continue
        if shows(trials, smaller, fewer, plan, symptoms):
            steps, reference = fewer, smaller
    return steps, reference


def is_alike(found: Sequence[Symptom], wanted: Sequence[Symptom]) -> bool:
    """Whether the first symptom, the weightiest one, is there again."""
    return wanted[0].signature in {each.signature for each in found}
