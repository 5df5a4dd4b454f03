"""Settings as dataclasses: each field states its shape, its document and its default once.

    @dataclass(frozen=True)
    class ScaleDown:
        unneededTime: float = setting(SECONDS, "How long a node must be unneeded; {default}.", "10m")

    keys(ScaleDown)              the keys of a scenario, with their schema
    read(ScaleDown, data)        the settings, from values that those keys have checked
    rows(ScaleDown)              the rows of a table in the documents

A default is written as a user would write it, and read by the shape, so it cannot differ from what the document says.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from kemu import errors
from kemu.emulated.settings.documents import Document
from kemu.emulated.settings.shapes import INVALID, Key, Record, Report, Shape

Settings = TypeVar("Settings")

_KEY = "kemu.setting"


@dataclass(frozen=True)
class _Declared:
    """What a field says beside its name and type."""

    shape: Shape
    doc: str
    default: object


def setting(shape: Shape, doc: str, default: object) -> Any:
    """A field of a dataclass of settings. ``{default}`` in ``doc`` stands for the default as it was written.

    Raises ValueError for a default that the shape refuses.
    """
    problems: list[errors.Problem] = []
    value = shape.check(default, (), Report(Document("", default), problems))
    if value is INVALID or problems:
        raise ValueError(f"{default!r} is no default: {problems[0].message}")
    metadata = {_KEY: _Declared(shape, doc.replace("{default}", str(default)), default)}
    if isinstance(value, dict | list):
        return dataclasses.field(default_factory=lambda: type(value)(value), metadata=metadata)
    return dataclasses.field(default=value, metadata=metadata)


def section(kind: type[Any], doc: str) -> Any:
    """A field whose value is another dataclass of settings."""
    return dataclasses.field(default_factory=kind, metadata={_KEY: _Declared(Record(keys(kind)), doc, kind)})


def keys(kind: type[Any]) -> dict[str, Key]:
    """The keys that a user may write, by name."""
    return {name: Key(one.shape, one.doc) for name, one in _declared(kind)}


def read(kind: type[Settings], data: Mapping[str, Any]) -> Settings:
    """The settings, from values that were checked by :func:`keys`. Other keys of ``data`` are not for them."""
    values = {
        name: read(one.default, data[name]) if isinstance(one.default, type) else data[name]
        for name, one in _declared(kind)
        if name in data
    }
    return kind(**values)


def rows(kind: type[Any]) -> Iterator[tuple[str, str, str]]:
    """Name, default and document of each setting; those of a section stand below its name, with a point between."""
    for name, one in _declared(kind):
        if isinstance(one.default, type):
            yield from ((f"{name}.{inner}", default, doc) for inner, default, doc in rows(one.default))
        else:
            default = str(one.default).lower() if isinstance(one.default, bool) else str(one.default)
            yield name, default, one.doc


def _declared(kind: type[Any]) -> Iterator[tuple[str, _Declared]]:
    for one in dataclasses.fields(kind):
        if _KEY in one.metadata:
            yield one.name, one.metadata[_KEY]
