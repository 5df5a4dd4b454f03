"""The check that the store holds what its history says."""

from __future__ import annotations

from typing import ClassVar

from kemu.emulated.objects.wire import wires
from kemu.lab.checks.history import History
from kemu.lab.checks.results import Check, Result, seconds, several
from kemu.runtime.runlog.events import StoreRecovered, StoreState, Transaction
from kemu.runtime.words import counted


class StoreAgreesWithHistory(Check):
    """Folding the transactions in the log gives the keys, values and revisions that the store holds.

    The store states a digest of them at its beginning and its orderly end, at regular intervals, and when it has
    recovered; a recovery undoes the transactions after its revision.
    """

    id: ClassVar[str] = "store-agrees-with-history"

    def __init__(self) -> None:
        self._digests: dict[str, int] = {}
        """Digests of the keys that exist."""
        self._sum = 0
        self._revision = 1
        self._changes: list[tuple[int, str, int | None]] = []
        """Revision, key, and the digest before."""
        self._statements = 0
        self._recoveries = 0
        self._findings: list[str] = []

    def on_event(self, time_ns: int, actor: str, event: Transaction | StoreRecovered | StoreState) -> None:
        revision = event.rev
        if isinstance(event, Transaction):
            for op, key, value, _create, _version in event.changes:
                digest = None
                if op == 0:
                    digest = wires.entry_digest(key.encode(), wires.digest(value, revision))
                self._changes.append((revision, key, self._digests.get(key)))
                self._set(key, digest)
            self._revision = revision
            return
        if isinstance(event, StoreRecovered):
            self._recoveries += 1
            while self._changes and self._changes[-1][0] > revision:
                _, key, before = self._changes.pop()
                self._set(key, before)
            # One that came back with more than the log has is a finding below.
            self._revision = min(self._revision, revision)
        if "digest" not in event:
            return
        self._statements += 1
        keys, total = len(self._digests), self._sum & wires.SUM_MASK
        if (revision, event.key_count, event.digest) != (self._revision, keys, total):
            when = "it recovered" if isinstance(event, StoreRecovered) else "it stated its keys"
            what = f"has {counted(event.key_count, 'key')} at revision {revision}"
            wanted = f"{counted(keys, 'key')} at revision {self._revision}"
            other = " with other contents" if (event.key_count, revision) == (keys, self._revision) else ""
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
