"""What sending traces to a collector comes to. ``otlp`` does it; who only passes the result on imports this instead, as
OpenTelemetry takes long to import.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol


@dataclass(frozen=True, slots=True)
class ExportReport:
    """What became of the spans."""

    sent: int
    dropped: int
    seconds: float
    """Real time."""
    reason: str = ""
    """Why spans were dropped, or may be missing; empty when all arrived."""

    def __str__(self) -> str:
        return f"{self.sent} spans sent, {self.dropped} dropped{f' ({self.reason})' if self.reason else ''}"


class Exporter(Protocol):
    """Sends the spans of a run while it lasts."""

    def feed(self, time_ns: int, actor: str, kind: str, data: Mapping[str, Any]) -> None:
        """Has the signature of a ``LogSink``."""
        ...

    def close(self) -> ExportReport:
        """Send what there is, and tell what became of everything."""
        ...
