"""The checks of definitions that need their schemas; the others are in :mod:`kemu.emulated.objects.validation`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from kemu.emulated.apiserver import request_warnings
from kemu.emulated.objects.conversion import convert
from kemu.emulated.objects.validation import kinds
from kemu.emulated.objects.validation.causes import duplicate, invalid, required
from kemu.emulated.objects.validation.extensions import definitions as plain_checks
from kemu.emulated.schemas import formats, paths, problems, structural
from kemu.emulated.schemas.definitions import checks as schema_checks
from kemu.errors import Cause
from kemu.messages.k8s.apiextensions_v1_pb2 import CustomResourceDefinition, CustomResourceDefinitionVersion

MAX_SELECTABLE_FIELDS = 8


def validate_create(definition: CustomResourceDefinition) -> list[Cause]:
    found = kinds.validate_create(definition)
    _check_schemas(definition, None, found)
    if not found and request_warnings.are_heard():
        _warn_of_formats(_formats_of(definition))
    return found


def validate_update(new: CustomResourceDefinition, old: CustomResourceDefinition) -> list[Cause]:
    found = kinds.validate_update(new, old)
    _check_schemas(new, old, found)
    if not found and request_warnings.are_heard() and new.spec != old.spec:
        before = set(_formats_of(old))
        _warn_of_formats(one for one in _formats_of(new) if one not in before)
    return found


def _warn_of_formats(unknown: Iterable[str]) -> None:
    for one in unknown:
        request_warnings.warn(f"unrecognized format {json.dumps(one, ensure_ascii=False)}")


def _formats_of(definition: CustomResourceDefinition) -> Iterator[str]:
    """Those that mean nothing (``getUnrecognizedFormatsInCRD``)."""
    for version in definition.spec.versions:
        if version.schema.HasField("openAPIV3Schema"):
            yield from formats.unrecognized(_schema(version))


def _check_schemas(new: CustomResourceDefinition, old: CustomResourceDefinition | None, found: list[Cause]) -> None:
    before = {one.name: one for one in old.spec.versions} if old is not None else {}
    has_any_status = any(one.subresources.HasField("status") for one in new.spec.versions)
    for path, version in plain_checks.places(new, "schema"):
        if version.schema.HasField("openAPIV3Schema"):
            known = before.get(version.name)
            is_unchanged = known is not None and known.schema == version.schema
            has_status = has_any_status if path == "spec.validation" else version.subresources.HasField("status")
            schema_checks.check(_schema(version), path, found, has_status=has_status, is_unchanged=is_unchanged)
    for path, version in plain_checks.places(new, "selectableFields"):
        if version.selectableFields:
            _check_selectable(version, before.get(version.name), path, found)


def _schema(version: CustomResourceDefinitionVersion) -> dict[str, Any]:
    return convert.to_json(version.schema.openAPIV3Schema)


def _check_selectable(
    version: CustomResourceDefinitionVersion,
    before: CustomResourceDefinitionVersion | None,
    path: str,
    found: list[Cause],
) -> None:
    """``ValidateCustomResourceSelectableFields``."""
    if not version.schema.HasField("openAPIV3Schema"):
        found.append(invalid(path, "", "may only be set when `version.schema.openAPIV3Schema` is not included"))
        return
    node = structural.parse(_schema(version))
    seen: set[str] = set()
    for index, one in enumerate(version.selectableFields):
        here, text = f"{path}[{index}].jsonPath", one.jsonPath
        if not text:
            found.append(required(here))
            continue
        try:
            joined, target = paths.resolve(text, node, has_brackets=False)
        except ValueError as error:
            found.append(invalid(here, text, f"is an invalid path: {error}"))
            continue
        if joined.partition(".")[0] == "metadata":
            found.append(invalid(here, text, "must not point to fields in metadata"))
        if target is None or target.type not in ("string", "boolean", "integer"):
            why = (
                "must point to a field of type string, boolean or integer. Enum string fields and strings with formats "
                "are allowed."
            )
            found.append(invalid(here, text, why))
        if joined in seen:
            found.append(duplicate(here, text))
        seen.add(joined)
    had_too_many = before is not None and list(before.selectableFields) == list(version.selectableFields)
    if len(seen) > MAX_SELECTABLE_FIELDS and not had_too_many:
        found.append(problems.too_many(path, len(seen), MAX_SELECTABLE_FIELDS))
