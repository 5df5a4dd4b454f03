"""One watch as it passes through: cut into its events, some of which come late, twice, or not at all.

JSON has an event in each line, protobuf a length of four bytes before each (``streaming`` of apimachinery). Everything
is passed on in its order.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Awaitable, Callable, Iterator, MutableMapping
from typing import Any

from kemu.emulated.gateway.asgi import Send
from kemu.emulated.gateway.faults import refusals
from kemu.emulated.gateway.faults.requests import Asked
from kemu.emulated.gateway.faults.rules import Rule
from kemu.emulated.gateway.requests import envelopes
from kemu.emulated.objects.conversion import convert
from kemu.messages.k8s import meta_v1_pb2

Sleep = Callable[[float], Awaitable[None]]

_BOOKMARK = (b'{"type":"BOOKMARK"', b"\x0a\x08BOOKMARK")
_INITIAL = b"k8s.io/initial-events-end"
_REVISION = re.compile(rb'"resourceVersion":\s*"(\d+)"')


class Cut(Exception):
    """The connection is to end: no more of the answer is sent, and it has no end. ``abruptly``: by a reset."""

    def __init__(self, abruptly: bool) -> None:
        super().__init__()
        self.abruptly = abruptly


class Stream:
    """See the module. ``cuts``, ``delays`` and ``bookmarks`` are the rules that strike it; they may come later."""

    def __init__(self, asked: Asked, user: str, send: Send, sleep: Sleep) -> None:
        self.asked = asked
        self.user = user
        self.cuts: list[tuple[Rule, int]] = []
        """Rules, and how many events are still to come before each cuts."""
        self.delays: list[Rule] = []
        self.bookmarks: list[Rule] = []
        self.passed = 0
        """Events, so far."""
        self._send = send
        self._sleep = sleep
        self._rest = b""
        self._is_protobuf = False
        self._begun = False
        self._cut_now = asyncio.Event()

    def add(self, rule: Rule) -> None:
        """The rule strikes this watch from now on."""
        if rule.what == "cutStreams":
            self.cuts.append((rule, int(rule.parameters.get("events", 0))))
            if not rule.parameters.get("events") and not rule.parameters.get("revision"):
                self._cut_now.set()
        elif rule.what == "delayEvents":
            self.delays.append(rule)
        elif rule.what == "wrongBookmarks":
            self.bookmarks.append(rule)

    def remove(self, rule: Rule) -> None:
        """It has ended."""
        self.cuts = [(each, left) for each, left in self.cuts if each is not rule]
        self.delays = [each for each in self.delays if each is not rule]
        self.bookmarks = [each for each in self.bookmarks if each is not rule]

    async def cut(self) -> Rule:
        """Waits until a rule cuts it without waiting for an event."""
        while True:
            await self._cut_now.wait()
            self._cut_now.clear()
            for rule, left in self.cuts:
                if left == 0 and not rule.parameters.get("revision"):
                    return rule

    async def pass_on(self, message: MutableMapping[str, Any]) -> Rule | None:
        """What the gateway sends. Returns the rule that cuts the stream here, if one does."""
        if message["type"] == "http.response.start":
            self._begun = True
            headers = dict(message["headers"])
            self._is_protobuf = b"protobuf" in headers.get(b"content-type", b"")
            await self._send(message)
            return None
        body = message.get("body", b"")
        if not (self.cuts or self.delays or self.bookmarks or self._rest or self._is_protobuf):
            self.passed += body.count(b"\n")
            await self._send(message)
            return None
        self._rest += body
        for event in self._events():
            self.passed += 1
            for rule in self.delays:
                await self._sleep(rule.seconds())
            for copy in self._copies(event):
                await self._send({"type": "http.response.body", "body": copy, "more_body": True})
            if (rule_found := self._cutting(event)) is not None:
                return rule_found
        if not message.get("more_body"):
            rest, self._rest = self._rest, b""
            await self._send({"type": "http.response.body", "body": rest, "more_body": False})
        return None

    async def finish(self, rule: Rule) -> None:
        """End the stream as the rule says. Raises :class:`Cut`."""
        how = rule.parameters.get("how", "clean")
        if how == "reset":
            raise Cut(True)
        if how == "midLine":
            half = b'{"type":"MODIFIED","object":{"kind":' if not self._is_protobuf else b"\x00\x00\x10\x00\x0a"
            await self._send({"type": "http.response.body", "body": half, "more_body": True})
            raise Cut(False)
        if not self._begun:  # cut before the API server has answered
            headers = [(b"content-type", b"application/json")]
            await self._send({"type": "http.response.start", "status": 200, "headers": headers})
        if how == "expired":
            await self._send({"type": "http.response.body", "body": self._expired(), "more_body": True})
        await self._send({"type": "http.response.body", "body": b"", "more_body": False})

    def _expired(self) -> bytes:
        status = refusals.status(410, self.asked)
        if not self._is_protobuf:
            return json.dumps({"type": "ERROR", "object": status}, separators=(",", ":")).encode() + b"\n"
        fields = {name: value for name, value in status.items() if name not in ("kind", "apiVersion")}
        message, _ = convert.partial_json(meta_v1_pb2.Status, fields)
        return envelopes.watch_frame("ERROR", envelopes.pack("v1", "Status", message.SerializeToString()))

    def _events(self) -> Iterator[bytes]:
        """Takes whole events out of what has come."""
        while True:
            if self._is_protobuf:
                end = 4 + int.from_bytes(self._rest[:4], "big") if len(self._rest) >= 4 else 0
                if not end or len(self._rest) < end:
                    return
            else:
                end = self._rest.find(b"\n") + 1
                if not end:
                    return
            event, self._rest = self._rest[:end], self._rest[end:]
            yield event

    def _copies(self, event: bytes) -> list[bytes]:
        """How often an event is passed on: bookmarks perhaps twice or never, but not the one after the initial events,
        without which no informer ever begins."""
        begin = event[4:40] if self._is_protobuf else event
        if self.bookmarks and begin.startswith(_BOOKMARK):
            rule = self.bookmarks[0]
            missing = rule.parameters["how"] == "missing"
            if missing and _INITIAL in event and not rule.parameters.get("initial"):
                return [event]
            return [] if missing else [event, event]
        return [event]

    def _cutting(self, event: bytes) -> Rule | None:
        for place, (rule, left) in enumerate(self.cuts):
            revision = rule.parameters.get("revision")
            if revision:
                found = _REVISION.search(event)
                if found is None or int(found[1]) <= int(revision):
                    continue
            if left <= 1:
                return rule
            self.cuts[place] = (rule, left - 1)
        return None
