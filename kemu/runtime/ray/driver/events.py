"""The events of all cells, on their way to the sink: followed while a cell lives, recovered after it died.

``logs.merges`` brings them into one order. The streams also tell that an actor failed, and whether anything is going
on; ``runtime`` asks for that here.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import grpc.aio

from kemu.runtime import loads, runtimes, user_code
from kemu.runtime.env import SECOND_NS, LogSink
from kemu.runtime.ray.driver.cells import RemoteCell
from kemu.runtime.ray.driver.logs import ledgers, merges
from kemu.runtime.rpc import ends
from kemu.runtime.runlog import events

_ENDINGS = (events.ActorStopped.KIND, events.ActorCrashed.KIND, events.ActorFailed.KIND)

STALL_S = 0.3
"""Real time without a sign of life after which a cell, or the driver, counts as stalled. Cells give one every 0.1 s."""

_DRAIN_S = 5.0

_DRIVER: merges.Source = (1 << 30, 1)
"""Sorted behind all cells: the driver mostly reacts to them."""


class EventStreams:
    def __init__(
        self,
        sink: LogSink,
        now_ns: Callable[[], int],
        fail: Callable[[BaseException], None],
        measured: loads.Loads,
        speed: float,
        directory: Path,
    ) -> None:
        """``now_ns``: virtual time of the driver. ``fail`` is called with ActorFailed. ``measured``: where the loads of
        the cells go. ``directory``: of the run."""
        self._loads = measured
        self._speed = speed
        self.on_strike: Callable[[str, str], None] = lambda actor, step: None
        """Told of an actor that has crashed at a step, as it was to."""
        self.busy_at = time.monotonic()
        """When an actor last decided something, or had a timer that keeps the run alive; real (monotonic) time."""
        self._merger = merges.LogMerger(sink, int(merges.PATIENCE_S * speed * SECOND_NS))
        self._merger.open(_DRIVER)
        self._ledger = ledgers.Ledger(directory, self._received)
        self._alive: dict[merges.Source, dict[str, None]] = {}
        """Actors that run in a process, as its events tell."""
        self._now_ns = now_ns
        self._fail = fail
        self._sink = sink
        self._names: dict[merges.Source, str] = {_DRIVER: "driver"}
        """Names of the cells."""

    def log(self, time_ns: int, actor: str, kind: str, data: Mapping[str, Any]) -> None:
        """An event of the driver's own actors, or something that it found out about others."""
        self._merger.append(_DRIVER, time_ns, actor, kind, data)
        self._ledger.keep(time_ns, actor, kind, data)
        if isinstance(data, events.ActorCrashed) and data.step:
            self.on_strike(actor, data.step)
        if not kind.startswith(runtimes.HOUSEKEEPING):
            self.busy_at = time.monotonic()

    def open(self, remote: RemoteCell) -> None:
        """A process has begun: hold back all events that are later than what it has sent."""
        self._merger.open(remote.source)
        assert remote.endpoint is not None
        self._ledger.open(remote.source, remote.process, remote.endpoint.segment, remote.endpoint.address)
        self._names[remote.source] = remote.name
        self._alive[remote.source] = {}
        self._loads.of(remote.name).begin_process()

    @property
    def waiting(self) -> int:
        """How many events wait for cells that have not come as far."""
        return self._merger.waiting

    async def follow(self, remote: RemoteCell) -> None:
        """Take a cell's events for as long as its process, or the connection to it, lives."""
        stream = remote.log(self._merger.received(remote.source), follow=True)
        reached_ns = self._now_ns()
        while True:
            try:
                segment = await stream.read()
            except grpc.aio.AioRpcError:
                return
            if segment is ends.EOF:
                return
            now = time.monotonic()
            if now - remote.reported_at > STALL_S:
                self.busy_at = now  # it is only now going to do what it was asked meanwhile
            remote.reported_at = now
            # The merge hands events on only as far as all sources have come, the driver included.
            now_ns = self._now_ns()
            self._merger.reach(_DRIVER, now_ns)
            reached_ns = segment.time_ns or reached_ns
            self._loads.lag(remote.name, max(0, now_ns - reached_ns) / SECOND_NS / self._speed)
            if segment.HasField("load"):
                self._loads.add(remote.name, segment.load, remote.actors)
            kinds = self._take(remote, segment.events, segment.time_ns)
            self._ledger.look()
            if segment.pending or not all(kind.startswith(runtimes.HOUSEKEEPING) for kind in kinds):
                self.busy_at = now

    def _take(self, remote: RemoteCell, payloads: Iterable[bytes], reached_ns: int) -> list[str]:
        """Returns the kinds of the events."""
        added = self._merger.add(remote.source, payloads, reached_ns)
        alive = self._alive[remote.source]
        for actor, kind, data in added:
            if kind == events.ActorStarted.KIND:
                alive[actor] = None
            elif kind == events.ActorExited.KIND:
                remote.ends_by = f"{actor} ended itself"
            elif kind in _ENDINGS:
                alive.pop(actor, None)
                if isinstance(data, events.ActorCrashed) and data.step:
                    self.on_strike(actor, data.step)
                if isinstance(data, events.ActorFailed):
                    self._fail(user_code.from_text(data.error))
        return [kind for _, kind, _ in added]

    async def drain(self, remote: RemoteCell) -> None:
        """Take what events a living cell still has, at the end of a run."""
        if not self._merger.is_open(remote.source):
            return
        try:
            async with asyncio.timeout(_DRAIN_S):
                stream = remote.log(self._merger.received(remote.source), follow=False)
                while (segment := await stream.read()) is not ends.EOF:
                    self._take(remote, segment.events, 0)
        except (grpc.aio.AioRpcError, TimeoutError):
            await self.recover(remote)
        else:
            self._close(remote.source)
            del self._alive[remote.source]

    def _close(self, source: merges.Source) -> None:
        """Its events have all come."""
        self._ledger.close_source(source, self._merger.received(source))
        self._merger.close(source)

    def _received(self) -> dict[merges.Source, int]:
        counts = self._merger.counts()
        del counts[_DRIVER]
        return counts

    async def recover(self, remote: RemoteCell) -> list[str]:
        """Take what events a dead process left behind. Returns the actors that died with it."""
        received = self._merger.received(remote.source)
        payloads, missing = await remote.recover_log(received)
        self._take(remote, payloads, 0)
        if missing:
            event = events.LogMissing(known=received + len(payloads), what=missing)
            self.log(self._now_ns(), remote.process, event.KIND, event)
        self._close(remote.source)
        return list(self._alive.pop(remote.source, ()))

    def flush(self) -> None:
        """Hand on everything that waits, and tell what came too late to stand in its place."""
        self._merger.flush()
        now_ns = self._now_ns()
        for source, (count, most_ns) in sorted(self._merger.late.items()):
            event = events.LogLate(events=count, by_ns=most_ns)
            self._sink(now_ns, f"cell/{self._names[source]}", event.KIND, event)
        self._merger.late.clear()
        self._ledger.close()
