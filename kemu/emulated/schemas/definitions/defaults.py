"""Defaults in schemas: those that objects could not have are refused, or cut (``schema/defaulting``)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kemu.emulated.schemas import correlation, embedded, problems, pruning, structural
from kemu.emulated.schemas.problems import Value, child
from kemu.emulated.schemas.structural import META, Node, copied
from kemu.emulated.schemas.values import Validator
from kemu.errors import Cause

Around = Callable[[Any], Any]
"""From a value to the object in which it stands at its place."""


def _itself(value: Value) -> Value:
    return value


def _field(around: Around, name: str) -> Around:
    return lambda value: around({name: value})


def _element(around: Around) -> Around:
    return lambda value: around([value])


def check(root: Node, path: str) -> list[Cause]:
    """Why defaults are wrong (``ValidateDefaults``)."""
    found: list[Cause] = []
    root = structural.as_root(root)
    _Check(found).walk(root, root, path, _itself, False)
    return found


class _Check:
    def __init__(self, found: list[Cause]) -> None:
        self._found = found
        self._budget: int | None = None
        """What rules may still cost; None: none was evaluated yet."""

    def walk(self, node: Node, root: Node, path: str, around: Around, in_meta: bool) -> None:
        if node.embedded:
            in_meta, around, root = False, _itself, node
        if node.default is not None:
            self._check(node, root, child(path, "default"), around, in_meta)
        if node.items is not None:
            self.walk(node.items, root, child(path, "items"), _element(around), in_meta)
        for name, one in node.properties.items():
            inner = in_meta or (node.embedded and name in META)
            self.walk(one, root, f"{child(path, 'properties')}[{name}]", _field(around, name), inner)

    def _check(self, node: Node, root: Node, path: str, around: Around, in_meta: bool) -> None:
        value, found = node.default, self._found
        before = len(found)
        if in_meta:
            document = around(copied(value))
            document.setdefault("kind", "Validation")
            document.setdefault("apiVersion", "validation/v1")
            inner: list[Cause] = []
            try:
                embedded.coerce(document, root, "", is_root=True)
                embedded.check(document, root, "", is_root=True, found=inner)
            except embedded.WrongMeta as error:
                inner.append(error.cause)
            if inner:
                detail = f"must result in valid metadata: {problems.aggregate(inner)}"
                found.append(problems.invalid(path, value, detail))
                return
        else:
            pruned = copied(value)
            pruning.prune(pruned, node, is_root=node.embedded)
            if not correlation.same(pruned, value):
                found.append(problems.invalid(path, value, "must not have unknown fields"))
            before = len(found)
            try:
                embedded.coerce(copied(value), node, path, is_root=node.embedded)
            except embedded.WrongMeta as error:
                found.append(error.cause)
                return
            embedded.check(value, node, path, is_root=node.embedded, found=found)
        if len(found) == before:
            Validator(node, is_default=True).check(value, path, found)
        if len(found) == before:
            self._check_rules(node, value, path, node is root)

    def _check_rules(self, node: Node, value: Value, path: str, is_root: bool) -> None:
        if not structural.has_rules(node):
            return
        from kemu.emulated.schemas import rules  # Loads CEL.

        one = rules.Rules(node, is_root=is_root)
        budget = rules.BUDGET if self._budget is None else self._budget
        before = len(self._found)
        left = one.run(value, value, path, self._found, budget)
        if len(self._found) == before:
            left = min(left, one.run(value, None, path, self._found, budget))
        self._budget = left


def prune(root: Node) -> None:
    """Take from the defaults, in place, what objects could not keep (``PruneDefaults``)."""
    if _has_any(root):
        _prune(root, root, _itself, _itself)


def _has_any(node: Node) -> bool:
    return node.default is not None or any(map(_has_any, node.children()))


def _prune(node: Node, root: Node, around: Around, inside: Around) -> None:
    """``inside``: from the object around a default to the default."""
    if node.default is not None:
        document = around(copied(node.default))
        if isinstance(document, dict):
            embedded.coerce(document, root, "", is_root=True, drops=True)
            pruning.prune(document, root, is_root=True)
            node.default = inside(document)
    if isinstance(node.additional, Node):
        _prune(node.additional, root, _field(around, "*"), _below(inside, "*"))
    if node.items is not None:
        _prune(node.items, root, _element(around), _below(inside, 0))
    for name, one in node.properties.items():
        _prune(one, root, _field(around, name), _below(inside, name))


def _below(inside: Around, step: str | int) -> Around:
    def get(document: Value) -> Value:
        value = inside(document)
        if isinstance(step, int):
            return value[step] if isinstance(value, list) and value else None
        return value.get(step) if isinstance(value, dict) else None

    return get
