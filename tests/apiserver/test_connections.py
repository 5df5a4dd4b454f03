"""Requests while the store cannot be reached: they wait for it, as those of kube-apiserver do."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Any

import pytest

from kemu import errors
from kemu.emulated.apiserver import connections
from kemu.runtime.env import SECOND_NS
from tests.apiserver.apiserver_cluster import Cluster, node, pod, refusal, run


def now_s(cluster: Cluster) -> float:
    return cluster.clock.now_ns() / SECOND_NS


async def timed(cluster: Cluster, request: Awaitable[Any]) -> tuple[float, Any]:
    """When it ended, and with which error, if any."""
    try:
        await request
    except errors.ApiError as error:
        return now_s(cluster), error
    return now_s(cluster), None


async def crash_for(cluster: Cluster, seconds: float) -> float:
    """Crash the store. Returns when it is back."""
    began_s = now_s(cluster)
    await cluster.runtime.crash("store")

    async def come_back() -> None:
        await cluster.clock.sleep(seconds)
        await cluster.runtime.restart("store")

    cluster.runtime.env("user").spawn(come_back(), "restart")
    return began_s + seconds


def test_requests_made_while_the_store_is_dead_wait_and_go_in_their_order() -> None:
    """``fake_etcd`` forgets everything when it starts, so revisions tell the order."""

    async def main(cluster: Cluster) -> list[str]:
        back_s = await crash_for(cluster, 8.0)
        await cluster.clock.sleep(1)
        order: list[str] = []

        async def create(name: str) -> None:
            await cluster.client.create(node(name))
            order.append(name)

        names = [f"n{number}" for number in (3, 1, 2, 0)]
        tasks = []
        for name in names:
            tasks.append(asyncio.ensure_future(create(name)))
            await cluster.clock.sleep(0.5)
        reading = asyncio.ensure_future(timed(cluster, cluster.client.get("nodes", "n3")))
        await asyncio.gather(*tasks)
        # Tried 0, 1, 2.6, 5.2 and 9.3 s after the crash, by gRPC's backoff with a jitter of a fifth from the third on.
        assert back_s < now_s(cluster) < back_s + 2.4
        assert order == names
        await reading
        assert not [one for one in cluster.refused() if one["verb"] != "get"]
        return order

    run(main)


def test_a_write_under_way_when_the_connection_breaks_is_refused_and_a_read_sent_again() -> None:
    async def main(cluster: Cluster) -> None:
        cluster.etcd.answers_after_s = 5.0
        writing = asyncio.ensure_future(timed(cluster, cluster.client.create(pod("a"))))
        await cluster.clock.sleep(1)
        assert any(b"/pods/" in key for key in cluster.etcd.now), "it was carried out"
        crashed_s = now_s(cluster)
        back_s = await crash_for(cluster, 0.9)
        ended_s, error = await writing
        assert isinstance(error, errors.OutcomeUnknown)
        assert (error.reason, error.code) == ("Unknown", 500)
        assert error.message.startswith("rpc error: code = Unavailable desc = ")
        assert ended_s < crashed_s + 0.1
        assert [(one["reason"], one["verb"]) for one in cluster.refused()] == [("Unknown", "create")]
        await refusal(errors.NotFound, cluster.client.get("pods", "a", "default"))
        assert back_s < now_s(cluster) < crashed_s + 1.2, "the second attempt comes a second after the first"

    run(main)


def test_a_read_under_way_is_sent_again(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main(cluster: Cluster) -> None:
        await cluster.client.create(node("n1"))
        await cluster.runtime.pause("store")
        reading = asyncio.ensure_future(timed(cluster, cluster.client.get("nodes", "n1")))
        await cluster.clock.sleep(0.5)
        await cluster.runtime.crash("store")
        await cluster.clock.sleep(0.5)
        assert not reading.done()
        await cluster.runtime.restart("store")
        _, error = await reading
        assert isinstance(error, errors.NotFound), "that of the new store, which is empty"

    run(main)


@pytest.mark.parametrize(("is_read", "limit_s"), [(False, 34.0), (True, 60.0)])
def test_nothing_waits_longer_than_its_request_may_take(is_read: bool, limit_s: float) -> None:
    async def main(cluster: Cluster) -> None:
        await cluster.client.create(pod("a"))
        await cluster.runtime.crash("store")
        await cluster.clock.sleep(1)
        began_s = now_s(cluster)
        client = cluster.client
        asked = client.get("pods", "a", "default") if is_read else client.create(pod("b"))
        ended_s, error = await timed(cluster, asked)
        assert isinstance(error, errors.ServerTimeout)
        assert (error.reason, error.code) == ("Timeout", 504)
        assert limit_s <= ended_s - began_s < limit_s + 0.1
        # Others go on as long as they may, and each for itself.
        first = asyncio.ensure_future(timed(cluster, client.create(pod("c"))))
        await cluster.clock.sleep(10)
        second = asyncio.ensure_future(timed(cluster, client.create(pod("d"))))
        assert 9.9 < (await second)[0] - (await first)[0] < 10.1

    run(main)


def test_in_a_partition_what_is_made_after_the_connection_broke_waits_until_it_heals() -> None:
    async def main(cluster: Cluster) -> None:
        await cluster.runtime.partition("p", ["apiserver/0"], ["store"])
        under_way = asyncio.ensure_future(timed(cluster, cluster.client.create(pod("a"))))
        await cluster.clock.sleep(6)
        _, error = await under_way
        assert isinstance(error, errors.OutcomeUnknown), "keepalive gives up after 5 s"
        waiting = asyncio.ensure_future(timed(cluster, cluster.client.create(pod("b"))))
        assert (await cluster.client.list("pods", resource_version="0")).items == [], "the cache still answers"
        await cluster.clock.sleep(6)
        assert not waiting.done()
        await cluster.runtime.heal("p")
        healed_s = now_s(cluster)
        ended_s, error = await waiting
        assert error is None
        assert ended_s < healed_s + 4.1
        await cluster.clock.sleep(1)
        listed = await cluster.client.list("pods", resource_version="0")
        assert [one.metadata.name for one in listed.items] == ["b"], "the cache follows the store again"

    run(main)


def test_a_write_is_sent_once_although_the_store_may_have_been_paused() -> None:
    async def main(cluster: Cluster) -> None:
        await cluster.runtime.pause("store")
        writing = asyncio.ensure_future(timed(cluster, cluster.client.create(pod("a"))))
        await cluster.clock.sleep(8)
        assert isinstance((await writing)[1], errors.OutcomeUnknown)
        waiting = asyncio.ensure_future(timed(cluster, cluster.client.create(pod("b"))))
        await cluster.clock.sleep(4)
        await cluster.runtime.resume("store")
        assert (await waiting)[1] is None
        writes = [key for _, key, _, _, _ in cluster.etcd.log if b"/pods/" in key]
        assert len(writes) == len(set(writes))

    run(main)


def test_the_backoff_is_that_of_grpc_and_repeatable() -> None:
    def drawn(seed: int) -> list[float]:
        async def main(cluster: Cluster) -> list[float]:
            connection = connections.Connection(cluster.runtime.env("apiserver/9"), None)  # type: ignore[arg-type]
            return [connection._backoff_s(attempt) for attempt in range(14)]

        return run(main, seed=seed)

    found = drawn(1)
    assert found[0] == 1.0
    for attempt, seconds in enumerate(found):
        mean = min(1.6**attempt, 120.0)
        assert 0.8 * mean <= seconds <= 1.2 * mean
    assert found == drawn(1) != drawn(2)
