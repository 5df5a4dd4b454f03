"""Schemas of OpenAPI v3 as version 2 says them."""

from __future__ import annotations

from typing import Any

from kemu.emulated.gateway.openapi.schemas import REFERENCE

_DEFINITIONS = "#/definitions/"
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
