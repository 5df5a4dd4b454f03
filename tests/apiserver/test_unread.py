"""Clients that ask and do not read: they are stopped by flow control, and others are served."""

from __future__ import annotations

import asyncio

from kemu.emulated.apiserver import service
from kemu.emulated.apiserver.watch import fanout
from kemu.messages.v1 import api_pb2
from tests.apiserver.apiserver_cluster import SERVERS, Cluster, node, pod, run, watch_request

BIG = "x" * 200_000


def test_answers_that_nobody_reads_are_bounded_and_come_when_they_are_read() -> None:
    async def main(cluster: Cluster) -> None:
        big = node("n1")
        big.metadata.annotations["big"] = BIG
        await cluster.client.create(big)
        session = cluster.stub(0, "deaf").Session()
        wanted, sent = 5_000, 0

        async def ask() -> None:
            nonlocal sent
            while sent < wanted:
                request = api_pb2.SessionRequest()
                for number in range(sent, sent + 10):
                    call = request.calls.add(id=number)
                    call.get.resource.resource, call.get.name, call.get.resource_version = "nodes", "n1", "0"
                    call.get.resource.namespace = BIG[:1_000]  # so that what is unread fills the window of flow control
                await session.write(request)
                sent += 10

        asking = asyncio.ensure_future(ask())
        await cluster.clock.sleep(10)
        assert not asking.done()
        assert sent * len(BIG) < 400 << 20, "it holds no answers to all that it might be asked"
        await cluster.client.create(pod("a"))
        received = 0
        while received < wanted:
            received += len((await session.read()).replies)
        await asking

    run(main)


def test_watches_whose_events_nobody_reads_are_begun_no_more() -> None:
    async def main(cluster: Cluster) -> None:
        await asyncio.gather(*(cluster.client.create(pod(f"p{number}")) for number in range(500)))
        call = cluster.stub(0, "deaf").Watch()
        for number in range(200):
            await call.write(watch_request(number, version="0"))
        await cluster.clock.sleep(5)
        (stream,) = SERVERS[-1]._service.streams
        assert len(stream.watchers) < 30
        assert stream.count <= fanout.UNREAD_EVENTS + 501
        received = 0
        while received < 200 * 501:
            received += len((await call.read()).events)
        assert len(stream.watchers) == 200

    run(main)


def test_a_stream_has_so_many_watches_and_no_more() -> None:
    async def main(cluster: Cluster) -> None:
        call = cluster.stub(0, "many").Watch()
        for number in range(service.MAX_WATCHES + 1):
            await call.write(watch_request(number, version="1000000", fields=f"metadata.name=p{number}"))
        event = (await call.read()).events[0]
        assert event.watch_id == service.MAX_WATCHES
        assert b"10000 watches" in event.error

    run(main)
