"""The check that no client replaces what it has not seen."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, NamedTuple

from kemu.lab.checks.consistency.versions import Versions
from kemu.lab.checks.history import History
from kemu.lab.checks.history.stores import Change
from kemu.lab.checks.results import Check, Fold, Result, seconds
from kemu.runtime.runlog.events import (
    ActorStarted,
    GetAnswered,
    ListAnswered,
    UnconditionalUpdate,
)
from kemu.runtime.words import counted

_Events = UnconditionalUpdate | GetAnswered | ListAnswered | ActorStarted

_OURS = ("autoscaler", "controller/", "kubelet/", "scheduler/")
"""Users may replace what they like, as ``kubectl replace`` does."""


class _Update(NamedTuple):
    start_ns: int
    end_ns: int
    who: str
    key: str
    revision: int
    """Which it made."""
    seen: int
    """The latest revision of such objects that the client had been shown when it asked."""


class UpdatesReplaceWhatWasSeen(Check):
    """An update, of an object or its status, that states no resource version replaces nothing that its client had not
    been shown: it would undo a change that it knew nothing of.

    With a resource version the API server sees to that. What a client had been shown is what its watches, reads and
    acknowledgements had brought when it asked; that it may have computed the update from something older is not judged.
    Patches say what they change, and are none of this.
    """

    id: ClassVar[str] = "updates-replace-what-was-seen"
    folds: ClassVar[tuple[type[Fold], ...]] = (Fold,)

    def __init__(self) -> None:
        self._read: dict[tuple[str, str], int] = {}
        """The latest revision that reads have shown, by client and resource."""
        self._steps: list[tuple[int, int, str, str, int]] = []
        """Updates that began, and clients that began anew: how many writes had been acknowledged before, the time, the
        client, the key, and what it had been shown. Of a new client the key is empty."""

    def given(self, *folds: Fold) -> None:
        self._history = folds[0].history

    def on_event(self, time_ns: int, actor: str, event: _Events) -> None:
        if not actor.startswith(_OURS):
            return
        if isinstance(event, UnconditionalUpdate):
            seen = max(self._read.get((actor, event.resource), 0), self._watched(actor, event.resource))
            self._steps.append((len(self._history.acknowledged), time_ns, actor, event.key, seen))
        elif isinstance(event, ActorStarted):
            self._steps.append((len(self._history.acknowledged), time_ns, actor, "", 0))
        elif event.rev > self._read.get((actor, event.resource), 0):
            self._read[actor, event.resource] = event.rev

    def _watched(self, actor: str, resource: str) -> int:
        """The latest revision of which its watches have told."""
        latest = 0
        for session in self._history.watches_of.get(actor, ()):
            if session.resource == resource:
                bookmarks = [revision for revision, _ in session.bookmarks[-1:]]
                latest = max(latest, session.since, *session.revisions[-1:], *bookmarks)
        return latest

    def _updates(self) -> Iterator[_Update]:
        """The updates that were acknowledged, in the order of that."""
        acknowledged, at = self._history.acknowledged, 0
        under_way: dict[tuple[str, str], list[tuple[int, int]]] = {}
        """By client and key: since when, and what had been shown."""
        shown: dict[tuple[str, str], int] = {}
        """The latest revision that was acknowledged, by client and key."""
        for place, time_ns, actor, key, seen in [*self._steps, (len(acknowledged), 0, "", "", 0)]:
            for one in acknowledged[at:place]:
                asked = under_way.get((one.who, one.key))
                if asked:
                    yield _Update(asked[0][0], one.time_ns, one.who, one.key, one.revision, asked.pop(0)[1])
                shown[one.who, one.key] = max(one.revision, shown.get((one.who, one.key), 0))
            at = place
            if key:
                seen = max(seen, shown.get((actor, key), 0))
                under_way.setdefault((actor, key), []).append((time_ns, seen))
            else:
                for known in [known for known in under_way if known[0] == actor]:
                    del under_way[known]

    def result(self, history: History) -> Result:
        versions = history.derived(Versions)
        findings: list[str] = []
        judged = 0
        is_any = any(key for _, _, _, key, _ in self._steps)
        for update in self._updates() if is_any else ():
            replaced = _replaced(versions, update)
            if replaced is None:
                continue
            judged += 1
            if replaced.revision > update.seen:
                findings.append(
                    f"{update.who}: its update of {update.key} of {seconds(update.start_ns)} states no version and "
                    f"replaced revision {replaced.revision}, which it had not been shown (but {update.seen})"
                )
        good = counted(judged, "update without a version", "updates without a version")
        return self.concluded(findings, judged, "every update stated the version that it was computed from", good)


def _replaced(versions: Versions, update: _Update) -> Change | None:
    """The version that an update replaced; None if it changed nothing, or the store has lost it."""
    before: Change | None = None
    for change in versions.by_key.get(update.key, ()):
        if change.revision == update.revision and update.start_ns <= change.time_ns <= update.end_ns:
            return before if before is not None and before.value is not None and before.undone > change.born else None
        before = change
    return None
