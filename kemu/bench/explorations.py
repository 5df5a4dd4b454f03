"""How many runs of a small race a core carries out in a second, as a worker of ``kemu explore`` does.

Two schedulers that do not know of each other bring ten pods to three nodes of four CPUs. ``steered``: a chooser decides
about every message, as strategies do that search for interleavings; the scenario has the usual constant latencies.
``drawn``: latencies have a distribution and every run another seed.
"""

from __future__ import annotations

import time
from typing import Any

from kemu.exploration import runs
from kemu.exploration.plans import ChooserSpec, Plan
from kemu.exploration.processes import worker
from kemu.exploration.runs import Task
from kemu.exploration.sources import Source
from kemu.runtime import random_streams
from kemu.runtime.sim.steering.messages import Message
from kemu.scenario.loading import loader
from kemu.scenario.playing import judging, plays

WARM_UP = 5

_DRAWN = "{apiLatency: {uniform: {min: 500us, max: 2ms}}, watchLatency: {uniform: {min: 1ms, max: 20ms}}}"


def scenario_text(nodes: int, pods: int, latencies: str) -> str:
    timing = f"timing: {_DRAWN}" if latencies == "drawn" else ""
    workloads = "".join(
        f"""
    - name: {name}
      start: 1s
      arrivals: {{every: 100ms, count: {count}}}
      pods: {{spec: {{schedulerName: {name}, containers: [{{name: main, resources: {{requests: {{cpu: "1"}}}}}}]}}}}"""
        for name, count in (("red", pods - pods // 2), ("blue", pods // 2))
    )
    return f"""
apiVersion: kemu.dev/v1
kind: Scenario
metadata: {{name: race}}
spec:
  duration: 1m
  nodes:
    - {{namePrefix: node-, count: {nodes}, allocatable: {{cpu: "4", memory: 16Gi, pods: "110"}}}}
  schedulers: [{{name: red}}, {{name: blue}}]
  {timing}
  workloads:{workloads}
  expect:
    - {{check: no-node-overcommitted, holds: true}}
"""


class Uniform:
    """Keeps every message back, for up to 10 ms."""

    def __init__(self, seed: int) -> None:
        self._random = random_streams.random_stream(seed, "bench")

    def delay_ns(self, message: Message) -> int:
        return int(self._random.random() * 10_000_000)


class _Parts:
    """CPU seconds by part."""

    def __init__(self) -> None:
        self.launch = self.loop = self.judging = 0.0
        start, play, conclude = plays.start, plays.play, judging.Judge.conclude

        async def timed_start(*arguments: Any) -> Any:
            begun = time.process_time()
            found = await start(*arguments)
            self.launch += time.process_time() - begun
            return found

        async def timed_play(*arguments: Any) -> Any:
            begun = time.process_time()
            found = await play(*arguments)
            self.loop += time.process_time() - begun
            return found

        def timed_conclude(judge: judging.Judge, end: judging.End) -> Any:
            begun = time.process_time()
            found = conclude(judge, end)
            self.judging += time.process_time() - begun
            return found

        plays.start, plays.play = timed_start, timed_play  # type: ignore[assignment]
        judging.Judge.conclude = timed_conclude  # type: ignore[method-assign,assignment]


def explore(nodes: int, pods: int, latencies: str, count: int = 150) -> dict[str, Any]:
    """CPU milliseconds of each run, and where they go. What the checks do with each event as it comes counts as
    ``loop``."""
    source = Source.of(loader.loads(scenario_text(nodes, pods, latencies)))
    collector = worker.Collector()

    def one(number: int) -> None:
        chooser = None
        if latencies == "steered":
            chooser = ChooserSpec("kemu.bench.explorations:Uniform", {"seed": number})
        record = runs.carry_out(source, Task(number, Plan(seed=number, chooser=chooser)))
        if record.verdict == "unknown":
            raise SystemExit("a run judged nothing")
        collector.after_a_run()

    for number in range(WARM_UP):
        one(number)
    parts = _Parts()
    taken = []
    for number in range(count):
        begun = time.process_time()
        one(number)
        taken.append(time.process_time() - begun)
    total = sum(taken)
    taken.sort()

    def milliseconds(seconds: float) -> float:
        return round(seconds / count * 1e3, 2)

    return {
        "runs_per_cpu_s": round(count / total, 1),
        "fastest_tenth_per_cpu_s": round(1 / taken[count // 10], 1),
        "launch_ms": milliseconds(parts.launch),
        "loop_ms": milliseconds(parts.loop),
        "judging_ms": milliseconds(parts.judging),
        "rest_ms": milliseconds(total - parts.launch - parts.loop - parts.judging),
    }


def settings() -> tuple[dict[str, Any], ...]:
    return tuple({"nodes": 3, "pods": 10, "latencies": latencies} for latencies in ("steered", "drawn"))
