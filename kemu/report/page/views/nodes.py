"""The nodes: what each has to give, which pods were on it from when to when, and what happened to it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from kemu.checks.history import History
from kemu.checks.history.facts import NodeHistory, PodHistory
from kemu.report import happenings
from kemu.report.page.tables import Tables, micros
from kemu.report.page.views.view import Handler, Told

_ENDS = ("ended", "finished", "deleted", "rejected", "unbound")
_SHOWN = ("cpu", "memory")
_MARKED = ("preempted", "evicted", "oomKilled", "rejected")


class Nodes:
    name = "nodes"

    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    @property
    def handlers(self) -> Mapping[str, Handler]:
        return {}

    def data(self, told: Told) -> dict[str, Any]:
        tables, history = self._tables, told.history
        for name in history.nodes:
            tables.node(name)
        stays: dict[str, list[int]] = {name: [] for name in ("pod", "node", "from", "to")}
        marks: dict[str, list[int]] = {name: [] for name in ("time", "node", "pod", "what", "event")}
        for pod in history.pods.values():
            index = tables.pod(pod.uid, pod.key)
            for node, begin_ns, end_ns in of_pod(pod):
                for column, value in zip(
                    stays.values(), (index, tables.node(node), micros(begin_ns), micros(end_ns)), strict=True
                ):
                    column.append(value)
            for fact in pod.facts:
                if fact.what in _MARKED:
                    place = tables.place(fact.time_ns, pod.uid, pod.key)
                    values = (micros(fact.time_ns), tables.node(fact.node), index, tables.text(fact.what), place)
                    for column, value in zip(marks.values(), values, strict=True):
                        column.append(value)
        return {
            "names": tables.nodes(),
            "allocatable": [_allocatable(history, name) for name in tables.nodes()],
            "stays": stays,
            "marks": marks,
            "conditions": self._conditions(history),
        }

    def _conditions(self, history: History) -> dict[str, list[int]]:
        """What happened to nodes, as the story tells it."""
        found: dict[str, list[int]] = {name: [] for name in ("time", "node", "text", "bad", "event")}
        for one in happenings.of_nodes(history):
            place = self._tables.place(one.time_ns, one.node)
            text, is_bad = self._tables.text(one.phrase()), int(one.tone == "bad")
            values = (micros(one.time_ns), self._tables.node(one.node), text, is_bad, place)
            for column, value in zip(found.values(), values, strict=True):
                column.append(value)
        return found


def _allocatable(history: History, name: str) -> list[list[int]]:
    """When it changed, and to what: time, cpu in millicores, bytes of memory."""
    node = history.nodes.get(name) or NodeHistory(name)
    return [
        [micros(time_ns), *(resources.get(resource, 0) for resource in _SHOWN)]
        for time_ns, resources in node.allocatable
    ]


def of_pod(pod: PodHistory) -> Iterator[tuple[str, int, int | None]]:
    """On which node it was, from when to when; None: to the end of the run."""
    node, begin_ns = (pod.node, pod.created_ns) if pod.preset_node else ("", 0)
    for fact in pod.facts:
        if fact.what == "bound" and fact.node:
            if node and node != fact.node:
                yield node, begin_ns, fact.time_ns
            if node != fact.node:
                node, begin_ns = fact.node, fact.time_ns
        elif fact.what in _ENDS and node:
            yield node, begin_ns, fact.time_ns
            node = ""
    if node:
        yield node, begin_ns, None
