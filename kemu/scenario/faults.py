"""Chaos: carries out the faults of a scenario at their times.

Role: beside the runner, on the driver's side of the runtime. What recurs or picks an actor by a pattern draws from the
fault's own random stream, so that one fault more or less does not change another.
"""

from __future__ import annotations

import fnmatch
import random
from collections.abc import Mapping, Sequence
from typing import Any

from kemu.runtime import distributions
from kemu.runtime.env import SECOND_NS
from kemu.runtime.runtimes import Runtime
from kemu.runtime.streams import random_stream
from kemu.scenario.scenarios import Fault

RESTART_AFTER_NS = 1 * SECOND_NS
"""How long a crashed actor is away unless the fault says ``for``: a supervisor's usual delay."""

CHAOS = "chaos"
"""The name under which faults stand in the run log."""


class Chaos:
    """Carries out faults on a runtime."""

    def __init__(self, runtime: Runtime, seed: int, roster: Sequence[str]) -> None:
        """``roster``: the names of all actors, in the order of their launch; it may grow."""
        self._runtime = runtime
        self._env = runtime.env(CHAOS)
        self._seed = seed
        self._roster = roster
        self._down: set[str] = set()

    async def carry_out(self, fault: Fault) -> None:
        """Once, or again and again; returns after the last time."""
        clock = self._env.clock
        stream = random_stream(self._seed, "chaos", fault.id)
        if fault.at_ns is not None:
            await clock.sleep_until_ns(fault.at_ns)
            await self._once(fault, fault.id, stream)
            return
        next_ns = fault.from_ns
        interval = distributions.parse(fault.every)
        count = 0
        while True:
            next_ns += max(1, round(interval.draw(stream) * SECOND_NS))
            if fault.until_ns is not None and next_ns >= fault.until_ns:
                return
            # What recurs must not by itself keep a run going for ever.
            await clock.sleep_until_ns(next_ns, background=fault.until_ns is None)
            await self._once(fault, f"{fault.id}-{count}", stream)
            count += 1

    async def _once(self, fault: Fault, fault_id: str, stream: random.Random) -> None:
        if fault.what == "crash":
            await self._crash(fault, fault_id, stream)
        else:
            await self._partition(fault, fault_id, stream)

    async def _crash(self, fault: Fault, fault_id: str, stream: random.Random) -> None:
        chosen = [name for name in self._choose(fault.actor, fault.all, stream) if name not in self._down]
        for name in chosen:
            self._down.add(name)
            self._log("chaos.begin", {"id": fault_id, "what": "crash", "actors": [name]})
            await self._runtime.crash(name)
        if not fault.restart:
            return
        await self._env.clock.sleep((fault.for_ns or RESTART_AFTER_NS) / SECOND_NS)
        for name in chosen:
            # It may have been removed meanwhile, or even replaced.
            if name in self._down and name in self._roster:
                await self._runtime.restart(name)
            self._down.discard(name)
            self._log("chaos.end", {"id": fault_id})

    def forget(self, name: str) -> None:
        """The actor was removed; another one may come under its name."""
        self._down.discard(name)

    async def _partition(self, fault: Fault, fault_id: str, stream: random.Random) -> None:
        sides = [
            sorted({name for pattern in patterns for name in self._choose(pattern, fault.all, stream)})
            for patterns in fault.between
        ]
        data: dict[str, Any] = {"id": fault_id, "what": "partition", "between": sides, "oneWay": fault.one_way}
        self._log("chaos.begin", data)
        await self._runtime.partition(fault_id, sides[0], sides[1], one_way=fault.one_way)
        if fault.for_ns is None:
            return
        await self._env.clock.sleep(fault.for_ns / SECOND_NS)
        await self._runtime.heal(fault_id)
        self._log("chaos.end", {"id": fault_id})

    def _choose(self, pattern: str, every: bool, stream: random.Random) -> Sequence[str]:
        matching = [name for name in self._roster if fnmatch.fnmatchcase(name, pattern)]
        if every or len(matching) <= 1:
            return matching
        return [matching[stream.randrange(len(matching))]]

    def _log(self, kind: str, data: Mapping[str, Any]) -> None:
        self._env.log(kind, data)
