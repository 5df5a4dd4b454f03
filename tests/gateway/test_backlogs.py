"""What waits for clients that do not read is bounded, and whoever leaves most unread goes first."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from kemu.emulated.gateway.streams import Backlog, Watch


def event(size: int) -> Any:
    return SimpleNamespace(object=b"x" * size, type=0)


async def watch(backlog: Backlog) -> Watch:
    return Watch(SimpleNamespace(), 1, backlog)  # type: ignore[arg-type]


async def test_the_watch_that_leaves_most_unread_is_ended() -> None:
    backlog = Backlog(watch_bytes=1 << 20, all_bytes=100_000)
    slow, slower, reader = [await watch(backlog) for _ in range(3)]
    for number in range(200):
        reader.push(event(1000))
        assert [len(events) for events in reader.take(10, 1 << 20)] == [1]
        slow.push(event(300 if number % 2 else 100))
        slower.push(event(800))
    assert slower.peek() is None
    assert not await slower.wait(None)
    assert slow.peek() is not None
    assert await slow.wait(None)
    reader.push(event(1))
    assert await reader.wait(None)


async def test_what_was_taken_waits_no_more() -> None:
    backlog = Backlog(watch_bytes=1 << 20, all_bytes=10_000)
    one = await watch(backlog)
    for _ in range(100):
        one.push(event(3000))
        one.push(event(3000))
        assert sum(len(events) for events in one.take(1, 1 << 20)) == 2
    assert one.bytes == 0
    assert await _is_open(one)


async def _is_open(one: Watch) -> bool:
    one.push(event(1))
    return await one.wait(None)
