"""The events of the run log to which sentences link: what actors did, without what only checks need."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from kemu.emulated.objects.plain import Json
from kemu.lab.checks.history import NODE_PREFIX, POD_PREFIX
from kemu.lab.tell.page.tables import FAULTS, NEVER, Tables, deltas, micros
from kemu.lab.tell.page.views.view import Handler, Told
from kemu.runtime.runlog.events import (
    BY_KIND,
    AdmissionDecided,
    ApiRequest,
    Event,
    FaultBegun,
    FaultEnded,
    FaultHit,
    PodAttempted,
    PodBound,
    PodQueued,
    PodRunning,
    Transaction,
    handlers,
)

MOST_DETAILS = 20_000
"""Above this many events, those whose details another view has go without."""
MOST = 120_000
_ELSEWHERE = ("pod", "uid", "node", "start", "by_uid", "replaces_uid")
_IN_VIEWS = (PodAttempted.KIND, PodQueued.KIND, AdmissionDecided.KIND, PodRunning.KIND, PodBound.KIND)


class Events:
    name = "events"

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self._rows: list[tuple[int, int, int, str, int, int, Mapping[str, Any] | None]] = []

    @property
    def handlers(self) -> Mapping[str, Handler]:
        plain: dict[str, Handler] = {kind: self._take for kind, event in BY_KIND.items() if event.ON_PAGE}
        return {**plain, **handlers.of(self)}

    def _take(self, place: int, time_ns: int, actor: str, event: Event) -> None:
        uid, node = event.get("uid", ""), event.get("node") or ""
        pod = self._tables.pod(uid, event["pod"]) if uid and "pod" in event else NEVER
        for subject in (uid, node):
            if subject:
                self._tables.tell(place, time_ns, subject)
        if isinstance(event, (FaultBegun, FaultHit, FaultEnded)):
            self._tables.tell(place, time_ns, FAULTS)
        self._add(place, time_ns, actor, event.KIND, pod, node, event)

    def _add(
        self, place: int, time_ns: int, actor: str, kind: str, pod: int, node: str, data: Mapping[str, Any] | None
    ) -> None:
        row = (place, micros(time_ns), self._tables.actor(actor), kind, pod, self._tables.node(node), data)
        self._rows.append(row)

    def _on_request(self, place: int, time_ns: int, actor: str, event: ApiRequest) -> None:
        if event.resource == "pods" and event.uid:
            self._tables.tell(place, time_ns, event.uid)
            pod = self._tables.pod(event.uid, f"{event.namespace}/{event.name}")
            self._add(place, time_ns, actor, ApiRequest.KIND, pod, "", {"verb": event.verb, "by": event.by})

    def _on_txn(self, place: int, time_ns: int, actor: str, event: Transaction) -> None:
        keys = []
        for op, key, *_ in event.changes:
            if key.startswith((POD_PREFIX, NODE_PREFIX)):
                keys.append(f"{'delete' if op else 'put'} {key.removeprefix('/registry/')}")
                self._tables.tell(place, time_ns, key.removeprefix(POD_PREFIX).removeprefix(NODE_PREFIX))
        if keys:
            self._add(place, time_ns, actor, Transaction.KIND, NEVER, "", {"rev": event.rev, "changes": keys})

    def data(self, told: Told) -> dict[str, Any]:
        is_large = len(self._rows) > MOST_DETAILS
        rows = self._rows
        if is_large:
            rows = [row for row in rows if row[3] not in (Transaction.KIND, ApiRequest.KIND) or row[0] in told.wanted]
        rows = rows[:MOST]
        text = self._tables.text
        return {
            "place": deltas([row[0] for row in rows]),
            "time": deltas([row[1] for row in rows]),
            "actor": [row[2] for row in rows],
            "kind": [text(row[3]) for row in rows],
            "pod": [row[4] for row in rows],
            "node": [row[5] for row in rows],
            "detail": [text(_detail(row[6] or {}, is_large and row[3] in _IN_VIEWS)) for row in rows],
            "of": max((row[0] for row in self._rows), default=-1) + 1,
        }


def _detail(data: Mapping[str, Any], is_elsewhere: bool) -> str:
    if is_elsewhere:
        return ""
    kept = {name: value for name, value in data.items() if name not in _ELSEWHERE and value not in ("", None)}
    return json.dumps(kept, ensure_ascii=False, default=_plain, separators=(", ", ": "))[1:-1]


def _plain(value: Json) -> str:
    return value.hex() if isinstance(value, bytes) else str(value)
