"""The events of clients of the API server: answers, watches, elections, and the bridge to a real cluster."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypedDict

from kemu.runtime.runlog.events.declared import Event, field
from kemu.runtime.runlog.events.words import BAD, GOOD, PLAIN, Line, of_actor


class EventLost(Event, kind="client.event_lost", by="every client"):
    """An Event object could not be written"""

    namespace: str
    name: str
    reason: str
    message: str


class WritesAcknowledged(Event, kind="client.acked", by="every client"):
    """Writes that it was told have succeeded, in one message"""

    server: str
    sent: int
    """When the API server sent it (ns, by its clock)."""
    acks: list[list[Any]]
    """Of each, `[took, rev, key, uid, digest]`, where `took` is the time from request to answer in ns, and the digest
    the CRC-32 of the object as it came."""


class UnconditionalUpdate(Event, kind="client.unconditional", by="every client"):
    """An update that states no version is about to be sent, and replaces any version of the object"""

    resource: str
    key: str


class ClientThrottled(Event, kind="client.throttled", by="every client"):
    """A request waited a second or longer for a token: the client sends no more a second (``clientConnection``)"""

    request: str
    """Its verb."""
    resource: str
    waited: int
    """In ns."""


class GetAnswered(Event, kind="client.got", by="every client"):
    """A get was answered"""

    server: str
    resource: str
    namespace: str
    name: str
    version: str
    """The resource version that was asked for."""
    took: int
    rev: int
    """That of the object; 0: there is none."""
    digest: int


class ListAnswered(Event, kind="client.listed", by="every client"):
    """A list, or a page of it, was answered"""

    server: str
    resource: str
    namespace: str
    label_selector: str
    field_selector: str
    version: str
    limit: int
    token: str = field(key="continue")
    took: int
    rev: int
    count: int
    next: str
    """The token of the next page."""
    digest: int
    """The sum of those of the objects, modulo 2³²."""


class ApiServerChanged(Event, kind="client.moved", by="every client"):
    """It lost the connection to one API server and tries another"""

    source: str = field(key="from")
    target: str = field(key="to")


class WatchListed(Event, kind="watch.listed", by="every informer"):
    """A list, or a list anew"""

    watch: str
    resource: str
    namespace: str
    label_selector: str
    field_selector: str
    rev: int
    objects: int
    """How many."""
    digest: int | None
    """The sum of the CRC-32 of their bytes modulo 2³² (null: the client created them itself)."""


class WatchDelivered(Event, kind="watch.events", by="every informer"):
    """Events came"""

    watch: str
    revs: list[int]
    types: str
    """A letter each: `A`DDED, `M`ODIFIED, `D`ELETED, `B`OOKMARK."""
    digests: list[int]
    """The CRC-32 of the bytes of each object (0 for a bookmark)."""


class WatchClosed(Event, kind="watch.closed", by="every informer"):
    """The watch has ended"""

    watch: str
    reason: str


class OnLease(TypedDict):
    """The fields of :class:`OfLease`."""

    lease: str
    identity: str


class OfLease(Event):
    """About a candidate for a lease."""

    lease: str
    identity: str

    def _elected(self, says: str, tone: str) -> Sequence[Line]:
        return (of_actor("elected", says, says, tone, self.lease),)


_CANDIDATES = "schedulers, controllers"


class LeaseAcquired(OfLease, kind="election.acquired", by=_CANDIDATES, on_page=True):
    """A candidate leads"""

    transitions: int
    """How often the lease has changed hands."""

    def lines(self, before: Event | None) -> Sequence[Line]:
        return self._elected("leads", GOOD)


class LeaseObserved(OfLease, kind="election.observed", by=_CANDIDATES, on_page=True):
    """A candidate sees another holder"""

    holder: str


class LeaseLost(OfLease, kind="election.lost", by=_CANDIDATES, on_page=True):
    """A leader could not renew its lease"""

    holder: str

    def lines(self, before: Event | None) -> Sequence[Line]:
        return self._elected("has lost its lease", BAD)


class LeaseReleased(OfLease, kind="election.released", by=_CANDIDATES, on_page=True):
    """A leader gave its lease up"""

    def lines(self, before: Event | None) -> Sequence[Line]:
        return self._elected("gives its lease up", PLAIN)


class LeaseReleaseFailed(OfLease, kind="election.release_failed", by=_CANDIDATES, on_page=True):
    """A leader could not give its lease up"""

    why: str


class BridgeOpened(Event, kind="bridge.opened", by="the bridge to a [real cluster](live.md)"):
    """It uses this API server"""

    server: str


class BridgeClosed(Event, kind="bridge.closed", by="the bridge to a [real cluster](live.md)"):
    """It has closed its connection in good order; a process that died has not"""

    server: str


class BridgeTrouble(Event, kind="bridge.trouble", by="the bridge to a [real cluster](live.md)"):
    """It could not list or watch there"""

    message: str
