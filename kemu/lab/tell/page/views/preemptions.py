"""Who pushed out whom: each victim with its preemptor, the node, and by whose decision."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kemu.lab.tell.page.tables import Tables, micros
from kemu.lab.tell.page.views.view import Handler, Told
from kemu.runtime.runlog.events import OfVictim, PodPreempting, handlers


class Preemptions:
    name = "preemptions"

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self._rows: list[tuple[int, int, int, int, int, int]] = []

    @property
    def handlers(self) -> Mapping[str, Handler]:
        return handlers.of(self)

    def _on_victim(self, place: int, time_ns: int, actor: str, event: PodPreempting | OfVictim) -> None:
        if isinstance(event, PodPreempting) or event.ok:
            victim = self._tables.pod(event.uid, event.pod)
            preemptor = self._tables.pod(event.by_uid, event.by)
            row = (micros(time_ns), victim, preemptor, self._tables.node(event.node), self._tables.actor(actor))
            self._rows.append((*row, place))

    def data(self, told: Told) -> dict[str, Any]:
        names = ("time", "victim", "preemptor", "node", "actor", "event")
        return {name: [row[index] for row in self._rows] for index, name in enumerate(names)}
