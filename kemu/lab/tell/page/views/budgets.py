"""The debt of disruption budgets: how many healthy pods each lacked, as its status said, from when on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kemu.lab.tell.page.tables import Tables, micros
from kemu.lab.tell.page.views.view import Handler, Told
from kemu.messages.k8s import policy_v1_pb2
from kemu.runtime.runlog.events import Transaction, handlers
from kemu.runtime.words import short

_PREFIX = "/registry/poddisruptionbudgets/"


class Budgets:
    name = "budgets"

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self._debts: dict[str, int] = {}
        """By key, as it is now."""
        self._changes: list[tuple[int, str, int]] = []
        """When, which budget, by how much its debt changed."""

    @property
    def handlers(self) -> Mapping[str, Handler]:
        return handlers.of(self)

    def _on_txn(self, place: int, time_ns: int, actor: str, event: Transaction) -> None:
        for op, key, value, _, _ in event.changes:
            if not key.startswith(_PREFIX):
                continue
            debt = 0
            if op == 0 and value:
                status = policy_v1_pb2.PodDisruptionBudget.FromString(value).status
                debt = max(0, status.desiredHealthy - status.currentHealthy)
            before = self._debts.get(key, 0)
            self._debts[key] = debt
            if debt != before:
                self._changes.append((time_ns, key, debt - before))

    def data(self, told: Told) -> dict[str, Any]:
        text = self._tables.text
        return {
            "count": len({*self._debts}),
            "time": [micros(time_ns) for time_ns, _, _ in self._changes],
            "budget": [text(short(key.removeprefix(_PREFIX))) for _, key, _ in self._changes],
            "by": [by for _, _, by in self._changes],
        }
