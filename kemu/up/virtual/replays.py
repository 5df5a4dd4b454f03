"""Repeats a run in virtual time that had clients, from its record: the same inputs at the same moments."""

from __future__ import annotations

from collections.abc import Iterable

from kemu.runtime.env import LogSink
from kemu.scenario.playing import judging
from kemu.scenario.scenarios import Scenario
from kemu.up.virtual.inputs import Batch
from kemu.up.virtual.worlds import Deaf, World


def replay(scenario: Scenario, batches: Iterable[Batch], sink: LogSink) -> judging.End | None:
    """Returns how the run ended; None: the record ends before it. Raises what broke the run."""
    world = World(scenario, sink)
    world.begin()
    try:
        world.loop.go(lambda _: not world.stands)
        for batch in batches:
            at_ns = world.loop_ns(batch.at_ns)
            world.loop.go(lambda next_ns, at_ns=at_ns: next_ns is not None and next_ns <= at_ns)  # type: ignore[misc]
            world.loop.pass_to(at_ns)
            world.take([(given, Deaf()) for given in batch.inputs])
            if batch.inputs[-1][0] == "end":
                world.loop.go(lambda _: True)
        return world.end
    finally:
        world.loop.end()
