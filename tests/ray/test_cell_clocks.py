"""The dilated clock: stands at 0 in set-up, then runs at its speed, and never wakes anybody too early."""

from __future__ import annotations

import asyncio
import time

import pytest

from kemu.runtime.env import SECOND_NS
from kemu.runtime.host import wall_clocks
from kemu.runtime.host.wall_clocks import DilatedClock, WallClock


def clocks(speed: float = 20.0) -> tuple[DilatedClock, WallClock]:
    shared = DilatedClock()
    shared.configure(epoch_unix_ns=0, speed=speed, epoch_unix_s=1_700_000_000)

    def fail(error: BaseException) -> None:
        raise AssertionError from error

    return shared, WallClock(shared, fail)


def begin(shared: DilatedClock, ahead_s: float = 0.0) -> None:
    shared.configure(
        epoch_unix_ns=time.time_ns() + round(ahead_s * SECOND_NS), speed=shared.speed, epoch_unix_s=shared.epoch_unix_s
    )


async def test_it_stands_at_zero_until_the_run_begins() -> None:
    shared, clock = clocks()
    early = asyncio.ensure_future(clock.sleep(1))
    started = asyncio.ensure_future(clock.started())
    await asyncio.sleep(0.1)
    assert clock.now_ns() == 0
    assert not early.done()
    assert not started.done()
    assert clock.epoch_unix_s == 1_700_000_000

    begin(shared, ahead_s=0.5)
    begun_at = time.monotonic() + 0.5
    assert clock.now_ns() == 0
    await started
    await early
    # Counted from the beginning, not from when it was asked for.
    assert 1 * SECOND_NS <= clock.now_ns() <= (time.monotonic() - begun_at + 0.01) * 20 * SECOND_NS


@pytest.mark.parametrize("speed", [0.5, 1.0, 20.0])
async def test_it_runs_at_its_speed(speed: float) -> None:
    shared, clock = clocks(speed)
    begin(shared)
    real_s, virtual_ns = [time.monotonic()], [clock.now_ns()]
    await clock.sleep(0.1 * speed)
    virtual_ns.append(clock.now_ns())
    real_s.append(time.monotonic())
    # However long it took: a reading of one clock lies between two of the other.
    passed_ns = virtual_ns[1] - virtual_ns[0]
    assert 0.1 * speed * SECOND_NS <= passed_ns <= (real_s[1] - real_s[0]) * speed * SECOND_NS


def test_a_process_that_is_held_up_while_it_reads_the_clocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its idea of when the run began is that of all others."""
    now_ns = 1_000_000_000
    wall_ahead_ns = 1_700_000_000 * SECOND_NS
    held_up = iter([50_000_000, 0, 30_000_000])

    def monotonic_ns() -> int:
        nonlocal now_ns
        now_ns += 100
        return now_ns

    def time_ns() -> int:
        nonlocal now_ns
        now_ns += next(held_up, 0)
        return now_ns + wall_ahead_ns

    monkeypatch.setattr(wall_clocks.time, "monotonic_ns", monotonic_ns)
    monkeypatch.setattr(wall_clocks.time, "time_ns", time_ns)
    assert abs(wall_clocks._monotonic_minus_wall_ns() + wall_ahead_ns) < 1000


async def test_nobody_wakes_early() -> None:
    shared, clock = clocks(speed=1000.0)
    begin(shared)
    for number in range(50):
        when_ns = clock.now_ns() + number * 777_777
        await clock.sleep_until_ns(when_ns)
        assert clock.now_ns() >= when_ns


async def test_timers_run_in_order_once_and_can_be_cancelled() -> None:
    shared, clock = clocks(speed=100.0)
    seen: list[str] = []
    clock.call_at_ns(2 * SECOND_NS, seen.append, "two")
    clock.call_at_ns(1 * SECOND_NS, seen.append, "one")
    never = clock.call_at_ns(1 * SECOND_NS, seen.append, "never")
    never.cancel()
    never.cancel()
    begin(shared)
    late = clock.call_at_ns(3 * SECOND_NS, seen.append, "cancelled while it ran")
    late.cancel()
    await clock.sleep(4)
    assert seen == ["one", "two"]


async def test_only_foreground_timers_are_pending() -> None:
    shared, clock = clocks()
    background = asyncio.ensure_future(clock.sleep(1000, background=True))
    timer = clock.call_at_ns(SECOND_NS, lambda: None)
    await asyncio.sleep(0)
    assert clock.pending == 1
    begin(shared)
    await clock.sleep(2)
    assert clock.pending == 0
    timer.cancel()
    assert clock.pending == 0
    background.cancel()


async def test_a_dropped_actor_hears_of_no_timer() -> None:
    shared, clock = clocks()
    seen: list[str] = []
    clock.call_at_ns(SECOND_NS, seen.append, "early")
    begin(shared)
    clock.call_at_ns(SECOND_NS, seen.append, "late")
    clock.drop()
    with pytest.raises(asyncio.CancelledError):
        clock.call_at_ns(SECOND_NS, seen.append, "after its end")
    await asyncio.sleep(0.1)
    assert seen == []
    assert clock.pending == 0


async def test_what_is_due_already_happens_in_set_up_too() -> None:
    _, clock = clocks()
    seen: list[str] = []
    clock.call_at_ns(0, seen.append, "due")
    await clock.sleep(0)
    async with asyncio.timeout(10):
        while not seen:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    assert seen == ["due"]


async def test_a_pause_before_another_attempt_passes_in_set_up_too_and_ends_with_it() -> None:
    shared, clock = clocks(speed=1.0)
    async with asyncio.timeout(10):
        await clock.pause(0.01)
    assert clock.now_ns() == 0
    pausing = asyncio.create_task(clock.pause(1000))
    await asyncio.sleep(0)
    begin(shared)
    async with asyncio.timeout(10):
        await pausing
    begun_ns = clock.now_ns()
    await clock.pause(0.02)
    assert clock.now_ns() - begun_ns >= 20_000_000
