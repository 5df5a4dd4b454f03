"""Which old value belongs to which new one (``apiserver/pkg/cel/common.CorrelatedObject``)."""

from __future__ import annotations

import json
from typing import Any

from kemu.emulated.schemas.structural import Node


class Pair:
    """A new value and its old one, and the schema that tells which of their parts belong together."""

    __slots__ = ("_below", "_by_keys", "_equal", "node", "old", "value")

    def __init__(self, value: Any, old: Any, node: Node | None) -> None:
        self.value = value
        self.old = old
        self.node = node
        self._below: dict[str | int, Pair] = {}
        self._by_keys: MapList | None = None
        self._equal: bool | None = None

    def key(self, name: str) -> Pair | None:
        """The pair of a field or an entry of a map; None: there are not both, or the schema does not know it."""
        known = self._below.get(name)
        if known is not None:
            return known
        value, old, node = self.value, self.old, self.node
        if node is None or not isinstance(value, dict) or not isinstance(old, dict):
            return None
        if name not in value or name not in old:
            return None
        below = node.properties.get(name) or node.additional_node
        if below is None:
            return None
        found = self._below[name] = Pair(value[name], old[name], below)
        return found

    def index(self, index: int) -> Pair | None:
        """The pair of an element of a list that is a map by keys."""
        known = self._below.get(index)
        if known is not None:
            return known
        node, value, old = self.node, self.value, self.old
        if node is None or node.list_type != "map" or not isinstance(value, list) or not isinstance(old, list):
            return None
        if self._by_keys is None:
            self._by_keys = MapList(node.list_keys, old)
        before = self._by_keys.get(value[index])
        if before is None or node.items is None:
            return None
        found = self._below[index] = Pair(value[index], before, node.items)
        return found

    @property
    def is_same(self) -> bool:
        """Whether nothing has changed; lists by keys may be in another order."""
        if self._equal is None:
            self._equal = self._compare()
        return self._equal

    def _compare(self) -> bool:
        value, old = self.value, self.old
        if value is None or old is None:
            return value is None and old is None
        if isinstance(value, list) and isinstance(old, list):
            if len(value) != len(old):
                return False
            for index in range(len(value)):
                below = self.index(index)
                if below is None:
                    return self._by_keys is None and same(value, old)
                if not below.is_same:
                    return False
            return True
        if isinstance(value, dict) and isinstance(old, dict):
            if len(value) != len(old):
                return False
            return all((below := self.key(name)) is not None and below.is_same for name in value)
        return same(value, old)


def same(one: Any, other: Any) -> bool:
    """``reflect.DeepEqual``: 1, 1.0 and true differ."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return len(one) == len(other) and all(name in other and same(value, other[name]) for name, value in one.items())
    if isinstance(one, list):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other)


class MapList:
    """A list as a map by the keys of its elements (``MakeMapList``)."""

    __slots__ = ("_found", "_keys")

    def __init__(self, keys: tuple[str, ...], values: list[Any]) -> None:
        self._keys = keys
        self._found: dict[str, Any] = {}
        for one in values:
            key = self._key(one)
            if key is not None:
                self._found.setdefault(key, one)

    def get(self, value: Any) -> Any:
        """The element with the keys of ``value``; None: there is none."""
        key = self._key(value)
        return None if key is None else self._found.get(key)

    def _key(self, value: Any) -> str | None:
        if not isinstance(value, dict):
            return None
        found = []
        for name in self._keys:
            one = value.get(name)
            if not isinstance(one, str | int | float):
                return None
            found.append(one)
        return json.dumps(found)
