"""Calls of the API as OpenTelemetry has them: a span of the client, and within it one of the server.

Asked for by an option, as they double the spans of a run. What a client was told comes from its own events
(``client.acked``, ``client.got``); the server's side of creations, bindings, deletions and evictions from
``api.request``. Both tell the revision, by which they belong together.
"""

from __future__ import annotations

from dataclasses import dataclass

from kemu.lab.telemetry import drafts, spans
from kemu.lab.telemetry.spans import AttributeValue
from kemu.runtime.runlog.events import GetAnswered, WritesAcknowledged, handlers

MOST_WAITING = 1 << 16
"""Requests whose answers are awaited; the oldest are sent without the client's side first."""

_POD_PREFIX = "/registry/pods/"
_SERVICE = "kemu.v1.Api"


@dataclass(slots=True)
class Served:
    """A request that a server has carried out."""

    verb: str
    kind: str
    key: str
    uid: str
    actor: str
    start_ns: int
    end_ns: int
    attributes: dict[str, AttributeValue]
    parent: int | None = None

    def emit(self, written: drafts.Drafts, client: int | None = None) -> None:
        """The server's span; ``client``: the one that it stands under."""
        written.emit(
            self.kind, self.key, self.uid, self.actor, self.start_ns, self.end_ns, self.attributes,
            sequence="" if self.kind == spans.ADMISSION else None, side="server", parent=client or self.parent,
        )  # fmt: skip


class ApiCalls:
    """Handlers of these events, by kind; ``api_events`` tells of the server's side."""

    def __init__(self, written: drafts.Drafts) -> None:
        self._drafts = written
        self._waiting: dict[tuple[str, int, str], Served] = {}
        """Those whose clients have not told of the answer yet, by client, revision and UID."""
        self.handlers: dict[str, drafts.Handler] = handlers.of(self)

    def served(self, one: Served) -> None:
        """The server's span waits for that of the client."""
        by, revision = str(one.attributes["kemu.by"]), one.attributes["kemu.revision"]
        assert isinstance(revision, int)
        self._drafts.describe(one.attributes, one.key, one.uid)  # it may be gone when the answer arrives
        one.parent = self._drafts.attempt_of(one.uid, by)
        self._waiting[by, revision, one.uid] = one
        if len(self._waiting) > MOST_WAITING:
            self._waiting.pop(next(iter(self._waiting))).emit(self._drafts)

    def end_all(self) -> None:
        for one in self._waiting.values():
            one.emit(self._drafts)
        self._waiting.clear()

    def _on_acked(self, time_ns: int, actor: str, event: WritesAcknowledged) -> None:
        for took_ns, revision, key, uid, _ in event.acks:
            if key.startswith(_POD_PREFIX):
                one = self._waiting.pop((actor, revision, uid), None)
                name, verb = key[len(_POD_PREFIX) :], "update" if one is None else one.verb
                attributes: dict[str, AttributeValue] = {} if one is None else dict(one.attributes)
                attributes["kemu.revision"] = revision
                parent = self._drafts.attempt_of(uid, actor) if one is None else one.parent
                made = self._call(verb, name, uid, actor, time_ns, took_ns, event.server, attributes, parent)
                if one is not None:
                    one.emit(self._drafts, made)
                    if verb == "create" and (pod := self._drafts.pods.get(uid)) is not None:
                        pod.asked_for_ns = time_ns - took_ns

    def _on_got(self, time_ns: int, actor: str, event: GetAnswered) -> None:
        if event.resource == "pods":
            key = f"{event.namespace}/{event.name}"
            uid = self._drafts.uids.get(key)
            if uid is not None:
                parent = self._drafts.attempt_of(uid, actor)
                self._call("get", key, uid, actor, time_ns, event.took, event.server, {}, parent)

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
        attributes |= {
            "rpc.system.name": "grpc",
            "rpc.method": f"{_SERVICE}/{verb.capitalize()}",
            "server.address": server,
            "service.peer.name": "apiserver",
        }
        return self._drafts.emit(
            f"api {verb}", key, uid, actor, time_ns - took_ns, time_ns, attributes, side="client", parent=parent
        )  # fmt: skip
