"""What the clients' logs tell of their watches: one session for each list and what the watch after it delivered.

Role: below ``histories``, which keeps the sessions for the checks.
"""

from __future__ import annotations

from kemu.lab.checks.history.facts import WatchSession
from kemu.runtime.runlog.events import (
    ActorCrashed,
    ActorFailed,
    ActorStarted,
    WatchClosed,
    WatchDelivered,
    WatchListed,
    handlers,
)


class Sessions:
    """Folds the events that :attr:`handlers` names."""

    def __init__(self) -> None:
        self.all: list[WatchSession] = []
        """In the order of their lists."""
        self._open: dict[str, dict[str, WatchSession]] = {}
        """By client and id."""
        self.handlers = handlers.of(self)

    def _on_listed(self, time_ns: int, actor: str, event: WatchListed) -> None:
        session = WatchSession(
            actor, event.watch, event.resource, event.namespace, event.label_selector, event.field_selector,
            event.rev, time_ns, event.objects, event.digest,
        )  # fmt: skip
        self.all.append(session)
        self._open.setdefault(actor, {})[session.watch] = session

    def _on_events(self, time_ns: int, actor: str, event: WatchDelivered) -> None:
        session = self._open.get(actor, {}).get(event.watch)
        if session is None:
            return
        revisions, types, digests = event.revs, event.types, event.digests
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

    def _on_closed(self, time_ns: int, actor: str, event: WatchClosed) -> None:
        session = self._open.get(actor, {}).pop(event.watch, None)
        if session is not None:
            session.ended_ns, session.reason = time_ns, event.reason

    def _on_client_ended(self, time_ns: int, actor: str, event: ActorStarted | ActorCrashed | ActorFailed) -> None:
        self.client_ended(time_ns, actor)

    def client_ended(self, time_ns: int, actor: str) -> None:
        for session in self._open.pop(actor, {}).values():
            session.ended_ns = time_ns

    def run_ended(self) -> None:
        """What follows is the shutdown: watches that are open now have not ended."""
        self._open.clear()
