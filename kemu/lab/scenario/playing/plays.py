"""Plays a scenario on a runtime: starts its actors, lets time pass, and says how it ended.

    recorder = Recorder(writer.append, scenario)
    end = run(runtime, drive(runtime, scenario, recorder, Heartbeats(scenario, "sim")))

The order of a run: store, API servers; the user's set-up (namespaces, priority classes, manifests); kubelets, which
register their nodes and take over the pods that run there already; schedulers. Then the clock starts at 0, and events,
workloads and faults come in their time. The run ends at its duration, when ``until`` holds, or when nothing can happen
any more.

Neighbours: :mod:`plans` (which actors), :mod:`faults` (chaos), :mod:`judging` (what came of it); :mod:`runner` plays
into a run folder.
"""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping, Sequence
from typing import Any

from kemu.errors import ActorFailed, KemuError, ScenarioError, SimulationError
from kemu.lab.checks.history import History
from kemu.lab.scenario.format.events import OF_MACHINES
from kemu.lab.scenario.format.keys import timing_keys
from kemu.lab.scenario.loading import clusters
from kemu.lab.scenario.playing import judging, plans
from kemu.lab.scenario.playing.faults import Chaos
from kemu.lab.scenario.playing.heartbeats import Heartbeats
from kemu.lab.scenario.playing.operators import OPERATOR, Operator, Provisioner
from kemu.lab.scenario.playing.progress import RUNNING, Progress
from kemu.lab.scenario.playing.triggers import Triggers
from kemu.lab.scenario.scenarios import Fault, Scenario, Trigger
from kemu.runtime import garbage
from kemu.runtime.env import ActorSpec, LogSink
from kemu.runtime.faults.hits import CHAOS
from kemu.runtime.faults.kinds import CELL, PROCESS_FAULTS
from kemu.runtime.ray.driver import plans as cell_plans
from kemu.runtime.runlog.events import PodBound, RunEnded
from kemu.runtime.runtimes import Runtime


class Recorder:
    """The sink of a run: passes events on, counts them, and looks in them for what the scenario waits for."""

    def __init__(
        self,
        append: LogSink,
        scenario: Scenario,
        progress: Progress | None = None,
        most_events: int = 0,
        history: History | None = None,
    ) -> None:
        """``history``: one that ``append`` feeds, for triggers to look at; without it they fold their own."""
        self._append = append
        self._most_events = most_events
        self.progress = progress
        self.triggers = Triggers(scenario, history)
        self.stop = self.triggers.watch(Trigger(scenario.until)) if scenario.until is not None else asyncio.Event()
        """Set when ``until`` holds, or when there are more than ``most_events``."""
        self.kinds: dict[str, int] = {}
        if progress is not None:
            progress.kinds = self.kinds
        self._events = 0
        self._feed = self.triggers.feed if self.triggers.are_possible else None

    def __call__(self, time_ns: int, actor: str, kind: str, data: Mapping[str, Any]) -> None:
        self._append(time_ns, actor, kind, data)
        self.kinds[kind] = self.kinds.get(kind, 0) + 1
        if self._most_events:
            self._events += 1
            if self._events > self._most_events:
                self.stop.set()
        if self._feed is not None:
            self._feed(time_ns, actor, kind, data)
        progress = self.progress
        if progress is not None:
            progress.now_ns = time_ns
            if isinstance(data, PodBound) and data.ok:
                progress.bound += 1


def refuse_what_sim_cannot(scenario: Scenario) -> None:
    """Raises KemuError for a scenario that needs something from outside of virtual time."""
    if scenario.store.etcd_address:
        raise KemuError("a real etcd is outside of virtual time: store.etcd needs --runtime wall or ray")
    _refuse_processes(scenario, "virtual time")
    outside = clusters.outside_extenders(scenario)
    if outside:
        raise KemuError(
            f"{outside[0]} is outside of virtual time: an extender of that address needs --runtime wall or ray"
        )


def refuse_what_needs_virtual_time(scenario: Scenario) -> None:
    """Raises KemuError for a scenario whose actors share what only virtual time can share out."""
    if timing_keys.CORES in scenario.timing:
        raise KemuError("timing.cores needs --runtime sim: in real time actors share the cores of the machine")


def refuse_what_wall_cannot(scenario: Scenario) -> None:
    """Raises KemuError for a scenario that needs more than one process."""
    _refuse_processes(scenario, "one process")
    for fault in scenario.chaos:
        if fault.parameters.get("belowGrpc"):
            text = f"{fault.what}: belowGrpc: actors of one process call each other without gRPC's connections"
            raise KemuError(f"{fault.place}: {text}: run it with --runtime ray")


def _refuse_processes(scenario: Scenario, where: str) -> None:
    for fault, pattern in _processes(scenario):
        if not pattern.startswith(CELL):
            text = f"{fault.what}: {pattern} has no counterpart in {where}, which has only cells"
            raise KemuError(f"{fault.place}: {text}: run it with --runtime ray")


def _processes(scenario: Scenario) -> Iterator[tuple[Fault, str]]:
    """The patterns of the processes that its faults concern."""
    for fault in scenario.chaos:
        if fault.what in PROCESS_FAULTS:
            yield from ((fault, pattern) for groups in fault.actors.values() for group in groups for pattern in group)


def _refuse_unreachable(runtime: Runtime, scenario: Scenario) -> None:
    """Raises KemuError for faults of processes that are not the run's own, before anything has happened."""
    for fault, pattern in _processes(scenario):
        try:
            runtime.processes(pattern)
        except SimulationError as error:
            raise KemuError(f"{fault.place}: {fault.what}: {error}") from None


def run(runtime: Runtime, playing: Coroutine[Any, Any, judging.End]) -> judging.End:
    """Run to the end. Raises SimulationError when the run itself broke."""
    try:
        return runtime.run(playing)
    except ActorFailed as error:
        # A manifest that the API server refuses is a mistake in the scenario, whichever actor reports it.
        if isinstance(error.__cause__, ScenarioError):
            raise error.__cause__ from None
        raise


async def start(
    runtime: Runtime,
    scenario: Scenario,
    beats: Heartbeats,
    progress: Progress | None = None,
    furnish: Furnish | None = None,
) -> list[str]:
    """Set up: start all actors, stage by stage. Returns their names."""
    roster = await start_cluster(runtime, scenario, beats, progress, furnish)
    return roster + await start_rest(runtime, scenario, beats, progress)


async def start_cluster(
    runtime: Runtime,
    scenario: Scenario,
    beats: Heartbeats,
    progress: Progress | None = None,
    furnish: Furnish | None = None,
) -> list[str]:
    """The first half of :func:`start`: the store, the API servers, what the user sets up, and the nodes."""
    stages = cluster_stages(scenario, beats)
    if furnish is None:
        return await _start(runtime, stages, progress)
    roster = await _start(runtime, stages[:-_AFTER_SERVERS], progress)
    await furnish()
    return roster + await _start(runtime, stages[-_AFTER_SERVERS:], progress)


async def start_rest(
    runtime: Runtime, scenario: Scenario, beats: Heartbeats, progress: Progress | None = None
) -> list[str]:
    """The second half: what decides about the pods that will come."""
    return await _start(runtime, rest_stages(scenario, beats), progress)


Furnish = Callable[[], Awaitable[None]]
"""Puts into a cluster what the user's objects need; called when the API servers stand."""
_AFTER_SERVERS = 2
"""Stages that come after the API servers."""


def cluster_stages(scenario: Scenario, beats: Heartbeats) -> list[list[ActorSpec]]:
    """The actors of :func:`start_cluster`."""
    return [
        plans.store(scenario),
        *plans.apiserver_stages(scenario),
        plans.user(scenario),
        plans.kubelets(scenario, beats),
    ]


def rest_stages(scenario: Scenario, beats: Heartbeats) -> list[list[ActorSpec]]:
    """Those of :func:`start_rest`."""
    return [
        plans.extenders(scenario),
        plans.schedulers(scenario),
        plans.cloud(scenario),
        plans.controllers(scenario, beats),
    ]


async def _start(runtime: Runtime, stages: Sequence[Sequence[ActorSpec]], progress: Progress | None) -> list[str]:
    roster: list[str] = []
    for stage in stages:
        if progress is not None:
            progress.actors += len(stage)
        await runtime.launch(stage)
        roster.extend(spec.name for spec in stage)
    return roster


async def launch(
    runtime: Runtime,
    scenario: Scenario,
    beats: Heartbeats,
    progress: Progress | None = None,
    furnish: Furnish | None = None,
) -> list[str]:
    """:func:`start`, for a run that is long enough to spare the garbage collector what lives to its end."""
    roster = await start(runtime, scenario, beats, progress, furnish)
    # A whole collection of a large cluster takes seconds, and finds next to nothing.
    gc.collect(0)
    garbage.freeze()
    garbage.use_large_pages()
    return roster


Drive = Callable[[Runtime, Scenario, Recorder, Heartbeats], Coroutine[Any, Any, judging.End]]
"""Starts the actors of a scenario and lets it run to its end, as :func:`drive` does."""


async def drive(runtime: Runtime, scenario: Scenario, recorder: Recorder, beats: Heartbeats) -> judging.End:
    """The whole run."""
    roster = await launch(runtime, scenario, beats, recorder.progress)
    if recorder.progress is not None:
        recorder.progress.phase = RUNNING
    return await play(runtime, scenario, recorder, beats, roster)


async def play(
    runtime: Runtime, scenario: Scenario, recorder: Recorder, beats: Heartbeats, roster: list[str]
) -> judging.End:
    """From the time 0 to the end; the actors of ``roster`` stand ready."""
    _refuse_unreachable(runtime, scenario)
    await runtime.begin()
    course = Course(runtime, scenario, beats, roster, recorder.triggers)
    try:
        reason = await runtime.run_until(scenario.duration_ns, stop=recorder.stop, until_idle=True)
    finally:
        course.cancel()
    return await course.end(reason)


class Course:
    """What a scenario does to machines and actors while time passes: begins when it is made."""

    def __init__(
        self,
        runtime: Runtime,
        scenario: Scenario,
        beats: Heartbeats,
        roster: list[str],
        triggers: Triggers,
        *,
        tells_restart: bool = False,
    ) -> None:
        """``tells_restart``: see :class:`Chaos`."""
        self._runtime = runtime
        operator = Operator(runtime, scenario, roster, beats)
        cells = cell_plans.Placement(cell_plans.of(scenario.cells))
        self._chaos = Chaos(runtime, roster, operator.machines, triggers, cells, tells_restart=tells_restart)
        self._tasks: list[asyncio.Task[Any]] = []
        if scenario.autoscaler is not None:
            provisioner = Provisioner(runtime, scenario, operator)
            self._tasks.append(runtime.env(OPERATOR).spawn(provisioner.run(), "orders of the cloud"))
        for fault in scenario.chaos:
            self.strike(fault)
        self._tasks += [
            runtime.env(OPERATOR).spawn(operator.carry_out(event), f"event {event.index}")
            for event in scenario.events
            if event.what in OF_MACHINES
        ]

    def strike(self, fault: Fault) -> asyncio.Task[Any]:
        """Carry out a fault at its time. The task ends with the fault, or with its beginning if it lasts for ever."""
        task = self._runtime.env(CHAOS).spawn(self._chaos.carry_out(fault), fault.id)
        self._tasks.append(task)
        return task

    def cancel(self) -> None:
        for task in self._tasks:
            task.cancel()

    async def end(self, reason: str) -> judging.End:
        """The run is over: note it, and stop all actors."""
        runtime = self._runtime
        now_ns = runtime.clock.now_ns()
        still = {} if runtime.idle_is_still else {"still": False}
        runtime.env(OPERATOR).log(RunEnded(reason=reason, **still))
        await runtime.shutdown()
        return judging.End(reason, now_ns)
