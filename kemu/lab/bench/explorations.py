"""How many runs of a small race a core carries out in a second, as a worker of ``kemu explore`` does; and how much more
a worker of Ray needs for each.

Two schedulers that do not know of each other bring ten pods to three nodes of four CPUs. ``steered``: a chooser decides
about every message, as strategies do that search for interleavings; the scenario has the usual constant latencies.
``drawn``: latencies have a distribution and every run another seed.
"""

from __future__ import annotations

import cProfile
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kemu.lab.exploration import branches, runs
from kemu.lab.exploration.executions import Execution
from kemu.lab.exploration.plans import ChooserSpec, Plan
from kemu.lab.exploration.processes import forks, worker
from kemu.lab.exploration.processes.rays import RayWorkers
from kemu.lab.exploration.results import RunRecord
from kemu.lab.exploration.runs import Task
from kemu.lab.exploration.sources import Source
from kemu.lab.exploration.workers import Executor, Workers
from kemu.lab.scenario.loading import loader
from kemu.lab.scenario.playing import judging, plays
from kemu.runtime import random_streams
from kemu.runtime.sim.steering.messages import Message

WARM_UP = 5
RACE = "race"

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


_Way = Callable[[Source, Task], RunRecord | None]
"""To carry out a run; None: not so."""


class _Explorer:
    """Carries out one run after the other, as a worker does. The first ones find what later ones share."""

    def __init__(self, nodes: int, pods: int, latencies: str) -> None:
        self._source = Source.of(loader.loads(scenario_text(nodes, pods, latencies)))
        self._is_steered = latencies == "steered"
        self._collector = worker.Collector()
        self.garbage_s = 0.0
        """CPU time of its collection."""
        for number in range(WARM_UP):
            self.run(number)

    def run(self, number: int) -> None:
        chooser = ChooserSpec(f"{__name__}:Uniform", {"seed": number}) if self._is_steered else None
        record = self.carry_out(runs.carry_out, Task(number, Plan(seed=number, chooser=chooser)))
        if record is None or record.verdict == "unknown":
            raise SystemExit("a run judged nothing")

    def carry_out(self, how: _Way, task: Task) -> RunRecord | None:
        record = how(self._source, task)
        begun = time.process_time()
        self._collector.after_a_run()
        self.garbage_s += time.process_time() - begun
        return record


def calls(nodes: int, pods: int, latencies: str, count: int = 5) -> float:
    """How many functions written in Python a run calls: the same on every machine with the same version of Python."""
    explorer = _Explorer(nodes, pods, latencies)
    profile = cProfile.Profile(builtins=False)
    profile.enable()
    for number in range(count):
        explorer.run(number)
    profile.disable()
    return round(sum(entry.callcount for entry in profile.getstats()) / count, 1)


def explore(nodes: int, pods: int, latencies: str, count: int = 150) -> dict[str, Any]:
    """CPU milliseconds of each run, and where they go. What the checks do with each event as it comes counts as
    ``loop``. ``calls``: see there."""
    explorer = _Explorer(nodes, pods, latencies)
    called = calls(nodes, pods, latencies)
    parts = _Parts()
    taken = []
    explorer.garbage_s = 0.0
    for number in range(count):
        begun = time.process_time()
        explorer.run(number)
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
        "garbage_ms": milliseconds(explorer.garbage_s),
        "rest_ms": milliseconds(total - parts.launch - parts.loop - parts.judging - explorer.garbage_s),
        "calls": called,
    }


def shared(nodes: int, pods: int = 10, count: int = 20) -> dict[str, Any]:
    """CPU milliseconds of a run of a search, steered and of one seed, with all that forks cost: each set up by itself,
    and all from one set-up, also where a search would not share it. The digests must be equal."""
    explorer = _Explorer(nodes, pods, "steered")
    forks.allow()
    tasks = [Task(n, Plan(chooser=ChooserSpec(f"{__name__}:Uniform", {"seed": n}))) for n in range(count)]
    ways: tuple[_Way, ...] = (runs.carry_out, branches.carried_out)
    digests: list[list[str | None]] = []
    taken_ms = []
    for carry_out in ways:
        begun_s = sum(os.times()[:4])  # with those of children that it has waited for
        usual, branches.LEAST_NODES_OF_A_SEARCH = branches.LEAST_NODES_OF_A_SEARCH, 0
        try:
            records = [explorer.carry_out(carry_out, task) for task in tasks]
        finally:
            branches.LEAST_NODES_OF_A_SEARCH = usual
        digests.append([None if record is None else record.digest for record in records])
        branches.close()  # what children took is known when they have been waited for
        taken_ms.append(round((sum(os.times()[:4]) - begun_s) / count * 1e3, 1))
    if digests[0] != digests[1]:
        raise SystemExit("runs from one set-up differ from those that were set up by themselves")
    alone_ms, shared_ms = taken_ms
    return {"alone_ms": alone_ms, "shared_ms": shared_ms, "ratio": round(alone_ms / shared_ms, 2)}


def search(scenario: str, runs: int, pinned: str = "") -> dict[str, Any]:
    """A whole ``kemu explore`` with one worker, from its start to its end: CPU seconds of all its processes, with the
    ordinary run, the canary, and what they import. ``scenario``: one that comes with kemu, or ``race``, that of
    :func:`explore`; ``pinned``: a value of its matrix."""
    with tempfile.TemporaryDirectory(prefix="kemu-bench-") as folder:
        if scenario == RACE:
            scenario = str(Path(folder) / "race.yaml")
            Path(scenario).write_text(scenario_text(3, 10, "steered"))
        words = ["explore", scenario, "--runs", str(runs), "--jobs", "1", "--no-shrink", "--json"]
        words += ["--out", str(Path(folder) / "out"), *(["--set", pinned] if pinned else [])]
        done = subprocess.run([sys.executable, "-m", "kemu.doors.cli.main", *words], capture_output=True, text=True)
    if done.returncode not in (0, 1):
        raise SystemExit(done.stderr)
    found = json.loads(done.stdout)
    if found["runs"] != runs:
        raise SystemExit(f"only {found['runs']} runs")
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu_s = used.ru_utime + used.ru_stime
    return {
        "failures": len(found["failures"]),
        "cpu_s": round(cpu_s, 2),
        "runs_per_cpu_s": round(runs / cpu_s, 1),
    }


def on_ray(jobs: int, runs: int, rounds: int) -> dict[str, Any]:
    """What processes of this machine, and as many of Ray, do beside their runs: CPU time of the whole process, from its
    first run to its last, in percent of what its runs took. Both are measured in turn, and each against its own runs:
    what else happens on the machine makes all of them slower."""
    source = Source.of(loader.loads(scenario_text(3, 10, "steered")))
    here, there = Spent(), Spent()
    with Workers(jobs) as processes, RayWorkers("local", jobs=jobs) as cluster:
        for number in range(rounds + 1):
            for executor, spent in ((processes, here), (cluster, there)):
                found = spent_by(executor, source, number * runs, runs)
                if number:  # before that they import, and learn how long a run takes
                    spent.add(found)
    return {
        "process_ms": round(1e3 * here.total_s / here.runs, 2),
        "ray_ms": round(1e3 * there.total_s / there.runs, 2),
        "beside_runs_percent": round(here.beside_percent, 1),
        "beside_runs_on_ray_percent": round(there.beside_percent, 1),
        "overhead_percent": round(there.beside_percent - here.beside_percent, 1),
    }


@dataclass
class Spent:
    """CPU time of processes that carry out runs."""

    total_s: float = 0.0
    in_runs_s: float = 0.0
    runs: int = 0

    def add(self, other: Spent) -> None:
        self.total_s += other.total_s
        self.in_runs_s += other.in_runs_s
        self.runs += other.runs

    @property
    def beside_percent(self) -> float:
        return 100 * (self.total_s / self.in_runs_s - 1)


def spent_by(executor: Executor, source: Source, first: int, count: int) -> Spent:
    """From the end of the first run of each process to the end of its last one."""
    chooser = f"{__name__}:Noted"
    tasks = [
        Task(number, Plan(chooser=ChooserSpec(chooser, {"seed": number}), probe=f"{__name__}:noted"))
        for number in range(first, first + count)
    ]
    by_process: dict[int, list[tuple[float, float]]] = {}
    for record in executor.run(source, tasks):
        pid, at_s, in_run_s = record.probed
        by_process.setdefault(pid, []).append((at_s, in_run_s))
    spent = Spent()
    for ends in by_process.values():
        ends.sort()
        spent.add(Spent(ends[-1][0] - ends[0][0], sum(in_run_s for _, in_run_s in ends[1:]), len(ends) - 1))
    return spent


class Noted(Uniform):
    """Notes when its run begins."""

    begun_s = 0.0

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        Noted.begun_s = time.thread_time()


def noted(execution: Execution) -> tuple[int, float, float]:
    """The process, the CPU time of all its threads so far, and that of this run."""
    return os.getpid(), time.process_time(), time.thread_time() - Noted.begun_s


def settings() -> tuple[dict[str, Any], ...]:
    return tuple({"nodes": 3, "pods": 10, "latencies": latencies} for latencies in ("steered", "drawn"))


def shared_settings() -> tuple[dict[str, Any], ...]:
    return tuple({"nodes": nodes} for nodes in (20, 50, 100, 200))


def search_settings() -> tuple[dict[str, Any], ...]:
    return (
        {"scenario": RACE, "runs": 200},
        {"scenario": "races/recreated-pod", "runs": 200},
        {"scenario": "museum/134249-victim-preempted-again", "runs": 200, "pinned": "bugs=[]"},
    )
