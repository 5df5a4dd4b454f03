"""The queue of the nodes of a zone that are to be tainted, and its rate.

Mirrors ``pkg/controller/nodelifecycle/scheduler`` (``RateLimitedTimedQueue`` with a token bucket of one).
"""

from __future__ import annotations

_SECOND_NS = 1_000_000_000


class TaintQueue:
    """Rates are in nodes per second; 0: none. Times are in ns."""

    def __init__(self, rate: float, now_ns: int) -> None:
        self._rate = rate
        self._token_ns: int | None = now_ns
        """From when on there is a token. None: there never is."""
        self._waiting: dict[str, int] = {}
        """Since when, the first to come first."""
        self._known: dict[str, None] = {}
        """Those that wait and those that have been dealt with and not been removed: they are not added again."""
        if rate <= 0:
            self._token_ns = None

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, name: str, now_ns: int) -> None:
        if name not in self._known:
            self._known[name] = None
            self._waiting[name] = now_ns

    def remove(self, name: str) -> None:
        self._known.pop(name, None)
        self._waiting.pop(name, None)

    def take(self, now_ns: int) -> str | None:
        """The next node, if there is one and the rate allows it."""
        if not self._waiting or not self._spend(now_ns):
            return None
        name = next(iter(self._waiting))
        del self._waiting[name]
        return name

    def set_rate(self, rate: float, now_ns: int) -> None:
        """A new rate starts with a token if the old one has one left."""
        if rate == self._rate and rate > 0:
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
