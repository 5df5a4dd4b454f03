"""The work queue: client-go's rules, and a model to hold it against."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kemu.emulated.client import streams, workqueues
from kemu.runtime.env import SECOND_NS
from tests.client.world import World


def test_an_item_waits_at_most_once(world: World) -> None:
    async def main(world: World) -> None:
        queue = workqueues.WorkQueue[str](world.env)
        for item in "abab":
            queue.add(item)
        assert len(queue) == 2
        assert [await queue.get(), await queue.get()] == ["a", "b"]

    world.play(main)


def test_an_item_added_while_it_is_worked_on_comes_back_when_that_is_done(world: World) -> None:
    async def main(world: World) -> None:
        queue = workqueues.WorkQueue[str](world.env)
        queue.add("a")
        item = await queue.get()
        queue.add("a")
        queue.add("a")
        assert len(queue) == 0
        queue.done(item)
        assert len(queue) == 1
        queue.done(await queue.get())
        assert len(queue) == 0

    world.play(main)


def test_failures_wait_twice_as_long_each_time_up_to_a_limit(world: World) -> None:
    async def main(world: World) -> list[float]:
        queue = workqueues.WorkQueue[str](world.env, base_delay_s=1, max_delay_s=5)
        waits = []
        for _ in range(5):
            began_ns = world.clock.now_ns()
            queue.add_rate_limited("a")
            queue.done(await queue.get())
            waits.append((world.clock.now_ns() - began_ns) / 1e9)
        assert queue.failures("a") == 5
        queue.forget("a")
        assert queue.failures("a") == 0
        began_ns = world.clock.now_ns()
        queue.add_rate_limited("a")
        await queue.get()
        return [*waits, (world.clock.now_ns() - began_ns) / 1e9]

    assert world.play(main) == [1, 2, 4, 5, 5, 1]


def test_of_several_delays_the_earliest_counts(world: World) -> None:
    async def main(world: World) -> None:
        queue = workqueues.WorkQueue[str](world.env)
        queue.add_after("a", 5)
        queue.add_after("a", 2)
        queue.add_after("a", 9)
        await queue.get()
        assert world.clock.now_ns() == 2_000_000_000
        queue.done("a")
        await world.clock.sleep(20)
        assert len(queue) == 0
        queue.add_after("a", 0)
        assert len(queue) == 1

    world.play(main)


def test_a_cancelled_getter_loses_nothing(world: World) -> None:
    async def main(world: World) -> None:
        queue = workqueues.WorkQueue[str](world.env)
        first = asyncio.ensure_future(queue.get())
        second = asyncio.ensure_future(queue.get())
        await world.clock.sleep(1)
        queue.add("a")
        first.cancel()
        assert await second == "a"

    world.play(main)


@given(st.lists(st.tuples(st.sampled_from(["add", "take", "done"]), st.integers(0, 3)), max_size=60))
@settings(deadline=None, max_examples=60)
def test_no_change_is_lost_and_no_item_is_worked_on_twice_at_once(steps: list[tuple[str, int]]) -> None:
    async def main(world: World) -> None:
        queue = workqueues.WorkQueue[int](world.env)
        waiting: list[int] = []  # the model: in order, without doubles
        working: list[int] = []
        again: list[int] = []
        for step, item in steps:
            if step == "add":
                queue.add(item)
                if item in working:
                    again += [item] if item not in again else []
                elif item not in waiting:
                    waiting.append(item)
            elif step == "take" and waiting:
                taken = await queue.get()
                assert taken == waiting.pop(0)
                assert taken not in working
                working.append(taken)
            elif step == "done" and item in working:
                queue.done(item)
                working.remove(item)
                if item in again:
                    again.remove(item)
                    waiting.append(item)
            assert len(queue) == len(waiting)

    World().play(main)


@given(st.integers(0, 2**32), st.floats(0.01, 10), st.floats(1, 100))
def test_back_off_doubles_up_to_its_limit_with_jitter(seed: int, initial_s: float, factor: float) -> None:
    backoff = streams.Backoff(World(seed).env, initial_s, initial_s * factor)
    expected = initial_s
    for _ in range(10):
        assert expected <= backoff.next_s() <= 2 * expected
        expected = min(expected * 2, initial_s * factor)
    backoff.reset()
    assert initial_s <= backoff.next_s() <= 2 * initial_s


def test_an_exception_in_a_handler_ends_the_run(world: World) -> None:
    from kemu import errors
    from kemu.emulated.client import informers
    from tests.client.fake_api import ADDED, pod

    class Clumsy:
        def on_add(self, obj: Any) -> None:
            raise RuntimeError("oops")

        def on_update(self, old: Any, new: Any) -> None: ...

        def on_delete(self, old: Any) -> None: ...

    async def main(world: World) -> None:
        await informers.Informer(world.client, "pods", handler=Clumsy()).synced()
        world.state.put(pod("a"), ADDED)
        await world.clock.sleep(1)

    with pytest.raises(errors.ActorFailed, match="oops"):
        world.play(main)


def test_items_that_are_put_back_all_the_time_share_ten_turns_a_second(world: World) -> None:
    """A hundred at once, then one every 100 ms, however soon each of them would come by itself."""

    async def main(world: World) -> None:
        queue: workqueues.WorkQueue[int] = workqueues.WorkQueue(world.env)
        queue.add_rate_limited(0)
        handled = 0
        end_ns = world.clock.now_ns() + 60 * SECOND_NS
        while world.clock.now_ns() < end_ns:
            item = await queue.get()
            handled += 1
            queue.forget(item)
            queue.add_rate_limited(item)
            queue.done(item)
        assert 100 + 590 <= handled <= 100 + 612

    world.play(main)
