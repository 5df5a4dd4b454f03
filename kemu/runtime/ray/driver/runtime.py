"""The real runtime: actors in Ray actors, over gRPC, on a wall clock that may run faster.

This is the driver. ``fleets`` starts the cells according to a plan (``plans``), tells them over gRPC which actors to
run and who lives where, and replaces those that die; ``events`` brings their event streams into one order. Ray
(``clusters``) places processes and restarts them; no call of an actor goes through it. :mod:`kemu.runtime.host` is
what happens inside a cell; the driver hosts actors too.
"""

from __future__ import annotations

import asyncio
import fnmatch
import itertools
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from kemu.errors import InfrastructureError, SimulationError
from kemu.messages.v1 import cell_pb2
from kemu.runtime import loads
from kemu.runtime.env import SECOND_NS, ActorSpec, LogSink
from kemu.runtime.faults import kinds
from kemu.runtime.host import control, links
from kemu.runtime.host import loads as cell_loads
from kemu.runtime.host.drivers import QUIET_S, Driver
from kemu.runtime.ray.driver import events, fleets, infrastructure, plans
from kemu.runtime.ray.driver.cells import RemoteCell
from kemu.runtime.runlog.events import Event, RunLost
from kemu.runtime.runtimes import SUPERVISOR_DELAY_S

BEGIN_LEAD_S = 0.05
"""How far ahead of its announcement the beginning lies, so that all cells know of it in time; at least."""

_LEAD_TO_TELLING = 4
_MOST_LEAD_S = 2.0
"""On a busy machine it is four times as far ahead as it takes to tell everybody, up to this."""


class RayRuntime(Driver):
    """Implements ``runtimes.Runtime``. One run; Ray itself may outlive it (``clusters``)."""

    place = "on Ray"

    def __init__(
        self,
        seed: int,
        sink: LogSink,
        *,
        directory: str | Path,
        speed: float = 1.0,
        cells: Sequence[plans.CellPlan] = plans.DEFAULT_PLAN,
        expected: Sequence[str] = (),
        code: Iterable[str] = (),
        ray_address: str | None = None,
        interface: str | None = None,
        epoch_unix_s: int | None = None,
        start_timeout_s: float = 120.0,
        timing: Mapping[str, Any] | None = None,
        etcd: str = "",
        below_grpc: bool = False,
        loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        """See :class:`kemu.runtime.host.drivers.Driver`. ``directory``: for disks and, while it runs, event segments;
        the same path is used on every machine. ``cells``: see ``plans``. ``expected``: names of actors that will be
        launched: their cells start together with the first one; empty: those cells whose plan is eager do. ``code``:
        what cells may load by ``module:Class``: factories of actors, plugins; nothing else is started there.
        ``ray_address``: a cluster to join, see ``clusters``; None: mostly a local one of our own. ``interface``: where
        cells listen: an address, or ``node`` for that of their Ray node; None: loopback, but ``node`` on a cluster of
        several machines. A caller there must show a token of this run, and unless it is loopback the connection is
        encrypted (docs/security.md). ``start_timeout_s``: real time for Ray to find a place for a cell. ``etcd``:
        ``host:port`` of one that takes the place of the store, for faults. ``below_grpc``: cells call each other
        through proxies, so that faults can be below gRPC; on loopback only.
        """
        super().__init__(directory=directory, speed=speed, epoch_unix_s=epoch_unix_s, timing=timing, loop=loop)
        self.loads = loads.Loads()
        """How busy the cells and the driver are."""
        self._events = events.EventStreams(sink, self.clock.now_ns, self._fail, self.loads, speed, self.directory)
        self._code = frozenset(code)
        self._placement = plans.Placement(cells)
        settings = fleets.Settings(
            seed=seed,
            directory=self.directory,
            speed=speed,
            epoch_unix_s=self._epoch_unix_s,
            ray_address=ray_address,
            interface=interface,
            code=tuple(sorted(self._code)),
            start_timeout_s=start_timeout_s,
            keepalive_time_s=self._keepalive_time_s,
            keepalive_timeout_s=self._keepalive_timeout_s,
        )
        self._fleet = fleets.Fleet(
            settings,
            self._placement,
            self._host,
            self._events,
            expected=expected,
            on_crash=self._crashed,
            log=self._log,
            fail=self._fail,
        )
        if below_grpc:
            self._fleet.links = links.Links(speed, self._host.hits.strike, self._host.stream)
        self._meter = cell_loads.Meter(self._ticks, self._host.traffic, lambda: self._events.waiting)
        self._stopped_processes: dict[str, list[str]] = {}
        """By fault, the processes that stand still."""
        self._infrastructure = infrastructure.Infrastructure(self._log_process, etcd)
        self._is_watching = False
        self._looked_at = 0.0
        """Real (monotonic) time at which it was last asked whether the run is idle."""

    # Driving

    def _kill(self) -> None:
        self._fleet.kill()

    @property
    def left(self) -> Sequence[str]:
        """What could not be removed, once the run is over: processes, folders."""
        return self._fleet.cluster.left if self._fleet.cluster is not None else ()

    @property
    def cells(self) -> dict[str, control.Endpoint]:
        """The processes as they are now, by name of the cell."""
        return {name: remote.endpoint for name, remote in self._fleet.cells.items() if remote.endpoint is not None}

    async def begin(self) -> None:
        if self._fleet.epoch_unix_ns:
            raise RuntimeError("the clock runs already")
        asked_at = time.monotonic()
        await self._fleet.configure_all()
        lead_s = min(max(BEGIN_LEAD_S, _LEAD_TO_TELLING * (time.monotonic() - asked_at)), _MOST_LEAD_S)
        self._fleet.epoch_unix_ns = time.time_ns() + round(lead_s * SECOND_NS)
        await self._fleet.configure_all()
        self._ticks.begin()
        self.loads.begin_run()
        self._know_infrastructure()

    @property
    def _has_begun(self) -> bool:
        return bool(self._fleet.epoch_unix_ns)

    def _is_busy_now(self) -> None:
        self._events.busy_at = self._looked_at = time.monotonic()

    def _look(self, until_idle: bool) -> float:
        self._measure(self._meter.sample_when_due())
        self._fleet.look_for_stopped(time.monotonic())
        return fleets.TICK_S

    def _measure(self, sample: cell_pb2.Load | None) -> None:
        """Measure the driver."""
        if sample is not None:
            self.loads.add(loads.DRIVER, sample, self._host.residents)

    def _is_idle(self) -> bool:
        now = time.monotonic()
        # A driver that was held up does not know what has come in meanwhile.
        if self._host.pending or not self._host.clock.begun or now - self._looked_at > events.STALL_S:
            self._events.busy_at = now
        self._looked_at = now
        return now - self._events.busy_at >= QUIET_S and self._fleet.is_quiet(now)

    async def shutdown(self) -> None:
        """Stop all actors, last launched first, those next to each other in one go; then end all processes.

        A process that somebody else has stopped would not answer: its actors end with it.
        """
        self._measure(self._meter.sample())
        self.loads.end_run()
        running = [name for name in reversed(self._specs) if self._is_running(name)]
        for cell_name, names in itertools.groupby(running, self._placement.cell_of):
            remote = self._fleet.cells.get(cell_name)
            if remote is None or not remote.stands_still:
                await self._stop(remote, list(names))
        await self._close()

    async def _close_once(self) -> None:
        self.loads.end_run()
        self._ticks.end()
        for fault in list(self._stopped_processes):
            await self._let_go(fault)
        await self._fleet.end_supervision()
        await self._host.close()
        self._events.flush()
        await self._fleet.end_processes()
        if self._fleet.links is not None:
            await self._fleet.links.close()
        self._backups.end()

    # Events and failures

    def _log(self, time_ns: int, actor: str, kind: str, data: Mapping[str, Any]) -> None:
        self._events.log(time_ns, actor, kind, data)

    def _log_process(self, name: str, event: Event) -> None:
        self._log(self.clock.now_ns(), name, event.KIND, event)

    def _fail(self, error: BaseException) -> None:
        if not self._failure.done() and isinstance(error, InfrastructureError) and self._host.clock.begun:
            error.lost_at_ns = self.clock.now_ns()
            event = RunLost(why=str(error))
            self._log(error.lost_at_ns, "runtime", event.KIND, event)
        super()._fail(error)

    # The life of actors

    async def launch(self, specs: Sequence[ActorSpec]) -> None:
        fleet = self._fleet
        for spec in specs:
            if spec.name in self._specs and self._is_running(spec.name):
                raise ValueError(f"an actor named {spec.name!r} is running")
            if self._placement.place(spec.name)[0] != plans.DRIVER_CELL and spec.factory not in self._code:
                raise SimulationError(f"{spec.name}: cells may not load {spec.factory}, which `code` does not name")
            self._specs[spec.name] = spec
        await fleet.provide(specs)
        mine = []
        theirs: dict[str, list[str]] = {}
        for spec in specs:
            remote = fleet.cell_of(spec.name)
            if remote is None:
                mine.append(spec)
            else:
                remote.actors[spec.name] = spec
                theirs.setdefault(remote.name, []).append(spec.name)
        fleet.enlist(spec.name for spec in specs)
        await fleet.configure_all()
        await fleets.all_of(
            [
                self._host.start(mine),
                *(fleet.launch_in(fleet.cells[name], actors) for name, actors in theirs.items()),
            ]
        )

    def _is_running(self, name: str) -> bool:
        remote = self._fleet.cell_of(name)
        return name in (self._host.residents if remote is None else remote.actors)

    async def stop(self, name: str) -> None:
        if self._is_running(name):
            await self._stop(self._fleet.cell_of(name), [name])
            await self._fleet.delist(name)

    async def _stop(self, remote: RemoteCell | None, names: Sequence[str]) -> None:
        if remote is not None:
            await self._fleet.stop(remote, names)
            return
        for name in names:
            await self._host.stop(name)

    async def crash(self, name: str, step: str | None = None) -> None:
        """See ``runtimes.Runtime``. An actor that has a cell to itself is ended by SIGKILL of the process."""
        if step is not None:
            await self._fleet.crash_at(name, step)
        elif not self._is_running(name):
            return
        elif (remote := self._fleet.cell_of(name)) is None:
            self._host.crash(name)
        else:
            await self._fleet.crash(remote, name)
        await self._fleet.delist(name)

    async def _start_again(self, spec: ActorSpec) -> None:
        name = spec.name
        fleet = self._fleet
        remote = fleet.cell_of(name)
        if remote is not None:
            await remote.up.wait()
            remote.actors[name] = spec
        fleet.enlist([name])
        await fleet.configure_all()
        if remote is None:
            fleet.spawn(self._host.start([spec]), f"starting {spec.name}")
        else:
            fleet.spawn(fleet.start_wanted(remote), f"starting the actors of cell {remote.name}")

    async def pause(self, name: str) -> None:
        """See ``runtimes.Runtime``. Raises SimulationError unless the actor has a process of this machine to itself."""
        remote = self._fleet.cell_of(name)
        if remote is None or list(remote.actors) != [name] or not remote.is_local or not remote.up.is_set():
            raise SimulationError(f"{name} cannot be paused: that takes a cell of its own, on the driver's machine")
        await self._fleet.pause(remote, f"pause of {name}")

    async def resume(self, name: str) -> None:
        remote = self._fleet.cell_of(name)
        if remote is not None and remote.paused:
            await self._fleet.resume(remote)

    # Faults

    async def _begin_fault(self, fault: str, what: str, parameters: Mapping[str, Any]) -> None:
        if parameters.get("belowGrpc"):
            self._begin_below_grpc(fault, what, parameters)
        elif what in kinds.PROCESS_FAULTS:
            await self._strike_processes(fault, what, parameters)
        else:
            await self._fleet.inject(fault, what, parameters)

    def _begin_below_grpc(self, fault: str, what: str, parameters: Mapping[str, Any]) -> None:
        if self._fleet.links is None:
            raise SimulationError(f"{fault}: belowGrpc was not asked for when the run began")
        self._fleet.links.begin(fault, what, parameters, self._placement.cell_of)

    async def _pause_all(self, fault: str, names: Sequence[str]) -> None:
        """Stop the processes of these actors. No other actor can talk to them meanwhile, and it finds out by keepalive,
        which gRPC itself would take longer for."""
        await super()._pause_all(fault, names)
        paused = self._paused[fault]
        others = [name for name in (*self._specs, *self._host.residents) if name not in paused]
        between = [paused, list(dict.fromkeys(others))]
        await self._fleet.inject(fault, "partition", {"between": between, "oneWay": False})

    async def _pause(self, name: str) -> bool:
        if not self._is_running(name):
            return False
        await self.pause(name)
        return True

    def processes(self, pattern: str = "*") -> Sequence[str]:
        self._know_infrastructure()
        cells = [remote.process for remote in self._fleet.cells.values()]
        known = [*cells, *self._infrastructure.names()]
        found = [name for name in known if fnmatch.fnmatchcase(name, pattern)]
        if not found and not pattern.startswith(kinds.CELL):
            raise self._infrastructure.refuse(pattern)
        return found

    def _know_infrastructure(self) -> None:
        cluster = self._fleet.cluster
        if cluster is not None and not self._is_watching:
            self._is_watching = True
            self._infrastructure.know(cluster.own_processes())
            self._fleet.spawn(self._infrastructure.watch(), "the watch on Ray's processes")
            if cluster.joined:
                self._fleet.spawn(self._infrastructure.watch_nodes(cluster.nodes), "the watch on Ray's nodes")

    async def _strike_processes(self, fault: str, what: str, parameters: Mapping[str, Any]) -> None:
        """``kill`` or ``stop`` processes of the run, by their names."""
        whole_nodes = parameters["wholeNodes"]
        stopped = self._stopped_processes[fault] = []
        cells = {remote.process: remote for remote in self._fleet.cells.values()}
        for name in parameters["clusterNode" if whole_nodes else "process"]:
            self._host.hits.strike(fault, name)
            remote = cells.get(name)
            if what == "stop":
                stopped.append(name)
            if remote is None:
                if whole_nodes:
                    lost = self._infrastructure.children(name)
                    for one in cells.values():
                        if one.is_local and one.pid in lost:
                            one.ends_by = fault
                if what == "stop":
                    self._infrastructure.stop(name, fault)
                else:
                    self._infrastructure.kill(name, fault, whole_node=whole_nodes)
                    if name == infrastructure.ETCD:
                        delay_s = SUPERVISOR_DELAY_S / self.speed
                        self._loop.call_later(delay_s, self._infrastructure.start_etcd_again)
            elif not remote.is_local or not remote.connected:
                raise SimulationError(f"{name} cannot be reached: it is not on the driver's machine, or has just died")
            elif what == "kill":
                self._fleet.kill_process(remote, fault)
            else:
                await self._fleet.pause(remote, fault)

    async def _let_go(self, fault: str) -> int:
        names = self._stopped_processes.pop(fault)
        cells = {remote.process: remote for remote in self._fleet.cells.values()}
        for name in names:
            if name in cells:
                await self._fleet.resume(cells[name])
            else:
                self._infrastructure.let_go(name)
        return len(names)

    def _take_backups(self, fault: str, names: Sequence[str]) -> None:
        for name in names:
            remote = self._fleet.cell_of(name)
            if remote is not None and not remote.is_local:
                raise SimulationError(f"{name} cannot be restored: its disk is not on the driver's machine")
        super()._take_backups(fault, names)

    async def _end_fault(self, fault: str) -> int:
        if self._fleet.links is not None and self._fleet.links.are_of(fault):
            self._fleet.links.end(fault)
            return self._host.hits.of(fault)
        if fault in self._stopped_processes:
            return await self._let_go(fault)
        return await self._fleet.heal(fault)
