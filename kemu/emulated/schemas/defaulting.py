"""Defaults of a schema (``schema/defaulting``)."""

from __future__ import annotations

from kemu.emulated.schemas.problems import Value
from kemu.emulated.schemas.structural import Node, copied


def default(value: Value, node: Node | None) -> None:
    """Fill in what is missing, and what is null though it may not be, in place."""
    if node is None:
        return
    if isinstance(value, dict):
        for name, one in node.properties.items():
            if one.default is not None and (name not in value or (value[name] is None and not one.nullable)):
                value[name] = copied(one.default)
        additional = node.additional if isinstance(node.additional, Node) else None
        for name, inner in value.items():
            known = node.properties.get(name)
            if known is None:
                if additional is None:
                    continue
                known = additional
                if inner is None and not known.nullable:
                    inner = value[name] = copied(known.default)
            if isinstance(inner, dict | list):
                default(inner, known)
    elif isinstance(value, list) and node.items is not None:
        for index, inner in enumerate(value):
            if inner is None and not node.items.nullable:
                inner = value[index] = copied(node.items.default)
            if isinstance(inner, dict | list):
                default(inner, node.items)


def prune_nulls(value: Value, node: Node | None) -> None:
    """Take fields away that are null though they may not be and have no default, in place
    (``PruneNonNullableNullsWithoutDefaults``)."""
    if isinstance(value, dict):
        gone = []
        additional = node.additional if node is not None and isinstance(node.additional, Node) else None
        for name, inner in value.items():
            known = None if node is None else node.properties.get(name) or additional
            if inner is None:
                if known is not None and not known.nullable and known.default is None:
                    gone.append(name)
            elif isinstance(inner, dict | list):
                prune_nulls(inner, known)
        for name in gone:
            del value[name]
    elif isinstance(value, list):
        items = None if node is None else node.items
        for inner in value:
            if isinstance(inner, dict | list):
                prune_nulls(inner, items)
