"""Explains why a run fails.

    explanation = explain(scenario)
    print(texts.told(explanation))

A run is explained by running it again, in memory and with all of its messages, and beside it the same run without one
hold, which passes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

from kemu.errors import KemuError
from kemu.exploration.executions import Failure
from kemu.exploration.explaining import chains, diagrams, differences, recordings, siblings
from kemu.exploration.explaining.chains import Chain
from kemu.exploration.explaining.diagrams import Diagram
from kemu.exploration.explaining.siblings import Sibling
from kemu.exploration.explaining.tellings import Telling
from kemu.scenario.scenarios import Scenario


@dataclass(frozen=True)
class Explanation:
    """Of one failure of one run."""

    scenario: Scenario
    failure: Failure
    chain: Chain
    telling: Telling
    """The failing run."""
    sibling: Sibling | None
    other: Telling | None
    """The passing run."""

    @cached_property
    def diagrams(self) -> tuple[Diagram, Diagram | None]:
        """The picture of this run, and that of the passing one."""
        return diagrams.of(self.chain, self.telling, self.other)

    @cached_property
    def difference(self) -> str:
        """The first event that differs, in a sentence; empty without a passing run."""
        if self.sibling is None or self.other is None or self.sibling.differs is None:
            return ""
        return differences.told(self.sibling.differs, self.telling, self.other)


def explain(scenario: Scenario, failure: str | Callable[[Failure], bool] = "") -> Explanation:
    """``failure``: the check or expectation to explain; by default the first that fails.

    Raises KemuError where the run does not fail, or not in this way.
    """
    recording = recordings.record(scenario)
    failures = recording.execution.failures
    if not failures:
        raise KemuError(f"{scenario.name}: nothing to explain: the verdict is {recording.execution.outcome!r}")
    wanted = failure if callable(failure) else (lambda one: failure in ("", one.id))
    chosen = next((one for one in failures if wanted(one)), None)
    if chosen is None:
        names = ", ".join(one.id for one in failures)
        raise KemuError(f"{scenario.name}: {failure} does not fail in this run; what fails is {names}")
    telling = Telling(recording)
    sibling = siblings.find(recording, chosen)
    other = Telling(sibling.recording) if sibling is not None else None
    return Explanation(scenario, chosen, chains.of(chosen, telling, other), telling, sibling, other)
