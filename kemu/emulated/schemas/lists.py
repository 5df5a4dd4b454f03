"""Lists that are sets or maps: no element twice (``schema/listtype``)."""

from __future__ import annotations

from typing import Any

from kemu.emulated.schemas import problems
from kemu.emulated.schemas.problems import Value, child
from kemu.emulated.schemas.structural import Node
from kemu.errors import Cause

_UNSPECIFIED: Any = object()


def has_any(node: Node | None) -> bool:
    """Whether a schema has such lists."""
    return node is not None and (node.list_type in ("set", "map") or any(map(has_any, node.children())))


def check(value: Value, node: Node | None, path: str, found: list[Cause]) -> None:
    """Tell of each element that is there more than once, at its second place."""
    if node is None:
        return
    if isinstance(value, dict):
        additional = node.additional_node
        for name, one in value.items():
            if not isinstance(one, dict | list):
                continue
            if additional is not None:
                check(one, additional, f"{path}[{name}]", found)
            if name in node.properties:
                check(one, node.properties[name], child(path, name), found)
    elif isinstance(value, list):
        if node.list_type == "set":
            found += [problems.duplicate(f"{path}[{index}]", value[index]) for index in _repeated(value)]
        elif node.list_type == "map":
            _check_map(value, node.list_keys, path, found)
        if node.items is not None:
            for index, one in enumerate(value):
                if isinstance(one, dict | list):
                    check(one, node.items, f"{path}[{index}]", found)


def _check_map(value: list[Any], keys: tuple[str, ...], path: str, found: list[Cause]) -> None:
    for index, one in enumerate(value):
        if one is not None and not isinstance(one, dict):
            detail = "must be an object for an array of list-type map"
            found.append(problems.invalid(f"{path}[{index}]", one, detail))
            return
    chosen = [{name: one[name] for name in keys if name in one} if one else {} for one in value]
    if len(keys) == 1:
        # One key is compared by itself: a list as a key is found as such.
        repeated = _repeated([one.get(keys[0], _UNSPECIFIED) for one in chosen])
    else:
        repeated = _repeated(chosen)
    found += [problems.duplicate(f"{path}[{index}]", chosen[index]) for index in repeated]


def _repeated(values: list[Any]) -> list[int]:
    """Where something stands for the second time."""
    seen: dict[Any, int] = {}
    found = []
    for index, one in enumerate(values):
        key = (type(one), problems.as_json(one)) if isinstance(one, dict | list) else (type(one), one)
        seen[key] = seen.get(key, 0) + 1
        if seen[key] == 2:
            found.append(index)
    return found
