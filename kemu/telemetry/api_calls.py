"""Calls of the API as OpenTelemetry has them: a span of the client, and within it one of the server.

Asked for by an option, as they double the spans of a run. What a client was told comes from its own events
(``client.acked``, ``client.got``); the server's side of creations, bindings, deletions and evictions from
``api.request``. Both tell the revision, by which they belong together.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kemu.telemetry import drafts, spans
from kemu.telemetry.spans import AttributeValue

MOST_WAITING = 1 << 16
"""Requests whose answers are awaited; the oldest are sent without the client's side first."""

_POD_PREFIX = "/registry/pods/"
_RPC = {"rpc.system": "grpc", "rpc.service": "kemu.v1.Api"}


@dataclass(slots=True)
class _Served:
    """A request that a server has carried out, and whose client has not told of the answer yet."""

    verb: str
    kind: str
    key: str
    uid: str
    actor: str
    start_ns: int
    end_ns: int
    attributes: dict[str, AttributeValue]
    parent: int | None


class ApiCalls:
    """Handlers of these events, by kind; ``api_events`` tells of the server's side."""

    def __init__(self, written: drafts.Drafts) -> None:
        self._drafts = written
        self._waiting: dict[tuple[str, int, str], _Served] = {}
        """By client, revision and UID."""
        self.handlers: dict[str, drafts.Handler] = {"client.acked": self._on_acked, "client.got": self._on_got}

    def served(
        self,
        verb: str,
        kind: str,
        key: str,
        uid: str,
        actor: str,
        start_ns: int,
        end_ns: int,
        attributes: dict[str, AttributeValue],
    ) -> None:
        """The server's span waits for that of the client."""
        by, revision = str(attributes["kemu.by"]), attributes["kemu.revision"]
        assert isinstance(revision, int)
        self._drafts.describe(attributes, key, uid)  # it may be gone when the answer arrives
        parent = self._drafts.attempt_of(uid, by)
        self._waiting[by, revision, uid] = _Served(verb, kind, key, uid, actor, start_ns, end_ns, attributes, parent)
        if len(self._waiting) > MOST_WAITING:
            self._end(self._waiting.pop(next(iter(self._waiting))))

    def end_all(self) -> None:
        for one in self._waiting.values():
            self._end(one)
        self._waiting.clear()

    def _end(self, one: _Served, client: int | None = None) -> None:
        self._drafts.emit(
            one.kind, one.key, one.uid, one.actor, one.start_ns, one.end_ns, one.attributes,
            sequence="" if one.kind == spans.ADMISSION else None, side="server", parent=client or one.parent,
        )  # fmt: skip

    def _on_acked(self, time_ns: int, actor: str, data: Mapping[str, Any]) -> None:
        for took_ns, revision, key, uid, _ in data["acks"]:
            if key.startswith(_POD_PREFIX):
                one = self._waiting.pop((actor, revision, uid), None)
                name, verb = key[len(_POD_PREFIX) :], "update" if one is None else one.verb
                attributes: dict[str, AttributeValue] = {} if one is None else dict(one.attributes)
                attributes["kemu.revision"] = revision
                parent = self._drafts.attempt_of(uid, actor) if one is None else one.parent
                made = self._call(verb, name, uid, actor, time_ns, took_ns, data["server"], attributes, parent)
                if one is not None:
                    self._end(one, made)
                    if verb == "create" and (pod := self._drafts.pods.get(uid)) is not None:
                        pod.asked_for_ns = time_ns - took_ns

    def _on_got(self, time_ns: int, actor: str, data: Mapping[str, Any]) -> None:
        if data["resource"] == "pods":
            key = f"{data['namespace']}/{data['name']}"
            uid = self._drafts.uids.get(key)
            if uid is not None:
                parent = self._drafts.attempt_of(uid, actor)
                self._call("get", key, uid, actor, time_ns, data["took"], data["server"], {}, parent)

    def _call(
        self,
        verb: str,
        key: str,
        uid: str,
        actor: str,
        time_ns: int,
        took_ns: int,
        server: str,
        attributes: dict[str, AttributeValue],
        parent: int | None,
    ) -> int:
        attributes |= {**_RPC, "rpc.method": verb.capitalize(), "server.address": server, "peer.service": "apiserver"}
        return self._drafts.emit(
            f"api {verb}", key, uid, actor, time_ns - took_ns, time_ns, attributes, side="client", parent=parent
        )  # fmt: skip
