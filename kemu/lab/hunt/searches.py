"""The search: the reference, a trial for each plan, and of what goes wrong the repetitions and the smallest steps.

Trials run side by side (:mod:`kemu.lab.hunt.running.pools`). Findings come in the order of the plans, whatever comes
first.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import TracebackType
from typing import Self

from kemu.lab.exploration.processes.tasks import Executor
from kemu.lab.exploration.workers import Inline, Workers
from kemu.lab.hunt import findings, planning
from kemu.lab.hunt.coverage import Coverage, why_not
from kemu.lab.hunt.findings import Finding
from kemu.lab.hunt.judging import oracles
from kemu.lab.hunt.judging.oracles import Reference, Symptom, Unsettled
from kemu.lab.hunt.perturbations import Plan
from kemu.lab.hunt.projects import Project, Step
from kemu.lab.hunt.running import pools
from kemu.lab.hunt.running.pools import REFERENCES, LostTrial, NotBegun, Pool
from kemu.lab.hunt.running.trials import Outcome

_MOST_REFERENCES = 64
"""That are kept: findings shrink to the same steps."""


@dataclass
class Progress:
    """How far a hunt is."""

    plans: int
    done: int = 0
    not_struck: int = 0
    found: int = 0
    begun: float = field(default_factory=time.monotonic)
    doing: str = ""
    """Beside trials of plans, in words."""

    @property
    def left_s(self) -> float:
        """Real time that the plans will still take."""
        passed_s = time.monotonic() - self.begun
        return passed_s / self.done * (self.plans - self.done) if self.done else 0.0


@dataclass(frozen=True)
class _Verdict:
    """What is kept of the trial of a plan."""

    struck: bool
    symptoms: list[Symptom]
    why_not: str


class Hunt:
    """One hunt. To be closed: it has processes."""

    def __init__(
        self,
        project: Project,
        out: Path,
        *,
        repetitions: int = findings.REPETITIONS,
        retries: int = 0,
        shrink: bool = True,
        pairs: bool = False,
        mutations: bool = False,
        real_s: float = float("inf"),
        jobs: int = 1,
        executor: Executor | None = None,
        on_progress: Callable[[Progress], None] = lambda progress: None,
        on_lost: Callable[[str], object] = lambda text: None,
    ) -> None:
        """``retries``: see :func:`findings.shows`. ``shrink``: findings lose the steps that they do not need, in many
        trials. ``pairs``, ``mutations``: see :func:`planning.plans`. ``real_s``: no further plan begins when so much
        real time has passed. ``jobs``: processes, one trial in each; 1: all happens in this one. ``executor``: in
        their place, such as a Ray cluster. ``on_progress``: told after each plan. ``on_lost``: told that a process
        has died or hangs."""
        self._project = project
        self._out = out
        self._repetitions = repetitions
        self._retries = retries
        self._shrink = shrink
        self._pairs = pairs
        self._mutations = mutations
        self._real_s = real_s
        self._on_progress = on_progress
        is_here = executor is None
        if executor is None:
            executor = Workers(jobs, limit_s=pools.LIMIT_S) if jobs > 1 else Inline()
        is_apart = isinstance(executor, Workers)
        self._pool = Pool(project, executor, out / "trials", is_here=is_here, is_apart=is_apart, on_lost=on_lost)
        self._references: dict[tuple[int, ...], Reference] = {}
        """By the places of the steps."""
        self.findings: list[Finding] = []
        self.costs: dict[tuple[tuple[str, str], tuple[str, ...]], tuple[Symptom, list[Plan]]] = {}
        """What went right in the end, with more work than in the reference: of each sort the first, and its plans."""
        self.progress = Progress(0)
        self.coverage = Coverage()
        self.brute_force = 0
        """How many plans there would be without a thought."""
        self.plans: list[Plan] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Ends what is under way."""
        self._pool.close()

    def reference(self, steps: Sequence[Step] = ()) -> Reference:
        """Raises Unsettled."""
        steps = tuple(steps) or self._project.steps
        places = tuple(self._project.steps.index(step) for step in steps)
        known = self._references.get(places)
        if known is not None:
            return known
        asked = [self._pool.ask(steps, ()) for _ in range(REFERENCES)]
        found = Reference(
            [self._pool.outcome(one) for one in asked], self._project.ignored, steps, self._project.stable_s
        )
        if found.problems:
            raise Unsettled("without any perturbation: " + "; ".join(found.problems))
        if len(self._references) < _MOST_REFERENCES:
            self._references[places] = found
        return found

    def run(self) -> Iterator[Finding]:
        """Raises Unsettled."""
        reference = self.reference()
        found = planning.plans(reference.outcomes[0], pairs=self._pairs, mutations=self._mutations)
        self.plans = [self.lasting(plan) for plan in found]
        self.brute_force = planning.brute_force(reference.outcomes[0])
        self.coverage.begin(reference.outcomes[0], self.plans)
        progress = self.progress = Progress(len(self.plans))
        self._on_progress(progress)

        def judge(plan: Plan, outcome: Outcome) -> _Verdict:
            """Within the pool, as soon as it has come to its end."""
            found = reference.symptoms(outcome) if outcome.struck else []
            symptoms = oracles.bugs(found)
            if not symptoms:
                self._note_costs(plan, found)
            progress.done += 1
            progress.not_struck += not outcome.struck
            self.coverage.take(plan, outcome.struck, bool(symptoms))
            self._on_progress(progress)
            return _Verdict(outcome.struck, found if symptoms else [], "" if outcome.struck else why_not(plan, outcome))

        until = progress.begun + self._real_s
        self._pool.limit(lambda: time.monotonic() <= until)
        steps = self._project.steps
        asked = [
            self._pool.ask(steps, plan, later=True, then=lambda outcome, plan=plan: judge(plan, outcome))  # type: ignore[misc]
            for plan in self.plans
        ]
        for plan, one in zip(self.plans, asked, strict=True):
            try:
                verdict = self._pool.result(one)
            except NotBegun:
                return
            except LostTrial as error:
                self.coverage.lost.append((plan, str(error)))
                continue
            assert isinstance(verdict, _Verdict)
            if not verdict.struck:
                self.coverage.missed.append((plan, verdict.why_not))
            finding = self._consider(reference, plan, verdict.symptoms) if verdict.symptoms else None
            if finding is not None:
                yield finding

    def lasting(self, plan: Plan) -> Plan:
        """As long as the project says."""
        lasts = self._project.lasts_s
        return tuple(replace(one, seconds=lasts[one.what]) if one.what in lasts else one for one in plan)

    def _consider(self, reference: Reference, plan: Plan, symptoms: list[Symptom]) -> Finding | None:
        signatures = {each.signature for each in oracles.bugs(symptoms)}
        for known in self.findings:
            if signatures <= {each.signature for each in known.symptoms} and set(_kinds(known.plan)) <= set(
                _kinds(plan)
            ):
                known.alike.append(plan)
                return None
        steps = self._project.steps
        number = len(self.findings) + 1
        self.progress.doing = f"finding-{number} is made smaller and repeated"
        try:
            if not findings.shows(self, reference, steps, plan, symptoms, self._retries):
                return None  # once, and not again: the controller's own timing
            finding = findings.examine(
                self, steps, plan, symptoms, number, self._out, self._repetitions, shrink=self._shrink
            )
        except LostTrial as error:
            self.coverage.lost.append((plan, str(error)))
            return None
        except KeyboardInterrupt:  # it is kept as it is known
            folder = self._out / f"finding-{number}" / "run"
            folder.parent.mkdir(parents=True, exist_ok=True)
            self.findings.append(Finding(number, plan, steps, symptoms, folder))
            raise
        finally:
            self.progress.doing = ""
        self.findings.append(finding)
        self.progress.found += 1
        self._on_progress(self.progress)
        return finding

    def _note_costs(self, plan: Plan, costs: Sequence[Symptom]) -> None:
        for cost in costs:
            place = cost.signature, tuple(_kinds(plan))
            self.costs.setdefault(place, (cost, []))[1].append(plan)

    def again(self, plan: Plan, steps: Sequence[Step], times: int) -> list[tuple[bool, list[Symptom]]]:
        """What goes wrong in each of so many trials with a plan, and whether the plan came about. Raises KemuError
        where it cannot."""
        reference = self.reference(steps)
        planning.check(plan, reference.outcomes[0])
        return [(one.struck, reference.symptoms(one)) for one in self._pool.trials(steps, plan, times)]

    def trial(self, steps: Sequence[Step], plan: Plan) -> Outcome:
        return self._pool.trial(steps, plan)

    def trials(self, steps: Sequence[Step], plan: Plan, times: int) -> Iterator[Outcome]:
        """So many, side by side."""
        return self._pool.trials(steps, plan, times)


def _kinds(plan: Plan) -> list[str]:
    return [one.what for one in plan]
