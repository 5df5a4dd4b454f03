"""Values of CEL in Python.

bool, float, str, bytes and None are themselves; `int` is CEL's int (64 bits, signed). The rest has classes of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

#: Any value of CEL, or of JSON.
Value: TypeAlias = Any


class LazyFields:
    """An object whose fields are computed when they are first asked for, such as ``variables`` of admission policies.

    `fields` gives a function for each field; it returns a value, or raises `EvaluationError`, whose text then is the error
    of the expression that asked. What the computation costs is the business of the function. Each is called at most once.
    """

    def __init__(self, type_name: str, fields: Mapping[str, Callable[[], Value]]) -> None:
        self.type_name = type_name
        self._functions = fields
        self._values: dict[str, Value] = {}


def plain(value: Value) -> Value:
    """JSON of a value of CEL: constructed objects and maps become dicts, timestamps and durations strings."""
    raise NotImplementedError
