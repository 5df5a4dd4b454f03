"""The figures of a run as a row of a table, for CSV files: text and numbers. Times are virtual seconds.

The rows of its pods are those of :mod:`kemu.lab.sweep.results.rows`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Row = dict[str, Any]


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
