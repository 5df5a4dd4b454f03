"""All cells of a run: started, told what to run and who lives where, watched, and replaced when they die.

A cell is told everything it should know when its process starts (:meth:`Fleet._brief`), and again when another process
takes its place; in between it is told what changes. Neighbours: ``cells`` is one of them, ``plans`` says which actor
goes where, ``clusters`` is Ray, ``events`` takes what the cells log, ``runtime`` decides what is to happen.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc.aio
import msgpack

from kemu.errors import InfrastructureError, SimulationError
from kemu.messages.v1 import cell_pb2
from kemu.runtime import skews, tasks
from kemu.runtime.env import SECOND_NS, ActorSpec, LogSink
from kemu.runtime.faults import kinds
from kemu.runtime.host import hosts, links, tokens
from kemu.runtime.ray import processes
from kemu.runtime.ray.driver import cells, clusters, events, plans
from kemu.runtime.ray.driver.cells import RemoteCell
from kemu.runtime.runlog import events as log_events

TICK_S = 0.02
_LITTLE = 0.001
"""Amount of a resource that only says where a cell may live; Ray counts in ten-thousandths."""
_SILENT_S = 1.0
"""Real time without a sign of life after which a cell is not waited for to hear something."""
_MOST_DEATHS = 5
_DEATHS_WITHIN_S = 30.0
"""A cell that dies more often than that is beyond help."""


@dataclass(frozen=True)
class Settings:
    """Settings of a run. ``runtime.RayRuntime`` says what they mean."""

    seed: int
    directory: Path
    speed: float
    epoch_unix_s: int
    ray_address: str | None
    interface: str | None
    code: tuple[str, ...]
    start_timeout_s: float
    keepalive_time_s: float
    keepalive_timeout_s: float


class Fleet:
    def __init__(
        self,
        settings: Settings,
        placement: plans.Placement,
        host: hosts.Host,
        streams: events.EventStreams,
        expected: Iterable[str],
        on_crash: Callable[[str], None],
        log: LogSink,
        fail: Callable[[BaseException], None],
    ) -> None:
        """``expected``: actors whose cells start with the first one. ``host``: the actors of the driver. ``on_crash``
        is told of an actor that died with its process; ``log`` of processes that die and come back; ``fail`` of an
        error that ends the run."""
        self.cells: dict[str, RemoteCell] = {}
        self.cluster: clusters.RayCluster | None = None
        self.epoch_unix_ns = 0
        """Wall time at which virtual time is 0; 0: not yet known."""
        self._settings = settings
        self._interface = settings.interface
        self._issuer = tokens.Issuer()
        host.token = self._issuer.token
        self._placement = placement
        self._host = host
        self._loop = host.loop
        self._events = streams
        self._on_crash = on_crash
        self._log = log
        self._fail = fail
        self._expected = tuple(expected)
        self._incarnations: dict[str, int] = {}
        self._addresses: dict[str, tuple[str, int]] = {}
        """Target and incarnation of the actors that are up."""
        self._host_addresses: dict[str, tuple[str, int]] = {}
        """As the driver's own actors see them."""
        self.links: links.Links | None = None
        """None: cells call each other directly."""
        self._faults: dict[str, cell_pb2.Fault] = {}
        self._tasks: dict[asyncio.Task[Any], None] = {}
        self._is_ending = False
        self._looked_at = 0.0
        """Real (monotonic) time of the last look for stopped processes."""
        self._armed: dict[tuple[str, str], list[asyncio.Future[None]]] = {}
        """Actors that are to crash and the step at which: who waits for that."""
        streams.on_strike = self._struck
        self.configure_host()

    def configure_host(self) -> None:
        """Tell the driver's own actors who lives where, and what time it is."""
        settings = self._settings
        self._host.configure(
            seed=settings.seed,
            directory=settings.directory,
            addresses=self._host_addresses,
            certificates=self._certificates(),
            keepalive_time_s=settings.keepalive_time_s,
            keepalive_timeout_s=settings.keepalive_timeout_s,
        )
        self._host.clock.configure(
            epoch_unix_ns=self.epoch_unix_ns, speed=settings.speed, epoch_unix_s=settings.epoch_unix_s
        )

    # Processes

    async def provide(self, specs: Iterable[ActorSpec]) -> None:
        """Place the actors, and start the cells for them that are not there yet. Raises SimulationError."""
        wanted: dict[str, plans.CellPlan] = {}
        actors = [spec.name for spec in specs]
        if not self.cells:
            actors += self._expected
            if not self._expected:
                wanted.update({plan.name: plan for plan in self._placement.eager()})
        for actor in actors:
            name, plan = self._placement.place(actor)
            if name != plans.DRIVER_CELL:
                wanted[name] = plan
        if wanted and self.cluster is None:
            self.cluster = clusters.RayCluster(self._settings.ray_address, workers=len(wanted))
        new = await self._place(wanted) if wanted else []
        await all_of(self._connect(remote) for remote in new)
        await all_of(self._brief(remote) for remote in new)
        for remote in new:
            self.spawn(self._supervise(remote), f"the supervision of cell {remote.name}")

    async def _place(self, wanted: Mapping[str, plans.CellPlan]) -> list[RemoteCell]:
        """Have Ray start those of the cells that are not there yet."""
        assert self.cluster is not None
        await self.cluster.start()
        self.cluster.when_lost(self._tell_lost)
        nodes = await self.cluster.nodes()
        if self._interface is None:
            machines = {node["NodeManagerAddress"] for node in nodes}
            self._interface = cells.NODE if len(machines) > 1 else cells.LOOPBACK
        if self.links is not None and self._interface not in (None, cells.LOOPBACK):
            raise SimulationError("belowGrpc needs cells that listen on loopback, on the driver's machine")
        new = []
        for name, plan in wanted.items():
            if name not in self.cells:
                resources = plan.resources
                if not resources and any(f"kemu-{plan.name}" in node["Resources"] for node in nodes):
                    resources = {f"kemu-{plan.name}": _LITTLE}
                remote = RemoteCell(
                    self.cluster,
                    len(self.cells),
                    name,
                    resources,
                    self._settings.directory,
                    self._interface,
                    self._issuer,
                    self._settings.code,
                )
                self.cells[name] = remote
                new.append(remote)
        return new

    def _tell_lost(self, why: str) -> None:
        """In another thread: the Ray cluster is gone."""
        with contextlib.suppress(RuntimeError):  # the loop is over
            self._loop.call_soon_threadsafe(self._lose, why)

    def _lose(self, why: str) -> None:
        if not self._is_ending:
            self._fail(InfrastructureError(f"the Ray cluster is lost: {why}"))

    async def _connect(self, remote: RemoteCell) -> bool:
        """Returns whether there is a new process."""
        if not await remote.connect(self._settings.start_timeout_s):
            return False
        assert self.cluster is not None
        assert remote.endpoint is not None
        if remote.is_local:
            self.cluster.adopt(remote.endpoint.pid)
        self._events.open(remote)
        await self._compare_clocks(remote)
        return True

    async def _compare_clocks(self, remote: RemoteCell) -> None:
        with contextlib.suppress(grpc.aio.AioRpcError):  # it has died already
            await remote.measure_clock()
        ahead_ns, within_ns = remote.clock
        if ahead_ns:
            speed = self._settings.speed
            self._tell_of(remote, log_events.ProcessClockCompared(ahead_ns=ahead_ns, within_ns=int(within_ns * speed)))

    async def _brief(self, remote: RemoteCell) -> None:
        """Tell a process everything it should know; when it has heard, it is up."""
        with contextlib.suppress(grpc.aio.AioRpcError):
            await self._configure(remote)
            for fault in sorted(remote.faults - self._faults.keys()):
                await remote.heal(fault)
            for message in list(self._faults.values()):
                await remote.inject(message)
            remote.up.set()

    async def _supervise(self, remote: RemoteCell) -> None:
        """Keep the cell alive as long as the run lasts."""
        deaths: list[float] = []
        while True:
            await self._events.follow(remote)
            remote.up.clear()
            while not remote.up.is_set():
                if await self._has_died(remote):
                    died = await self._events.recover(remote)
                    self._tell_of(remote, log_events.ProcessDied(pid=remote.pid, by=remote.ends_by))
                    for name in died:
                        self._on_crash(name)
                    if remote.actors:  # otherwise it died as it was told
                        deaths = [*deaths, time.monotonic()][-_MOST_DEATHS:]
                        if len(deaths) == _MOST_DEATHS and deaths[-1] - deaths[0] < _DEATHS_WITHIN_S:
                            raise InfrastructureError(
                                f"cell {remote.name} died {_MOST_DEATHS} times in {_DEATHS_WITHIN_S:.0f} s"
                            )
                    await self._replace(remote)
                    self._tell_of(remote, log_events.ProcessStarted(pid=remote.pid))
                await self._brief(remote)
            self.spawn(self.start_wanted(remote), f"starting the actors of cell {remote.name}")

    def _tell_of(self, remote: RemoteCell, event: log_events.Event) -> None:
        self._log(self._host.clock.now_ns(), remote.process, event.KIND, event)

    async def _has_died(self, remote: RemoteCell) -> bool:
        """The connection to a process broke: wait until it is known whether the process did, too.

        It may be held up, or the network: then it goes on with all of its actors once it answers again.
        """
        assert self.cluster is not None
        while True:
            if not remote.paused:
                with contextlib.suppress(grpc.aio.AioRpcError):
                    await remote.statistics()
                    return False
                assert remote.endpoint is not None
                if remote.is_local:
                    if self.cluster.has_ended(remote.endpoint.pid):
                        return True
                elif await remote.is_replaced(self._settings.start_timeout_s):
                    return True
            await asyncio.sleep(TICK_S)

    async def _replace(self, remote: RemoteCell) -> None:
        """Its process has died: wait for the next one."""
        for name in remote.actors:
            self._addresses.pop(name, None)
        await self.configure_all()
        while not await self._connect(remote):  # noqa: ASYNC110
            await asyncio.sleep(TICK_S)  # Ray has not noticed yet
        self.enlist(remote.actors)
        await self.configure_all()

    async def start_wanted(self, remote: RemoteCell) -> None:
        """Have the cell start those of its actors that it has not been told of, and wait until they are ready."""
        while True:
            await remote.up.wait()
            async with remote.ordering:
                ready = await self._begin_wanted(remote)
            if ready is not None:
                break
            await asyncio.sleep(TICK_S)  # until it is noticed that the process died
        with contextlib.suppress(grpc.aio.AioRpcError):  # it died; when it is back it is told once more
            await ready

    async def _begin_wanted(self, remote: RemoteCell) -> Awaitable[None] | None:
        """Returns when they have begun, with what waits until they are ready; None: the process died before."""
        process = remote.incarnation
        specs = [spec for name, spec in remote.actors.items() if name not in remote.told]
        try:
            # First of all it must hear as which incarnation they begin.
            await self._configure(remote)
        except grpc.aio.AioRpcError:
            return None
        if not remote.up.is_set() or remote.incarnation != process:
            return None
        specs = [spec for spec in specs if remote.actors.get(spec.name) is spec]
        remote.told.update(spec.name for spec in specs)
        started = await remote.start(specs)

        async def ready() -> None:
            await started
            if remote.incarnation == process:
                remote.ready.update(spec.name for spec in specs)

        return ready()

    async def launch_in(self, remote: RemoteCell, names: Iterable[str]) -> None:
        """Returns when all are ready, whatever happens to the cell meanwhile."""
        await self.start_wanted(remote)
        while not remote.ready.issuperset(names):  # noqa: ASYNC110
            await asyncio.sleep(TICK_S)

    async def _configure(self, remote: RemoteCell) -> None:
        settings = self._settings
        async with remote.configuring:
            request = cell_pb2.ConfigureRequest(
                clock=cell_pb2.ClockSetting(
                    # By the clock of its machine.
                    epoch_unix_ns=self.epoch_unix_ns + remote.clock.ahead_ns if self.epoch_unix_ns else 0,
                    speed=settings.speed,
                    epoch_unix_s=settings.epoch_unix_s,
                ),
                addresses=[
                    cell_pb2.Address(name=name, target=target, incarnation=incarnation)
                    for name, (target, incarnation) in (await self._addresses_for(remote.name)).items()
                ],
                certificates=self._certificates(),
                directory=str(settings.directory),
                seed=settings.seed,
                keepalive_time_s=settings.keepalive_time_s,
                keepalive_timeout_s=settings.keepalive_timeout_s,
            )
            await remote.configure(request)

    async def _addresses_for(self, cell: str) -> dict[str, tuple[str, int]]:
        """Where a cell finds each actor: at the proxy of the link to another cell, if there are such."""
        if self.links is None:
            return dict(self._addresses)
        found = {}
        for name, (target, incarnation) in list(self._addresses.items()):
            other = self._placement.cell_of(name)
            is_far = bool(target) and other != cell
            found[name] = (await self.links.address(cell, other, target) if is_far else target, incarnation)
        return found

    def _certificates(self) -> dict[str, bytes]:
        """Certificates of the cells that use TLS, by target."""
        endpoints = [remote.endpoint for remote in self.cells.values()]
        return {one.target: one.certificate for one in endpoints if one is not None and one.certificate}

    async def configure_all(self) -> None:
        """Tell all cells who lives where. A cell that dies just now is told when it is back."""
        self._host_addresses = await self._addresses_for(plans.DRIVER_CELL)
        self.configure_host()
        await self._tell_all(self._configure)

    async def _tell_all(self, what: Callable[[RemoteCell], Awaitable[None]]) -> None:
        """Returns when all have heard that can: one that stands still hears it when it goes on, and nobody waits for
        that."""

        async def tell(remote: RemoteCell) -> None:
            process = remote.incarnation
            while remote.connected and not remote.paused and remote.incarnation == process:
                try:
                    await what(remote)
                    return
                except grpc.aio.AioRpcError as error:
                    if error.code() is not grpc.StatusCode.DEADLINE_EXCEEDED:
                        return  # the process died

        told = {
            self.spawn(tell(remote), f"telling cell {remote.name}"): remote
            for remote in self.cells.values()
            if remote.connected and not remote.paused
        }
        while told:
            done, _ = await asyncio.wait(told, timeout=events.STALL_S)
            for task in done:
                task.result()
            now = time.monotonic()
            told = {
                task: remote
                for task, remote in told.items()
                if task not in done and now - (remote.reported_at or now) < _SILENT_S
            }

    def spawn(self, coroutine: Coroutine[Any, Any, None], name: str) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(coroutine, name=name)
        self._tasks[task] = None
        task.add_done_callback(self._task_done)
        return task

    def _task_done(self, task: asyncio.Task[None]) -> None:
        self._tasks.pop(task, None)
        if task.cancelled():
            # Only the end of the run cancels them: with a cell that is not watched any more it would wait for ever.
            if not self._is_ending:
                self._fail(SimulationError(f"{task.get_name()} was cancelled in the middle of the run"))
        elif (error := task.exception()) is not None:
            self._fail(error)

    # Actors

    def cell_of(self, name: str) -> RemoteCell | None:
        """None: it lives in the driver. Raises KeyError."""
        cell_name = self._placement.cell_of(name)
        return None if cell_name == plans.DRIVER_CELL else self.cells[cell_name]

    def enlist(self, names: Iterable[str]) -> None:
        """They are about to start, each as a new incarnation."""
        for name in names:
            self._incarnations[name] = self._incarnations.get(name, 0) + 1
            remote = self.cell_of(name)
            self._addresses[name] = (remote.target if remote is not None else "", self._incarnations[name])

    async def delist(self, name: str) -> None:
        """It does not run any more."""
        self._addresses.pop(name, None)
        await self.configure_all()

    async def stop(self, remote: RemoteCell, names: Sequence[str]) -> None:
        """Stop actors of a cell, in this order."""
        self._resume(remote)
        # They are no longer wanted, whatever becomes of their cell meanwhile.
        for name in names:
            del remote.actors[name]
        async with remote.ordering:
            with contextlib.suppress(grpc.aio.AioRpcError):
                await remote.stop(names)
            remote.forget(names)

    async def crash(self, remote: RemoteCell, name: str) -> None:
        """Crash an actor of a cell; if it lives there alone, by SIGKILL of the process."""
        del remote.actors[name]
        self._resume(remote)
        async with remote.ordering:
            process = remote.incarnation
            remote.ends_by = f"crash of {name}"
            try:
                await remote.stop([name], crash=True)
                remote.ends_by = ""
            except grpc.aio.AioRpcError:
                if remote.incarnation == process:
                    remote.up.clear()  # with the process
            remote.forget([name])

    async def crash_at(self, name: str, step: str) -> None:
        """Crash an actor when it comes to that step. Returns when that has happened; cancelled before, it does not."""
        remote = self.cell_of(name)
        message = cell_pb2.Fault(id=f"{name} {step}", step=cell_pb2.Fault.Step(actor=name, step=step))
        struck: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        waiting = self._armed.setdefault((name, step), [])
        waiting.append(struck)
        self._faults[message.id] = message
        if remote is None:
            self._host.arm(message.id, name, step)
        try:
            # While its process is away or paused, it is told when it is back.
            if remote is not None and remote.connected and not remote.paused:
                with contextlib.suppress(grpc.aio.AioRpcError):
                    await remote.inject(message)
            await struck
        finally:
            if not struck.done() or struck.cancelled():
                waiting.remove(struck)
                if not waiting:
                    del self._armed[name, step]
                    del self._faults[message.id]
                    self._host.heal(message.id)
                    if remote is not None:
                        self.spawn(self._disarm(remote, message.id), f"disarming {message.id}")

    async def _disarm(self, remote: RemoteCell, fault: str) -> None:
        if remote.connected and not remote.paused:
            with contextlib.suppress(grpc.aio.AioRpcError):
                await remote.heal(fault)

    def _struck(self, name: str, step: str) -> None:
        """A cell has crashed an actor at a step, and may have died with it."""
        self._faults.pop(f"{name} {step}", None)
        remote = self.cell_of(name)
        if remote is not None:
            remote.actors.pop(name, None)
            remote.forget([name])
            remote.ends_by = "" if remote.actors else f"crash of {name} {step}"
        for waiter in self._armed.pop((name, step), []):
            tasks.wake(waiter)

    async def pause(self, remote: RemoteCell, by: str) -> None:
        """``by``: what of the run does it."""
        await remote.pause()
        self._tell_of(remote, log_events.ProcessStopped(pid=remote.pid, by=by))

    def _resume(self, remote: RemoteCell) -> None:
        if remote.resume():
            self._tell_of(remote, log_events.ProcessContinued(pid=remote.pid))

    def kill_process(self, remote: RemoteCell, by: str) -> None:
        """SIGKILL; Ray starts another one, with all actors of this one."""
        remote.ends_by = by
        remote.strike()

    async def resume(self, remote: RemoteCell) -> None:
        self._resume(remote)
        if remote.up.is_set():  # otherwise it is told when it is
            await self._brief(remote)

    # Faults

    async def inject(self, fault: str, what: str, parameters: Mapping[str, Any]) -> None:
        """Raises ValueError for a fault that is in force."""
        if fault in self._faults:
            raise ValueError(f"a fault {fault!r} is in force already")
        kind = cell_pb2.Fault.Kind(what=what, parameters=msgpack.packb(dict(parameters)))
        message = cell_pb2.Fault(id=fault, kind=kind)
        # A machine whose clock was set keeps that time: later processes are told, too.
        if kinds.KINDS[what].lasts or what == skews.JUMP:
            self._faults[fault] = message
        self._host.inject(fault, what, parameters)
        await self._tell_all(lambda remote: remote.inject(message))

    async def heal(self, fault: str) -> int:
        """Returns how often it has struck. Raises ValueError for a fault that is not in force."""
        if fault not in self._faults:
            raise ValueError(f"no fault {fault!r} is in force")
        del self._faults[fault]
        hits = [self._host.heal(fault)]

        async def heal(remote: RemoteCell) -> None:
            hits.append(await remote.heal(fault))

        await self._tell_all(heal)
        return sum(hits)

    def look_for_stopped(self, now: float) -> None:
        """Tell of processes that were stopped from outside, and let go on: of itself such a process tells only
        when it runs again, which may be never. ``now``: real (monotonic) time."""
        if now - self._looked_at < _SILENT_S / 2:
            return
        self._looked_at = now
        for remote in self.cells.values():
            silent_s = now - remote.reported_at
            pid = remote.pid if remote.connected and remote.is_local and not remote.paused else 0
            if remote.stopped_pid and (remote.stopped_pid != pid or silent_s < _SILENT_S):
                if remote.stopped_pid == pid:
                    self._tell_of(remote, log_events.ProcessContinued(pid=pid))
                remote.stopped_pid = 0
                continue
            may_stand = pid and not remote.stopped_pid and remote.reported_at and silent_s >= _SILENT_S
            if may_stand and processes.is_stopped(pid):
                remote.stopped_pid = pid
                start_ns = self._host.clock.now_ns() - round(silent_s * self._settings.speed * SECOND_NS)
                self._tell_of(remote, log_events.ProcessStopped(pid=pid, by="", start=max(0, start_ns)))

    # The end

    def is_quiet(self, now: float) -> bool:
        """Whether every cell is up, has started its actors, and gave a sign of life lately.

        ``now``: real (monotonic) time. Each cell reports all the time, and one that is too busy to report is not idle.
        """
        return all(
            remote.up.is_set() and remote.ready.issuperset(remote.actors) and now - remote.reported_at <= events.STALL_S
            for remote in self.cells.values()
        )

    async def end_supervision(self) -> None:
        """Let no process be started again, and take the events that are left."""
        self._is_ending = True
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for remote in self.cells.values():
            self._resume(remote)
        await asyncio.gather(*(self._events.drain(remote) for remote in self.cells.values()))

    async def end_processes(self) -> None:
        for remote in self.cells.values():
            await remote.disconnect()
        self.kill()

    def kill(self) -> None:
        """End all processes without more ado. May be repeated."""
        for remote in self.cells.values():
            remote.kill()
        if self.cluster is not None:
            self.cluster.forget(self._tell_lost)
            self.cluster.stop()


async def all_of(coroutines: Iterable[Awaitable[Any]]) -> None:
    """Wait for all of them, then raise the first error."""
    for result in await asyncio.gather(*coroutines, return_exceptions=True):
        if isinstance(result, BaseException):
            raise result
