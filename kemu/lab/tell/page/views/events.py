"""The events of the run log to which sentences link: what actors did, without what only checks need."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from kemu.emulated.objects.plain import Json
from kemu.lab.checks.history.histories import NODE_PREFIX, POD_PREFIX
from kemu.lab.tell.page.tables import FAULTS, NEVER, Tables, deltas, micros
from kemu.lab.tell.page.views.view import Handler, Told

MOST_DETAILS = 20_000
"""Above this many events, those whose details another view has go without."""
MOST = 120_000
_ELSEWHERE = ("pod", "uid", "node", "start", "by_uid", "replaces_uid")
_IN_VIEWS = ("sched.attempt", "sched.queued", "kubelet.admit", "kubelet.running", "sched.bind")
_PLAIN = (
    "sched.queued", "sched.attempt", "sched.extender", "sched.preemption", "sched.victim", "rescheduler.victim",
    "sched.nominated", "sched.bind", "kubelet.admit", "kubelet.pull_failed", "kubelet.running", "kubelet.started",
    "kubelet.exited", "kubelet.finished", "kubelet.probed", "kubelet.killing", "kubelet.hook_failed",
    "kubelet.resize",
    "kubelet.restarting", "kubelet.terminating", "kubelet.terminated", "kubelet.preempting",
    "kubelet.found_ended", "kubelet.shutdown", "kubelet.shutdown_over", "kubelet.shutting_down",
    "kubelet.pressure", "kubelet.oom_killed", "kubelet.evicting", "kubelet.collected", "node.unknown", "node.tainted",
    "taint.eviction", "affinity.eviction", "podgc.deleted", "controller.pod", "controller.job", "controller.cronjob",
    "gc.deleted", "gc.orphaned",
    "controller.adopted", "controller.released",
    "election.acquired", "election.observed", "election.lost", "election.released", "election.release_failed",
    "user.event", "user.pod", "user.refused", "user.drain",
    "chaos.begin", "chaos.end", "chaos.hit", "hold.kept", "hold.released", "machine.off",
    "autoscaler.scale_up", "autoscaler.no_scale_up", "autoscaler.scale_down", "autoscaler.scaled_down",
    "machine.on", "run.ended", "run.lost", "process.died", "process.started", "process.stopped", "actor.crashed",
    "actor.exited", "actor.failed", "api.refused", "api.watch_cut", "store.recovered", "store.corrupt",
)  # fmt: skip


class Events:
    name = "events"

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self._rows: list[tuple[int, int, int, str, int, int, Mapping[str, Any] | None]] = []

    @property
    def handlers(self) -> Mapping[str, Handler]:
        kinds: dict[str, Handler] = {kind: self._of(kind) for kind in _PLAIN}
        return {**kinds, "store.txn": self._on_txn, "api.request": self._on_request}

    def _of(self, kind: str) -> Handler:
        def take(place: int, time_ns: int, actor: str, data: Mapping[str, Any]) -> None:
            uid, node = data.get("uid", ""), data.get("node") or ""
            pod = self._tables.pod(uid, data["pod"]) if uid and "pod" in data else NEVER
            for subject in (uid, node):
                if subject:
                    self._tables.tell(place, time_ns, subject)
            if kind.startswith("chaos."):
                self._tables.tell(place, time_ns, FAULTS)
            self._add(place, time_ns, actor, kind, pod, node, data)

        return take

    def _add(
        self, place: int, time_ns: int, actor: str, kind: str, pod: int, node: str, data: Mapping[str, Any] | None
    ) -> None:
        row = (place, micros(time_ns), self._tables.actor(actor), kind, pod, self._tables.node(node), data)
        self._rows.append(row)

    def _on_request(self, place: int, time_ns: int, actor: str, data: Mapping[str, Any]) -> None:
        if data["resource"] == "pods" and data["uid"]:
            self._tables.tell(place, time_ns, data["uid"])
            pod = self._tables.pod(data["uid"], f"{data['namespace']}/{data['name']}")
            self._add(place, time_ns, actor, "api.request", pod, "", {"verb": data["verb"], "by": data["by"]})

    def _on_txn(self, place: int, time_ns: int, actor: str, data: Mapping[str, Any]) -> None:
        keys = []
        for op, key, *_ in data["changes"]:
            if key.startswith((POD_PREFIX, NODE_PREFIX)):
                keys.append(f"{'delete' if op else 'put'} {key.removeprefix('/registry/')}")
                self._tables.tell(place, time_ns, key.removeprefix(POD_PREFIX).removeprefix(NODE_PREFIX))
        if keys:
            self._add(place, time_ns, actor, "store.txn", NEVER, "", {"rev": data["rev"], "changes": keys})

    def data(self, told: Told) -> dict[str, Any]:
        is_large = len(self._rows) > MOST_DETAILS
        rows = self._rows
        if is_large:
            rows = [row for row in rows if row[3] not in ("store.txn", "api.request") or row[0] in told.wanted]
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
