"""The record of all that a world in virtual time learned from outside, beside the run log of what it did.

A file of the frames of run logs: each entry is a batch, the inputs of one moment in their order. With the scenario and
the seed it is all that a run depends on, so :mod:`replays` repeats it byte for byte.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from kemu.lab.up.virtual.worlds import GATEWAY, Input, ServedAt
from kemu.runtime.runlog import folders
from kemu.runtime.runlog.frames import Reader, Writer

FILE = folders.INPUTS_FILE
_KIND = "batch"


class Batch(NamedTuple):
    at_ns: int
    """Virtual time. All that happens by itself at that time comes first."""
    inputs: Sequence[Input]


class Record:
    """Written as the run goes on: a run that is killed can be repeated as far as it went."""

    def __init__(self, folder: Path, served_at: ServedAt | None = None) -> None:
        self._writer = Writer(folder / FILE, {"format": 1, "furnishing": list(served_at or ())})

    def add(self, batch: Batch) -> None:
        self._writer.append(batch.at_ns, GATEWAY, _KIND, {"inputs": [list(each) for each in batch.inputs]})
        self._writer.flush()

    def close(self) -> None:
        self._writer.close()


class Inputs:
    """A record, as it was written."""

    def __init__(self, folder: Path) -> None:
        """Raises RunLogError where there is none that can be read."""
        self._file = folder / FILE
        with Reader(self._file) as reader:
            given = reader.header["furnishing"]
        self.served_at = ServedAt(*given) if given else None

    def __iter__(self) -> Iterator[Batch]:
        """Raises RunLogError where the file is damaged."""
        with Reader(self._file) as reader:
            for event in reader:
                found: list[Any] = event.data["inputs"]
                yield Batch(event.time_ns, found)
