"""Every field of every kind has its sort, and what is refused is refused by name."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from google.protobuf.descriptor import FieldDescriptor

from kemu.emulated.objects import resources
from kemu.emulated.objects.conversion import convert, descriptors
from kemu.emulated.objects.fields import refusals, scheduler_configuration, tables
from kemu.emulated.objects.fields.sorts import Parts, Refused
from kemu.emulated.scheduler.configuration import configurations
from kemu.messages.k8s import core_v1_pb2


def test_every_kind_is_accepted_or_refused() -> None:
    assert sorted([*tables.ACCEPTED, *tables.REFUSED_KINDS]) == sorted(resources.BY_KIND)


@pytest.mark.parametrize("kind", tables.ACCEPTED)
def test_every_field_is_sorted(kind: str) -> None:
    assert [field.path for field in tables.walk(kind) if field.sort is None] == []


def test_every_entry_names_a_field() -> None:
    """An entry that no kind reaches is out of date, or has a slip of the pen."""
    reached = {field.key for kind in tables.ACCEPTED for field in tables.walk(kind)}
    for kind in tables.ACCEPTED:
        reached.update(key for key, _ in _parts(resources.BY_KIND[kind].message.DESCRIPTOR))
    assert [key for key in tables.SORTS if key not in reached] == []


def _parts(descriptor: Any) -> Iterator[tuple[str, FieldDescriptor]]:
    """The fields whose own fields are sorted one by one."""
    for field, sort in tables.parts_of(descriptor):
        if isinstance(sort, Parts):
            yield f"{descriptor.name}.{field.name}", field
            yield from _parts(field.message_type)


def _refused(kind: str) -> Iterator[tuple[str, list[FieldDescriptor], Refused]]:
    """Every refused field of a kind: its path, with 0 for every index, and the fields that lead to it."""

    def below(descriptor: Any, path: str, way: list[FieldDescriptor]) -> Iterator[Any]:
        for field, sort in tables.parts_of(descriptor):
            here = path if descriptors.is_inline(field) else f"{path}.{field.name}".removeprefix(".")
            if isinstance(sort, Refused):
                yield here, [*way, field], sort
            elif isinstance(sort, Parts):
                yield from below(field.message_type, f"{here}[0]" if field.is_repeated else here, [*way, field])

    return below(resources.BY_KIND[kind].message.DESCRIPTOR, "", [])


def _set(message: Any, way: list[FieldDescriptor], value: Any) -> None:
    """Set the field at the end of the way; ``value`` None: to whatever is not a default."""
    for field in way[:-1]:
        below = getattr(message, field.name)
        message = below.add() if field.is_repeated else below
        if not field.is_repeated:
            message.SetInParent()
    last = way[-1]
    if last.is_repeated:
        getattr(message, last.name).add()
    elif last.message_type is not None:
        getattr(message, last.name).SetInParent()
    else:
        setattr(message, last.name, ("7" if last.type == last.TYPE_STRING else 7) if value is None else value)


CASES = [(kind, path, way, sort) for kind in tables.ACCEPTED for path, way, sort in _refused(kind)]


@pytest.mark.parametrize(("kind", "path", "way", "sort"), CASES, ids=[f"{kind}-{path}" for kind, path, _, _ in CASES])
def test_a_refused_field_is_named(kind: str, path: str, way: list[FieldDescriptor], sort: Refused) -> None:
    message = resources.BY_KIND[kind].message()
    _set(message, way, None)
    assert [(cause.field, cause.message) for cause in refusals.in_object(message)] == [
        (path, f"kemu does not simulate this field: {sort.why}")
    ]
    for value in sort.unless:
        message = resources.BY_KIND[kind].message()
        _set(message, way, value)
        assert refusals.in_object(message) == []


def test_the_samples_are_there() -> None:
    paths = {f"{kind} {path}" for kind, path, _, _ in CASES}
    assert {
        "Pod spec.volumes[0].glusterfs",
        "Pod spec.securityContext.sysctls",
        "ReplicaSet spec.template.spec.volumes[0].glusterfs",
        "StatefulSet spec.template.spec.securityContext.sysctls",
    } <= paths


def test_all_refused_fields_are_named_at_once() -> None:
    pod = convert.from_json(
        core_v1_pb2.Pod,
        {
            "metadata": {"name": "a"},
            "spec": {
                "volumes": [{"name": "x", "glusterfs": {"endpoints": "x", "path": "x"}}],
                "securityContext": {"sysctls": [{"name": "x", "value": "1"}]},
                "containers": [{"name": "a"}],
            },
        },
    )
    assert [cause.field for cause in refusals.in_object(pod)] == [
        "spec.volumes[0].glusterfs",
        "spec.securityContext.sysctls",
    ]


# Configurations -------------------------------------------------------------------------------------------------------


def test_every_field_of_a_scheduler_configuration_is_sorted() -> None:
    """A whole configuration: every field that kemu's scheduler reads, and no other, has its sort."""
    known: list[str] = []
    for path in configurations.field_paths():
        covered = [key for key in scheduler_configuration.SORTS if path == key or path.startswith(f"{key}.")]
        assert covered, f"{path} is not sorted"
        known += covered
    assert [key for key in scheduler_configuration.SORTS if key not in known] == []


def test_refused_fields_of_a_scheduler_configuration_are_named_at_once() -> None:
    data = {
        "clientConnection": {"qps": 50, "burst": 100},
        "extenders": [{"urlPrefix": "kemu://extender/a", "tlsConfig": {}}, {"tlsConfig": {"insecure": True}}],
    }
    assert [cause.field for cause in refusals.in_configuration(data, scheduler_configuration.SORTS)] == [
        "extenders[1].tlsConfig"
    ]
