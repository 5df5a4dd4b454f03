"""The names of priorities: a class says more than its number."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kemu.lab.tell.page.tables import Tables
from kemu.lab.tell.page.views.view import Handler, Told
from kemu.messages.k8s import scheduling_v1_pb2
from kemu.runtime.runlog.events import Transaction, handlers

_PREFIX = "/registry/priorityclasses/"


class Classes:
    name = "classes"

    def __init__(self, tables: Tables) -> None:
        self._names: dict[int, list[str]] = {}

    @property
    def handlers(self) -> Mapping[str, Handler]:
        return handlers.of(self)

    def _on_txn(self, place: int, time_ns: int, actor: str, event: Transaction) -> None:
        for op, key, value, _, _ in event.changes:
            if op == 0 and value and key.startswith(_PREFIX):
                found = scheduling_v1_pb2.PriorityClass.FromString(value)
                names = self._names.setdefault(found.value, [])
                if found.metadata.name not in names and str(found.value) not in found.metadata.name:
                    names.append(found.metadata.name)

    def data(self, told: Told) -> dict[str, Any]:
        """By priority; several classes may have the same."""
        return {str(value): " or ".join(names) for value, names in sorted(self._names.items()) if names}
