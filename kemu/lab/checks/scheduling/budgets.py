"""The check that evictions through the API respect disruption budgets, and how often preemption does not."""

from __future__ import annotations

from typing import ClassVar

from kemu.lab.checks.history import History
from kemu.lab.checks.results import Check, Result, seconds, several
from kemu.lab.checks.scheduling import ledgers
from kemu.runtime.runlog.events import ApiRequest
from kemu.runtime.words import counted

AUTOSCALER = "controller/cluster-autoscaler"


class VoluntaryEvictionsRespectBudgets(Check):
    """An eviction through the API leaves every disruption budget of the pod as many healthy pods as it wants.

    Computed anew from the store's history, by the rules of pkg/controller/disruption. The API server decides by the
    budget's status, which may be behind: pods that were lost in another way (deleted, preempted, failed, on a node that
    is not ready) count as long as that status counts them, if they were lost after the controller wrote it or in the
    minute before. A pod with several budgets cannot be evicted at all. Preemption may violate a budget: that is counted
    (``budget_violations``) and named. The cluster autoscaler may only evict: a pod that it deletes asks no budget.
    """

    id: ClassVar[str] = "voluntary-evictions-respect-budgets"
    verbs: ClassVar[tuple[str, ...]] = ("delete",)

    def __init__(self) -> None:
        self._deleted: list[str] = []
        """By whom they should have been evicted."""

    def on_event(self, time_ns: int, actor: str, event: ApiRequest) -> None:
        if event.by.startswith(AUTOSCALER):
            pod = f"{event.namespace}/{event.name}"
            self._deleted.append(f"{seconds(time_ns)}: {event.by} deleted {pod} and asked no budget")

    def result(self, history: History) -> Result:
        ledger = ledgers.of(history)
        if self._deleted:
            return Result(self.id, False, several([*self._deleted, *ledger.findings]))
        if not ledger.budgets:
            return Result(self.id, None, "there was no disruption budget")
        told = f"; preemption violated budgets: {several(ledger.violations)}" if ledger.violations else ""
        if ledger.findings:
            return Result(self.id, False, several(ledger.findings) + told)
        if not ledger.judged:
            return Result(self.id, None, f"nobody with a disruption budget was evicted{told}")
        return Result(self.id, True, f"{counted(ledger.judged, 'eviction')} within budgets{told}")
