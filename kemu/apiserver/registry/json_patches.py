"""JSON Patch (RFC 6902), with what ``evanphx/json-patch`` makes of it: indices below zero count from the end."""

from __future__ import annotations

import copy
import json
from typing import Any

from kemu.errors import BadRequest, Invalid, RequestEntityTooLarge

MAX_OPERATIONS = 10_000
OPERATIONS = ("add", "remove", "replace", "move", "copy", "test")


def parse(text: bytes) -> list[dict[str, Any]]:
    """Raises :class:`kemu.errors.BadRequest` unless the text is a list of operations."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise BadRequest(f"error decoding patch: {error}") from None
    if not isinstance(found, list):
        kind = "object" if isinstance(found, dict) else "string" if isinstance(found, str) else "number"
        raise BadRequest(
            f"error decoding patch: json: cannot unmarshal {kind} into Go value of type []handlers.jsonPatchOp"
        )
    if len(found) > MAX_OPERATIONS:
        why = f"The allowed maximum operations in a JSON patch is {MAX_OPERATIONS}, got {len(found)}"
        raise RequestEntityTooLarge(why)
    if not all(isinstance(one, dict) and one.get("op") in OPERATIONS and _is_path(one.get("path")) for one in found):
        raise BadRequest("error decoding patch: each operation needs an op and a path")
    return found


def apply(data: dict[str, Any], operations: list[dict[str, Any]]) -> dict[str, Any]:
    """The data after all of the operations. Raises :class:`kemu.errors.Invalid` for one that does not fit."""
    root: list[Any] = [copy.deepcopy(data)]
    for one in operations:
        try:
            _apply(root, one)
        except (LookupError, TypeError, ValueError):
            raise Invalid("the server rejected our request due to an error in our request") from None
    if not isinstance(root[0], dict):
        raise Invalid("the server rejected our request due to an error in our request")
    return root[0]


def _apply(root: list[Any], one: dict[str, Any]) -> None:
    what, steps = one["op"], _steps(one["path"])
    if what == "remove":
        _remove(root, steps)
        return
    if what in ("move", "copy"):
        start = _steps(one["from"])
        value = _remove(root, start) if what == "move" else copy.deepcopy(_get(root, start))
    else:
        value = one["value"]
    if what == "test":
        if _get(root, steps) != value:
            raise ValueError("test failed")
        return
    if what == "replace":
        _get(root, steps)
        parent = _get(root, steps[:-1])
        parent[_key(parent, steps[-1])] = value
        return
    parent, step = _get(root, steps[:-1]), steps[-1]
    if isinstance(parent, list):
        index = len(parent) if step == "-" else _index(parent, step, len(parent))
        parent.insert(index, value)
    else:
        parent[step] = value


def _is_path(path: Any) -> bool:
    return isinstance(path, str) and (not path or path.startswith("/"))


def _steps(path: str) -> list[Any]:
    """From the list that holds the document as its only element."""
    return [0, *(step.replace("~1", "/").replace("~0", "~") for step in path.split("/")[1:])]


def _get(value: Any, steps: list[Any]) -> Any:
    for step in steps:
        value = value[_key(value, step)]
    return value


def _remove(root: list[Any], steps: list[Any]) -> Any:
    parent = _get(root, steps[:-1])
    return parent.pop(_key(parent, steps[-1]))


def _key(parent: Any, step: Any) -> Any:
    if isinstance(parent, list):
        return step if isinstance(step, int) else _index(parent, step, len(parent) - 1)
    if not isinstance(parent, dict):
        raise TypeError("neither an object nor a list")
    return step


def _index(parent: list[Any], step: str, last: int) -> int:
    index = int(step)
    if index < 0:
        index += len(parent)
    if not 0 <= index <= last:
        raise IndexError(step)
    return index
