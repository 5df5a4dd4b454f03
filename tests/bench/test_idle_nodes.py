"""What an idle node keeps in memory, counted: it must not grow unnoticed."""

from __future__ import annotations

import gc
import sys

import pytest

from kemu.emulated.kubelet.kubelet import Kubelet
from kemu.emulated.objects.wire import shared_objects
from kemu.lab.bench.clusters.idles import scenario_text
from kemu.lab.scenario.loading import loader
from kemu.lab.scenario.playing import plays
from kemu.lab.scenario.playing.heartbeats import Heartbeats
from kemu.runtime.env import SECOND_NS
from kemu.runtime.runlog.frames import Digester
from kemu.runtime.sim.simulation import SimRuntime

MOST_OBJECTS, MOST_BYTES = 187, 20_500
"""Of those that Python's garbage collector knows: not strings, bytes and messages."""
MOST_PARTS, MOST_OF_PARTS = 23, 1_500
"""The same of what a kubelet builds for its first pod."""


def counted() -> tuple[int, int]:
    gc.collect()
    objects = gc.get_objects()
    return len(objects), sum(map(sys.getsizeof, objects))


def kept(nodes: int) -> tuple[tuple[int, int], tuple[int, int]]:
    """Of idle nodes, and after the kubelets have built what they need for a pod."""
    found = ((0, 0), (0, 0))

    async def drive(runtime: SimRuntime) -> None:
        nonlocal found
        scenario = loader.loads(scenario_text(nodes, 1, "standing"))
        await plays.launch(runtime, scenario, Heartbeats(scenario, "sim"))
        await runtime.begin()
        await runtime.run_until(SECOND_NS)
        shared_objects.OBJECTS.clear()
        gc.unfreeze()
        idle = counted()
        for one in [one for one in gc.get_objects() if isinstance(one, Kubelet)]:
            one.demand()
        found = idle, counted()
        await runtime.shutdown()

    runtime = SimRuntime(1, Digester().append)
    runtime.run(drive(runtime))
    return found


def test_an_idle_node_keeps_no_more_than_it_did(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_objects.OBJECTS, "checks", False)
    kept(5)  # what is made once
    (few, _), (many, _), (again, _) = kept(20), kept(60), kept(20)
    while few != again:  # what other tests left behind goes at a time of its own
        few, (many, _), (again, _) = again, kept(60), kept(20)
    objects, size = ((after - before) / 40 for before, after in zip(few, many, strict=True))
    assert MOST_OBJECTS * 0.9 < objects < MOST_OBJECTS
    assert MOST_BYTES * 0.9 < size < MOST_BYTES


def test_a_kubelet_builds_no_more_for_its_first_pod_than_it_did(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_objects.OBJECTS, "checks", False)
    kept(5)  # what is made once
    idle, busy = kept(40)
    objects, size = ((after - before) / 40 for before, after in zip(idle, busy, strict=True))
    assert MOST_PARTS * 0.9 < objects < MOST_PARTS
    assert MOST_OF_PARTS * 0.9 < size < MOST_OF_PARTS
