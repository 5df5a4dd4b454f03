"""Series of numbers: what ``{from: 1, to: 64, steps: 7, log: true}`` of ``vary`` stands for.

Both ends may carry a unit, the same one (``from: 0.5/s, to: 2/s``; ``10ms``, ``1Gi``): then the values are texts.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

DIGITS = 4
"""Significant ones of the values between both ends, so that they can be read, and named in a claim."""
MOST_STEPS = 1000
_NUMBER = re.compile(r"(-?[0-9]+(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?)(\D.*)?", re.DOTALL)


def series(stated: Mapping[str, Any]) -> list[Any]:
    """The values of a series whose keys have the right types. Raises ValueError for one that makes no sense."""
    first, unit = _amount(stated["from"], "from")
    last, other = _amount(stated["to"], "to")
    if unit != other:
        raise ValueError(f"from and to must have the same unit, not {unit or 'none'} and {other or 'none'}")
    steps = stated["steps"]
    if first == last:
        raise ValueError(f"from and to are both {first:g}: there is nothing between them")
    if stated.get("log"):
        if first * last <= 0:
            raise ValueError("log needs two ends of the same sign, neither of them 0")
        ratio = last / first
        between = [first * math.pow(ratio, index / (steps - 1)) for index in range(steps)]
    else:
        between = [first + (last - first) * index / (steps - 1) for index in range(steps)]
    # Both ends are exactly what was stated.
    numbers = [first, *(_rounded(each) for each in between[1:-1]), last]
    if stated.get("whole"):
        numbers = [float(each) for each in dict.fromkeys(round(each) for each in numbers)]
    found = [int(each) if each.is_integer() and abs(each) < 2**53 else each for each in numbers]
    return [f"{each}{unit}" for each in found] if unit else list(found)


def _amount(stated: Any, key: str) -> tuple[float, str]:
    """Number and unit."""
    if isinstance(stated, str):
        match = _NUMBER.fullmatch(stated.strip())
        if match is None:
            raise ValueError(f"{key} must be a number, or one with a unit such as 0.5/s or 10ms, not {stated!r}")
        return float(match[1]), match[2] or ""
    return float(stated), ""


def _rounded(number: float) -> float:
    return float(f"{number:.{DIGITS}g}")
