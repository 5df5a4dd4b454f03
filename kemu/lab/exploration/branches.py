"""Runs that begin alike go on from one set-up.

To set a large cluster up takes longer than many a run on it. A *template* is a process that has set one up and stands
still before its schedulers start, or for the runs of a search before the clock does; for each run that begins so it
forks, and the child goes on to the run's end. It is the run that the task would have made by itself, with the same
digest.

    record = carried_out(source, task)       # None: carry it out here

What a set-up depends on is compared, not guessed: the actors that it starts, as plain data, the seed and the latencies
(:class:`Beginning`). A small cluster is set up in less time than a child needs for copies of what it touches.

Neighbours: :mod:`executions` runs one by itself; :mod:`kemu.lab.scenario.playing.plays` starts the actors.
"""

from __future__ import annotations

import functools
import gc
import os
import time
import traceback
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field
from typing import Any, BinaryIO, NoReturn, Protocol, TypeVar, cast

from kemu.emulated.client.message_labels import Reader
from kemu.errors import KemuError, SimulationError
from kemu.lab.exploration import executions
from kemu.lab.exploration.executions import Execution, Log, Request
from kemu.lab.exploration.processes import forks, pipes
from kemu.lab.exploration.processes.tasks import RecordT, RecordT_co, SourceT, SourceT_contra
from kemu.lab.scenario.playing import judging, plans, plays, user
from kemu.lab.scenario.playing.heartbeats import Heartbeats
from kemu.lab.scenario.scenarios import Scenario
from kemu.runtime.env import ActorSpec
from kemu.runtime.runlog.frames import Digester
from kemu.runtime.sim.simulation import SimRuntime
from kemu.runtime.sim.steering.messages import Message
from kemu.runtime.sim.steering.steering import Steering

LEAST_NODES = 200
"""From so many on a template is worth while for cells, which may be the only ones that begin so."""
LEAST_NODES_OF_A_SEARCH = 40
"""The same for runs of a search: a fork, with the pages that its child copies, costs as much as the set-up of 30."""

T = TypeVar("T")

Steps = Generator[Request, Execution, T]
"""Carries out a task: asks for one execution, and returns the record. What the execution raises is thrown in."""


class Task(Protocol[SourceT_contra, RecordT_co]):
    """A task that a template may carry out."""

    def scenario(self, source: SourceT_contra) -> Scenario | None:
        """What it runs in virtual time; None: a template is of no use."""
        ...

    @property
    def is_searched(self) -> bool:
        """A run of a search: its like begin with all actors, schedulers included, and differ in who chooses when
        messages arrive."""
        ...

    def steps(self, source: SourceT_contra, begun: Begun) -> Steps[RecordT_co]: ...


class Begun:
    """What a task begins with: nothing yet."""

    cpu_s = 0.0
    """What the set-up took in another process."""

    def judge(self, scenario: Scenario) -> judging.Judge:
        return judging.Judge(scenario)


def by_itself(task: Task[SourceT, RecordT], source: SourceT) -> RecordT:
    """Carry out a task from the start. Returns its record."""
    return finished(task.steps(source, Begun()))


def finished(steps: Steps[T]) -> T:
    """What these steps return, with the execution that they ask for."""
    try:
        request = next(steps)
    except StopIteration as stop:
        return cast(T, stop.value)
    return _finished(steps, request.execute)


def _finished(steps: Steps[T], execute: Callable[[], Execution]) -> T:
    """The record of a task that has asked."""
    try:
        try:
            execution = execute()
        except Exception as error:
            steps.throw(error)
        else:
            steps.send(execution)
    except StopIteration as stop:
        return cast(T, stop.value)
    raise AssertionError("a task asks for one execution")


# In the process of a worker -------------------------------------------------------------------------------------------


@dataclass
class _Process:
    """What this process has."""

    template: Template | None = None
    failed: list[Beginning] = field(default_factory=list)
    """The last one with which a template came to nothing."""


_process = _Process()


def carried_out(source: SourceT, task: Task[SourceT, RecordT]) -> RecordT | None:
    """The record of a task, by a template; None: there is none, or it failed, and the task is to be carried out here.

    Raises KemuError as the task does.
    """
    if not forks.may_fork():
        return None
    scenario = task.scenario(source)
    least_nodes = LEAST_NODES_OF_A_SEARCH if task.is_searched else LEAST_NODES
    if scenario is None or len(scenario.nodes) < least_nodes or scenario.store.etcd_address:
        return None
    if scenario.holds and not task.is_searched:
        return None
    beginning = Beginning.of(scenario, task.is_searched)
    if beginning in _process.failed:
        return None
    template = _process.template
    if template is None or template.beginning != beginning:
        close()
        template = _process.template = Template(beginning, source, scenario)
    try:
        answer = template.ask(task)
    except BaseException:
        close()
        raise
    if answer is None:
        _process.failed[:] = [beginning]
        close()
        return None
    if isinstance(answer, str):
        raise KemuError(answer)
    return answer[0] if answer else None


def close() -> None:
    """End the template, if there is one."""
    if _process.template is not None:
        _process.template.close()
        _process.template = None


forks.when_idle(close)


@dataclass(frozen=True)
class Beginning:
    """All that the set-up of a cluster depends on."""

    seed: int
    timing: Mapping[str, Any]
    is_searched: bool
    stages: list[list[ActorSpec]]
    user: Mapping[str, Any]
    """Configuration of the user, without what shows only later."""

    @classmethod
    def of(cls, scenario: Scenario, is_searched: bool) -> Beginning:
        beats = Heartbeats(scenario, "sim")
        stages = plays.cluster_stages(scenario, beats)
        if is_searched:
            stages += plays.rest_stages(scenario, beats)
        others = [[spec for spec in stage if spec.name != plans.USER] for stage in stages]
        set_up = user.set_up_by(user_spec(scenario).config)
        return cls(scenario.seed, scenario.timing, is_searched, others, set_up)


def user_spec(scenario: Scenario) -> ActorSpec:
    (spec,) = plans.user(scenario)
    return spec


class Template(forks.Child):
    """The process, as the worker sees it."""

    def __init__(self, beginning: Beginning, source: object, scenario: Scenario) -> None:
        super().__init__(lambda *pipes: _Standing(source, scenario, beginning.is_searched, *pipes).run())
        self.beginning = beginning

    def ask(self, task: Task[Any, RecordT]) -> tuple[RecordT] | tuple[()] | str | None:
        """``(record,)``, or why there is none; ``()``: this one does not begin so; None: a process has died, or the
        set-up failed."""
        return cast("tuple[RecordT] | tuple[()] | str | None", self._ask(task))


# In the template, and in its children ---------------------------------------------------------------------------------


class _NoChoice:
    """Stands for the choosers of runs to come, none of which chooses before the clock starts."""

    def delay_ns(self, message: Message) -> int:
        raise AssertionError("the clock has started")


class _Launched(Begun):
    """A cluster that is set up, up to its nodes, or for a search wholly."""

    def __init__(self, scenario: Scenario, is_searched: bool) -> None:
        self.scenario = scenario
        self.events: list[tuple[int, str, str, Mapping[str, Any]]] = []
        self.digester = Digester()
        self._judges = {judging.asks(scenario): judging.Judge(scenario)}
        self._first = next(iter(self._judges.values()))
        self.steering = Steering(Reader, _NoChoice()) if is_searched else None
        self.runtime = SimRuntime(scenario.seed, self._take, scenario.timing, self.steering)
        self.cpu_s = 0.0

    def _take(self, time_ns: int, actor: str, kind: str, data: Mapping[str, Any]) -> None:
        self.digester.append(time_ns, actor, kind, data)
        self._first.feed(time_ns, actor, kind, data)
        self.events.append((time_ns, actor, kind, data))

    def judge(self, scenario: Scenario) -> judging.Judge:
        """One that has seen the set-up; for a scenario that waits for something, one that has seen nothing."""
        if _waits(scenario):
            return judging.Judge(scenario)
        key = judging.asks(scenario)
        judge = self._judges.get(key)
        if judge is None:
            judge = self._judges[key] = judging.Judge(scenario)
            for event in self.events:
                judge.feed(*event)
        judge.scenario = scenario
        return judge


class _Standing:
    """A template: sets the cluster up, and forks for each task that is asked for."""

    def __init__(
        self, source: object, scenario: Scenario, is_searched: bool, requests: BinaryIO, answers: BinaryIO
    ) -> None:
        self._source = source
        self._requests = requests
        self._answers = answers
        self._launched = _Launched(scenario, is_searched)
        self._steps: Steps[Any] | None = None
        """In a child: its task's."""
        self._log: Log | None = None
        """In a child, once it has gone on."""
        self._request: Request | None = None

    def run(self) -> NoReturn:
        """Comes to its end in each child, with its answer, and in the template if the set-up fails."""
        launched = self._launched
        raised: Exception | None = None
        error, end = None, None
        try:
            end = plays.run(launched.runtime, self._drive())
        except SimulationError as found:
            error = found
        except Exception as found:
            raised = found
        request, steps = self._request, self._steps
        if request is None or steps is None:
            os._exit(1)

        def execute() -> Execution:
            if raised is not None:
                raise raised
            judge = request.judge
            assert judge is not None
            how = end or judging.End("interrupted", judge.history.now_ns)
            digester = launched.digester if self._log is None else self._log.digester
            return executions.concluded(request.scenario, digester, judge, how, error, launched.steering)

        self._answer(lambda: _finished(steps, execute))

    def _answer(self, make: Callable[[], Any]) -> NoReturn:
        answer: Any
        gc.disable()  # the process ends with its answer, and what is left of the cluster with it
        try:
            answer = (make(),)
        except MemoryError:
            os._exit(1)
        except KemuError as error:
            answer = str(error)
        except Exception:
            answer = traceback.format_exc()
        pipes.send(self._answers, answer)
        os._exit(0)

    async def _drive(self) -> judging.End:
        launched = self._launched
        runtime, scenario = launched.runtime, launched.scenario
        beats = Heartbeats(scenario, "sim")
        is_whole = launched.steering is not None
        roster = await (plays.start if is_whole else plays.start_cluster)(runtime, scenario, beats)
        launched.cpu_s = time.process_time()
        request = self._branch()
        scenario, recorder = request.scenario, self._turn_to(request)
        beats = Heartbeats(scenario, "sim")
        if not is_whole:
            roster += await plays.start_rest(runtime, scenario, beats)
        return await plays.play(runtime, scenario, recorder, beats, roster)

    def _branch(self) -> Request:
        """Stand still. Returns in children only."""
        template = os.getpid()
        while (task := pipes.receive(self._requests)) is not None:
            scenario = task.scenario(self._source)
            steering = self._launched.steering
            if steering is not None and not steering.spares(scenario.holds):
                pipes.send(self._answers, ())
                continue
            self._launched.judge(scenario)  # for those that come after it, too
            child = self._launched.runtime.loop.fork()
            if child == 0:
                forks.enter(template)
                self._steps = task.steps(self._source, self._launched)
                try:
                    self._request = next(self._steps)
                except StopIteration as stop:
                    self._answer(functools.partial(_same, stop.value))
                return self._request
            _, status = os.waitpid(child, 0)
            if status != 0:
                os._exit(1)
        os._exit(0)

    def _turn_to(self, request: Request) -> plays.Recorder:
        """Go on with this scenario, as if it had been this one from the start."""
        launched, scenario, judge = self._launched, request.scenario, request.judge
        assert judge is not None, "that of the set-up"
        user.turn_to(launched.runtime.spec_of(plans.USER).config, user_spec(scenario).config)  # type: ignore[arg-type]
        log = self._log = Log(judge, False, request.watcher, launched.digester)
        recorder = plays.Recorder(log.take, scenario, history=judge.history)
        if request.stop is not None:
            request.stop.event = recorder.stop
        waits = _waits(scenario)
        for event in launched.events:
            if waits:
                judge.feed(*event)
            if request.watcher is not None:
                request.watcher(*event)
            if waits:
                recorder.triggers.feed(*event)
        launched.runtime.sink = recorder if waits else log.take
        if launched.steering is not None:
            launched.steering.turn_to(request.chooser, scenario.holds)
            launched.runtime.steer(launched.steering)
        return recorder


def _same(record: T) -> T:
    return record


def _waits(scenario: Scenario) -> bool:
    return scenario.until is not None or any(fault.when is not None for fault in scenario.chaos)
