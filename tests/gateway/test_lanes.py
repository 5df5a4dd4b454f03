"""Long lists: a few at a time, users in turns, and 429 for whoever would wait too long."""

from __future__ import annotations

import asyncio

import pytest

from kemu.emulated.gateway.limits.lanes import MANY, Lane
from kemu.errors import TooManyRequests

LONG = "pods"


def lane(**options: float) -> Lane:
    made = Lane(**options)  # type: ignore[arg-type]
    made.note(LONG, MANY + 1)
    return made


async def test_short_lists_need_no_seat() -> None:
    found = lane(seats=1)
    assert await found.enter("a", "nodes") is None
    assert await found.enter("a", LONG) is not None
    found.note(LONG, MANY)  # fewer by now
    assert await found.enter("a", LONG) is None


async def test_seats_go_to_users_in_turns() -> None:
    found = lane(seats=1)
    order: list[str] = []

    async def list_(user: str) -> None:
        seat = await found.enter(user, LONG)
        assert seat is not None
        order.append(user)
        await asyncio.sleep(0)
        seat.leave()
        seat.leave()

    await asyncio.gather(*(list_(user) for user in ("a", "a", "a", "b", "b", "c")))
    assert order == ["a", "a", "b", "c", "a", "b"]


async def test_whoever_waits_too_long_is_refused_with_a_hint() -> None:
    found = lane(seats=1, longest_wait_s=0.05)
    seat = await found.enter("a", LONG)
    assert seat is not None
    with pytest.raises(TooManyRequests) as error:
        await found.enter("b", LONG)
    assert error.value.retry_after_s == 1
    seat.leave()
    again = await found.enter("b", LONG)
    assert again is not None


async def test_whoever_comes_when_too_many_wait_is_refused_at_once() -> None:
    found = lane(seats=1, most_waiting=2)
    assert await found.enter("a", LONG)
    waiting = [asyncio.create_task(found.enter("b", LONG)) for _ in range(2)]
    await asyncio.sleep(0)
    with pytest.raises(TooManyRequests):
        await found.enter("c", LONG)
    waiting[0].cancel()  # its client has gone
    await asyncio.sleep(0)
    third = asyncio.create_task(found.enter("c", LONG))
    await asyncio.sleep(0)
    assert not third.done()
    for task in (*waiting, third):
        task.cancel()


async def test_a_seat_that_comes_with_the_end_of_its_client_goes_to_the_next() -> None:
    found = lane(seats=1)
    seat = await found.enter("a", LONG)
    assert seat is not None
    gone = asyncio.create_task(found.enter("b", LONG))
    following = asyncio.create_task(found.enter("c", LONG))
    await asyncio.sleep(0)
    seat.leave()
    gone.cancel()
    assert await asyncio.wait_for(following, 1) is not None


async def test_a_slow_reader_does_not_keep_its_seat(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kemu.emulated.gateway.limits.lanes.LONGEST_HOLD_S", 0.01)
    found = lane(seats=1)
    assert await found.enter("a", LONG) is not None
    assert await asyncio.wait_for(found.enter("b", LONG), 1) is not None
