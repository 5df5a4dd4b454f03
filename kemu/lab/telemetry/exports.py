"""What sending traces to a collector comes to. ``otlp`` does it; who only passes the result on imports this instead, as
OpenTelemetry takes long to import.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from kemu.lab.telemetry.runs import Run


@dataclass(frozen=True, slots=True)
class Moment:
    """Unix time."""

    unix_ns: int
    is_end: bool
    """Whether it is about the run's end; else, about its beginning."""


@dataclass(frozen=True, slots=True)
class Manner:
    """How the traces of a run are sent."""

    at: Moment | None = None
    """When it shall have taken place; None: at the run's own times."""
    run_id: str = ""
    """An id of its own for the run; empty: that of its log."""
    api_calls: bool = False
    """With a span of the client and one of the server for each call of the API that is about a pod."""


@dataclass(frozen=True, slots=True)
class ExportReport:
    """What became of the spans."""

    sent: int
    dropped: int
    seconds: float
    """Real time."""
    run: Run
    """Whose they are, for the collector."""
    reason: str = ""
    """Why spans were dropped, or may be missing; empty when all arrived."""

    def __str__(self) -> str:
        reason = f" ({self.reason})" if self.reason else ""
        return f"{self.sent} spans sent, {self.dropped} dropped{reason}; kemu.run={self.run.name}"


class Exporter(Protocol):
    """Sends the spans of a run while it lasts."""

    def feed(self, time_ns: int, actor: str, kind: str, data: Mapping[str, Any]) -> None:
        """Has the signature of a ``LogSink``."""
        ...

    def close(self) -> ExportReport:
        """Send what there is, and tell what became of everything."""
        ...
