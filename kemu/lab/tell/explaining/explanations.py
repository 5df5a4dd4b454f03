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
from kemu.lab.exploration.executions import Failure
from kemu.lab.scenario.scenarios import Scenario
from kemu.lab.tell.explaining import chains, diagrams, differences, mentions, recordings, siblings
from kemu.lab.tell.explaining.chains import Chain
from kemu.lab.tell.explaining.diagrams import Diagram
from kemu.lab.tell.explaining.differences import Difference
from kemu.lab.tell.explaining.siblings import Sibling
from kemu.lab.tell.explaining.tellings import Telling


@dataclass(frozen=True)
class Explanation:
    """Explanation of one failure of one run."""

    scenario: Scenario
    failure: Failure
    chain: Chain
    telling: Telling
    """The failing run."""
    sibling: Sibling | None
    other: Telling | None
    """The passing run."""
    difference: Difference | None
    """The first event that differs between them."""

    @cached_property
    def diagrams(self) -> tuple[Diagram, Diagram | None]:
        """The picture of this run, and that of the passing one."""
        return diagrams.of(self.chain, self.telling, self.other)


def explain(scenario: Scenario, failure: str | Callable[[Failure], bool] = "") -> Explanation:
    """``failure``: the check or expectation to explain; by default the first that fails.

    Raises KemuError where the run does not fail, or not in this way.
    """
    recording = recordings.record(scenario)
    failures = siblings.broken(recording.execution)
    if not failures:
        raise KemuError(f"{scenario.name}: nothing to explain: the verdict is {recording.execution.outcome!r}")
    telling = Telling(recording)

    def is_wanted(one: Failure) -> bool:
        return failure(one) if callable(failure) else failure in ("", one.id, mentions.check_of(one, telling))

    chosen = next((one for one in failures if is_wanted(one)), None)
    if chosen is None:
        names = ", ".join(one.id for one in failures)
        raise KemuError(f"{scenario.name}: {failure} does not fail in this run; what fails is {names}")
    sibling = siblings.find(recording, chosen)
    other = Telling(sibling.recording) if sibling is not None else None
    difference = differences.first(telling, other) if other is not None else None
    chain = chains.of(chosen, telling, sibling, other, difference)
    return Explanation(scenario, chosen, chain, telling, sibling, other, difference)
