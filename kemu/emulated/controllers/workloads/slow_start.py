"""Many creations in batches that double as long as all succeed (``slowStartBatch`` in ``pkg/controller``).

If the first creation fails, the others would probably fail for the same reason: they are not even tried.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator
from itertools import islice
from typing import TypeVar

from kemu import errors
from kemu.runtime.env import Env

T = TypeVar("T")

INITIAL_BATCH = 1
"""``SlowStartInitialBatchSize``."""


async def each(
    env: Env, items: Iterable[T], create: Callable[[T], Awaitable[object]], largest_batch: int = 2**31
) -> tuple[list[T], errors.ApiError | None]:
    """Create something for each item, one batch after the other, those of a batch at the same time.

    Returns the items for which nothing was created (the rest that was not tried included, unless ``items`` is an
    iterator) and the first error.
    """
    rest: Iterator[T] = iter(items)
    size = INITIAL_BATCH
    while batch := list(islice(rest, size)):
        failed, failure = await at_once(env, batch, create)
        if failure is not None:
            left = [] if isinstance(items, Iterator) else list(rest)
            return failed + left, failure
        size = min(2 * size, largest_batch)
    return [], None


async def at_once(
    env: Env, batch: list[T], create: Callable[[T], Awaitable[object]]
) -> tuple[list[T], errors.ApiError | None]:
    """One batch. Returns the items for which nothing was created, and the first error."""

    async def attempt(item: T) -> errors.ApiError | None:
        try:
            await create(item)
        except errors.ApiError as error:
            return error
        return None

    if len(batch) == 1:
        answers = [await attempt(batch[0])]
    else:
        answers = list(await asyncio.gather(*(env.spawn(attempt(item), "create") for item in batch)))
    failed = [(item, error) for item, error in zip(batch, answers, strict=True) if error is not None]
    return [item for item, _ in failed], failed[0][1] if failed else None
