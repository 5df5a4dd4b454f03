"""What the clients' logs tell: writes that were acknowledged, and one session for each list of a watch and what it
delivered after that.

Role: below ``histories``, which keeps the sessions for the checks.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from kemu.lab.checks.history.facts import WatchSession
from kemu.runtime.runlog import events
from kemu.runtime.runlog.events import handlers


class Acknowledgement(NamedTuple):
    """A write of which a client was told that it has succeeded."""

    time_ns: int
    """When that arrived."""
    took_ns: int
    """Since the request."""
    sent_ns: int
    who: str
    server: str
    revision: int
    key: str
    uid: str
    digest: int
    recoveries: int
    """Recoveries of the store, until it arrived."""


class Sessions:
    """Folds the events that :attr:`handlers` names."""

    def __init__(self, written_ns: Mapping[int, int]) -> None:
        """``written_ns``: when the latest revisions were."""
        self.all: list[WatchSession] = []
        """In the order of their lists."""
        self.by_client: dict[str, list[WatchSession]] = {}
        """The same."""
        self.lag_ns = 0
        """The longest that any request or event has taken."""
        self._written_ns = written_ns
        self._open: dict[str, dict[str, WatchSession]] = {}
        """By client and id."""
        self.handlers = handlers.of(self)

    def _on_listed(self, time_ns: int, actor: str, event: events.WatchListed) -> None:
        session = WatchSession(
            actor, event.watch, event.resource, event.namespace, event.label_selector, event.field_selector,
            event.rev, time_ns, event.objects, event.digest,
        )  # fmt: skip
        self.all.append(session)
        self.by_client.setdefault(actor, []).append(session)
        self._open.setdefault(actor, {})[session.watch] = session

    def _on_events(self, time_ns: int, actor: str, event: events.WatchDelivered) -> None:
        revisions, types, digests = event.revs, event.types, event.digests
        if types[0] != "B":  # A bookmark tells of a revision that no watcher had to hear of.
            written_ns = self._written_ns.get(revisions[0])
            if written_ns is not None and time_ns - written_ns > self.lag_ns:
                self.lag_ns = time_ns - written_ns
        session = self._open.get(actor, {}).get(event.watch)
        if session is None:
            return
        if "B" in types:
            had = len(session.revisions)
            kept: list[int] = []
            for index, letter in enumerate(types):
                if letter == "B":
                    session.bookmarks.append((revisions[index], had + len(kept)))
                else:
                    kept.append(index)
            if not kept:
                return
            revisions = [revisions[index] for index in kept]
            types = "".join(types[index] for index in kept)
            digests = [digests[index] for index in kept]
        session.batches.append((time_ns, len(session.revisions)))
        session.revisions.extend(revisions)
        session.types.extend(types)
        session.digests.extend(digests)

    def _on_answered(self, time_ns: int, actor: str, event: events.GetAnswered | events.ListAnswered) -> None:
        if event.took > self.lag_ns:
            self.lag_ns = event.took

    def _on_closed(self, time_ns: int, actor: str, event: events.WatchClosed) -> None:
        session = self._open.get(actor, {}).pop(event.watch, None)
        if session is not None:
            session.ended_ns, session.reason = time_ns, event.reason

    def _on_client_ended(
        self, time_ns: int, actor: str, event: events.ActorStarted | events.ActorCrashed | events.ActorFailed
    ) -> None:
        self.client_ended(time_ns, actor)

    def client_ended(self, time_ns: int, actor: str) -> None:
        for session in self._open.pop(actor, {}).values():
            session.ended_ns = time_ns

    def run_ended(self) -> None:
        """What follows is the shutdown: watches that are open now have not ended."""
        self._open.clear()
