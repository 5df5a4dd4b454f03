"""Chaos: carries out the faults of a scenario at their times.

Role: beside the runner, on the driver's side of the runtime. What recurs or picks an actor by a pattern draws from the
fault's own random stream, so that one fault more or less does not change another.
"""

from __future__ import annotations

import asyncio
import fnmatch
import random
from collections.abc import Sequence
from typing import Any

from kemu.lab.scenario.playing.machines import PREFIX, Machines
from kemu.lab.scenario.playing.triggers import Triggers
from kemu.lab.scenario.scenarios import Fault, VictimCount
from kemu.runtime import distributions
from kemu.runtime.env import SECOND_NS
from kemu.runtime.faults.disks import MID_WRITE
from kemu.runtime.faults.hits import CHAOS
from kemu.runtime.faults.kinds import CELL, KINDS, PROCESS_FAULTS, Form
from kemu.runtime.ray.driver import plans
from kemu.runtime.runlog.events import Event, FaultBegun, FaultEnded, FaultHit
from kemu.runtime.runtimes import SUPERVISOR_DELAY_S, Runtime

RESTART_AFTER_NS = 1 * SECOND_NS
"""How long a crashed actor is away unless the fault says ``for``: a supervisor's usual delay."""


class Chaos:
    """Carries out faults on a runtime."""

    def __init__(
        self,
        runtime: Runtime,
        roster: Sequence[str],
        machines: Machines,
        triggers: Triggers,
        cells: plans.Placement,
        *,
        tells_restart: bool = False,
    ) -> None:
        """``roster``: the names of all actors, in the order of their launch; it may grow and shrink. ``cells``: who
        would share a process on Ray. ``tells_restart``: the log says of a crash that it is for good, for scripts that
        are made of it."""
        self._tells_restart = tells_restart
        self._runtime = runtime
        self._env = runtime.env(CHAOS)
        self._roster = roster
        self._machines = machines
        self._triggers = triggers
        self._cells = cells

    async def carry_out(self, fault: Fault) -> None:
        """Once, or again and again; returns when the last one is over. What lasts longer than the time until the next
        one goes on beside it."""
        clock = self._env.clock
        stream = self._env.stream("chaos", fault.id)
        if fault.when is not None:
            await self._triggers.watch(fault.when).wait()
            if fault.when.after_ns:
                await clock.sleep(fault.when.after_ns / SECOND_NS)
            await self._once(fault, fault.id, stream)
            return
        # A backup is made before it is needed.
        lead_ns = round(fault.parameters["age"] * SECOND_NS) if fault.what == "restore" else 0
        if fault.at_ns is not None:
            await clock.sleep_until_ns(max(0, fault.at_ns - lead_ns))
            await self._once(fault, fault.id, stream)
            return
        next_ns = fault.from_ns
        interval = distributions.parse(fault.every)
        begun: list[asyncio.Task[Any]] = []
        try:
            while True:
                next_ns += max(1, round(interval.draw(stream) * SECOND_NS))
                if fault.until_ns is not None and next_ns >= fault.until_ns:
                    break
                # A recurring fault must not keep a run going for ever.
                await clock.sleep_until_ns(max(0, next_ns - lead_ns), background=fault.until_ns is None)
                fault_id = f"{fault.id}-{len(begun)}"
                begun.append(self._env.spawn(self._once(fault, fault_id, stream), fault_id))
            for task in begun:
                await task
        finally:
            for task in begun:
                task.cancel()

    async def _once(self, fault: Fault, fault_id: str, stream: random.Random) -> None:
        if fault.what == "crash" and "actor" not in fault.actors:
            await self._crash_machines(fault, fault_id, stream)
        elif "step" in fault.parameters:
            await self._crash_at_step(fault, fault_id, stream)
        elif fault.what == "crash":
            await self._crash(fault, fault_id, stream)
        elif fault.what == "tornWrite":
            await self._tear_write(fault, fault_id, stream)
        elif fault.what == "restore":
            await self._restore(fault, fault_id, stream)
        elif fault.what in PROCESS_FAULTS:
            await self._strike_processes(fault, fault_id, stream)
        else:
            await self._inject(fault, fault_id, stream)

    async def _crash(self, fault: Fault, fault_id: str, stream: random.Random) -> None:
        down = self._machines.down
        chosen = [name for name in self._choose(fault.actors["actor"][0], fault.choice, stream) if name not in down]
        for name in chosen:
            down[name] = None
            self._log_crash(fault, FaultBegun.of(fault_id, "crash", {"actors": [name]}))
            await self._runtime.crash(name)
        await self._restart_later(fault, fault_id, chosen)

    def _log_crash(self, fault: Fault, event: FaultBegun) -> None:
        for_good = self._tells_restart and not fault.parameters["restart"]
        self._log(FaultBegun.of(event.id, event.what, {**event.parameters, "restart": False}) if for_good else event)

    async def _restart_later(self, fault: Fault, fault_id: str, names: Sequence[str]) -> None:
        down = self._machines.down
        if not fault.parameters["restart"]:
            return
        await self._env.clock.sleep((fault.for_ns or RESTART_AFTER_NS) / SECOND_NS)
        for name in names:
            # It may have been removed meanwhile, or even replaced; or its machine has gone off, or on again.
            if name in down and name in self._roster and not self._machines.is_off(name.removeprefix(PREFIX)):
                del down[name]
                await self._runtime.restart(name)
            self._log(FaultEnded(id=fault_id))

    async def _tear_write(self, fault: Fault, fault_id: str, stream: random.Random) -> None:
        """A crash at a step that the disk comes to, as it is told by ``inject``."""
        (chosen,) = self._resolved(fault, stream).values()
        for name in chosen:
            self._log(FaultBegun.of(fault_id, fault.what, {"actor": [name]}))
            await self._runtime.inject(fault_id, fault.what, {"actor": [name]})
            await self._runtime.crash(name, MID_WRITE)
            self._machines.down[name] = None
            await self._come_back(fault, fault_id, name)

    async def _restore(self, fault: Fault, fault_id: str, stream: random.Random) -> None:
        (chosen,) = self._resolved(fault, stream).values()
        for name in chosen:
            await self._runtime.inject(fault_id, fault.what, {"actor": [name]})
            await self._env.clock.sleep(fault.parameters["age"])
            self._log(FaultBegun.of(fault_id, fault.what, {"actor": [name], **fault.parameters}))
            self._machines.down[name] = None
            await self._runtime.crash(name)
            await self._come_back(fault, fault_id, name)

    async def _come_back(self, fault: Fault, fault_id: str, name: str) -> None:
        """After its time: end the fault, and start the actor again."""
        await self._env.clock.sleep((fault.for_ns or RESTART_AFTER_NS) / SECOND_NS)
        ended = await self._end(fault_id)
        if name in self._machines.down and name in self._roster:
            del self._machines.down[name]
            await self._runtime.restart(name)
        if ended is not None:
            self._log(ended)

    async def _end(self, fault_id: str) -> FaultEnded | None:
        """The event of its end; None: it was ended before its time (``kemu chaos heal``), which has been logged."""
        try:
            hits = await self._runtime.heal(fault_id)
        except ValueError:
            return None
        return FaultEnded(id=fault_id) if hits is None else FaultEnded(id=fault_id, hits=hits)

    async def _crash_at_step(self, fault: Fault, fault_id: str, stream: random.Random) -> None:
        chosen = self._choose(fault.actors["actor"][0], fault.choice, stream)
        armed = [self._env.spawn(self._strike(fault, fault_id, name), f"{fault_id} {name}") for name in chosen]
        try:
            for task in armed:
                await task
        finally:
            for task in armed:
                task.cancel()

    async def _strike(self, fault: Fault, fault_id: str, name: str) -> None:
        """Wait until the actor comes to the step; it may never do."""
        step = fault.parameters["step"]
        self._log_crash(fault, FaultBegun.of(fault_id, "crash", {"actors": [name], "step": step}))
        await self._runtime.crash(name, step)
        self._machines.down[name] = None
        self._log(FaultHit(id=fault_id, actor=name))
        await self._restart_later(fault, fault_id, [name])

    async def _crash_machines(self, fault: Fault, fault_id: str, stream: random.Random) -> None:
        machines = self._machines
        ((patterns,),) = fault.actors.values()
        kubelets = self._choose(patterns, fault.choice, stream)
        victims = [node for node in (kubelet.removeprefix(PREFIX) for kubelet in kubelets) if not machines.is_off(node)]
        silently = fault.parameters["powerOff"] and bool(victims)
        if silently:
            # What has no power neither resets its connections nor refuses new ones.
            between = self._apart([PREFIX + node for node in victims])
            await self._runtime.inject(fault_id, "partition", {"between": between, "oneWay": False})
        chosen = []
        for node in victims:
            cut = {"powerOff": True} if silently else {}
            self._log_crash(fault, FaultBegun.of(fault_id, "crash", {"nodes": [node], **cut}))
            if await machines.switch_off(node, "crash"):
                chosen.append(node)
        if not fault.parameters["restart"]:
            return
        await self._env.clock.sleep((fault.for_ns or RESTART_AFTER_NS) / SECOND_NS)
        if silently:
            await self._end(fault_id)
        for node in chosen:
            await machines.switch_on(node)
            self._log(FaultEnded(id=fault_id))

    async def _strike_processes(self, fault: Fault, fault_id: str, stream: random.Random) -> None:
        ((name, (patterns,)),) = fault.actors.items()
        whole_nodes = KINDS[fault.what].parameter(name).form is Form.RAYLETS
        known = self._runtime.processes()
        housed: dict[str, list[str]] = {}
        if not known:
            for actor in self._roster:
                housed.setdefault(CELL + self._cells.place(actor)[0], []).append(actor)
            housed.pop(CELL + plans.DRIVER_CELL, None)
        chosen = self._choose(patterns, fault.choice, stream, known or list(housed))
        data: dict[str, Any] = {parameter.name: "" for parameter in KINDS[fault.what].parameters}
        self._log(FaultBegun.of(fault_id, fault.what, {**data, name: list(chosen)}))
        if known:
            await self._runtime.inject(fault_id, fault.what, {name: list(chosen), "wholeNodes": whole_nodes})
        else:
            concerned = [actor for process in chosen for actor in housed[process]]
            if fault.what == "kill":
                for process in chosen:
                    self._log(FaultHit(id=fault_id, actor=process))
                await self._kill_actors(fault_id, concerned)
                return
            await self._runtime.inject(fault_id, "pause", {"actor": concerned})
        if fault.for_ns is not None and KINDS[fault.what].lasts:
            await self._env.clock.sleep(fault.for_ns / SECOND_NS)
            await self._runtime.heal(fault_id)
        if fault.for_ns is not None or not KINDS[fault.what].lasts:
            self._log(FaultEnded(id=fault_id))

    async def _kill_actors(self, fault_id: str, names: Sequence[str]) -> None:
        """Those of a cell, in virtual time: a supervisor starts them again."""
        down = self._machines.down
        killed = [name for name in names if name not in down]
        for name in killed:
            down[name] = None
            await self._runtime.crash(name)
        await self._env.clock.sleep(SUPERVISOR_DELAY_S)
        for name in killed:
            if name in down and name in self._roster and not self._machines.is_off(name.removeprefix(PREFIX)):
                del down[name]
                await self._runtime.restart(name)
        self._log(FaultEnded(id=fault_id))

    def _apart(self, group: Sequence[str]) -> list[list[str]]:
        """These actors, and all others."""
        return [sorted(group), sorted(name for name in self._roster if name not in group)]

    async def _inject(self, fault: Fault, fault_id: str, stream: random.Random) -> None:
        parameters = {**self._resolved(fault, stream), **fault.parameters}
        self._log(FaultBegun.of(fault_id, fault.what, parameters))
        await self._runtime.inject(fault_id, fault.what, parameters)
        if not KINDS[fault.what].lasts:
            self._log(FaultEnded(id=fault_id))
        elif fault.for_ns is not None:
            await self._env.clock.sleep(fault.for_ns / SECOND_NS)
            ended = await self._end(fault_id)
            if ended is not None:
                self._log(ended)

    def _resolved(self, fault: Fault, stream: random.Random) -> dict[str, Any]:
        """The actors of each parameter by their names."""
        resolved: dict[str, Any] = {}
        if "zone" in fault.actors:
            return {"between": self._apart(self._choose(fault.actors["zone"][0], fault.choice, stream))}
        for name, groups in fault.actors.items():
            chosen = [sorted(self._choose(patterns, fault.choice, stream)) for patterns in groups]
            two_sides = KINDS[fault.what].parameter(name).form is Form.SIDES
            resolved[name] = chosen if two_sides else chosen[0]
        return resolved

    def _choose(
        self, patterns: Sequence[str], choice: VictimCount, stream: random.Random, among: Sequence[str] = ()
    ) -> Sequence[str]:
        """Choose from those that match each pattern, in the order of their launch and each once. ``among``: of what
        else than all actors."""
        chosen: dict[str, None] = {}
        for pattern in patterns:
            matching = [name for name in among or self._roster if fnmatch.fnmatchcase(name, pattern)]
            count = choice.of(len(matching))
            if count < len(matching):
                places = [stream.randrange(len(matching))] if count == 1 else stream.sample(range(len(matching)), count)
                matching = [matching[place] for place in sorted(places)]
            chosen |= dict.fromkeys(matching)
        return list(chosen)

    def _log(self, event: Event) -> None:
        self._env.log(event)
