"""What a test runs: a scenario, or a program in virtual time. One run of either is a seed, settings and who steers it.

Neighbours: :mod:`repetitions` decides which runs; :mod:`pytest_items` makes runnables of tests.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from kemu.doors.api import reports
from kemu.doors.api.runs import Run, of_execution
from kemu.doors.api.simulations import Simulation, TooLong
from kemu.doors.testing import program_strategies
from kemu.doors.testing.tapes import Tape, digest
from kemu.errors import KemuError
from kemu.lab.exploration import campaigns, executions, workers
from kemu.lab.exploration.executions import UNKNOWN, Failure
from kemu.lab.exploration.plans import Plan, Record, Strategy
from kemu.lab.exploration.shrinking import shrinker, subsets
from kemu.lab.exploration.sources import Source
from kemu.lab.exploration.strategies import registry
from kemu.lab.scenario import forms
from kemu.lab.scenario.scenarios import Scenario
from kemu.lab.tell.explaining import explanations
from kemu.lab.tell.explaining.drawings import texts
from kemu.runtime.env import SECOND_NS
from kemu.runtime.holds import Hold


@dataclass(frozen=True)
class Outcome:
    """What came of one run."""

    seed: int
    key: tuple[str, str] | None = None
    """What failed, and for which cause: equal failures have equal keys. None: nothing did."""
    is_judged: bool = True
    """False: an expectation could not be judged."""
    text: str = ""
    """What is to be said of the failure, in :data:`reports.MOST_LINES` lines less a few."""
    error: BaseException | None = None
    """That the test itself raised."""
    failure: Failure | None = None
    """Failure of a check or an expectation; None: it was the test that failed."""
    scenario: Scenario | None = None
    """Scenario of a failure: the scenario that makes the same run."""
    holds: tuple[Hold, ...] = ()
    """Holds of a failure: all with which the same run happens without a chooser."""

    def tape(self, test: str) -> Tape:
        return Tape(test, self.scenario, self.seed, self.holds)


class Runnable(Protocol):
    """Something that can be run again and again."""

    @property
    def inputs(self) -> Mapping[str, str]:
        """Digests of what it runs, by part."""
        ...

    def anew(self, tape: Tape) -> Tape | None:
        """What the tape holds back, with the inputs of today; None: it has none of its own."""
        ...

    def runs(self, count: int, names: Sequence[str], seed: int) -> Iterator[tuple[str, Outcome]]:
        """So many runs, each with the name of the strategy that planned it: the first is the usual one, without any.

        Raises KemuError for a name that no strategy has.
        """
        ...

    def play(self, tape: Tape) -> Outcome:
        """A run that failed before."""
        ...

    def shrink(self, outcome: Outcome) -> tuple[Outcome, int]:
        """The least that fails so, and how many runs that took."""
        ...


def fewest_holds(runnable: Runnable, outcome: Outcome) -> tuple[Outcome, int]:
    """The same failure with as few holds as possible, and how many runs that took."""
    tape, asked = outcome.tape(""), 0

    def fails(holds: Sequence[Hold]) -> Outcome | None:
        nonlocal asked
        if asked >= shrinker.MOST_EXECUTIONS:
            return None
        asked += 1
        found = runnable.play(tape.with_only(holds))
        return found if found.key == outcome.key else None

    def first(candidates: list[list[Hold]]) -> int | None:
        return next((index for index, holds in enumerate(candidates) if fails(holds) is not None), None)

    left = subsets.minimal(outcome.holds, first)
    return fails(left) or outcome, asked


_OF_TAPES = ("seed", "holds")
"""What a tape says itself."""


class RunnableScenario:
    """A scenario without a matrix; and what a test function makes of each of its runs."""

    def __init__(self, scenario: Scenario, look: Callable[[Run], object] | None = None) -> None:
        self.scenario = scenario
        self._source = Source.of(scenario)
        self._look = look

    @property
    def inputs(self) -> Mapping[str, str]:
        spec = self.scenario.resolved.get("spec") or {}
        return {part: digest(value) for part, value in spec.items() if part not in _OF_TAPES}

    def anew(self, tape: Tape) -> Tape | None:
        if tape.scenario is None:
            return None
        plan = Plan(seed=tape.scenario.seed, holds=tape.scenario.holds)
        return replace(tape, scenario=self._source.scenario(plan))

    def runs(self, count: int, names: Sequence[str], seed: int) -> Iterator[tuple[str, Outcome]]:
        yield "", self._run(Plan())
        if count > 1:
            planned = registry.make(names, self._source, seed)
            shown = self._explored(count - 1, planned, seed) if self._look is None else self._shown(count - 1, planned)
            yield from shown

    def _explored(self, count: int, planned: Sequence[Strategy], seed: int) -> Iterator[tuple[str, Outcome]]:
        """As ``kemu explore`` does, in this process: strategies learn from earlier runs."""
        settings = campaigns.Settings(seed=seed, runs=count, canary=False)
        for record in campaigns.Campaign(self.scenario, planned, settings, workers.Inline()).go():
            if record.failures:
                yield record.strategy, self._run(record.plan)
            else:
                yield record.strategy, Outcome(record.seed or self.scenario.seed, is_judged=record.verdict != UNKNOWN)

    def _shown(self, count: int, planned: Sequence[Strategy]) -> Iterator[tuple[str, Outcome]]:
        for number in range(count):
            turn, place = divmod(number, len(planned))
            strategy = planned[place]
            yield strategy.name, self._run(strategy.plan(turn, _Nothing()))

    def _run(self, plan: Plan) -> Outcome:
        chooser = None if plan.chooser is None else plan.chooser.make()
        execution = executions.execute(self._source.scenario(plan), chooser=chooser, keep_log=self._look is not None)
        return self._outcome(execution)

    def play(self, tape: Tape) -> Outcome:
        if tape.scenario is None:
            raise KemuError(f"{tape.file} is of a program, and the test runs a scenario")
        return self._outcome(executions.execute(tape.scenario, keep_log=self._look is not None))

    def shrink(self, outcome: Outcome) -> tuple[Outcome, int]:
        assert outcome.scenario is not None
        if outcome.failure is None:
            return fewest_holds(self, outcome)
        found = shrinker.shrink(outcome.scenario, outcome.failure)
        small = self._outcome(executions.execute(found.scenario))
        return replace(small, text=_explained(found.scenario, outcome.failure)), found.executions

    def _outcome(self, execution: executions.Execution) -> Outcome:
        scenario = execution.scenario
        if execution.failures:
            return self._failed(execution, execution.failures[0], self._told(execution))
        if self._look is not None:
            run = of_execution(execution)
            try:
                self._look(run)
            except Exception as error:
                return self._failed(execution, None, "", error)
        unjudged = [judgement for judgement in execution.judged.judgements if judgement.holds is None]
        return Outcome(scenario.seed, is_judged=not unjudged, text=self._told(execution) if unjudged else "")

    def _failed(
        self, execution: executions.Execution, failure: Failure | None, text: str, error: Exception | None = None
    ) -> Outcome:
        holds = (*execution.scenario.holds, *execution.deviations)
        scenario = forms.with_holds(execution.scenario, holds)
        key = (failure.id, failure.cause) if failure is not None else _key_of(error)
        return Outcome(scenario.seed, key, text=text, error=error, failure=failure, scenario=scenario, holds=holds)

    def _told(self, execution: executions.Execution) -> str:
        if execution.error is not None:
            return reports.told(f"the run broke: {execution.error}", (), execution.history, _ROOM)
        run = of_execution(execution)
        unjudged = [finding for finding in run.expectations.values() if finding.holds is None]
        headline = f"{execution.scenario.name} {run.verdict} (seed {run.seed}, {run.virtual_s:g} s)"
        return reports.told(headline, run.failures or unjudged, execution.history, _ROOM)


def _explained(scenario: Scenario, failure: Failure) -> str:
    """Why it fails: the chain of causes, and as much of the picture as there is room for."""
    explanation = texts.told(explanations.explain(scenario, failure.id), _COLUMNS).splitlines()
    if len(explanation) > _ROOM:
        explanation = [*explanation[: _ROOM - 1], "…"]
    return "\n".join(explanation)


@dataclass(frozen=True)
class _Nothing:
    """What strategies know of earlier runs where the test looks at each of them."""

    generation: int = 0
    records: Sequence[Record] = ()


_COLUMNS = 110
_ROOM = reports.MOST_LINES - 4
"""The rest says where the tape is, and how to run it again."""


_MOST_TIMES, _MOST_S = 2, 600.0
"""How long a run may take: so many times what an ordinary one does, and virtual seconds more."""


class RunnableProgram:
    """A coroutine function in virtual time."""

    def __init__(self, main: Callable[[], Coroutine[Any, Any, object]], seed: int) -> None:
        self._main = main
        self._seed = seed

    @property
    def inputs(self) -> Mapping[str, str]:
        function = inspect.unwrap(getattr(self._main, "func", self._main))
        try:
            return {"the test": digest(inspect.getsource(function))}
        except (OSError, TypeError):
            return {}

    def anew(self, tape: Tape) -> Tape | None:
        return None

    def runs(self, count: int, names: Sequence[str], seed: int) -> Iterator[tuple[str, Outcome]]:
        first = Simulation(self._seed, program_strategies.NoDelay() if count > 1 else None)
        yield "", self._simulate(first)
        # Where everything is late, retries may go on for ever.
        limit_s = _MOST_S + _MOST_TIMES * first.loop.now_ns / SECOND_NS
        ordinary = program_strategies.Ordinary(first.steering.sent if first.steering is not None else ())
        portfolio = program_strategies.Portfolio(names, seed, ordinary)
        for number in range(count - 1):
            name, plan = portfolio.plan(number)
            chooser = None if plan.chooser is None else plan.chooser.make()
            own_seed = self._seed if plan.seed is None else plan.seed
            yield name, self._simulate(Simulation(own_seed, chooser, plan.holds or (), limit_s))

    def play(self, tape: Tape) -> Outcome:
        if tape.scenario is not None:
            raise KemuError(f"{tape.file} is of a scenario, and the test runs a program")
        return self._simulate(Simulation(tape.seed, None, tape.holds))

    def shrink(self, outcome: Outcome) -> tuple[Outcome, int]:
        return fewest_holds(self, outcome)

    def _simulate(self, simulation: Simulation) -> Outcome:
        try:
            simulation.run(self._main)
        except TooLong:
            return Outcome(simulation.seed, is_judged=False, text="the test was not over in time")
        except Exception as error:
            return Outcome(simulation.seed, _key_of(error), error=error, holds=simulation.holds)
        return Outcome(simulation.seed)


def _key_of(error: Exception | None) -> tuple[str, str]:
    """Two errors are the same if they have one type, and were raised from one line of the test."""
    assert error is not None
    trace, place = error.__traceback__, ""
    while trace is not None:
        module = str(trace.tb_frame.f_globals.get("__name__", ""))
        if module.partition(".")[0] != "kemu":
            place = f"{module}:{trace.tb_lineno}"
        trace = trace.tb_next
    findings = [line.split(":")[0] for line in str(error).splitlines() if line.strip().startswith("✗")]
    return type(error).__name__, f"{place} {' '.join(findings)}"
