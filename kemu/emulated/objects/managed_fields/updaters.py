"""Whose the fields of an object are after an update or an apply (``structured-merge-diff/merge.Updater``).

kemu serves its own kinds in one version; managers of others are forgotten, as those of versions that are no longer
served are in Kubernetes. The versions of a custom kind have the same fields, and what a manager has in one, it has in
all; but where a webhook converts its objects, each manager's fields are judged in the version that it speaks.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from kemu.emulated.objects.managed_fields import fieldsets, values
from kemu.emulated.objects.managed_fields.fieldsets import FieldSet, Path
from kemu.emulated.objects.managed_fields.schemas import Type
from kemu.emulated.objects.plain import Json
from kemu.errors import KemuError


@dataclass(frozen=True, slots=True)
class Identity:
    """Who manages fields: a writer's name, what it does, and by which way."""

    manager: str
    operation: str
    api_version: str
    """Empty for those that apply: a manager applies one object, whichever version it speaks."""
    subresource: str


@dataclass(frozen=True, slots=True)
class Managed:
    """What one manager has."""

    fields: FieldSet
    api_version: str
    applied: bool


Managers = dict[Identity, Managed]
Filter = Callable[[FieldSet], FieldSet]


class Conflicts(KemuError):
    """An apply wants fields that others have. ``found``: in the order in which they are told."""

    def __init__(self, found: list[tuple[Identity, Path]]) -> None:
        super().__init__(f"{len(found)} conflicts")
        self.found = found


class Unconverted(KemuError, ValueError):
    """An object cannot be had in the version that a manager speaks."""


class Versions(Protocol):
    """The versions of a kind that have different fields: a webhook converts its objects."""

    def type_of(self, version: str) -> Type: ...

    def convert(self, obj: Json, version: str) -> Json:
        """A complete object in another version. Raises :class:`Unconverted`."""
        ...


class Home:
    """The version that a request speaks, and the others in which the kind is served."""

    def __init__(
        self, kind: Type, version: str, others: Collection[str] = (), versions: Versions | None = None
    ) -> None:
        """``versions``: None where all have the same fields."""
        self.kind = kind
        self.version = version
        self._others = others
        self._versions = versions

    def serves(self, version: str) -> bool:
        return version == self.version or version in self._others

    def differs(self, version: str) -> bool:
        """Whether it has other fields."""
        return self._versions is not None and version != self.version

    def type_of(self, version: str) -> Type:
        return self._versions.type_of(version) if self._versions is not None and self.differs(version) else self.kind

    def turned(self, obj: Json, before: str, version: str, what: str) -> Json:
        """An object of version ``before`` in another one. Raises :class:`Unconverted`."""
        if self._versions is None or before == version:
            return obj
        if self.version not in (before, version):
            obj = self.turned(obj, before, self.version, what)
        try:
            found = self._versions.convert(obj, version)
            values.check(self.type_of(version), found)
        except ValueError as error:
            raise Unconverted(f"{what}{error}") from None
        return found


def update(
    home: Home,
    old: Json,
    new: Json,
    managers: Mapping[Identity, Managed],
    by: Identity,
    keep: Filter,
) -> Managers:
    """After ``by`` has made ``new`` of ``old``, both as Go writes them. ``keep``: see :mod:`.resets`.

    Raises :class:`kemu.emulated.objects.managed_fields.values.Mistyped` and :class:`Unconverted`.
    """
    found = _reconciled(home, old, managers)
    comparison = _compared(home.kind, old, new, keep)
    found = _taken(home, old, new, found, comparison, by, keep, force=True)
    mine = found[by].fields if by in found else {}
    mine = fieldsets.difference(mine, comparison.removed)
    mine = fieldsets.union(fieldsets.union(mine, comparison.modified), comparison.added)
    mine = keep(mine)
    if mine:
        found[by] = Managed(mine, home.version, False)
    else:
        found.pop(by, None)
    return found


def apply(
    home: Home,
    live: Json,
    config: Json,
    managers: Mapping[Identity, Managed],
    by: Identity,
    keep: Filter,
    *,
    force: bool,
) -> tuple[Any, Managers]:
    """The object after ``by`` has applied ``config``, and whose its fields are then. ``live``: as Go writes it.

    Raises :class:`Conflicts`, :class:`Unconverted`, and
    :class:`kemu.emulated.objects.managed_fields.values.Mistyped`.
    """
    kind = home.kind
    found = _reconciled(home, live, managers)
    merged = values.merge(kind, live, config)
    last = found.get(by)
    found[by] = Managed(keep(values.fields_of(kind, config)), home.version, True)
    new = _pruned(home, merged, found, last) if last is not None and last.fields else merged
    return new, _taken(home, live, new, found, _compared(kind, live, new, keep), by, keep, force=force)


def _compared(kind: Type, old: Json, new: Json, keep: Filter) -> values.Comparison:
    found = values.compare(kind, old, new)
    return values.Comparison(keep(found.added), keep(found.modified), keep(found.removed))


def _reconciled(home: Home, live: Json, managers: Mapping[Identity, Managed]) -> Managers:
    found: Managers = {}
    for who, one in managers.items():
        if home.serves(one.api_version):
            home.turned(live, home.version, one.api_version, "")
            fields = values.reconciled(home.type_of(one.api_version), one.fields)
            found[who] = Managed(fields, one.api_version, one.applied)
    return found


def _taken(
    home: Home,
    old: Json,
    new: Json,
    managers: Managers,
    comparison: values.Comparison,
    by: Identity,
    keep: Filter,
    *,
    force: bool,
) -> Managers:
    """Others lose what has changed, by the version that they speak (``Updater.update``)."""
    changes = {home.version: comparison}
    conflicts = {}
    for who, one in managers.items():
        if who == by:
            continue
        version = one.api_version if home.differs(one.api_version) else home.version
        if version not in changes:
            before = home.turned(old, home.version, version, "failed to convert old object: ")
            after = home.turned(new, home.version, version, "failed to convert new object: ")
            changes[version] = _compared(home.type_of(version), before, after, keep)
        changed = fieldsets.union(changes[version].modified, changes[version].added)
        if lost := fieldsets.intersection(one.fields, changed):
            conflicts[who] = lost
    if conflicts and not force:
        raise Conflicts([(who, path) for who, lost in conflicts.items() for path in fieldsets.iterate(lost)])
    found: Managers = {}
    for who, one in managers.items():
        fields = one.fields
        if who != by:
            if who in conflicts:
                fields = fieldsets.difference(fields, conflicts[who])
            fields = fieldsets.difference(fields, changes.get(one.api_version, comparison).removed)
        if fields:
            found[who] = Managed(fields, one.api_version, one.applied)
    return found


def _pruned(home: Home, merged: Json, managers: Managers, last: Managed) -> Json:
    """Without what the manager applied last time and not this time, unless another manager has it
    (``Updater.prune``)."""
    version = last.api_version if home.differs(last.api_version) else home.version
    kind = home.type_of(version)
    merged = home.turned(merged, home.version, version, "failed to convert merged object to last applied version: ")
    before = values.with_named(kind, last.fields)
    pruned = values.remove(kind, merged, before)
    owned: dict[str, FieldSet] = {version: {}}
    for one in managers.values():
        spoken = one.api_version if home.differs(one.api_version) else home.version
        owned[spoken] = fieldsets.union(owned.get(spoken, {}), one.fields)
    there, here = merged, version
    for spoken, fields in owned.items():
        there = home.turned(there, here, spoken, "failed to convert merged object: ")
        pruned = home.turned(pruned, here, spoken, "failed to convert pruned object: ")
        pruned = _kept(home.type_of(spoken), there, pruned, fields)
        here = spoken
    # What it never had stays where something else was cut around it (addBackDanglingItems).
    everything = values.with_named(kind, values.fields_of(kind, merged))
    pruned = home.turned(pruned, here, version, "failed to convert pruned object to last applied version: ")
    left = values.with_named(kind, values.fields_of(kind, pruned))
    doomed = fieldsets.intersection(fieldsets.difference(everything, left), before)
    found = values.remove(kind, merged, doomed)
    return home.turned(found, version, home.version, "failed to convert pruned object: ")


def _kept(kind: Type, merged: Json, pruned: Json, owned: FieldSet) -> Json:
    """What is pruned but for what others own (``addBackOwnedItemsForVersion``)."""
    everything = values.with_named(kind, values.fields_of(kind, merged))
    left = values.with_named(kind, values.fields_of(kind, pruned))
    kept = fieldsets.union(left, values.with_named(kind, owned))
    return values.remove(kind, merged, fieldsets.difference(everything, kept))
