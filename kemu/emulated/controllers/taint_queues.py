"""The rate-limited queue of the nodes of one zone that are to be tainted.

Mirrors ``RateLimitedTimedQueue`` in ``pkg/controller/nodelifecycle/scheduler``, with a token bucket of one. Its order
is that of Go's ``container/heap``: by the time of adding, and where two nodes were added at the same time, by how the
heap happens to lie. In virtual time many are, so the heap is rebuilt here step by step.
"""

from __future__ import annotations

_SECOND_NS = 1_000_000_000
_NEVER_RATE = 1.0
"""What a limiter that never accepts calls its rate (``fakeNeverRateLimiter.QPS``)."""


class TaintQueue:
    """Rates are in nodes per second; 0: none. Times are in ns."""

    def __init__(self, rate: float, now_ns: int) -> None:
        self._rate = rate
        self._token_ns: int | None = now_ns if rate > 0 else None
        """From when on there is a token. None: never."""
        self._heap = _Heap()
        self._not_before_ns: dict[str, int] = {}
        """When nodes that were put back may be tried again."""
        self._known: dict[str, None] = {}
        """Those that wait, and those that were taken and not removed since: they are not added again."""

    def __len__(self) -> int:
        return len(self._heap)

    def __contains__(self, name: str) -> bool:
        """Whether it is known, waiting or not."""
        return name in self._known

    def add(self, name: str, now_ns: int) -> None:
        if name not in self._known:
            self._known[name] = None
            self._heap.push(name, now_ns)

    def remove(self, name: str) -> None:
        if name in self._known:
            del self._known[name]
            self._heap.remove(name)
            self._not_before_ns.pop(name, None)

    def forget(self, name: str) -> None:
        """The node is gone. If it waits, it keeps its turn, and uses up its token."""
        if name in self._known and name not in self._heap:
            del self._known[name]

    def take(self, now_ns: int) -> str | None:
        """The next node, if there is one and the rate allows it. One that may not be tried yet costs its token."""
        if not len(self._heap) or not self._spend(now_ns):
            return None
        name = self._heap.first()
        if now_ns < self._not_before_ns.get(name, 0):
            return None
        self._heap.remove(name)
        self._not_before_ns.pop(name, None)
        return name

    def put_back(self, name: str, at_ns: int) -> None:
        """Nothing could be done about a node that was taken: try again from then on."""
        if name in self._known:
            self._heap.push(name, at_ns)
            self._not_before_ns[name] = at_ns

    def set_rate(self, rate: float, now_ns: int) -> None:
        """A new rate starts with a token if the old one has one left (``SwapLimiter``)."""
        if rate == (self._rate if self._rate > 0 else _NEVER_RATE):
            return
        had_token = self._spend(now_ns)
        self._rate = rate
        if rate <= 0:
            self._token_ns = None
        else:
            self._token_ns = now_ns if had_token else now_ns + self._period_ns()

    def _spend(self, now_ns: int) -> bool:
        if self._token_ns is None or now_ns < self._token_ns:
            return False
        self._token_ns = now_ns + self._period_ns()
        return True

    def _period_ns(self) -> int:
        return int(_SECOND_NS / self._rate)


class _Heap:
    """``container/heap`` over (time, name), ordered by time alone."""

    def __init__(self) -> None:
        self._items: list[tuple[int, str]] = []
        self._places: dict[str, int] = {}
        """By name: its index in the list."""

    def __len__(self) -> int:
        return len(self._items)

    def __contains__(self, name: str) -> bool:
        return name in self._places

    def first(self) -> str:
        return self._items[0][1]

    def push(self, name: str, at_ns: int) -> None:
        self._items.append((at_ns, name))
        self._places[name] = len(self._items) - 1
        self._up(len(self._items) - 1)

    def remove(self, name: str) -> None:
        index = self._places.get(name)
        if index is None:
            return
        last = len(self._items) - 1
        if index != last:
            self._swap(index, last)
            if not self._down(index, last):
                self._up(index)
        self._items.pop()
        del self._places[name]

    def _swap(self, one: int, other: int) -> None:
        items, places = self._items, self._places
        items[one], items[other] = items[other], items[one]
        places[items[one][1]], places[items[other][1]] = one, other

    def _up(self, child: int) -> None:
        items = self._items
        while child:
            parent = (child - 1) // 2
            if items[child][0] >= items[parent][0]:
                return
            self._swap(child, parent)
            child = parent

    def _down(self, start: int, size: int) -> bool:
        items, parent = self._items, start
        while (child := 2 * parent + 1) < size:
            if child + 1 < size and items[child + 1][0] < items[child][0]:
                child += 1
            if items[child][0] >= items[parent][0]:
                break
            self._swap(child, parent)
            parent = child
        return parent > start
