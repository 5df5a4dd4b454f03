"""One run of a scenario in memory: nothing is read from disk and nothing written.

    execution = execute(scenario)
    print(execution.outcome, execution.digest)
    for failure in execution.failures:
        print(failure.id, failure.detail)

It is the run that ``kemu run`` would make on sim, with the same digest: both play through
:mod:`kemu.lab.scenario.playing.plays` and judge with :mod:`kemu.lab.scenario.playing.judging`. Here the checks see each
event as it comes. What most runs of a search are not asked for (counters, costs, waiting times) is computed on demand.

Neighbours: :mod:`causes` makes failures comparable; :mod:`kemu.lab.scenario.playing.runner` leaves a run folder.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import msgpack

from kemu.emulated.client.message_labels import Reader, labelled
from kemu.errors import SimulationError
from kemu.lab.checks.history import History
from kemu.lab.exploration import causes
from kemu.lab.scenario.playing import judging, plays
from kemu.lab.scenario.playing.heartbeats import Heartbeats
from kemu.lab.scenario.scenarios import Scenario
from kemu.runtime.env import LogSink
from kemu.runtime.holds import Hold, Label
from kemu.runtime.random_streams import Redraw
from kemu.runtime.runlog.frames import Digester, Entry, unpack_event
from kemu.runtime.sim.simulation import SimRuntime
from kemu.runtime.sim.steering.choosers import Chooser
from kemu.runtime.sim.steering.messages import Message
from kemu.runtime.sim.steering.steering import Steering

FAILS, UNKNOWN, HOLDS = "fails", "unknown", "holds"


@dataclass(frozen=True, slots=True)
class Failure:
    """A check or an expectation that makes the verdict of a run fail, or the error with which the run broke."""

    id: str
    """The id of the check or expectation; ``the-run-broke`` for an error."""
    detail: str
    cause: str
    """The detail without the particulars of the run: equal causes are equal."""


BROKEN = "the-run-broke"


class Execution:
    """A run that is over."""

    def __init__(
        self,
        scenario: Scenario,
        digest: str,
        judged: judging.Judged,
        event_count: int,
        *,
        error: SimulationError | None = None,
        payloads: list[bytes] | None = None,
        steering: Steering | None = None,
    ) -> None:
        self.scenario = scenario
        self.digest = digest
        """As in the verdict of ``kemu run``."""
        self.judged = judged
        self.event_count = event_count
        """How many the run log has."""
        self.error = error
        """With which the run itself broke: an actor that failed, a deadlock, a livelock."""
        self._steering = steering
        self._payloads = payloads

    @property
    def history(self) -> History:
        return self.judged.history

    @property
    def outcome(self) -> str:
        """``holds fails unknown``: that of the verdict."""
        return self.judged.verdict if self.error is None else FAILS

    @cached_property
    def verdict(self) -> dict[str, Any]:
        """What ``kemu run --json`` prints, without ``run`` and ``wall_s``; and ``error``, where the run broke."""
        data = self.judged.data("sim", self.digest)
        if self.error is None:
            return data
        told = _told(self.error)
        return {**data, "verdict": FAILS, "headline": f"fails: the run broke: {told}", "error": told}

    @cached_property
    def failures(self) -> tuple[Failure, ...]:
        """Empty unless the verdict is ``fails``."""
        if self.outcome != FAILS:
            return ()
        names = causes.Names(self.scenario.resolved, self.history)
        found = []
        if self.error is not None:
            text = _told(self.error)
            found.append(Failure(BROKEN, text, causes.of_expectation(text, names)))
        found += [
            Failure(check.id, check.detail, causes.of_check(check.detail, names))
            for check in self.judged.countable
            if check.holds is False
        ]
        found += [
            Failure(one.id, one.detail, causes.of_expectation(one.detail, names))
            for one in self.judged.judgements
            if one.holds is False
        ]
        return tuple(found)

    @cached_property
    def deviations(self) -> tuple[Hold, ...]:
        """What the chooser did, as holds: the scenario with them (after its own) runs the same without the chooser."""
        return tuple(self._steering.deviations()) if self._steering is not None else ()

    @property
    def keeps_log(self) -> bool:
        """Whether there are :attr:`events`."""
        return self._payloads is not None

    @cached_property
    def messages(self) -> list[tuple[Message, tuple[Label, ...]]]:
        """All messages between actors, if there was a chooser: in the order in which they were sent."""
        return list(labelled(self._steering.sent)) if self._steering is not None else []

    @cached_property
    def events(self) -> list[Entry]:
        """The run log. Raises ValueError where it was not kept."""
        if self._payloads is None:
            raise ValueError("the run log was not kept: execute(…, keep_log=True)")
        return unpacked(self._payloads)


def execute(
    scenario: Scenario,
    *,
    chooser: Chooser | None = None,
    keep_log: bool = False,
    watcher: LogSink | None = None,
    redraw: Redraw | None = None,
    judge: judging.Judge | None = None,
    stop: Stop | None = None,
) -> Execution:
    """Run a scenario without a matrix (or one variant of it), whatever runtime it names.

    ``watcher`` sees every event as it comes. ``redraw``: from when on chance is that of another seed. ``judge``: a new
    one of this scenario, for a watcher that looks at the history so far; ``stop``: for one that has seen enough.

    Raises ScenarioError and KemuError for what cannot be run at all. A run that breaks is an execution that fails.
    """
    plays.refuse_what_sim_cannot(scenario)
    judge = judge or judging.Judge(scenario)
    log = Log(judge, keep_log, watcher)
    recorder = plays.Recorder(log.take, scenario, history=judge.history)
    if stop is not None:
        stop.event = recorder.stop
    # All that the recorder could do here is to watch for what the scenario waits for.
    waits = scenario.until is not None or any(fault.when is not None for fault in scenario.chaos)
    sink = recorder if waits else log.take
    steering = Steering(Reader, chooser, scenario.holds) if chooser is not None or scenario.holds else None
    runtime = SimRuntime(scenario.seed, sink, scenario.timing, steering, redraw=redraw)
    error = None
    try:
        end = plays.run(runtime, _drive(runtime, scenario, recorder))
    except SimulationError as found:
        error = found
        end = judging.End("interrupted", judge.history.now_ns)
    return concluded(scenario, log.digester, judge, end, error, steering, log.payloads)


def concluded(
    scenario: Scenario,
    digester: Digester,
    judge: judging.Judge,
    end: judging.End,
    error: SimulationError | None,
    steering: Steering | None,
    payloads: list[bytes] | None = None,
) -> Execution:
    """An execution whose events digester and judge have seen."""
    digest, judged = digester.digest(), judge.conclude(end)
    return Execution(scenario, digest, judged, digester.events, error=error, payloads=payloads, steering=steering)


@dataclass(frozen=True)
class Request:
    """A run that something wants to have executed; its fields are as for :func:`execute`."""

    scenario: Scenario
    judge: judging.Judge | None = None
    watcher: LogSink | None = None
    stop: Stop | None = None
    chooser: Chooser | None = None
    redraw: Redraw | None = None

    def execute(self) -> Execution:
        return execute(
            self.scenario,
            chooser=self.chooser,
            watcher=self.watcher,
            redraw=self.redraw,
            judge=self.judge,
            stop=self.stop,
        )


class Stop:
    """Ends a run when asked, as if it were over."""

    def __init__(self) -> None:
        self.event: asyncio.Event | None = None
        """Event of the run; None before it begins."""

    def now(self) -> None:
        if self.event is not None:
            self.event.set()


async def _drive(runtime: SimRuntime, scenario: Scenario, recorder: plays.Recorder) -> judging.End:
    beats = Heartbeats(scenario, "sim")
    roster = await plays.start(runtime, scenario, beats)
    return await plays.play(runtime, scenario, recorder, beats, roster)


_PACKED = 4096
"""Events are digested so many at a time."""


class Log:
    """Digests events, and lets the judge see them."""

    def __init__(
        self,
        judge: judging.Judge,
        keep: bool,
        watcher: LogSink | None = None,
        digester: Digester | None = None,
    ) -> None:
        """``digester``: one that has seen events before these."""
        self._digester = digester or Digester()
        self.payloads: list[bytes] | None = [] if keep else None
        self._packed: list[bytes] = []
        """What the digester has not seen yet."""
        self._pack = msgpack.Packer(use_bin_type=True).pack
        self._feed = judge.feed
        self._watcher = watcher

    @property
    def digester(self) -> Digester:
        """Has seen all events so far."""
        self._flush()
        return self._digester

    def _flush(self) -> None:
        packed, self._packed = self._packed, []
        if self.payloads is not None:
            self.payloads += packed
        self._digester.extend(packed)

    def take(self, time_ns: int, actor: str, kind: str, data: Mapping[str, Any]) -> None:
        # First what the digest covers: a listener that changes data must change neither that nor what the judge saw.
        packed = self._packed
        packed.append(self._pack((time_ns, actor, kind, data)))
        if len(packed) == _PACKED:
            self._flush()
        self._feed(time_ns, actor, kind, data)
        if self._watcher is not None:
            self._watcher(time_ns, actor, kind, data)

    @property
    def events(self) -> list[Entry]:
        """If they are kept."""
        self._flush()
        return unpacked(self.payloads or ())


def unpacked(payloads: Iterable[bytes]) -> list[Entry]:
    return [unpack_event(payload) for payload in payloads]


def _told(error: SimulationError) -> str:
    return f"{type(error).__name__}: {error}"


__all__ = ["BROKEN", "Execution", "Failure", "Log", "Request", "Stop", "concluded", "execute"]
