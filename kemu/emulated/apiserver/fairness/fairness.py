"""The priority levels of one API server, and which of them a request belongs to (``apf_controller.go``,
``priority-and-fairness.go``)."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from typing import Any, NamedTuple

from kemu.emulated.apiserver.authorization import attributes
from kemu.emulated.apiserver.authorization.attributes import Attributes
from kemu.emulated.apiserver.authorization.authorizers import Authorizer
from kemu.emulated.apiserver.fairness import lending, rules
from kemu.emulated.apiserver.fairness.levels import Counts, Level, Ticket
from kemu.emulated.apiserver.watch.cache import Collection, WatchCache
from kemu.emulated.apiserver.watch.fanout import Fanout
from kemu.errors import TooManyRequests
from kemu.messages.k8s import flowcontrol_v1_pb2 as flow
from kemu.messages.v1 import api_pb2
from kemu.runtime.env import SECOND_NS, Env

PERIOD_S = 10.0
"""``borrowingAdjustmentPeriod``."""
_WIDEST_PART = 0.15
"""``priorityLevelMaxSeatsPercent``."""
MOST_LIST_SEATS, MOST_WRITE_SEATS = 100, 10
_BYTES_PER_SEAT, _MOST_BYTES = 100_000, 1_000_000
"""What a list takes, by the bytes of its objects; from the watch cache, they count up to a limit."""
_WATCHES_PER_SEAT = 10
_LINGER_NS = 5_000_000
"""``eventAdditionalDuration``: how long the seats stay taken for the watches that are told of a write."""
_FRESH_NS = 60 * SECOND_NS
"""So long the mean size of the objects of a kind counts."""
_REMEMBERED = 65_536
"""Requests whose flow is known."""
_WRITES = ("create", "update", "patch", "delete")


class _Flow(NamedTuple):
    level: Level
    counts: Counts
    """Of its schema."""
    hand: tuple[int, ...]
    asked: Attributes
    collection: str
    """Empty: none of the requests needs several seats."""


class Fairness:
    def __init__(
        self,
        env: Env,
        seats: int,
        authorizer: Authorizer,
        cache: WatchCache,
        fanout: Fanout,
        begins: Callable[[Any, Ticket], None],
        expires: Callable[[Any, TooManyRequests], None],
    ) -> None:
        """``begins`` and ``expires`` are told of works that have waited, but for futures: those are done then."""
        self.levels: dict[str, Level] = {}
        self._env = env
        self._seats = seats
        self._authorizer = authorizer
        self._cache = cache
        self._fanout = fanout
        self._begins = begins
        self._expires = expires
        self._of_levels = cache.collections["prioritylevelconfigurations"]
        self._of_schemas = cache.collections["flowschemas"]
        self._seen = 0, 0
        self._is_on = False
        self._is_lending = False
        self._schemas = rules.Schemas((), ())
        self._flows: dict[tuple[str, ...], _Flow] = {}
        """By user, verb, namespace and kind."""
        self._sizes: dict[str, tuple[int, int]] = {}
        """Of the collections: mean bytes of their objects, and when that was found out."""
        self._leaving: list[Level] = []
        """Levels whose objects are gone, until they are idle."""

    @property
    def is_on(self) -> bool:
        """Whether there are FlowSchemas, and the set-up of the run, whose clock stands, is over."""
        seen = self._of_levels.last, self._of_schemas.last
        if seen != self._seen and self._env.clock.now_ns() > 0:
            self._seen = seen
            self._digest()
        return self._is_on

    def enter(self, by: str, verb: str, request: attributes.Request, work: object) -> Ticket:
        """The ticket has its seats, or waits. ``verb`` as the service has it. Raises TooManyRequests."""
        where = getattr(request, "resource", None)
        key: tuple[str, ...] = by, verb, getattr(request, "namespace", "")
        if where is not None:
            key = by, verb, where.namespace, where.resource, getattr(request, "subresource", "")
        found = self._flows.get(key) or self._flow(key, request)
        level, counts, hand, asked, collection = found
        if not collection:
            ticket = Ticket(level, counts, work)
        elif asked.verb in _WRITES:
            watches = self._fanout.count_interested(collection, asked.namespace, getattr(request, "name", ""))
            seats = _write_seats(watches, level.widest) if watches >= _WATCHES_PER_SEAT else ()
            ticket = Ticket(level, counts, work, *seats)
        else:
            ticket = Ticket(level, counts, work, self._read_seats(found, request))  # type: ignore[arg-type]
        level.enter(ticket, hand)
        return ticket

    async def turn(self, ticket: Ticket) -> None:
        """For a request without a work that has not got its seats at once: waits for them. Raises TooManyRequests."""
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        ticket.work = turn
        try:
            await turn
        except asyncio.CancelledError:
            if not turn.done() or turn.cancelled() or turn.exception() is None:
                ticket.level.give_up(ticket)
            raise

    def forget(self, is_gone: Callable[[Any], bool]) -> None:
        """A client has gone: what it asked for need not be served."""
        for level in (*self.levels.values(), *self._leaving):
            level.forget(is_gone)

    def told(self) -> api_pb2.LevelsResponse:
        """How many requests are served and wait, for metrics."""
        found = api_pb2.LevelsResponse()
        if self.is_on:
            for name, level in sorted(self.levels.items()):
                one = found.levels.add(
                    name=name, nominal=level.nominal, least=level.least, most=level.most, now=level.limit
                )
                for schema, counts in sorted(level.counts.items()):
                    one.schemas.add(
                        name=schema,
                        dispatched=counts.dispatched,
                        rejected=counts.rejected,
                        executing=counts.executing,
                        executing_seats=counts.seats,
                        waiting=counts.waiting,
                        waiting_seats=counts.waiting_seats,
                    )
        return found

    def _begun(self, ticket: Ticket) -> None:
        if not isinstance(ticket.work, asyncio.Future):
            self._begins(ticket.work, ticket)
        elif ticket.work.done():
            ticket.level.give_up(ticket)
        else:
            ticket.work.set_result(None)

    def _expired(self, ticket: Ticket, refusal: TooManyRequests) -> None:
        if not isinstance(ticket.work, asyncio.Future):
            self._expires(ticket.work, refusal)
        elif not ticket.work.done():
            ticket.work.set_exception(refusal)

    # Which flow

    def _flow(self, key: tuple[str, ...], request: attributes.Request) -> _Flow:
        by, verb, stated, *rest = key
        # Bindings of one request may be in several namespaces: the first counts.
        asked = next(iter(attributes.of_request(verb, request)), Attributes("create", "", "pods", "", "", "", ""))
        # The namespace of a namespace is itself, as in RequestInfo.
        is_namespace = asked.resource == "namespaces" and not asked.group
        namespace = asked.name if is_namespace else asked.namespace
        digest = rules.Digest(self._authorizer.user(by), asked.verb, asked.group, asked.combined, namespace)
        schema = self._schemas.find(digest)
        name, level = schema.metadata.name, self.levels[schema.spec.priorityLevelConfiguration.name]
        hand = level.hand(f"{name}\0{rules.distinguisher(digest, schema)}") if level.hand_size else ()
        counts = level.counts.setdefault(name, Counts())
        widens = asked.verb in ("list", "watch") or (
            asked.verb in _WRITES and (asked.resource, asked.subresource) != ("serviceaccounts", "token")
        )
        found = _Flow(level, counts, hand, asked, (rest[0] if rest else "pods") if widens else "")
        # A namespace that stands in the object alone is another one the next time.
        if namespace == stated:
            if len(self._flows) >= _REMEMBERED:
                self._flows.clear()
            self._flows[key] = found
        return found

    # How wide

    def _read_seats(self, found: _Flow, request: api_pb2.ListRequest | api_pb2.WatchCreate) -> int:
        """Seats that a list or watch takes (``request/width.go``)."""
        collection = self._cache.collections.get(found.collection)
        if collection is None:
            return 1
        seats = self._list_seats(found.asked, request, collection)
        return max(1, min(seats, found.level.widest or MOST_LIST_SEATS, MOST_LIST_SEATS))

    def _list_seats(
        self, asked: Attributes, request: api_pb2.ListRequest | api_pb2.WatchCreate, collection: Collection
    ) -> int:
        """``seatsBasedOnObjectSize``."""
        fields = request.field_selector
        if fields and asked._replace(fields=fields).demands("metadata.name"):
            return 1
        if isinstance(request, api_pb2.WatchCreate):
            begins = request.HasField("send_initial_events") and request.send_initial_events
            if not begins and request.resource_version not in ("", "0"):
                return 1
        now_ns = self._env.clock.now_ns()
        size, when_ns = self._sizes.get(collection.name, (0, -_FRESH_NS))
        if now_ns - when_ns >= _FRESH_NS:
            entries = collection.entries.values()
            size = sum(one.size for one in entries) // len(entries) if entries else 0
            self._sizes[collection.name] = size, now_ns
        count = stored = len(collection.entries)
        is_cached = True
        if isinstance(request, api_pb2.ListRequest):
            count = min(count, request.limit or count)
            is_cached = request.resource_version_match == "NotOlderThan" or not (
                request.resource_version_match
                or getattr(request, "continue")
                or (request.limit and request.resource_version not in ("", "0"))
            )
            if not is_cached and (request.label_selector or request.field_selector):
                count = max(count, stored // 2)
        used = count * size
        return math.ceil((min(used, _MOST_BYTES) if is_cached else used) / _BYTES_PER_SEAT)

    # Levels

    def _digest(self) -> None:
        """The objects have changed (``digestConfigObjects``)."""
        self._is_on = bool(self._of_levels.entries or self._of_schemas.entries)
        if not self._is_on:
            return
        self._flows.clear()
        self._schemas = rules.Schemas(
            (flow.PriorityLevelConfiguration.FromString(one.wire) for one in self._of_levels.entries.values()),
            (flow.FlowSchema.FromString(one.wire) for one in self._of_schemas.entries.values()),
        )
        now = self._schemas.levels
        self._leaving = [one for one in self._leaving if not one.is_idle and one.name not in now]
        for name in self.levels.keys() - now.keys():
            # It goes on until the last of its requests has been served (``quiescing``).
            self._leaving.append(self.levels.pop(name))
        specs = {name: _limits(one.spec) for name, one in now.items()}
        whole = sum(shares for shares, _, _ in specs.values()) or 1
        for name in sorted(now):
            shares, lendable, borrowing = specs[name]
            level = self.levels.get(name)
            is_new = level is None
            if level is None:
                level = self.levels[name] = Level(name, self._env.clock, self._begun, self._expired)
            level.configure(now[name].spec)
            level.nominal = nominal = -(-self._seats * shares // whole)
            lends = _rounded(nominal * lendable / 100)
            level.least = nominal - lends
            level.most = nominal + (self._seats if borrowing is None else _rounded(nominal * borrowing / 100))
            if is_new:
                level.limit = nominal - lends // 2
            if level.hand_size:
                part = math.ceil(nominal * _WIDEST_PART)
                level.widest = max(1, min(part, nominal // level.hand_size))
        self._lend()
        if not self._is_lending:
            self._is_lending = True
            self._env.spawn(self._lend_on(), "seats of priority levels")

    async def _lend_on(self) -> None:
        while True:
            await self._env.clock.sleep(PERIOD_S, background=True)
            if self.is_on:
                self._lend()

    def _lend(self) -> None:
        """``updateBorrowingLocked``."""
        limited = [one for one in self.levels.values() if not one.is_exempt]
        whole = left = sum(one.nominal for one in self.levels.values())
        for level in self.levels.values():
            if level.is_exempt:
                limit = max(level.least, level.end_period())
                level.resize(limit)
                left -= limit
        needs = [max(one.least, min(one.nominal, one.end_period())) for one in limited]
        least = sum(one.least for one in limited)
        if left <= least:
            limits = [float(one.least) for one in limited]
        elif left <= sum(needs):
            part = (left - least) / (sum(needs) - least)
            limits = [one.least + (need - one.least) * part for one, need in zip(limited, needs, strict=True)]
        else:
            claims = [
                lending.Claim(need, one.most, max(need, one.demand.smoothed))
                for one, need in zip(limited, needs, strict=True)
            ]
            limits = lending.shares(whole, claims)
        for level, seats in zip(limited, limits, strict=True):
            level.resize(_rounded(seats))


def _write_seats(watches: int, widest: int) -> tuple[int, int, int]:
    """Seats that a write takes; those afterwards, and how long it takes these."""
    seats = math.ceil(watches / _WATCHES_PER_SEAT)
    final = min(seats, widest or MOST_LIST_SEATS, MOST_WRITE_SEATS)
    return 1, final, seats * _LINGER_NS // final


def _limits(spec: flow.PriorityLevelConfigurationSpec) -> tuple[int, int, int | None]:
    """Shares, and in percent what it lends and may borrow; None: any number."""
    if spec.type == "Exempt":
        return spec.exempt.nominalConcurrencyShares, spec.exempt.lendablePercent, None
    limited = spec.limited
    borrowing = limited.borrowingLimitPercent if limited.HasField("borrowingLimitPercent") else None
    return limited.nominalConcurrencyShares, limited.lendablePercent, borrowing


def _rounded(value: float) -> int:
    """As ``math.Round`` does, away from zero."""
    return math.floor(value + 0.5)
