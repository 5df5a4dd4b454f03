"""Watchers that do not read: what waits for them is shared and bounded, and nobody else waits for them."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import grpc
import grpc.aio
import pytest

from kemu import errors
from kemu.emulated.apiserver import service
from kemu.emulated.apiserver.watch import buffers, fanout
from kemu.emulated.client.sessions import error_of
from kemu.messages.k8s import core_v1_pb2
from kemu.messages.v1 import api_pb2
from tests.apiserver.apiserver_cluster import SERVERS, Cluster, pod, run, watch_request

MIB = 1 << 20
_ERROR = api_pb2.WatchEvent.ERROR


def large(name: str, size: int = MIB, namespace: str = "default") -> core_v1_pb2.Pod:
    found = pod(name, namespace)
    found.spec.containers[0].env.add(name="FILLER", value="x" * size)
    return found


def fanout_of(cluster: Cluster) -> fanout.Fanout:
    return SERVERS[-1].fanout


async def deaf(cluster: Cluster, name: str, *watches: api_pb2.WatchRequest) -> Any:
    """A client that reads nothing."""
    call = cluster.stub(0, name).Watch()
    for watch in watches or (watch_request(),):
        await call.write(watch)
    return call


async def events(call: Any, count: int) -> list[Any]:
    found: list[Any] = []
    while len(found) < count:
        found += (await call.read()).events
    return found


def test_what_waits_for_many_watchers_is_there_once_and_comes_when_it_is_read() -> None:
    async def main(cluster: Cluster) -> None:
        calls = [await deaf(cluster, "deaf") for _ in range(100)]
        others = [await deaf(cluster, f"deaf-{number}") for number in range(10)]
        await cluster.clock.sleep(1)
        for number in range(5):
            await cluster.client.create(large(f"p{number}"))
        await cluster.clock.sleep(0.2)
        hub = fanout_of(cluster)
        waiting: dict[int, bytes] = {}
        events_waiting = 0
        for stream in hub._streams:
            for (_, _, _, wire), _ in stream.waiting():
                waiting[id(wire)] = wire
                events_waiting += 1
        assert events_waiting > 300
        assert sum(map(len, waiting.values())) < 6 * MIB, "one copy of each pod"
        bounds = buffers.Bounds()
        assert hub._writes.total <= bounds.writing_server
        assert hub._writes._of_client["deaf"] <= bounds.writing_client
        for found in await asyncio.gather(*(events(call, 6) for call in (*calls, *others))):
            assert len([event for event in found if event.type == event.ADDED]) == 5
        await cluster.clock.sleep(1)
        assert not hub._writes.total

    run(main)


@pytest.mark.parametrize("bound", ["watch", "client", "server"])
def test_a_watch_that_is_over_a_bound_ends_and_others_go_on(bound: str) -> None:
    limits: dict[str, Any] = {"watch_bytes": {bound: 4 * MIB, "review": MIB // 4, "writing_client": 2 * MIB}}

    async def main(cluster: Cluster) -> None:
        # The small watch shares the stream of the one that falls behind.
        small = watch_request(2, "pods", fields="metadata.name=small")
        call = await deaf(cluster, "deaf", watch_request(1), small)
        reader = cluster.watch(0, "reader")
        await reader.take(1)
        for number in range(16):
            await cluster.client.create(large(f"p{number}", MIB // 2))
            assert await reader.take(1) == [("ADDED", f"p{number}")]
        (cut,) = cluster.recorder.of("api.watch_cut")
        assert cut == {"by": "deaf", "reason": "slow"}
        await cluster.client.create(pod("small"))
        assert await reader.take(1) == [("ADDED", "small")]
        found: list[Any] = []
        while not any(event.type == _ERROR for event in found):
            found += (await call.read()).events
        (end,) = [event for event in found if event.type == _ERROR and event.watch_id == 1]
        assert isinstance(error_of(end.error), errors.Gone)
        assert len(found) < 16
        if bound == "watch":
            while not any(event.watch_id == 2 and event.object for event in found):
                found += (await call.read()).events
        # As its client would: it lists and begins again.
        await call.write(watch_request(3))
        assert len([event for event in await events(call, 18) if event.watch_id == 3]) == 18

    run(main, servers=[limits])


def test_who_is_written_to_and_does_not_read_makes_room_for_others() -> None:
    limits = {"watch_bytes": {"writing_server": 4 * MIB}}

    async def main(cluster: Cluster) -> None:
        calls = [await deaf(cluster, f"deaf-{number}") for number in range(8)]
        await cluster.clock.sleep(1)
        for number in range(3):
            await cluster.client.create(large(f"p{number}"))
        await cluster.clock.sleep(0.2)
        hub = fanout_of(cluster)
        assert 3 * MIB <= hub._writes.total <= 4 * MIB + MIB
        reader = cluster.watch(0, "reader", version=str(cluster.etcd.revision))
        await reader.start()
        begin_ns = cluster.clock.now_ns()
        await cluster.client.create(large("last"))
        assert await reader.take(1) == [("ADDED", "last")]
        assert cluster.clock.now_ns() - begin_ns < 3e9
        ended = 0
        for call in calls:
            try:
                async with asyncio.timeout(5):
                    while (await call.read()) is not grpc.aio.EOF:  # type: ignore[attr-defined]
                        pass
                ended += 1
            except TimeoutError:
                pass
        assert ended >= 1, "they may come again"

    run(main, servers=[limits])


def test_a_client_has_so_many_streams_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "MAX_STREAMS", 10)

    async def main(cluster: Cluster) -> None:
        calls = [await deaf(cluster, "many") for _ in range(9)]
        session = cluster.stub(0, "many").Session()
        await session.write(api_pb2.SessionRequest())
        await cluster.clock.sleep(1)
        for stub in (cluster.stub(0, "many").Watch(), cluster.stub(0, "many").Session()):
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await stub.read()
            assert caught.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
            assert "10 streams" in (caught.value.details() or "")
        await cluster.watch(0, "other").take(1)
        calls[0].cancel()
        await cluster.clock.sleep(1)
        await cluster.watch(0, "many").take(1)

    run(main)


def test_who_does_not_read_answers_on_any_session_gets_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "UNREAD_BYTES", 8 * MIB)

    async def main(cluster: Cluster) -> None:
        await cluster.client.create(large("big"))
        sessions = [cluster.stub(0, "deaf").Session() for _ in range(20)]
        for session in sessions:
            request = api_pb2.SessionRequest()
            for number in range(40):
                call = request.calls.add(id=number)
                call.get.resource.resource, call.get.resource.namespace, call.get.name = "pods", "default", "big"
            await session.write(request)
        await cluster.clock.sleep(5)
        (client,) = [each for name, each in SERVERS[-1]._service._clients.items() if name == "deaf"]
        # What was under way when the bound was met comes on top.
        assert client.unread < 100 * MIB, "800 MiB were asked for"
        await cluster.client.create(pod("a"))
        answered = refused = 0
        while answered + refused < 40:
            for reply in (await sessions[0].read()).replies:
                if reply.error:
                    assert isinstance(error_of(reply.error), errors.TooManyRequests)
                    refused += 1
                else:
                    answered += 1
        for session in sessions:
            session.cancel()
        await cluster.clock.sleep(1)
        assert "deaf" not in SERVERS[-1]._service._clients

    run(main)


HUGE = "x" * (4 * MIB)


@pytest.mark.parametrize(
    "call",
    [
        {"get": {"resource": {"resource": "pods"}, "name": HUGE}},
        {"get": {"resource": {"resource": HUGE}, "name": "a"}},
        {"delete": {"resource": {"resource": "pods", "namespace": HUGE}, "name": "a"}},
        {"delete": {"resource": {"resource": "pods"}, "name": "a", "preconditions": {"uid": HUGE}}},
        {"list": {"resource": {"resource": "pods"}, "label_selector": HUGE}},
        {"list": {"resource": {"resource": "pods"}, "continue": HUGE}},
        {"bind": {"namespace": "default", "name": "a", "node": HUGE}},
        {"evict": {"namespace": "default", "name": HUGE}},
        {"create": {"resource": {"resource": "pods", "namespace": HUGE}}},
        {"create": {"resource": {"resource": "pods"}, "object": HUGE.encode()}},
        {"update": {"resource": {"resource": "pods"}, "object": HUGE.encode()}},
        {"patch": {"resource": {"resource": "pods"}, "name": "a", "patch": HUGE.encode()}},
        {"patch": {"resource": {"resource": "pods"}, "name": HUGE, "patch": b"{}"}},
    ],
    ids=lambda call: "{}-{}".format(*(next((k, max(v, key=lambda f: len(str(v[f])))) for k, v in call.items()))),
)
def test_what_is_too_large_says_so_whatever_field_it_is_in(call: Mapping[str, Any]) -> None:
    async def main(cluster: Cluster) -> None:
        session = cluster.stub(0, "user").Session()
        await session.write(api_pb2.SessionRequest(calls=[api_pb2.Call(id=1, **call)]))
        (reply,) = (await session.read()).replies
        error = error_of(reply.error)
        assert isinstance(error, errors.RequestEntityTooLarge)
        assert error.message == f"Request entity too large: limit is {3 * MIB}"
        (logged,) = cluster.refused()
        assert all(len(text) <= 20_000 for text in logged.values() if isinstance(text, str))

    run(main)


def test_selectors_of_a_watch_that_are_too_large_say_so() -> None:
    async def main(cluster: Cluster) -> None:
        event = await cluster.watch(labels=HUGE).next()
        assert isinstance(error_of(event.error), errors.RequestEntityTooLarge)

    run(main)


def test_an_object_of_the_largest_size_is_no_too_large_request() -> None:
    async def main(cluster: Cluster) -> None:
        await cluster.client.create(large("a", 3 * MIB - 10_000))  # etcd itself would refuse it

    run(main)
