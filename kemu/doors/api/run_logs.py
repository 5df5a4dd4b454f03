"""The events of a recorded run, for programs."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from kemu.runtime.runlog.frames import FILE_NAME, Entry, Reader

Event = Entry
"""One event of a run log: when, whose, of which kind, and its data."""


def events(run: str | os.PathLike[str], *kinds: str) -> Iterator[Event]:
    """The events of a run log in their order: ``(time_ns, actor, kind, data)``.

    ``run``: a run folder (of a matrix, that of one variant) or the file in it. ``kinds``: only these, such as
    ``sched.bind``; docs/runs.md lists them. Raises RunLogError, with file and offset, where the log cannot be read or
    is damaged.
    """
    path = Path(run)
    wanted = frozenset(kinds)
    with Reader(path / FILE_NAME if path.is_dir() else path) as reader:
        for event in reader:
            if not wanted or event.kind in wanted:
                yield event
