"""When faults may have delayed the events of a watch: who could not reach whom, and since when.

Role: below the checks that forgive delays within these times. Cautious: whatever concerns a client,
any API server or the store counts, for as long as it lasts and until clients have connected again.
"""

from __future__ import annotations

from dataclasses import dataclass

from kemu.runtime.runlog.events import (
    ActorCrashed,
    ActorStarted,
    ActorStopped,
    ConnectionLost,
    FaultBegun,
    FaultEnded,
    kinds,
)

_Events = FaultBegun | FaultEnded | ActorStarted | ActorStopped | ActorCrashed | ConnectionLost

RECOVERY_NS = 60 * 1_000_000_000
"""After a fault clients wait before they connect again: as client-go's reflectors, up to 30 s, stretched at random by
up to once its length (:mod:`kemu.emulated.client.streams`)."""


@dataclass(slots=True)
class Outage:
    begin_ns: int
    clients: frozenset[str] | None
    """Whom it concerns; None: everybody."""
    end_ns: int | None = None


class Outages:
    """Feed it the events of :attr:`kinds`."""

    kinds = kinds(FaultBegun, FaultEnded, ActorStarted, ActorStopped, ActorCrashed, ConnectionLost)

    def __init__(self) -> None:
        self._all: list[Outage] = []
        self._faults: dict[str, list[Outage]] = {}
        """Those that have not ended, by the id of the fault."""
        self._down: dict[str, Outage] = {}
        """By server."""

    def on_event(self, time_ns: int, actor: str, event: _Events) -> None:
        if isinstance(event, FaultBegun):
            self._faults.setdefault(event.id, []).append(self._add(time_ns, _concerned(event)))
        elif isinstance(event, FaultEnded):
            # A fault of several actors begins and ends once for each: in the same order.
            begun = self._faults.get(event.id)
            if begun:
                begun.pop(0).end_ns = time_ns
        elif isinstance(event, ActorStarted):
            outage = self._down.pop(actor, None)
            if outage is not None:
                outage.end_ns = time_ns
        elif isinstance(event, ConnectionLost):
            concerned = None if _is_server(actor) and is_store(event.peer) else frozenset((actor,))
            self._add(time_ns, concerned).end_ns = time_ns
        elif _is_server(actor) and actor not in self._down:
            self._down[actor] = self._add(time_ns, None)

    def _add(self, time_ns: int, clients: frozenset[str] | None) -> Outage:
        outage = Outage(time_ns, clients)
        self._all.append(outage)
        return outage

    def last_still(self, client: str) -> bool:
        """Whether one that concerns the client has not ended."""
        return any(outage.end_ns is None for outage in self._of(client))

    def without(self, client: str, begin_ns: int, end_ns: int) -> int:
        """How much of this time passed without any, for this client."""
        left, reached = end_ns - begin_ns, begin_ns
        for outage in self._of(client):  # in the order of their beginnings
            until_ns = end_ns if outage.end_ns is None else min(end_ns, outage.end_ns + RECOVERY_NS)
            since_ns = max(reached, outage.begin_ns)
            if until_ns > since_ns:
                left -= until_ns - since_ns
                reached = until_ns
        return left

    def _of(self, client: str) -> list[Outage]:
        return [outage for outage in self._all if outage.clients is None or client in outage.clients]


def is_store(actor: str) -> bool:
    return actor.partition("/")[0] in ("store", "etcd")


def _is_server(actor: str) -> bool:
    """Whether it stands between a write and the watches of it."""
    return actor.startswith("apiserver") or is_store(actor)


def _concerned(data: FaultBegun) -> frozenset[str] | None:
    """By one fault: a set of clients, or None for everybody."""
    if "between" in data or ("from" in data and "to" in data):
        one, other = data["between"] if "between" in data else (data["from"], data["to"])
        if any(map(_is_server, one)) and any(map(_is_server, other)):
            return None
        cut = (*(one if any(map(_is_server, other)) else ()), *(other if any(map(_is_server, one)) else ()))
        return frozenset(cut)
    # Of other faults every list is one of actors or nodes.
    named = [name for value in data.values() if isinstance(value, list) for name in value]
    if not named or any(map(_is_server, named)):
        return None
    if data.what == "crash":
        return frozenset()  # The watches of a client end with it, and it lists again as soon as it is back.
    return frozenset(name if "/" in name else f"kubelet/{name}" for name in named)
