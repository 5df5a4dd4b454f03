"""Bugs in API servers: reads, writes, admission, the watch cache and its fan-out."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from kemu.emulated.apiserver.admission import node_restrictions
from kemu.emulated.apiserver.authorization import roles
from kemu.emulated.apiserver.registry import bindings, deletions, evictions, reads, registry
from kemu.emulated.apiserver.watch import cache, fanout, feed
from kemu.emulated.objects import meta
from kemu.messages.v1 import api_pb2
from tests.mutants.planting import Decides, mutant

RACE = "races/two-replicas-same-pods timing=realistic"
CRASH = "chaos/apiserver-crash timing=realistic"


@mutant(
    "API server",
    "reads-come-from-a-stale-cache",
    "chaos/stale-reads timing=realistic",
    "chaos/cut-watches timing=realistic",
    "chaos/machine-crash timing=realistic apiServers.cacheLag=20s",
)
def _(patch: pytest.MonkeyPatch) -> None:
    get = reads.Reader.get

    async def stale(self: reads.Reader, request: api_pb2.GetRequest) -> bytes:
        cached = meta.copied(request)
        cached.resource_version = "0"
        return await get(self, cached)

    async def always(self: reads.Reader) -> bool:
        return True

    patch.setattr(reads.Reader, "get", stale)
    patch.setattr(reads.Reader, "_has_caught_up", always)


@mutant("API server", "a-list-claims-a-later-revision", RACE, "chaos/scheduler-crash timing=realistic")
def _(patch: pytest.MonkeyPatch) -> None:
    list_cache = reads.Reader._list_cache

    def ahead(self: reads.Reader, selection: Any, limit: int) -> api_pb2.ListResponse:
        response = list_cache(self, selection, limit)
        response.resource_version = str(int(response.resource_version) + 3)
        return response

    patch.setattr(reads.Reader, "_list_cache", ahead)


@mutant("API server", "a-list-leaves-out-an-object", "chaos/scheduler-crash timing=realistic", CRASH)
def _(patch: pytest.MonkeyPatch) -> None:
    list_cache = reads.Reader._list_cache

    def short(self: reads.Reader, selection: Any, limit: int) -> api_pb2.ListResponse:
        response = list_cache(self, selection, limit)
        if len(response.items) > 5:
            del response.items[2]
        return response

    patch.setattr(reads.Reader, "_list_cache", short)
    start, add = fanout.Fanout.start, fanout.Stream.add
    told = [-1]

    def begin(self: fanout.Fanout, watcher: Any, since: int) -> None:
        told[0] = 0 if not since else -1
        start(self, watcher, since)
        told[0] = -1

    def all_but_the_third(self: fanout.Stream, watch_id: int, kind: int, revision: int, wire: bytes) -> None:
        told[0] += told[0] >= 0
        if told[0] != 3:
            add(self, watch_id, kind, revision, wire)

    patch.setattr(fanout.Fanout, "start", begin)
    patch.setattr(fanout.Stream, "add", all_but_the_third)


@mutant("API server", "a-watch-sends-old-bytes", RACE)
def _(patch: pytest.MonkeyPatch) -> None:
    add = fanout.Stream.add
    last: dict[int, bytes] = {}
    count = itertools.count()

    def old(self: fanout.Stream, watch_id: int, kind: int, revision: int, wire: bytes) -> None:
        before = last.get(watch_id)
        last[watch_id] = wire
        if kind == fanout._MODIFIED and before and next(count) % 50 == 49:
            wire = before
        add(self, watch_id, kind, revision, wire)

    patch.setattr(fanout.Stream, "add", old)


@mutant("API server", "a-watch-falls-silent", RACE)
def _(patch: pytest.MonkeyPatch) -> None:
    add = fanout.Stream.add
    sent: dict[tuple[str, int], int] = {}

    def silent(self: fanout.Stream, watch_id: int, kind: int, revision: int, wire: bytes) -> None:
        key = self.by, watch_id
        sent[key] = sent.get(key, 0) + 1
        if not self.by.startswith("scheduler/default-scheduler/1") or sent[key] <= 60:
            add(self, watch_id, kind, revision, wire)

    patch.setattr(fanout.Stream, "add", silent)


@mutant(
    "API server", "an-object-that-leaves-a-selector-is-modified", "seeds/preemption-example-1 timing=realistic", RACE
)
def _(patch: pytest.MonkeyPatch) -> None:
    add = fanout.Stream.add

    def wrong(self: fanout.Stream, watch_id: int, kind: int, revision: int, wire: bytes) -> None:
        add(self, watch_id, fanout._MODIFIED if kind == fanout._DELETED else kind, revision, wire)

    patch.setattr(fanout.Stream, "add", wrong)


@mutant("API server", "an-event-is-sent-twice", RACE)
def _(patch: pytest.MonkeyPatch) -> None:
    add = fanout.Stream.add
    count = itertools.count()

    def twice(self: fanout.Stream, watch_id: int, kind: int, revision: int, wire: bytes) -> None:
        add(self, watch_id, kind, revision, wire)
        if next(count) % 60 == 59:
            add(self, watch_id, kind, revision, wire)

    patch.setattr(fanout.Stream, "add", twice)


@mutant("API server", "a-resumed-watch-misses-the-changes-since", "chaos/kubelet-partition timing=realistic", CRASH)
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(cache.Collection, "changes_after", lambda self, revision, selection: [])


@mutant(
    "API server", "the-window-is-forgotten-but-not-its-beginning", CRASH, "chaos/kubelet-partition timing=realistic"
)
def _(patch: pytest.MonkeyPatch) -> None:
    changes_after = cache.Collection.changes_after

    def last_only(self: cache.Collection, revision: int, selection: Any) -> list[cache.Change]:
        return changes_after(self, revision, selection)[-1:]

    patch.setattr(cache.Collection, "changes_after", last_only)


@mutant(
    "API server",
    "a-binding-may-replace-another",
    RACE,
    # The second replica decides before it hears of the first one's binding.
    decides=Decides("two-replicas", "pod-bound-at-most-once", "scheduled", pod="web", count=2),
)
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(bindings.Binder, "_check_unbound", lambda self, pod: None)


@mutant(
    "API server",
    "a-binding-ignores-the-uid",
    "races/recreated-pod",
    # The scheduler hears of the first pod and not yet of its end: its binding will come to the second pod.
    decides=Decides("one-name", "nobody-is-rejected", "scheduled", pod="db-0"),
)
def _(patch: pytest.MonkeyPatch) -> None:
    bound = bindings.Binder._bound

    def anonymous(self: bindings.Binder, strategy: Any, entry: Any, request: api_pb2.BindRequest) -> bytes:
        request = api_pb2.BindRequest.FromString(request.SerializeToString())
        request.uid = ""
        return bound(self, strategy, entry, request)

    patch.setattr(bindings.Binder, "_bound", anonymous)


@mutant(
    "API server",
    "graceful-deletion-removes-at-once",
    "seeds/preemption-example-1",
    RACE,
    # The draw between both nodes.
    decides=Decides("a-terminating-pod", "on-its-node", "scheduled", pod="next"),
)
def _(patch: pytest.MonkeyPatch) -> None:
    deleted = registry.Registry.deleted

    def at_once(self: registry.Registry, strategy: Any, entry: Any, deletion: deletions.Deletion) -> bytes | None:
        deletion.grace_s = 0
        return deleted(self, strategy, entry, deletion)

    patch.setattr(registry.Registry, "deleted", at_once)


@mutant("API server", "an-update-ignores-the-resource-version", "seeds/taints-and-tolerations timing=realistic")
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(registry.Registry, "_has_version", lambda self, wanted, revision: True)


@mutant("API server", "an-eviction-ignores-the-budget", "chaos/drain-under-budget")
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(evictions.Evictor, "_budgets_of", lambda self, pod: [])


@mutant("API server", "a-write-is-answered-before-it-is-made", "chaos/store-crash timing=realistic")
def _(patch: pytest.MonkeyPatch) -> None:
    rewrite = registry.Registry.rewrite
    count = itertools.count()

    async def hasty(
        self: registry.Registry,
        strategy: Any,
        key: bytes,
        *others: Any,
        leaves: bool = False,
        turn: Any = None,
        **more: Any,
    ) -> Any:
        entry = self.cache.collections[strategy.resource.plural].entries.get(key)
        if entry is not None and strategy.resource.plural == "pods" and next(count) % 30 == 29:
            if turn is not None:
                await turn
            if leaves:
                self.turns.leave(key)
            return entry, False
        return await rewrite(self, strategy, key, *others, leaves=leaves, turn=turn, **more)

    patch.setattr(registry.Registry, "rewrite", hasty)


@mutant("API server", "a-kubelet-may-delete-the-pods-of-other-nodes", "identities/rogue-kubelet")
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(node_restrictions.NodeRestriction, "delete", lambda self, resource, name, namespace: None)


@mutant("API server", "roles-count-in-every-namespace", "identities/rogue-kubelet")
def _(patch: pytest.MonkeyPatch) -> None:
    allows = roles.allows
    patch.setattr(roles, "allows", lambda grants, asked: allows([one._replace(namespace="") for one in grants], asked))


@mutant(
    "API server",
    "a-list-in-pages-is-as-new-as-its-last-page",
    "chaos/apiserver-failover timing=realistic apiServers.replicas=2 'chaos=["
    "{id: one, at: 20s, for: 2s, crash: {actor: apiserver/0}},"
    "{id: another, at: 30s, for: 2s, crash: {actor: apiserver/1}},"
    "{id: scheduler, at: 33s, for: 1s, crash: {actor: scheduler/default-scheduler/0}}]'",
)
def _(patch: pytest.MonkeyPatch) -> None:
    """Found by a soak with more keys than one page has."""
    list_all = feed.Feed._list

    async def too_new(self: feed.Feed, at: int = 0) -> tuple[list[Any], int, int]:
        entries, _, now = await list_all(self, at)
        return entries, now, now

    patch.setattr(feed, "PAGE", 3)
    patch.setattr(feed.Feed, "_list", too_new)
