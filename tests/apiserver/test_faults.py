"""When the store is away, forgets, or is compacted; when the API server restarts."""

from __future__ import annotations

import asyncio
import random

import pytest

from kemu import errors
from kemu.emulated.apiserver.server import ApiServer
from kemu.emulated.client.informers import Informer
from kemu.emulated.client.sessions import error_of
from kemu.messages.v1 import api_pb2
from tests.apiserver.apiserver_cluster import Cluster, node, pod, refusal, run, shown


def test_without_the_store_nothing_can_be_written_and_the_cache_still_answers() -> None:
    async def main(cluster: Cluster) -> None:
        await cluster.client.create(pod("a"))
        await cluster.clock.sleep(1)
        await cluster.runtime.partition("p", ["apiserver/0"], ["store"])
        creating = asyncio.ensure_future(cluster.client.create(pod("b")))
        assert (await cluster.client.get("pods", "a", "default", resource_version="0")).metadata.name == "a"
        await refusal(errors.OutcomeUnknown, creating)
        getting = asyncio.ensure_future(cluster.client.get("pods", "a", "default"))
        await cluster.clock.sleep(5)
        assert not getting.done()
        assert [one["reason"] for one in cluster.refused()] == ["Unknown"]
        await cluster.runtime.heal("p")
        assert (await getting).metadata.name == "a"
        await cluster.clock.sleep(2)
        await cluster.client.create(pod("c"))
        await cluster.clock.sleep(1)
        listed = await cluster.client.list("pods", resource_version="0")
        assert "c" in [one.metadata.name for one in listed.items], "the cache follows the store again"

    run(main)


def test_a_broken_watch_on_the_store_is_resumed_without_a_gap() -> None:
    async def main(cluster: Cluster) -> None:
        await cluster.client.create(node("n1"))
        watch = await cluster.watch(resource="nodes", version="0").start()
        await watch.take(2)
        random_ = random.Random(1)
        revisions = []
        for number in range(60):
            if random_.random() < 0.2:
                cluster.etcd.break_watches()
            patch = {"metadata": {"labels": {"n": str(number)}}}
            patched = await cluster.client.patch("nodes", "n1", "", patch)
            revisions.append(int(patched.metadata.resourceVersion))
            await cluster.clock.sleep(random_.choice([0, 0.01, 0.2]))
        assert [(await watch.next()).resource_version for _ in range(60)] == revisions

    run(main)


def test_when_the_history_is_lost_everybody_lists_again() -> None:
    async def main(cluster: Cluster) -> None:
        kept, gone = [await cluster.client.create(pod(name)) for name in ("kept", "gone")]
        watch = await cluster.watch(version="0").start()
        await watch.take(3)
        informer = Informer(cluster.client_of(0, "informed"), "pods")
        await informer.synced()
        await cluster.runtime.partition("p", ["apiserver/0"], ["store"])
        await cluster.clock.sleep(6)
        prefix = b"/registry/pods/default/"
        cluster.etcd.change({prefix + b"gone": None})
        value = gone.SerializeToString(deterministic=True).replace(b"gone", b"came")
        cluster.etcd.compacted = cluster.etcd.change({prefix + b"came": value})
        await cluster.runtime.heal("p")
        event = await watch.next()
        assert isinstance(error_of(event.error), errors.Gone)
        await cluster.clock.sleep(10)
        assert sorted(informer.store) == ["default/came", "default/kept"]
        assert informer.store["default/kept"] == kept

    run(main)


def test_a_store_that_lost_acknowledged_writes_takes_the_cache_back_with_it() -> None:
    """As a store does that does not fsync: what clients see is the store, not a memory of it."""

    async def main(cluster: Cluster) -> None:
        await cluster.client.create(pod("a"))
        revision = cluster.etcd.revision
        await cluster.client.create(pod("b"))
        watch = await cluster.watch(version="0").start()
        await watch.take(3)
        await cluster.clock.sleep(1)
        cluster.etcd.forget_after(revision)
        assert isinstance(error_of((await watch.next()).error), errors.Gone)
        await cluster.clock.sleep(2)
        listed = await cluster.client.list("pods", resource_version="0")
        assert [one.metadata.name for one in listed.items] == ["a"]
        created = await cluster.client.create(pod("b"))
        assert int(created.metadata.resourceVersion) == revision + 1

    run(main)


def test_an_api_server_that_restarts_has_lost_nothing() -> None:
    async def main(cluster: Cluster) -> None:
        created = await cluster.client.create(pod("a"))
        informer = Informer(cluster.client_of(0, "informed"), "pods")
        await informer.synced()
        uid = (await cluster.client.get("namespaces", "default")).metadata.uid
        await cluster.runtime.crash("apiserver/0")
        await refusal(errors.ServiceUnavailable, cluster.client.get("pods", "a", "default"))
        await cluster.runtime.restart("apiserver/0")
        await cluster.clock.sleep(10)
        assert await cluster.client.get("pods", "a", "default") == created
        assert (await cluster.client.get("namespaces", "default")).metadata.uid == uid
        await cluster.client.bind("default", "a", created.metadata.uid, "n1")
        await cluster.clock.sleep(1)
        assert informer.store["default/a"].spec.nodeName == "n1"

    run(main)


def test_compaction_forgets_what_is_older_than_the_interval() -> None:
    async def main(cluster: Cluster) -> None:
        await cluster.client.create(pod("a"))
        page = await cluster.client.list("namespaces", limit=1)
        await cluster.clock.sleep(400)
        assert cluster.etcd.compacted == 0
        await cluster.client.list("namespaces", limit=1, continue_token=page.continue_token)
        await cluster.client.create(pod("b"))
        await cluster.clock.sleep(250)
        assert cluster.etcd.compacted == int(page.resource_version)
        await cluster.clock.sleep(400)
        assert cluster.etcd.compacted == cluster.etcd.revision
        await refusal(errors.Gone, cluster.client.list("namespaces", limit=1, continue_token=page.continue_token))
        await cluster.client.create(pod("c"))

    run(main, servers=({}, {}))


def test_compaction_can_be_switched_off() -> None:
    async def main(cluster: Cluster) -> None:
        await cluster.clock.sleep(3600)
        assert cluster.etcd.compacted == 0

    run(main, servers=({"compaction_interval_s": 0},))


@pytest.mark.parametrize(
    ("config", "text"),
    [
        ({"cacheLag": 1}, "unknown setting 'cacheLag'"),
        ({"ablate": ["everything"]}, "unknown variant 'everything'"),
        ({"admission": ["Prioritty"]}, "unknown admission plugin 'Prioritty'"),
        ({"bind_check": "sometimes"}, "unknown bind_check 'sometimes'"),
    ],
)
def test_a_wrong_configuration_is_refused(config: dict[str, object], text: str) -> None:
    class Env:
        clock = None
        crash_steps = ()

        def dial(self, name: str) -> object:
            from kemu.runtime.rpc.clients import MemoryChannel

            return MemoryChannel(lambda: None, None)  # type: ignore[arg-type, return-value]

        def step(self, name: str) -> None: ...

    with pytest.raises(ValueError, match=text):
        ApiServer(Env(), config)  # type: ignore[arg-type]


def test_the_same_seed_gives_the_same_run() -> None:
    async def main(cluster: Cluster) -> None:
        watch = await cluster.watch(version="0").start()
        clients = [cluster.client_of(number % 2, f"user{number}") for number in range(4)]
        for round_ in range(5):
            await asyncio.gather(*(client.create(pod(f"p{round_}-{number}")) for number, client in enumerate(clients)))
            await asyncio.gather(
                *(client.bind("default", f"p{round_}-0", "", f"n{n}") for n, client in enumerate(clients)),
                return_exceptions=True,
            )
        events = [await watch.next() for _ in range(26)]
        assert {shown(event)[0] for event in events} == {"ADDED", "MODIFIED", "BOOKMARK"}
        seen.append(
            [(event.resource_version, event.object) for event in events] + list(cluster.recorder.events)  # type: ignore[operator]
        )

    seen: list[object] = []
    timing = {name: {"uniform": {"min": 0.001, "max": 0.01}} for name in ("apiLatency", "storeLatency", "watchLatency")}
    for seed in (1, 1, 2):
        run(main, servers=({}, {"cache_lag_s": 0.01}), timing=timing, seed=seed)
    assert seen[0] == seen[1]
    assert seen[0] != seen[2]
    assert api_pb2.WatchEvent.ADDED == 0
