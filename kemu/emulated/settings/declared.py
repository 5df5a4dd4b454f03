"""Settings, each declared once: one field of a dataclass says its shape, default and meaning.

    @dataclass(frozen=True, kw_only=True)
    class ScaleDown:
        delay_after_add_s: float = setting(SECONDS, "After a scale-up, until nodes are removed; {default}.", "10m")

    Section(ScaleDown)             a shape: checks a mapping and makes a ScaleDown of it; is JSON Schema
    plain(found), restored(…)      to plain data, as configurations travel to actors, and back
    rows(ScaleDown)                the rows of a table in the documents

The key is the name of the field in camelCase without its unit (``delayAfterAdd``). The default is written as a user
writes it, and read by the same shape. Rules about several fields are a method ``complaints`` of the dataclass.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Any, NamedTuple, TypeVar

from kemu.emulated.objects.plain import Json
from kemu.emulated.settings.documents import Document, Path
from kemu.emulated.settings.shapes import INVALID, Key, ListOf, MapOf, Record, Report, Shape
from kemu.errors import Problem

REQUIRED: Any = object()
"""As a default: the key must stand there."""
ABSENT = None
"""As a default: the setting is None where the key does not stand there."""


T = TypeVar("T")
_UNIT = re.compile(r"_(s|ns)$")


class Complaint(NamedTuple):
    """What is wrong with a section as a whole."""

    path: Path
    """Below the section."""
    message: str
    suggestion: str = ""
    key: bool = False
    """The complaint is about the key, not about its value."""
    alone: bool = False
    """Only where nothing else is wrong with the section."""


@dataclass(frozen=True)
class _Setting:
    shape: Shape
    doc: str
    key: str
    default: object
    required: bool
    choice: bool
    beside: Mapping[str, str]
    inline: bool
    zero_is_default: bool
    note: str


def setting(
    shape: Shape,
    doc: str,
    default: Json = ABSENT,
    *,
    key: str = "",
    required: bool = False,
    choice: bool = False,
    beside: Iterable[str] | Mapping[str, str] = (),
    inline: bool = False,
    zero_is_default: bool = False,
    note: str = "",
) -> Any:
    """A field of a dataclass that is a :class:`Section`.

    ``doc``: a sentence, in which ``{default}`` stands for the default. ``default``: as a user writes it, or
    :data:`REQUIRED`. ``required``: the key must stand there although Python code may leave the field out. ``choice``:
    exactly one of the fields with this mark may stand there. ``beside``: the keys of choices beside which alone it may
    stand, perhaps with a doc for each; with ``choice``, exactly one of these. ``inline``: the keys of this section
    stand among those of the section around it. ``zero_is_default``: 0 stands for the default, as in many configurations
    of Kubernetes. ``note``: how far the setting acts as in Kubernetes, for the page of limits. Raises ValueError for a
    default that the shape refuses.
    """
    shown = "" if default is REQUIRED or default is ABSENT else _written(default)
    required = required or default is REQUIRED
    doc = doc.replace("{default}", shown)
    docs = {one: (beside[one] if isinstance(beside, Mapping) else "") or doc for one in beside}
    declared = _Setting(shape, doc, key, default, required, choice, docs, inline, zero_is_default, note)
    metadata = {"setting": declared}
    if default is REQUIRED:
        return field(metadata=metadata)
    made = None if default is ABSENT else _read(shape, default)
    if isinstance(made, list | dict):
        return field(default_factory=lambda: made.copy(), metadata=metadata)
    return field(default=made, metadata=metadata)


def _written(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _read(shape: Shape, written: Json) -> Any:
    problems: list[Problem] = []
    value = shape.check(written, (), Report(Document("", written), problems))
    if problems:
        raise ValueError(f"{written!r} is no default: {problems[0].message}")
    return value


@cache
def settings_of(cls: type) -> Mapping[str, tuple[str, _Setting]]:
    """By key: the name of the field, and what was declared."""
    found = {}
    for one in dataclasses.fields(cls):
        declared = one.metadata.get("setting")
        if declared is not None:
            found[declared.key or key_of(one.name)] = (one.name, declared)
    return found


def chosen(section: object) -> tuple[str, Any]:
    """Key and value of the choice that was made; empty and None: none was, or it is wrong."""
    cls: type = type(section)
    for key, (name, declared) in settings_of(cls).items():
        if declared.choice and not declared.beside and (found := getattr(section, name)) is not None:
            return key, found
    return "", None


def key_of(name: str) -> str:
    """The key of a field: ``delay_after_add_s`` is ``delayAfterAdd``."""
    first, *rest = _UNIT.sub("", name).split("_")
    return first + "".join(word.capitalize() for word in rest)


@dataclass(frozen=True)
class Section:
    """A mapping whose keys a dataclass declares; checked, an instance of it.

    A mistake in a key leaves its field at the default; without one that has none there is no instance.
    """

    cls: type
    shapes: Mapping[str, Shape] = field(default_factory=dict)
    """By key: shapes that are known only here, above the dataclass."""
    noun: str = ""
    """What the fields marked as choices are, as in "an event needs one action"."""
    choice_required: bool = True
    second_noun: str = ""
    """The same of those beside a choice."""
    more: Mapping[str, Key] = field(default_factory=dict)
    """Further keys, which are checked and have no effect."""

    @cached_property
    def record(self) -> Record:
        keys: dict[str, Key] = {}
        choices: dict[str, Key] = {}
        beside: dict[str, tuple[dict[str, Key], dict[str, Key]]] = {}
        for key, (_, declared) in settings_of(self.cls).items():
            if declared.inline:
                keys.update(self._inline(key, declared).record.keys)
                continue
            shape = self.shapes.get(key, declared.shape)
            for choice, doc in declared.beside.items():
                known = beside.setdefault(choice, ({}, {}))
                known[declared.choice][key] = Key(shape, doc, declared.required)
            if not declared.beside:
                (choices if declared.choice else keys)[key] = Key(shape, declared.doc, declared.required)
        keys.update(self.more)
        companions = {choice: Record(*known, self.second_noun) for choice, known in beside.items()}
        return Record(keys, choices, self.noun, companions, choice_required=self.choice_required)

    def check(self, value: Json, path: Path, report: Report) -> Any:
        before = len(report.problems)
        made = self.formed(value, path, report)
        if made is not INVALID:
            self._complain(made, path, report, alone=len(report.problems) == before)
        return made

    def formed(self, value: Json, path: Path, report: Report) -> Any:
        """The instance, each key checked by itself, before the rules about several of them."""
        checked = self.record.check(value, path, report)
        return INVALID if checked is INVALID else self._made(checked)

    def _made(self, checked: Mapping[str, Any]) -> Any:
        given: dict[str, Any] = {}
        extra = [key for key in checked if key in self.record.choices][1:]
        for key, (name, declared) in settings_of(self.cls).items():
            if declared.inline:
                given[name] = self._inline(key, declared)._made(checked)
            elif key in checked and key not in extra and not (declared.zero_is_default and checked[key] == 0):
                given[name] = checked[key]
            elif declared.default is REQUIRED:
                return INVALID
        return self.cls(**given)

    def _complain(self, made: object, path: Path, report: Report, *, alone: bool) -> None:
        for key, (name, declared) in settings_of(self.cls).items():
            if declared.inline:
                self._inline(key, declared)._complain(getattr(made, name), path, report, alone=alone)
        complaints: Callable[[], Iterator[Complaint]] | None = getattr(made, "complaints", None)
        for one in complaints() if complaints is not None else ():
            if alone or not one.alone:
                report.add((*path, *one.path), one.message, one.suggestion, key=one.key)

    def _inline(self, key: str, declared: _Setting) -> Section:
        shape = self.shapes.get(key, declared.shape)
        assert isinstance(shape, Section)
        return shape

    def schema(self) -> dict[str, Any]:
        return self.record.schema()


def plain(value: object) -> Any:
    """A section as plain data by names of fields, as configurations travel to actors; :func:`restored` reads it."""
    if dataclasses.is_dataclass(value):
        return {one.name: plain(getattr(value, one.name)) for one in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value


def restored(cls: type[T], data: Mapping[str, Any]) -> T:
    """The section that :func:`plain` made plain."""
    kind: type = cls
    fields = {name: declared.shape for name, declared in settings_of(kind).values()}
    return cls(**{name: _restored(fields.get(name), value) for name, value in data.items()})


def _restored(shape: Shape | None, value: Any) -> Any:
    if value is None:
        return None
    if isinstance(shape, Section):
        return restored(shape.cls, value)
    if isinstance(shape, ListOf):
        return [_restored(shape.item, item) for item in value]
    if isinstance(shape, MapOf):
        return {key: _restored(shape.item, item) for key, item in value.items()}
    return value


def rows(cls: type) -> Iterator[tuple[str, str, str]]:
    """Key, default and meaning of each setting, for the documents; those of a section below its key."""
    for key, (_, declared) in settings_of(cls).items():
        if isinstance(declared.shape, Section):
            yield from ((f"{key}.{inner}", default, doc) for inner, default, doc in rows(declared.shape.cls))
        elif declared.default is REQUIRED or declared.default is ABSENT:
            yield key, "", declared.doc
        else:
            yield key, _written(declared.default), declared.doc
