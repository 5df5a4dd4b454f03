"""The real runtime: actors in Ray actors, over gRPC, on a wall clock that may run faster.

This is the driver. It starts cells (``cells``) according to a plan (``plans``), tells them over gRPC which
actors to run and who lives where, notices when one dies, has its actors started again, and brings their event streams
into one order (``events``). Ray (``clusters``) places processes and starts them again; no call of an actor goes
through it. What a cell does inside is in :mod:`kemu.runtime.ray.cell`; the driver is host to actors, too.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import shutil
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import grpc.aio

from kemu.errors import ActorFailed, SimulationError
from kemu.runtime import tasks
from kemu.runtime.env import SECOND_NS, ActorSpec, LogSink
from kemu.runtime.ray.cell import control, hosts, wall_clocks
from kemu.runtime.ray.driver import cells as ray_cells
from kemu.runtime.ray.driver import clusters, events, plans
from kemu.runtime.ray.driver.cells import RemoteCell
from kemu.runtime.runtimes import Ending
from kemu.v1 import cell_pb2

if TYPE_CHECKING:
    from kemu.runtime.ray.driver import traces
    from kemu.telemetry.otlp import ExportReport

T = TypeVar("T")

BEGIN_LEAD_S = 0.05
"""How far ahead of its announcement the beginning lies, so that all cells know of it in time; at least."""

_LEAD_TO_TELLING = 4
_MOST_LEAD_S = 2.0
"""On a busy machine it is four times as far ahead as it takes to tell everybody, up to this."""

QUIET_S = 0.5
"""Real time without a decision after which a run may be called idle."""

_TICK_S = 0.02
_MOST_DEATHS = 5
_DEATHS_WITHIN_S = 30.0
"""A cell that dies more often than that is beyond help."""


class RayRuntime:
    """Implements ``runtimes.Runtime``. One run; Ray itself may outlive it (``clusters``)."""

    def __init__(
        self,
        seed: int,
        sink: LogSink,
        *,
        directory: str | Path,
        speed: float = 1.0,
        cells: Sequence[plans.CellPlan] = plans.DEFAULT_PLAN,
        ray_address: str | None = None,
        interface: str | None = None,
        epoch_unix_s: int | None = None,
        otlp: str = "",
        start_timeout_s: float = 120.0,
    ) -> None:
        """``directory``: for disks and, while it runs, event segments; the same path is used on every machine.
        ``speed``: virtual seconds in each real one. ``cells``: see ``plans``. ``ray_address``: a cluster to join,
        see ``clusters``; None: mostly a local one of our own. ``interface``: where cells listen: an address, or
        ``node`` for that of their Ray node; None: loopback, but ``node`` on a cluster of several machines. What is
        served there is neither encrypted nor guarded by a password. ``epoch_unix_s``: what virtual time 0 is in
        timestamps; None: now.
        ``otlp``: where to send traces while it runs, ``host:port``; raises KemuError when nobody answers there.
        ``start_timeout_s``: real time for Ray to find a place for a cell.
        """
        if speed <= 0:
            raise ValueError(f"speed must be positive: {speed}")
        self.seed = seed
        self.speed = speed
        self.directory = Path(directory).resolve()
        self._ray_address = ray_address
        self._interface = interface
        self._start_timeout_s = start_timeout_s
        self._placement = plans.Placement(cells)
        self._cluster: clusters.RayCluster | None = None
        self._loop = asyncio.new_event_loop()
        self._host = hosts.Host(self._loop, self._log, self._actor_failed)
        self._host.configure(seed=seed, directory=self.directory, addresses={})
        self._epoch_unix_ns = 0
        self._epoch_unix_s = int(time.time()) if epoch_unix_s is None else epoch_unix_s
        self._configure_clock()
        self._otlp = otlp
        self._traces: traces.Traces | None = None
        self.trace_report: ExportReport | None = None
        """What became of the traces, once the run is over."""
        if otlp:
            # Imported on use: OpenTelemetry is nothing that every run needs.
            from kemu.runtime.ray.driver import traces

            self._traces = traces.Traces(otlp, self._epoch_unix_s)
        self.clock = wall_clocks.WallClock(self._host.clock, self._fail)
        self._events = events.EventStreams(sink, self.clock.now_ns, self._fail)
        self._cells: dict[str, RemoteCell] = {}
        self._specs: dict[str, ActorSpec] = {}
        """Of all actors ever launched, in that order."""
        self._incarnations: dict[str, int] = {}
        self._addresses: dict[str, tuple[str, int]] = {}
        """Target and incarnation of those that are up."""
        self._faults: dict[str, cell_pb2.Fault] = {}
        self._tasks: dict[asyncio.Task[Any], None] = {}
        self._failure: asyncio.Future[None] = self._loop.create_future()
        self._failure.add_done_callback(tasks.retrieve)
        self._closing: asyncio.Task[None] | None = None
        self._looked_at = 0.0
        """Real (monotonic) time at which it was last asked whether the run is idle."""

    # Driving

    def run(self, main: Coroutine[Any, Any, T]) -> T:
        """See ``runtimes.Runtime``. Whatever happens, no process that was started for the run outlives this call."""
        try:
            with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
                return runner.run(self._run(main))
        finally:
            # The orderly way has done this already, unless a second Ctrl-C cut it short.
            for remote in self._cells.values():
                remote.kill()
            if self._cluster is not None:
                self._cluster.stop()

    async def _run(self, main: Coroutine[Any, Any, T]) -> T:
        task = asyncio.create_task(main, name="main")
        either: list[asyncio.Future[Any]] = [task, self._failure]
        try:
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
            if self._failure.done():
                self._failure.result()
            result = task.result()
        finally:
            if not task.done():
                task.cancel()
                with contextlib.suppress(asyncio.CancelledError, Exception):
                    await task
            await self._close()
        if self._failure.done():
            self._failure.result()  # an actor failed while it was stopped
        return result

    def env(self, name: str) -> hosts.Resident:
        return self._host.env(name)

    @property
    def cells(self) -> dict[str, control.Endpoint]:
        """The processes as they are now, by name of the cell."""
        return {name: remote.endpoint for name, remote in self._cells.items() if remote.endpoint is not None}

    async def begin(self) -> None:
        if self._epoch_unix_ns:
            raise RuntimeError("the clock runs already")
        asked_at = time.monotonic()
        await self._configure_all()
        lead_s = min(max(BEGIN_LEAD_S, _LEAD_TO_TELLING * (time.monotonic() - asked_at)), _MOST_LEAD_S)
        self._epoch_unix_ns = time.time_ns() + round(lead_s * SECOND_NS)
        self._configure_clock()
        await self._configure_all()

    def _configure_clock(self) -> None:
        self._host.clock.configure(epoch_unix_ns=self._epoch_unix_ns, speed=self.speed, epoch_unix_s=self._epoch_unix_s)

    async def run_until(
        self, deadline_ns: int, *, stop: asyncio.Event | None = None, until_idle: bool = False
    ) -> Ending:
        """See ``runtimes.Runtime``. Idle: for a while nobody decided anything, and only background timers are set."""
        if not self._epoch_unix_ns:
            raise RuntimeError("call begin() first: until then the clock stands still")
        self._events.busy_at = self._looked_at = time.monotonic()
        while True:
            if stop is not None and stop.is_set():
                return "stopped"
            remaining_s = (deadline_ns - self.clock.now_ns()) / SECOND_NS / self.speed
            if remaining_s <= 0:
                return "deadline"
            if until_idle and self._is_idle():
                return "idle"
            await asyncio.sleep(min(_TICK_S, remaining_s))

    def _is_idle(self) -> bool:
        now = time.monotonic()
        # A driver that was held up does not know what has come in meanwhile.
        if self._host.pending or not self._host.clock.begun or now - self._looked_at > events.STALL_S:
            self._events.busy_at = now
        self._looked_at = now
        # Each cell says so itself, all the time: one that is too busy to speak is not idle.
        return now - self._events.busy_at >= QUIET_S and all(
            remote.up.is_set() and remote.ready.issuperset(remote.actors) and now - remote.reported_at <= events.STALL_S
            for remote in self._cells.values()
        )

    async def shutdown(self) -> None:
        """Stop all actors, last launched first, those next to each other in one go; then end all processes."""
        running = [name for name in reversed(self._specs) if self._is_running(name)]
        for cell_name, names in itertools.groupby(running, self._placement.cell_of):
            await self._stop_in(self._cells.get(cell_name), list(names))
        await self._close()

    async def _close(self) -> None:
        """Take the events that there are, and end all processes.

        Goes on when the caller is cancelled (an actor failed, Ctrl-C), and is waited for at the end of the run.
        """
        if self._closing is None:
            self._closing = asyncio.create_task(self._close_once())
        await asyncio.shield(self._closing)

    async def _close_once(self) -> None:
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for remote in self._cells.values():
            remote.resume()
        await asyncio.gather(*(self._events.drain(remote) for remote in self._cells.values()))
        await self._host.close()
        if self._traces is not None:
            self.trace_report = await self._traces.end(self._cells.values())
        self._events.flush()
        for remote in self._cells.values():
            await remote.disconnect()
            remote.kill()
        if self._cluster is not None:
            self._cluster.stop()
        shutil.rmtree(self.directory / "logs", ignore_errors=True)

    # Events and failures

    def _log(self, time_ns: int, actor: str, kind: str, data: Mapping[str, Any]) -> None:
        """Of the driver's own actors, and what it finds out about others."""
        self._events.log(time_ns, actor, kind, data)
        if self._traces is not None:
            self._traces.feed(time_ns, actor, kind, data)

    def _fail(self, error: BaseException) -> None:
        if not self._failure.done():
            self._failure.set_exception(error)

    def _actor_failed(self, name: str, text: str) -> None:
        self._fail(ActorFailed(text))

    # Cells

    async def _provide_cells(self, specs: Iterable[ActorSpec]) -> None:
        wanted = {} if self._cells else {plan.name: plan for plan in self._placement.eager()}
        for spec in specs:
            name, plan = self._placement.place(spec.name)
            if name != plans.DRIVER:
                wanted[name] = plan
        if self._cluster is None and wanted:
            self._cluster = clusters.RayCluster(self._ray_address, workers=len(wanted))
            if self._interface is None:
                self._interface = ray_cells.NODE if self._cluster.spans_machines() else ray_cells.LOOPBACK
        new = []
        for name, plan in wanted.items():
            if name not in self._cells:
                assert self._cluster is not None
                assert self._interface is not None
                remote = RemoteCell(self._cluster, len(self._cells), name, plan, self.directory, self._interface)
                self._cells[name] = remote
                new.append(remote)
        await _all(self._connect(remote) for remote in new)
        await _all(self._brief(remote) for remote in new)
        for remote in new:
            self._spawn(self._supervise(remote), f"the supervision of cell {remote.name}")

    async def _connect(self, remote: RemoteCell) -> bool:
        """Returns whether there is a new process."""
        if not await remote.connect(self._start_timeout_s):
            return False
        assert self._cluster is not None
        assert remote.endpoint is not None
        if remote.is_local:
            self._cluster.adopt(remote.endpoint.pid)
        self._events.open(remote)
        return True

    async def _brief(self, remote: RemoteCell) -> None:
        """Tell a process all that it should know; if it hears it, it is up."""
        with contextlib.suppress(grpc.aio.AioRpcError):
            await self._configure(remote)
            for fault in sorted(remote.faults - self._faults.keys()):
                await remote.heal(fault)
            for message in list(self._faults.values()):
                await remote.inject(message)
            remote.up.set()

    async def _supervise(self, remote: RemoteCell) -> None:
        """See to it that the cell lives, as long as the run does."""
        deaths: list[float] = []
        while True:
            await self._events.follow(remote)
            remote.up.clear()
            while not remote.up.is_set():
                if await self._has_died(remote):
                    if remote.actors:  # otherwise it died as it was told
                        deaths = [*deaths, time.monotonic()][-_MOST_DEATHS:]
                        if len(deaths) == _MOST_DEATHS and deaths[-1] - deaths[0] < _DEATHS_WITHIN_S:
                            raise SimulationError(
                                f"cell {remote.name} died {_MOST_DEATHS} times in {_DEATHS_WITHIN_S:.0f} s"
                            )
                    await self._replace(remote)
                await self._brief(remote)
            self._spawn(self._start_wanted(remote), f"starting the actors of cell {remote.name}")

    async def _has_died(self, remote: RemoteCell) -> bool:
        """The connection to a process broke: wait until it is known whether the process did, too.

        It may be held up, or the network: then it goes on with all of its actors once it answers again.
        """
        assert self._cluster is not None
        while True:
            if not remote.paused:
                with contextlib.suppress(grpc.aio.AioRpcError):
                    await remote.statistics()
                    return False
                assert remote.endpoint is not None
                if remote.is_local:
                    if self._cluster.has_ended(remote.endpoint.pid):
                        return True
                elif await remote.is_replaced(self._start_timeout_s):
                    return True
            await asyncio.sleep(_TICK_S)

    async def _replace(self, remote: RemoteCell) -> None:
        """Its process has died: take what it left behind, and wait for the next one."""
        for name in self._events.recover(remote):
            self._log(self.clock.now_ns(), name, "actor.crashed", {})
        for name in remote.actors:
            self._addresses.pop(name, None)
        await self._configure_all()
        while not await self._connect(remote):  # noqa: ASYNC110
            await asyncio.sleep(_TICK_S)  # Ray has not noticed yet
        self._enlist(remote.actors)
        await self._configure_all()

    async def _start_wanted(self, remote: RemoteCell) -> None:
        """Have the cell start those of its actors that it has not been told of, and wait until they are ready."""
        while True:
            await remote.up.wait()
            async with remote.ordering:
                ready = await self._begin_wanted(remote)
            if ready is not None:
                break
            await asyncio.sleep(_TICK_S)  # until it is noticed that the process died
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

    async def _launch_in(self, remote: RemoteCell, names: Iterable[str]) -> None:
        """Returns when all are ready, whatever happens to the cell meanwhile."""
        await self._start_wanted(remote)
        while not remote.ready.issuperset(names):  # noqa: ASYNC110
            await asyncio.sleep(_TICK_S)

    async def _configure(self, remote: RemoteCell) -> None:
        async with remote.configuring:
            request = cell_pb2.ConfigureRequest(
                clock=cell_pb2.ClockSetting(
                    epoch_unix_ns=self._epoch_unix_ns, speed=self.speed, epoch_unix_s=self._epoch_unix_s
                ),
                addresses=[
                    cell_pb2.Address(name=name, target=target, incarnation=incarnation)
                    for name, (target, incarnation) in self._addresses.items()
                ],
                directory=str(self.directory),
                seed=self.seed,
                otlp=self._otlp,
            )
            await remote.configure(request)

    async def _configure_all(self) -> None:
        """Tell everybody who lives where. Whoever dies just now is told when it is back."""
        self._host.configure(seed=self.seed, directory=self.directory, addresses=self._addresses)
        await self._tell_all(self._configure)

    async def _tell_all(self, what: Callable[[RemoteCell], Awaitable[None]]) -> None:
        async def tell(remote: RemoteCell) -> None:
            with contextlib.suppress(grpc.aio.AioRpcError):
                await what(remote)

        await _all(tell(remote) for remote in self._cells.values() if remote.connected and not remote.paused)

    def _spawn(self, coroutine: Coroutine[Any, Any, None], name: str) -> None:
        task = self._loop.create_task(coroutine, name=name)
        self._tasks[task] = None
        task.add_done_callback(self._task_done)

    def _task_done(self, task: asyncio.Task[None]) -> None:
        self._tasks.pop(task, None)
        if task.cancelled():
            # Only the end of the run cancels them: with a cell that nobody watches any more it would wait for ever.
            if self._closing is None:
                self._fail(SimulationError(f"{task.get_name()} was cancelled in the middle of the run"))
        elif (error := task.exception()) is not None:
            self._fail(error)

    # The life of actors

    async def launch(self, specs: Sequence[ActorSpec]) -> None:
        for spec in specs:
            if spec.name in self._specs and self._is_running(spec.name):
                raise ValueError(f"an actor named {spec.name!r} is running")
            self._specs[spec.name] = spec
        await self._provide_cells(specs)
        for spec in specs:
            remote = self._cell_of(spec.name)
            if remote is not None:
                remote.actors[spec.name] = spec
        self._enlist(spec.name for spec in specs)
        await self._configure_all()
        mine = []
        theirs: dict[str, list[str]] = {}
        for spec in specs:
            remote = self._cell_of(spec.name)
            if remote is None:
                mine.append(spec)
            else:
                theirs.setdefault(remote.name, []).append(spec.name)
        await _all(
            [
                self._host.start(mine),
                *(self._launch_in(self._cells[control], names) for control, names in theirs.items()),
            ]
        )

    def _enlist(self, names: Iterable[str]) -> None:
        """They are about to start, each as a new incarnation."""
        for name in names:
            self._incarnations[name] = self._incarnations.get(name, 0) + 1
            remote = self._cell_of(name)
            self._addresses[name] = (remote.target if remote is not None else "", self._incarnations[name])

    def _cell_of(self, name: str) -> RemoteCell | None:
        """None: it lives in the driver. Raises KeyError."""
        cell_name = self._placement.cell_of(name)
        return None if cell_name == plans.DRIVER else self._cells[cell_name]

    def _is_running(self, name: str) -> bool:
        remote = self._cell_of(name)
        return name in (self._host.residents if remote is None else remote.actors)

    async def stop(self, name: str) -> None:
        if not self._is_running(name):
            return
        await self._stop_in(self._cell_of(name), [name])
        await self._delist(name)

    async def _stop_in(self, remote: RemoteCell | None, names: Sequence[str]) -> None:
        if remote is None:
            for name in names:
                await self._host.stop(name)
            return
        remote.resume()
        # They are no longer wanted, whatever becomes of their cell meanwhile.
        for name in names:
            del remote.actors[name]
        async with remote.ordering:
            with contextlib.suppress(grpc.aio.AioRpcError):
                await remote.stop(names)
            remote.forget(names)

    async def crash(self, name: str) -> None:
        """See ``runtimes.Runtime``. An actor that has a cell to itself is ended by SIGKILL of the process."""
        if not self._is_running(name):
            return
        remote = self._cell_of(name)
        if remote is None:
            self._host.crash(name)
        else:
            del remote.actors[name]
            remote.resume()
            async with remote.ordering:
                process = remote.incarnation
                try:
                    await remote.stop([name], crash=True)
                except grpc.aio.AioRpcError:
                    if remote.incarnation == process:
                        remote.up.clear()  # with the process
                remote.forget([name])
        await self._delist(name)

    async def _delist(self, name: str) -> None:
        self._addresses.pop(name, None)
        await self._configure_all()

    async def restart(self, name: str, spec: ActorSpec | None = None) -> None:
        if self._is_running(name):
            raise ValueError(f"{name} is running")
        spec = self._specs[name] = spec or self._specs[name]
        remote = self._cell_of(name)
        if remote is None:
            self._enlist([name])
            await self._configure_all()
            self._spawn(self._host.start([spec]), f"starting {spec.name}")
            return
        await remote.up.wait()
        remote.actors[name] = spec
        self._enlist([name])
        await self._configure_all()
        self._spawn(self._start_wanted(remote), f"starting the actors of cell {remote.name}")

    async def pause(self, name: str) -> None:
        """See ``runtimes.Runtime``. Raises SimulationError unless the actor has a process of this machine to itself."""
        remote = self._cell_of(name)
        if remote is None or list(remote.actors) != [name] or not remote.is_local or not remote.up.is_set():
            raise SimulationError(f"{name} cannot be paused: that takes a cell of its own, on the driver's machine")
        remote.pause()

    async def resume(self, name: str) -> None:
        remote = self._cell_of(name)
        if remote is not None and remote.paused:
            remote.resume()
            if remote.up.is_set():  # otherwise it is told when it is
                await self._brief(remote)

    # Faults of the network

    async def partition(self, fault: str, a: Sequence[str], b: Sequence[str], one_way: bool = False) -> None:
        if fault in self._faults:
            raise ValueError(f"partition {fault!r} is there already")
        message = cell_pb2.Fault(id=fault, partition=cell_pb2.Fault.Partition(a=a, b=b, one_way=one_way))
        self._faults[fault] = message
        self._host.partition(fault, a, b, one_way=one_way)
        await self._tell_all(lambda remote: remote.inject(message))

    async def heal(self, fault: str) -> None:
        if fault not in self._faults:
            raise ValueError(f"there is no partition {fault!r}")
        del self._faults[fault]
        self._host.heal(fault)
        await self._tell_all(lambda remote: remote.heal(fault))


async def _all(coroutines: Iterable[Awaitable[Any]]) -> None:
    """Wait for all of them, then raise the first error."""
    for result in await asyncio.gather(*coroutines, return_exceptions=True):
        if isinstance(result, BaseException):
            raise result
