"""Each pod's waterfall: the spans of its trace, as ``kemu trace`` shows them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kemu.lab.telemetry import builder, spans, waterfall
from kemu.lab.telemetry.spans import Span
from kemu.lab.tell.page.tables import Tables, deltas, micros
from kemu.lab.tell.page.views.view import Handler, Told


class Traces:
    name = "traces"

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self._builder = builder.SpanBuilder()
        self._finished: list[Span] = []

    @property
    def handlers(self) -> Mapping[str, Handler]:
        def of(kind: str) -> Handler:
            def take(place: int, time_ns: int, actor: str, data: Mapping[str, Any]) -> None:
                self._finished += self._builder.feed(time_ns, actor, kind, data)

            return take

        return {kind: of(kind) for kind in self._builder.kinds}

    def close(self) -> None:
        """The log ends here: what is open ends, too."""
        self._finished += self._builder.flush()

    def data(self, told: Told) -> dict[str, Any]:
        text, tables = self._tables.text, self._tables
        found = sorted(self._finished, key=lambda span: (tables.known_pod(span.uid), span.start_ns, _rank(span)))
        schedulers = {span.instance for span in found if span.kind == spans.ATTEMPT}
        replicated = waterfall.replicated(sorted(schedulers))
        columns: dict[str, list[int]] = {name: [] for name in _COLUMNS}
        links = []
        for span in found:
            pod = tables.known_pod(span.uid)
            if pod < 0:
                continue
            values = (
                pod,
                text(waterfall.label_of(span, replicated)),
                text(waterfall.reason_of(span)),
                text(span.service),
                micros(span.start_ns),
                micros(span.end_ns) - micros(span.start_ns),
                int(span.ok),
            )
            links += [[pod, text(link.relation), tables.latest_pod(link.pod)] for link in _distinct(span, found)]
            for column, value in zip(columns.values(), values, strict=True):
                column.append(value)
        packed = {name: deltas(columns[name]) for name in ("pod", "from")}
        return {**columns, **packed, "links": links}


_COLUMNS = ("pod", "label", "reason", "service", "from", "took", "ok")


def _rank(span: Span) -> int:
    return 0 if span.parent_id is None else 1


def _distinct(span: Span, found: Sequence[Span]) -> Sequence[Any]:
    return [link for link in span.links if link.pod and link.pod != span.pod]
