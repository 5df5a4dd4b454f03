"""Stands between the controllers and the gateway: sees what they write and are told, and perturbs it.

All of it happens on the event loop of the gateway, in one thread with the store, so that a perturbation begins in the
very instant of the change that it waits for.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from dataclasses import dataclass
from typing import Any, Protocol
from urllib import parse

from google.protobuf.message import DecodeError

from kemu.emulated.gateway.asgi import Application
from kemu.emulated.gateway.faults import layer, past, refusals, requests
from kemu.emulated.gateway.faults.requests import Asked
from kemu.emulated.gateway.requests import envelopes, request_infos
from kemu.emulated.objects import resources
from kemu.errors import ApiError
from kemu.lab.hunt.courses import Count, Course, Notice, Read, key_of
from kemu.lab.hunt.running.watches import ALWAYS_FRESH, LEASES, Event, Hiding, Stream, View, initial_events
from kemu.lab.up.virtual import drivers

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

_WRITES = ("create", "update", "patch", "delete", "deletecollection")
_CONNECTS = ("exec", "attach", "portforward", "proxy")
"""Subresources by which nothing is written."""
_CONNECTED_S = 1.0
"""Real time for which the virtual one stands while a controller speaks with a container; longer while it is at work."""
_VERSION = re.compile(rb'"resourceVersion"\s*:\s*"\d')
_PROTOBUF = b"application/vnd.kubernetes.protobuf"


@dataclass(frozen=True, slots=True)
class Verdict:
    """What becomes of a write."""

    code: int = 0
    """It does not happen, and is answered with this one; 0: it happens."""
    is_lost: bool = False
    """It happens, and the connection ends without an answer."""
    late_s: float = 0.0
    """Virtual time before it happens."""
    answer_late_s: float = 0.0
    """Virtual time between that and the answer."""


class Judge(Protocol):
    """Says what becomes of a write of a controller, and hears of it."""

    def before(self, write: Count) -> Verdict: ...

    def after(self, write: Count) -> None:
        """It has happened, and its answer is not sent yet."""
        ...

    def late_s(self, controller: str, resource: str) -> float:
        """How late an event of a watch is to come."""
        ...

    def asks(self, controller: str, resource: str) -> None:
        """A controller begins a list, or a watch that does not expire at once."""
        ...

    def ended(self, controller: str, resources: set[str]) -> None:
        """Watches of these have ended because of a strike."""
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
        watched: Callable[[str, str], None],
    ) -> None:
        """``told``: a controller learns something now. ``watched``: a controller has begun a watch of a
        resource, or asks for a lease."""
        self._app = app
        self._course = course
        self.now_ns = now_ns
        self._sleep = sleep
        self._told = told
        self._judge = judge
        self._watched = watched
        self.tokens: Mapping[bytes, str] = {}
        """Names of controllers, by the token that they show."""
        self.deaf: set[str] = set()
        """Controllers that are dead: nothing is answered to what is still under way."""
        self._views: list[View] = []
        self._hidings: list[Hiding] = []
        self._compacted: dict[tuple[str, str], int] = {}
        """Revisions that watches cannot begin at, by controller and resource."""
        self._outages: list[tuple[str, str]] = []
        """Controllers, with the resources that are refused to them; empty: all."""
        self._paused: dict[str, asyncio.Event] = {}
        """Set when the pause is over."""
        self._deposed = set[str]()
        """Those of them for whom leases wait, too."""
        self._streams: set[Stream] = set()
        self._flushing: set[asyncio.Future[None]] = set()
        self._connections = 0
        self.hold: Callable[[str], None] = lambda what: None
        self.release: Callable[[str], None] = lambda what: None
        """Time stands for this, in words, and no longer."""
        self.is_busy: Callable[[str], bool] = lambda controller: False
        """Whether it is at work."""

    def close(self) -> None:
        self._app.close()

    # Strikes

    def cut(self, controller: str, resource: str) -> set[str]:
        """Watches end, and can begin anew. ``resource``: empty for all. Returns the resources."""
        found = {one for one in self._streams if one.controller == controller and _is_of(resource, one.resource)}
        for stream in found:
            stream.cut()
        return {stream.resource for stream in found}

    def expire(self, controller: str, resource: str, revision: int) -> set[str]:
        """Watches end, and none can begin at a revision or an earlier one."""
        self._compacted[controller, resource] = max(revision, self._compacted.get((controller, resource), 0))
        return self.cut(controller, resource)

    def relist(self, controller: str, resource: str, revision: int) -> None:
        self._judge.ended(controller, self.expire(controller, resource, revision))

    def pause(self, controller: str, *, with_leases: bool = False) -> None:
        """Nothing gets through to it or from it."""
        self._paused.setdefault(controller, asyncio.Event())
        if with_leases:
            self._deposed.add(controller)

    def resume(self, controller: str) -> None:
        """May be repeated."""
        self._deposed.discard(controller)
        over = self._paused.pop(controller, None)
        if over is not None:
            over.set()
            self._told()

    def begin_outage(self, controller: str, resource: str) -> set[str]:
        """Requests meet 503, and watches end. ``resource``: empty for all. Returns the resources whose watches end."""
        self._outages.append((controller, resource))
        return self.cut(controller, resource)

    def end_outage(self, controller: str, resource: str) -> None:
        self._outages.remove((controller, resource))

    def hide(self, hiding: Hiding) -> None:
        self._hidings.append(hiding)

    def show(self, hiding: Hiding) -> None:
        """Who lists anew, be it by a watch, sees what was hidden."""
        self._hidings.remove(hiding)

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

    # For streams

    async def sleep(self, seconds: float) -> None:
        await self._sleep(seconds)

    def view(self, controller: str, resource: str) -> View | None:
        return next((one for one in self._views if one.is_of(controller, resource)), None)

    def hiding(self, controller: str, event: Event) -> Hiding | None:
        return next((one for one in self._hidings if one.hides(controller, event)), None)

    def late_s(self, controller: str, resource: str) -> float:
        return self._judge.late_s(controller, resource)

    async def tell(self, stream: Stream, line: bytes, send: Send) -> None:
        await self._gate(stream.controller, stream.resource)
        found = stream.parsed(line)
        if found is not None and found.what != "BOOKMARK":
            self._course.notices.append(Notice(self.now_ns(), stream.controller, found.key, found.revision, found.what))
        self._told()
        await send({"type": "http.response.body", "body": line, "more_body": True})

    # Requests

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        controller = self._controller(scope) if scope["type"] == "http" else ""
        if not controller:
            await self._app(scope, receive, send)
            return
        asked = requests.of(scope)
        scope = _in_json(scope)
        resource = _resource(asked) if asked.resource else ""
        await self._gate(controller, resource)
        if resource == LEASES:
            self._watched(controller, resource)
        if resource and any(who == controller and _is_of(of, resource) for who, of in self._outages):
            await layer.drain(receive)
            await refusals.send(refusals.status(503, asked), send)
        elif asked.resource.partition("/")[2] in _CONNECTS:
            await self._connect(controller, asked, scope, receive, send)
        elif asked.verb in _WRITES and resource:
            await self._write(controller, asked, scope, receive, send)
        elif asked.is_watch and resource:
            await self._watch(controller, asked, scope, receive, send)
        else:
            if asked.verb == "list" and resource:
                self._judge.asks(controller, resource)
            view = self.view(controller, resource) if asked.is_read and resource else None
            if view is None or not _may_be_old(scope, view.revision):
                await self._app(scope, receive, send)
                self._note_read(controller, asked, self._course.revision)
                return
            self._note_read(controller, asked, view.revision)
            for message in await past.answer(self._app, scope, asked, view.revision):
                await send(message)

    def _note_read(self, controller: str, asked: Asked, revision: int) -> None:
        if asked.is_read and asked.resource:
            place = key_of(_resource(asked), asked.namespace, asked.name)
            self._course.reads.append(Read(self.now_ns(), controller, place, revision))

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
            for _ in range(drivers.BUSY_TIMES):
                await asyncio.wait((serving,), timeout=_CONNECTED_S)
                if serving.done() or not self.is_busy(controller):
                    break
            self.release(what)
            await serving
        finally:
            self.release(what)
            serving.cancel()

    async def _gate(self, controller: str, resource: str) -> None:
        """Until a pause is over."""
        while controller in self._paused and (resource not in ALWAYS_FRESH or controller in self._deposed):
            await self._paused[controller].wait()

    async def _write(self, controller: str, asked: Asked, scope: Scope, receive: Receive, send: Send) -> None:
        course, judge = self._course, self._judge
        resource, name = _resource(asked), asked.name
        body = await _body(receive)
        receive = _again(body, receive)
        if not name and asked.verb == "create":
            name = _name(body, resource)
        key = key_of(resource, asked.namespace, name) if name else ""
        count = course.count_write(controller, resource, key, asked.verb, compares=_compares(asked.verb, body))
        verdict = judge.before(count)
        if verdict.late_s:
            await self.sleep(verdict.late_s)
        if verdict.code:
            self._note(count, verdict.code)
            await layer.drain(receive)
            await refusals.send(refusals.status(verdict.code, asked), send)
            return
        answer = await past.whole(self._app, scope, receive)
        status = int(answer[0]["status"]) if answer else 0
        if not count.key and asked.verb == "create" and status < 300:  # what it is called only the store knows
            made = _name(b"".join(message.get("body", b"") for message in answer[1:]), resource)
            count = course.name_write(count, key_of(resource, asked.namespace, made) if made else "")
        if status < 300:
            judge.after(count)
        is_lost = verdict.is_lost or controller in self.deaf
        self._note(count, 0 if is_lost else status)
        if is_lost:
            await layer.end_connection(scope, receive, True)
            return
        await self._gate(controller, resource)
        if verdict.answer_late_s:
            await self.sleep(verdict.answer_late_s)
        for message in answer:
            await send(message)

    def _note(self, count: Count, status: int) -> None:
        if count.key:
            self._course.writes.append(count.answered(self.now_ns(), status, self._course.revision))

    # Watches

    async def _watch(self, controller: str, asked: Asked, scope: Scope, receive: Receive, send: Send) -> None:
        resource = _resource(asked)
        view = self.view(controller, resource)
        query = request_infos.of(scope).query
        since, initial = query.text("resourceVersion"), query.text("sendInitialEvents") == "true"
        begins: list[bytes] = []
        if view is not None and initial and (not since or (since.isdecimal() and int(since) > view.revision)):
            # It wants to be sure of more than the view has. As a server without the gate WatchList says: clients then
            # list, and watch from there.
            await refusals.send(_NO_INITIAL_EVENTS, send, 422)
            return
        if view is not None and (initial or since in ("", "0")):
            scope, begins = await self._from_the_past(scope, asked, view.revision, with_bookmark=initial)
        elif since.isdecimal() and 0 < int(since) <= self._compacted.get((controller, resource), -1):
            await _expired(asked, send)
            return
        self._judge.asks(controller, resource)  # not where it was refused: it waits, and asks once more
        stream = Stream(self, controller, resource, send, begins)
        self._streams.add(stream)
        self._watched(controller, resource)
        stream.serving = asyncio.ensure_future(self._app(scope, receive, stream.pass_on))
        try:
            await stream.serving
        except asyncio.CancelledError:
            if not stream.is_cut:
                raise
            await stream.end()
        finally:
            stream.serving.cancel()
            stream.close()
            self._streams.discard(stream)

    async def _from_the_past(
        self, scope: Scope, asked: Asked, revision: int, *, with_bookmark: bool
    ) -> tuple[Scope, list[bytes]]:
        """A watch from a revision on, and the events that tell what there was then."""
        query = request_infos.of(scope).query.first()
        kept = {key: value for key, value in query.items() if key not in _OF_WATCHES}
        headers = [
            (key, value.replace(b"as=PartialObjectMetadata;", b"as=PartialObjectMetadataList;"))
            for key, value in scope["headers"]
            if key.lower() != b"accept-encoding"
        ]
        path = scope["path"].replace("/watch/", "/", 1) if "watch" not in query else scope["path"]
        listing = request_infos.changed(
            scope, path=path, raw_path=path.encode(), query_string=parse.urlencode(kept).encode(), headers=headers
        )
        found = await past.answer(self._app, listing, asked._replace(verb="list"), revision)
        body = b"".join(message.get("body", b"") for message in found[1:])
        listed = json.loads(body) if found and found[0]["status"] == 200 else {"kind": "", "apiVersion": ""}
        query = {key: value for key, value in query.items() if key not in ("sendInitialEvents", "resourceVersionMatch")}
        query["resourceVersion"] = str(revision)
        watching = request_infos.changed(scope, query_string=parse.urlencode(query).encode())
        return watching, initial_events(listed, revision, with_bookmark=with_bookmark)


_OF_WATCHES = (
    "watch", "sendInitialEvents", "resourceVersion", "resourceVersionMatch", "allowWatchBookmarks", "timeoutSeconds",
)  # fmt: skip


def _is_of(wanted: str, resource: str) -> bool:
    """``wanted``: empty for all."""
    return resource == wanted if wanted else resource not in ALWAYS_FRESH


async def _body(receive: Receive) -> bytes:
    found = b""
    while True:
        message = await receive()
        found += bytes(message.get("body", b""))
        if message["type"] != "http.request" or not message.get("more_body"):
            return found


def _again(body: bytes, receive: Receive) -> Receive:
    """A body that was read already."""
    left = [body]

    async def give() -> Message:
        if left:
            return {"type": "http.request", "body": left.pop(), "more_body": False}
        return await receive()

    return give


def _compares(verb: str, body: bytes) -> bool:
    """Whether a write names a version. A JSON patch that tests one meets 422, and no conflict."""
    if verb == "update" and body.startswith(envelopes.MAGIC):
        return True  # as all clients do that read before they write
    return verb in ("update", "patch") and _VERSION.search(body) is not None


def _name(body: bytes, resource: str) -> str:
    """Of an object in JSON or protobuf, if it says."""
    try:
        if not body.startswith(envelopes.MAGIC):
            return str(json.loads(body)["metadata"].get("name") or "")
        return str(resources.MESSAGES[resource].FromString(envelopes.unpack(body)[2]).metadata.name)
    except (ValueError, KeyError, TypeError, AttributeError, ApiError, DecodeError):
        return ""


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
