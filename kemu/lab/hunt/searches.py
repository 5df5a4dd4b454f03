"""The search: the reference, a trial for each plan, and of what goes wrong the repetitions and the smallest steps."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from kemu.lab.hunt import findings, planning
from kemu.lab.hunt.findings import Finding
from kemu.lab.hunt.oracles import Reference, Symptom, Unsettled
from kemu.lab.hunt.perturbations import Plan
from kemu.lab.hunt.projects import Project, Step
from kemu.lab.hunt.trials import Outcome, Trial

REFERENCES = 3
"""Runs without perturbations: what differs between them says nothing."""


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
        repetitions: int = findings.REPETITIONS,
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
        self.plans: list[Plan] = []

    def reference(self, steps: Sequence[Step] = ()) -> Reference:
        """Raises Unsettled."""
        steps = tuple(steps) or self._project.steps
        outcomes = [self.trial(steps, ()) for _ in range(REFERENCES)]
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

    def _try(self, reference: Reference, plan: Plan) -> Finding | None:
        outcome = self.trial(self._project.steps, plan)
        if not outcome.struck:
            self.progress.not_struck += 1
        symptoms = reference.symptoms(outcome) if outcome.struck else []
        if not symptoms:
            return None
        signatures = {each.signature for each in symptoms}
        for known in self.findings:
            if signatures <= {each.signature for each in known.symptoms} and _kinds(plan) == _kinds(known.plan):
                known.alike.append(plan)
                return None
        steps = self._project.steps
        if not findings.shows(self, reference, steps, plan, symptoms):
            return None  # once, and not again: the controller's own timing
        number = len(self.findings) + 1
        finding = findings.examine(self, steps, plan, symptoms, number, self._out, self._repetitions)
        self.findings.append(finding)
        self.progress.found += 1
        return finding

    def again(self, plan: Plan, steps: Sequence[Step], times: int) -> list[list[Symptom]]:
        """What goes wrong in each of so many trials with a plan."""
        reference = self.reference(steps)
        return [reference.symptoms(self.trial(steps, plan)) for _ in range(times)]

    def trial(self, steps: Sequence[Step], plan: Plan) -> Outcome:
        self._number += 1
        folder = self._out / "trials" / f"{self._number}"
        if folder.exists():
            shutil.rmtree(folder)
        folder.mkdir(parents=True)
        try:
            return Trial(self._project, folder, steps, plan).run()
        finally:
            _forget(self._out / "trials", self._number - 2)


def _kinds(plan: Plan) -> list[str]:
    return [one.what for one in plan]


def _forget(folder: Path, number: int) -> None:
    """Trials that found nothing are not kept; the last ones are, for who wants to see them."""
    old = folder / f"{number}"
    if old.exists():
        shutil.rmtree(old)
