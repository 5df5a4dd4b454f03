"""What an idle node keeps in memory, counted: it must not grow unnoticed."""

from __future__ import annotations

import gc
import sys

import pytest

from kemu.emulated.objects.wire import shared_objects
from kemu.lab.bench.clusters.idles import scenario_text
from kemu.lab.scenario.loading import loader
from kemu.lab.scenario.playing import plays
from kemu.lab.scenario.playing.heartbeats import Heartbeats
from kemu.runtime.env import SECOND_NS
from kemu.runtime.runlog.frames import Digester
from kemu.runtime.sim.simulation import SimRuntime

MOST_OBJECTS, MOST_BYTES = 193, 20_900
"""Of those that Python's garbage collector knows: not strings, bytes and messages."""


def kept(nodes: int) -> tuple[int, int]:
    found = (0, 0)

    async def drive(runtime: SimRuntime) -> None:
        nonlocal found
        scenario = loader.loads(scenario_text(nodes, 1, "standing"))
        await plays.launch(runtime, scenario, Heartbeats(scenario, "sim"))
        await runtime.begin()
        await runtime.run_until(SECOND_NS)
        shared_objects.OBJECTS.clear()
        gc.unfreeze()
        gc.collect()
        objects = gc.get_objects()
        found = len(objects), sum(map(sys.getsizeof, objects))
        await runtime.shutdown()

    runtime = SimRuntime(1, Digester().append)
    runtime.run(drive(runtime))
    return found


def test_an_idle_node_keeps_no_more_than_it_did(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_objects.OBJECTS, "checks", False)
    kept(5)  # what is made once
    few, many = kept(20), kept(60)
    objects, size = ((after - before) / 40 for before, after in zip(few, many, strict=True))
    assert MOST_OBJECTS * 0.9 < objects < MOST_OBJECTS
    assert MOST_BYTES * 0.9 < size < MOST_BYTES
