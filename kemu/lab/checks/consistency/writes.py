"""The check that acknowledged writes survive crashes."""

from __future__ import annotations

import itertools
from sys import intern
from typing import ClassVar, NamedTuple

from kemu.lab.checks.consistency.versions import Versions
from kemu.lab.checks.history import History
from kemu.lab.checks.history.facts import Rollback
from kemu.lab.checks.results import Check, Result, seconds, several
from kemu.runtime.runlog.events import StoreRecovered, Transaction, WritesAcknowledged
from kemu.runtime.words import counted


class _Acknowledgement(NamedTuple):
    time_ns: int
    """When it arrived."""
    sent_ns: int
    who: str
    server: str
    revision: int
    key: str
    uid: str
    digest: int
    recoveries: int
    """Recoveries of the store, until it arrived."""

    def __str__(self) -> str:
        what = f"{self.key.removeprefix('/registry/')} (UID {self.uid})" if self.uid else self.key
        return f"revision {self.revision} of {what}, acknowledged to {self.who} by {self.server}"


class AcknowledgedWritesSurvive(Check):
    """Every acknowledged write is in the store's history, also after a crash of the store.

    A write is known by revision, key and content: a revision number that was used again is another one, whenever its
    acknowledgement arrived. And the history has each revision once, in order.
    """

    id: ClassVar[str] = "acknowledged-writes-survive"

    def __init__(self) -> None:
        self._acknowledged: list[_Acknowledgement] = []
        self._revision = 0
        self._recoveries = 0
        self._findings: list[str] = []

    def on_event(self, time_ns: int, actor: str, event: WritesAcknowledged | Transaction | StoreRecovered) -> None:
        if isinstance(event, WritesAcknowledged):
            sent_ns, server, recoveries = event.sent, event.server, self._recoveries
            for _, revision, key, uid, digest in event.acks:
                what = intern(key), intern(uid), digest
                self._acknowledged.append(
                    _Acknowledgement(time_ns, sent_ns, actor, server, revision, *what, recoveries)
                )
        elif isinstance(event, Transaction):
            revision = event.rev
            if self._revision and revision != self._revision + 1:
                self._findings.append(
                    f"{seconds(time_ns)}: the store went from revision {self._revision} to {revision}"
                )
            self._revision = revision
        else:
            self._recoveries += 1
            recovered = event.rev
            if self._revision and recovered > self._revision:
                self._findings.append(
                    f"{seconds(time_ns)}: the store came back with revision {recovered}, "
                    f"but the last one in the log is {self._revision}"
                )
            self._revision = recovered

    def result(self, history: History) -> Result:
        versions = history.derived(Versions)
        findings = list(self._findings)
        lost: dict[tuple[int, int], tuple[Rollback, _Acknowledgement]] = {}
        judged = 0
        for acknowledgement in self._acknowledged:
            revision = acknowledgement.revision
            if versions.recorded and revision > history.revision:
                continue  # The API server that records the etcd had not been told of it when the log ended.
            judged += 1
            epoch = versions.epoch(acknowledgement.recoveries)
            change = versions.seen(acknowledgement.key, revision, acknowledgement.digest, epoch)
            if change is None:
                findings.append(f"{acknowledgement} at {seconds(acknowledgement.time_ns)}, is not what the store wrote")
            elif not versions.survives(change):
                lost.setdefault((change.born, revision), (history.rollbacks[change.undone - 1], acknowledgement))
        if lost:
            numbers = _ranges(sorted({revision for _, revision in lost}))
            were = "was" if len(lost) == 1 else "were"
            findings.insert(0, f"{counted(len(lost), 'acknowledged write')} {were} lost: revision {numbers}")
            findings += [
                f"{acknowledgement} at {seconds(acknowledgement.sent_ns)}, was lost: the store came back with revision "
                f"{rollback.revision} at {seconds(rollback.time_ns)}"
                for rollback, acknowledgement in lost.values()
            ]
        if findings:
            return Result(self.id, False, several(findings))
        if not judged:
            return Result(self.id, None, "no write was acknowledged")
        recoveries = f", {counted(self._recoveries, 'recovery', 'recoveries')}" if self._recoveries else ""
        return Result(self.id, True, f"{counted(judged, 'acknowledged write')}{recoveries}")


def _ranges(numbers: list[int]) -> str:
    """``3-5, 9``."""
    parts = []
    for _, group in itertools.groupby(enumerate(numbers), key=lambda pair: pair[1] - pair[0]):
        members = [number for _, number in group]
        parts.append(str(members[0]) if len(members) == 1 else f"{members[0]}-{members[-1]}")
    return ", ".join(parts)
