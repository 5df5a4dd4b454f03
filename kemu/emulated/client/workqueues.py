"""What to do next: the rate-limited work queue of controllers, with client-go's rules.

An item waits in the queue at most once. While it is being worked on, adding it again puts it back when it is done, so
no item is ever worked on twice at the same time and no change is missed.

    while True:
        item = await queue.get()
        try:
            await reconcile(item)
            queue.forget(item)
        except errors.ApiError:
            queue.add_rate_limited(item)
        finally:
            queue.done(item)
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Hashable
from typing import Generic, TypeVar

from kemu.runtime.env import SECOND_NS, Env, Timer
from kemu.runtime.runlog.events import WorkQueueChanged

T = TypeVar("T", bound=Hashable)

BURST, EVERY_NS = 100, SECOND_NS // 10
"""For all items together: so many at once, then one every tenth of a second (``DefaultTypedControllerRateLimiter``)."""


class WorkQueue(Generic[T]):
    """``add_rate_limited`` waits ``base_delay_s`` at first, then twice as long each time, up to ``max_delay_s``; and at
    least until its turn comes among all items that are put back."""

    def __init__(self, env: Env, base_delay_s: float = 0.005, max_delay_s: float = 1000.0, *, name: str = "") -> None:
        """``name``: in metrics, that of the queue of kube-controller-manager; without one it is in none."""
        self._clock = env.clock
        self._times = _Times(env, name) if env.measured and name else None
        self._base_delay_s = base_delay_s
        self._max_delay_s = max_delay_s
        self._queue: deque[T] = deque()
        self._dirty: dict[T, None] = {}
        """To be worked on: in the queue, or put back when done."""
        self._processing: dict[T, None] = {}
        self._failures: dict[T, int] = {}
        self._delayed: dict[T, tuple[int, Timer]] = {}
        self._getters: deque[asyncio.Future[None]] = deque()
        self._full_ns = 0
        """When the bucket of turns is full again, if none is taken."""

    def __len__(self) -> int:
        """Items that wait to be worked on now."""
        return len(self._queue)

    def add(self, item: T) -> None:
        if item in self._dirty:
            return
        self._dirty[item] = None
        if self._times is not None:
            self._times.added(item)
        if item not in self._processing:
            self._enqueue(item)

    def add_after(self, item: T, delay_s: float, *, background: bool = False) -> None:
        """Add it in ``delay_s`` seconds; of several such calls the earliest time counts."""
        self.add_after_ns(item, int(delay_s * SECOND_NS) if delay_s > 0 else 0, background=background)

    def add_after_ns(self, item: T, delay_ns: int, *, background: bool = False) -> None:
        """The same to the nanosecond: what is due at a time must not come before it."""
        if delay_ns <= 0:
            self.add(item)
            return
        when_ns = self._clock.now_ns() + delay_ns
        waiting = self._delayed.get(item)
        if waiting is not None:
            if waiting[0] <= when_ns:
                return
            waiting[1].cancel()
        self._delayed[item] = (when_ns, self._clock.call_at_ns(when_ns, self._due, item, background=background))

    def add_rate_limited(self, item: T) -> None:
        """Add it after a delay that grows with every failure since :meth:`forget`."""
        failures = self._failures.get(item, 0)
        self._failures[item] = failures + 1
        # A larger exponent would overflow, and the limit has long been reached.
        delay_s = min(self._base_delay_s * 2.0 ** min(failures, 64), self._max_delay_s)
        if self._times is not None:
            self._times.log("retried")
        self.add_after(item, max(delay_s, self._turn_s()))

    def _turn_s(self) -> float:
        """Take a turn from the bucket, in advance if it is empty: how long it is until then."""
        now_ns = self._clock.now_ns()
        self._full_ns = max(self._full_ns, now_ns) + EVERY_NS
        return max(0, self._full_ns - now_ns - BURST * EVERY_NS) / SECOND_NS

    def forget(self, item: T) -> None:
        """It went well: the next delay begins from the base again."""
        self._failures.pop(item, None)

    def failures(self, item: T) -> int:
        """How often it was added rate-limited since it was last forgotten."""
        return self._failures.get(item, 0)

    async def get(self) -> T:
        """The oldest item; it counts as being worked on until :meth:`done`."""
        while not self._queue:
            getter = asyncio.get_running_loop().create_future()
            self._getters.append(getter)
            try:
                await getter
            except asyncio.CancelledError:
                # The wake-up that came together with the cancellation belongs to another task.
                if getter.done() and not getter.cancelled() and self._queue:
                    self._wake_one()
                raise
        item = self._queue.popleft()
        del self._dirty[item]
        self._processing[item] = None
        if self._times is not None:
            self._times.taken(item)
        return item

    def done(self, item: T) -> None:
        """Work on it has ended; it goes back to the queue if it was added meanwhile."""
        self._processing.pop(item, None)
        if self._times is not None:
            self._times.done(item)
        if item in self._dirty:
            self._enqueue(item)

    def _due(self, item: T) -> None:
        del self._delayed[item]
        self.add(item)

    def _enqueue(self, item: T) -> None:
        self._queue.append(item)
        self._wake_one()

    def _wake_one(self) -> None:
        while self._getters:
            getter = self._getters.popleft()
            if not getter.done():
                getter.set_result(None)
                return


class _Times:
    """Since when items wait and are worked on, as ``util/workqueue/metrics.go`` keeps them: an item that is added while
    it is worked on has both."""

    def __init__(self, env: Env, name: str) -> None:
        self._env = env
        self._name = name
        self._waiting_ns: dict[Hashable, int] = {}
        self._working_ns: dict[Hashable, int] = {}

    def log(self, what: str, since_ns: int | None = None) -> None:
        took = 0 if since_ns is None else self._env.clock.now_ns() - since_ns
        self._env.log(WorkQueueChanged(queue=self._name, what=what, took=took))

    def added(self, item: Hashable) -> None:
        self._waiting_ns[item] = self._env.clock.now_ns()
        self.log("added")

    def taken(self, item: Hashable) -> None:
        self._working_ns[item] = self._env.clock.now_ns()
        self.log("taken", self._waiting_ns.pop(item, None))

    def done(self, item: Hashable) -> None:
        self.log("done", self._working_ns.pop(item, None))
