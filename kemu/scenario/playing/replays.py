"""Replay: run a recorded scenario again, and compare event by event.

In ``sim`` the same scenario and seed give the same bytes, so a difference means that the log was changed, that kemu
was, or that something reached around the Env.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from kemu.errors import RunLogError
from kemu.runlog import folders
from kemu.runlog.frames import FILE_NAME, Reader, unpack_event
from kemu.scenario.loading import loader
from kemu.scenario.playing import runner


@dataclass(frozen=True)
class Difference:
    """The first event that differs."""

    index: int
    """From 0."""
    recorded: str
    replayed: str

    def __str__(self) -> str:
        return f"event {self.index} differs\n  recorded: {self.recorded}\n  replayed: {self.replayed}"


@dataclass(frozen=True)
class Replay:
    """One run folder, run again."""

    folder: Path
    digest: str
    events: int
    difference: Difference | None


def replay(folder: Path, data_dir: Path | None = None) -> list[Replay]:
    """Replay a run folder, or every variant in one.

    Raises RunLogError where the folder is not one of a run, or its runtime was not ``sim``.
    """
    return [_replay(each, data_dir) for each in folders.runs_in(folder)]


def _replay(folder: Path, data_dir: Path | None) -> Replay:
    scenario_file = folder / folders.SCENARIO_FILE
    if not scenario_file.is_file():
        raise RunLogError(f"{folder}: not a run folder: it has no {folders.SCENARIO_FILE}")
    with Reader(folder / FILE_NAME) as reader:
        header = reader.header
        recorded = _count(reader)
    if header.get("runtime") != "sim":
        raise RunLogError(f"{folder}: a run on {header.get('runtime')!r} happened in real time; only sim runs replay")
    scenario = loader.load(scenario_file, data_dir)
    with tempfile.TemporaryDirectory(prefix="kemu-replay-") as again:
        result = runner.run(scenario, runner.Options(out=Path(again), runtime="sim", most_events=recorded))
        difference, events = compare(folder / FILE_NAME, Path(again) / FILE_NAME)
        return Replay(folder, result.verdict["digest"], events, difference)


def _count(reader: Reader) -> int:
    """Events that can be read, up to the first damaged frame."""
    return sum(1 for payload in _payloads(reader) if isinstance(payload, bytes))


def compare(recorded: Path, replayed: Path) -> tuple[Difference | None, int]:
    """The first difference of two run logs, and how many events were compared."""
    index = -1
    with Reader(recorded) as left_reader, Reader(replayed) as right_reader:
        left_events, right_events = _payloads(left_reader), _payloads(right_reader)
        while True:
            index += 1
            left, right = next(left_events, None), next(right_events, None)
            if left is None and right is None:
                return None, index
            if left != right:
                return _difference(index, left, right), index


def _payloads(reader: Reader) -> Iterator[bytes | str]:
    """Packed events; a text where the file is damaged so that no more can be read."""
    try:
        yield from reader.payloads(check=False)
    except RunLogError as error:
        yield str(error)


def _difference(index: int, left: bytes | str | None, right: bytes | str | None) -> Difference:
    texts = _text(left), _text(right)
    if texts[0] == texts[1]:  # the same event in other bytes
        texts = repr(left), repr(right)
    return Difference(index, *_around_the_difference(*texts))


def _text(found: bytes | str | None) -> str:
    if found is None:
        return "nothing: the log ends here (a run that was interrupted leaves such a log)"
    if isinstance(found, str):
        return found
    try:
        event = unpack_event(found)
        return f"{event.time_ns / 1e9:.9f} s {event.actor} {event.kind} {event.data!r}"
    except Exception as error:  # whatever damaged bytes make of msgpack
        return f"cannot be read: {error or type(error).__name__}"


def _around_the_difference(left: str, right: str) -> tuple[str, str]:
    """Both texts whole if they are short, else their beginnings and what surrounds the first difference."""
    place = next((n for n, (a, b) in enumerate(zip(left, right, strict=False)) if a != b), min(len(left), len(right)))

    def cut(text: str) -> str:
        if len(text) <= _WHOLE:
            return text
        begin = max(_HEAD, place - _BEFORE)
        gap = " … " if begin > _HEAD else ""
        end = begin + _WHOLE - _HEAD
        return text[:_HEAD] + gap + text[begin:end] + (" …" if end < len(text) else "")

    return cut(left), cut(right)


_WHOLE, _HEAD, _BEFORE = 400, 100, 60
