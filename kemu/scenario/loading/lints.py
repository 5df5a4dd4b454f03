"""What is right and almost certainly not meant: ``memory: 16`` is sixteen bytes, ``memory: 512m`` half a byte.

Role: warnings of :mod:`kemu.scenario.loading.loader`. They change neither the run nor its verdict.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from kemu.errors import Problem
from kemu.objects import quantities
from kemu.scenario.format.documents import Document, Path

_OF_CONTAINERS = ("requests", "limits", "overhead", "podFixed")
_AMOUNTS = (
    *_OF_CONTAINERS, "allocatable", "capacity", "kubeReserved", "systemReserved", "evictionHard", "evictionSoft",
    "evictionMinimumReclaim", "usage",
)  # fmt: skip
"""Keys whose mappings hold amounts by resource."""
_BYTES = re.compile(r"memory|ephemeral-storage|hugepages-.*|(memory|nodefs|imagefs|containerfs)\.available")
_BYTES_OF_USAGE = ("memory", "rootfs", "logs", "disk", "images")
_OF_CURVES = ("constant", "from", "to", "mean", "amplitude", "min", "max", "value")
"""Of usage that changes: what is an amount, not a time."""
_LEAST_BYTES = 1 << 20
"""Less than 1Mi without a unit is no amount that anybody means."""
_MOST_CORES = 256
"""Of one container."""


def warnings(document: Document) -> list[Problem]:
    """In the order of the document."""
    found = []
    for path, resource, text, of_container in _amounts(document.data, ()):
        complaint = _complaint(resource, text, of_container)
        if complaint is not None:
            found.append(document.problem(path, *complaint))
    return found


def _amounts(data: Any, path: Path) -> Iterator[tuple[Path, str, str, bool]]:
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


def _curve(data: Any, path: Path) -> Iterator[tuple[Path, str, str, bool]]:
    for key, value in data.items() if isinstance(data, dict) else ():
        if key in _OF_CURVES and _is_amount(value):
            yield (*path, key), "bytes", _text(value), False
        elif isinstance(value, dict):
            yield from _curve(value, (*path, key))


def _is_amount(value: Any) -> bool:
    return isinstance(value, str | int | float) and not isinstance(value, bool)


def _text(value: Any) -> str:
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
