"""Every scheduling attempt: its result, how many nodes each plugin refused, and what would have had to change."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kemu.lab.tell.page.tables import Tables, deltas, micros
from kemu.lab.tell.page.views import shortages
from kemu.lab.tell.page.views.view import Handler, Told


class Attempts:
    name = "attempts"

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self._rows: list[tuple[int, int, str, Mapping[str, Any]]] = []

    @property
    def handlers(self) -> Mapping[str, Handler]:
        return {"sched.attempt": self._on_attempt}

    def _on_attempt(self, place: int, time_ns: int, actor: str, data: Mapping[str, Any]) -> None:
        self._tables.pod(data["uid"], data["pod"])
        self._rows.append((place, time_ns, actor, data))

    def data(self, told: Told) -> dict[str, Any]:
        text = self._tables.text
        refused = [(data, time_ns) for _, time_ns, _, data in self._rows if data["result"] == "unschedulable"]
        questions = [shortages.Question(data["start"], data["uid"], data["plugins"]) for data, _ in refused]
        missing = iter(shortages.answers(told.history, questions))
        columns: dict[str, list[int]] = {name: [] for name in _COLUMNS}
        for place, time_ns, actor, data in self._rows:
            is_refused = data["result"] == "unschedulable"
            row = (
                place,
                micros(time_ns),
                micros(data["start"]),
                self._tables.known_pod(data["uid"]),
                text(actor.removeprefix("scheduler/")),
                data["n"],
                text(data["result"]),
                self._tables.node(data["node"]),
                data["evaluated"],
                data["feasible"],
                text(", ".join(f"{plugin} {count}" for plugin, count in data["plugins"].items())),
                text(data["message"].replace("no new claims to deallocate, ", "")),
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
