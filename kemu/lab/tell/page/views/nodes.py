"""The nodes: what each has to give, which pods were on it from when to when, and what happened to it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from kemu.emulated.kubelet.usage import usages
from kemu.lab.checks.history import POD_PREFIX, History, parsed
from kemu.lab.checks.history.facts import NodeHistory, PodHistory
from kemu.lab.tell import happenings
from kemu.lab.tell.page.tables import Tables, deltas, micros
from kemu.lab.tell.page.views.view import Handler, Told
from kemu.runtime.runlog.events import ContainerRestarting, Transaction, handlers

SAMPLES = 40
SECOND_NS = 1_000_000_000
_USAGE = usages.USAGE.encode()
_ENDS = ("ended", "finished", "deleted", "rejected", "unbound")
_SHOWN = ("cpu", "memory")
_MARKED = ("preempted", "evicted", "oomKilled", "rejected")


class Nodes:
    name = "nodes"

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self._usages: dict[str, tuple[usages.Usage, list[str]]] = {}
        """By UID, with the names of its main containers."""
        self._restarts: dict[str, list[tuple[str, int, int]]] = {}
        """By UID: which container ended, when, and when it began anew."""

    @property
    def handlers(self) -> Mapping[str, Handler]:
        return handlers.of(self)

    def _on_txn(self, place: int, time_ns: int, actor: str, event: Transaction) -> None:
        for op, key, value, _, version in event.changes:
            if op == 0 and version == 1 and key.startswith(POD_PREFIX) and _USAGE in value:
                pod = parsed.pod(value)
                usage = usages.of(pod)
                if usage is not None:
                    self._usages[pod.metadata.uid] = usage, [one.name for one in pod.spec.containers]

    def _on_kubelet_restarting(self, place: int, time_ns: int, actor: str, event: ContainerRestarting) -> None:
        again_ns = time_ns + round(event.delay_s * SECOND_NS)
        self._restarts.setdefault(event.uid, []).append((event.container, time_ns, again_ns))

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
            "stays": {**stays, "from": deltas(stays["from"]), "to": deltas(stays["to"])},
            "marks": marks,
            "conditions": self._conditions(history),
            "usage": self._used(history),
        }

    def _used(self, history: History) -> list[dict[str, Any]]:
        """What pods use at a few times of their lives, where the scenario says so: cpu in millicores, bytes of memory.
        A container that is started again begins anew."""
        found = []
        for uid, (usage, names) in self._usages.items():
            pod = history.pods.get(uid)
            runs = pod.first("running") if pod is not None else None
            if pod is None or runs is None:
                continue
            ends = [end_ns for _, _, end_ns in of_pod(pod) if end_ns is not None]
            lasts_ns = max((ends or [history.now_ns])[-1] - runs.time_ns, 0)
            restarts = self._restarts.get(uid, [])
            samples = SAMPLES * 3 if restarts else SAMPLES
            times = [runs.time_ns + lasts_ns * number // samples for number in range(samples)]
            amounts = {
                resource: [_amount(usage, names, resource, time_ns, runs.time_ns, restarts) for time_ns in times]
                for resource in _SHOWN
            }
            found.append(
                {
                    "pod": self._tables.pod(uid, pod.key),
                    "node": self._tables.node(runs.node or pod.node),
                    "from": micros(runs.time_ns),
                    "lasts": lasts_ns // 1000,
                    **amounts,
                }
            )
        return found

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


def _amount(
    usage: usages.Usage,
    names: Sequence[str],
    resource: str,
    time_ns: int,
    begin_ns: int,
    restarts: Sequence[tuple[str, int, int]],
) -> int:
    """Of a pod at a time. What its main containers (``names``) use together they share evenly."""
    total = 0
    for name in names:
        since_ns = begin_ns
        for container, ended_ns, again_ns in restarts:
            if container == name and ended_ns <= time_ns:
                since_ns = again_ns
        if time_ns < since_ns:
            continue
        second = (time_ns - since_ns) // SECOND_NS
        if resource in usage.shared:
            total += usage.shared[resource].at(second) // len(names)
        own = usage.of_containers.get(name, {})
        if resource in own:
            total += own[resource].at(second)
    for name, own in usage.of_containers.items():
        if name not in names and resource in own and time_ns >= begin_ns:
            total += own[resource].at((time_ns - begin_ns) // SECOND_NS)
    return total


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
