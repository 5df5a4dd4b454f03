"""Plays records against one gateway, and compares."""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kemu.emulated.gateway.authentication import service_accounts
from kemu.emulated.gateway.settings import Settings
from kemu.emulated.objects import identities
from kemu.emulated.objects.identities import User
from tests.gateway import gateway_cluster
from tests.gateway.replays import applications, shapes, wires
from tests.gateway.replays.identities import Identities
from tests.gateway.replays.recordings import Record
from tests.gateway.replays.states import States

SYNTHETIC = "answered by a proxy that injected faults"
REDACTED = "the request was recorded without its body, which held a token"
CUT = "only the beginning of the request was recorded"
_CLIENT = "recorded-client"
_HEADERS = ("accept", "content-type", "user-agent", "impersonate-user", "impersonate-group")
_SETTLE_S = 0.01
_LOOKS = 30


@dataclass
class Outcome:
    """What became of one record."""

    record: Record
    differences: list[str] = field(default_factory=list)
    left_out: str = ""
    """Why it could not be compared."""
    message: tuple[str, str] | None = None
    """Of two refusals that say something else: recorded, actual."""
    troubles: list[str] = field(default_factory=list)


@dataclass
class _Watch:
    record: Record
    exchange: applications.Exchange
    outcome: Outcome
    seen: int = 0


class Replay:
    def __init__(self, application: applications.Application, is_complete: bool = False) -> None:
        """``is_complete``: every write was recorded, so that the state follows from the requests."""
        self._application = application
        self._is_complete = is_complete
        self._identities = Identities()
        self._states = States(application, self._identities)
        self._open: list[_Watch] = []

    async def play(self, records: Sequence[Record]) -> list[Outcome]:
        self._states.index(records)
        outcomes = []
        before = 0.0
        for record in records:
            await self._go_on(record.time_s, record.time_s < before - 1.0)
            before = record.time_s
            outcomes.append(await self._one(record))
        await self._go_on(0.0, True)
        return outcomes

    async def _one(self, record: Record) -> Outcome:
        outcome = Outcome(record)
        if record.is_synthetic:
            outcome.left_out = SYNTHETIC
            return outcome
        try:
            body = wires.recorded_request(record.data.get("req_body"))
        except ValueError:
            outcome.left_out = CUT
            self._states.observe(record)
            return outcome
        if record.path.endswith("/token") and not (body or b"").startswith(wires.MAGIC):
            outcome.left_out = REDACTED
            return outcome
        if not self._is_complete:
            await self._states.prepare(record)
        outcome.troubles = self._states.troubles
        exchange = applications.Exchange(
            self._application,
            record.method,
            self._identities.in_path(record.path),
            await self._query(record),
            await self._headers(record),
            self._translated(body),
        )
        if record.is_watch:
            await exchange.begun()
            self._open.append(_Watch(record, exchange, outcome))
            return outcome
        if record.data.get("end") or (record.status == 200 and "watch=" in record.query and exchange.status == 200):
            await exchange.begun()
            await exchange.leave()
        await exchange.whole()
        self._compare(outcome, exchange)
        self._states.observe(record)
        return outcome

    async def _query(self, record: Record) -> str:
        if record.path.startswith("/openapi/v3/") and "hash=" in record.query:
            root = await applications.ask(self._application, "GET", "/openapi/v3")
            now = re.search(rb'\?hash=([^"]+)', root.body)
            assert now is not None
            return re.sub(r"hash=[^&]+", f"hash={now[1].decode()}", record.query)
        return self._identities.in_query(record.query)

    async def _headers(self, record: Record) -> dict[str, str]:
        headers = {key.lower(): value for key, value in (record.data.get("req_headers") or {}).items()}
        kept = {key: value for key, value in headers.items() if key in _HEADERS}
        kept[_CLIENT] = record.client
        if "rewrite_accept" in record.data:
            kept["accept"] = record.data["rewrite_accept"] or "application/json"
        if record.status == 304:
            # Whoever asks again has had an answer before.
            before = await applications.ask(self._application, "GET", record.path, await self._query(record), kept)
            kept["if-none-match"] = before.header("etag")
        return kept

    def _compare(self, outcome: Outcome, exchange: applications.Exchange) -> None:
        record = outcome.record
        expected = wires.recorded_answer(record.data.get("resp_body"))
        found = wires.actual(exchange.body, exchange.header("content-type"))
        if isinstance(expected.value, dict) and expected.value.get("details", {}).get("name"):
            expected.value["details"]["name"] = self._identities.in_path(expected.value["details"]["name"])
        if exchange.status != record.status:
            said = shapes.message(found)
            outcome.differences.append(
                f"status {record.status}, here {exchange.status}{': ' if said else ''}{said[:300]}"
            )
        if shapes.media(exchange.header("content-type")) != shapes.media(record.content_type):
            outcome.differences.append(
                f"Content-Type {record.content_type!r}, here {exchange.header('content-type')!r}"
            )
        if exchange.status == record.status:
            if record.path.startswith("/openapi"):
                # Their content has tests of its own; the recorded beginnings are of kinds that are not served here.
                expected, found = shapes.outline(expected), shapes.outline(found)
            outcome.differences += shapes.of_documents(expected, found)
        wanted, have = shapes.message(expected), self._identities.in_text(shapes.message(found))
        if (wanted or shapes.message(found)) and self._identities.in_text(wanted) != have:
            outcome.message = (wanted, have)
        wanted_warnings = record.data.get("warnings") or []
        if len(wanted_warnings) != len(exchange.headers.get("warning", [])):
            outcome.differences.append(f"warnings {wanted_warnings}, here {exchange.headers.get('warning', [])}")
        self._identities.learn(expected.value, found.value)
        for one, other in _pairs(expected.value, found.value):
            self._identities.learn(one, other)

    def _translated(self, body: bytes | None) -> bytes | None:
        if body is None:
            return None
        if body.startswith(wires.MAGIC):
            return wires.with_metadata(body, self._identities.in_metadata)
        try:
            return self._identities.in_text(body.decode()).encode()
        except UnicodeDecodeError:
            return body

    async def _go_on(self, time_s: float, is_over: bool) -> None:
        """Tell the states what open watches showed until now; end those that ended."""
        rest = []
        for watch in self._open:
            frames = watch.record.data["watch"]["frames"]
            while watch.seen < len(frames) and (is_over or frames[watch.seen]["t"] <= time_s):
                if not self._is_complete:
                    await self._states.follow(watch.record, frames[watch.seen]["f"])
                watch.seen += 1
            if is_over or watch.record.end_s <= time_s:
                await self._settled(watch)
                await watch.exchange.leave()
                self._compare_watch(watch)
            else:
                rest.append(watch)
        self._open = rest

    async def _settled(self, watch: _Watch) -> None:
        """Until it has had events of all types that were recorded, or long enough."""
        wanted = set(_types([wires.recorded_frame(frame["f"]) for frame in watch.record.data["watch"]["frames"]]))
        for _ in range(_LOOKS):
            await asyncio.sleep(_SETTLE_S)
            found, _ = wires.frames(watch.exchange.body, watch.exchange.header("content-type"))
            if watch.exchange.over.is_set() or wanted <= set(_types(found)):
                break

    def _compare_watch(self, watch: _Watch) -> None:
        outcome, exchange, record = watch.outcome, watch.exchange, watch.record
        if exchange.status != record.status:
            outcome.differences.append(f"status {record.status}, here {exchange.status}")
            return
        kind = exchange.header("content-type")
        if shapes.media(kind) != shapes.media(record.content_type):
            outcome.differences.append(f"Content-Type {record.content_type!r}, here {kind!r}")
            return
        found, rest = wires.frames(exchange.body, kind)
        if rest:
            outcome.differences.append(f"ends within an event: {rest[:60]!r}")
        expected = [wires.recorded_frame(frame["f"]) for frame in record.data["watch"]["frames"]]
        wanted = _types(expected)
        lacking = [one for one in wanted if one not in _types(found)]
        if lacking:
            outcome.differences.append(f"events: -{' -'.join(lacking)} (here {dict(Counter(_types(found, True)))})")
        for one in dict.fromkeys(wanted):
            theirs = next(
                document
                for name, document in zip(_types(expected, True), _objects(expected), strict=True)
                if name == one
            )
            ours = [
                document for name, document in zip(_types(found, True), _objects(found), strict=True) if name == one
            ]
            same = [document for document in ours if _name(document) == _name(theirs)]
            if same and (isinstance(theirs.value, dict) or theirs.prefix):
                differences = min((shapes.of_documents(theirs, other) for other in same), key=len)
                outcome.differences += [f"{one} {difference}" for difference in differences]


def _types(frames: Sequence[tuple[str, wires.Document]], whole: bool = False) -> list[str]:
    """Of events; the bookmark that ends the initial ones is told from the others, which come with time."""
    names = []
    for kind, document in frames:
        if kind == "BOOKMARK":
            value = document.value if isinstance(document.value, dict) else {}
            if "k8s.io/initial-events-end" in ((value.get("metadata") or {}).get("annotations") or {}):
                names.append("INITIAL-EVENTS-END")
            elif whole:
                names.append(kind)
        else:
            names.append(kind)
    return names if whole else list(dict.fromkeys(names))


def _objects(frames: Sequence[tuple[str, wires.Document]]) -> list[wires.Document]:
    return [document for _, document in frames]


def _name(document: wires.Document) -> str:
    value = document.value
    if isinstance(value, dict) and value.get("kind") == "Table":
        rows = value.get("rows") or [{}]
        return str(rows[0].get("cells", [""])[0])
    return str((value.get("metadata") or {}).get("name")) if isinstance(value, dict) else ""


def _pairs(expected: Any, found: Any) -> Iterable[tuple[Any, Any]]:
    """Elements of two lists (or rows of Tables) that have one name."""
    if not isinstance(expected, dict) or not isinstance(found, dict):
        return
    for one, other in (
        (expected.get("items"), found.get("items")),
        (
            [row.get("object") for row in expected.get("rows") or []],
            [row.get("object") for row in found.get("rows") or []],
        ),
    ):
        named = {_place(item): item for item in other or []}
        for item in one or []:
            if _place(item) in named:
                yield item, named[_place(item)]


def _place(item: Any) -> tuple[str, str]:
    metadata = (item or {}).get("metadata") or {}
    return metadata.get("namespace", ""), metadata.get("name", "")


class _Authenticator:
    """Credentials were not recorded. One client had no rights."""

    async def authenticate(self, headers: Mapping[str, str], certificate: Mapping[str, Any] | None = None) -> User:
        if headers.get(_CLIENT) == "misc":
            return User("viewer", (identities.AUTHENTICATED,))
        return identities.ADMINISTRATOR


def run(records: Sequence[Record], is_complete: bool = False) -> list[Outcome]:
    """Against a gateway with one API server and a store, and nobody else. ``is_complete``: see :class:`Replay`."""

    async def play() -> list[Outcome]:
        settings = Settings(authenticator=_Authenticator(), accounts=service_accounts.Tokens())
        async with gateway_cluster.cluster(settings) as cluster:
            return await Replay(cluster.gateway, is_complete).play(records)

    return asyncio.run(play())
