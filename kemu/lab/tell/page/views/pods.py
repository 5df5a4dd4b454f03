"""The pods: what each wanted, when it was created, bound and gone, where it ran, and what became of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kemu.emulated.objects.amounts import quantities
from kemu.lab.checks.history.facts import PodHistory
from kemu.lab.checks.scheduling import waiting
from kemu.lab.telemetry import runs
from kemu.lab.tell import happenings, people
from kemu.lab.tell.page.tables import NEVER, Column, Tables, deltas, micros
from kemu.lab.tell.page.views.view import Handler, Told
from kemu.runtime.words import short


class Pods:
    name = "pods"

    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    @property
    def handlers(self) -> Mapping[str, Handler]:
        return {}

    def data(self, told: Told) -> dict[str, Any]:
        tables, history = self._tables, told.history
        for pod in history.pods.values():
            tables.pod(pod.uid, pod.key)
        waits = {wait.pod.uid: wait for wait in waiting.waits(history)}
        run = runs.of_header(told.header)
        columns: dict[str, Column] = {name: [] for name in _COLUMNS}
        for uid, key in tables.pods().items():
            pod = history.pods.get(uid) or PodHistory(uid, key, 0, 0, "", {}, {}, preset_node=False)
            wait = waits.get(uid)
            row = {
                "name": tables.text(short(key)),
                "family": tables.text(happenings.family(pod)),
                "priority": pod.priority,
                "scheduler": tables.text(pod.scheduler_name),
                "wants": tables.text(wants(pod.requests)),
                "cpu": pod.requests.get("cpu", 0),
                "memory": pod.requests.get("memory", 0),
                "node": tables.node(pod.node),
                "created": micros(pod.created_ns),
                "bound": micros(pod.bound_ns),
                "gone": micros(pod.gone_ns),
                "waited": NEVER if wait is None else round(wait.seconds * 1e6),
                "overtaken": 0 if wait is None else wait.overtaken,
                "attempts": pod.attempts,
                "fate": tables.text(fate(pod)),
            }
            for name, value in row.items():
                columns[name].append(value)
        packed = {name: deltas(columns[name]) for name in ("created", "name", "fate")}
        # A run that was made in memory has no traces elsewhere.
        has_traces = "document" in told.header
        traces = ["".join(f"{run.trace_id(uid):032x}" for uid in tables.pods()) if has_traces else ""]
        return {**columns, **packed, "trace": traces}


_COLUMNS = (
    "name", "family", "priority", "scheduler", "wants", "cpu", "memory", "node", "created", "bound", "gone", "waited",
    "overtaken", "attempts", "fate",
)  # fmt: skip

_FATES = {
    "rejected": "rejected by the kubelet",
    "preempted": "preempted",
    "evicted": "evicted",
    "oomKilled": "killed: out of memory",
    "finished": "finished",
}


def fate(pod: PodHistory) -> str:
    """What became of it, in a few words: the worst thing that happened to it, or how it ended."""
    for what, words in _FATES.items():
        fact = pod.first(what)
        if fact is not None:
            if what == "preempted" and fact.by:
                return f"preempted by {fact.by.removeprefix('default/')}"
            return words if what != "finished" else fact.reason or words
    if pod.bound_ns is None and not pod.node:
        return "never bound" if pod.gone_ns is None else "deleted before it was bound"
    return "deleted" if pod.gone_ns is not None else "running" if pod.first("running") else "bound"


def wants(requests: Mapping[str, int]) -> str:
    """``10 cpu, 2Gi memory``; empty: it requests nothing."""
    wanted = {resource: requests[resource] for resource in sorted(requests) if requests[resource]}
    return ", ".join(f"{amount(resource, value)} {resource}" for resource, value in wanted.items())


def amount(resource: str, value: int) -> str:
    if resource == "cpu":
        return quantities.format_milli(value)
    return people.quantity(value) if resource in ("memory", "ephemeral-storage") else str(value)
