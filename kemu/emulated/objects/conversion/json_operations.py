"""The operations of JSON Patch (RFC 6902) as ``gopkg.in/evanphx/json-patch.v4`` has them: indices below zero count from
the end, what an object does not have can be replaced, and a copy of that is null."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from kemu.emulated.objects import plain
from kemu.errors import Invalid, KemuError

MOST_COPIED_BYTES = 3 << 20
"""``JSONPatchMaxCopyBytes``"""
_NUMBER = re.compile(r"[+-]?[0-9]{1,18}")


def apply(data: dict[str, Any], operations: list[Any]) -> dict[str, Any]:
    """The data after all of the operations. Raises :class:`kemu.errors.Invalid` for one that does not fit."""
    found: Any = plain.copied(data)
    copied = 0
    for one in operations:
        try:
            copied += _copied_bytes(found, one, copied)
            found = _apply(found, one)
        except (LookupError, TypeError, ValueError, DoesNotApply):
            raise Invalid("the server rejected our request due to an error in our request") from None
    if not isinstance(found, dict):
        raise Invalid("the server rejected our request due to an error in our request")
    return found


def as_written(data: dict[str, Any], operations: Sequence[Any]) -> dict[str, Any]:
    """What :func:`apply` returned, in the order in which the library writes it: the keys of what a path leads through
    are sorted, and the rest is as it was sent."""
    found: dict[str, Any] = plain.copied(data)
    for one in operations:
        for path in (one["path"], one.get("from", "")):
            _sort(found, path)
    return found


def _sort(root: dict[str, Any] | list[Any], path: str) -> None:
    for step in _steps(path):
        if isinstance(root, dict):
            items = sorted(root.items())
            root.clear()
            root.update(items)
        try:
            root = _get(root, step)
        except (AttributeError, LookupError, ValueError):
            return


class DoesNotApply(KemuError):
    """An operation does not fit; the text is that of the Go library."""

    is_test = False
    """The operation is a test."""


def apply_told(data: dict[str, Any], operations: Sequence[Any]) -> dict[str, Any]:
    """As :func:`apply`, but the error says which operation does not fit, and why. Raises DoesNotApply."""
    found: Any = plain.copied(data)
    copied = 0
    for one in operations:
        try:
            copied += _copied_bytes(found, one, copied)
            found = _apply(found, one)
        except (LookupError, TypeError, ValueError):
            raise _told(found, one) from None
    if not isinstance(found, dict):
        raise DoesNotApply("the patched document is no object")
    return found


def _copied_bytes(root: dict[str, Any] | list[Any], one: dict[str, Any], before: int) -> int:
    """What a copy adds to the document. Raises DoesNotApply where all copies of a patch together add too much: each
    could double the document."""
    if one.get("op") != "copy":
        return 0
    value = _get(*_find(root, one["from"]))
    size = 0 if value is None else len(json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode())
    if before + size > MOST_COPIED_BYTES:
        raise DoesNotApply(
            f"Unable to complete the copy, the accumulated size increase of copy is {before + size}, exceeding the "
            f"limit {MOST_COPIED_BYTES}"
        )
    return size


def _told(root: dict[str, Any] | list[Any], one: dict[str, Any]) -> DoesNotApply:
    """Why an operation does not fit."""
    what, path = one.get("op", ""), one.get("path")
    if what not in ("add", "remove", "replace", "move", "copy", "test"):
        return DoesNotApply(f"Unexpected kind: {what}")
    if path is None:
        return DoesNotApply(f"{what} operation failed to decode path: missing value")
    if what in ("move", "copy") and _holder(root, one.get("from", "")) is None:
        return DoesNotApply(
            f"{what} operation does not apply: doc is missing from path: {one.get('from', '')}: missing value"
        )
    holder = _holder(root, path)
    if what == "test":
        error = DoesNotApply(
            f"test operation does not apply: is missing path: {path}: missing value"
            if holder is None
            else f"testing value {path} failed: test failed"
        )
        error.is_test = holder is not None
        return error
    if holder is None:
        place = f'"{path}"' if what in ("add", "remove") else path
        destination = "destination " if what in ("move", "copy") else ""
        return DoesNotApply(
            f"{what} operation does not apply: doc is missing {destination}path: {place}: missing value"
        )
    step = path.rpartition("/")[2]
    if isinstance(holder, list):
        if _NUMBER.fullmatch(step):
            why = f"Unable to access invalid index: {int(step)}: invalid index referenced"
        else:
            why = f"value was not a proper array index: '{step}': strconv.Atoi: parsing \"{step}\": invalid syntax"
    else:
        why = f"Unable to remove nonexistent key: {step}: missing value"
    return DoesNotApply(f"error in {what} for path: '{path}': {why}")


def _holder(root: dict[str, Any] | list[Any], path: str) -> dict[str, Any] | list[Any] | None:
    """What holds the last step of a path."""
    try:
        found = _find(root, path)[0]
    except (LookupError, TypeError, ValueError):
        return None
    return found if isinstance(found, dict | list) else None


def _apply(root: Any, one: dict[str, Any]) -> Any:
    """The document after one operation. Raises LookupError, TypeError, ValueError."""
    what, path = one.get("op"), one["path"]
    if what == "remove":
        parent, step = _find(root, path)
        _remove(parent, step)
    elif what == "add":
        parent, step = _find(root, path)
        _add(parent, step, plain.copied(one.get("value")))
    elif what == "replace":
        if not path:
            if not isinstance(one["value"], dict | list):
                raise TypeError("replace operation value must be object or array")
            return plain.copied(one["value"])
        parent, step = _find(root, path)
        _get(parent, step)
        value = plain.copied(one.get("value"))
        if isinstance(parent, list):
            parent[_index(step, len(parent), len(parent) - 1)] = value
        else:
            parent[step] = value
    elif what == "move":
        parent, step = _find(root, one["from"])
        value = _get(parent, step)
        _remove(parent, step)
        parent, step = _find(root, path)
        _add(parent, step, value)
    elif what == "copy":
        parent, step = _find(root, one["from"])
        value = plain.copied(_get(parent, step))
        parent, step = _find(root, path)
        _add(parent, step, value)
    elif what == "test":
        found = root if not path else _get(*_find(root, path))
        if not _equal(found, one.get("value")):
            raise ValueError("test failed")
    else:
        raise ValueError(f"unexpected kind: {what}")
    return root


def _find(root: dict[str, Any] | list[Any], path: str) -> tuple[Any, str]:
    """What holds the last step of a path, and that step."""
    steps = _steps(path)
    if not steps:
        raise LookupError(path)
    found = root
    for step in steps[:-1]:
        found = _get(found, step)
        if not isinstance(found, dict | list):
            raise LookupError(path)
    return found, steps[-1]


def _steps(path: str) -> list[str]:
    return [step.replace("~1", "/").replace("~0", "~") for step in path.split("/")[1:]]


def _get(parent: dict[str, Any] | list[Any], step: str) -> Any:
    """An object that does not have the key has null there."""
    if isinstance(parent, list):
        return parent[_index(step, len(parent), len(parent) - 1)]
    return parent.get(step)


def _add(parent: dict[str, Any] | list[Any], step: str, value: object) -> None:
    if not isinstance(parent, list):
        parent[step] = value
    elif step == "-":
        parent.append(value)
    else:
        parent.insert(_index(step, len(parent) + 1, len(parent)), value)


def _remove(parent: dict[str, Any] | list[Any], step: str) -> None:
    if isinstance(parent, list):
        del parent[_index(step, len(parent), len(parent) - 1)]
    else:
        del parent[step]


def _index(step: str, size: int, last: int) -> int:
    """``size``: what indices below zero count from."""
    if not _NUMBER.fullmatch(step):
        raise ValueError(step)
    index = int(step)
    if index < 0:
        index += size
    if not 0 <= index <= last:
        raise IndexError(step)
    return index


def _equal(one: object, other: object) -> bool:
    """Scalars are compared as they are written."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_equal(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(_equal(mine, theirs) for mine, theirs in zip(one, other, strict=True))
    return type(one) is type(other) and bool(one == other)
