"""How many requests are served at the same time, and who waits: fairly by client, in bounded queues.

This is how it is without FlowSchemas, as in scenarios; with them :mod:`kemu.emulated.apiserver.fairness` takes over.
After API Priority and Fairness (``apiserver/pkg/util/flowcontrol``), with one priority level and a queue for each
client: requests take a seat each; when all seats are taken they queue up, and the clients that wait get seats in turn.
A request that finds its queue full, or that waits too long, is refused with 429 and Retry-After. Watches take no seat,
as in Kubernetes once they have begun.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple

from kemu import errors
from kemu.runtime.env import SECOND_NS, Env, Timer

SEATS = 400 + 200
"""kube-apiserver's defaults of --max-requests-inflight and --max-mutating-requests-inflight, which APF adds up."""
UNDER_WAY_LIMIT = 1_000
"""When so many requests of one connection are under way, no more are read from it: the client waits, as for HTTP/2's
limit on concurrent streams."""
QUEUE_LIMIT = UNDER_WAY_LIMIT + 500
"""Requests of one client that may wait. One message more than it may have under way, so that by default only time
refuses any: a burst of one client is no overload."""
WAIT_LIMIT_NS = 15 * SECOND_NS
"""A quarter of --request-timeout, as in ``apiserver/pkg/server/config.go``."""
LONGEST_RETRY_AFTER_S = 32
"""``dropped_requests_tracker.go``."""
MESSAGE = "Too many requests, please try again later."


class Waiting(NamedTuple):
    """A request in a queue."""

    since_ns: int
    by: str
    work: Any
    """What :meth:`Flows.leave` returns when there is a seat, as the caller gave it; or a future, which then is done."""


class Flows:
    """The seats of one API server."""

    def __init__(
        self, env: Env, seats: int, queue_limit: int, on_expired: Callable[[Waiting, errors.TooManyRequests], None]
    ) -> None:
        """``on_expired`` is told of requests that have waited too long."""
        self._clock = env.clock
        self.free = seats
        self._queue_limit = queue_limit
        self._on_expired = on_expired
        self._queues: dict[str, deque[Waiting]] = {}
        """Queues of the clients that wait; none is empty."""
        self.turns: deque[str] = deque()
        """Clients that wait, in the order in which they get the next seats."""
        self.timer: Timer | None = None
        """For the request that waits longest; runs while any waits."""
        self._pace = Pace()

    def enter(self, by: str, work: Any) -> bool:
        """Whether there is a seat; if not, ``work`` has queued up. Raises TooManyRequests."""
        if self.free:
            self.free -= 1
            return True
        now_ns = self._clock.now_ns()
        queue = self._queues.get(by)
        if (len(queue) if queue is not None else 0) >= self._queue_limit:
            raise self._refusal(now_ns)
        if queue is None:
            queue = self._queues[by] = deque()
            self.turns.append(by)
        queue.append(Waiting(now_ns, by, work))
        if self.timer is None:
            self.timer = self._clock.call_at_ns(now_ns + WAIT_LIMIT_NS, self._expire)
        return False

    async def seat(self, by: str) -> None:
        """:meth:`enter` for a request that simply waits. Call :meth:`leave` after. Raises TooManyRequests."""
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        if not self.enter(by, turn):
            try:
                await turn
            except asyncio.CancelledError:
                if turn.done() and not turn.cancelled() and turn.exception() is None:
                    self.leave()  # It was given to us in the moment in which we gave up.
                raise

    def leave(self) -> Any:
        """A request has been served. Returns the work of the next one, which has the seat now, or None."""
        while self.turns:
            by = self.turns.popleft()
            queue = self._queues[by]
            work = queue.popleft().work
            if queue:
                self.turns.append(by)
            else:
                del self._queues[by]
            if not isinstance(work, asyncio.Future):
                self._stop_timer()
                return work
            if not work.done():
                work.set_result(None)
                self._stop_timer()
                return None
        self.free += 1
        if self.timer is not None:
            self._stop_timer()
        return None

    def forget(self, by: str, is_gone: Callable[[Any], bool]) -> None:
        """A client has gone: what it asked for need not be served."""
        queue = self._queues.get(by)
        if queue is not None:
            left = deque(waiting for waiting in queue if not is_gone(waiting.work))
            if left:
                self._queues[by] = left
            else:
                del self._queues[by]
                self.turns.remove(by)

    def _stop_timer(self) -> None:
        if self.timer is not None and not self.turns:
            self.timer.cancel()
            self.timer = None

    def _expire(self) -> None:
        """Refuse those that have waited too long, oldest first."""
        self.timer = None
        now_ns = self._clock.now_ns()
        expired = []
        for by in list(self._queues):
            queue = self._queues[by]
            while queue and queue[0].since_ns + WAIT_LIMIT_NS <= now_ns:
                expired.append(queue.popleft())
            if not queue:
                del self._queues[by]
                self.turns.remove(by)
        if self._queues:
            oldest_ns = min(queue[0].since_ns for queue in self._queues.values())
            self.timer = self._clock.call_at_ns(oldest_ns + WAIT_LIMIT_NS, self._expire)
        for waiting in sorted(expired, key=lambda waiting: waiting.since_ns):
            refusal = self._refusal(now_ns)
            if not isinstance(waiting.work, asyncio.Future):
                self._on_expired(waiting, refusal)
            elif not waiting.work.done():
                waiting.work.set_exception(refusal)

    def _refusal(self, now_ns: int) -> errors.TooManyRequests:
        return errors.TooManyRequests(MESSAGE, retry_after_s=self._pace.refused(now_ns // SECOND_NS))


class Pace:
    """What Retry-After says: doubled while many requests are refused, then less by one each second
    (``droppedRequestsStats.updateRetryAfterIfNeededLocked``)."""

    def __init__(self) -> None:
        self._retry_after_s = 1
        self._raised_s = 0
        self._now_s = -1
        self._count = 0
        self._past: deque[tuple[int, int]] = deque()
        """(second, refused in it), oldest first."""

    def refused(self, now_s: int) -> int:
        """One more is refused. Returns after how many seconds it may try again."""
        if now_s == self._now_s:
            self._count += 1
            return self._retry_after_s
        self._past.append((self._now_s, self._count))
        self._now_s, self._count = now_s, 1
        while self._past and now_s - self._past[0][0] > LONGEST_RETRY_AFTER_S:
            self._past.popleft()
        retry_after_s = self._retry_after_s
        refused = sum(count for second, count in self._past if now_s - second <= retry_after_s)
        if now_s - self._raised_s >= retry_after_s and refused >= 3 * retry_after_s:
            self._retry_after_s = min(2 * retry_after_s, LONGEST_RETRY_AFTER_S)
            self._raised_s = now_s
        elif refused < retry_after_s and retry_after_s > 1:
            self._retry_after_s -= 1
        return self._retry_after_s
