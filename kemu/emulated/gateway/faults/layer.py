"""The layer in front of the gateway in which faults strike the requests of clients."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import NamedTuple, Protocol

from kemu.emulated.gateway.asgi import Application, Message, Receive, Scope, Send
from kemu.emulated.gateway.faults import past, refusals, requests, streams
from kemu.emulated.gateway.faults.requests import Asked
from kemu.emulated.gateway.faults.revisions import Revisions
from kemu.emulated.gateway.faults.rules import Rule
from kemu.emulated.gateway.limits import connections
from kemu.emulated.gateway.settings import Authenticator
from kemu.errors import ApiError
from kemu.runtime.env import SECOND_NS

_COUNTED = 10_000
"""Different requests whose number is known; the one that came first is forgotten first."""


class Time(Protocol):
    """Virtual time, as far as the layer needs it."""

    def now_ns(self) -> int: ...

    async def sleep(self, seconds: float) -> None: ...


class Strike(NamedTuple):
    """A fault has struck a request."""

    rule: Rule
    asked: Asked
    number: int
    """Which of all requests of this client for the same thing it is, from the start of the cluster."""
    seconds: float = 0.0
    """How late or how old the answer is."""
    events: int = 0
    """That a watch had delivered when it was cut."""


class Layer:
    """An ASGI application around the gateway."""

    def __init__(
        self,
        app: Application,
        time: Time,
        authenticator: Authenticator,
        revisions: Revisions,
        on_strike: Callable[[Strike], None],
    ) -> None:
        self._app = app
        self._time = time
        self._authenticator = authenticator
        self._revisions = revisions
        self._on_strike = on_strike
        self._rules: dict[str, Rule] = {}
        """Those in force, by the ids of their faults."""
        self._streams: dict[streams.Stream, int] = {}
        """Open watches, with the numbers of their requests."""
        self._counts: dict[Asked, int] = {}

    def begin(self, rule: Rule) -> None:
        self._rules[rule.fault] = rule
        if rule.what in ("cutStreams", "delayEvents", "wrongBookmarks"):
            for stream, number in list(self._streams.items()):
                if rule.matches(stream.asked, stream.user) and rule.strikes():
                    self._strike_stream(rule, stream, number)

    def end(self, fault: str) -> None:
        rule = self._rules.pop(fault, None)
        if rule is not None:
            rule.ended = True
            for stream in self._streams:
                stream.remove(rule)

    def close(self) -> None:
        self._app.close()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        asked = requests.of(scope)
        number = self._count(asked)
        user = await self._user(scope) if any(rule.names_user() for rule in self._rules.values()) else ""
        struck = [
            rule
            for rule in list(self._rules.values())
            if _concerns(rule, asked) and rule.matches(asked, user) and rule.strikes()
        ]
        if asked.is_watch:
            user = user or await self._user(scope)
            refusing = [rule for rule in struck if rule.what in ("refuse", "slowAnswers")]
            await self._answer(scope, receive, send, asked, number, refusing, user, struck)
        elif struck:
            await self._answer(scope, receive, send, asked, number, struck, user, ())
        else:
            await self._app(scope, receive, send)

    async def _answer(
        self,
        scope: Scope,
        receive: Receive,
        send: Send,
        asked: Asked,
        number: int,
        struck: list[Rule],
        user: str,
        of_stream: list[Rule] | tuple[()],
    ) -> None:
        """With faults, one after the other in the order in which they began."""
        late_s = old_s = 0.0
        for rule in struck:
            seconds = rule.seconds()
            self._tell(Strike(rule, asked, number, seconds))
            if rule.what == "staleAnswers":
                old_s = max(old_s, seconds)
            elif rule.what == "refuse":
                code = int(rule.parameters["code"])
                await drain(receive)
                retry_after_s = float(rule.parameters.get("retryAfter", 1.0 if code == 429 else 0.0))
                await refusals.send(refusals.status(code, asked, retry_after_s), send)
                return
            elif rule.parameters.get("before"):
                await self._time.sleep(seconds)
            else:
                late_s += seconds
        if asked.is_watch:
            await self._watch(scope, receive, send, asked, number, user, of_stream)
            return
        losing = next((rule for rule in struck if rule.what == "loseAnswers"), None)
        if not late_s and losing is None and not old_s:
            await self._app(scope, receive, send)
            return
        answer = await self._stale(old_s, asked, scope) if old_s else await past.whole(self._app, scope, receive)
        if late_s:
            await self._time.sleep(late_s)
        if losing is not None:
            if losing.parameters.get("how") == "timeout":
                await refusals.send(refusals.status(504, asked), send)
            else:
                await end_connection(scope, receive, True)
            return
        for message in answer:
            await send(message)

    def _count(self, asked: Asked) -> int:
        number = self._counts.get(asked, 0) + 1
        if number == 1 and len(self._counts) >= _COUNTED:
            del self._counts[next(iter(self._counts))]
        self._counts[asked] = number
        return number

    # Watches

    async def _watch(
        self,
        scope: Scope,
        receive: Receive,
        send: Send,
        asked: Asked,
        number: int,
        user: str,
        struck: list[Rule] | tuple[()],
    ) -> None:
        stream = streams.Stream(asked, user, send, self._time.sleep)
        for rule in struck:
            if rule.what in ("cutStreams", "delayEvents", "wrongBookmarks"):
                self._strike_stream(rule, stream, number)
        self._streams[stream] = number
        cut: list[Rule] = []

        async def pass_on(message: Message) -> None:
            if cut:
                raise _Cut
            rule = await stream.pass_on(message)
            if rule is not None:
                cut.append(rule)
                raise _Cut

        serving = asyncio.ensure_future(self._app(scope, receive, pass_on))
        cutting = asyncio.ensure_future(stream.cut())
        try:
            await asyncio.wait([serving, cutting], return_when=asyncio.FIRST_COMPLETED)
            if cutting.done() and not serving.done():
                cut.append(cutting.result())
                serving.cancel()
            with contextlib.suppress(_Cut, asyncio.CancelledError):
                await serving
            if cut:
                self._tell(Strike(cut[0], asked, number, events=stream.passed))
                await self._finish(scope, receive, stream, cut[0])
        finally:
            self._streams.pop(stream, None)
            cutting.cancel()
            serving.cancel()

    async def _finish(self, scope: Scope, receive: Receive, stream: streams.Stream, rule: Rule) -> None:
        try:
            await stream.finish(rule)
        except streams.Cut as cut:
            await end_connection(scope, receive, cut.abruptly)

    def _strike_stream(self, rule: Rule, stream: streams.Stream, number: int) -> None:
        if rule.what != "cutStreams":
            self._tell(Strike(rule, stream.asked, number))
        stream.add(rule)

    # Common

    async def _stale(self, old_s: float, asked: Asked, scope: Scope) -> list[Message]:
        """As the cluster was so long ago."""
        past_ns = self._time.now_ns() - round(old_s * SECOND_NS)
        return await past.answer(self._app, scope, asked, self._revisions.at(past_ns))

    async def _user(self, scope: Scope) -> str:
        headers = {key.decode("latin-1").lower(): value.decode("latin-1") for key, value in scope["headers"]}
        certificate = (scope.get("extensions") or {}).get(connections.TLS)
        try:
            return (await self._authenticator.authenticate(headers, certificate)).name
        except ApiError:
            return ""

    def _tell(self, strike: Strike) -> None:
        strike.rule.hit(strike.asked.agent)
        self._on_strike(strike)


class _Cut(Exception):
    """Leaves the gateway where a watch is cut."""


def _concerns(rule: Rule, asked: Asked) -> bool:
    """Whether faults of its kind can strike such a request."""
    what = rule.what
    if what == "staleAnswers":
        return asked.is_read and bool(asked.resource)
    if what in ("delayEvents", "wrongBookmarks"):
        return asked.is_watch
    if what == "cutStreams":
        return asked.is_watch and bool(rule.parameters.get("fresh") or rule.parameters.get("events"))
    if what == "loseAnswers":
        return not asked.is_watch
    return bool(asked.resource)


async def end_connection(scope: Scope, receive: Receive, abruptly: bool) -> None:
    """Without an answer, or in the middle of one. ``abruptly``: by a reset."""
    end = (scope.get("extensions") or {}).get(connections.RESET)
    if end is not None:
        end(abruptly)
        while (await receive())["type"] != "http.disconnect":
            pass


async def drain(receive: Receive) -> None:
    """Take the body of a request that nobody reads."""
    while True:
        message = await receive()
        if message["type"] != "http.request" or not message.get("more_body"):
            return
