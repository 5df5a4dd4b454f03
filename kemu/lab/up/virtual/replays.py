"""Repeats a run in virtual time that had clients, from its record: the same inputs at the same moments.

:mod:`kemu.lab.scenario.playing.runner` plays what :func:`world` makes as it plays any other run.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kemu.errors import SimulationError
from kemu.lab.scenario.scenarios import Scenario
from kemu.lab.up import clusters
from kemu.lab.up.virtual.inputs import Inputs
from kemu.lab.up.virtual.worlds import Deaf, World
from kemu.runtime.runlog import folders


class RecordEnds(SimulationError):
    """The record has no more, though the run went on: its process was killed."""


def setting(folder: Path, scenario: Scenario) -> tuple[Scenario, Mapping[str, Any]]:
    """For :func:`kemu.lab.scenario.playing.replaying.replays.replay`: a run that had clients gets them again."""
    if not (folder / folders.INPUTS_FILE).is_file():
        return scenario, {}
    made = world(Inputs(folder))
    return clusters.completed(scenario), {"drive": made.main, "loop": made.loop}


def world(inputs: Inputs) -> World:
    """One in which these come from outside."""
    made = World()
    made.served_at = inputs.served_at
    made.loop.outside = lambda: _repeat(made, inputs)
    return made


def _repeat(made: World, inputs: Inputs) -> None:
    loop = made.loop
    loop.go(lambda _: not made.stands)
    for batch in inputs:
        at_ns = made.loop_ns(batch.at_ns)
        loop.go(lambda next_ns, at_ns=at_ns: next_ns is not None and next_ns <= at_ns)  # type: ignore[misc]
        loop.pass_to(at_ns)
        made.take([(given, Deaf()) for given in batch.inputs])
        if batch.inputs[-1][0] == "end":
            loop.go(lambda _: True)
            return
    raise RecordEnds("the record of what came from outside ends before the run does")
