"""The check that no client replaces what it has not seen."""

from __future__ import annotations

from typing import ClassVar, NamedTuple

from kemu.lab.checks.consistency.versions import Versions
from kemu.lab.checks.history import History
from kemu.lab.checks.history.facts import Change
from kemu.lab.checks.results import Check, Result, seconds
from kemu.runtime.runlog.events import (
    ActorStarted,
    GetAnswered,
    ListAnswered,
    UnconditionalUpdate,
    WatchDelivered,
    WatchListed,
    WritesAcknowledged,
)
from kemu.runtime.words import counted

_Events = (
    UnconditionalUpdate | WritesAcknowledged | GetAnswered | ListAnswered | WatchListed | WatchDelivered
    | ActorStarted
)  # fmt: skip

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

    def __init__(self) -> None:
        self._shown: dict[tuple[str, str], int] = {}
        """The latest revision, by client and either resource or key."""
        self._resources: dict[tuple[str, str], str] = {}
        """By client and watch."""
        self._under_way: dict[tuple[str, str], list[tuple[int, int]]] = {}
        """By client and key: since when, and what had been shown."""
        self._updates: list[_Update] = []

    def on_event(self, time_ns: int, actor: str, event: _Events) -> None:
        if not actor.startswith(_OURS):
            return
        if isinstance(event, WatchDelivered):
            shown, revision = (actor, self._resources.get((actor, event.watch), "")), event.revs[-1]
            if revision > self._shown.get(shown, 0):
                self._shown[shown] = revision
        elif isinstance(event, WritesAcknowledged):
            for _took, revision, key, _uid, _digest in event.acks:
                asked = self._under_way.get((actor, key))
                if asked:
                    start_ns, seen = asked.pop(0)
                    self._updates.append(_Update(start_ns, time_ns, actor, key, revision, seen))
                if revision > self._shown.get((actor, key), 0):
                    self._shown[actor, key] = revision
        elif isinstance(event, UnconditionalUpdate):
            resource, key = event.resource, event.key
            seen = max(self._shown.get((actor, resource), 0), self._shown.get((actor, key), 0))
            self._under_way.setdefault((actor, key), []).append((time_ns, seen))
        elif isinstance(event, ActorStarted):
            for known in [known for known in self._under_way if known[0] == actor]:
                del self._under_way[known]
        else:
            if isinstance(event, WatchListed):
                self._resources[actor, event.watch] = event.resource
            self._show(actor, event.resource, event.rev)

    def _show(self, actor: str, what: str, revision: int) -> None:
        if revision > self._shown.get((actor, what), 0):
            self._shown[actor, what] = revision

    def result(self, history: History) -> Result:
        versions = history.derived(Versions)
        findings: list[str] = []
        judged = 0
        for update in self._updates:
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
