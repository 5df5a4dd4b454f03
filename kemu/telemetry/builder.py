"""Spans from run-log events, one by one.

A :class:`SpanBuilder` may see all events of a run, or only those of the actors of one cell. It makes the spans that it
can, and the spans of several builders fit together because their ids are derived (``spans``). The builder that saw the
API server create a pod emits its root span.

No event is kept. What is kept of a pod (``drafts``) is dropped when the pod is gone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import kemu
from kemu.errors import RunLogError
from kemu.runlog.frames import Reader
from kemu.telemetry.api_events import ApiEvents
from kemu.telemetry.drafts import Drafts, Handler
from kemu.telemetry.kubelet_events import KubeletEvents
from kemu.telemetry.scheduler_events import SchedulerEvents
from kemu.telemetry.spans import Span


class SpanBuilder:
    """``feed`` it every event in order, then ``flush``."""

    def __init__(self, epoch_unix_s: int = 0) -> None:
        """``epoch_unix_s``: Unix time of virtual time 0, added to all times."""
        self._drafts = Drafts(epoch_unix_s)
        self._handlers: dict[str, Handler] = {
            **ApiEvents(self._drafts).handlers,
            **SchedulerEvents(self._drafts).handlers,
            **KubeletEvents(self._drafts).handlers,
            **self._drafts.faults.handlers,
        }

    def feed(self, time_ns: int, actor: str, kind: str, data: Mapping[str, Any]) -> Sequence[Span]:
        """The spans that are finished by this event."""
        self._drafts.move_to(time_ns)
        handler = self._handlers.get(kind)
        if handler is None:
            return ()
        handler(time_ns, actor, data)
        return self._drafts.take()

    def of_log(self, reader: Reader) -> Iterator[Sequence[Span]]:
        """The spans of a whole log, event by event. Raises RunLogError where it is not one of this version."""
        for time_ns, actor, kind, data in reader:
            try:
                finished = self.feed(time_ns, actor, kind, data)
            except (LookupError, TypeError, AttributeError, ValueError) as error:
                text = f"an event {kind} cannot be understood ({type(error).__name__}: {error})"
                writer = reader.header.get("kemu", "an unknown version")
                versions = f"the log is by kemu {writer}, this is kemu {kemu.__version__}"
                raise RunLogError(f"{reader.path}: {text}; {versions}") from error
            yield finished
        yield self.flush()

    def flush(self) -> list[Span]:
        """The run is over: what is still open ends now, and says so (``kemu.open``)."""
        self._drafts.end_all()
        return self._drafts.take()
