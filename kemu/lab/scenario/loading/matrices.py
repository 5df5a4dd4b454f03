"""Paths into a scenario, and the variants that a matrix makes of it.

A path begins below ``spec``: ``schedulers[0].policy.queue``, ``nodes[0].labels[topology.kubernetes.io/zone]``. ``[*]``
stands for all items of a list that have what follows: ``workloads[*].arrivals.poisson.rate``.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kemu.emulated.objects.plain import Json
from kemu.emulated.settings.documents import Document, Path, Place, copy, path_text
from kemu.emulated.settings.paths import get, parse
from kemu.emulated.settings.shapes import Report
from kemu.lab.scenario.format.keys import matrix_keys
from kemu.lab.scenario.format.keys.matrix_keys import PARAMETERS
from kemu.runtime.words import did_you_mean

MAX_VARIANTS = 1000

Variant = Mapping[str, Any]
"""What makes a variant, by path or by the name of a parameter: what people see of it."""


@dataclass(frozen=True)
class Dimension:
    """One thing that varies: a path, or a named parameter."""

    name: str
    choices: tuple[tuple[Any, Variant], ...]
    """What people see of each, and the values that it puts at paths."""

    def choice(self, shown: Json) -> Variant | None:
        """The values of the one that is shown like this."""
        return next((values for each, values in self.choices if _same(each, shown)), None)


@dataclass(frozen=True)
class Combination:
    """One choice of each dimension."""

    variant: Variant
    values: Variant
    """By path."""


def parse_path(text: str) -> Path:
    """The path from the root of the document. Raises ValueError."""
    steps = parse(text, "schedulers[0].policy.queue")
    return steps if steps[0] == "spec" else ("spec", *steps)


def put(document: Document, path: Path, value: Json, place: Place) -> None:
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
                hint = did_you_mean(step, parent)
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


def _place_all(document: Document, path: Path, value: Json, place: Place) -> None:
    items: Iterator[tuple[str | int, Any]] = iter(())
    if isinstance(value, Mapping):
        items = iter(value.items())
    elif isinstance(value, list):
        items = iter(enumerate(value))
    for step, item in items:
        document.places[(*path, step)] = place
        _place_all(document, (*path, step), item, place)


def put_all(document: Document, text: str, value: Json, place: Place) -> None:
    """:func:`put`, at every path that a text with ``[*]`` stands for."""
    for path in expanded(document.data, text):
        put(document, path, value, place)


def expanded(data: Json, text: str) -> list[Path]:
    """The paths that a text stands for: itself unless it has ``[*]``. Raises ValueError where there is none."""
    path = parse_path(text)
    if "*" not in path:
        return [path]
    found = [
        each
        for each in _expanded(data, path)
        # A key that is not there may be put, but not in the items that have nothing of the kind.
        if _leads_somewhere(data, each[:-1])
    ]
    if not found:
        raise ValueError(f"{text} leads nowhere: no item of the list has that")
    return found


def value_at(data: Json, text: str, default: Json) -> Any:
    """What stands there; of ``[*]``, in the first item."""
    try:
        return get(data, expanded(data, text)[0])
    except (LookupError, ValueError):
        return default


def _expanded(data: Json, path: Path) -> Iterator[Path]:
    if "*" not in path:
        yield path
        return
    depth = path.index("*")
    try:
        found = get(data, path[:depth])
    except LookupError:
        return
    if isinstance(found, list):
        for index in range(len(found)):
            yield from _expanded(data, (*path[:depth], index, *path[depth + 1 :]))


def _leads_somewhere(data: Json, path: Path) -> bool:
    try:
        get(data, path)
    except LookupError:
        return False
    return True


def read(document: Document, report: Report) -> list[Dimension]:
    """What varies, as far as it is right."""
    spec = document.data.get("spec") if isinstance(document.data, dict) else None
    matrix = spec.get("matrix") if isinstance(spec, dict) else None
    if not isinstance(matrix, dict):
        return []
    found = [
        Dimension(text, tuple((value, {text: value}) for value in values))
        for text, stated in matrix.items()
        if text != PARAMETERS and (values := values_of(stated))
    ]
    parameters = matrix.get(PARAMETERS)
    for name, stated in parameters.items() if isinstance(parameters, dict) else ():
        choices = choices_of(stated)
        if choices:
            found.append(Dimension(name, choices))
    good = [each for each in found if _is_right(each, document, report)]
    if math.prod(len(each.choices) for each in good) > MAX_VARIANTS:
        report.add(("spec", "matrix"), f"has more than {MAX_VARIANTS} combinations", key=True)
        return []
    return good


def place_of(dimension: str, document: Document) -> Path:
    """Where it stands."""
    path: Path = ("spec", "matrix", PARAMETERS, dimension)
    return path if path in document.places else ("spec", "matrix", dimension)


def _is_right(dimension: Dimension, document: Document, report: Report) -> bool:
    where = place_of(dimension.name, document)
    try:
        for _, values in dimension.choices:
            trial = clone(document)
            for text, value in values.items():
                if parse_path(text)[:2] in (("spec", "matrix"), ("spec", "expect")):
                    raise ValueError(f"{text} cannot vary")
                put_all(trial, text, value, document.place(where))
            if dimension.name in values:
                break  # one path: if it leads somewhere with one value, it does with all
    except ValueError as error:
        report.add(where, str(error), key=True)
        return False
    return True


def values_of(stated: Json) -> list[Any]:
    """The values of a path of the matrix: a list, or all numbers of ``1..10``; empty if it is neither."""
    if isinstance(stated, str):
        numbers = matrix_keys.numbers(stated)
        return list(numbers) if numbers is not None else []
    return stated if isinstance(stated, list) else []


def choices_of(stated: Json) -> tuple[tuple[Any, Variant], ...]:
    """Those of a named parameter; empty if it is wrong."""
    values, targets = (stated.get("values"), stated.get("sets")) if isinstance(stated, dict) else (None, None)
    paths = [targets] if isinstance(targets, str) else targets
    if isinstance(paths, list) and all(isinstance(path, str) for path in paths):
        labelled = values.items() if isinstance(values, dict) else [(value, value) for value in values_of(values)]
        if not any(isinstance(shown, list | dict) for shown, _ in labelled):
            return tuple((shown, dict.fromkeys(paths, value)) for shown, value in labelled)
    if isinstance(values, dict) and all(isinstance(each, dict) for each in values.values()):
        return tuple(values.items())
    return ()


def combinations(dimensions: Sequence[Dimension]) -> Iterator[Combination]:
    """All combinations, the last dimension changing fastest; none where nothing varies."""
    if not dimensions:
        return
    for chosen in itertools.product(*(each.choices for each in dimensions)):
        variant = {each.name: shown for each, (shown, _) in zip(dimensions, chosen, strict=True)}
        values = {text: value for _, values in chosen for text, value in values.items()}
        yield Combination(variant, values)


def matches(data: Json, condition: Mapping[str, Any], variant: Variant) -> bool:
    """Whether the document, that of a variant, has these values at these paths, or for these parameters.

    Paths that cannot be read match nothing.
    """
    for text, wanted in condition.items():
        if text in variant:
            found = variant[text]
        else:
            try:
                found = get(data, parse_path(text))
            except (LookupError, ValueError):
                return False
        if not _same(found, wanted):
            return False
    return True


def _same(found: Json, wanted: Json) -> bool:
    if type(found) is bool or type(wanted) is bool:
        return found is wanted
    return bool(found == wanted)


def clone(document: Document) -> Document:
    """A copy whose data may be changed."""
    places, octals, overridden = dict(document.places), set(document.octals), dict(document.overridden)
    return Document(document.file, copy(document.data), places, octals, overridden)
