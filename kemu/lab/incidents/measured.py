"""Usage as it was measured: what ``kubectl top pods`` prints, the metrics API, exports of Prometheus as JSON or CSV.

    NAMESPACE   NAME        CPU(cores)   MEMORY(bytes)          kubectl top pods -A [--containers]
    {"status": "success", "data": {"resultType": "matrix", "result": [{"metric": {…}, "values": [[t, "v"], …]}, …]}}
    time,namespace,pod,container,memory,cpu                     CSV, a line for each sample

Of Prometheus' series the labels ``namespace``, ``pod`` and ``container`` count; whether one is memory or cpu is told
by ``__name__`` or, where a query has dropped it, by the name of the file or by its amounts. In a CSV file the columns
go by their names in any order: ``time`` or ``timestamp`` (seconds, milliseconds or RFC 3339), ``namespace``, ``pod``,
``container`` if there are several, and ``memory`` (bytes) or ``cpu`` (cores), with or without a unit.
"""

from __future__ import annotations

import csv
import io
import itertools
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

from kemu.emulated.objects.amounts import quantities

FORMS = (
    "usage is what kubectl top pods -A [--containers] prints, a range of Prometheus as JSON, or CSV with the columns "
    "time, namespace, pod, container, memory, cpu"
)
MEMORY, CPU = "memory", "cpu"
_HEADER_OF_TOP = re.compile(r"^\s*(NAMESPACE\s+)?(NAME|POD)\s.*CPU\(cores\)", re.MULTILINE)
_MOST_CORES = 4096
"""No container uses so many; an amount above is bytes."""


class UsageError(ValueError):
    """``line``: where, from 1."""

    def __init__(self, message: str, line: int = 1) -> None:
        super().__init__(message)
        self.line = line


class Series(NamedTuple):
    """The usage of a pod, or of one of its containers."""

    namespace: str
    pod: str
    """"": of a node, which is named in ``namespace``."""
    container: str
    """"": of the whole pod."""
    resource: str
    samples: tuple[tuple[float, float], ...]
    """Unix time in seconds, 0 where the source has none, and bytes or cores; in the order of time."""


def looks_like(text: str) -> bool:
    """Whether a text holds usage rather than objects."""
    head = text[:4000].lstrip("\ufeff \n")
    if head.startswith("{"):
        return '"resultType"' in head or '"result_type"' in head
    if _HEADER_OF_TOP.search(head):
        return True
    columns = _columns(head.partition("\n")[0])
    return "pod" in columns and bool({MEMORY, CPU} & set(columns)) and len(columns) > 2


def parse(text: str, file: str = "") -> list[Series]:
    """Raises UsageError."""
    head = text[:4000].lstrip("\ufeff \n")
    if head.startswith("{"):
        return _of_prometheus(text, file)
    if _HEADER_OF_TOP.search(head):
        return _of_top(text)
    return _of_csv(text)


def of_metrics(data: Mapping[str, Any]) -> list[Series]:
    """A PodMetrics object; those of nodes say nothing about pods."""
    if data.get("kind") != "PodMetrics":
        return []
    metadata = data.get("metadata") or {}
    time = _time(str(data.get("timestamp") or "0"))
    return [
        Series(
            str(metadata.get("namespace", "default")),
            str(metadata.get("name")),
            str(one.get("name")),
            resource,
            ((time, _amount(str(one["usage"][resource]), 1)),),
        )
        for one in data.get("containers") or ()
        for resource in (CPU, MEMORY)
        if resource in (one.get("usage") or {})
    ]


def _of_top(text: str) -> list[Series]:
    found: list[Series] = []
    columns: list[str] = []
    for number, line in enumerate(text.splitlines(), 1):
        cells = line.split()
        if not cells:
            continue
        if _HEADER_OF_TOP.match(line):
            columns = cells
            continue
        if not columns:
            continue
        if len(cells) != len(columns):
            raise UsageError(f"{len(cells)} columns, where the header has {len(columns)}: {line.strip()}", number)
        row = dict(zip(columns, cells, strict=True))
        if "NODE" in row or ("NAME" in row and "NAMESPACE" not in row and "CPU%" in columns):
            continue  # kubectl top nodes
        # With --containers the pod stands in POD and the container in NAME.
        pod, container = (row["POD"], row["NAME"]) if "POD" in row else (row["NAME"], "")
        namespace = row.get("NAMESPACE", "default")
        for column, resource in (("CPU(cores)", CPU), ("MEMORY(bytes)", MEMORY)):
            if column in row and row[column] != "<unknown>":
                amount = _amount(row[column], number)
                found.append(Series(namespace, pod, container, resource, ((0.0, amount),)))
    return found


def _of_prometheus(text: str, file: str) -> list[Series]:
    try:
        data = json.loads(text)
    except json.JSONDecodeError as error:
        raise UsageError(f"is not JSON: {error.msg}", error.lineno) from None
    if data.get("status", "success") != "success":
        raise UsageError(f"Prometheus answered with an error: {data.get('error', 'without saying which')}")
    body = data.get("data", data)
    kind = body.get("resultType")
    if kind not in ("matrix", "vector"):
        raise UsageError(f"holds a {kind}: ask for a range (query_range) or an instant of usage")
    found = []
    for one in body.get("result", ()):
        labels = one.get("metric", {})
        pod = labels.get("pod") or labels.get("pod_name")
        if not pod or labels.get("container") == "POD":
            continue
        pairs = one.get("values") or [one["value"]]
        samples = tuple((float(time), float(value)) for time, value in pairs if value not in ("NaN", "+Inf", "-Inf"))
        if not samples:
            continue
        name = f"{labels.get('__name__', '')} {labels.get('resource', '')}"
        if "_seconds_total" in name:
            samples = _rates(samples)
        if not samples:
            continue
        resource = _resource(name, file, (value for _, value in samples))
        container = labels.get("container") or labels.get("container_name") or ""
        found.append(Series(labels.get("namespace", "default"), pod, container, resource, samples))
    return found


def _rates(counted: Sequence[tuple[float, float]]) -> tuple[tuple[float, float], ...]:
    """Of a counter; one that falls has begun anew."""
    return tuple(
        (end, max(0.0, (more - before if more >= before else more) / (end - begin)))
        for (begin, before), (end, more) in itertools.pairwise(counted)
        if end > begin
    )


def _resource(name: str, file: str, values: Iterable[float]) -> str:
    for text in (name, file.rpartition("/")[2]):
        if re.search(r"mem|working_set|rss|bytes", text):
            return MEMORY
        if "cpu" in text:
            return CPU
    return MEMORY if max(values) > _MOST_CORES else CPU


def _of_csv(text: str) -> list[Series]:
    lines = io.StringIO(text.lstrip("\ufeff"))
    first = lines.readline()
    columns = _columns(first)
    for needed in ("pod",):
        if needed not in columns:
            raise UsageError(f"has no column {needed}; {FORMS}")
    if not {MEMORY, CPU} & set(columns):
        raise UsageError(f"has no column memory or cpu; {FORMS}")
    samples: dict[tuple[str, str, str, str], list[tuple[float, float]]] = {}
    for number, cells in enumerate(csv.reader(lines, delimiter=_delimiter(first)), 2):
        if not any(cell.strip() for cell in cells):
            continue
        if len(cells) != len(columns):
            raise UsageError(f"{len(cells)} cells, where the header has {len(columns)}", number)
        row = dict(zip(columns, (cell.strip() for cell in cells), strict=True))
        try:
            time = _time(row.get("time") or "0")
        except ValueError:
            raise UsageError(f"{row['time']!r} is no time: seconds, or as 2026-11-28T09:00:00Z", number) from None
        for resource in (CPU, MEMORY):
            if row.get(resource):
                key = row.get("namespace") or "default", row["pod"], row.get("container", ""), resource
                samples.setdefault(key, []).append((time, _amount(row[resource], number)))
    return [Series(*key, tuple(sorted(found))) for key, found in samples.items()]


def _delimiter(header: str) -> str:
    return max(",;\t", key=header.count)


_NAMES = {
    "time": "time", "timestamp": "time", "ts": "time", "date": "time", "namespace": "namespace", "pod": "pod",
    "pod_name": "pod", "container": "container", "container_name": "container", "memory": MEMORY, "mem": MEMORY,
    "memory_bytes": MEMORY, "bytes": MEMORY, "working_set": MEMORY, "cpu": CPU, "cpu_cores": CPU, "cores": CPU,
    "container_memory_working_set_bytes": MEMORY,
}  # fmt: skip


def _columns(header: str) -> list[str]:
    cells = [cell.strip().strip('"').lower() for cell in header.split(_delimiter(header))]
    return [_NAMES.get(re.sub(r"[^a-z]+", "_", cell.partition("(")[0]).strip("_"), cell) for cell in cells]


def without_totals(found: Sequence[Series]) -> list[Series]:
    """Of a pod whose containers have series, without that of the whole pod, which counts them again."""
    with_containers = {(one.namespace, one.pod, one.resource) for one in found if one.container}
    kept = [one for one in found if one.container or (one.namespace, one.pod, one.resource) not in with_containers]
    # A container that ran in several cgroups has several series: they follow each other.
    kept.sort(key=lambda one: (*one[:4], one.samples[0][0]))
    found = []
    for _, group in itertools.groupby(kept, key=lambda one: one[:4]):
        parts = list(group)
        found.append(parts[0]._replace(samples=tuple(sorted(sample for one in parts for sample in one.samples))))
    return found


def _time(text: str) -> float:
    """In seconds. Raises ValueError."""
    if re.fullmatch(r"\d+(\.\d+)?", text):
        value = float(text)
        return value / 1000 if value > 1e11 else value
    found = datetime.fromisoformat(text.replace("Z", "+00:00"))
    return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()


def _amount(text: str, line: int) -> float:
    try:
        return float(text)
    except ValueError:
        pass
    try:
        return quantities.approximate(text)
    except ValueError:
        raise UsageError(f"{text!r} is no amount, such as 250m or 300Mi", line) from None
