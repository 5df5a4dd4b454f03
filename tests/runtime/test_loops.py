"""The deterministic loop by itself: order, virtual time, and the errors that end a run."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kemu import errors
from kemu.runtime.sim.loops import VirtualLoop


def new_loop(**options: Any) -> VirtualLoop:
    return VirtualLoop(**options)  # type: ignore[abstract]


@given(
    st.lists(
        st.tuples(st.integers(0, 5), st.booleans()),
        max_size=30,
    )
)
def test_timers_fire_by_time_then_in_the_order_of_their_setting(timers: list[tuple[int, bool]]) -> None:
    loop = new_loop()
    fired: list[tuple[int, int]] = []

    async def main() -> None:
        for index, (when_ns, cancelled) in enumerate(timers):
            timer = loop.set_timer(when_ns, lambda *key: fired.append(key), (when_ns, index), None)
            if cancelled:
                timer.cancel()
        await asyncio.sleep(1)

    loop.run(main())
    expected = [(when_ns, index) for index, (when_ns, cancelled) in enumerate(timers) if not cancelled]
    assert fired == sorted(expected)


@given(st.lists(st.tuples(st.integers(1, 1000), st.booleans()), max_size=60))
def test_cancelled_timers_are_forgotten_however_many(timers: list[tuple[int, bool]]) -> None:
    loop = new_loop()
    loop.foreground._sweep_at = 7
    fired: list[int] = []

    async def main() -> None:
        pending = [loop.set_timer(when_ns, fired.append, (when_ns,), None) for when_ns, _ in timers]
        for timer, (_, cancelled) in zip(pending, timers, strict=True):
            if cancelled:
                timer.cancel()
        await asyncio.sleep(1)

    loop.run(main())
    assert fired == sorted(when_ns for when_ns, cancelled in timers if not cancelled)


def test_time_is_exact_and_passes_only_when_nothing_is_ready() -> None:
    loop = new_loop()

    async def main() -> list[int]:
        seen = []
        for _ in range(3):
            await asyncio.sleep(0.1)
            for _ in range(100):
                await asyncio.sleep(0)
            seen.append(loop.now_ns)
        return seen

    assert loop.run(main()) == [100_000_000, 200_000_000, 300_000_000]


def test_asyncio_building_blocks_work() -> None:
    loop = new_loop()

    async def worker(number: int, event: asyncio.Event, queue: asyncio.Queue[int]) -> int:
        await event.wait()
        await queue.put(number)
        return number

    async def main() -> None:
        event, queue = asyncio.Event(), asyncio.Queue[int]()
        together = asyncio.gather(*(worker(number, event, queue) for number in range(5)))
        await asyncio.sleep(1)
        event.set()
        assert await together == [0, 1, 2, 3, 4]
        assert [queue.get_nowait() for _ in range(5)] == [0, 1, 2, 3, 4]
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(2):
                await asyncio.Event().wait()
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(asyncio.Event().wait(), 3)
        assert loop.now_ns == 6_000_000_000

    loop.run(main())


def test_tasks_are_named_by_the_loop() -> None:
    async def nothing() -> None: ...

    async def main() -> list[str]:
        return [asyncio.get_running_loop().create_task(nothing()).get_name() for _ in range(2)]

    assert new_loop().run(main()) == new_loop().run(main()) == ["main: task 1", "main: task 2"]


def test_context_variables_belong_to_their_task() -> None:
    variable: contextvars.ContextVar[int] = contextvars.ContextVar("variable", default=0)

    async def set_to(number: int) -> int:
        variable.set(number)
        await asyncio.sleep(1)
        return variable.get()

    async def main() -> None:
        assert await asyncio.gather(*(set_to(number) for number in range(3))) == [0, 1, 2]
        assert variable.get() == 0

    new_loop().run(main())


def test_the_result_and_the_exception_of_main_come_out() -> None:
    async def main() -> None:
        raise LookupError("mine")

    with pytest.raises(LookupError, match="mine"):
        new_loop().run(main())


def test_a_deadlock_says_who_waits_where() -> None:
    async def stuck(event: asyncio.Event) -> None:
        await event.wait()

    async def main() -> None:
        event = asyncio.Event()
        loop = asyncio.get_running_loop()
        tasks = [loop.create_task(stuck(event), name=f"stuck {number}") for number in range(5)]
        await tasks[0]

    with pytest.raises(errors.Deadlock) as info:
        new_loop().run(main())
    text = str(info.value)
    assert "nothing is ready and no timer is set" in text
    assert "stuck 0, stuck 1, stuck 2 and 2 more: " in text
    assert "stuck (runtime/test_loops.py:" in text
    assert "main: " in text


def test_a_livelock_says_who_is_busy() -> None:
    async def spin() -> None:
        while True:  # noqa: ASYNC110
            await asyncio.sleep(0)

    async def main() -> None:
        await asyncio.get_running_loop().create_task(spin(), name="spinner")

    with pytest.raises(errors.Livelock) as info:
        new_loop(max_steps_per_instant=5_000).run(main())
    assert "more than 5000 steps" in str(info.value)
    assert "spinner: " in str(info.value)


def test_a_limit_of_steps_that_was_raised_meanwhile_holds() -> None:
    """It grows with the actors of a run: 130,000 of them take more steps to stop than the limit was at first."""
    loop = new_loop(max_steps_per_instant=5_000)

    async def main() -> None:
        loop.max_steps_per_instant = 20_000
        await asyncio.sleep(1)
        for _ in range(10_000):
            await asyncio.sleep(0)

    loop.run(main())


def test_an_exception_in_a_callback_ends_the_run() -> None:
    async def main() -> None:
        asyncio.get_running_loop().call_later(1, lambda: 1 // 0)
        await asyncio.sleep(5)

    with pytest.raises(ZeroDivisionError):
        new_loop().run(main())


def test_an_exception_that_nobody_retrieves_ends_the_run() -> None:
    async def fail() -> None:
        raise LookupError("lost")

    async def main() -> None:
        asyncio.get_running_loop().create_task(fail())
        await asyncio.sleep(5)

    with pytest.raises(errors.ActorFailed) as info:
        new_loop().run(main())
    assert isinstance(info.value.__cause__, LookupError)


def test_a_generator_that_is_left_early_is_closed_in_the_same_instant() -> None:
    closed: list[int] = []

    async def numbers() -> AsyncIterator[int]:
        try:
            yield 1
        finally:
            await asyncio.sleep(2)
            closed.append(asyncio.get_running_loop().now_ns)  # type: ignore[attr-defined]

    async def main() -> None:
        async for _ in numbers():
            break
        await asyncio.sleep(5)

    new_loop().run(main())
    assert closed == [2_000_000_000]


def test_what_is_left_at_the_end_is_dropped_without_noise(capfd: pytest.CaptureFixture[str]) -> None:
    async def numbers() -> AsyncIterator[int]:
        while True:
            await asyncio.sleep(1)
            yield 1

    async def consume() -> None:
        async for _ in numbers():
            pass

    async def stubborn() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.Event().wait()

    async def main() -> None:
        loop = asyncio.get_running_loop()
        for coroutine in (consume(), stubborn(), stubborn()):
            loop.create_task(coroutine)  # noqa: RUF006
        await asyncio.sleep(3.5)

    new_loop().run(main())
    captured = capfd.readouterr()
    assert captured.err == captured.out == ""


@pytest.mark.parametrize(
    "reach_out",
    [
        lambda loop: loop.run_in_executor(None, print),
        lambda loop: loop.create_connection(None, "localhost", 1),
        lambda loop: loop.create_server(None, "localhost", 1),
        lambda loop: loop.add_reader(0, print),
        lambda loop: loop.add_signal_handler(2, print),
        lambda loop: loop.call_soon_threadsafe(print),
        lambda loop: loop.getaddrinfo("localhost", 1),
        lambda loop: loop.subprocess_exec(None, "true"),
    ],
)
def test_reaching_out_of_the_simulation_raises(reach_out: Callable[[Any], object]) -> None:
    async def main() -> None:
        reach_out(asyncio.get_running_loop())

    with pytest.raises(errors.Nondeterminism, match="reaches outside of the simulated world"):
        new_loop().run(main())


def test_threads_of_asyncio_raise() -> None:
    async def main() -> None:
        await asyncio.to_thread(print)

    with pytest.raises(errors.Nondeterminism):
        new_loop().run(main())


def test_a_loop_runs_once_and_not_inside_another() -> None:
    async def main() -> None:
        inner = new_loop()
        with pytest.raises(RuntimeError, match="inside another simulation"):
            inner.run(asyncio.sleep(1))

    loop = new_loop()
    loop.run(main())
    with pytest.raises(RuntimeError, match="runs once"):
        loop.run(asyncio.sleep(1))


def test_a_loop_runs_inside_that_of_a_notebook() -> None:
    async def cell() -> None:
        outer = asyncio.get_running_loop()
        loop = new_loop()
        loop.run(asyncio.sleep(3600))
        assert loop.now_ns == 3600 * 10**9
        assert asyncio.get_running_loop() is outer
        await asyncio.sleep(0)

    asyncio.run(cell())


def test_tasks_are_known_to_their_owners_only() -> None:
    loop = new_loop()

    async def main() -> None:
        task = loop.create_task(asyncio.sleep(1))
        assert asyncio.current_task() is not None
        assert asyncio.all_tasks(loop) == set()
        await task

    loop.run(main())
