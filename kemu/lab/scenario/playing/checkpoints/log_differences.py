"""The first event in which two run logs differ, field by field, as a reader of the log would write it.

Role: of :mod:`kemu.lab.scenario.playing.replaying.replays`. Objects in the store stand in the log as bytes; they are
shown as the fields that Kubernetes gives them.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from google.protobuf.message import DecodeError

from kemu.emulated.objects import resources
from kemu.emulated.objects.conversion import convert
from kemu.emulated.objects.plain import Json
from kemu.errors import RunLogError
from kemu.runtime.runlog.events import Transaction
from kemu.runtime.runlog.frames import Entry, Reader, unpack_event
from kemu.runtime.words import counted

ENDS = "the log ends here"
ABSENT = "(absent)"
MOST_FIELDS = 12
"""How many fields are printed; all of them are in the output of ``--json``."""
_WHOLE = 160
"""Longer values are cut in the middle of what is equal."""


@dataclass(frozen=True)
class FieldDifference:
    path: str
    """``changes[0].value.spec.nodeName``."""
    recorded: str
    replayed: str


@dataclass(frozen=True)
class Difference:
    """The first event that differs."""

    index: int
    """From 0."""
    where: str
    """Time, actor and kind, as far as both have the same."""
    recorded: str
    """The whole event, where the two are not of the same sort; else empty."""
    replayed: str
    fields: tuple[FieldDifference, ...] = ()

    def __str__(self) -> str:
        lines = [f"event {self.index} differs" + (f": {self.where}" if self.where else "")]
        if self.recorded or self.replayed:
            return "\n".join([*lines, f"  recorded: {self.recorded}", f"  replayed: {self.replayed}"])
        for one in self.fields[:MOST_FIELDS]:
            lines += [f"  {one.path}", f"    recorded: {one.recorded}", f"    replayed: {one.replayed}"]
        more = len(self.fields) - MOST_FIELDS
        return "\n".join([*lines, *([f"  and {counted(more, 'more field')}"] if more > 0 else [])])


def first(recorded: Path, replayed: Path) -> tuple[Difference | None, int]:
    """The first difference of two run logs, and how many events are equal before it."""
    index = -1
    with Reader(recorded) as left_reader, Reader(replayed) as right_reader:
        left_events, right_events = payloads(left_reader), payloads(right_reader)
        while True:
            index += 1
            left, right = next(left_events, None), next(right_events, None)
            if left is None and right is None:
                return None, index
            if left != right:
                return _of(index, left, right), index


def payloads(reader: Reader) -> Iterator[bytes | str]:
    """Packed events; a text where the file is damaged so that no more can be read."""
    try:
        yield from reader.payloads(check=False)
    except RunLogError as error:
        yield str(error)


def _of(index: int, left: bytes | str | None, right: bytes | str | None) -> Difference:
    one, other = _event(left), _event(right)
    if isinstance(one, str) or isinstance(other, str) or one[1:3] != other[1:3]:
        return Difference(index, "", _told(one), _told(other))
    mine, its = {"time": _time(one), **_fields(one)}, {"time": _time(other), **_fields(other)}
    paths = [*mine, *(path for path in its if path not in mine)]
    found = [
        FieldDifference(path, *_around(mine.get(path, ABSENT), its.get(path, ABSENT)))
        for path in paths
        if mine.get(path) != its.get(path)
    ]
    if not found:  # the same event, packed in another way
        found = [FieldDifference("bytes", _bytes(left), _bytes(right))]
    time = f"{_time(one)} " if one[0] == other[0] else ""
    return Difference(index, f"{time}{one[1]} {one[2]}", "", "", tuple(found))


def _event(found: bytes | str | None) -> Entry | str:
    """A text where there is no event."""
    if found is None:
        return ENDS
    if isinstance(found, str):
        return found
    try:
        return unpack_event(found)
    except Exception as error:  # whatever damaged bytes make of msgpack
        return f"cannot be read: {error or type(error).__name__}"


def _time(event: Entry) -> str:
    return f"{event[0] / 1e9:.9f} s"


def _told(event: Entry | str) -> str:
    if isinstance(event, str):
        return event
    fields = ", ".join(f"{path}: {_cut(value, 0)}" for path, value in list(_fields(event).items())[:MOST_FIELDS])
    return f"{_time(event)} {event[1]} {event[2]} ({fields})"


def _fields(event: Entry) -> dict[str, str]:
    """Every value of the event, by its path."""
    data: dict[str, Any] = event[3]
    if isinstance(data, Transaction):
        data = {**data, "changes": [_change(change) for change in data.get("changes", ())]}
    return dict(_flat(data, ""))


def _change(change: object) -> Any:
    """A change of the store, with the object that it puts."""
    if not isinstance(change, list | tuple) or len(change) != 5:
        return change
    op, key, value, create_rev, version = change
    found: dict[str, Any] = {"op": "delete" if op else "put", "key": key, "create_rev": create_rev, "version": version}
    if value:
        found["value"] = _object(key, value)
    return found


def _object(key: object, value: Json) -> Any:
    parts = key.split("/") if isinstance(key, str) else []
    resource = resources.BY_PLURAL.get(parts[2]) if len(parts) > 3 else None
    if resource is None or not isinstance(value, bytes):
        return value
    try:
        return convert.to_json(resource.message.FromString(value))
    except (DecodeError, ValueError):
        return value


def _flat(value: Json, path: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict) and value:
        for key, each in value.items():
            yield from _flat(each, f"{path}.{key}" if path else str(key))
    elif isinstance(value, list | tuple) and value:
        for index, each in enumerate(value):
            yield from _flat(each, f"{path}[{index}]")
    elif path or value:
        yield path or "data", _bytes(value) if isinstance(value, bytes) else str(value)


def _bytes(value: Json) -> str:
    if not isinstance(value, bytes):
        return str(value)
    return f"{counted(len(value), 'byte')}, CRC-32 {zlib.crc32(value):08x}"


def _around(left: str, right: str) -> tuple[str, str]:
    """Both whole if they are short, else what surrounds the first difference."""
    place = next((n for n, (a, b) in enumerate(zip(left, right, strict=False)) if a != b), min(len(left), len(right)))
    return _cut(left, place), _cut(right, place)


def _cut(text: str, place: int) -> str:
    if len(text) <= _WHOLE:
        return text
    begin = max(0, min(place - _WHOLE // 2, len(text) - _WHOLE))
    return ("… " if begin else "") + text[begin : begin + _WHOLE] + (" …" if begin + _WHOLE < len(text) else "")
