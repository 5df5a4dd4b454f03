"""Recorded traces: which files they are read from, which columns say what, and how much of them is played.

:mod:`kemu.lab.scenario.loading.objects.job_tables` and :mod:`kemu.lab.scenario.loading.objects.openb` read them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from kemu.emulated.kubelet.settings import kubelet_configurations
from kemu.emulated.settings.declared import Complaint, Section, setting, settings_of
from kemu.emulated.settings.shapes import DURATION, SHARE, Choice, Free, MapOf, Number, ScalarOr, Text, Whole
from kemu.messages.k8s import core_v1_pb2

OPENB, CSV = "openb", "csv"
EXTENDED, DEVICES = "extended", "devices"
HELIOS, ACME, DLRM, PHILLY = "helios", "acme", "alibaba-dlrm", "philly"

TIME_UNITS = {"ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9, "m": 60 * 10**9, "h": 3600 * 10**9, "d": 86400 * 10**9}
"""In nanoseconds."""
TIMESTAMP = "timestamp"
"""ISO 8601 (without a zone: UTC), or seconds since 1970."""
MEMORY_UNITS = {"B": 1}
for _power, _letter in enumerate("KMGTP", 1):
    MEMORY_UNITS |= {_letter: 1000**_power, f"{_letter}B": 1000**_power}
    MEMORY_UNITS |= {f"{_letter}i": 1024**_power, f"{_letter}iB": 1024**_power}
MEMORY_UNITS["k"] = 1000
CPU_UNITS = {"cores": 1000, "milli": 1}
"""In thousandths."""
GPU_UNITS = {"devices": 1000, "milli": 1}

POD, JOB = "pod", "job"

FORMER = re.compile(r"\.r[0-9]+$")
"""What the name of a pod ends with that replaces one whose name stands in a trace: no such name has a point."""


@dataclass(frozen=True, kw_only=True)
class Column:
    """Which column says something, and how."""

    column: str = setting(Text(), "Its name in the first line of the file.", required=True)
    unit: str | None = setting(Text(), "Unit of its numbers.")
    of: str = setting(Choice((POD, JOB)), "Whose the amount is, with replicas: of each pod, or of all.", POD)
    values: Mapping[str, Any] = setting(
        MapOf(Free(mapping=False)), "What texts in it stand for; others are mistakes.", {}
    )


_COLUMN = ScalarOr(Text(), Section(Column))
_NO_UNIT: tuple[str, ...] = ()
_UNITS = {
    "submit": (*TIME_UNITS, TIMESTAMP),
    "start": (*TIME_UNITS, TIMESTAMP),
    "end": (*TIME_UNITS, TIMESTAMP),
    "run_s": tuple(TIME_UNITS),
    "cpu": tuple(CPU_UNITS),
    "cpu_limit": tuple(CPU_UNITS),
    "memory": tuple(MEMORY_UNITS),
    "memory_limit": tuple(MEMORY_UNITS),
    "storage": tuple(MEMORY_UNITS),
    "gpu": tuple(GPU_UNITS),
}
_AMOUNTS = ("cpu", "cpu_limit", "memory", "memory_limit", "storage", "gpu")


@dataclass(frozen=True, kw_only=True)
class Columns:
    """Which columns of a table of jobs say what; a name, or a name with its unit. All but ``submit`` may be absent."""

    name: Any = setting(_COLUMN, "Name of the job; its pods are called so, made a valid name.")
    submit: Any = setting(_COLUMN, "When it arrives.", required=True)
    run_s: Any = setting(_COLUMN, "How long its containers run; absent or empty: for ever.", key="runSeconds")
    start: Any = setting(_COLUMN, "When it began, with end, in place of runSeconds; empty: it is left out.")
    end: Any = setting(_COLUMN, "When it ended; empty: it runs for ever.")
    cpu: Any = setting(_COLUMN, "CPU that it requests; in cores, or as a quantity.")
    cpu_limit: Any = setting(_COLUMN, "Its limit.")
    memory: Any = setting(_COLUMN, "Memory that it requests; in bytes, or as a quantity.")
    memory_limit: Any = setting(_COLUMN, "Its limit.")
    storage: Any = setting(_COLUMN, "Ephemeral storage that it requests; in bytes, or as a quantity.")
    gpu: Any = setting(_COLUMN, "GPUs, as nvidia.com/gpu; in thousandths, kemu.dev/gpu-milli.")
    replicas: Any = setting(_COLUMN, "How many pods it has; one by default.")
    priority: Any = setting(_COLUMN, "Its priority: a whole number, or the name of a PriorityClass.")
    tenant: Any = setting(_COLUMN, "Whose it is: the namespace of its pods, made a valid name.")
    exit_code: Any = setting(_COLUMN, "How its containers end; 0 by default.")

    def stated(self) -> dict[str, Column]:
        """By field."""
        found = {}
        for name, _ in settings_of(Columns).values():
            value = getattr(self, name)
            if value is not None:
                found[name] = Column(column=value) if isinstance(value, str) else value
        return found

    def complaints(self) -> Iterator[Complaint]:
        stated = self.stated()
        keys = {name: key for key, (name, _) in settings_of(Columns).items()}
        for name, column in stated.items():
            units = _UNITS.get(name, _NO_UNIT)
            if column.unit is not None and column.unit not in units:
                what = f"must be one of {', '.join(units)}" if units else "has no unit"
                yield Complaint((keys[name], "unit"), f"{what}, not {column.unit!r}" if units else what)
            if column.of == JOB and name not in _AMOUNTS:
                yield Complaint((keys[name], "of"), "is for amounts of resources only")
            elif column.of == JOB and self.replicas is None:
                yield Complaint((keys[name], "of"), "needs the column replicas")
        if self.run_s is not None and self.end is not None:
            yield Complaint(("end",), "says what runSeconds says", "state one of them", key=True)
        if (self.start is None) != (self.end is None):
            yield Complaint(("start" if self.end is None else "end",), "needs start and end", key=True)
        for limit, request in (("cpu_limit", "cpu"), ("memory_limit", "memory")):
            if limit in stated and request in stated and stated[limit].of != stated[request].of:
                yield Complaint((keys[limit],), f"and {keys[request]} must both be of the pod, or of the job")


@dataclass(frozen=True, slots=True)
class Trace:
    """Pods of a recorded trace, in the order of their creation."""

    templates: tuple[core_v1_pb2.Pod, ...]
    at_ns: tuple[int, ...]
    """When each pod is created."""
    template: tuple[int, ...]
    """Which template each pod is made from."""
    run_s: tuple[float | None, ...]
    """How long each pod runs; None: for ever."""
    digest: str
    """SHA-256 over the files."""
    names: tuple[str, ...] = ()
    """Of each pod; empty: ``<workload>-<n>``."""
    originals: tuple[str, ...] = ()
    """Of each pod: what the trace calls its job."""

    @property
    def namespaces(self) -> dict[str, None]:
        return {template.metadata.namespace: None for template in self.templates}


@dataclass(frozen=True, kw_only=True)
class TraceFiles:
    """Where a recorded trace is found, and how much of it is wanted."""

    format: str = setting(
        Choice((OPENB, CSV, HELIOS, ACME, DLRM, PHILLY)),
        "csv: a table of jobs, with columns; openb, alibaba-dlrm: Alibaba's GPU traces of 2023 and 2025; helios: "
        "SenseTime's; acme: that of Shanghai AI Lab; philly: Microsoft's.",
        required=True,
    )
    nodes: str | None = setting(
        Text(), "CSV file of the nodes, found in --data DIR; absent: the nodes of the scenario."
    )
    pods: str | None = setting(Text(), "CSV file of the pods, found in --data DIR.")
    file: str | None = setting(Text(), "The file of jobs, found in --data DIR or beside the scenario.")
    columns: Columns | None = setting(Section(Columns), "Which of its columns say what.")
    template: Mapping[str, Any] | None = setting(
        Free(), "Metadata and spec that all its pods have: labels, schedulerName, tolerations, …"
    )
    speed_up: float = setting(Number(positive=True), "All times of the trace are divided by it.", 1)
    run_speed_up: float | None = setting(
        Number(positive=True), "Run times are divided by it instead: more pods run at once."
    )
    from_ns: int = setting(DURATION, "Jobs that arrive before that are left out, and its time 0 is then.", "0s")
    until_ns: int | None = setting(DURATION, "So are those that arrive from then on.")
    sample: float | None = setting(SHARE, "Only this share of the jobs, each drawn by the seed.")
    limit: int | None = setting(Whole(0), "Only so many pods (openb) or jobs, from the first.")
    kubelet: Any = setting(kubelet_configurations.SHAPE, "KubeletConfiguration of the trace's nodes.")
    gpus: str = setting(
        Choice((EXTENDED, DEVICES)),
        "GPUs of openb: extended resources of the nodes, or devices that pods claim.",
        EXTENDED,
    )
    digest: str | None = setting(Text(r"[0-9a-f]{64}", "a SHA-256"), "SHA-256 of the files: others are refused.")

    def complaints(self) -> Iterator[Complaint]:
        is_openb = self.format == OPENB
        needed = ("pods",) if is_openb else ("file", "columns") if self.format == CSV else ("file",)
        for key in needed:
            if getattr(self, key) is None:
                yield Complaint((), f"{key} is missing", alone=True)
        if is_openb:
            strange = {"file": self.file, "columns": self.columns, "template": self.template, "sample": self.sample}
            strange |= {"from": self.from_ns or None, "until": self.until_ns}
        else:
            strange = {"nodes": self.nodes, "pods": self.pods, "kubelet": self.kubelet}
            strange |= {} if self.format == CSV else {"columns": self.columns}
            strange |= {} if self.gpus == EXTENDED else {"gpus": self.gpus}
        for key, value in strange.items():
            if value is not None:
                yield Complaint((key,), f"is not for the format {self.format}", key=True)
        if self.until_ns is not None and self.until_ns <= self.from_ns:
            yield Complaint(("until",), "is not after from")
