"""Every scheduling attempt: its result, how many nodes each plugin refused, and what would have had to change."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kemu.lab.tell.page.tables import Tables, deltas, micros
from kemu.lab.tell.page.views import shortages
from kemu.lab.tell.page.views.view import Handler, Told
from kemu.runtime.runlog.events import PodAttempted, handlers


class Attempts:
    name = "attempts"

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self._rows: list[tuple[int, int, str, PodAttempted]] = []

    @property
    def handlers(self) -> Mapping[str, Handler]:
        return handlers.of(self)

    def _on_attempt(self, place: int, time_ns: int, actor: str, event: PodAttempted) -> None:
        self._tables.pod(event.uid, event.pod)
        self._rows.append((place, time_ns, actor, event))

    def data(self, told: Told) -> dict[str, Any]:
        text = self._tables.text
        refused = [(event, time_ns) for _, time_ns, _, event in self._rows if event.result == "unschedulable"]
        questions = [shortages.Question(event.start, event.uid, event.plugins) for event, _ in refused]
        missing = iter(shortages.answers(told.history, questions))
        columns: dict[str, list[int]] = {name: [] for name in _COLUMNS}
        for place, time_ns, actor, event in self._rows:
            is_refused = event.result == "unschedulable"
            row = (
                place,
                micros(time_ns),
                micros(event.start),
                self._tables.known_pod(event.uid),
                text(actor.removeprefix("scheduler/")),
                event.n,
                text(event.result),
                self._tables.node(event.node),
                event.evaluated,
                event.feasible,
                text(", ".join(f"{plugin} {count}" for plugin, count in event.plugins.items())),
                text(event.message.replace("no new claims to deallocate, ", "")),
                text(next(missing) if is_refused else ""),
            )
            for column, value in zip(columns.values(), row, strict=True):
                column.append(value)
        packed = {name: deltas(columns[name]) for name in ("event", "time", "start")}
        return {**columns, **packed}


_COLUMNS = (
    "event", "time", "start", "pod", "scheduler", "number", "result", "node", "evaluated", "feasible", "plugins",
    "message", "missing",
)  # fmt: skip
