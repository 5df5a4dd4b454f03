"""The seats of one priority level, and the queues in which requests wait for them (``fairqueuing/queueset``)."""

from __future__ import annotations

import hashlib
import heapq
import math
import operator
from collections import Counter, deque
from collections.abc import Callable, Sequence
from typing import Any

from kemu.emulated.apiserver import flows
from kemu.emulated.apiserver.fairness.lending import Demand
from kemu.errors import TooManyRequests
from kemu.messages.k8s import flowcontrol_v1_pb2 as flow
from kemu.runtime.env import SECOND_NS, Clock, Timer

_COST = operator.attrgetter("cost")
ESTIMATED_NS = 3_000_000
"""How long a request takes as long as nobody knows: ``estimatedServiceDuration``."""


class Ticket:
    """A request that waits for its seats, or has them."""

    __slots__ = (
        "arrival", "cost", "counts", "expires_ns", "is_waiting", "level", "linger_ns", "queue", "seats", "start_ns",
        "width", "work",
    )  # fmt: skip

    def __init__(
        self, level: Level, counts: Counts, work: object, seats: int = 1, final: int = 0, linger_ns: int = 0
    ) -> None:
        """``seats``: what it takes while it is served; ``final``: what it takes for ``linger_ns`` afterwards."""
        self.level = level
        self.counts = counts
        """Of its schema."""
        self.work: Any = work
        """What is told when there are seats."""
        self.is_waiting = False
        self.seats = seats
        self.width = seats if seats > final else final
        """Seats that it takes all the time (``MaxSeats``)."""
        self.linger_ns = linger_ns
        self.cost = (ESTIMATED_NS * seats + final * linger_ns + 5) // 10
        """``totalWork``."""
        self.arrival = 0
        """In the level's virtual time."""
        self.start_ns = self.expires_ns = 0
        self.queue: _Queue | None = None


class _Queue:
    __slots__ = ("cost", "executing", "index", "next", "waiting")

    def __init__(self, index: int) -> None:
        self.index = index
        self.waiting: deque[Ticket] = deque()
        self.cost = 0
        """Of all that wait."""
        self.executing = 0
        self.next = 0
        """Virtual time at which its next request begins: ``nextDispatchR``."""


class Counts:
    """Requests of one schema of a level, for metrics."""

    __slots__ = ("dispatched", "executing", "rejected", "seats", "waiting", "waiting_seats")

    def __init__(self) -> None:
        self.dispatched = self.executing = self.seats = self.waiting = self.waiting_seats = 0
        self.rejected: Counter[str] = Counter()


class Level:
    def __init__(self, name: str, clock: Clock, begins: Callable[[Ticket], None], expires: Callable[..., None]) -> None:
        """``begins``: told of requests that have waited and have their seats now; ``expires``: of one that has waited
        too long, with its refusal."""
        self.name = name
        self.counts: dict[str, Counts] = {}
        """By schema."""
        self.demand = Demand()
        self.nominal = self.least = self.most = 0
        self.limit = 0
        """Seats that it has now: with what it borrows, without what it lends."""
        self.widest = 0
        """``MaxSeatsTracker``; 0: not limited."""
        self.is_exempt = False
        self._clock = clock
        self._begins = begins
        self._expires = expires
        self._pace = flows.Pace()
        self._queues: list[_Queue] = []
        self._wanted = self._hand = self._queue_limit = 0
        self._taken = 0
        """Seats."""
        self._executing = self._waiting = self._waiting_seats = 0
        self._lingering: list[tuple[int, int, Ticket]] = []
        """Heap of requests that are over and whose seats are still taken: when they are free, a number."""
        self._wake: Timer | None = None
        self._wake_ns = -1
        self._line: deque[Ticket] = deque()
        """Those that wait, in the order in which they came; some behind the first may wait no more."""
        self._expiry: Timer | None = None
        """Runs while any waits."""
        self._number = self._enqueued = self._robin = 0
        self._busy: dict[_Queue, None] = {}
        """Queues in which requests wait."""
        self._active = 0
        """Queues with requests that wait or are served."""
        self._virtual = 0
        """``currentR``: virtual time, in seats times 10 ns."""
        self._synced_ns = clock.now_ns()

    def configure(self, spec: flow.PriorityLevelConfigurationSpec) -> None:
        self.is_exempt = spec.type == "Exempt"
        queuing = spec.limited.limitResponse.queuing
        self._wanted = queuing.queues if spec.limited.limitResponse.type == "Queue" else 0
        if self._wanted:
            self._hand, self._queue_limit = queuing.handSize, queuing.queueLengthLimit
        self._queues += map(_Queue, range(len(self._queues), self._wanted))
        self._drop_queues()

    @property
    def hand_size(self) -> int:
        """0: it has no queues."""
        return self._hand if self._wanted else 0

    def hand(self, flow: str) -> tuple[int, ...]:
        """The queues of a flow (``hashFlowID``)."""
        value = int.from_bytes(hashlib.sha256(flow.encode()).digest()[:8], "little")
        return hand_of(value if self._wanted > 1 else 0, self._wanted, self.hand_size)

    @property
    def is_idle(self) -> bool:
        return not self._executing and not self._waiting

    def end_period(self) -> int:
        """Returns the most seats that were wanted at once since the last time."""
        self._sync(self._clock.now_ns())
        return self.demand.end_period()

    def resize(self, limit: int) -> None:
        self._sync(self._clock.now_ns())
        self.limit = limit
        self._dispatch(None)

    def enter(self, ticket: Ticket, hand: Sequence[int]) -> None:
        """``hand``: the queues of its flow. Afterwards it has its seats, or waits. Raises TooManyRequests."""
        now_ns = self._clock.now_ns()
        if now_ns != self._synced_ns or self._lingering:
            self._sync(now_ns)
        if not self._wanted:
            if not self.is_exempt and not self._has_room(ticket):
                raise self._refusal(ticket.counts, "concurrency-limit")
            self._run(ticket)
            return
        offset = self._enqueued % len(hand)
        self._enqueued += 1
        queue = self._queues[hand[offset]]
        if self._waiting:
            # Of its hand the one with the least work (``shuffleShardLocked``).
            queue = min([self._queues[hand[place]] for place in range(offset - len(hand), offset)], key=_COST)
        if self._taken >= self.limit and len(queue.waiting) >= self._queue_limit:
            self._bound(queue)
            raise self._refusal(ticket.counts, "queue-full")
        if not queue.waiting and not queue.executing:
            queue.next = self._virtual
            self._active += 1
        ticket.arrival, ticket.queue = self._virtual, queue
        if not self._waiting and self._taken + ticket.width <= self.limit:
            # What follows, for a request that is alone.
            self._robin = queue.index
            queue.next = max(queue.next, self._virtual) + ticket.cost
            self._run(ticket)
            return
        ticket.is_waiting = True
        queue.waiting.append(ticket)
        self._busy[queue] = None
        self._count_waiting(ticket, 1)
        self._bound(queue)
        self._dispatch(ticket)
        if ticket.is_waiting:
            ticket.expires_ns = self._synced_ns + flows.WAIT_LIMIT_NS
            line = self._line
            while line and not line[0].is_waiting:
                line.popleft()
            line.append(ticket)
            if self._expiry is None:
                self._expiry = self._clock.call_at_ns(ticket.expires_ns, self._expire)

    def leave(self, ticket: Ticket) -> None:
        """It has been served: others get its seats."""
        now_ns = self._clock.now_ns()
        if now_ns != self._synced_ns or self._lingering:
            self._sync(now_ns)
        self._executing -= 1
        ticket.counts.executing -= 1
        queue = ticket.queue
        if queue is not None:
            queue.executing -= 1
            queue.next -= (ticket.seats * (ESTIMATED_NS - (self._synced_ns - ticket.start_ns)) + 5) // 10
            if queue.waiting:
                self._bound(queue)
            elif not queue.executing:
                self._active -= 1
        if ticket.linger_ns:
            self._number += 1
            heapq.heappush(self._lingering, (self._synced_ns + ticket.linger_ns, self._number, ticket))
        else:
            self._taken -= ticket.width
            ticket.counts.seats -= ticket.width
            self.demand.now -= ticket.width
        if self._waiting:
            self._dispatch(None)
        elif len(self._queues) > self._wanted:
            self._drop_queues()

    def give_up(self, ticket: Ticket) -> None:
        """Its client does not want it any more; it waits or has just got its seats."""
        if ticket.is_waiting:
            self._sync(self._clock.now_ns())
            self._eject(ticket)
        else:
            self.leave(ticket)

    def forget(self, is_gone: Callable[[Any], bool]) -> None:
        """Works that wait and need not be served."""
        for queue in self._queues:
            for ticket in [one for one in queue.waiting if is_gone(one.work)]:
                self.give_up(ticket)

    def _dispatch(self, entering: Ticket | None) -> None:
        """As many as there are seats for; in order of the virtual times at which they would end. ``entering`` need not
        be told."""
        while self._waiting and self._taken < self.limit:
            count = len(self._queues)
            first = self._robin + 1
            queue, ends, turn = None, 0, 0
            for one in self._busy:  # min() with a key would call it for each of them
                end = one.next + one.waiting[0].cost
                if queue is None or end < ends or (end == ends and (one.index - first) % count < turn):
                    queue, ends, turn = one, end, (one.index - first) % count
            assert queue is not None
            ticket = queue.waiting[0]
            if not self._has_room(ticket):
                break
            self._robin = queue.index
            queue.waiting.popleft()
            self._waits_no_more(ticket, queue)
            if self.limit < ticket.width and ticket.seats < ticket.width:
                # It lingers on fewer seats, for longer.
                ticket.linger_ns = ticket.linger_ns * ticket.width // self.limit
                ticket.width = max(ticket.seats, self.limit)
            self._run(ticket)
            queue.next += ticket.cost
            self._bound(queue)
            if ticket is not entering:
                self._begins(ticket)
        if self._waiting and self._lingering and self._lingering[0][0] != self._wake_ns:
            if self._wake is not None:
                self._wake.cancel()
            self._wake_ns = self._lingering[0][0]
            self._wake = self._clock.call_at_ns(self._wake_ns, self._free)

    def _free(self) -> None:
        """Seats are free again for which others wait."""
        self._wake, self._wake_ns = None, -1
        self._sync(self._clock.now_ns())
        self._dispatch(None)

    def _run(self, ticket: Ticket) -> None:
        counts, width = ticket.counts, ticket.width
        if ticket.queue is not None:
            ticket.queue.executing += 1
        self._executing += 1
        self._taken += width
        counts.executing += 1
        counts.seats += width
        counts.dispatched += 1
        ticket.start_ns = self._synced_ns
        demand = self.demand
        demand.now += width
        if demand.now > demand.peak:
            demand.peak = demand.now

    def _has_room(self, ticket: Ticket) -> bool:
        """``canAccommodateSeatsLocked``."""
        if self.is_exempt:
            return True
        if ticket.width > self.limit:
            return not self._executing
        return self._taken + ticket.width <= self.limit

    def _sync(self, now_ns: int) -> None:
        """Virtual time goes on: the more queues share the seats, the slower. Seats of those that linger become free."""
        lingering, demand = self._lingering, self.demand
        is_behind = True
        while is_behind:
            is_behind = bool(lingering) and lingering[0][0] <= now_ns
            until_ns, _, ticket = heapq.heappop(lingering) if is_behind else (now_ns, 0, None)
            passed_ns = until_ns - self._synced_ns
            self._synced_ns = until_ns
            if self._active:
                seats = self._taken + self._waiting_seats
                seats = seats if seats < self.limit else self.limit
                self._virtual += math.floor(seats / self._active * passed_ns / 10 + 0.5)
            demand.passed_ns += passed_ns
            demand.first += passed_ns * demand.now
            demand.second += passed_ns * demand.now * demand.now
            if ticket is not None:
                self._taken -= ticket.width
                ticket.counts.seats -= ticket.width
                demand.now -= ticket.width

    def _bound(self, queue: _Queue) -> None:
        """``boundNextDispatchLocked``: no queue saves up what it did not use."""
        if queue.waiting and queue.next < queue.waiting[0].arrival:
            queue.next = queue.waiting[0].arrival

    def _expire(self) -> None:
        """Those that have waited too long go, oldest first."""
        self._expiry = None
        now_ns = self._clock.now_ns()
        self._sync(now_ns)
        line = self._line
        while line and (not line[0].is_waiting or line[0].expires_ns <= now_ns):
            ticket = line.popleft()
            if ticket.is_waiting:
                self._eject(ticket)
                self._expires(ticket, self._refusal(ticket.counts, "time-out"))
        if line and self._expiry is None:
            self._expiry = self._clock.call_at_ns(line[0].expires_ns, self._expire)

    def _eject(self, ticket: Ticket) -> None:
        queue = ticket.queue
        assert queue is not None
        queue.waiting.remove(ticket)
        self._active -= not queue.waiting and not queue.executing
        self._waits_no_more(ticket, queue)
        self._bound(queue)

    def _waits_no_more(self, ticket: Ticket, queue: _Queue) -> None:
        ticket.is_waiting = False
        self._count_waiting(ticket, -1)
        if not queue.waiting:
            del self._busy[queue]
        if not self._waiting and self._expiry is not None:
            self._expiry.cancel()
            self._expiry = None
            self._line.clear()

    def _count_waiting(self, ticket: Ticket, by: int) -> None:
        counts = ticket.counts
        if ticket.queue is not None:
            ticket.queue.cost += by * ticket.cost
        self._waiting += by
        self._waiting_seats += by * ticket.width
        counts.waiting += by
        counts.waiting_seats += by * ticket.width
        self.demand.now += by * ticket.width
        self.demand.peak = max(self.demand.peak, self.demand.now)

    def _drop_queues(self) -> None:
        """Those that are no longer wanted, once they are empty."""
        while len(self._queues) > self._wanted and not self._queues[-1].waiting and not self._queues[-1].executing:
            self._queues.pop()

    def _refusal(self, counts: Counts, why: str) -> TooManyRequests:
        counts.rejected[why] += 1
        return TooManyRequests(flows.MESSAGE, retry_after_s=self._pace.refused(self._synced_ns // SECOND_NS))


def hand_of(value: int, deck: int, hand: int) -> tuple[int, ...]:
    """Cards of a hand (``shufflesharding.Dealer``)."""
    remainders: list[int] = []
    for place in range(hand):
        value, remainder = divmod(value, deck - place)
        remainders.append(remainder)
    cards = []
    for place, card in enumerate(remainders):
        for other in reversed(remainders[:place]):
            card += card >= other
        cards.append(card)
    return tuple(cards)
