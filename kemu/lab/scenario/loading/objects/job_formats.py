"""Published traces of jobs: which columns they have, by the description that comes with each.

Role: the formats of a trace beside ``csv`` and ``openb``. Each is a table of :mod:`job_tables` with given columns, but
that of Philly (:mod:`philly`). docs/scenarios.md says what each maps and what it leaves out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from kemu.lab.scenario.format.traces import ACME, DLRM, HELIOS, JOB, PHILLY, TIMESTAMP, Column, Columns, TraceFiles
from kemu.lab.scenario.loading.objects import job_tables, philly
from kemu.lab.scenario.loading.objects.job_traces import Jobs

_ENDED = {"COMPLETED": 0, "CANCELLED": 0, "FAILED": 1, "TIMEOUT": 1, "NODE_FAIL": 1, "SUSPENDED": 0}
"""How containers end, by the state in which Slurm says that a job ended."""


def _of_job(name: str, unit: str | None = None) -> Column:
    return Column(column=name, unit=unit, of=JOB)


def _at(name: str) -> Column:
    return Column(column=name, unit=TIMESTAMP)


_SLURM = {
    "name": "job_id",
    "submit": _at("submit_time"),
    "start": _at("start_time"),
    "end": _at("end_time"),
    "cpu": _of_job("cpu_num", "cores"),
    "gpu": _of_job("gpu_num", "devices"),
    "replicas": "node_num",
    "exit_code": Column(column="state", values=_ENDED),
}

_COLUMNS: Mapping[str, Callable[[list[str]], Columns]] = {
    # README of HeliosData (SenseTime, SC '21): cluster_log.csv
    HELIOS: lambda header: Columns(tenant="vc", **_SLURM),
    # README of AcmeTrace (Shanghai AI Lab, NSDI '24): trace_seren.csv, and trace_kalos.csv, which has memory too
    ACME: lambda header: Columns(
        tenant="user",
        memory=Column(column="mem_per_pod_GB", unit="GB") if "mem_per_pod_GB" in header else None,
        **_SLURM,
    ),
    # README of cluster-trace-gpu-v2025 (Alibaba, NSDI '25): disaggregated_DLRM_trace.csv
    DLRM: lambda header: Columns(
        name="instance_sn",
        submit="creation_time",
        start="scheduled_time",
        end="deletion_time",
        cpu=Column(column="cpu_request", unit="cores"),
        cpu_limit=Column(column="cpu_limit", unit="cores"),
        memory=Column(column="memory_request", unit="Gi"),
        memory_limit=Column(column="memory_limit", unit="Gi"),
        storage=Column(column="disk_request", unit="Gi"),
        gpu=Column(column="gpu_request", unit="devices"),
    ),
}
BEFORE = (DLRM,)
"""Traces of what was there when they begin: it has no times of arrival and of beginning, and gets time 0."""


def read(format_name: str, file: Path, jobs: Jobs) -> None:
    """Puts the jobs of a published table into ``jobs``. Raises ScenarioError as :func:`job_tables.read`, and
    FileProblem."""
    if format_name == PHILLY:
        philly.read(file, jobs)
        return
    columns = _COLUMNS[format_name](job_tables.header(file))
    job_tables.read(file, columns, jobs, are_there=format_name in BEFORE)


def has_dates(files: TraceFiles) -> bool:
    """Whether its times of arrival are dates, so that its time begins with the first of them."""
    if files.columns is not None:
        return files.columns.stated()["submit"].unit == TIMESTAMP
    return files.format not in BEFORE
