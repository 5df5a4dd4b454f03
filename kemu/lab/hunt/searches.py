"""The search: the reference, a trial for each plan, and of what goes wrong the repetitions and the smallest steps."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from kemu.errors import KemuError
from kemu.lab.hunt import planning, tellings
from kemu.lab.hunt.oracles import Reference, Symptom
from kemu.lab.hunt.perturbations import Perturbation
from kemu.lab.hunt.projects import Project, Step
from kemu.lab.hunt.trials import Outcome, Trial

REFERENCES = 3
"""Runs without perturbations: what differs between them says nothing."""
REPETITIONS = 20


class Unsettled(KemuError):
    """The steps do not come to an end without perturbations either."""


@dataclass
class Finding:
    """A perturbation after which something goes wrong that goes right without it."""

    number: int
    perturbation: Perturbation
    steps: tuple[Step, ...]
    symptoms: list[Symptom]
    folder: Path
    """The run folder of the trial that showed it."""
    shown: int = 1
    tried: int = 1
    alike: list[Perturbation] = field(default_factory=list)
    """Others after which the same goes wrong."""
    told: list[str] = field(default_factory=list)
    """What the controller was told and did, line by line."""

    @property
    def id(self) -> str:
        return f"finding-{self.number}"


@dataclass
class Progress:
    """How far a hunt is."""

    plans: int
    done: int = 0
    not_struck: int = 0
    found: int = 0
    begun: float = field(default_factory=time.monotonic)

    @property
    def left_s(self) -> float:
        """Real time that the plans will still take."""
        passed_s = time.monotonic() - self.begun
        return passed_s / self.done * (self.plans - self.done) if self.done else 0.0


class Hunt:
    """One hunt. ``tell``: a line for a person; ``on_progress``: after each plan."""

    def __init__(
        self,
        project: Project,
        out: Path,
        *,
        repetitions: int = REPETITIONS,
        real_s: float = float("inf"),
        on_progress: Callable[[Progress], None] = lambda progress: None,
    ) -> None:
        """``real_s``: no further plan begins when so much real time has passed."""
        self._project = project
        self._out = out
        self._repetitions = repetitions
        self._real_s = real_s
        self._on_progress = on_progress
        self._number = 0
        self.findings: list[Finding] = []
        self.progress = Progress(0)
        self.brute_force = 0
        """How many plans there would be without a thought."""
        self.plans: list[Perturbation] = []

    def reference(self, steps: Sequence[Step] = ()) -> Reference:
        """Raises Unsettled."""
        steps = tuple(steps) or self._project.steps
        outcomes = [self._trial(steps, ()) for _ in range(REFERENCES)]
        found = Reference(outcomes, self._project.ignored, steps)
        if found.problems:
            raise Unsettled("without any perturbation: " + "; ".join(found.problems))
        return found

    def run(self) -> Iterator[Finding]:
        """Raises Unsettled."""
        reference = self.reference()
        self.plans = planning.plans(reference.outcomes[0])
        self.brute_force = planning.brute_force(reference.outcomes[0])
        self.progress = Progress(len(self.plans))
        for plan in self.plans:
            if time.monotonic() - self.progress.begun > self._real_s:
                return
            finding = self._try(reference, plan)
            self.progress.done += 1
            self._on_progress(self.progress)
            if finding is not None:
                yield finding

    def _try(self, reference: Reference, plan: Perturbation) -> Finding | None:
        outcome = self._trial(self._project.steps, (plan,))
        if not outcome.struck:
            self.progress.not_struck += 1
        symptoms = reference.symptoms(outcome) if outcome.struck else []
        if not symptoms:
            return None
        signatures = {each.signature for each in symptoms}
        for known in self.findings:
            if signatures <= {each.signature for each in known.symptoms} and plan.what == known.perturbation.what:
                known.alike.append(plan)
                return None
        if not self._shows(reference, self._project.steps, plan, symptoms):
            return None  # once, and not again: the controller's own timing
        return self._found(plan, symptoms)

    def _found(self, plan: Perturbation, symptoms: list[Symptom]) -> Finding:
        steps, reference = self._shrunk(plan, symptoms)
        number = len(self.findings) + 1
        kept = self._out / f"finding-{number}" / "run"
        shown = tried = 0
        last: Outcome | None = None
        while tried < self._repetitions or last is None:
            outcome = self._trial(steps, (plan,))
            tried += 1
            if _is_alike(reference.symptoms(outcome), symptoms):
                shown += 1
                last = outcome
                if kept.exists():
                    shutil.rmtree(kept)
                kept.parent.mkdir(parents=True, exist_ok=True)
                shutil.copytree(outcome.folder, kept)
            if tried >= 3 * max(1, self._repetitions):
                break
        again = reference.symptoms(last) if last is not None else symptoms
        lines = [] if last is None else tellings.told(last.course, plan, last.begun_ns)
        finding = Finding(number, plan, steps, again, kept, shown, tried, told=lines)
        self.findings.append(finding)
        self.progress.found += 1
        return finding

    def _shrunk(self, plan: Perturbation, symptoms: Sequence[Symptom]) -> tuple[tuple[Step, ...], Reference]:
        """The steps without those that it does not need, one after the other from the last one on."""
        steps = self._project.steps
        reference = self.reference(steps)
        for step in reversed(self._project.steps):
            fewer = tuple(one for one in steps if one is not step)
            if not fewer:
                continue
            try:
                smaller = self.reference(fewer)
            except Unsettled:
                continue
            if self._shows(smaller, fewer, plan, symptoms):
                steps, reference = fewer, smaller
        return steps, reference

    def _shows(
        self, reference: Reference, steps: Sequence[Step], plan: Perturbation, symptoms: Sequence[Symptom]
    ) -> bool:
        outcome = self._trial(steps, (plan,))
        return outcome.struck and _is_alike(reference.symptoms(outcome), symptoms)

    def again(self, plan: Perturbation, steps: Sequence[Step], times: int) -> list[list[Symptom]]:
        """What goes wrong in each of so many trials with a plan."""
        reference = self.reference(steps)
        return [reference.symptoms(self._trial(steps, (plan,))) for _ in range(times)]

    def _trial(self, steps: Sequence[Step], perturbations: Sequence[Perturbation]) -> Outcome:
        self._number += 1
        folder = self._out / "trials" / f"{self._number}"
        if folder.exists():
            shutil.rmtree(folder)
        folder.mkdir(parents=True)
        try:
            return Trial(self._project, folder, steps, perturbations).run()
        finally:
            _forget(self._out / "trials", self._number - 2)


def _forget(folder: Path, number: int) -> None:
    """Trials that found nothing are not kept; the last ones are, for who wants to see them."""
    old = folder / f"{number}"
    if old.exists():
        shutil.rmtree(old)


def _is_alike(found: Sequence[Symptom], wanted: Sequence[Symptom]) -> bool:
    """Whether the first symptom, the weightiest one, is there again."""
    return wanted[0].signature in {each.signature for each in found}
