"""What one pod costs on its way to Running, counted and not timed: the same figures on every machine.

Pods of one burst share messages, pods that come one by one do not: a setting for each. ``steps`` are callbacks of the
event loop; ``frames`` are those of the run log; the others are those of :mod:`kemu.lab.bench.counters`. All are counted
from the moment in which the clock starts until the last pod runs.
"""

from __future__ import annotations

import sys
from typing import Any

from kemu.lab.bench.clusters.throughput import scenario_text
from kemu.lab.bench.counters import Counts
from kemu.lab.scenario.loading import loader
from kemu.lab.scenario.playing import plays
from kemu.lab.scenario.playing.heartbeats import Heartbeats
from kemu.runtime.env import SECOND_NS
from kemu.runtime.runlog.events import Transaction
from kemu.runtime.sim.simulation import SimRuntime

FIGURES = (
    "functions",
    "checks",
    "parses",
    "serialisations",
    "futures",
    "tasks",
    "steps",
    "messages",
    "calls",
    "transactions",
    "frames",
)


async def _drive(runtime: SimRuntime, text: str, counts: Counts) -> None:
    scenario = loader.loads(text)
    await plays.launch(runtime, scenario, Heartbeats(scenario, "sim"))
    steps = runtime.loop.steps
    counts.kinds.clear()
    counts.count_futures(runtime.loop)
    before = sys.getprofile()
    sys.setprofile(counts.profile)
    try:
        await runtime.begin()
        await runtime.run_until(3600 * SECOND_NS, stop=counts.stop)
    finally:
        sys.setprofile(before)
    counts.counts["steps"] = runtime.loop.steps - steps
    counts.counts["transactions"] = counts.kinds[Transaction.KIND]
    counts.counts["frames"] = counts.kinds.total()
    await runtime.shutdown()


def work(arrivals: str, nodes: int, pods: int) -> dict[str, Any]:
    """For each pod. ``arrivals``: ``burst``, all pods at once; ``apart``, one every 100 ms."""
    counts = Counts(pods)
    runtime = SimRuntime(1, counts)
    every = "100ms" if arrivals == "apart" else ""
    runtime.run(_drive(runtime, scenario_text(nodes, pods, every=every), counts))
    return {figure: round(counts.counts[figure] / pods, 2) for figure in FIGURES}
