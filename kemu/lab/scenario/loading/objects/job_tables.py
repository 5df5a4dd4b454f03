"""CSV tables of jobs: one line for each, read line by line, with the place of everything that is wrong.

Role: the format ``csv`` of a trace. Neighbours: :mod:`job_traces` takes the jobs, :mod:`job_formats` says which columns
published tables have.
"""

from __future__ import annotations

import csv
import datetime as dt
import hashlib
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import lru_cache
from pathlib import Path
from typing import Any

from kemu import errors
from kemu.emulated.objects.amounts import quantities
from kemu.emulated.objects.conversion import user_files
from kemu.emulated.settings import values
from kemu.lab.scenario.format import traces
from kemu.lab.scenario.loading.objects import job_traces
from kemu.lab.scenario.loading.objects.job_traces import Kind
from kemu.runtime.env import SECOND_NS
from kemu.runtime.words import counted, did_you_mean

MAX_PROBLEMS = 20
"""So many bad rows are named; of further ones only the number."""
_MAX_BYTES = 8 << 30
_LONGEST = 40
"""Most characters of a number."""
_SHOWN = 60
"""Most characters of a cell that a complaint repeats."""
_MOST = 1 << 62
_EMPTY = ("", "nan", "null", "none")
"""What tables write where they have nothing, in lower case."""


class Problems:
    """Bad rows of one file: the first of them, and how many there are."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.found: list[errors.Problem] = []
        self._rows = 0

    def add(self, line: int, column: int, name: str, message: str, suggestion: str = "") -> None:
        self._rows += 1
        if self._rows <= MAX_PROBLEMS:
            self.found.append(errors.Problem(str(self.file), line, column, name, message, suggestion))

    def conclude(self) -> None:
        """Raises ScenarioError with all of them, if there are any."""
        if self._rows > MAX_PROBLEMS:
            last, more = self.found[-1].line, self._rows - MAX_PROBLEMS
            text = f"after this line, {counted(more, 'further mistake')} in this file"
            self.found.append(errors.Problem(str(self.file), last, 1, "", text))
        if self.found:
            raise errors.ScenarioError(self.found)


class _Bad(ValueError):
    """A cell that cannot be read."""


def digest(file: Path) -> str:
    """SHA-256 of the file. Raises FileProblem."""
    found = hashlib.sha256()
    try:
        user_files.check(file)
        if file.stat().st_size > _MAX_BYTES:
            raise user_files.FileProblem(f"cannot be read: it is larger than {_MAX_BYTES >> 30} GiB")
        with file.open("rb") as opened:
            while chunk := opened.read(1 << 20):
                found.update(chunk)
    except OSError as error:
        raise user_files.FileProblem(f"cannot be read: {error.strerror or error}") from None
    return found.hexdigest()


def header(file: Path) -> list[str]:
    """The names of its columns; none where it cannot be read."""
    try:
        with file.open(encoding="utf-8-sig", newline="") as opened:
            return next(csv.reader(opened), [])
    except (OSError, UnicodeDecodeError, csv.Error):
        return []


def read(
    file: Path, columns: traces.Columns, jobs: job_traces.Jobs, *, are_there: bool = False
) -> dict[str, tuple[int, int]]:
    """Puts the jobs of the table into ``jobs``; returns where each priority class is named first.

    ``are_there``: without a time of arrival or of beginning a job was there before, and begins at time 0. Raises
    ScenarioError with the line and column of every row that cannot be read, up to :data:`MAX_PROBLEMS`.
    """
    problems = Problems(file)
    lines = _Lines()
    classes: dict[str, tuple[int, int]] = {}
    try:
        with file.open(encoding="utf-8-sig", newline="") as opened:
            reader = csv.reader(lines.of(opened), strict=True)
            names = next(reader, [])
            table = _Table(columns, names, problems, are_there=are_there)
            if problems.found:
                problems.conclude()
            lines.texts.clear()
            for cells in reader:
                if cells:
                    table.row(cells, reader.line_num, lines, jobs, classes)
                lines.texts.clear()
    except UnicodeDecodeError as error:
        problems.add(lines.number + 1, 1, "", f"is not UTF-8 text: {error.reason}")
    except csv.Error as error:
        problems.add(lines.number, 1, "", f"is not CSV: {error}; the rest was not read")
    problems.conclude()
    return classes


class _Lines:
    """The lines of the row that is being read, for the places of its cells."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.number = 0

    def of(self, opened: Iterator[str]) -> Iterator[str]:
        for text in opened:
            self.number += 1
            self.texts.append(text)
            yield text

    def column(self, index: int) -> int:
        """Where a cell begins in its line, from 1; of a row of several lines, 1."""
        if len(self.texts) != 1:
            return 1
        seen, is_quoted = 0, False
        for place, letter in enumerate(self.texts[0]):
            if seen == index:
                return place + 1
            if letter == '"':
                is_quoted = not is_quoted
            seen += letter == "," and not is_quoted
        return len(self.texts[0].rstrip("\r\n")) + 1


Reading = Callable[[str], Any]


class _Table:
    """How a row of a table becomes a job."""

    def __init__(self, columns: traces.Columns, header: Sequence[str], problems: Problems, *, are_there: bool) -> None:
        self._stated = columns.stated()
        self._width = len(header)
        self._problems = problems
        self._cells: list[tuple[str, int, Reading]] = []
        """Field, place in the row, reader of its text."""
        self._names = list(header)
        for field, column in self._stated.items():
            if column.column not in header:
                hint = did_you_mean(column.column, header) or f"there are: {', '.join(header[:40])}"
                problems.add(1, 1, column.column, "there is no such column", hint)
            else:
                self._cells.append((field, header.index(column.column), _reading(field, column)))
        self._has_times = columns.end is not None
        self._are_there = are_there
        self._of_job = {field for field, column in self._stated.items() if column.of == traces.JOB}
        gpu = self._stated.get("gpu")
        self._has_shares = gpu is not None and gpu.unit == "milli"

    def row(
        self,
        cells: Sequence[str],
        line: int,
        lines: _Lines,
        jobs: job_traces.Jobs,
        classes: dict[str, tuple[int, int]],
    ) -> None:
        if len(cells) != self._width:
            self._problems.add(line, 1, "", f"has {len(cells)} cells where the first line has {self._width}")
            return
        found: dict[str, Any] = {}
        field, place, is_bad = "", 0, False
        for field, place, reading in self._cells:
            text = cells[place].strip()
            if text.lower() in _EMPTY and (field != "submit" or self._are_there):
                if self._are_there and field in ("submit", "start"):
                    found[field] = 0
                continue
            try:
                found[field] = reading(text)
            except ValueError as error:
                is_bad = True
                self._problems.add(line, lines.column(place), self._names[place], str(error))
        if is_bad or (self._has_times and "start" not in found):
            return
        try:
            self._add(found, jobs)
        except _Bad as error:
            where = str(error.args[1])
            place = next((place for field, place, _ in self._cells if field == where), 0)
            self._problems.add(line, lines.column(place), self._names[place], str(error.args[0]))
            return
        priority = found.get("priority", "")
        if priority and priority not in classes:
            place = next(place for field, place, _ in self._cells if field == "priority")
            classes[priority] = (line, lines.column(place))

    def _add(self, found: Mapping[str, Any], jobs: job_traces.Jobs) -> None:
        replicas = found.get("replicas", 1)
        if replicas < 1:
            raise _Bad("must be at least 1", "replicas")
        if replicas > job_traces.MAX_PODS:
            raise _Bad(f"must be at most {job_traces.MAX_PODS}", "replicas")
        run_s = found.get("run_s")
        if self._has_times and "end" in found:
            run_s = (found["end"] - found["start"]) / SECOND_NS
            if run_s < 0:
                raise _Bad("is before it began", "end")
        kinds: list[Kind] = []
        if not self._of_job or replicas == 1:
            kinds = [self._kind(found)] * replicas
        else:
            for number in range(replicas):
                # What cannot be divided evenly goes to the first pods.
                own = {field: _part(found[field], replicas, number, field) for field in self._of_job if field in found}
                kinds.append(self._kind({**found, **own}))
        jobs.add(found["submit"], run_s, kinds, found.get("name", ""))

    def _kind(self, found: Mapping[str, Any]) -> Kind:
        milli = found.get("gpu", 0)
        if milli % 1000 and not self._has_shares:
            raise _Bad("is no whole number of devices; unit: milli requests shares, kemu.dev/gpu-milli", "gpu")
        kind = Kind(
            cpu=found.get("cpu", 0),
            cpu_limit=found.get("cpu_limit", 0),
            memory=found.get("memory", 0),
            memory_limit=found.get("memory_limit", 0),
            storage=found.get("storage", 0),
            gpus=milli // 1000 if milli % 1000 == 0 else 0,
            gpu_milli=milli if self._has_shares else 0,
            priority_class=found.get("priority", ""),
            namespace=found.get("tenant", ""),
            exit_code=found.get("exit_code", 0),
        )
        for request, limit in (("cpu", "cpu_limit"), ("memory", "memory_limit")):
            if 0 < found.get(limit, 0) < found.get(request, 0):
                raise _Bad(f"is less than {self._stated[request].column}, which it limits", limit)
        return kind


def _part(amount: int, replicas: int, number: int, field: str) -> int:
    """What one of the replicas has of the amount of the job; devices are divided whole."""
    step = 1000 if field == "gpu" and amount % 1000 == 0 else 1
    each, rest = divmod(amount // step, replicas)
    return (each + (number < rest)) * step


# Cells --------------------------------------------------------------------------------------------------------------


def _reading(field: str, column: traces.Column) -> Reading:
    read = _READINGS[field](column.unit)
    if not column.values:
        return read

    def translated(text: str) -> object:
        if text not in column.values:
            hint = did_you_mean(text, column.values)
            raise ValueError(f"{_short(text)} is none of {', '.join(column.values)}{f' ({hint})' if hint else ''}")
        return read(str(column.values[text]))

    return translated


def _short(text: str) -> str:
    return repr(text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…")


def _text(unit: str | None) -> Reading:
    return str


def _number(text: str, what: str) -> Fraction:
    """One that is not negative."""
    try:
        if len(text) > _LONGEST or (not text[-1:].isdigit() and not text.endswith(".")):
            raise ValueError
        number = Fraction(int(text)) if text.isdecimal() else Fraction(text)
    except (ValueError, ZeroDivisionError):
        raise ValueError(f"must be {what}, not {_short(text)}") from None
    if number < 0:
        raise ValueError(f"must not be negative, but is {text}")
    if number > _MOST:
        raise ValueError(f"is too large: {text}")
    return number


def _whole(what: str, least: int, most: int) -> Callable[[str | None], Reading]:
    def made(unit: str | None) -> Reading:
        def read(text: str) -> int:
            try:
                # Tables of floating point numbers have 1.0.
                number = int(text) if len(text) <= _LONGEST and "." not in text else int(_number(text, what))
                if "." in text and number != _number(text, what):
                    raise ValueError
            except ValueError:
                raise ValueError(f"must be {what}, not {_short(text)}") from None
            if not least <= number <= most:
                raise ValueError(f"must be from {least} to {most}, not {number}")
            return number

        return read

    return made


def _span(unit: str | None) -> Reading:
    """A time, in ns."""
    if unit == traces.TIMESTAMP:
        return timestamp_ns
    factor = traces.TIME_UNITS[unit or "s"]

    def read(text: str) -> int:
        if text.isdecimal() and len(text) <= 18:
            found = int(text) * factor
            if found > _MOST:
                raise ValueError(f"is too large: {text}")
            return found
        if unit is None and not text[-1:].isdigit():
            try:
                return values.duration_ns(text)
            except ValueError:
                hint = _FOR_DATES if _is_date(text) else ""
                text = f"must be a number of seconds or a duration such as 1h30m, not {_short(text)}{hint}"
                raise ValueError(text) from None
        what = f"a number of {_UNIT_NAMES[unit or 's']}"
        try:
            found = round(_number(text, what) * factor)
        except ValueError as error:
            hint = _FOR_DATES if _is_date(text) else ""
            raise ValueError(f"{error}{hint}") from None
        if found > _MOST:
            raise ValueError(f"is too large: {text}")
        return found

    return read


_UNIT_NAMES = {
    "ns": "nanoseconds", "us": "microseconds", "ms": "milliseconds", "s": "seconds", "m": "minutes", "h": "hours",
    "d": "days",
}  # fmt: skip
_FOR_DATES = "; for dates write {column: …, unit: timestamp}"
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


def _is_date(text: str) -> bool:
    try:
        dt.datetime.fromisoformat(text)
    except ValueError:
        return False
    return True


def timestamp_ns(text: str) -> int:
    """ISO 8601, or seconds since 1970, in ns since then."""
    try:
        if text.replace(".", "", 1).isdecimal():
            return round(_number(text, "a time") * SECOND_NS)
        when = dt.datetime.fromisoformat(text)
    except ValueError:
        example = "2026-01-31 12:00:00, 2026-01-31T12:00:00+08:00"
        raise ValueError(f"must be a time such as {example} or seconds since 1970, not {_short(text)}") from None
    since = (when if when.tzinfo is not None else when.replace(tzinfo=dt.UTC)) - _EPOCH
    found = (since.days * 86_400 + since.seconds) * SECOND_NS + since.microseconds * 1000
    if found < 0:
        raise ValueError(f"is before 1970: {text}")
    return found


def _seconds(unit: str | None) -> Reading:
    span = _span(unit)
    return lambda text: span(text) / SECOND_NS


def _amount(units: Mapping[str, int], what: str, of_quantity: Callable[[str], int]) -> Callable[[str | None], Reading]:
    """Rounded up, as Kubernetes rounds."""

    def made(unit: str | None) -> Reading:
        @lru_cache(4096)
        def read(text: str) -> int:
            if unit is not None:
                found = math.ceil(_number(text, f"a number, in {unit}") * units[unit])
            else:
                try:
                    found = of_quantity(text)
                except ValueError:
                    raise ValueError(f"must be {what}, not {_short(text)}") from None
            if found < 0:
                raise ValueError(f"must not be negative, but is {text}")
            if found > _MOST:
                raise ValueError(f"is too large: {text}")
            return found

        return read

    return made


def _devices(text: str) -> int:
    return math.ceil(_number(text, "a number of devices") * 1000)


def _priority(unit: str | None) -> Reading:
    number = _whole("a priority", job_traces.LEAST_PRIORITY, job_traces.MOST_PRIORITY)(None)

    def read(text: str) -> str:
        """The name of its class."""
        is_number = text.lstrip("+-").replace(".", "", 1).isdecimal()
        return job_traces.class_of(number(text)) if is_number else text

    return read


def _tenant(unit: str | None) -> Reading:
    @lru_cache(4096)
    def read(text: str) -> str:
        name = job_traces.valid_name(text)
        if not name:
            raise ValueError(f"must have a letter or a digit, not {_short(text)}")
        return name

    return read


_CPU = _amount(traces.CPU_UNITS, "a quantity of CPU such as 2 or 500m", quantities.milli)
_BYTES = _amount(traces.MEMORY_UNITS, "a quantity of bytes such as 4Gi", quantities.value)

_READINGS: Mapping[str, Callable[[str | None], Reading]] = {
    "name": _text,
    "submit": _span,
    "run_s": _seconds,
    "start": _span,
    "end": _span,
    "cpu": _CPU,
    "cpu_limit": _CPU,
    "memory": _BYTES,
    "memory_limit": _BYTES,
    "storage": _BYTES,
    "gpu": _amount(traces.GPU_UNITS, "a number of devices", _devices),
    "replicas": _whole("a number of pods", 0, _MOST),
    "priority": _priority,
    "tenant": _tenant,
    "exit_code": _whole("an exit code", 0, 255),
}
