"""Stands between the controllers and the gateway: sees what they write and are told, and perturbs it.

All of it happens on the event loop of the gateway, in one thread with the store, so that a perturbation begins in the
very instant of the change that it waits for.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from kemu.emulated.gateway.faults import layer, past, refusals, requests
from kemu.emulated.gateway.faults.layer import Application
from kemu.emulated.gateway.faults.requests import Asked
from kemu.emulated.gateway.requests import request_infos
from kemu.emulated.objects import resources
from kemu.lab.hunt.courses import Course, Notice, Write, key_of

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

_WRITES = ("create", "update", "patch", "delete", "deletecollection")
_CONNECTS = ("exec", "attach", "portforward", "proxy")
"""Subresources by which nothing is written."""
_CONNECTED_S = 1.0
"""Real time for which the virtual one stands while a controller speaks with a container."""
_PROTOBUF = b"application/vnd.kubernetes.protobuf"
_MOST_HELD = 10_000
"""Events that a view holds back from one watch."""


@dataclass(eq=False)
class View:
    """What a controller sees of one resource stands still."""

    controller: str
    resource: str
    revision: int
    """It sees nothing that is newer."""
    latest_only: bool = False
    """When it ends, of several held changes of an object only the last one is told."""
    until_revision: int = 0
    """It ends for a watch when that has come to this revision; 0: when it is told to."""
    ended: bool = False


class Judge(Protocol):
    """Says what becomes of a write of a controller."""

    def before(self, controller: str, key: str, nth: int) -> str:
        """``refuse``: it does not happen, and the answer is 409; ``lose``: it happens, and the connection ends without
        an answer; empty: nothing."""
        ...

    def after(self, controller: str, key: str, nth: int) -> None:
        """It has happened, and its answer is not sent yet."""
        ...

    def late_s(self, controller: str, resource: str) -> float:
        """How late an event of a watch is to come."""
        ...


class Interceptor:
    """An ASGI application around the gateway."""

    def __init__(
        self,
        app: Application,
        course: Course,
        now_ns: Callable[[], int],
        sleep: Callable[[float], Awaitable[None]],
        told: Callable[[], None],
        judge: Judge,
        watched: Callable[[str], None],
    ) -> None:
        """``told``: a controller learns something now. ``watched``: a controller has begun a watch."""
        self._app = app
        self._course = course
        self._now_ns = now_ns
        self._sleep = sleep
        self._told = told
        self._judge = judge
        self._watched = watched
        self.tokens: Mapping[bytes, str] = {}
        """Names of controllers, by the token that they show."""
        self.deaf: set[str] = set()
        """Controllers that are dead: nothing is answered to what is still under way."""
        self._views: list[View] = []
        self._compacted: dict[tuple[str, str], int] = {}
        """Revisions that watches cannot begin at, by controller and resource."""
        self._streams: set[_Stream] = set()
        self._flushing: set[asyncio.Future[None]] = set()
        self._connections = 0
        self.hold: Callable[[str], None] = lambda what: None
        self.release: Callable[[str], None] = lambda what: None
        """Time stands for this, in words, and no longer."""

    def close(self) -> None:
        self._app.close()

    def expire(self, controller: str, resource: str, revision: int) -> None:
        """Watches that have come no further than to a revision end, and none can begin there."""
        self._compacted[controller, resource] = revision
        for stream in list(self._streams):
            if (stream.controller, stream.resource) == (controller, resource):
                stream.cut()

    # Views

    def begin(self, view: View) -> None:
        self._views.append(view)

    def end(self, view: View) -> None:
        """What it has held back is told. May be repeated."""
        if view.ended:
            return
        view.ended = True
        if view in self._views:
            self._views.remove(view)
        for stream in list(self._streams):
            if stream.view is view:
                flushing = asyncio.ensure_future(stream.flush())
                self._flushing.add(flushing)
                flushing.add_done_callback(self._flushing.discard)

    def _view(self, controller: str, resource: str) -> View | None:
        return next((one for one in self._views if one.controller == controller and one.resource == resource), None)

    # Requests

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        controller = self._controller(scope) if scope["type"] == "http" else ""
        if not controller:
            await self._app(scope, receive, send)
            return
        asked = requests.of(scope)
        scope = _in_json(scope)
        if asked.resource.partition("/")[2] in _CONNECTS:
            await self._connect(controller, asked, scope, receive, send)
        elif asked.verb in _WRITES and asked.resource:
            await self._write(controller, asked, scope, receive, send)
        elif asked.is_watch and asked.resource:
            await self._watch(controller, asked, scope, receive, send)
        else:
            view = self._view(controller, _resource(asked)) if asked.is_read else None
            if view is None or view.until_revision or not _may_be_old(scope, view.revision):
                await self._app(scope, receive, send)
                return
            for message in await past.answer(self._app, scope, asked, view.revision):
                await send(message)

    def _controller(self, scope: Scope) -> str:
        for key, value in scope["headers"]:
            if key.lower() == b"authorization":
                return self.tokens.get(value.removeprefix(b"Bearer "), "")
        return ""

    async def _connect(self, controller: str, asked: Asked, scope: Scope, receive: Receive, send: Send) -> None:
        """What is said on the connection is not heard here: time stands until it is over. Not for ever, as a command
        may itself wait for time to pass."""
        self._connections += 1
        what = f"{asked.resource} {asked.name} for {controller} ({self._connections})"
        serving = asyncio.ensure_future(self._app(scope, receive, send))
        self.hold(what)
        try:
            await asyncio.wait((serving,), timeout=_CONNECTED_S)
            self.release(what)
            await serving
        finally:
            self.release(what)
            serving.cancel()

    async def _write(self, controller: str, asked: Asked, scope: Scope, receive: Receive, send: Send) -> None:
        course, judge = self._course, self._judge
        key = key_of(_resource(asked), asked.namespace, asked.name) if asked.name else ""
        begun = len(course.changes)
        nth = course.count_write(controller, key) if key else 0
        verdict = judge.before(controller, key, nth) if key else ""
        if verdict == "refuse":
            course.writes.append(Write(self._now_ns(), controller, asked.verb, key, nth, 409, course.revision))
            await layer.drain(receive)
            await refusals.send(refusals.status(409, asked), send)
            return
        answer = await past.whole(self._app, scope, receive)
        if not key:  # what it is called only the store knows
            prefix = key_of(_resource(asked), asked.namespace, "")
            made = (one.key for one in course.changes[begun:] if one.is_new and one.key.startswith(prefix))
            key = next(made, "")
            nth = course.count_write(controller, key) if key else 0
            verdict = judge.before(controller, key, nth) if key else ""
        status = int(answer[0]["status"]) if answer else 0
        if key and status < 300:
            judge.after(controller, key, nth)
        is_lost = verdict in ("lose", "refuse") or controller in self.deaf
        if key:
            told = 0 if is_lost else status
            course.writes.append(Write(self._now_ns(), controller, asked.verb, key, nth, told, course.revision))
        if is_lost:
            await layer.end_connection(scope, receive, True)
            return
        for message in answer:
            await send(message)

    # Watches

    async def _watch(self, controller: str, asked: Asked, scope: Scope, receive: Receive, send: Send) -> None:
        resource = _resource(asked)
        view = self._view(controller, resource)
        query = request_infos.of(scope).query
        if view is not None and query.text("sendInitialEvents") == "true":
            # As a server without the gate WatchList: clients then list, and watch from there.
            await refusals.send(_NO_INITIAL_EVENTS, send, 422)
            return
        since = query.text("resourceVersion")
        if since.isdecimal() and 0 < int(since) <= self._compacted.get((controller, resource), -1):
            await _expired(asked, send)
            return
        stream = _Stream(self, controller, resource, send)
        self._streams.add(stream)
        self._watched(controller)
        stream.serving = asyncio.ensure_future(self._app(scope, receive, stream.pass_on))
        try:
            await stream.serving
        except asyncio.CancelledError:
            if not stream.is_cut:
                raise
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        finally:
            stream.serving.cancel()
            self._streams.discard(stream)

    async def tell(self, stream: _Stream, line: bytes, send: Send) -> None:
        """An event of a watch goes to the controller."""
        found = stream.parsed(line)
        if found is not None and found.what != "BOOKMARK":
            self._course.notices.append(
                Notice(self._now_ns(), stream.controller, found.key, found.revision, found.what)
            )
        self._told()
        await send({"type": "http.response.body", "body": line, "more_body": True})

    async def delay(self, stream: _Stream) -> None:
        late_s = self._judge.late_s(stream.controller, stream.resource)
        if late_s:
            await self._sleep(late_s)

    def view_of(self, stream: _Stream) -> View | None:
        return self._view(stream.controller, stream.resource)


@dataclass(frozen=True, slots=True)
class _Event:
    what: str
    key: str
    revision: int


@dataclass(eq=False)
class _Stream:
    """One watch: events in JSON, a line each."""

    interceptor: Interceptor
    controller: str
    resource: str
    send: Send
    view: View | None = None
    """The one that holds events back."""
    serving: asyncio.Future[None] | None = None
    is_cut: bool = False
    _held: list[bytes] = field(default_factory=list)
    _rest: bytes = b""
    _lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    def cut(self) -> None:
        """It ends, at once."""
        self.is_cut = True
        if self.serving is not None:
            self.serving.cancel()

    async def pass_on(self, message: Message) -> None:
        """What the gateway sends."""
        if message["type"] != "http.response.body":
            await self.send(message)
            return
        async with self._lock:
            *lines, self._rest = (self._rest + message.get("body", b"")).split(b"\n")
            for line in lines:
                await self._pass(line + b"\n")
            if not message.get("more_body"):
                await self.send({"type": "http.response.body", "body": self._rest, "more_body": False})

    async def _pass(self, line: bytes) -> None:
        view = self.view or self.interceptor.view_of(self)
        if view is not None and not view.ended:
            found = self.parsed(line)
            if found is None or found.revision > view.revision:
                self.view = view
                self._held.append(line)
                is_over = found is not None and view.until_revision and found.revision >= view.until_revision
                if not is_over and len(self._held) < _MOST_HELD:
                    return
                await self._flush()
                return
        await self.interceptor.delay(self)
        await self.interceptor.tell(self, line, self.send)

    async def flush(self) -> None:
        """What was held back is told."""
        async with self._lock:
            with contextlib.suppress(Exception):  # the client may be gone
                await self._flush()

    async def _flush(self) -> None:
        held, self._held = self._held, []
        view, self.view = self.view, None
        if view is not None and view.latest_only:
            held = self._latest(held)
        for line in held:
            await self.interceptor.tell(self, line, self.send)

    def _latest(self, held: list[bytes]) -> list[bytes]:
        """Of several changes of an object the last one, as a list anew would have it."""
        last: dict[str, bytes] = {}
        first: dict[str, str] = {}
        others = []
        for line in held:
            found = self.parsed(line)
            if found is None or found.what == "BOOKMARK":
                others.append(line)
                continue
            first.setdefault(found.key, found.what)
            last.pop(found.key, None)
            last[found.key] = line
        kept = []
        for key, line in last.items():
            found = self.parsed(line)
            assert found is not None
            if found.what == "DELETED" and first[key] == "ADDED":
                continue  # it came and went unseen
            if found.what == "MODIFIED" and first[key] == "ADDED":
                line = line.replace(b'"MODIFIED"', b'"ADDED"', 1)
            elif found.what == "ADDED" and first[key] != "ADDED":
                line = line.replace(b'"ADDED"', b'"MODIFIED"', 1)
            kept.append(line)
        return [*kept, *others[-1:]]

    def parsed(self, line: bytes) -> _Event | None:
        """None: it is no event of an object."""
        try:
            event = json.loads(line)
            metadata = event["object"]["metadata"]
            key = key_of(self.resource, metadata.get("namespace", ""), metadata.get("name", ""))
            return _Event(event["type"], key, int(metadata["resourceVersion"]))
        except (ValueError, KeyError, TypeError):
            return None


_NO_INITIAL_EVENTS = {
    "kind": "Status",
    "apiVersion": "v1",
    "metadata": {},
    "status": "Failure",
    "message": (
        'ListOptions.meta.k8s.io "" is invalid: sendInitialEvents: Forbidden: sendInitialEvents is forbidden for watch'
        " unless the WatchList feature gate is enabled"
    ),
    "reason": "Invalid",
    "details": {"group": "meta.k8s.io", "kind": "ListOptions"},
    "code": 422,
}


def _may_be_old(scope: Scope, revision: int) -> bool:
    """Whether a read is answered from the cache of an API server, and may be as old as that: one that names no version
    goes to the store, and is always fresh."""
    query = request_infos.of(scope).query
    stated = query.text("resourceVersion")
    return stated.isdecimal() and int(stated) <= revision and query.text("resourceVersionMatch") != "Exact"


def _resource(asked: Asked) -> str:
    """As the store names it, without the subresource."""
    plain = asked.resource.partition("/")[0]
    row = resources.BY_PLURAL.get(plain)
    is_own = row is not None and asked.group in (row.api_version.rpartition("/")[0], *_SECOND_GROUPS.get(plain, ()))
    return plain if is_own else asked.qualified


_SECOND_GROUPS = {"events": ("events.k8s.io",)}


def _in_json(scope: Scope) -> Scope:
    """Answers come as JSON: clients that would rather have protobuf take it."""
    headers = [
        (key, value.replace(_PROTOBUF, b"application/json") if key.lower() == b"accept" else value)
        for key, value in scope["headers"]
    ]
    return request_infos.changed(scope, headers=headers)


async def _expired(asked: Asked, send: Send) -> None:
    """As a watch from a revision that was compacted."""
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"application/json")]})
    line = json.dumps({"type": "ERROR", "object": refusals.status(410, asked)}).encode() + b"\n"
    await send({"type": "http.response.body", "body": line, "more_body": False})
