"""What controllers are told by their watches, event by event: held back, hidden, late, or as it is."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections import deque
from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from kemu.lab.hunt.courses import key_of
from kemu.runtime.env import SECOND_NS

Message = MutableMapping[str, Any]
Send = Callable[[Message], Awaitable[None]]

LEASES = "leases"
ALWAYS_FRESH = frozenset((LEASES, "events"))
"""Resources that views and outages of all kinds leave alone: who loses a lease has to end, which is no bug."""
_MOST_HELD = 10_000
"""Events that a view holds back from one watch."""
_JSON = (b"content-type", b"application/json")


@dataclass(eq=False)
class View:
    """What a controller sees of one resource, or of all, stands still: a watch cache that lags."""

    controller: str
    resource: str
    """Empty: all."""
    revision: int
    """It sees nothing that is newer."""
    ended: bool = False

    def is_of(self, controller: str, resource: str) -> bool:
        if self.controller != controller:
            return False
        return self.resource == resource if self.resource else resource not in ALWAYS_FRESH


@dataclass(eq=False)
class Hiding:
    """A change of one object that a controller does not see, but only what comes of the next one."""

    controller: str
    resource: str
    key: str
    revision: int
    """Before the change."""
    until_revision: int = 0
    """Of the next change; 0: it has not come yet."""

    def hides(self, controller: str, event: Event) -> bool:
        """Also the next change, which is told in the place of both."""
        return (
            (self.controller, self.key) == (controller, event.key)
            and event.revision > self.revision
            and (not self.until_revision or event.revision <= self.until_revision)
        )


@dataclass(frozen=True, slots=True)
class Event:
    what: str
    key: str
    revision: int


class Teller(Protocol):
    """Where events go, and what holds them up."""

    def now_ns(self) -> int: ...

    async def sleep(self, seconds: float) -> None: ...

    async def tell(self, stream: Stream, line: bytes, send: Send) -> None:
        """An event of a watch goes to the controller."""
        ...

    def late_s(self, controller: str, resource: str) -> float:
        """How late an event is to come."""
        ...

    def view(self, controller: str, resource: str) -> View | None: ...

    def hiding(self, controller: str, event: Event) -> Hiding | None: ...

    def relist(self, controller: str, resource: str, revision: int) -> None:
        """Watches of the controller end, and cannot go on from a revision or an earlier one."""
        ...


@dataclass(eq=False)
class Stream:
    """One watch: events in JSON, a line each."""

    teller: Teller
    controller: str
    resource: str
    send: Send
    initial: Sequence[bytes] = ()
    """What it begins with."""
    view: View | None = None
    """The one that holds events back."""
    serving: asyncio.Future[None] | None = None
    is_cut: bool = False
    _held: list[bytes] = field(default_factory=list)
    _rest: bytes = b""
    _lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    _late: deque[tuple[int, bytes]] = field(default_factory=deque)
    """Events that come late, and when, in ns."""
    _pump: asyncio.Future[None] | None = None
    _hidden: dict[Hiding, str] = field(default_factory=dict)
    """What the first event was that is not told."""

    _has_begun: bool = False
    _is_over: bool = False

    async def say(self, message: Message) -> None:
        """To the client; nothing more once the answer has ended."""
        if not self._is_over:
            self._has_begun = True
            self._is_over = message["type"] == "http.response.body" and not message.get("more_body")
            await self.send(message)

    async def end(self) -> None:
        """Where it was cut."""
        if not self._has_begun:
            await self.say({"type": "http.response.start", "status": 200, "headers": [_JSON]})
        await self.say({"type": "http.response.body", "body": b"", "more_body": False})

    def cut(self) -> None:
        """It ends, at once."""
        self.is_cut = True
        self.close()
        if self.serving is not None:
            self.serving.cancel()

    def close(self) -> None:
        if self._pump is not None:
            self._pump.cancel()

    async def pass_on(self, message: Message) -> None:
        """What the gateway sends."""
        if message["type"] != "http.response.body":
            await self.say(message)
            for line in self.initial:
                await self.teller.tell(self, line, self.say)
            return
        async with self._lock:
            *lines, self._rest = (self._rest + message.get("body", b"")).split(b"\n")
            for line in lines:
                await self._pass(line + b"\n")
            if not message.get("more_body"):
                if self._pump is not None:
                    await self._pump
                await self.say({"type": "http.response.body", "body": self._rest, "more_body": False})

    async def _pass(self, line: bytes) -> None:
        event = self.parsed(line)
        view = self.view or self.teller.view(self.controller, self.resource)
        if view is not None and not view.ended and (event is None or event.revision > view.revision):
            self.view = view
            self._held.append(line)
            if len(self._held) >= _MOST_HELD:
                await self._flush()
            return
        hiding = None if event is None else self.teller.hiding(self.controller, event)
        if hiding is not None and event is not None:
            first = self._hidden.setdefault(hiding, event.what)
            if event.revision != hiding.until_revision:
                return
            merged = self._merged(first, event, line)
            if merged is None:
                return
            line = merged
        late_s = self.teller.late_s(self.controller, self.resource)
        if not late_s and (self._pump is None or self._pump.done()):
            await self.teller.tell(self, line, self.say)
            return
        self._late.append((self.teller.now_ns() + round(late_s * SECOND_NS), line))
        if self._pump is None or self._pump.done():
            self._pump = asyncio.ensure_future(self._tell_late())

    def _merged(self, first: str, event: Event, line: bytes) -> bytes | None:
        """The second of two changes as a controller hears of it that has not heard of the first. None: not at all."""
        if first == "ADDED":
            return None if event.what == "DELETED" else line.replace(b'"MODIFIED"', b'"ADDED"', 1)
        if first == "DELETED":
            # No watch tells of one object in the place of another: only who lists anew does not hear of the end.
            self.teller.relist(self.controller, self.resource, event.revision)
            return None
        return line

    async def _tell_late(self) -> None:
        with contextlib.suppress(Exception):  # the client may be gone
            while self._late:
                due_ns, line = self._late[0]
                await self.teller.sleep(max(0, due_ns - self.teller.now_ns()) / SECOND_NS)
                await self.teller.tell(self, line, self.say)
                self._late.popleft()

    async def flush(self) -> None:
        """What was held back is told."""
        async with self._lock:
            with contextlib.suppress(Exception):  # the client may be gone
                await self._flush()

    async def _flush(self) -> None:
        held, self._held = self._held, []
        self.view = None
        for line in held:
            await self.teller.tell(self, line, self.say)

    def parsed(self, line: bytes) -> Event | None:
        """None: it is no event of an object."""
        try:
            event = json.loads(line)
            metadata = event["object"]["metadata"]
            key = key_of(self.resource, metadata.get("namespace", ""), metadata.get("name", ""))
            return Event(event["type"], key, int(metadata["resourceVersion"]))
        except (ValueError, KeyError, TypeError):
            return None


def initial_events(listed: dict[str, Any], revision: int, *, with_bookmark: bool) -> list[bytes]:
    """A list, as a watch from the start tells it. ``with_bookmark``: and that this was all."""
    kind = {"kind": listed["kind"].removesuffix("List"), "apiVersion": listed["apiVersion"]}
    events = [{"type": "ADDED", "object": {**kind, **one}} for one in listed.get("items") or ()]
    if with_bookmark:
        metadata = {"resourceVersion": str(revision), "annotations": {"k8s.io/initial-events-end": "true"}}
        events.append({"type": "BOOKMARK", "object": {**kind, "metadata": metadata}})
    return [json.dumps(one, separators=(",", ":")).encode() + b"\n" for one in events]
