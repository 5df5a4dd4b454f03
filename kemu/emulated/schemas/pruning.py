"""Fields that a schema does not know go (``schema/pruning``)."""

from __future__ import annotations

from typing import Any

from kemu.emulated.schemas import structural
from kemu.emulated.schemas.structural import META, Node


def prune(value: Any, node: Node | None, *, is_root: bool, unknown: list[str] | None = None) -> None:
    """Take them away in place. ``unknown``: the list to which their paths are added, in order."""
    if is_root:
        node = structural.as_root(node)
    found: list[str] | None = None if unknown is None else []
    _prune(value, node, "", found)
    if unknown is not None and found:
        unknown += sorted(found, key=str.encode)


def _prune(value: Any, node: Node | None, path: str, unknown: list[str] | None) -> None:
    if isinstance(value, dict):
        if node is None:
            if unknown is not None:
                unknown += [f"{path}.{name}" if path else name for name in value]
            value.clear()
            return
        _prune_fields(value, node, path, unknown)
    elif isinstance(value, list):
        if node is not None and node.preserve:
            if node.items is not None:
                for index, one in enumerate(value):
                    _skip(one, node.items, f"{path}[{index}]", unknown)
            return
        items = None if node is None else node.items
        for index, one in enumerate(value):
            if isinstance(one, dict | list):
                _prune(one, items, f"{path}[{index}]", unknown)


def _prune_fields(value: dict[str, Any], node: Node, path: str, unknown: list[str] | None) -> None:
    properties, additional, embedded = node.properties, node.additional, node.embedded
    gone: list[str] = []
    for name, one in value.items():
        if embedded and name in META:
            continue
        known = properties.get(name)
        if known is not None:
            if isinstance(one, dict | list):
                _prune(one, known, f"{path}.{name}" if path else name, unknown)
        elif additional is not None:
            if isinstance(one, dict | list):
                _prune(one, node.additional_node, f"{path}.{name}" if path else name, unknown)
        elif not node.preserve:
            gone.append(name)
    for name in gone:
        if unknown is not None and (path or name not in META):
            unknown.append(f"{path}.{name}" if path else name)
        del value[name]


def _skip(value: Any, node: Node, path: str, unknown: list[str] | None) -> None:
    """What stands in a list whose unknown fields are kept: its own fields are kept, too (``skipPrune``)."""
    if isinstance(value, dict):
        for name, one in value.items():
            if (node.embedded and name in META) or not isinstance(one, dict | list):
                continue
            known = node.properties.get(name)
            if known is not None:
                _prune(one, known, f"{path}.{name}", unknown)
            elif node.additional is not None:
                _prune(one, node.additional_node, f"{path}.{name}", unknown)
    elif isinstance(value, list) and node.items is not None:
        for index, one in enumerate(value):
            _skip(one, node.items, f"{path}[{index}]", unknown)
