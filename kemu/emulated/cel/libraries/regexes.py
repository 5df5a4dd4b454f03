"""``find`` and ``findAll`` with regular expressions."""

from __future__ import annotations

from kemu.emulated.cel import types
from kemu.emulated.cel.declarations import Functions
from kemu.emulated.cel.evaluation import patterns
from kemu.emulated.cel.types import INT, STRING
from kemu.emulated.cel.values import Error, Value


def _illegal(error: Error) -> Error:
    return Error(f"Illegal regex: {error.message}")


def _find(value: Value, pattern: Value) -> Value:
    compiled = patterns.compiled(pattern)
    if isinstance(compiled, Error):
        return _illegal(compiled)
    found = patterns.search(compiled, value)
    return "" if found is None else found.group()


def _find_all(value: Value, pattern: Value, limit: Value = -1) -> Value:
    compiled = patterns.compiled(pattern)
    return _illegal(compiled) if isinstance(compiled, Error) else patterns.find_all(compiled, value, limit)


def declare(functions: Functions) -> None:
    strings = types.list_of(STRING)
    functions.member("find", "string_find_string", (STRING, STRING), STRING, _find)
    functions.member("findAll", "string_find_all_string", (STRING, STRING), strings, _find_all)
    functions.member("findAll", "string_find_all_string_int", (STRING, STRING, INT), strings, _find_all)
