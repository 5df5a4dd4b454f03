"""How many requests a second a client may send: client-go's token buckets (``util/flowcontrol``).

    buckets = Buckets({"": Rate(50, 100), "events": Rate(50, 100), "leases": None})
    wait_ns = buckets.reserve("pods", now_ns)

A request waits in the client until there is a token for it, in the order of asking. A watch needs none (client-go:
"we don't use r.rateLimiter here").
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from kemu.emulated.settings.declared import setting
from kemu.emulated.settings.shapes import Number, Whole
from kemu.runtime.env import SECOND_NS

LISTS = "list"
"""In the place of a resource: every list, of any resource."""


class Rate(NamedTuple):
    """What a client is allowed."""

    qps: float
    """Requests a second; 0: client-go's default, negative: no limit."""
    burst: int
    """Requests at once after a pause; 0: client-go's default."""

    def over(self, default: Rate) -> Rate:
        """With what is not stated here taken from a default."""
        return Rate(self.qps or default.qps, self.burst or default.burst)


CLIENT_GO = Rate(5, 10)
"""``rest.DefaultQPS`` and ``rest.DefaultBurst``: where a configuration says 0."""
SCHEDULER = Rate(50, 100)
"""kube-scheduler's (``SetDefaults_KubeSchedulerConfiguration``)."""
CONTROLLER = Rate(20, 30)
"""kube-controller-manager's for each controller (``RecommendedDefaultGenericControllerManagerConfiguration``)."""
KUBELET = Rate(50, 100)
"""A kubelet's, once for events and once for everything else (``SetDefaults_KubeletConfiguration``)."""

Rates = Mapping[str, Rate | None]
"""By resource, :data:`LISTS` or "" for the rest: one bucket each; None: no limit."""


@dataclass(frozen=True, kw_only=True)
class ClientConnection:
    """A ClientConnectionConfiguration."""

    qps: float = setting(Number(), "Requests a second; 0 stands for the default, a negative number for no limit.", 0)
    burst: int = setting(Whole(0), "Requests at once after a pause; 0 stands for the default.", 0)

    @property
    def rate(self) -> Rate:
        return Rate(self.qps, self.burst)


class TokenBucket:
    """Exact: in whole nanoseconds. Raises ValueError for a rate without a limit."""

    __slots__ = ("full_ns", "room_ns", "token_ns")

    def __init__(self, rate: Rate) -> None:
        if rate.qps <= 0 or rate.burst < 1:
            raise ValueError(f"{rate}: a bucket needs a rate above 0 and room for a token")
        self.token_ns = round(SECOND_NS / rate.qps)
        """From one token to the next."""
        self.room_ns = rate.burst * self.token_ns
        """As long an empty bucket takes to fill."""
        self.full_ns = 0
        """When it will be full again."""

    def reserve(self, now_ns: int) -> int:
        """Take a token, perhaps one that is yet to come: how long to wait for it."""
        self.full_ns = max(self.full_ns, now_ns) + self.token_ns
        return max(0, self.full_ns - self.room_ns - now_ns)


class Buckets:
    """The buckets of one client."""

    __slots__ = ("_by_name", "_rest")

    def __init__(self, rates: Rates) -> None:
        self._by_name = {
            name: None if rate is None or rate.qps < 0 else TokenBucket(rate.over(CLIENT_GO))
            for name, rate in rates.items()
        }
        self._rest = self._by_name.pop("", None)

    def reserve(self, resource: str, now_ns: int, *, lists: bool = False) -> int:
        """How long a request for objects of that resource (a plural) has to wait, in ns."""
        if lists and LISTS in self._by_name:
            resource = LISTS
        bucket = self._by_name.get(resource, self._rest)
        if bucket is None:
            return 0
        # TokenBucket.reserve, inlined.
        full_ns = bucket.full_ns
        full_ns = bucket.full_ns = (full_ns if full_ns > now_ns else now_ns) + bucket.token_ns
        wait_ns = full_ns - bucket.room_ns - now_ns
        return wait_ns if wait_ns > 0 else 0


def of_scheduler(rate: Rate) -> dict[str, Rate | None]:
    """kube-scheduler has clients of their own, with the same rate, for events and for its election."""
    return {"": rate, "events": rate, "leases": rate}


def of_controller(rate: Rate) -> dict[str, Rate | None]:
    """Informers are shared by all controllers and list with a client of their own; so does the election."""
    return {"": rate, "leases": rate, LISTS: None}


def of_kubelet(requests: Rate, events: Rate) -> dict[str, Rate | None]:
    """Heartbeats have a client without limit."""
    return {"": requests, "events": events, "leases": None, "nodes": None}
