"""What a mutation of a MutatingAdmissionPolicy makes of an object (``policy/mutating/patch``)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from kemu.emulated.apiserver.admission.external import versions
from kemu.emulated.apiserver.admission.external.attributes import Attributes, Matched
from kemu.emulated.apiserver.admission.external.conditions import OBJECT, Activation
from kemu.emulated.apiserver.admission.external.webhooks import patched, replace
from kemu.emulated.objects.conversion import json_operations
from kemu.emulated.objects.managed_fields import schemas, values
from kemu.emulated.objects.plain import Json
from kemu.emulated.objects.validation.extensions.admission_registration import APPLY, PATCH
from kemu.errors import KemuError
from kemu.messages.k8s import admissionregistration_v1_pb2 as v1

if TYPE_CHECKING:
    from kemu.emulated.cel.values import Value


class BadMutation(KemuError):
    """It does not fit to the object; the text says why."""


async def mutate(mutation: v1.Mutation, activation: Activation, attributes: Attributes, matched: Matched) -> bool:
    """Change the object; whether it is another one then. Raises Failed, OutOfBudget, BadMutation and ApiError."""
    if mutation.patchType == "JSONPatch":
        after = _patched(activation.evaluate(PATCH, mutation.jsonPatch.expression), attributes, matched)
    else:
        after = _applied(activation.evaluate(APPLY, mutation.applyConfiguration.expression), attributes, matched)
    if after is None:
        return False
    return replace(attributes, await versions.back(attributes, matched, after), "an admission policy")


def _patched(operations: Value, attributes: Attributes, matched: Matched) -> dict[str, Any] | None:
    """None: a test of the patch fails, so that nothing is to change."""
    from kemu.emulated import cel

    before, _ = attributes.seen(matched)
    assert before is not None
    for one in operations:
        _check_names(getattr(one, "fields", {}).get("value"))
    try:
        return patched(before, cel.plain(operations))
    except json_operations.DoesNotApply as error:
        if error.is_test:
            return None
        raise BadMutation(f"JSON Patch: {error}") from None


def _applied(made: Value, attributes: Attributes, matched: Matched) -> dict[str, Any]:
    from kemu.emulated import cel

    _check_names(made)
    before, _ = attributes.seen(matched)
    assert before is not None
    api_version, kind = before["apiVersion"], before["kind"]
    config = {"apiVersion": api_version, "kind": kind, **cel.plain(made)}
    name = schemas.find(api_version, kind)
    shape = schemas.resolve(name) if name is not None else schemas.resolve("any")
    try:
        values.check(shape, config)
    except ValueError as error:
        why = f"error applying patch: failed to convert patch object to typed object: {error}"
        raise BadMutation(why) from None
    atomics = list(_atomics(shape, config, ""))
    if atomics:
        why = f"invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: {', '.join(atomics)}"
        raise BadMutation(f"error applying patch: {why}")
    try:
        merged = values.merge(shape, before, config)
    except ValueError as error:
        raise BadMutation(f"error applying patch: failed to merge patch: {error}") from None
    assert isinstance(merged, dict)
    return merged


def _atomics(shape: schemas.Type, value: Json, path: str) -> Iterator[str]:
    """``findAtomics``."""
    shape = schemas.shape(shape, value)
    if isinstance(value, dict):
        if shape.is_atomic:
            yield path
        for key, one in value.items():
            inner = schemas.element_of(shape, key)
            if inner is not None:
                yield from _atomics(inner, one, f"{path}.{key}")
    elif isinstance(value, list):
        if shape.is_atomic:
            yield path
        for index, one in enumerate(value):
            yield from _atomics(schemas.resolve(shape.element), one, f"{path}[{index}]")


def _check_names(value: Value, path: str = OBJECT) -> None:
    """``CheckTypeNamesMatchFieldPathNames``: an object stands at the path that its type names."""
    name, fields = getattr(value, "type_name", ""), getattr(value, "fields", None)
    if isinstance(value, list | tuple):
        for one in value:
            _check_names(one, path)
    elif isinstance(fields, dict) and name.startswith(OBJECT):
        if name != path and path != OBJECT:
            raise BadMutation(
                f"type mismatch: unexpected type name {name!r}, expected {path!r}, which matches field name path"
            )
        for key, one in fields.items():
            _check_names(one, f"{name}.{key}")
