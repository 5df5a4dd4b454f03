"""A watch cache that lags behind the store: stale reads, on purpose and in order."""

from __future__ import annotations

from kemu import errors
from kemu.emulated.client.sessions import error_of
from tests.apiserver.apiserver_cluster import SERVERS, Cluster, pod, refusal, run


async def names(cluster: Cluster, resource: str = "pods") -> list[str]:
    """What the cache of the (only) API server shows."""
    return [one.metadata.name for one in (await cluster.client.list(resource, resource_version="0")).items]


def test_a_cache_shows_the_past() -> None:
    async def main(cluster: Cluster) -> None:
        for name in ("a", "b"):
            await cluster.client.create(pod(name))
            await cluster.clock.sleep(6)
        assert await names(cluster) == ["a"]
        await cluster.client.delete("pods", "a", "default")
        await cluster.clock.sleep(5)
        assert await names(cluster) == ["a", "b"], "b has come, and that a has gone is not known yet"
        await cluster.clock.sleep(6)
        assert await names(cluster) == ["b"]

    run(main, servers=({"cache_lag_s": 10},))


def test_nothing_lags_before_the_clock_starts() -> None:
    async def main(cluster: Cluster) -> None:
        assert "kube-system" in await names(cluster, "namespaces")

    run(main, servers=({"cache_lag_s": 1000},))


def test_a_lag_may_change_and_the_order_of_events_does_not() -> None:
    async def main(cluster: Cluster) -> None:
        feed = SERVERS[-1].feed
        watch = await cluster.watch(version="0").start()
        await watch.next()
        revisions = []
        for number, lag_s in enumerate((10, 10, 1, 0, 5, 0)):
            feed.lag_ns = lag_s * 1_000_000_000
            created = await cluster.client.create(pod(f"p{number}"))
            revisions.append(int(created.metadata.resourceVersion))
            await cluster.clock.sleep(0.5)
        assert [(await watch.next()).resource_version for _ in revisions] == revisions
        created = await cluster.client.create(pod("last"))
        start_ns = cluster.clock.now_ns()
        assert (await watch.next()).resource_version == int(created.metadata.resourceVersion)
        assert cluster.clock.now_ns() - start_ns < 10_000_000, "all is caught up, and there is no lag any more"

    run(main, servers=({"cache_lag_s": 10},))


def test_held_back_news_of_a_lost_history_are_forgotten() -> None:
    async def main(cluster: Cluster) -> None:
        await cluster.client.create(pod("a"))
        await cluster.clock.sleep(11)
        watch = await cluster.watch(version="0").start()
        await watch.take(2)
        revision = cluster.etcd.revision
        await cluster.client.create(pod("lost"))
        await cluster.clock.sleep(1)
        cluster.etcd.forget_after(revision)
        assert isinstance(error_of((await watch.next()).error), errors.Gone)
        await cluster.clock.sleep(20)
        assert await names(cluster) == ["a"]
        await refusal(errors.NotFound, cluster.client.get("pods", "lost", "default"))

    run(main, servers=({"cache_lag_s": 10},))
