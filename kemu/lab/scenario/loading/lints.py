"""What is right and almost certainly not meant: ``memory: 16`` is sixteen bytes, ``memory: 512m`` half a byte, and a
crash of an actor that shares its process on Ray kills no process.

Role: warnings of :mod:`kemu.lab.scenario.loading.loader`. They change neither the run nor its verdict.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterable, Iterator
from typing import Any

from kemu.emulated.objects.amounts import quantities
from kemu.emulated.objects.plain import Json
from kemu.emulated.settings.documents import Document, Path
from kemu.errors import Problem
from kemu.lab.scenario.format.keys import runtime_keys
from kemu.runtime.ray.driver import plans

_OF_CONTAINERS = ("requests", "limits", "overhead", "podFixed")
_AMOUNTS = (
    *_OF_CONTAINERS, "allocatable", "capacity", "kubeReserved", "systemReserved", "evictionHard", "evictionSoft",
    "evictionMinimumReclaim", "usage",
)  # fmt: skip
"""Keys whose mappings hold amounts by resource."""
_BYTES = re.compile(r"memory|ephemeral-storage|hugepages-.*|(memory|nodefs|imagefs|containerfs)\.available")
_BYTES_OF_USAGE = ("memory", "rootfs", "logs", "disk", "images")
_OF_CURVES = ("constant", "from", "to", "mean", "amplitude", "min", "max", "value")
"""Keys of usage that changes: what is an amount, not a time."""
_LEAST_BYTES = 1 << 20
"""Less than 1Mi without a unit is no amount that anybody means."""
_MOST_CORES = 256
"""Most cores of one container."""


def warnings(document: Document) -> list[Problem]:
    """In the order of the document."""
    found = []
    for path, resource, text, of_container in _amounts(document.data, ()):
        complaint = _complaint(resource, text, of_container)
        if complaint is not None:
            found.append(document.problem(path, *complaint))
    found += [document.problem(*each) for each in _placements(document)]
    return found


def _amounts(data: Json, path: Path) -> Iterator[tuple[Path, str, str, bool]]:
    """Path, resource, amount, and whether it is of containers."""
    if isinstance(data, list):
        for index, item in enumerate(data):
            if isinstance(item, list | dict):
                yield from _amounts(item, (*path, index))
    elif isinstance(data, dict):
        is_usage = path[-1:] == ("usage",)
        holds = path[-1:] != () and path[-1] in _AMOUNTS
        for key, value in data.items():
            here = (*path, key)
            if holds and _is_amount(value):
                is_bytes = key in _BYTES_OF_USAGE if is_usage else _BYTES.fullmatch(key) is not None
                if is_bytes or key == "cpu":
                    yield here, "bytes" if is_bytes else "cpu", _text(value), path[-1] in _OF_CONTAINERS
            elif is_usage and key in _BYTES_OF_USAGE:
                yield from _curve(value, here)
            elif isinstance(value, list | dict):
                yield from _amounts(value, here)


def _curve(data: Json, path: Path) -> Iterator[tuple[Path, str, str, bool]]:
    for key, value in data.items() if isinstance(data, dict) else ():
        if key in _OF_CURVES and _is_amount(value):
            yield (*path, key), "bytes", _text(value), False
        elif isinstance(value, dict):
            yield from _curve(value, (*path, key))


def _is_amount(value: Json) -> bool:
    return isinstance(value, str | int | float) and not isinstance(value, bool)


def _text(value: Json) -> str:
    return value if isinstance(value, str) else f"{value:g}" if isinstance(value, float) else str(value)


def _complaint(resource: str, text: str, of_container: bool) -> tuple[str, str] | None:
    """Message and suggestion."""
    match = re.fullmatch(r"([0-9.]+)([A-Za-z]*)", text)
    if match is None:
        return None
    number, unit = match.groups()
    try:
        amount = quantities.parse(text).nano
    except ValueError:
        return None
    if not amount:
        return None
    if resource == "bytes":
        if unit == "m":
            return f"is {_bytes(amount)}: m means thousandths", f"did you mean {number}Mi or {number}M?"
        if not unit and amount < _LEAST_BYTES * quantities.NANO:
            return f"is {_bytes(amount)}: it has no unit", f"did you mean {number}Mi or {number}Gi?"
    elif unit and unit not in ("m", "u", "n"):
        return f"is {amount // quantities.NANO} cores", f"did you mean {number}?"
    elif not unit and of_container and amount > _MOST_CORES * quantities.NANO:
        return f"is {number} cores for one container", f"did you mean {number}m?"
    return None


def _bytes(nano: int) -> str:
    return "1 byte" if nano == quantities.NANO else f"{nano / quantities.NANO:g} bytes"


def _placements(document: Document) -> Iterator[tuple[Path, str, str]]:
    """About who shares a process on Ray: path, message and suggestion."""
    if not isinstance(document.data, dict) or document.data.get("kind") != "Scenario":
        return  # A file that the scenario names.
    spec = document.data["spec"]
    path: Path = ("spec", "runtime", runtime_keys.RAY, "cells")
    runtime = spec.get("runtime")
    settings = runtime.get(runtime_keys.RAY) if isinstance(runtime, dict) else None
    cells = (settings or {}).get("cells") or {}
    kubelets = cells.get("kubelets")
    size = 1 if kubelets == plans.OWN else kubelets
    if isinstance(size, int | float):
        nodes = sum(int(each.get("count", 1)) for each in spec.get("nodes") or ())
        processes = -(-nodes // int(size))
        if processes > _MANY_PROCESSES:
            about = f"{processes} processes, which take about {processes * _CELL_MIB / 1024:.0f} GiB"
            yield (*path, "kubelets"), f"makes {about} before the first pod", "fewer and larger cells do as much"
    crashed = [
        each["crash"].get("actor")
        for each in spec.get("chaos") or ()
        if isinstance(each, dict) and isinstance(each.get("crash"), dict)
    ]
    for kind, share in cells.items():
        others = [other for other in cells if other != kind and cells[other] == share]
        if not isinstance(share, str) or share == plans.OWN or not others:
            continue
        if any(fnmatch.fnmatchcase(_EXAMPLES[kind], pattern) for pattern in _patterns(crashed)):
            text = f"shares the process {share} with {' and '.join(others)}: a crash ends the actor, but no process"
            yield (*path, kind), text, f"{kind}: own makes it a SIGKILL"


_EXAMPLES = {kind: patterns[0].replace("*", "x") for kind, patterns in plans.PATTERNS.items()}
"""A name that an actor of each kind may have; patterns of faults are compared by their first part."""


def _patterns(actors: Iterable[Any]) -> Iterator[str]:
    for actor in actors:
        for name in actor if isinstance(actor, list) else [actor]:
            if isinstance(name, str):
                yield f"{name.partition('/')[0]}/*" if "/" in name else name


_MANY_PROCESSES = 64
_CELL_MIB = 60
"""The memory of a cell that has few actors, beside what it shares with others."""
