"""The figures of a run as rows of a table: one for each pod, or one for each variant.

They are plain values (text, numbers, None), for CSV files and data frames. Times are virtual seconds.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from kemu.checks.history import History
from kemu.checks.history.facts import PodHistory
from kemu.checks.scheduling import waiting

Row = dict[str, Any]

_COUNTED = ("preempted", "evicted", "rejected", "oomKilled")


def of_pods(history: History) -> Iterator[Row]:
    """In the order of their creation. ``wait_censored`` is 1 where a pod was never bound: ``wait_s`` is then the least
    that it waited. A pod that no scheduler had to place has no ``wait_s``."""
    waits = {wait.pod.uid: wait for wait in waiting.waits(history)}
    for pod in history.pods.values():
        wait = waits.get(pod.uid)
        namespace, _, name = pod.key.partition("/")
        yield {
            "namespace": namespace,
            "pod": name,
            "workload": pod.workload,
            "owner": pod.owner,
            "scheduler": _scheduler(pod),
            "priority": pod.priority,
            "cpu_millicores": pod.requests.get("cpu", 0),
            "memory_bytes": pod.requests.get("memory", 0),
            "node": pod.node,
            "phase": pod.phase,
            "created_s": pod.created_ns / 1e9,
            "bound_s": None if pod.bound_ns is None else pod.bound_ns / 1e9,
            "running_s": _first_s(pod, "running"),
            "ended_s": _first_s(pod, "ended"),
            "deleted_s": None if pod.gone_ns is None else pod.gone_ns / 1e9,
            "wait_s": None if wait is None else wait.seconds,
            "wait_censored": None if wait is None else int(not wait.bound),
            "overtaken": None if wait is None else wait.overtaken,
            "attempts": pod.attempts,
            **{_snake(what): sum(fact.what == what for fact in pod.facts) for what in _COUNTED},
            "preempted_by": next((fact.by for fact in reversed(pod.facts) if fact.what == "preempted"), None),
        }


def of_verdict(verdict: Mapping[str, Any]) -> Row:
    """One run: its verdict, counters, costs, and the figures of each priority and workload
    (``waiting.1000.p99_s``, ``workloads.web.max_s``)."""
    row = {name: verdict[name] for name in ("seed", "verdict", "ended", "virtual_s", "wall_s", "digest")}
    row["checks_failed"] = " ".join(check["id"] for check in verdict["checks"] if check["holds"] is False)
    row["expectations_failed"] = " ".join(each["id"] for each in verdict["expectations"] if each["holds"] is False)
    row |= verdict["counts"] | verdict["costs"]
    groups = {f"waiting.{priority}": group for priority, group in verdict["waiting"].items()}
    groups |= {f"workloads.{name}": group for name, group in verdict["workloads"].items()}
    for name, group in groups.items():
        # What is no single number has no place in a cell.
        row |= {f"{name}.{figure}": value for figure, value in group.items() if isinstance(value, int | float)}
    return row


def _scheduler(pod: PodHistory) -> str:
    """That bound it, ``<name>/<replica>``, or has to."""
    bound = next((fact.by for fact in reversed(pod.facts) if fact.what == "bound" and fact.by), "")
    return bound or pod.scheduler_name


def _first_s(pod: PodHistory, what: str) -> float | None:
    fact = pod.first(what)
    return None if fact is None else fact.time_ns / 1e9


def _snake(what: str) -> str:
    return "oom_killed" if what == "oomKilled" else what
