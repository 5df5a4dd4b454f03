"""Spans from run-log events, one by one.

A :class:`SpanBuilder` sees all events of a run, or all that bear on some of its pods (``indexes``). Of a log
with gaps it makes the spans that it can.

No event is kept. What is kept of a pod (``drafts``) is dropped when the pod is gone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import kemu
from kemu.errors import RunLogError
from kemu.lab.telemetry.api_calls import ApiCalls
from kemu.lab.telemetry.api_events import ApiEvents
from kemu.lab.telemetry.drafts import Drafts, Handler
from kemu.lab.telemetry.kubelet_events import KubeletEvents
from kemu.lab.telemetry.runs import Run
from kemu.lab.telemetry.scheduler_events import SchedulerEvents
from kemu.lab.telemetry.spans import Span
from kemu.runtime.runlog.events import BY_KIND, Event, typed
from kemu.runtime.runlog.frames import Entry, Reader

NOT_UNDERSTOOD = (LookupError, TypeError, AttributeError, ValueError)
"""What events of another version lead to."""


def not_understood(reader: Reader, kind: str, error: Exception) -> RunLogError:
    """The error of a log that has such an event."""
    text = f"an event {kind} cannot be understood ({type(error).__name__}: {error})"
    writer = reader.header.get("kemu", "an unknown version")
    return RunLogError(f"{reader.path}: {text}; the log is by kemu {writer}, this is kemu {kemu.__version__}")


_NAMELESS = Run("")


class SpanBuilder:
    """``feed`` it every event in order, then ``flush``."""

    def __init__(self, run: Run = _NAMELESS, epoch_unix_ns: int = 0, *, api_calls: bool = False) -> None:
        """``epoch_unix_ns``: Unix time of virtual time 0, added to all times. ``api_calls``: each call of the API that
        is about a pod has a span of the client and, where the log tells of it, one of the server."""
        self._drafts = Drafts(run, epoch_unix_ns)
        self._calls = ApiCalls(self._drafts) if api_calls else None
        self._handlers: dict[str, Handler] = {
            **{kind: self._drafts.told for kind, event in BY_KIND.items() if event.traced is not Event.traced},
            **ApiEvents(self._drafts, self._calls).handlers,
            **(self._calls.handlers if self._calls is not None else {}),
            **SchedulerEvents(self._drafts).handlers,
            **KubeletEvents(self._drafts).handlers,
            **self._drafts.faults.handlers,
        }

    @property
    def kinds(self) -> frozenset[str]:
        """Kinds of the events that spans follow from."""
        return frozenset(self._handlers)

    def feed(self, time_ns: int, actor: str, kind: str, data: Mapping[str, Any]) -> Sequence[Span]:
        """The spans that are finished by this event."""
        self._drafts.move_to(time_ns)
        handler = self._handlers.get(kind)
        if handler is None:
            return ()
        handler(time_ns, actor, typed(kind, data))
        return self._drafts.take()

    def of_log(self, reader: Reader) -> Iterator[Sequence[Span]]:
        """The spans of a whole log, event by event. Raises RunLogError where it is not one of this version."""
        return self.of_events(reader, reader)

    def of_events(self, reader: Reader, events: Iterable[Entry], end_ns: int = 0) -> Iterator[Sequence[Span]]:
        """The same of some of its events. ``end_ns``: when the log ends, where the last of them is not its last."""
        for time_ns, actor, kind, data in events:
            try:
                finished = self.feed(time_ns, actor, kind, data)
            except NOT_UNDERSTOOD as error:
                raise not_understood(reader, kind, error) from error
            yield finished
        self._drafts.move_to(end_ns)
        yield self.flush()

    def flush(self) -> list[Span]:
        """The run is over: what is still open ends now, and says so (``kemu.open``)."""
        if self._calls is not None:
            self._calls.end_all()
        self._drafts.end_all()
        return self._drafts.take()
