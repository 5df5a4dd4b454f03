"""What a partition does to calls: the same within a cell and between two."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

import grpc
import grpc.aio
import pytest

from kemu.messages.v1 import api_pb2
from kemu.runtime.env import SECOND_NS
from tests.ray.pairs import Cells, code_of, get
from tests.ray.world import EOF, spec, until

BOTH = pytest.mark.parametrize("caller", [0, 1], ids=["near", "far"])

SLOWLY = 0.1
"""At this speed keepalive breaks no connection before the test is over."""


def request(number: int) -> api_pb2.SessionRequest:
    return api_pb2.SessionRequest(calls=[api_pb2.Call(id=number)])


async def session(cells: Cells, caller: int) -> Any:
    call = cells.stub(caller, "echo/0").Session()
    await call.write(request(1))
    assert (await call.read()).replies[0].id == 1
    return call


async def real_s(seconds: float) -> None:
    """Long enough for whatever would come to come."""
    await asyncio.sleep(seconds)


@BOTH
@pytest.mark.parametrize("name", ["late", "refused"])
async def test_answers_and_errors_wait_for_the_end_of_a_partition(cells: Cells, caller: int, name: str) -> None:
    """Also those of calls that had reached the server before it began."""
    await cells.start(0, spec("echo/0", "Echo", late_s=0.01))
    await cells.configure(begun=True, speed=SLOWLY)
    asking = asyncio.ensure_future(cells.stub(caller, "echo/0").Get(get(name)))
    await until(lambda: cells.log(0).of("echo.get"))
    await cells.cut("cut", "echo/0", "test")
    await real_s(0.4)
    assert not asking.done()
    await cells.heal("cut")
    async with asyncio.timeout(20):
        if name == "late":
            assert (await asking).object.split()[-1] == b"late"
        else:
            assert await code_of(asking) is grpc.StatusCode.NOT_FOUND
    assert len(cells.log(0).of("echo.get")) == 1


@BOTH
@pytest.mark.parametrize("began", ["before the cut", "after a first cut"])
@pytest.mark.parametrize("how", ["cancel", "reader", "deadline of nobody"])
async def test_a_cancellation_waits_for_the_end_of_a_partition(cells: Cells, caller: int, began: str, how: str) -> None:
    await cells.start(0, spec("echo/0", "Echo"))
    await cells.configure(begun=True, speed=SLOWLY)
    if began == "after a first cut":
        await cells.cut("first", "echo/0", "test")
        beginning = asyncio.ensure_future(session(cells, caller))
        await real_s(0.1)
        await cells.heal("first")
        call = await asyncio.wait_for(beginning, 20)
    else:
        call = await session(cells, caller)
    reading = asyncio.ensure_future(call.read())
    await asyncio.sleep(0)
    await cells.cut("cut", "echo/0", "test")
    if how == "cancel":
        call.cancel()
    elif how == "reader":
        reading.cancel()
    await real_s(0.3)
    assert cells.log(0).of("echo.over") == []
    assert reading.done() == (how != "deadline of nobody")
    await cells.heal("cut")
    if how == "deadline of nobody":
        # Nothing was lost of a stream that nobody gave up.
        await call.write(request(2))
        assert (await asyncio.wait_for(reading, 20)).replies[0].id == 2
        call.cancel()
    else:
        with contextlib.suppress(asyncio.CancelledError):
            await reading
    await until(lambda: cells.log(0).of("echo.over") == [{}])


@BOTH
async def test_the_cancellation_of_a_single_request_waits_too(cells: Cells, caller: int) -> None:
    await cells.start(0, spec("echo/0", "Echo"))
    await cells.configure(begun=True, speed=SLOWLY)

    async def ask() -> None:
        await cells.stub(caller, "echo/0").Get(get("slow"))

    asking = asyncio.ensure_future(ask())
    await until(lambda: cells.log(0).of("echo.get"))
    await cells.cut("cut", "echo/0", "test")
    asking.cancel()
    await real_s(0.3)
    assert asking.cancelled()
    assert cells.log(0).of("echo.over") == []
    await cells.heal("cut")
    await until(lambda: cells.log(0).of("echo.over") == [{}])


@BOTH
async def test_messages_of_a_stream_under_way_wait_and_keep_their_order(cells: Cells, caller: int) -> None:
    await cells.start(0, spec("echo/0", "Echo"))
    await cells.configure(begun=True, speed=SLOWLY)
    call = await session(cells, caller)
    reading = asyncio.ensure_future(call.read())
    await asyncio.sleep(0)
    await cells.cut("cut", "echo/0", "test")
    for number in range(2, 12):
        await call.write(request(number))
    await call.done_writing()
    await real_s(0.2)
    assert not reading.done()
    assert len(cells.log(0).of("echo.session")) == 1
    await cells.heal("cut")
    async with asyncio.timeout(20):
        answers = [(await reading).replies[0].id]
        while (answer := await call.read()) is not EOF:
            answers.append(answer.replies[0].id)
    assert answers == list(range(2, 12))
    assert await call.code() is grpc.StatusCode.OK


@BOTH
async def test_keepalive_counts_anew_in_each_partition(cells: Cells, caller: int) -> None:
    """Two cuts of 3 s each break nothing; what counts is not the time since the first."""
    await cells.start(0, spec("echo/0", "Echo"))
    await cells.configure(begun=True, speed=2)
    call = await session(cells, caller)
    host = cells.cells[0].host
    for number in (2, 3, 4):
        before_ns = host.clock.now_ns()
        await cells.cut(f"cut-{number}", "echo/0", "test")
        await call.write(request(number))
        await asyncio.sleep(3 / 2)
        await cells.heal(f"cut-{number}")
        if host.clock.now_ns() - before_ns > 5 * SECOND_NS:
            pytest.skip("the machine is too busy for a cut of 3 s")
        assert (await call.read()).replies[0].id == number
    assert cells.logged("net.connection_lost", "test") == []


@BOTH
async def test_nothing_tells_of_a_crash_behind_a_partition_but_keepalive(cells: Cells, caller: int) -> None:
    await cells.start(0, spec("echo/0", "Echo"))
    await cells.configure(begun=True, speed=20)
    call = await session(cells, caller)
    asking = asyncio.ensure_future(cells.stub(caller, "echo/0").Get(get("slow")))
    await until(lambda: cells.log(0).of("echo.get"))
    before_ns = cells.cells[0].host.clock.now_ns()
    await cells.cut("cut", "echo/0", "test")
    cells.cells[0].host.crash("echo/0")
    assert await code_of(call.read()) is grpc.StatusCode.UNAVAILABLE
    assert await code_of(asking) is grpc.StatusCode.UNAVAILABLE
    assert cells.cells[0].host.clock.now_ns() - before_ns >= 4.5 * SECOND_NS
    assert cells.logged("net.connection_lost", "test") == [{"peer": "echo/0"}]


@BOTH
async def test_a_server_does_not_hear_of_a_crash_behind_a_partition(cells: Cells, caller: int) -> None:
    await cells.start(0, spec("echo/0", "Echo"))
    await cells.configure(begun=True, speed=20)
    await session(cells, caller)
    before_ns = cells.cells[0].host.clock.now_ns()
    await cells.cut("cut", "echo/0", "test")
    cells.cells[caller].host.crash("test")
    await until(lambda: cells.log(0).of("echo.over"))
    assert cells.cells[0].host.clock.now_ns() - before_ns >= 4.5 * SECOND_NS
