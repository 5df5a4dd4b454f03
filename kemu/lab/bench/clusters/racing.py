"""Replicas of one scheduler that race for the same pods: what an attempt costs, most of which end in a refused binding.

Without an election every replica takes every pod, and the API server lets one of them bind it. A whole cluster in sim,
with kubelets and the run log, and the latencies of a real control plane. All figures but the CPU time are the same on
every machine with the same version of Python.
"""

from __future__ import annotations

import asyncio
import cProfile
import time
from collections.abc import Callable, Mapping
from typing import Any

from kemu.lab.bench.clusters.throughput import scenario_text
from kemu.lab.scenario.loading import loader
from kemu.lab.scenario.playing import plays
from kemu.lab.scenario.playing.heartbeats import Heartbeats
from kemu.runtime.env import SECOND_NS
from kemu.runtime.runlog.events import PodAttempted, PodBound, PodRunning
from kemu.runtime.runlog.frames import Digester
from kemu.runtime.sim.simulation import SimRuntime

REPLICAS = 8
EVERY = "20ms"
"""From one pod to the next: the replicas keep up."""


class _Race:
    """A sink: counts attempts and refused bindings until the last pod runs."""

    def __init__(self, pods: int) -> None:
        self.attempts = self.refused = 0
        self.stop = asyncio.Event()
        self._append: Callable[..., None] = Digester().append
        self._left = pods

    def __call__(self, time_ns: int, actor: str, kind: str, data: Mapping[str, Any]) -> None:
        self._append(time_ns, actor, kind, data)
        if kind == PodAttempted.KIND:
            self.attempts += 1
        elif isinstance(data, PodBound):
            self.refused += not data.ok
        elif kind == PodRunning.KIND:
            self._left -= 1
            if self._left == 0:
                self.stop.set()


async def _drive(runtime: SimRuntime, text: str, race: _Race, profile: cProfile.Profile | None) -> float:
    """Returns the CPU time, in seconds, from the start of the clock until the last pod runs."""
    scenario = loader.loads(text)
    await plays.launch(runtime, scenario, Heartbeats(scenario, "sim"))
    begun = time.process_time()
    if profile is not None:
        profile.enable()
    await runtime.begin()
    await runtime.run_until(3600 * SECOND_NS, stop=race.stop)
    if profile is not None:
        profile.disable()
    taken = time.process_time() - begun
    await runtime.shutdown()
    return taken


def _race(nodes: int, pods: int, profile: cProfile.Profile | None = None) -> tuple[_Race, float]:
    race = _Race(pods)
    text = scenario_text(nodes, pods, every=EVERY, replicas=REPLICAS, timing="realistic")
    runtime = SimRuntime(1, race, loader.loads(text).timing)
    return race, runtime.run(_drive(runtime, text, race, profile))


def racing(nodes: int, pods: int) -> dict[str, Any]:
    """The same race twice: timed, then with its calls of Python functions counted."""
    race, taken_s = _race(nodes, pods)
    profile = cProfile.Profile(builtins=False)
    counted, _ = _race(nodes, pods, profile)
    assert (counted.attempts, counted.refused) == (race.attempts, race.refused)
    calls = sum(entry.callcount for entry in profile.getstats())
    return {
        "attempts": race.attempts,
        "refused": race.refused,
        "cpu_us_per_attempt": round(taken_s / race.attempts * 1e6),
        "calls_per_attempt": round(calls / race.attempts, 1),
    }


def settings() -> tuple[Mapping[str, Any], ...]:
    return {"nodes": 500, "pods": 500}, {"nodes": 2000, "pods": 2000}
