"""What an API server does when it is told to answer from the past, to end watches, to be slow."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from kemu import errors
from kemu.emulated.client.informers import Callbacks, Informer
from kemu.runtime.env import SECOND_NS
from tests.apiserver.apiserver_cluster import Cluster, node, pod, refusal, run


async def inject(cluster: Cluster, what: str, fault: str = "f", **parameters: Any) -> None:
    await cluster.runtime.inject(fault, what, parameters)


async def names(cluster: Cluster, server: int = 0, version: str = "0") -> list[str]:
    return [one.metadata.name for one in (await cluster.client_of(server).list("pods", resource_version=version)).items]


# --- staleReads -------------------------------------------------------------------------------------------------------


def test_one_server_falls_behind_and_catches_up() -> None:
    async def main(cluster: Cluster) -> None:
        await cluster.client.create(pod("a"))
        await cluster.clock.sleep(1)
        await inject(cluster, "staleReads", apiServer=["apiserver/1"], by=20.0)
        watch = await cluster.watch(1, version="0").start()
        assert await watch.take(2) == [("ADDED", "a"), ("BOOKMARK", "")]
        created = await cluster.client.create(pod("b"))
        await cluster.clock.sleep(10)
        assert await names(cluster, 0) == ["a", "b"]
        assert await names(cluster, 1) == ["a"], "it does not go back, it stands still"
        assert await names(cluster, 1, "") == ["a", "b"], "a consistent list is consistent"
        assert (await cluster.client_of(1).get("pods", "b", "default")).metadata.name == "b"
        version = created.metadata.resourceVersion
        await refusal(errors.ServerTimeout, cluster.client_of(1).list("pods", resource_version=version))
        await cluster.client_of(1).bind("default", "b", created.metadata.uid, "n1")
        await cluster.clock.sleep(1)
        assert await cluster.runtime.heal("f") > 0
        assert await watch.take(2) == [("ADDED", "b"), ("MODIFIED", "b")]
        assert cluster.clock.now_ns() < 20 * SECOND_NS, "it catches up at once"
        assert await names(cluster, 1) == ["a", "b"]
        assert cluster.recorder.of("chaos.hit") == [{"id": "f", "actor": "apiserver/1"}]

    run(main, servers=({}, {}))


def test_it_trails_by_the_lag_and_the_longest_of_several_counts() -> None:
    async def main(cluster: Cluster) -> None:
        watch = await cluster.watch(version="0").start()
        await watch.take(1)
        await inject(cluster, "staleReads", "long", apiServer=["apiserver/0"], by=5.0)
        await inject(cluster, "staleReads", "short", apiServer=["apiserver/0"], by=2.0)
        for end, lag_s in (("long", 5), ("short", 2), ("", 0)):
            start_ns = cluster.clock.now_ns()
            await cluster.client.create(pod(f"after-{lag_s}"))
            await watch.take(1)
            assert lag_s * SECOND_NS <= cluster.clock.now_ns() - start_ns < (lag_s + 0.1) * SECOND_NS
            if end:
                await cluster.runtime.heal(end)

    run(main)


def test_a_server_that_restarts_meanwhile_is_stale_again() -> None:
    async def main(cluster: Cluster) -> None:
        await inject(cluster, "staleReads", apiServer=["apiserver/0"], by=20.0)
        await cluster.runtime.crash("apiserver/0")
        await cluster.runtime.restart("apiserver/0")
        await cluster.clock.sleep(1)
        await cluster.client_of(0, "other").create(pod("a"))
        await cluster.clock.sleep(1)
        assert await names(cluster) == []
        await cluster.runtime.heal("f")
        assert await names(cluster) == ["a"]

    run(main)


# --- cutWatches -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("compacted", [False, True])
def test_watches_are_cut_and_resumed_or_begun_anew(compacted: bool) -> None:
    async def main(cluster: Cluster) -> None:
        client = cluster.client_of(0, "watcher")
        informers = {name: Informer(client, name) for name in ("pods", "nodes")}
        for informer in informers.values():
            await informer.synced()
        other = Informer(cluster.client_of(1, "other"), "pods")
        await other.synced()
        await cluster.client.create(node("n1"))
        await cluster.client.create(pod("a"))
        await cluster.clock.sleep(1)
        before = len(cluster.recorder.of("watch.listed"))
        await inject(cluster, "cutWatches", of=["watcher", "somebody"], compacted=compacted)
        await cluster.clock.sleep(0.3)  # the cache learns of the compaction by asking for progress
        await cluster.client.create(pod("b"))
        await cluster.clock.sleep(0.1)
        assert sorted(other.store) == ["default/a", "default/b"], "others are not concerned"
        assert sorted(informers["pods"].store) == ["default/a"], "it waits before it comes again"
        await cluster.clock.sleep(5)
        assert sorted(informers["pods"].store) == ["default/a", "default/b"]
        assert sorted(informers["nodes"].store) == ["n1"]
        again = cluster.recorder.of("watch.listed")[before:]
        assert sorted(data["resource"] for data in again) == (["nodes", "pods"] if compacted else [])
        closed = cluster.recorder.of("watch.closed")
        assert [data["reason"] for data in closed] == ["Expired"] * (2 if compacted else 0)
        assert (cluster.etcd.compacted > 0) == compacted
        assert cluster.recorder.of("chaos.hit") == [{"id": "f", "actor": "apiserver/0", "peer": "watcher"}]
        # It is over: what begins now stays.
        await cluster.client.create(pod("c"))
        await cluster.clock.sleep(0.1)
        assert len(informers["pods"].store) == 3

    run(main, servers=({}, {}))


def test_a_raw_watch_sees_its_stream_end_without_an_error() -> None:
    async def main(cluster: Cluster) -> None:
        watch = await cluster.watch(version="0").start()
        await watch.take(1)
        await inject(cluster, "cutWatches", of=["watcher"], compacted=False)
        with pytest.raises(AttributeError):  # EOF has no events
            await watch.next()
        assert (await watch.call.code()).name == "OK"

    run(main)


@pytest.mark.parametrize("compacted", [False, True])
def test_watches_of_one_kind_are_cut(compacted: bool) -> None:
    async def main(cluster: Cluster) -> None:
        client = cluster.client_of(0, "watcher")
        informers = {name: Informer(client, name) for name in ("pods", "nodes")}
        for informer in informers.values():
            await informer.synced()
        await cluster.client.create(node("n1"))
        await cluster.clock.sleep(1)
        before = len(cluster.recorder.of("watch.listed"))
        await inject(cluster, "cutWatches", of=["watcher"], compacted=compacted, resource=["pod*"])
        await cluster.clock.sleep(0.3)
        await cluster.client.create(node("n2"))
        await cluster.client.create(pod("a"))
        await cluster.clock.sleep(5)
        assert sorted(informers["nodes"].store) == ["n1", "n2"]
        assert sorted(informers["pods"].store) == ["default/a"]
        again = cluster.recorder.of("watch.listed")[before:]
        assert [data["resource"] for data in again] == (["pods"] if compacted else [])
        assert cluster.recorder.of("chaos.hit") == [{"id": "f", "actor": "apiserver/0", "peer": "watcher"}]

    run(main)


# --- delay of kinds ---------------------------------------------------------------------------------------------------


def test_events_of_a_kind_come_late_in_their_order_and_others_overtake_them() -> None:
    async def main(cluster: Cluster) -> None:
        client, came = cluster.client_of(0, "watcher"), list[tuple[str, float]]()

        def note(obj: Any) -> None:
            came.append((obj.metadata.name, round(cluster.clock.now_ns() / SECOND_NS, 1)))

        for kind in ("pods", "nodes"):
            await Informer(client, kind, handler=Callbacks(on_add=note)).synced()
        start_s = round(cluster.clock.now_ns() / SECOND_NS)
        await cluster.clock.sleep_until_ns(start_s * SECOND_NS)
        parameters = {"from": ["apiserver/0"], "to": ["watcher"], "by": 2.0, "resource": ["nodes"]}
        await cluster.runtime.inject("f", "delay", parameters)
        for at_s, obj in ((0, node("n1")), (1, pod("a")), (1, node("n2")), (1.5, node("n3"))):
            await cluster.clock.sleep_until_ns(round((start_s + at_s) * SECOND_NS))
            await cluster.client.create(obj)
        await cluster.runtime.heal("f")
        await cluster.client.create(node("n4"))
        await cluster.clock.sleep(5)
        await cluster.client.create(node("n5"))
        await cluster.clock.sleep(1)
        late = [("a", 1.0), ("n1", 2.0), ("n2", 3.0), ("n3", 3.5), ("n4", 3.5), ("n5", 6.5)]
        assert [(name, round(at_s - start_s, 1)) for name, at_s in came] == late
        assert cluster.recorder.of("chaos.hit") == [{"id": "f", "actor": "apiserver/0", "peer": "watcher"}]

    run(main)


def test_what_is_late_is_not_told_to_a_watch_that_has_begun_anew() -> None:
    """It has it from the beginning."""

    async def main(cluster: Cluster) -> None:
        informer = Informer(cluster.client_of(0, "watcher"), "nodes")
        await informer.synced()
        parameters = {"from": ["apiserver/0"], "to": ["watcher"], "by": 5.0, "resource": ["nodes"]}
        await cluster.runtime.inject("f", "delay", parameters)
        await cluster.client.create(node("n1"))
        await cluster.clock.sleep(1)
        await inject(cluster, "cutWatches", "g", of=["watcher"], compacted=False)
        await cluster.clock.sleep(2)
        assert sorted(informer.store) == ["n1"]
        await cluster.clock.sleep(10)
        delivered = [revision for one in cluster.recorder.of("watch.events") for revision in one["revs"]]
        assert len(delivered) == len(set(delivered))

    run(main)


# --- slowApi ----------------------------------------------------------------------------------------------------------


def test_requests_take_their_time_and_the_rest_waits_or_is_refused() -> None:
    async def main(cluster: Cluster) -> None:
        await inject(cluster, "slowApi", apiServer=["apiserver/0"], by={"uniform": {"min": 2.0, "max": 4.0}})
        start_ns = cluster.clock.now_ns()
        await cluster.client.create(pod("a"))
        assert 2 * SECOND_NS <= cluster.clock.now_ns() - start_ns <= 4.1 * SECOND_NS
        many = [asyncio.ensure_future(cluster.client.create(pod(f"p{number}"))) for number in range(30)]
        await cluster.clock.sleep(20)
        assert await cluster.runtime.heal("f") > 0
        await asyncio.gather(*many)
        start_ns = cluster.clock.now_ns()
        await cluster.client.create(pod("z"))
        assert cluster.clock.now_ns() - start_ns < SECOND_NS / 10
        assert cluster.recorder.of("api.throttled"), "some waited for more than 15 s"
        assert cluster.recorder.of("chaos.hit") == [{"id": "f", "actor": "apiserver/0", "peer": "user"}]

    run(main, servers=({"seats": 2},))
