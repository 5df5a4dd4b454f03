"""How busy each process of a run is, and what holds the run up, in words.

Cells send samples along with their logs (``ray.cell.loads``), and the driver measures itself. A :class:`Load` makes
rates of them: of the latest second, of the whole run, and of the busiest second. The live display reads them from
another thread; the verdict has them at the end.
"""

from __future__ import annotations

import os
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from kemu.runtime.env import SECOND_NS

DRIVER = "driver"

SATURATED = 0.85
"""Share of a core from which on a thread has no time to spare: it also waits for locks, and for the kernel."""
_MACHINE_BUSY = 0.9
_LAG_S = 2.0
"""Real seconds by which a log may be behind before it counts as a bottleneck."""


class Sample(Protocol):
    """What a process says of itself: ``Load`` of ``cell.proto``."""

    real_ns: int
    cpu_ns: int
    loop_cpu_ns: int
    loop_queued_ns: int
    loop_late_ns: int
    memory_bytes: int
    calls: int
    open_calls: int
    unsent_events: int


@dataclass
class Load:
    """The load of one cell, over all processes that it had."""

    name: str
    actors: Sequence[str] = ()
    """The names of those that live there."""
    cpu: float = 0.0
    """Cores that it used in the last second, all threads."""
    loop: float = 0.0
    """Share of the last second in which the thread of the actors ran."""
    queued: float = 0.0
    """Share of it in which that thread waited for a CPU."""
    calls_per_s: float = 0.0
    open_calls: int = 0
    late_s: float = 0.0
    """How late its event loop was at most, in the last second; real time, as all of these."""
    memory_bytes: int = 0
    log_lag_s: float = 0.0
    """How far behind its log is at the driver."""
    unsent_events: int = 0
    most_cpu: float = 0.0
    most_memory_bytes: int = 0
    most_late_s: float = 0.0
    most_log_lag_s: float = 0.0
    _last: Sample | None = None
    _passed_ns: int = 0
    _cpu_ns: int = 0
    _loop_ns: int = 0
    _queued_ns: int = 0
    _calls: int = 0

    def lag(self, log_lag_s: float) -> None:
        """Its log is so far behind."""
        self.log_lag_s = log_lag_s
        self.most_log_lag_s = max(self.most_log_lag_s, log_lag_s)

    def add(self, sample: Sample) -> None:
        """Add a sample of the present process, in the order of time."""
        last, self._last = self._last, sample
        self.memory_bytes, self.open_calls = sample.memory_bytes, sample.open_calls
        self.unsent_events = sample.unsent_events
        self.most_memory_bytes = max(self.most_memory_bytes, sample.memory_bytes)
        if last is None or sample.real_ns <= last.real_ns:
            return
        passed_ns = sample.real_ns - last.real_ns
        cpu_ns, loop_ns = sample.cpu_ns - last.cpu_ns, sample.loop_cpu_ns - last.loop_cpu_ns
        queued_ns, calls = sample.loop_queued_ns - last.loop_queued_ns, sample.calls - last.calls
        self.cpu, self.loop, self.queued = cpu_ns / passed_ns, loop_ns / passed_ns, queued_ns / passed_ns
        self.calls_per_s = calls * SECOND_NS / passed_ns
        self.late_s = sample.loop_late_ns / SECOND_NS
        self._passed_ns += passed_ns
        self._cpu_ns += cpu_ns
        self._loop_ns += loop_ns
        self._queued_ns += queued_ns
        self._calls += calls
        self.most_cpu = max(self.most_cpu, self.cpu)
        self.most_late_s = max(self.most_late_s, self.late_s)

    def begin_process(self) -> None:
        """The next sample is what others are compared with: another process counts from 0."""
        self._last = None

    def begin_run(self) -> None:
        """What was before, the set-up, does not count; but the memory does."""
        self._passed_ns = self._cpu_ns = self._loop_ns = self._queued_ns = self._calls = 0
        self.most_cpu = self.most_late_s = self.most_log_lag_s = 0.0
        self.begin_process()

    def share(self, ns: int) -> float:
        return ns / self._passed_ns if self._passed_ns else 0.0

    @property
    def mean_cpu(self) -> float:
        return self.share(self._cpu_ns)

    @property
    def mean_loop(self) -> float:
        return self.share(self._loop_ns)

    @property
    def mean_queued(self) -> float:
        return self.share(self._queued_ns)

    def data(self) -> dict[str, Any]:
        """What verdict.json says of it."""
        return {
            "actors": len(self.actors),
            "cpu": round(self.mean_cpu, 3),
            "cpu_max": round(self.most_cpu, 3),
            "loop": round(self.mean_loop, 3),
            "waited_for_cpu": round(self.mean_queued, 3),
            "memory_mib": round(self.most_memory_bytes / 2**20, 1),
            "calls_per_s": round(self.share(self._calls * SECOND_NS), 1),
            "late_max_s": round(self.most_late_s, 3),
            "log_lag_max_s": round(self.most_log_lag_s, 3),
        }


@dataclass
class Loads:
    """Loads of all cells of a run and of the driver."""

    by_cell: dict[str, Load] = field(default_factory=dict)
    machine_busy: float = 0.0
    """The share of the cores of the driver's machine that was busy, with any program; known at the end."""
    _is_over: bool = False
    _machine: tuple[float, float] | None = None
    """CPU seconds that this machine's cores were busy, and the time, at the beginning of the clock."""

    def add(self, name: str, sample: Sample, actors: Collection[str]) -> None:
        """``actors``: the names of those that live there; those that end do not leave the list."""
        if self._is_over:
            return
        load = self.of(name)
        if len(actors) > len(load.actors):
            load.actors = tuple(actors)
        load.add(sample)

    def lag(self, name: str, log_lag_s: float) -> None:
        if not self._is_over:
            self.of(name).lag(log_lag_s)

    def of(self, name: str) -> Load:
        load = self.by_cell.get(name)
        if load is None:
            load = self.by_cell[name] = Load(name)
        return load

    def begin_run(self) -> None:
        self._machine = _busy_s(), time.monotonic()
        for load in self.by_cell.values():
            load.begin_run()

    def end_run(self) -> None:
        """What comes now, the stopping of all actors, does not count. May be repeated."""
        if self._is_over or self._machine is None:
            return
        self._is_over = True
        busy_s, begun_s = self._machine
        passed_s = time.monotonic() - begun_s
        if passed_s > 0:
            self.machine_busy = (_busy_s() - busy_s) / (passed_s * _cores())

    def data(self) -> dict[str, Any]:
        """``cells`` and ``bottleneck`` of verdict.json."""
        cells = {name: load.data() for name, load in self.by_cell.items()}
        return {"cells": cells, "bottleneck": bottleneck(self.by_cell.values(), self.machine_busy, _cores())}


def bottleneck(loads: Iterable[Load], machine_busy: float, cores: int) -> str:
    """What held the run up, as a sentence. ``machine_busy``: share of the cores of the driver's machine."""
    found = sorted(loads, key=lambda load: -load.mean_loop)
    if not any(load.mean_cpu for load in found if load.name != DRIVER):
        return "not known: the run was over before anything was measured"
    busiest = found[0]
    used = sum(load.mean_cpu for load in found)
    wanting = [load for load in found if load.mean_loop + load.mean_queued >= SATURATED]
    late = max(found, key=lambda load: load.most_log_lag_s)
    if busiest.mean_loop >= SATURATED:
        return f"{described(busiest)} used {busiest.mean_loop:.0%} of a core, and more than one it cannot use"
    if machine_busy >= _MACHINE_BUSY or wanting:
        others = max(0.0, machine_busy * cores - used)
        waiter = max(found, key=lambda load: load.mean_queued)
        return (
            f"the machine: of its {cores} cores the run used {used:.1f} and other programs {others:.1f};"
            f" {described(waiter)} ran for {waiter.mean_loop:.0%} of the time and waited for a core for"
            f" {waiter.mean_queued:.0%} of it"
        )
    if late.most_log_lag_s >= _LAG_S:
        return f"the log: that of {described(late)} was {late.most_log_lag_s:.1f} s behind"
    return f"none: the busiest, {described(busiest)}, used {busiest.mean_loop:.0%} of a core, the rest was waiting"


def described(load: Load) -> str:
    """``the cell of apiserver/0``."""
    if load.name == DRIVER:
        return "the driver"
    if len(load.actors) == 1:
        return f"the cell of {load.actors[0]}"
    return f"the cell {load.name}"


def _busy_s() -> float:
    """CPU seconds of all cores of this machine; 0 where the system does not tell."""
    try:
        fields = Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]
    except OSError:
        return 0.0
    user, nice, system, _idle, _iowait, irq, softirq, *_ = map(int, fields)
    return (user + nice + system + irq + softirq) / os.sysconf("SC_CLK_TCK")


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def by_pressure(loads: Mapping[str, Load]) -> list[Load]:
    """The busiest first. May be called from another thread."""
    return sorted(loads.values(), key=lambda load: (-max(load.cpu, load.loop), load.name))
