"""JSON patches as clients send them; :mod:`kemu.emulated.objects.conversion.json_operations` carries them out."""

from __future__ import annotations

import json
from typing import Any

from kemu.emulated.apiserver.registry import bodies
from kemu.emulated.objects.conversion import go_syntax, sizes
from kemu.errors import BadRequest, RequestEntityTooLarge

MAX_OPERATIONS = 10_000
_FIELDS = ("op", "path", "from", "value")


def parse(text: bytes) -> list[Any]:
    """Raises :class:`kemu.errors.BadRequest` unless the text is a list of operations."""
    sizes.check_json(text)
    if problem := go_syntax.problem(text):
        raise BadRequest(f"error decoding patch: {problem}")
    try:
        found = json.loads(text, object_pairs_hook=bodies.mapping)
    except (ValueError, RecursionError) as error:
        raise BadRequest(f"error decoding patch: {error}") from None
    return check(found)


def check(found: Any) -> list[Any]:
    """The operations of a patch. Raises :class:`kemu.errors.BadRequest`."""
    if not isinstance(found, list):
        raise BadRequest(
            f"error decoding patch: json: cannot unmarshal {bodies.go_kind(found)} into Go value of type"
            " []handlers.jsonPatchOp"
        )
    for one in found:
        if not isinstance(one, dict):
            kind = bodies.go_kind(one)
            raise BadRequest(
                f"error decoding patch: json: cannot unmarshal {kind} into Go value of type handlers.jsonPatchOp"
            )
        for name in ("op", "path", "from"):
            if not isinstance(one.get(name, ""), str):
                kind = bodies.go_kind(one[name])
                raise BadRequest(
                    f"error decoding patch: json: cannot unmarshal {kind} into Go struct field jsonPatchOp.{name} of"
                    " type string"
                )
    if len(found) > MAX_OPERATIONS:
        why = f"The allowed maximum operations in a JSON patch is {MAX_OPERATIONS}, got {len(found)}"
        raise RequestEntityTooLarge(why)
    return found


def problems(operations: list[Any]) -> list[str]:
    """Fields that an operation does not have, and those that stand twice."""
    return [
        f'json patch unknown field "[{index}].{name}"'
        for index, one in enumerate(operations)
        for name in one
        if name not in _FIELDS
    ] + [f"json patch {text}" for text in bodies.duplicates(operations)]
