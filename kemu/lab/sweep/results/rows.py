"""From one run to its rows.

    attempts = rows.Attempts()
    execution = executions.execute(scenario, watcher=attempts.take)
    kept = rows.of_run(execution.verdict, execution.history, attempts)

Neighbours: :mod:`tables` says what the columns mean; :mod:`files` writes the rows of many runs.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgpack

from kemu.lab.checks.history import History
from kemu.lab.checks.history.facts import Fault, PodHistory
from kemu.lab.checks.scheduling import waiting
from kemu.lab.scenario import evidence
from kemu.lab.sweep.cells import CellRows
from kemu.lab.sweep.results import tables
from kemu.runtime.env import SECOND_NS
from kemu.runtime.runlog.events import PodAttempted

Row = dict[str, Any]
Columns = Mapping[str, Sequence[Any]]
"""A table: the values of each column."""


class Attempts:
    """Keeps what a run log says of scheduling attempts, which a history does not keep."""

    def __init__(self) -> None:
        self._found: list[tuple[int, str, PodAttempted]] = []

    def take(self, time_ns: int, actor: str, kind: str, data: Mapping[str, Any]) -> None:
        """Has the signature of a ``LogSink``."""
        if isinstance(data, PodAttempted):
            self._found.append((time_ns, actor, data))

    def rows(self) -> Iterator[Row]:
        """In the order in which they ended."""
        for time_ns, actor, event in self._found:
            yield {
                "pod": event.pod,
                "scheduler": actor.removeprefix("scheduler/"),
                "start_s": event.start / SECOND_NS,
                "cost_s": (time_ns - event.start) / SECOND_NS,
                "outcome": event.result,
                "node": event.node,
                "evaluated_nodes": event.evaluated,
                "feasible_nodes": event.feasible,
                "refused_nodes": dict(sorted(event.plugins.items())),
                "uid": event.uid,
            }


def of_run(verdict: Mapping[str, Any], history: History, attempts: Attempts | None = None) -> CellRows:
    """``verdict``: as in verdict.json. Without ``attempts`` that table stays empty."""
    waits = history.derived(waiting.measured)
    run = {
        **{name: verdict[name] for name in ("verdict", "digest", "ended", "virtual_s")},
        **_bounds(history, waits),
        **{name: evidence.metric(history, name, None) for name in tables.names(tables.METRICS)},
        **verdict["counts"],
        **{name: value for name, value in verdict["costs"].items() if name.startswith(tables.REFUSED)},
        "priorities": list(_priorities(history, waits)),
    }
    nested = {
        "pods": pods(history, waits),
        "attempts": attempts.rows() if attempts is not None else (),
        "faults": map(_fault, history.faults),
        "nodes": _nodes(history),
    }
    columns = {table: _columns(rows, tables.names(tables.NESTED[table])) for table, rows in nested.items()}
    return CellRows(run, zlib.compress(msgpack.packb(columns, use_bin_type=True)))


def nested(kept: CellRows) -> dict[str, Columns]:
    """The tables below ``runs``, by name."""
    found: dict[str, Columns] = {
        "priorities": _columns(kept.run.get("priorities", ()), tables.names(tables.PRIORITIES))
    }
    if kept.tables:
        found |= msgpack.unpackb(zlib.decompress(kept.tables), strict_map_key=False)
    return found


def _columns(rows: Iterable[Row], names: Iterable[str]) -> dict[str, list[Any]]:
    columns: dict[str, list[Any]] = {name: [] for name in names}
    for row in rows:
        for name, values in columns.items():
            values.append(row[name])
    return columns


# Metrics ------------------------------------------------------------------------------------------------------------


def _priorities(history: History, waits: Sequence[waiting.Wait]) -> Iterator[Row]:
    """Highest first."""
    for priority in sorted({wait.pod.priority for wait in waits}, reverse=True):
        group = [wait for wait in waits if wait.pod.priority == priority]
        yield {
            "priority": priority,
            "pods": len(group),
            "unbound": sum(not wait.bound for wait in group),
            **{name: evidence.metric(history, name, priority) for name in tables.names(tables.BY_PRIORITY)},
            **_bounds(history, group, priority),
        }


_SHARES = {"p50": 0.5, "p99": 0.99, "max": 1.0}


def _bounds(history: History, waits: Sequence[waiting.Wait], priority: int | None = None) -> Row:
    """Which figures are lower bounds, as pods whose wait was cut short may have waited for ever, and what these figures
    would be if they had."""
    seen, longest = _seen(history, waits), _seen(history, waits, if_cut=math.inf)
    lower: list[str] = []
    upper: dict[str, float] = {}
    for name in tables.names(tables.BY_PRIORITY):
        family, _, which = name.partition(".")
        share = _SHARES[which.removesuffix("_s")]
        least, most = (waiting.quantile(values[family], share) for values in (seen, longest))
        if most > least:
            lower.append(name)
            if math.isfinite(most):
                upper[name] = round(most, 6) if family == "waiting" else most
    return {"lower_bounds": lower, "upper_bounds": upper}


def _seen(history: History, waits: Sequence[waiting.Wait], if_cut: float | None = None) -> dict[str, list[float]]:
    """By family of metrics, that of each pod; ``if_cut``: in its place where its wait was cut short."""
    found: dict[str, list[float]] = {"waiting": [], "overtaken": [], "running": []}
    for wait in waits:
        cut = None if wait.bound else if_cut
        found["waiting"].append(wait.seconds if cut is None else cut)
        found["overtaken"].append(wait.overtaken if cut is None else cut)
        begun_ns = wait.pod.running_ns
        if begun_ns is None and if_cut is not None:
            found["running"].append(if_cut)
        else:
            ends = (begun_ns, wait.pod.gone_ns, history.now_ns)
            end_ns = next(end for end in ends if end is not None)
            found["running"].append((end_ns - wait.pod.created_ns) / SECOND_NS)
    return found


# Pods ---------------------------------------------------------------------------------------------------------------

_COUNTED = {"preempted": "preempted", "evicted": "evicted", "rejected": "rejected", "oom_killed": "oomKilled"}
_REASONS = {"preempted": "Preempted", "oomKilled": "OOMKilled"}


def pods(history: History, waits: Sequence[waiting.Wait] | None = None) -> Iterator[Row]:
    """In the order of their creation."""
    by_uid = {wait.pod.uid: wait for wait in (waiting.waits(history) if waits is None else waits)}
    for pod in history.pods.values():
        wait = by_uid.get(pod.uid)
        namespace, _, name = pod.key.partition("/")
        yield {
            "namespace": namespace,
            "name": name,
            "workload": pod.workload,
            "owner": pod.owner,
            "scheduler": _scheduler(pod),
            "priority": pod.priority,
            "cpu_milli": pod.requests.get("cpu", 0),
            "memory_bytes": pod.requests.get("memory", 0),
            "node": pod.node,
            "phase": pod.phase,
            "reason": _reason(pod),
            "created_s": pod.created_ns / SECOND_NS,
            "bound_s": _seconds(pod.bound_ns),
            "running_s": _seconds(pod.running_ns),
            "finished_s": _first_s(pod, "ended", "finished"),
            "deleted_s": _seconds(pod.gone_ns),
            "waited_s": None if wait is None else wait.seconds,
            "censored": None if wait is None else not wait.bound,
            "attempts": pod.attempts,
            "overtaken": None if wait is None else wait.overtaken,
            **{column: sum(fact.what == what for fact in pod.facts) for column, what in _COUNTED.items()},
            "preempted_by": next((fact.by for fact in reversed(pod.facts) if fact.what == "preempted"), None),
            "replaces": pod.replaces,
            "uid": pod.uid,
        }


def _scheduler(pod: PodHistory) -> str:
    bound = next((fact.by for fact in reversed(pod.facts) if fact.what == "bound" and fact.by), "")
    return bound or pod.scheduler_name


def _reason(pod: PodHistory) -> str:
    for fact in reversed(pod.facts):
        if fact.what in _COUNTED.values():
            return _REASONS.get(fact.what) or fact.reason
    return ""


def _first_s(pod: PodHistory, *whats: str) -> float | None:
    return _seconds(next((fact.time_ns for fact in pod.facts if fact.what in whats), None))


def _seconds(time_ns: int | None) -> float | None:
    return None if time_ns is None else time_ns / SECOND_NS


# Faults and nodes ---------------------------------------------------------------------------------------------------


def _fault(fault: Fault) -> Row:
    targets: dict[str, None] = {}
    for key in ("actors", "actor", "nodes", "between", "from", "to", "apiServer", "of"):
        targets |= dict.fromkeys(_texts(fault.data.get(key)))
    return {
        "id": fault.id,
        "kind": fault.what,
        "from_s": _seconds(fault.begin_ns),
        "to_s": _seconds(fault.end_ns),
        "targets": list(targets),
        "hits": [" → ".join(filter(None, who)) for who in fault.hits],
    }


def _texts(named: object) -> Iterator[str]:
    """However deep they stand in lists."""
    if isinstance(named, str):
        yield named
    elif isinstance(named, list | tuple):
        for each in named:
            yield from _texts(each)


def _nodes(history: History) -> Iterator[Row]:
    for node in history.nodes.values():
        added = next((fact.time_ns for fact in node.facts if fact.what == "added"), None)
        removed = next((fact.time_ns for fact in reversed(node.facts) if fact.what == "removed"), None)
        room = next((amounts for _, amounts in node.allocatable if amounts), {})
        yield {
            "name": node.name,
            "added_s": _seconds(added),
            "removed_s": None if node.present else _seconds(removed),
            "cpu_milli": room.get("cpu", 0),
            "memory_bytes": room.get("memory", 0),
        }
