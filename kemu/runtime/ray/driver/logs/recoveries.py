"""The run log of a driver that was killed, from the segments that it and its cells have left.

    recovered = Recovery(folder / "cells", fetch=cluster.fetch)
    recovered.hand_on(writer.append, folder / "run.kemu")

Where a segment is lost, as with its machine, what the driver had got of it and had written is taken from the run log
that it left. What is missing all the same is told by events ``log.missing``, behind all others.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path

import msgpack

from kemu.errors import InfrastructureError, KemuError
from kemu.runtime.env import LogSink
from kemu.runtime.host import segments
from kemu.runtime.ray.driver.logs import ledgers, merges
from kemu.runtime.runlog import frames
from kemu.runtime.runlog.events import LogMissing

Fetch = Callable[[str, str, Path], None]
"""Copies a file that is not here from the machine with an address: address, path there, path here. Raises
InfrastructureError."""

PIECE = 1_000
"""Events of one process that are read at a time."""
_ADVICE = "copy it there if another machine has it"
_DRIVER: merges.Source = (1 << 30, 1)
_WRITTEN: merges.Source = (1 << 31, 1)
"""Events that only the run log has."""
_NEVER_NOTED = 1 << 29
"""Where the numbers of processes begin of which the driver has noted nothing."""


class Process:
    """The segment of one process, and what is known of it."""

    def __init__(self, source: merges.Source, name: str, path: Path, advice: str = _ADVICE) -> None:
        """``advice``: what to do where the file is not there, or why nothing can be done."""
        self.source = source
        self.name = name
        self.path = path
        self._advice = advice
        self.known = 0
        """So many events it had at least."""
        self.read = 0
        self.reached_ns = 0
        self.missing = ""

    def is_whole(self) -> bool:
        """Reads all of it."""
        deque(self.payloads(), maxlen=0)
        return not self.missing

    def payloads(self) -> Iterator[bytes]:
        """Those that are there."""
        self.read = 0
        try:
            for payload in segments.read_segment(self.path):
                self.read += 1
                yield payload
        except FileNotFoundError:
            self.missing = f"there is no {self.path.name} in {self.path.parent}; {self._advice}"
        except (OSError, segments.DamagedSegment) as error:
            self.missing = f"{self.path.name} cannot be read to its end: {error}"
        if not self.missing and self.read < self.known:
            self.missing = f"{self.path.name} ends early: {self.known} events of it had come to the driver"


class Recovery:
    """Raises KemuError where there are no segments, and where the driver is alive."""

    def __init__(self, directory: Path, fetch: Fetch | None = None) -> None:
        """``fetch``: gets segments of other machines."""
        folder = directory / ledgers.FOLDER
        self._fetch = fetch
        found = {path.name: path for path in sorted(folder.glob("*.segment"))}
        if not found:
            raise KemuError(f"{folder}: no log segments")
        self._folder = folder
        self._processes: dict[merges.Source, Process] = {}
        drivers = [path for name, path in found.items() if name.startswith(ledgers.PREFIX)]
        path = drivers[-1] if drivers else folder / f"{ledgers.PREFIX}….segment"
        if drivers and ledgers.is_in_use(path):
            raise KemuError(f"{directory.parent}: the run is still going on")
        self._driver = Process(_DRIVER, "driver", path)
        for payload in self._driver.payloads():
            _, actor, kind, data = msgpack.unpackb(payload, raw=False, strict_map_key=False)
            if actor == ledgers.NOTES:
                self._take_note(kind, data)
        noted = {process.path.name for process in self._processes.values()} | {path.name for path in drivers}
        for number, name in enumerate(name for name in found if name not in noted):
            # It began just before the driver was killed, or it is not known any more.
            source = (_NEVER_NOTED + number, 1)
            self._processes[source] = Process(source, f"cell/{name.rsplit('-', 2)[0]}", found[name])

    def _take_note(self, kind: str, data: dict[str, object]) -> None:
        match kind, data:
            case ledgers.OPENED, {"source": [int(number), int(incarnation)], "process": str(name), "path": str(path)}:
                source = number, incarnation
                here = self._folder / Path(path).name
                advice = self._fetch_to(here, str(data.get("address", "")), path)
                self._processes[source] = Process(source, name, here, advice)
            case ledgers.RECEIVED, {"events": list(counts)}:
                for number, incarnation, count in counts:
                    self._processes[number, incarnation].known = count
            case ledgers.CLOSED, {"source": [int(number), int(incarnation)], "events": int(count)}:
                self._processes[number, incarnation].known = count

    def _fetch_to(self, here: Path, address: str, path: str) -> str:
        """Get the file from its machine. Returns the advice for who misses it."""
        if not address:
            return _ADVICE
        if self._fetch is None:
            return f"{_ADVICE}, or name the Ray cluster of the run (--ray)"
        try:
            self._fetch(address, path, here)
        except InfrastructureError as error:
            return str(error)
        return _ADVICE

    def hand_on(self, sink: LogSink, log: Path | None = None) -> list[str]:
        """All events in the order in which they came about. ``log``: the run log that the driver left. Returns what is
        missing, as sentences."""
        processes = [self._driver, *self._processes.values()]
        merger = merges.LogMerger(sink)
        missing = [process for process in processes if not process.is_whole()]
        left = {process.source: process.payloads() for process in processes}
        written = Process(_WRITTEN, "", log or self._folder)
        if missing and log is not None:
            left[_WRITTEN] = _counted(written, _in_no_segment(log, [process.payloads() for process in processes]))
            processes.append(written)
        for source in left:
            merger.open(source)
        end_ns = 0
        while left:
            process = min((each for each in processes if each.source in left), key=lambda each: each.reached_ns)
            piece = list(islice(left[process.source], PIECE))
            for payload in piece:
                process.reached_ns = max(process.reached_ns, frames.time_of(payload))
            end_ns = max(end_ns, process.reached_ns)
            merger.add(process.source, [each for each in piece if not _is_note(each)], process.reached_ns)
            if len(piece) < PIECE:
                del left[process.source]
                merger.close(process.source)
        merger.flush()
        for process in missing:
            if written.read:
                found = f"{written.read} events were in {written.path.name}"
                process.missing += f"; {found}, as far as the driver had written it"
            # Of several that are lost it is not known whose they were.
            known = process.read + (written.read if len(missing) == 1 else 0)
            event = LogMissing(known=known, what=process.missing)
            sink(end_ns, process.name, event.KIND, event)
        return [f"{process.name}: {process.missing}" for process in missing]


def _counted(process: Process, payloads: Iterable[bytes]) -> Iterator[bytes]:
    for payload in payloads:
        process.read += 1
        yield payload


def _in_no_segment(log: Path, segments_left: Iterable[Iterator[bytes]]) -> Iterator[bytes]:
    """The events of a run log that none of these segments has."""
    left = [_Unwritten(each) for each in segments_left]
    with frames.Reader(log) as reader:
        for entry in reader:
            if entry.kind not in _OF_READERS and not any(each.take(entry) for each in left):
                yield msgpack.packb(entry)


class _Unwritten:
    """The events of a segment that have not been found in the run log, up to the time of the latest one that has.

    In the log an event may have a later time, that of its cause. Of an actor it has all events before another process
    took the actor over, so the events of a lost process are not taken for those of the next one.
    """

    def __init__(self, payloads: Iterator[bytes]) -> None:
        self._payloads = payloads
        self._waiting: dict[str, deque[frames.Entry]] = {}
        """By actor."""
        self._reached_ns = -1

    def take(self, entry: frames.Entry) -> bool:
        """Whether it has this one, and has not been asked for it before."""
        while self._reached_ns <= entry.time_ns and (payload := next(self._payloads, None)) is not None:
            if not _is_note(payload):
                found = frames.unpack_event(payload)
                self._waiting.setdefault(found.actor, deque()).append(found)
                self._reached_ns = max(self._reached_ns, found.time_ns)
        for one in (waiting := self._waiting.get(entry.actor, deque())):
            if one.time_ns <= entry.time_ns and (one.kind, one.data) == (entry.kind, entry.data):
                waiting.remove(one)
                return True
        return False


def _is_note(payload: bytes) -> bool:
    return payload.startswith(_NOTE)


_OF_READERS = (frames.CUT, LogMissing.KIND)
"""Kinds of events that tell of a log that is not whole."""
_NOTE = b"\x94\x00" + msgpack.packb(ledgers.NOTES)
"""How an event of four parts begins that has the time 0 and that actor."""
