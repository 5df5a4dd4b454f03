"""Bugs in the store: its key space, its journal and its watches."""

from __future__ import annotations

from typing import Any

import pytest

from kemu.emulated.objects import resources
from kemu.emulated.store import journal, mvcc, operations, server, watch_responses, watches
from tests.mutants.planting import Decides, mutant

CRASH = "chaos/store-crash timing=realistic"
RACE = "races/two-replicas-same-pods timing=realistic"
PODS = resources.prefix(resources.BY_PLURAL["pods"], "")


@mutant(
    "store",
    "recovery-forgets-a-live-pod",
    CRASH,
    # The creation comes before the crash.
    decides=Decides("a-crash-at-a-creation", "store-agrees-with-history", "stored", pod="web"),
)
def _(patch: pytest.MonkeyPatch) -> None:
    recover = server.Store._recover

    def forgetful(self: server.Store) -> None:
        recover(self)
        pods = [key for key in self.space._live if key.startswith(PODS)]
        if pods:
            del self.space._live[pods[-1]]
            self.space._live_keys.remove(pods[-1])

    patch.setattr(server.Store, "_recover", forgetful)


@mutant(
    "store",
    "recovery-restores-an-old-value",
    CRASH,
    # The second write (that the pod is unschedulable) comes before the crash.
    decides=Decides("a-crash-after-a-creation", "store-agrees-with-history", "stored", pod="web", count=2),
)
def _(patch: pytest.MonkeyPatch) -> None:
    recover = server.Store._recover

    def rusty(self: server.Store) -> None:
        recover(self)
        space = self.space
        for key, past in space._past.items():
            live = space._live.get(key)
            if key.startswith(PODS) and live is not None and past[-1].value is not None:
                old = past[-1]
                space._live[key] = mvcc.Entry(key, old.value, live.create_revision, live.mod_revision, live.version)
                return

    patch.setattr(server.Store, "_recover", rusty)


@mutant("store", "recovery-drops-the-last-frame", CRASH)
def _(patch: pytest.MonkeyPatch) -> None:
    recover = journal.Journal.recover

    def short(self: journal.Journal) -> journal.Recovery:
        found = recover(self)
        return found._replace(records=found.records[:-1])

    patch.setattr(journal.Journal, "recover", short)


@mutant(
    "store",
    "compare-and-swap-always-succeeds",
    RACE,
    CRASH,
    # The second replica decides while the first binding is being written.
    decides=Decides("two-replicas-slow-store", "pod-bound-at-most-once", "scheduled", pod="web", count=2),
)
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(operations.Requests, "_holds", lambda self, compare: True)


@mutant("store", "compare-ignores-revisions-of-existing-keys", RACE)
def _(patch: pytest.MonkeyPatch) -> None:
    holds = operations._holds_for
    mod = operations._COMPARE.MOD
    patch.setattr(
        operations,
        "_holds_for",
        lambda compare, target, entry: (
            bool(compare.mod_revision and entry.mod_revision) or holds(compare, target, entry)
            if target == mod
            else holds(compare, target, entry)
        ),
    )


@mutant(
    "store",
    "acknowledges-before-it-is-durable",
    CRASH,
    # The creation comes in the 20 ms before the crash.
    decides=Decides("a-crash-before-it-is-durable", "acknowledged-writes-survive", "stored", pod="web"),
)
def _(patch: pytest.MonkeyPatch) -> None:
    def at_once(self: server.Store) -> bool:
        self._work()
        return True

    patch.setattr(server.Store, "_is_settled", at_once)


@mutant(
    "store",
    "a-deletion-is-journaled-as-an-empty-value",
    f"{CRASH} 'events=[{{at: 10.5s, delete: {{pod: burst-3}}}}]'",
    # The deletion (after the creation and the news that it is unschedulable) comes before the crash.
    decides=Decides("a-crash-at-a-deletion", "store-agrees-with-history", "stored", pod="web", count=3),
)
def _(patch: pytest.MonkeyPatch) -> None:
    append = journal.Journal.append

    def empty(self: journal.Journal, records: Any) -> None:
        append(
            self, [(rev, changes and [b"" if each is None else each for each in changes]) for rev, changes in records]
        )

    patch.setattr(journal.Journal, "append", empty)


@mutant("store", "a-watch-event-carries-the-value-before", RACE)
def _(patch: pytest.MonkeyPatch) -> None:
    pieces = watch_responses.event_pieces
    count = 0

    def stale(batch: list[mvcc.Change], *others: Any) -> Any:
        nonlocal count
        seen = list(batch)
        for place, (entry, before) in enumerate(seen):
            if before is not None and entry.value is not None and before.value is not None:
                count += 1
                if count % 40 == 0:
                    old = mvcc.Entry(entry.key, before.value, entry.create_revision, entry.mod_revision, entry.version)
                    seen[place] = old, before
        return pieces(seen, *others)

    patch.setattr(watch_responses, "event_pieces", stale)


@mutant("store", "a-watch-skips-an-event", RACE)
def _(patch: pytest.MonkeyPatch) -> None:
    groups_of = watches.Hub._groups_of
    count = 0

    def absent_minded(self: watches.Hub, key: bytes) -> Any:
        nonlocal count
        count += key.startswith(PODS)
        return iter(()) if key.startswith(PODS) and count % 100 == 0 else groups_of(self, key)

    patch.setattr(watches.Hub, "_groups_of", absent_minded)


@mutant("store", "a-resumed-watch-begins-one-revision-late", "chaos/apiserver-crash timing=realistic", CRASH)
def _(patch: pytest.MonkeyPatch) -> None:
    create = watches.Hub.create

    def late(self: watches.Hub, stream: Any, request: Any) -> None:
        if 0 < request.start_revision <= self.published:
            request.start_revision += 1
        create(self, stream, request)

    patch.setattr(watches.Hub, "create", late)
