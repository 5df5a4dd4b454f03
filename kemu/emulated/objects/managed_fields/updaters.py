"""Whose the fields of an object are after an update or an apply (``structured-merge-diff/merge.Updater``).

kemu serves its own kinds in one version; managers of others are forgotten, as those of versions that are no longer
served are in Kubernetes. The versions of a custom kind have the same fields: what a manager has in one, it has in all.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

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


def update(
    kind: Type,
    old: Json,
    new: Json,
    managers: Mapping[Identity, Managed],
    by: Identity,
    version: str,
    keep: Filter,
    others: Collection[str] = (),
) -> Managers:
    """After ``by`` has made ``new`` of ``old``, both as Go writes them. ``keep``: see :mod:`.resets`. ``others``: API
    versions in which the kind is served beside ``version``.

    Raises :class:`kemu.emulated.objects.managed_fields.values.Mistyped`.
    """
    found = _reconciled(kind, managers, version, others)
    comparison = _compared(kind, old, new, keep)
    found = _taken(found, comparison, by, force=True)
    mine = found[by].fields if by in found else {}
    mine = fieldsets.difference(mine, comparison.removed)
    mine = fieldsets.union(fieldsets.union(mine, comparison.modified), comparison.added)
    mine = keep(mine)
    if mine:
        found[by] = Managed(mine, version, False)
    else:
        found.pop(by, None)
    return found


def apply(
    kind: Type,
    live: Json,
    config: Json,
    managers: Mapping[Identity, Managed],
    by: Identity,
    version: str,
    keep: Filter,
    others: Collection[str] = (),
    *,
    force: bool,
) -> tuple[Any, Managers]:
    """The object after ``by`` has applied ``config``, and whose its fields are then. ``live``: as Go writes it;
    ``others`` as in :func:`update`.

    Raises :class:`Conflicts`, and :class:`kemu.emulated.objects.managed_fields.values.Mistyped`.
    """
    found = _reconciled(kind, managers, version, others)
    merged = values.merge(kind, live, config)
    last = found.get(by)
    found[by] = Managed(keep(values.fields_of(kind, config)), version, True)
    new = _pruned(kind, merged, found, last) if last is not None and last.fields else merged
    return new, _taken(found, _compared(kind, live, new, keep), by, force=force)


def _compared(kind: Type, old: Json, new: Json, keep: Filter) -> values.Comparison:
    found = values.compare(kind, old, new)
    return values.Comparison(keep(found.added), keep(found.modified), keep(found.removed))


def _reconciled(kind: Type, managers: Mapping[Identity, Managed], version: str, others: Collection[str]) -> Managers:
    return {
        who: Managed(values.reconciled(kind, one.fields), one.api_version, one.applied)
        for who, one in managers.items()
        if one.api_version == version or one.api_version in others
    }


def _taken(managers: Managers, comparison: values.Comparison, by: Identity, *, force: bool) -> Managers:
    """Others lose what has changed (``Updater.update``)."""
    changed = fieldsets.union(comparison.modified, comparison.added)
    conflicts = {}
    for who, one in managers.items():
        if who != by and (lost := fieldsets.intersection(one.fields, changed)):
            conflicts[who] = lost
    if conflicts and not force:
        raise Conflicts([(who, path) for who, lost in conflicts.items() for path in fieldsets.iterate(lost)])
    found: Managers = {}
    for who, one in managers.items():
        fields = one.fields
        if who != by:
            if who in conflicts:
                fields = fieldsets.difference(fields, conflicts[who])
            fields = fieldsets.difference(fields, comparison.removed)
        if fields:
            found[who] = Managed(fields, one.api_version, one.applied)
    return found


def _pruned(kind: Type, merged: Json, managers: Managers, last: Managed) -> Json:
    """Without what the manager applied last time and not this time, unless another manager has it
    (``Updater.prune``)."""
    before = values.with_named(kind, last.fields)
    pruned = values.remove(kind, merged, before)
    owned: FieldSet = {}
    for one in managers.values():
        owned = fieldsets.union(owned, one.fields)
    everything = values.with_named(kind, values.fields_of(kind, merged))
    left = values.with_named(kind, values.fields_of(kind, pruned))
    kept = fieldsets.union(left, values.with_named(kind, owned))
    pruned = values.remove(kind, merged, fieldsets.difference(everything, kept))
    # What it never had stays where something else was cut around it (addBackDanglingItems).
    left = values.with_named(kind, values.fields_of(kind, pruned))
    doomed = fieldsets.intersection(fieldsets.difference(everything, left), before)
    return values.remove(kind, merged, doomed)
