"""The sort of every field of every accepted kind: the tables of the API groups, put together and walked.

To accept another kind, add it to ``ACCEPTED`` of the module of its API group and sort the fields of its messages there;
:func:`walk` shows which are missing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from google.protobuf.descriptor import Descriptor, FieldDescriptor

from kemu.emulated.objects import resources
from kemu.emulated.objects.conversion import descriptors
from kemu.emulated.objects.fields import (
    apps_v1,
    batch_v1,
    core_v1,
    kept_kinds,
    meta_v1,
    other_groups,
    quotas,
    resource_v1,
    storage_v1,
)
from kemu.emulated.objects.fields.sorts import Parts, Sort
from kemu.emulated.objects.fields.unsimulated import UNSIMULATED

_GROUPS = (core_v1, quotas, storage_v1, other_groups, apps_v1, batch_v1, resource_v1, kept_kinds)

ACCEPTED = tuple(kind for group in _GROUPS for kind in group.ACCEPTED)
"""Kinds that scenarios may hold: they mean something without a controller, or have theirs."""

REFUSED_KINDS: Mapping[str, str] = {kind: one.why for kind, one in UNSIMULATED.items() if kind in resources.BY_KIND}
"""Kinds that the API server stores but on which no component acts, and why; scenarios that hold them are refused."""

SORTS: Mapping[str, Sort] = meta_v1.SORTS | {key: sort for group in _GROUPS for key, sort in group.SORTS.items()}
"""By ``Message.field``."""


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a kind. Fields below a field that is sorted as a whole do not appear."""

    path: str
    """As users write it: ``spec.volumes[].emptyDir``."""
    key: str
    """As the tables name it: ``VolumeSource.emptyDir``."""
    sort: Sort | None
    """None: it is not sorted."""


def walk(kind: str) -> Iterator[Field]:
    """The fields of a kind, in the order of its messages."""
    yield from _walk(resources.BY_KIND[kind].message.DESCRIPTOR, "")


def _walk(descriptor: Any, path: str) -> Iterator[Field]:
    for field in descriptor.fields:
        key = f"{descriptor.name}.{field.name}"
        sort = SORTS.get(key)
        here = path if descriptors.is_inline(field) else f"{path}.{field.name}".removeprefix(".")
        if field.is_repeated and descriptors.map_value(field) is None:
            here += "[]"
        if isinstance(sort, Parts):
            yield from _walk(field.message_type, here)
        else:
            yield Field(here, key, sort)


@lru_cache(1024)
def parts_of(descriptor: Descriptor) -> tuple[tuple[FieldDescriptor, Sort | None], ...]:
    """The fields of a message and their sorts."""
    return tuple((field, SORTS.get(f"{descriptor.name}.{field.name}")) for field in descriptor.fields)
