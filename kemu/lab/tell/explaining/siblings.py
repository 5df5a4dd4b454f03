"""The passing sibling of a failing run: the same run without one hold, and where the two part.

Where the scenario has no hold, it is the run without one switched-on bug or ablation, or without one fault.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass

from kemu.lab.exploration import causes
from kemu.lab.exploration.executions import Execution, Failure
from kemu.lab.scenario.expectations import CheckIs
from kemu.lab.scenario.scenarios import Scenario
from kemu.lab.tell.explaining import recordings
from kemu.lab.tell.explaining.recordings import Recording
from kemu.runtime.runlog.frames import Entry


@dataclass(frozen=True)
class Sibling:
    """A run that differs in one thing and does not fail."""

    kind: str
    """The kind of what it lacks: ``hold ablation bug fault``."""
    name: str
    """The place of the hold, from 0; the name of the ablation or bug, the id of the fault."""
    without: str
    """What it lacks, in words: ``hold 1``, ``the fault cut-off``."""
    recording: Recording
    differs: tuple[int, int] | None
    """The places of the first events that differ: in the log of the failing run, and in that of the sibling."""


def find(failing: Recording, failure: Failure) -> Sibling | None:
    """The first one that passes; None: there is none."""
    for kind, name, without, scenario in _candidates(failing.scenario):
        recording = recordings.record(scenario)
        if not _fails_too(recording.execution, failing.execution, failure):
            differs = first_difference(failing.events, recording.events)
            return Sibling(kind, name, without, recording, differs)
    return None


def _fails_too(other: Execution, execution: Execution, failure: Failure) -> bool:
    """Whether that check or expectation fails in the other run, too, for whatever cause."""

    def is_broken(one: Execution) -> bool:
        return any(check.id == failure.id and check.holds is False for check in one.judged.checks)

    # An expectation may have the name of its check, and expect it to fail.
    return is_broken(other) if is_broken(execution) else any(one.id == failure.id for one in other.failures)


def broken(execution: Execution) -> tuple[Failure, ...]:
    """All that fails in a run, then the checks that the scenario expects to fail: they want an explanation, too."""
    found = execution.failures
    known = {one.id for one in found}
    names = causes.Names(execution.scenario.resolved, execution.history)
    expected = {
        one.subject.check for one in execution.scenario.expectations if isinstance(one.subject, CheckIs)
    }  # fmt: skip
    return found + tuple(
        Failure(check.id, check.detail, causes.of_check(check.detail, names))
        for check in execution.judged.checks
        if check.holds is False and check.id not in known and check.id in expected
    )


def _candidates(scenario: Scenario) -> Iterator[tuple[str, str, str, Scenario]]:
    holds = scenario.holds
    for index in range(len(holds)):
        words = "the hold" if len(holds) == 1 else f"hold {index + 1}"
        yield "hold", str(index), words, dataclasses.replace(scenario, holds=(*holds[:index], *holds[index + 1 :]))
    if holds:
        return
    for name in scenario.ablate:
        rest = tuple(one for one in scenario.ablate if one != name)
        yield "ablation", name, f"the ablation of {name}", dataclasses.replace(scenario, ablate=rest)
    for fault in scenario.chaos:
        others = tuple(one for one in scenario.chaos if one is not fault)
        yield "fault", fault.id, f"the fault {fault.id}", dataclasses.replace(scenario, chaos=others)
    for name in scenario.bugs:
        rest = tuple(one for one in scenario.bugs if one != name)
        yield "bug", name, f"the bug {name}", dataclasses.replace(scenario, bugs=rest)


def first_difference(failing: list[Entry], passing: list[Entry]) -> tuple[int, int] | None:
    """Holds say nothing about the run itself, so their events do not count. None: no event differs."""
    ours, theirs = _counted(failing), _counted(passing)
    for (index, event), (other, their) in zip(ours, theirs, strict=False):
        if event != their:
            return index, other
    if len(ours) == len(theirs):
        return None
    # One log is the beginning of the other.
    shorter = min(len(ours), len(theirs))
    if len(ours) > shorter:
        return ours[shorter][0], len(passing)
    return len(failing), theirs[shorter][0]


def _counted(events: list[Entry]) -> list[tuple[int, Entry]]:
    return [(index, event) for index, event in enumerate(events) if not event[2].startswith("hold.")]
