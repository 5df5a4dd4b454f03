"""Bugs in the client: sessions, watches, informers."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from kemu.emulated.client import clients, drains, elections, informers, sessions, watches
from kemu.messages.v1 import api_pb2
from tests.mutants.planting import mutant

RACE = "races/two-replicas-same-pods timing=realistic"
CRASH = "chaos/apiserver-crash timing=realistic"
STORE = "chaos/store-crash timing=realistic"
CUT = "chaos/kubelet-partition timing=realistic"


@mutant("client", "an-informer-loses-an-event", RACE)
def _(patch: pytest.MonkeyPatch) -> None:
    receive = informers.Informer.receive
    count = itertools.count()

    def lossy(self: informers.Informer, event: api_pb2.WatchEvent, *, alone: bool = False) -> bool:
        if event.type == 2 and self.resource == "pods" and next(count) % 15 == 14:
            return False
        return receive(self, event, alone=alone)

    patch.setattr(informers.Informer, "receive", lossy)


@mutant("client", "an-informer-ignores-deletions", RACE)
def _(patch: pytest.MonkeyPatch) -> None:
    receive = informers.Informer.receive

    def hoarding(self: informers.Informer, event: api_pb2.WatchEvent, *, alone: bool = False) -> bool:
        if event.type == 2 and self.resource == "pods":
            handler, self._handler = self._handler, None
            try:
                return receive(self, event, alone=alone)
            finally:
                self._handler = handler
        return receive(self, event, alone=alone)

    patch.setattr(informers.Informer, "receive", hoarding)


@mutant("client", "a-watch-resumes-one-revision-too-late", CUT, CRASH, STORE)
def _(patch: pytest.MonkeyPatch) -> None:
    create = watches._create

    def late(watch_id: int, subscriber: Any) -> api_pb2.WatchRequest:
        request = create(watch_id, subscriber)
        request.create.resource_version = str(subscriber.revision + 1)
        return request

    patch.setattr(watches, "_create", late)


@mutant("client", "a-watch-resumes-from-now", CUT, CRASH, STORE)
def _(patch: pytest.MonkeyPatch) -> None:
    create = watches._create

    def now(watch_id: int, subscriber: Any) -> api_pb2.WatchRequest:
        request = create(watch_id, subscriber)
        if subscriber.resource == "pods":
            request.create.resource_version = str(subscriber.revision + 40)
        return request

    patch.setattr(watches, "_create", now)


@mutant("client", "a-lost-connection-counts-as-success", STORE, CRASH)
def _(patch: pytest.MonkeyPatch) -> None:
    on_lost = sessions.Session.on_lost

    def optimistic(self: sessions.Session, *why: Any) -> None:
        unsent = {call.id for batch in self._batches for call in batch.calls}
        for call_id in [each for each in self._in_flight if each not in unsent]:
            pending = self._in_flight[call_id]
            if pending.mutating and not pending.future.done():
                del self._in_flight[call_id]
                pending.future.set_result(pending.message())
        on_lost(self, *why)

    patch.setattr(sessions.Session, "on_lost", optimistic)


@mutant("client", "a-relist-forgets-what-is-gone", "chaos/cut-watches", "chaos/cut-watches timing=realistic")
def _(patch: pytest.MonkeyPatch) -> None:
    replace = informers.Informer._replace

    def keeping(self: informers.Informer, items: list[Any]) -> None:
        listed = {self._key(obj) for obj in items}
        replace(self, items + [obj for key, obj in self.store.items() if key not in listed])

    patch.setattr(informers.Informer, "_replace", keeping)


@mutant("client", "a-candidate-does-not-wait-for-the-lease", "elections/failover")
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(elections.Elector, "_is_valid", lambda self, now_ns: False)


@mutant("client", "who-has-lost-its-lease-goes-on", "elections/failover")
def _(patch: pytest.MonkeyPatch) -> None:
    async def forever(self: elections.Elector) -> None:
        while True:
            await self._env.clock.sleep(3600, background=True)

    patch.setattr(elections.Elector, "renew", forever)


@mutant("client", "a-drain-asks-no-budget", "seeds/drain-with-a-budget")
def _(patch: pytest.MonkeyPatch) -> None:
    async def delete(self: clients.Client, namespace: str, name: str, *_: Any, **__: Any) -> Any:
        return await self.delete("pods", name, namespace)

    patch.setattr(clients.Client, "evict", delete)


@mutant("client", "a-drain-gives-up-when-a-budget-refuses", "seeds/drain-with-a-budget")
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(drains, "_is_tried_again", lambda error: False)


@mutant("client", "a-lease-is-taken-before-it-runs-out", "elections/failover")
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(elections.Elector, "_is_valid", lambda self, now_ns: False)
