"""The check that the store holds what its history says."""

from __future__ import annotations

from typing import ClassVar

from kemu.emulated.objects.wire import wires
from kemu.lab.checks.history import History
from kemu.lab.checks.results import Check, Fold, Result, seconds, several
from kemu.runtime.runlog.events import StoreRecovered, StoreState
from kemu.runtime.words import counted


class StoreAgreesWithHistory(Check):
    """Folding the transactions in the log gives the keys, values and revisions that the store holds.

    The store states a digest of them at its beginning and its orderly end, at regular intervals, and when it has
    recovered; a recovery undoes the transactions after its revision.
    """

    id: ClassVar[str] = "store-agrees-with-history"
    folds: ClassVar[tuple[type[Fold], ...]] = (Fold,)

    def __init__(self) -> None:
        self._digests: dict[str, int] = {}
        """Digests of the keys that existed at the last statement."""
        self._sum = 0
        self._seen = 0
        """How many changes of the history they have in them."""
        self._touched: dict[str, None] = {}
        """Keys that have changed since."""
        self._statements = 0
        self._recoveries = 0
        self._findings: list[str] = []

    def given(self, *folds: Fold) -> None:
        self._history = folds[0].history

    def rolled_back(self, time_ns: int, history: History) -> None:
        for change in history.rollbacks[-1].changes:
            self._touched[change.key] = None
        self._seen = min(self._seen, len(history.changes))

    def _fold(self) -> None:
        """What has changed since the last statement."""
        changes = self._history.changes
        for change in changes[self._seen :]:
            self._touched[change.key] = None
        self._seen = len(changes)
        for key in self._touched:
            found, digest = self._history.latest.get(key), None
            if found is not None:
                digest = wires.entry_digest(key.encode(), wires.versioned_digest(found.crc, found.revision))
            self._set(key, digest)
        self._touched.clear()

    def on_event(self, time_ns: int, actor: str, event: StoreRecovered | StoreState) -> None:
        if isinstance(event, StoreRecovered):
            self._recoveries += 1
        if "digest" not in event:
            return
        self._statements += 1
        self._fold()
        revision, known = event.rev, self._history.revision or 1
        keys, total = len(self._digests), self._sum & wires.SUM_MASK
        if (revision, event.key_count, event.digest) != (known, keys, total):
            when = "it recovered" if isinstance(event, StoreRecovered) else "it stated its keys"
            what = f"has {counted(event.key_count, 'key')} at revision {revision}"
            wanted = f"{counted(keys, 'key')} at revision {known}"
            other = " with other contents" if (event.key_count, revision) == (keys, known) else ""
            self._findings.append(f"{seconds(time_ns)}: when {when}, the store {what}; its history has {wanted}{other}")

    def _set(self, key: str, digest: int | None) -> None:
        before = self._digests.pop(key, None)
        if before is not None:
            self._sum -= before
        if digest is not None:
            self._digests[key] = digest
            self._sum += digest

    def result(self, history: History) -> Result:
        if self._findings:
            return Result(self.id, False, several(self._findings))
        if not self._statements:
            return Result(self.id, None, "no store has stated what it holds")
        recoveries = f", {counted(self._recoveries, 'recovery', 'recoveries')}" if self._recoveries else ""
        return Result(self.id, True, f"{counted(self._statements, 'statement')} of its keys{recoveries}")
