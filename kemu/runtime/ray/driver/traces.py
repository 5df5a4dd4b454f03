"""Traces of a run on Ray, sent while it runs: each cell sends the spans of its actors, the driver those of its own.

When the run is over, what all of them have sent and dropped is added up.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

import grpc.aio

from kemu.runtime.ray.driver.cells import RemoteCell
from kemu.telemetry.exports import ExportReport


class Traces:
    def __init__(self, endpoint: str, epoch_unix_s: int) -> None:
        """Raises KemuError when nobody answers at ``endpoint``: before the run begins, not after it."""
        # Imported on use: most runs do not need OpenTelemetry, which takes long to import.
        from kemu.telemetry import otlp

        otlp.check(endpoint)
        self._own = otlp.LiveExporter(endpoint, epoch_unix_s)
        self.feed = self._own.feed
        """A ``LogSink`` for the events of the driver's actors."""

    async def end(self, cells: Iterable[RemoteCell]) -> ExportReport:
        """Have everybody send what there is. Spans lost with a process cannot be counted: the reason says so."""
        reports = [await asyncio.to_thread(self._own.close)]
        lost: list[str] = []
        for remote in cells:
            if remote.incarnation > 1:
                lost.append(remote.name)
            try:
                told = await remote.end_traces()
            except grpc.aio.AioRpcError:
                lost.append(remote.name)
                continue
            reports.append(ExportReport(told.sent, told.dropped, 0.0, told.reason))
        reasons = [report.reason for report in reports if report.reason]
        if lost:
            reasons.append(f"what {', '.join(dict.fromkeys(lost))} had not sent when it died is missing")
        return ExportReport(
            sum(report.sent for report in reports),
            sum(report.dropped for report in reports),
            reports[0].seconds,
            "; ".join(dict.fromkeys(reasons)),
        )
