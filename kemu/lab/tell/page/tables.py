"""What the views of one run share: texts, pods, nodes and actors by index, and where the log tells of what."""

from __future__ import annotations

import itertools
from typing import Any

Column = list[Any]
NEVER = -1
FAULTS = "chaos"
"""The subject of all events of faults."""


class Strings:
    """Each text once."""

    def __init__(self) -> None:
        self._index: dict[str, int] = {}

    def of(self, text: str) -> int:
        return self._index.setdefault(text, len(self._index))

    def all(self) -> list[str]:
        return list(self._index)


class Tables:
    """Tables of one run."""

    def __init__(self) -> None:
        self.strings = Strings()
        self._pods: dict[str, int] = {}
        self._keys: list[str] = []
        self._nodes = Strings()
        self._actors = Strings()
        self._places: dict[tuple[int, str], int] = {}

    def pod(self, uid: str, key: str) -> int:
        """By UID: a name may be used again."""
        found = self._pods.get(uid)
        if found is None:
            found = self._pods[uid] = len(self._keys)
            self._keys.append(key)
        return found

    def known_pod(self, uid: str) -> int:
        """-1 where the log has not told of it."""
        return self._pods.get(uid, NEVER)

    def latest_pod(self, key: str) -> int:
        """The last one of that name; -1: there is none."""
        return next((index for index in range(len(self._keys) - 1, -1, -1) if self._keys[index] == key), NEVER)

    def node(self, name: str) -> int:
        return self._nodes.of(name) if name else NEVER

    def actor(self, name: str) -> int:
        return self._actors.of(name)

    def text(self, text: str) -> int:
        return self.strings.of(text)

    def pods(self) -> dict[str, str]:
        """Names by UID, in the order of their indices."""
        return dict(zip(self._pods, self._keys, strict=True))

    def nodes(self) -> list[str]:
        return self._nodes.all()

    def actors(self) -> list[str]:
        return self._actors.all()

    # --- which event tells of what -----------------------------------------------------------------------------------

    def tell(self, place: int, time_ns: int, subject: str) -> None:
        """The event at ``place`` is about ``subject``: a pod's UID or name, or a node."""
        self._places.setdefault((time_ns, subject), place)

    def place(self, time_ns: int, *subjects: str) -> int:
        """The place of the first event at that time about the first of them of which there is one; -1: none."""
        return next((found for one in subjects if (found := self._places.get((time_ns, one), -1)) >= 0), -1)


def deltas(column: Column) -> dict[str, Column]:
    """A column as its first value and the differences: growing columns take less room so."""
    return {"deltas": [after - before for before, after in itertools.pairwise([0, *column])]}


def micros(time_ns: int | None) -> int:
    """As the page has times; -1 for none."""
    return NEVER if time_ns is None else time_ns // 1000
