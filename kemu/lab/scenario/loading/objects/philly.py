"""Microsoft's Philly trace (ATC '19): ``cluster_job_log``, a JSON list of jobs with their attempts.

Role: the format ``philly`` of a trace, by the README of philly-traces. Neighbours: :mod:`job_tables` reads the cells,
:mod:`job_traces` takes the jobs. Jobs are decoded one by one, so only the text of the file is held whole.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from kemu.emulated.objects.conversion import user_files
from kemu.emulated.objects.plain import Json
from kemu.lab.scenario.loading.objects import job_tables
from kemu.lab.scenario.loading.objects.job_traces import Jobs, Kind, valid_name
from kemu.runtime.env import SECOND_NS

_MAX_BYTES = 1 << 30
_FAILED = {"Pass": 0, "Killed": 0, "Failed": 1}
"""Exit codes by the status of a job."""
_SPACE = " \t\r\n"
_NOTHING = (None, "", "None")
"""What the log has for times that were not recorded."""


class _Bad(ValueError):
    """A job that cannot be read, and where in it."""

    def __init__(self, path: str, message: str) -> None:
        super().__init__(message)
        self.path = path


def read(file: Path, jobs: Jobs) -> None:
    """Puts the jobs of the log into ``jobs``, but those that never began.

    A job runs as long as its attempts did together, on the machines of the last one: a pod for each, with so many GPUs.
    Raises ScenarioError with the line of every job that cannot be read, FileProblem for no such file.
    """
    problems = job_tables.Problems(file)
    text = user_files.text(user_files.read_bytes(file, _MAX_BYTES))
    line, counted_to = 1, 0
    try:
        for offset, entry in _entries(text):
            line += text.count("\n", counted_to, offset)
            counted_to = offset
            column = offset - text.rfind("\n", 0, offset)
            try:
                _add(entry, jobs)
            except _Bad as error:
                problems.add(line, column, error.path, str(error))
    except json.JSONDecodeError as error:
        problems.add(error.lineno, error.colno, "", f"is not a JSON list of jobs: {error.msg}; the rest was not read")
    problems.conclude()


def _entries(text: str) -> Iterator[tuple[int, Json]]:
    """The items of a JSON list, and where each begins. Raises JSONDecodeError."""
    decoder = json.JSONDecoder()
    place = _after_space(text, 0)
    if text[place : place + 1] != "[":
        raise json.JSONDecodeError("it does not begin with [", text, place)
    place = _after_space(text, place + 1)
    while text[place : place + 1] != "]":
        entry, end = decoder.raw_decode(text, place)
        yield place, entry
        place = _after_space(text, end)
        if text[place : place + 1] == ",":
            place = _after_space(text, place + 1)
        elif text[place : place + 1] != "]":
            raise json.JSONDecodeError("expected , or ]", text, place)


def _after_space(text: str, place: int) -> int:
    while text[place : place + 1] in _SPACE and place < len(text):
        place += 1
    return place


def _add(entry: Json, jobs: Jobs) -> None:
    if not isinstance(entry, dict):
        raise _Bad("", "must be a job, a mapping")
    submit_ns = _time_ns(entry, "submitted_time", "submitted_time")
    if submit_ns is None:
        raise _Bad("submitted_time", "is missing")
    status = entry.get("status")
    if status not in _FAILED:
        raise _Bad("status", f"must be one of {', '.join(_FAILED)}, not {status!r}")
    namespace = valid_name(str(entry.get("vc") or ""))
    run_s: float | None = 0.0
    machines: list[int] = []
    for number, attempt in enumerate(_list(entry, "attempts", "attempts")):
        path = f"attempts[{number}]"
        if not isinstance(attempt, dict):
            raise _Bad(path, "must be an attempt, a mapping")
        begun_ns = _time_ns(attempt, "start_time", f"{path}.start_time")
        ended_ns = _time_ns(attempt, "end_time", f"{path}.end_time")
        gpus = [
            len(_list(one, "gpus", f"{path}.detail"))
            for one in _list(attempt, "detail", f"{path}.detail")
            if isinstance(one, dict)
        ]
        machines = gpus or machines
        if begun_ns is None:
            continue
        if ended_ns is None:
            run_s = None  # it still ran when the trace was taken, or nothing says when it ended
        elif ended_ns < begun_ns:
            raise _Bad(f"{path}.end_time", "is before it began")
        else:
            run_s = (run_s or 0.0) + (ended_ns - begun_ns) / SECOND_NS
    if not machines or run_s == 0:
        return
    kinds = [Kind(gpus=gpus, namespace=namespace, exit_code=_FAILED[status]) for gpus in machines]
    jobs.add(submit_ns, run_s, kinds, str(entry.get("jobid") or ""))


def _list(data: Mapping[str, Any], key: str, path: str) -> list[Json]:
    found = data.get(key) or []
    if not isinstance(found, list):
        raise _Bad(path, "must be a list")
    return found


def _time_ns(data: Mapping[str, Any], key: str, path: str) -> int | None:
    """None: it was not recorded."""
    text = data.get(key)
    if text in _NOTHING:
        return None
    try:
        return job_tables.timestamp_ns(str(text))
    except ValueError as error:
        raise _Bad(path, str(error)) from None
