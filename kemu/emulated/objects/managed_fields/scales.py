"""The entries of an object whose replicas are changed through its Scale (``managedfields.ScaleHandler``).

A Scale has no entries of its own: it is shown those of the object that are about the replicas, and what becomes of them
is carried over to the object.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kemu.emulated.objects.managed_fields import entries, fieldsets
from kemu.emulated.objects.managed_fields.entries import Entry, Times
from kemu.emulated.objects.managed_fields.fieldsets import Path
from kemu.emulated.objects.managed_fields.updaters import Managed, Managers

API_VERSION, KIND = "autoscaling/v1", "Scale"
_REPLICAS = ("f:spec", "f:replicas")
_ONLY_REPLICAS = fieldsets.of([_REPLICAS])


Paths = Mapping[str, Path | None]
"""By API versions of the object, where its replicas are; None: it has none there."""


def in_spec(version: str) -> Paths:
    """Of Kubernetes' own kinds."""
    return {version: _REPLICAS}


def to_scale(parent: Sequence[Entry], paths: Paths) -> list[Entry]:
    managed, when = entries.decode(parent)
    found: Managers = {}
    for who, one in managed.items():
        path = paths.get(one.api_version)
        if path is not None and fieldsets.has(one.fields, path):
            found[who] = Managed(_ONLY_REPLICAS, API_VERSION, one.applied)
    return entries.encode(found, when)


def to_parent(parent: Sequence[Entry], scale: Sequence[Entry], paths: Paths, version: str) -> list[Entry]:
    """``scale``: what has become of the entries of :func:`to_scale`. ``version``: that of the object."""
    managed, when = entries.decode(parent)
    scaled, _ = entries.decode(scale)
    found: Managers = {}
    times: Times = {}
    for who, one in managed.items():
        if one.api_version not in paths:
            continue
        fields, path = one.fields, paths[one.api_version]
        if path is not None and fieldsets.has(fields, path) and scaled.pop(who, None) is None:
            fields = fieldsets.difference(fields, fieldsets.of([path]))
        if fields:
            found[who] = Managed(fields, one.api_version, one.applied)
            if who in when:
                times[who] = when[who]
    for who, one in scaled.items():
        if fieldsets.has(one.fields, _REPLICAS):
            found[who] = Managed(fieldsets.of([paths[version] or _REPLICAS]), version, one.applied)
            times.pop(who, None)
            if who in when:
                times[who] = when[who]
    return entries.encode(found, times)
