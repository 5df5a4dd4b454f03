"""The check that acknowledged writes survive crashes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from kemu.checks.history import History
from kemu.checks.results import Check, Result, counted, seconds, several


class AcknowledgedWritesSurvive(Check):
    """Every acknowledged write is in the store's history, also after a crash of the store.

    And that history has each revision once, in order.
    """

    id: ClassVar[str] = "acknowledged-writes-survive"
    kinds: ClassVar[tuple[str, ...]] = ("client.acked", "store.txn", "store.recovered")

    def __init__(self) -> None:
        self._acknowledged: dict[int, tuple[int, str]] = {}
        """Revision → when, and who was told."""
        self._revision = 0
        self._recoveries = 0
        self._findings: list[str] = []

    def on_event(self, time_ns: int, actor: str, kind: str, data: Mapping[str, Any]) -> None:
        if kind == "client.acked":
            for revision in data["revs"]:
                self._acknowledged.setdefault(revision, (time_ns, actor))
        elif kind == "store.txn":
            revision = data["rev"]
            if self._revision and revision != self._revision + 1:
                self._findings.append(
                    f"{seconds(time_ns)}: the store went from revision {self._revision} to {revision}"
                )
            self._revision = revision
        else:
            recovered = data["rev"]
            if self._revision:
                self._recoveries += 1
                if recovered > self._revision:
                    self._findings.append(
                        f"{seconds(time_ns)}: the store came back with revision {recovered}, "
                        f"but the last one in the log is {self._revision}"
                    )
            for revision in range(recovered + 1, self._revision + 1):
                if revision in self._acknowledged:
                    when, who = self._acknowledged[revision]
                    self._findings.append(
                        f"revision {revision}, acknowledged to {who} at {seconds(when)}, was lost: "
                        f"the store came back with revision {recovered} at {seconds(time_ns)}"
                    )
            self._revision = recovered

    def result(self, history: History) -> Result:
        findings = list(self._findings)
        for revision, (when, who) in self._acknowledged.items():
            if revision > self._revision:
                findings.append(f"revision {revision}, acknowledged to {who} at {seconds(when)}, is not in the store")
        if findings:
            return Result(self.id, False, several(findings))
        if not self._acknowledged:
            return Result(self.id, None, "no write was acknowledged")
        recoveries = f", {counted(self._recoveries, 'recovery', 'recoveries')}" if self._recoveries else ""
        return Result(self.id, True, f"{counted(len(self._acknowledged), 'acknowledged write')}{recoveries}")
