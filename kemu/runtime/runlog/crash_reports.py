"""What a user can send when kemu itself failed: a text file with versions, seed, traceback, last events, scenario."""

from __future__ import annotations

import contextlib
import platform
import sys
import traceback
from collections import deque
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import kemu
from kemu.errors import ActorCrashed, KemuError, RunLogError
from kemu.runtime.runlog import folders
from kemu.runtime.runlog.frames import FILE_NAME, Entry, Reader

LAST_EVENTS = 50
_MOST_EVENT = 400
"""Characters of one event."""


def is_bug(error: BaseException) -> bool:
    """Whether it was not raised on purpose. The exceptions that a process ends with are none."""
    if isinstance(error, KemuError):
        return isinstance(error, ActorCrashed)
    return isinstance(error, Exception) and not isinstance(error, OSError | MemoryError | ModuleNotFoundError)


def of(error: BaseException, about: Mapping[str, Any], document: str = "", events: Sequence[Entry] = ()) -> str:
    """``about``: what was run, a line each. ``document``: the scenario."""
    lines = ["kemu failed: this is a bug in kemu, not in what was run.", ""]
    versions = {"kemu": kemu.__version__, "python": sys.version.split()[0], "system": platform.platform()}
    lines += [f"{key}: {value}" for key, value in {**versions, **about}.items()]
    lines += ["", "--- what failed", "", "".join(traceback.format_exception(error)).rstrip()]
    if events:
        last = events[-LAST_EVENTS:]
        lines += ["", f"--- the last {len(last)} events", "", *map(_shown, last)]
    if document:
        lines += ["", "--- the scenario", "", document.rstrip()]
    return "\n".join(lines) + "\n"


def write(
    file: Path, error: BaseException, about: Mapping[str, Any], document: str = "", events: Sequence[Entry] = ()
) -> Path:
    """As :func:`of`."""
    file.write_text(of(error, about, document, events), errors="replace")
    return file


def written_in(out: Path) -> Path | None:
    """The report of a run in this folder, or of one of its variants."""
    files = [each / folders.CRASH_FILE for each in (out, *folders.variants_in(out))]
    return next((file for file in files if file.is_file()), None)


def last_events(folder: Path) -> list[Entry]:
    """Last events of a run log, as far as it can be read."""
    found: deque[Entry] = deque(maxlen=LAST_EVENTS)
    with contextlib.suppress(RunLogError, OSError), Reader(folder / FILE_NAME) as reader:
        found.extend(reader)
    return list(found)


def _shown(event: Entry) -> str:
    time_ns, actor, kind, data = event
    text = f"{time_ns / 1e9:.9f} {actor} {kind} {data}"
    return text if len(text) <= _MOST_EVENT else f"{text[:_MOST_EVENT]}…"
