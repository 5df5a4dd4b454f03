"""From a failing scenario to one that a person can read.

Parts of the document are taken away as long as it fails in the same way: first whole sections and many objects at once,
then single items, then keys of what is left; then counts are halved. A document that does not load is no candidate.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Iterator
from typing import Any

from kemu.emulated.objects.plain import Json
from kemu.emulated.settings.values import duration_ns
from kemu.lab.exploration.shrinking import documents
from kemu.lab.fuzz.drawing.canvases import seconds

Data = dict[str, Any]
Fails = Callable[[Data], bool]

LISTS = ("chaos", "events", "workloads", "manifests", "lives")
MOST_RUNS = 300
MOST_S = 120.0
KEPT = frozenset(("seed", "duration", "nodes"))
SECTIONS = frozenset(LISTS)
NUMBERS = ("count", "replicas", "completions", "parallelism")
_KEPT_KEYS = frozenset(
    ("apiVersion", "kind", "metadata", "name", "namespace", "selector", "template", "spec", "containers", "at", "nodes")
)


def shrink(data: Data, fails: Fails, *, most_runs: int = MOST_RUNS, most_s: float = MOST_S) -> tuple[Data, int]:
    """The smallest document that was found, and how many were tried."""
    shrinker = _Shrinker(data, fails, most_runs, most_s)
    shrinker.go()
    return shrinker.best, shrinker.runs


class _Shrinker:
    def __init__(self, data: Data, fails: Fails, most_runs: int, most_s: float) -> None:
        self.best = data
        self.runs = 0
        self._fails = fails
        self._most_runs = most_runs
        self._end_s = time.monotonic() + most_s

    def go(self) -> None:
        before = None
        while before != self.best and not self._is_spent():
            before = self.best
            for step in (self._sections, self._items, self._nodes, self._keys, self._numbers, self._single_nodes):
                step()

    def _is_spent(self) -> bool:
        return self.runs >= self._most_runs or time.monotonic() > self._end_s

    def _try(self, made: Data | None) -> bool:
        if made is None or made == self.best or self._is_spent():
            return False
        self.runs += 1
        if not self._fails(made):
            return False
        self.best = made
        return True

    def _without(self, way: documents.Way) -> Data:
        made = copy.deepcopy(self.best)
        part = made
        for step in way[:-1]:
            part = part[step]  # type: ignore[index]
        del part[way[-1]]  # type: ignore[arg-type]
        if len(way) == 3 and isinstance(part, list) and not part:
            del made["spec"][way[1]]
        return made

    def _sections(self) -> None:
        for key in [key for key in self.best["spec"] if key not in KEPT]:
            self._try(self._without(("spec", key)))

    def _items(self) -> None:
        """Halves of lists, then single items; of a List, its items."""
        for section in LISTS:
            items = self.best["spec"].get(section)
            size = len(items) // 2 if items else 0
            while size >= 1:
                place = 0
                while place < len(self.best["spec"].get(section, ())):
                    made = copy.deepcopy(self.best)
                    del made["spec"][section][place : place + size]
                    if not made["spec"][section]:
                        del made["spec"][section]
                    if not self._try(made):
                        place += size
                size //= 2
        for index, item in enumerate(self.best["spec"].get("manifests", ())):
            if item.get("kind") == "List":
                made = copy.deepcopy(self.best)
                made["spec"]["manifests"][index : index + 1] = item["items"]
                if self._try(made):
                    self._items()
                    return

    def _nodes(self) -> None:
        """Where there are any: they may all be among the manifests."""
        while (count := len(self.best["spec"].get("nodes", ()))) > 1:
            if not any(self._try(self._without(("spec", "nodes", index))) for index in range(count)):
                return

    def _keys(self) -> None:
        """From the outside to the inside."""
        tried: set[documents.Way] = set()
        found = True
        while found and not self._is_spent():
            found = False
            for way in _ways(self.best["spec"], ("spec",)):
                if way not in tried:
                    tried.add(way)
                    if self._try(self._without(way)):
                        found = True
                        break

    def _numbers(self) -> None:
        for way, number in list(_numbers(self.best["spec"], ("spec",))):
            while number > 1 and self._try(documents.changed_at(self.best, way, number // 2)):
                number //= 2
            if number > 1 and self._try(documents.changed_at(self.best, way, number - 1)):
                number -= 1
        for part in (2, 4):
            duration_s = duration_ns(self.best["spec"]["duration"]) // 10**9
            self._try(documents.changed_at(self.best, ("spec", "duration"), seconds(duration_s - duration_s // part)))

    def _single_nodes(self) -> None:
        self._try(documents.with_single_nodes(self.best))


def _ways(value: Json, way: documents.Way) -> Iterator[documents.Way]:
    """Keys and items that could be left out, those above first."""
    level = [(value, way)]
    while level:
        below = []
        for part, where in level:
            pairs = part.items() if isinstance(part, dict) else enumerate(part) if isinstance(part, list) else ()
            for key, item in pairs:
                if not (len(where) == 1 and (key in KEPT or key in SECTIONS)) and key not in _KEPT_KEYS:
                    yield (*where, key)
                below.append((item, (*where, key)))
        level = below


def _numbers(value: Json, way: documents.Way) -> Iterator[tuple[documents.Way, int]]:
    if isinstance(value, dict):
        for key, item in value.items():
            if key in NUMBERS and isinstance(item, int) and not isinstance(item, bool) and item > 1:
                yield (*way, key), item
            else:
                yield from _numbers(item, (*way, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _numbers(item, (*way, index))
