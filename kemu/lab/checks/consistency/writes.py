"""The check that acknowledged writes survive crashes."""

from __future__ import annotations

import itertools
from typing import ClassVar

from kemu.lab.checks.consistency.versions import Versions
from kemu.lab.checks.history import History
from kemu.lab.checks.history.sessions import Acknowledgement
from kemu.lab.checks.history.stores import Jump, Rollback
from kemu.lab.checks.results import Check, Result, seconds, several
from kemu.runtime.words import counted


class AcknowledgedWritesSurvive(Check):
    """Every acknowledged write is in the store's history, also after a crash of the store.

    A write is known by revision, key and content: a revision number that was used again is another one, whenever its
    acknowledgement arrived. And the history has each revision once, in order.
    """

    id: ClassVar[str] = "acknowledged-writes-survive"

    def result(self, history: History) -> Result:
        versions = history.derived(Versions)
        findings = [_said(jump) for jump in history.jumps]
        lost: dict[tuple[int, int], tuple[Rollback, Acknowledgement]] = {}
        judged = 0
        for acknowledgement in history.acknowledged:
            revision = acknowledgement.revision
            if versions.recorded and revision > history.revision:
                continue  # The API server that records the etcd had not been told of it when the log ended.
            judged += 1
            epoch = versions.epoch(acknowledgement.recoveries)
            change = versions.seen(acknowledgement.key, revision, acknowledgement.digest, epoch)
            if change is None:
                at = seconds(acknowledgement.time_ns)
                findings.append(f"{_about(acknowledgement)} at {at}, is not what the store wrote")
            elif not versions.survives(change):
                lost.setdefault((change.born, revision), (history.rollbacks[change.undone - 1], acknowledgement))
        if lost:
            numbers = _ranges(sorted({revision for _, revision in lost}))
            were = "was" if len(lost) == 1 else "were"
            findings.insert(0, f"{counted(len(lost), 'acknowledged write')} {were} lost: revision {numbers}")
            findings += [
                f"{_about(acknowledgement)} at {seconds(acknowledgement.sent_ns)}, was lost: the store came back with "
                f"revision {rollback.revision} at {seconds(rollback.time_ns)}"
                for rollback, acknowledgement in lost.values()
            ]
        if findings:
            return Result(self.id, False, several(findings))
        if not judged:
            return Result(self.id, None, "no write was acknowledged")
        came_back = len(history.replayed_revisions)
        recoveries = f", {counted(came_back, 'recovery', 'recoveries')}" if came_back else ""
        return Result(self.id, True, f"{counted(judged, 'acknowledged write')}{recoveries}")


def _about(one: Acknowledgement) -> str:
    what = f"{one.key.removeprefix('/registry/')} (UID {one.uid})" if one.uid else one.key
    return f"revision {one.revision} of {what}, acknowledged to {one.who} by {one.server}"


def _said(jump: Jump) -> str:
    if jump.recovered:
        came = f"the store came back with revision {jump.revision}, but the last one in the log is {jump.before}"
    else:
        came = f"the store went from revision {jump.before} to {jump.revision}"
    return f"{seconds(jump.time_ns)}: {came}"


def _ranges(numbers: list[int]) -> str:
    """``3-5, 9``."""
    parts = []
    for _, group in itertools.groupby(enumerate(numbers), key=lambda pair: pair[1] - pair[0]):
        members = [number for _, number in group]
        parts.append(str(members[0]) if len(members) == 1 else f"{members[0]}-{members[-1]}")
    return ", ".join(parts)
