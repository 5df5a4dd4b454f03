"""Paths into a scenario, and the variants that a matrix makes of it.

A path begins below ``spec``: ``schedulers[0].policy.queue``, ``nodes[0].labels[topology.kubernetes.io/zone]``.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from kemu.scenario.format.documents import Document, Path, Place, copy, nearest, path_text
from kemu.scenario.format.paths import get, parse


def parse_path(text: str) -> Path:
    """The path from the root of the document. Raises ValueError."""
    steps = parse(text, "schedulers[0].policy.queue")
    return steps if steps[0] == "spec" else ("spec", *steps)


def put(document: Document, path: Path, value: Any, place: Place) -> None:
    """Set the value at a path; mappings on the way are made where they are missing, lists are not.

    The value will be known to stand at ``place``. Raises ValueError where the path leads nowhere.
    """
    parent: Any = document.data
    for depth, step in enumerate(path):
        last = depth == len(path) - 1
        where = path_text(path[:depth]) or "the scenario"
        if isinstance(step, int):
            if not isinstance(parent, list):
                raise ValueError(f"{path_text(path)} leads nowhere: {where} is not a list")
            if step >= len(parent):
                raise ValueError(
                    f"{path_text(path)} leads nowhere: {where} has {len(parent)} item{'s' * (len(parent) != 1)}"
                )
        elif not isinstance(parent, dict):
            raise ValueError(f"{path_text(path)} leads nowhere: {where} is not a mapping")
        elif step not in parent and not last:
            if isinstance(path[depth + 1], int):
                hint = nearest(step, parent)
                raise ValueError(f"{path_text(path)} leads nowhere: {where} has no {step}" + (f"; {hint}" * bool(hint)))
            parent[step] = {}
            document.places[path[: depth + 1]] = place
        if last:
            parent[step] = copy(value)
        else:
            if parent[step] is None:
                parent[step] = {}
            parent = parent[step]
    for known in [known for known in document.places if known[: len(path)] == path]:
        del document.places[known]
    document.places[path] = place
    _place_all(document, path, value, place)


def _place_all(document: Document, path: Path, value: Any, place: Place) -> None:
    items: Iterator[tuple[str | int, Any]] = iter(())
    if isinstance(value, Mapping):
        items = iter(value.items())
    elif isinstance(value, list):
        items = iter(enumerate(value))
    for step, item in items:
        document.places[(*path, step)] = place
        _place_all(document, (*path, step), item, place)


def combinations(matrix: Mapping[str, Sequence[Any]]) -> list[dict[str, Any]]:
    """All combinations of the values, the last path changing fastest."""
    return [dict(zip(matrix, values, strict=True)) for values in itertools.product(*matrix.values())]


def matches(data: Any, condition: Mapping[str, Any]) -> bool:
    """Whether the document has these values at these paths. Paths that cannot be read match nothing."""
    for text, wanted in condition.items():
        try:
            found = get(data, parse_path(text))
        except (LookupError, ValueError):
            return False
        if type(found) is bool or type(wanted) is bool:
            if found is not wanted:
                return False
        elif found != wanted:
            return False
    return True


def clone(document: Document) -> Document:
    """A copy whose data may be changed."""
    return Document(document.file, copy(document.data), dict(document.places), set(document.octals))
