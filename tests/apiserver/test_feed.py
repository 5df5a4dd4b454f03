"""The API server's watch on the store, on streams that treat writes as gRPC does.

In virtual time a write is on its way at once. With gRPC the first one waits for the connection, and one that begins
when that is there overtakes it; a second write while another is under way ends the call; and one whose writer is
cancelled cancels the call.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from typing import Any

import grpc
import grpc.aio
import pytest

from kemu import errors
from kemu.emulated.apiserver.server import ApiServer
from kemu.emulated.apiserver.storage import Storage
from kemu.emulated.apiserver.watch import feed as feed_module
from kemu.emulated.apiserver.watch.feed import Feed
from kemu.emulated.client.clients import Client
from kemu.runtime.env import SECOND_NS, ActorSpec, Clock, Env
from kemu.runtime.sim.simulation import SimRuntime
from kemu.testing import Recorder, sim
from tests.apiserver import apiserver_cluster
from tests.apiserver.apiserver_cluster import SERVERS, Cluster, pod

CONNECTS_AFTER_S = 0.5
"""Longer than it takes until whoever waits for the cache asks for progress."""
WRITES_FOR_S = 0.05

BROKEN = grpc.aio.AioRpcError(
    grpc.StatusCode.INTERNAL, grpc.aio.Metadata(), grpc.aio.Metadata(), "Internal error from Core"
)


class RealStream:
    """A call over a network on which writes take time."""

    def __init__(self, call: Any, clock: Clock) -> None:
        self._call = call
        self._clock = clock
        self._connects_at_ns = clock.now_ns() + int(CONNECTS_AFTER_S * SECOND_NS)
        self._is_writing = False
        self._ended: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self.faults: list[str] = []
        """What ended the call that should not have happened."""
        self.written: list[str] = []

    async def read(self) -> Any:
        reading = asyncio.ensure_future(self._call.read())
        await asyncio.wait((reading, self._ended), return_when=asyncio.FIRST_COMPLETED)
        return self._ended.result() if self._ended.done() else reading.result()

    async def write(self, request: Any) -> None:
        kind = request.WhichOneof("request_union")
        late_s = 2 * WRITES_FOR_S if kind == "create_request" else 0
        await self._clock.sleep_until_ns(self._connects_at_ns + int(late_s * SECOND_NS))
        if self._is_writing:
            self.faults.append(f"{kind} was written while another write was under way")
            self.end()
            raise BROKEN
        self._is_writing = True
        try:
            await self._call.write(request)
            self.written.append(kind)
            await self._clock.sleep(0 if kind == "create_request" else WRITES_FOR_S)
        except asyncio.CancelledError:
            self.faults.append(f"the writer of {kind} was cancelled")
            self.end()
            raise
        finally:
            self._is_writing = False

    def end(self) -> None:
        if not self._ended.done():
            self._ended.set_exception(BROKEN)


STREAMS: list[RealStream] = []
"""Those to the store, newest last."""


def start_server(env: Env, config: Mapping[str, Any]) -> ApiServer:
    server = ApiServer(env, config)
    feed, STREAMS[:] = server.feed, []
    watch = feed._watch

    def open_stream() -> RealStream:
        STREAMS.append(RealStream(watch(), env.clock))
        return STREAMS[-1]

    feed._watch = open_stream
    SERVERS.append(server)
    return server


def run(main: Callable[[Clock, Client, Feed], Coroutine[Any, Any, None]]) -> None:
    specs = [
        ActorSpec("store", "kemu.emulated.store.server:Store"),
        ActorSpec("apiserver/0", f"{__name__}:start_server"),
    ]

    async def drive(runtime: SimRuntime) -> None:
        async with asyncio.timeout(60):
            await main(runtime.clock, Client(runtime.env("user"), "apiserver/0"), SERVERS[-1].feed)

    sim(drive, 0, specs, sink=Recorder())


def test_a_cache_names_no_revision_whose_events_it_lacks() -> None:
    """Progress that is asked for before the watch is there would be that of a stream without watches."""

    async def main(clock: Clock, client: Client, feed: Feed) -> None:
        for number in range(3):
            await client.create(pod(f"before-{number}"))
        await clock.sleep(1)
        STREAMS[-1].end()
        for number in range(3):
            await client.create(pod(f"after-{number}"))
        while len(STREAMS) == 1:
            await clock.sleep(0.01)
        # A linearizable list asks for progress as long as the cache is behind.
        assert len((await client.list("pods")).items) == 6
        assert STREAMS[1].written[0] == "create_request"
        assert len(STREAMS) == 2

    run(main)


def test_many_that_wait_ask_for_progress_one_at_a_time() -> None:
    async def main(clock: Clock, client: Client, feed: Feed) -> None:
        ahead = [asyncio.ensure_future(feed.until(1_000_000)) for _ in range(5)]
        for outcome in await asyncio.gather(*ahead, return_exceptions=True):
            assert isinstance(outcome, errors.ServerTimeout)
        assert not STREAMS[0].faults
        assert STREAMS[0].written.count("progress_request") > 10
        assert len(STREAMS) == 1

    run(main)


def test_who_waits_no_longer_does_not_take_the_watch_along() -> None:
    async def main(clock: Clock, client: Client, feed: Feed) -> None:
        await clock.sleep(1)
        waiting = asyncio.ensure_future(feed.until(1_000_000))
        while "progress_request" not in STREAMS[0].written:
            await clock.sleep(0.01)
        waiting.cancel()
        await client.create(pod("a"))
        await clock.sleep(1)
        assert not STREAMS[0].faults
        assert [one.metadata.name for one in (await client.list("pods", resource_version="0")).items] == ["a"]

    run(main)


def test_what_is_written_between_two_pages_is_not_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    """The list is as old as its first page, and the watch begins there."""
    monkeypatch.setattr(feed_module, "PAGE", 2)

    async def main(cluster: Cluster) -> None:
        writer, pages, range_of = cluster.client_of(1), 0, Storage.range

        async def interrupted(self: Storage, *arguments: Any, limit: int = 0, **options: Any) -> Any:
            nonlocal pages
            found = await range_of(self, *arguments, limit=limit, **options)
            if limit == feed_module.PAGE:
                pages += 1
                await writer.create(pod(f"new-{pages}"))
            return found

        for name in "abcde":
            await writer.create(pod(name))
        await cluster.runtime.crash("apiserver/0")
        monkeypatch.setattr(Storage, "range", interrupted)
        await cluster.runtime.restart("apiserver/0")
        await cluster.clock.sleep(1)
        assert pages > 1
        lists = [await cluster.client_of(number).list("pods", resource_version="0") for number in (0, 1)]
        names = [[one.metadata.name for one in found.items] for found in lists]
        assert names[0] == names[1]

    apiserver_cluster.run(main, servers=({}, {}))


OLD = "3.4.23"


def test_an_old_etcd_that_is_ahead_of_its_events_is_not_believed() -> None:
    async def main(cluster: Cluster) -> None:
        cluster.etcd.events_after_s = 0.7
        for name in "ab":
            await cluster.client.create(pod(name))
            cluster.etcd.change({b"/elsewhere": name.encode()})
        listed = await cluster.client.list("pods")
        assert [one.metadata.name for one in listed.items] == ["a", "b"]
        assert int(listed.resource_version) == cluster.etcd.revision

    apiserver_cluster.run(main, servers=[{"store_is_etcd": True}], etcd={"version": OLD})


@pytest.mark.parametrize("is_gone", [True, False])
def test_with_an_old_etcd_the_cache_learns_from_the_keys_how_far_it_is(is_gone: bool) -> None:
    async def main(cluster: Cluster) -> None:
        created = await cluster.client.create(pod("a"))
        await cluster.client.list("pods", resource_version=created.metadata.resourceVersion)
        cluster.etcd.is_mute = True
        if is_gone:
            await cluster.client.delete("pods", "a", "default", grace_period_seconds=0)
        revision = cluster.etcd.change({b"/elsewhere": b"x"})
        start_ns = cluster.clock.now_ns()
        reading = cluster.client.list("pods", resource_version=str(revision))
        if is_gone:
            await apiserver_cluster.refusal(errors.ServerTimeout, reading)
        else:
            assert (await reading).resource_version == str(revision)
            assert cluster.clock.now_ns() - start_ns < 0.3e9

    apiserver_cluster.run(main, servers=[{"store_is_etcd": True}], etcd={"version": OLD})


@pytest.mark.parametrize(
    ("version", "tells"),
    [
        ("3.4.23", False),
        ("3.4.30", False),
        ("3.4.31", True),
        ("3.5.0", False),
        ("3.5.12", False),
        ("3.5.13", True),
        ("3.6.12", True),
        ("4.0.0", True),
        ("unknown", False),
    ],
)
def test_which_versions_of_etcd_tell_their_progress(version: str, tells: bool) -> None:
    assert feed_module.tells_progress(version) == tells
