"""Requests: batches, errors, and what becomes of them when the connection breaks."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from kemu import errors
from kemu.emulated.client import sessions
from kemu.messages.k8s import core_v1_pb2
from tests.client.fake_api import pod
from tests.client.world import World


def test_requests_of_one_tick_leave_in_one_message(world: World) -> None:
    async def main(world: World) -> None:
        created = await asyncio.gather(*(world.client.create(pod(f"p{n}")) for n in range(20)))
        assert [one.metadata.name for one in created] == [f"p{n}" for n in range(20)]
        await world.client.get("pods", "p3", "default")

    world.play(main)
    assert world.state.batches == [20, 1]
    assert world.state.sessions == 1


def test_large_batches_are_split(world: World) -> None:
    async def main(world: World) -> None:
        await asyncio.gather(*(world.client.create(pod(f"p{n}")) for n in range(sessions.MAX_CALLS_PER_MESSAGE + 3)))

    world.play(main)
    assert world.state.batches == [sessions.MAX_CALLS_PER_MESSAGE, 3]


def test_every_verb_returns_the_object_as_it_is_now(world: World) -> None:
    async def main(world: World) -> None:
        client = world.client
        created = await client.create(pod("a"))
        assert created.metadata.resourceVersion == "2"
        created.metadata.labels["x"] = "y"
        updated = await client.update(created)
        assert updated.metadata.labels["x"] == "y"
        updated.status.phase = "Running"
        assert (await client.update_status(updated)).status.phase == "Running"
        assert (await client.get("pods", "a", "default")).status.phase == "Running"
        bound = await client.bind("default", "a", "uid-a", "node-1")
        assert bound.spec.nodeName == "node-1"
        found = await client.list("pods", field_selector="spec.nodeName=node-1")
        assert [one.metadata.name for one in found.items] == ["a"]
        assert found.resource_version == "5"
        gone = await client.delete("pods", "a", "default", grace_period_seconds=0, uid="uid-a")
        assert isinstance(gone, core_v1_pb2.Pod)
        assert (await client.list("pods")).items == []

    world.play(main)
    # Reads are not acknowledged writes.
    assert [[ack[1] for ack in data["acks"]] for data in world.logged("client.acked")] == [[2], [3], [4], [5], [6]]


def test_refusals_are_exceptions_with_the_reason(world: World) -> None:
    async def main(world: World) -> None:
        await world.client.create(pod("a"))
        with pytest.raises(errors.AlreadyExists, match="is there") as caught:
            await world.client.create(pod("a"))
        assert (caught.value.kind, caught.value.name) == ("pods", "p")
        assert caught.value.causes == (errors.Cause("spec.x", "FieldValueInvalid", "bad"),)
        stale = pod("a")
        stale.metadata.resourceVersion = "1"
        with pytest.raises(errors.Conflict):
            await world.client.update(stale)
        with pytest.raises(errors.NotFound):
            await world.client.get("pods", "b", "default")

    world.play(main)


def test_a_reason_that_nobody_knows_is_still_an_api_error() -> None:
    from tests.client.fake_api import status

    error = sessions.error_of(status("Teapot", "short and stout"))
    assert type(error) is errors.ApiError
    assert error.message == "short and stout"


def test_requests_under_way_fail_when_the_connection_breaks(world: World) -> None:
    async def main(world: World) -> None:
        world.state.silent = True
        requests = [asyncio.ensure_future(world.client.create(pod(f"p{n}"))) for n in range(3)]
        await world.clock.sleep(1)
        await world.runtime.crash("apiserver/0")
        outcomes = await asyncio.gather(*requests, return_exceptions=True)
        assert [type(one) for one in outcomes] == [errors.ConnectionLost] * 3
        assert "apiserver/0" in str(outcomes[0])

    world.play(main)


def test_requests_made_meanwhile_dial_at_once(world: World) -> None:
    """As client-go, whose transport has no back-off: a request to a server that is away is refused within a round trip,
    and the first one after its return is answered."""

    async def main(world: World) -> None:
        await world.client.create(pod("a"))
        await world.runtime.crash("apiserver/0")
        await world.clock.sleep(0.1)
        for n in range(20):
            asked_ns = world.clock.now_ns()
            with pytest.raises(errors.ConnectionLost, match="connection refused"):
                await world.client.create(pod(f"b{n}"))
            assert 0 < world.clock.now_ns() - asked_ns < 5_000_000
        await world.runtime.restart("apiserver/0")
        assert (await world.client.create(pod("c"))).metadata.name == "c"

    world.play(main)


def test_a_request_that_was_not_sent_yet_is_not_lost_with_the_connection(world: World) -> None:
    async def main(world: World) -> None:
        await world.runtime.crash("apiserver/0")
        sent = asyncio.ensure_future(world.client.create(pod("sent")))
        # While the attempt to connect is under way, another one comes up: it makes an attempt of its own.
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        unsent = asyncio.ensure_future(world.client.create(pod("unsent")))
        await world.runtime.restart("apiserver/0")
        with pytest.raises(errors.ServiceUnavailable):
            await sent
        assert (await unsent).metadata.name == "unsent"

    world.play(main)


def test_a_cancelled_caller_does_no_harm(world: World) -> None:
    async def main(world: World) -> None:
        first = asyncio.ensure_future(world.client.create(pod("a")))
        second = asyncio.ensure_future(world.client.create(pod("b")))
        await world.clock.sleep(0.0001)
        first.cancel()
        assert (await second).metadata.name == "b"
        assert (await world.client.get("pods", "a", "default")).metadata.name == "a"

    world.play(main)
    # The write happened, whoever waits for it: it counts as acknowledged.
    assert [[ack[1] for ack in data["acks"]] for data in world.logged("client.acked")] == [[2, 3]]


def test_a_partition_breaks_the_connection_and_healing_mends_it(world: World) -> None:
    async def main(world: World) -> None:
        await world.client.create(pod("a"))
        await world.runtime.partition("cut", ["user"], ["apiserver/0"])
        with pytest.raises(errors.ServiceUnavailable):
            await world.client.create(pod("b"))
        await world.runtime.heal("cut")
        assert (await _again(world, pod("b"))).metadata.name == "b"

    world.play(main)


async def _again(world: World, obj: Any) -> Any:
    while True:
        try:
            return await world.client.create(obj)
        except errors.ServiceUnavailable:
            continue


def test_a_client_that_is_held_up_did_not_ask_later(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The process is preempted between any two readings of its clock; the log tells when each request began."""
    held_up_ns = 0
    true_ns = type(world.clock).now_ns

    def now_ns(clock: Any) -> int:
        nonlocal held_up_ns
        held_up_ns += 115_000_000
        return true_ns(clock) + held_up_ns

    async def main(world: World) -> list[int]:
        client, asked = world.client, []
        for request in (
            client.create(pod("a")),
            client.get("pods", "a", "default"),
            client.list("pods"),
            client.delete("pods", "a", "default", grace_period_seconds=0, uid="uid-a"),
        ):
            task = asyncio.ensure_future(request)
            await asyncio.sleep(0)
            asked.append(world.clock.now_ns())
            await task
        return asked

    monkeypatch.setattr(type(world.clock), "now_ns", now_ns)
    asked = world.play(main)
    began = []
    for time_ns, actor, kind, data in world.log:
        if actor == "user" and kind.startswith("client."):
            took = [data["took"]] if "took" in data else [ack[0] for ack in data["acks"]]
            began += [time_ns - each for each in took]
    assert len(began) == len(asked)
    for start_ns, then_ns in zip(began, asked, strict=True):
        assert start_ns < then_ns
