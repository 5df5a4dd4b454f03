"""Replicas of one scheduler that race for the same pods: what an attempt costs, most of which end in a refused binding.

Without an election every replica takes every pod, and the API server lets one of them bind it. A whole cluster in sim,
with kubelets, run log and checks, and the latencies of a real control plane. All figures but CPU time and memory are
the same on every machine with the same version of Python.

Meanwhile kubelets renew their leases: the more nodes, the more for each attempt. What that costs tells a twin of the
run, as long and without pods.
"""

from __future__ import annotations

import asyncio
import cProfile
import dataclasses
import time
from collections.abc import Callable, Mapping
from typing import Any

from kemu.lab.bench.clusters.large_clusters import resident_mib
from kemu.lab.bench.clusters.throughput import scenario_text
from kemu.lab.checks.registry import Judge
from kemu.lab.scenario.loading import loader
from kemu.lab.scenario.playing import plays
from kemu.lab.scenario.playing.heartbeats import Heartbeats
from kemu.lab.scenario.scenarios import Scenario
from kemu.runtime import garbage
from kemu.runtime.env import SECOND_NS
from kemu.runtime.runlog.events import PodAttempted, PodBound, PodRunning
from kemu.runtime.runlog.frames import Digester
from kemu.runtime.sim.simulation import SimRuntime

EVERY_MS = 20
"""From one pod to the next, for eight schedulers: they keep up. More of them get more time."""


class _Race:
    """A sink: counts attempts and refused bindings until the last pod runs."""

    def __init__(self, pods: int, *, is_judged: bool) -> None:
        self.attempts = self.refused = 0
        self.cpu_s = 0.0
        """From the start of the clock until the last pod runs."""
        self.lasted_ns = 0
        """The same in virtual time."""
        self.launched_mib = 0.0
        """Memory that the process has gained by the launch."""
        self.stop = asyncio.Event()
        self._append: Callable[..., None] = Digester().append
        self._judge: Callable[..., None] | None = Judge().feed if is_judged else None
        self._left = pods

    def __call__(self, time_ns: int, actor: str, kind: str, data: Mapping[str, Any]) -> None:
        self._append(time_ns, actor, kind, data)
        if self._judge is not None:
            self._judge(time_ns, actor, kind, data)
        if kind == PodAttempted.KIND:
            self.attempts += 1
        elif isinstance(data, PodBound):
            self.refused += not data.ok
        elif kind == PodRunning.KIND:
            self._left -= 1
            if self._left == 0:
                self.stop.set()


async def _drive(
    runtime: SimRuntime, scenario: Scenario, race: _Race, profile: cProfile.Profile | None, most_ns: int
) -> None:
    before = resident_mib()
    await plays.launch(runtime, scenario, Heartbeats(scenario, "sim"))
    race.launched_mib = resident_mib() - before
    begun = time.process_time()
    if profile is not None:
        profile.enable()
    await runtime.begin()
    await runtime.run_until(most_ns, stop=race.stop)
    if profile is not None:
        profile.disable()
    race.cpu_s = time.process_time() - begun
    race.lasted_ns = runtime.clock.now_ns()
    await runtime.shutdown()


def _race(
    nodes: int,
    pods: int,
    schedulers: int,
    profile: cProfile.Profile | None = None,
    *,
    is_judged: bool = True,
    idle_ns: int = 0,
) -> _Race:
    """``idle_ns``: so long, and no pods come."""
    garbage.collect_leavings()
    race = _Race(pods, is_judged=is_judged)
    every = f"{EVERY_MS * schedulers // 8 or 1}ms"
    scenario = loader.loads(scenario_text(nodes, pods, every=every, replicas=schedulers, timing="realistic"))
    if idle_ns:
        scenario = dataclasses.replace(scenario, workloads=())
    runtime = SimRuntime(1, race, scenario.timing)
    runtime.run(_drive(runtime, scenario, race, profile, idle_ns or 3600 * SECOND_NS))
    return race


def racing(nodes: int, pods: int, schedulers: int) -> dict[str, Any]:
    """The same race three times: timed, then with its calls of Python functions counted, without the checks and with
    them; and twice without pods. ``heartbeats_ms`` and ``heartbeats``: the part of both that the leases take."""
    race = _race(nodes, pods, schedulers)
    idle = _race(nodes, pods, schedulers, idle_ns=race.lasted_ns)
    calls: dict[tuple[bool, int], int] = {}
    for is_judged, idle_ns in ((False, 0), (True, 0), (False, race.lasted_ns)):
        profile = cProfile.Profile(builtins=False)
        counted = _race(nodes, pods, schedulers, profile, is_judged=is_judged, idle_ns=idle_ns)
        assert idle_ns or (counted.attempts, counted.refused) == (race.attempts, race.refused)
        calls[is_judged, idle_ns] = sum(entry.callcount for entry in profile.getstats())
    return {
        "attempts": race.attempts,
        "refused": race.refused,
        "cpu_ms_per_attempt": round(race.cpu_s / race.attempts * 1e3, 3),
        "heartbeats_ms": round(idle.cpu_s / race.attempts * 1e3, 3),
        "calls_per_attempt": round(calls[False, 0] / race.attempts, 1),
        "heartbeats": round(calls[False, race.lasted_ns] / race.attempts, 1),
        "checks_per_attempt": round((calls[True, 0] - calls[False, 0]) / race.attempts, 1),
        "launched_mib": round(race.launched_mib, 1),
    }


def settings() -> tuple[Mapping[str, Any], ...]:
    return (
        {"nodes": 500, "pods": 500, "schedulers": 8},
        {"nodes": 2000, "pods": 2000, "schedulers": 8},
        {"nodes": 1000, "pods": 60, "schedulers": 8},
        {"nodes": 1000, "pods": 60, "schedulers": 64},
    )
