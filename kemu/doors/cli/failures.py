"""Errors that end a command: printed as text, or as the one object of ``--json``, with their exit codes.

The object is ``{"error": kind, "message": text, "exit": code, "problems": [{file, line, column, path, message,
suggestion}]}``; docs/errors.md describes it.
"""

from __future__ import annotations

import argparse
import errno
import json
import os
import re
import shlex
import shutil
import sys
import tempfile
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, TextIO

from kemu import errors
from kemu.doors.cli import exits
from kemu.runtime import user_code
from kemu.runtime.runlog import crash_reports, folders

MOST_MISTAKES = 100
"""How many lines of them are shown at once."""
MOST_ALIKE, MOST_PLACES = 4, 10
"""How many lines mistakes of one sort take, and how many places the last of these lines names."""

EXTRAS = {
    "ray": ("ray",),
    "cryptography": ("cluster", "up", "ray"),
    "grpc_health": ("ray",),
    "grpc_reflection": ("ray",),
    "psutil": ("ray",),
    "opentelemetry": ("otlp",),
    "starlette": ("live",),
    "uvicorn": ("live", "up"),
    "httptools": ("up",),
    "jh2": ("up",),
    "jwt": ("up",),
    "wsproto": ("up",),
    "aiohttp": ("cluster", "up"),
    "kubernetes_asyncio": ("cluster",),
    "duckdb": ("sweep",),
    "pyarrow": ("sweep",),
    "scipy": ("sweep",),
    "perfetto": ("perfetto",),
    "pandas": ("frames",),
    "polars": ("frames",),
    "altair": ("plots",),
    "vl_convert": ("plots",),
}
"""Packages that only extras of kemu install, and which; the first, unless the command says another one."""
_OF_COMMANDS = {"chaos": "up", "envtest-assets": "up", "hunt": "up", "ray": "ray", "step": "up", "up": "up"}
"""Commands that have an extra of their own, whatever package they miss first."""

_DISK = {
    errno.EACCES: "", errno.EPERM: "", errno.EROFS: "", errno.EISDIR: "", errno.ENOTDIR: "", errno.EEXIST: "",
    errno.ENOSPC: "free some space, or ", errno.EDQUOT: "free some space, or ", errno.EFBIG: "", errno.EIO: "",
}  # fmt: skip
"""Errors of a folder that another choice of ``--out`` avoids, and what else does."""


@dataclass(frozen=True)
class Failure:
    kind: str
    """``usage input system infrastructure simulation user-code internal interrupted``."""
    message: str
    exit_code: int
    problems: Sequence[errors.Problem] = ()
    more: dict[str, Any] = field(default_factory=dict)
    """Further keys of the object."""
    text: str = ""
    """What stands on the terminal, where it is not the message."""

    def data(self) -> dict[str, Any]:
        problems = [asdict(problem) for problem in self.problems]
        return {"error": self.kind, "message": self.message, "exit": self.exit_code, "problems": problems, **self.more}


def tell(failure: Failure, *, as_json: bool) -> int:
    """Print it; returns the exit code."""
    if as_json:
        print(json.dumps(failure.data(), ensure_ascii=False))
    else:
        print(_fitting(failure.text or f"kemu: {failure.message}", sys.stderr), file=sys.stderr)
    return failure.exit_code


def _fitting(text: str, stream: TextIO) -> str:
    """The text, with lines broken between words on a terminal, but not in files and pipes."""
    if not stream.isatty():
        return text
    width = shutil.get_terminal_size().columns
    text = text.replace(f"{os.getcwd()}{os.sep}", "")  # files of one's own, as one names them
    return "\n".join(_broken(line, width) if len(line) > width else line for line in text.split("\n"))


def _broken(line: str, width: int) -> str:
    indent = " " * (len(line) - len(line.lstrip()) + 2)
    return textwrap.fill(line, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


def extra_of(error: ModuleNotFoundError, command: str = "") -> str | None:
    """The extra of kemu that has the missing package, or None."""
    extras = EXTRAS.get((error.name or "").partition(".")[0], ())
    of_command = _OF_COMMANDS.get(command)
    return of_command if of_command in extras else next(iter(extras), None)


def of(error: Exception | KeyboardInterrupt, options: argparse.Namespace) -> Failure:
    if isinstance(error, errors.SimulationError) and isinstance(error.__cause__, OSError) and error.__cause__.filename:
        error = error.__cause__  # an actor could not write the run log
    if isinstance(error, errors.UsageError):
        return Failure("usage", str(error), exits.INPUT, text=f"{error.usage}{error}")
    if isinstance(error, errors.ScenarioError):
        return _of_mistakes(error.problems)
    if isinstance(error, errors.UserCodeFailed):
        more: dict[str, Any] = {"place": {"file": error.file, "line": error.line, "function": error.function}}
        if error.plugin:
            more |= {"plugin": error.plugin, "extensionPoint": error.extension_point}
            more |= {"pod": error.pod, "node": error.node}
        return Failure(
            "user-code", str(error), exits.RAISED, more={**more, **_run(options)}, text=_of_run(error, options)
        )
    if isinstance(error, errors.InfrastructureError):
        return Failure("infrastructure", str(error), exits.UNKNOWN, more=_run(options))
    if isinstance(error, errors.ActorCrashed):
        return _of_bug(error, options)
    if isinstance(error, errors.SimulationError):
        text = f"the run broke: {type(error).__name__}: {error}"
        return Failure("simulation", text, exits.FAILS, more=_run(options))
    if isinstance(error, errors.KemuError):
        return Failure("input", str(error), exits.INPUT)
    if isinstance(error, KeyboardInterrupt):
        return Failure("interrupted", "interrupted", exits.INTERRUPTED)
    if isinstance(error, ModuleNotFoundError):
        extra = extra_of(error, getattr(options, "word", ""))
        if extra is None:
            return _of_bug(error, options)
        text = f"this needs the Python package {error.name}: pip install 'kemu[{extra}]'"
        return Failure("system", text, exits.INPUT)
    if isinstance(error, OSError) and _is_of_the_disk(error, options):
        return Failure("system", _of_system(error, options), exits.INPUT)
    # A plugin that raises while it is made, say; an actor's exception arrives as UserCodeFailed.
    at = user_code.place_of(error)
    if at is None:
        return _of_bug(error, options)
    text = f"{type(error).__name__}: {error}\nin your own code: {at}"
    more = {"place": {"file": at.file, "line": at.line, "function": at.function}}
    return Failure("user-code", text, exits.RAISED, more=more)


def _of_bug(error: BaseException, options: argparse.Namespace) -> Failure:
    out = getattr(options, "out", None)
    file = crash_reports.written_in(Path(out)) if out is not None else None
    if file is None:
        handle, name = tempfile.mkstemp(prefix="kemu-crash-", suffix=".txt")
        os.close(handle)
        file = crash_reports.write(Path(name), error, {"command": shlex.join(sys.argv)})
    text = str(error) if isinstance(error, errors.KemuError) else f"{type(error).__name__}: {error}"
    return bug(text, file, _run(options))


_PLEASE = "this is a bug in kemu: please report it with this file, which holds the scenario (look through it first):"


def tell_beside(text: str, report: Path) -> int:
    """Report a bug in kemu, in addition to a result. Returns the exit code."""
    print(_fitting(bug(text, report).text, sys.stderr), file=sys.stderr)
    return exits.RAISED


def bug(text: str, report: Path, more: Mapping[str, Any] | None = None) -> Failure:
    """A bug in kemu, with the crash report."""
    told = f"kemu: {text.split(chr(10), 1)[0]}\n{_PLEASE} {report}"
    return Failure("internal", text, exits.RAISED, more={"report": str(report), **(more or {})}, text=told)


def _run(options: argparse.Namespace) -> dict[str, Any]:
    """The path of the run log of a run that broke."""
    out = getattr(options, "out", None)
    return {"run": str(out)} if out is not None and folders.held_in(out) is not None else {}


def _of_run(error: errors.SimulationError, options: argparse.Namespace) -> str:
    run = _run(options).get("run")
    where = f"\nthe traceback is in the run log; kemu story {run} tells what came before" if run else ""
    return f"kemu: {error}{where}"


def _of_mistakes(problems: Sequence[errors.Problem]) -> Failure:
    count, lines = len(problems), _told_once(problems)
    rest = f", of which the first {MOST_MISTAKES} lines are above" if len(lines) > MOST_MISTAKES else ""
    total = f"{count} mistake{'s' if count != 1 else ''}"
    return Failure("input", total, exits.INPUT, problems, text="\n".join([*lines[:MOST_MISTAKES], f"{total}{rest}"]))


def _told_once(problems: Sequence[errors.Problem]) -> list[str]:
    """One line each; for the same mistake in many items of a list, the first ones, and the places of the others."""
    alike: dict[tuple[str, str, str], list[errors.Problem]] = {}
    for problem in problems:
        alike.setdefault((problem.file, re.sub(r"\[\d+\]", "[]", problem.path), problem.message), []).append(problem)
    lines = []
    for problem in problems:
        general = re.sub(r"\[\d+\]", "[]", problem.path)
        same = alike[problem.file, general, problem.message]
        if len(same) <= MOST_ALIKE or problem in same[: MOST_ALIKE - 1]:
            lines.append(str(problem))
        elif problem is same[MOST_ALIKE - 1]:
            others = [str(one.line) for one in same[MOST_ALIKE - 1 :]]
            places = ", ".join(others[:MOST_PLACES]) + (", …" if len(others) > MOST_PLACES else "")
            more = f"{problem.file}:{problem.line}:{problem.column}: {general}: the same {len(others)} more times"
            lines.append(f"{more}: lines {places}")
    return lines


def _is_of_the_disk(error: OSError, options: argparse.Namespace) -> bool:
    """Whether the error is about a file or folder that the user named, or about the disk; any other one is a bug."""
    return error.filename is not None or (error.errno in _DISK and getattr(options, "out", None) is not None)


def _of_system(error: OSError, options: argparse.Namespace) -> str:
    text = f"{options.out if error.filename is None else error.filename}: {error.strerror}"
    if error.errno in _DISK and hasattr(options, "out"):
        text += f"; {_DISK[error.errno]}choose another folder with --out"
    return text
