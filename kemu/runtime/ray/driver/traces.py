"""Traces of a run on Ray, sent while it happens: each cell sends the spans of its actors, the driver those of its own.

When the run is over, what all of them have sent and dropped is added up.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

import grpc.aio

from kemu.runtime.ray.driver.cells import RemoteCell
from kemu.telemetry import otlp


class Traces:
    def __init__(self, endpoint: str, epoch_unix_s: int) -> None:
        """Raises KemuError when nobody answers at ``endpoint``, so that no run begins in vain."""
        otlp.check(endpoint)
        self._own = otlp.LiveExporter(endpoint, epoch_unix_s)
        self.feed = self._own.feed
        """A ``LogSink`` for the events of the driver's actors."""

    async def end(self, cells: Iterable[RemoteCell]) -> otlp.ExportReport:
        """Have everybody send what there is. Spans that died with a process cannot be counted: the reason says so."""
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
            reports.append(otlp.ExportReport(told.sent, told.dropped, 0.0, told.reason))
        reasons = [report.reason for report in reports if report.reason]
        if lost:
            reasons.append(f"what {', '.join(dict.fromkeys(lost))} had not sent when it died is missing")
        return otlp.ExportReport(
            sum(report.sent for report in reports),
            sum(report.dropped for report in reports),
            reports[0].seconds,
            "; ".join(dict.fromkeys(reasons)),
        )
