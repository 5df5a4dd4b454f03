"""Schemas of OpenAPI v3 as version 2 says them, and what other API servers add to that document.

Mirrors ``pkg/aggregator`` of kube-openapi.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from kemu.emulated.gateway.openapi.schemas import REFERENCE

_DEFINITIONS = "#/definitions/"
_KINDS = "x-kubernetes-group-version-kind"
_JUNCTORS = ("allOf", "anyOf", "oneOf", "not", "nullable", "default")


def definitions(schemas: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """By name. Defaults go, as from kube-apiserver's document; a choice of types becomes a string."""
    return {name: _converted(schema) for name, schema in schemas.items()}


def _converted(schema: dict[str, Any]) -> dict[str, Any]:
    found = {word: value for word, value in schema.items() if word not in _JUNCTORS}
    if "oneOf" in schema:
        found["type"] = "string"
    reference = schema.get("$ref") or (schema["allOf"][0].get("$ref") if "allOf" in schema else None)
    if reference:
        found["$ref"] = _DEFINITIONS + reference.removeprefix(REFERENCE)
    if "properties" in schema:
        found["properties"] = {name: _converted(one) for name, one in schema["properties"].items()}
    for word in ("items", "additionalProperties"):
        if isinstance(schema.get(word), dict):
            found[word] = _converted(schema[word])
    return found


def restricted(document: Mapping[str, Any], prefix: str) -> dict[str, Any]:
    """The paths that begin so, without the definitions that only others use (``FilterSpecByPaths``)."""
    paths, found = document["paths"], document.get("definitions") or {}
    kept = {path: item for path, item in paths.items() if path.startswith(prefix)}
    for kind in (kind for one in found.values() for kind in one.get(_KINDS, ())):
        _kind(kind)
    before, after = _used(paths, found), _used(kept, found)
    return {
        "paths": kept,
        "definitions": {name: one for name, one in found.items() if name in after or name not in before},
    }


def merge(into: dict[str, Any], other: Mapping[str, Any]) -> None:
    """``MergeSpecsIgnorePathConflictRenamingDefinitionsAndParameters``. Definitions of one name that differ get another
    one: ``NAME_v2``."""
    known, more = into["definitions"], other["definitions"]
    renames: dict[str, str] = {}
    for name, one in more.items():
        if name not in known or _is_alike(known[name], one):
            continue
        number = 2
        while (found := known.get(f"{name}_v{number}")) is not None and not _is_alike(found, one):
            number += 1
        if found is None:
            while f"{name}_v{number}" in more or f"{name}_v{number}" in renames.values():
                number += 1
        renames[name] = f"{name}_v{number}"
    for name, one in more.items():
        into_name, renamed = renames.get(name, name), _renamed(one, renames)
        if into_name in known:
            known[into_name] = _with_kinds(known[into_name], renamed)
        else:
            known[into_name] = renamed
    for path, item in other["paths"].items():
        into["paths"].setdefault(path, _renamed(item, renames))


def _used(paths: Mapping[str, Any], found: Mapping[str, Any]) -> set[str]:
    """Names of definitions that can be reached from these paths."""
    used: set[str] = set()
    left = [*_references(paths)]
    while left:
        name = left.pop()
        if name not in used:
            used.add(name)
            left += _references(found.get(name))
    return used


def _references(value: object) -> Iterator[str]:
    if isinstance(value, dict):
        reference = value.get("$ref")
        if isinstance(reference, str) and reference.startswith(_DEFINITIONS):
            yield reference.removeprefix(_DEFINITIONS)
    if isinstance(value, dict | list):
        for one in value.values() if isinstance(value, dict) else value:
            yield from _references(one)


def _renamed(value: Any, renames: Mapping[str, str]) -> Any:
    if not renames:
        return value
    if isinstance(value, list):
        return [_renamed(one, renames) for one in value]
    if not isinstance(value, dict):
        return value
    found = {word: _renamed(one, renames) for word, one in value.items()}
    reference = found.get("$ref")
    if isinstance(reference, str) and reference.removeprefix(_DEFINITIONS) in renames:
        found["$ref"] = _DEFINITIONS + renames[reference.removeprefix(_DEFINITIONS)]
    return found


def _is_alike(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """But for the kinds that they are of."""
    return {**one, _KINDS: None} == {**other, _KINDS: None}


def _with_kinds(one: dict[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """With the kinds of both."""
    kinds = [*one.get(_KINDS, ())]
    more = [kind for kind in other.get(_KINDS, ()) if kind not in kinds]
    return {**one, _KINDS: sorted([*kinds, *more], key=_kind)} if more else one


def _kind(kind: Mapping[str, str]) -> str:
    return f"{kind['group']}/{kind['version']}.{kind['kind']}"
