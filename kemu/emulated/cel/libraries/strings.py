"""cel-go's strings library, version 2."""

from __future__ import annotations

from kemu.emulated.cel import types
from kemu.emulated.cel.bounds import bounded
from kemu.emulated.cel.declarations import Functions, Overload
from kemu.emulated.cel.libraries import formatting
from kemu.emulated.cel.types import INT, STRING
from kemu.emulated.cel.values import Error, Value, text

_STRINGS = types.list_of(STRING)
_LOWER = str.maketrans("ABCDEFGHIJKLMNOPQRSTUVWXYZ", "abcdefghijklmnopqrstuvwxyz")
_UPPER = str.maketrans("abcdefghijklmnopqrstuvwxyz", "ABCDEFGHIJKLMNOPQRSTUVWXYZ")
#: What Go's TrimSpace takes for white space.
_SPACE = "\t\n\v\f\r \u0085\u00a0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(map(chr, range(0x2000, 0x200B)))
_QUOTED = {
    "\a": "\\a",
    "\b": "\\b",
    "\f": "\\f",
    "\n": "\\n",
    "\r": "\\r",
    "\t": "\\t",
    "\v": "\\v",
    "\\": "\\\\",
    '"': '\\"',
}


def _out_of_range(index: int) -> Error:
    return Error(f"index out of range: {index}")


def _char_at(value: Value, index: Value) -> Value:
    return value[index : index + 1] if 0 <= index <= len(value) else _out_of_range(index)


def _index_of(value: Value, part: Value, offset: Value = 0) -> Value:
    if part == "":
        return offset
    if offset < 0:
        return _out_of_range(offset)
    return value.find(part, offset) if offset < len(value) else -1


def _last_index_of(value: Value, part: Value) -> Value:
    if part == "":
        return len(value)
    return -1 if len(value.encode()) < len(part.encode()) else _last_index_before(value, part, len(value) - 1)


def _last_index_before(value: Value, part: Value, offset: Value) -> Value:
    if part == "":
        return offset
    if offset < 0:
        return _out_of_range(offset)
    return value.rfind(part, 0, offset + len(part)) if offset < len(value) else -1


def _replace(value: Value, old: Value, new: Value, count: Value = -1) -> Value:
    found = value.count(old) if count < 0 else min(value.count(old), count)
    bounded(len(value) + found * len(new))
    return value.replace(old, new, -1 if count < 0 else count)


def _split(value: Value, separator: Value, count: Value = -1) -> Value:
    if count == 0:
        return []
    if separator == "":
        if count < 0 or count >= len(value):
            return list(value)
        return [*value[: count - 1], value[count - 1 :]]
    return value.split(separator, -1 if count < 0 else count - 1)


def _substring(value: Value, start: Value) -> Value:
    return value[start:] if 0 <= start <= len(value) else _out_of_range(start)


def _substring_range(value: Value, start: Value, end: Value) -> Value:
    if start > end:
        return Error(f"invalid substring range. start: {start}, end: {end}")
    for index in (start, end):
        if not 0 <= index <= len(value):
            return _out_of_range(index)
    return value[start:end]


def _quote(value: Value) -> Value:
    return '"' + "".join(_QUOTED.get(character, character) for character in value) + '"'


def _join(values: Value, separator: Value = "") -> Value:
    parts = []
    for value in values:
        if type(value) is not str:
            return Error(f"join: invalid input: {text(value)}")
        parts.append(value)
    bounded(sum(map(len, parts)) + len(separator) * len(parts))
    return separator.join(parts)


def declare(functions: Functions) -> None:
    member = functions.member
    member("charAt", "string_char_at_int", (STRING, INT), STRING, _char_at)
    member("indexOf", "string_index_of_string", (STRING, STRING), INT, _index_of)
    member("indexOf", "string_index_of_string_int", (STRING, STRING, INT), INT, _index_of)
    member("lastIndexOf", "string_last_index_of_string", (STRING, STRING), INT, _last_index_of)
    member("lastIndexOf", "string_last_index_of_string_int", (STRING, STRING, INT), INT, _last_index_before)
    member("lowerAscii", "string_lower_ascii", (STRING,), STRING, lambda value: value.translate(_LOWER))
    member("replace", "string_replace_string_string", (STRING, STRING, STRING), STRING, _replace)
    member("replace", "string_replace_string_string_int", (STRING, STRING, STRING, INT), STRING, _replace)
    member("split", "string_split_string", (STRING, STRING), _STRINGS, _split)
    member("split", "string_split_string_int", (STRING, STRING, INT), _STRINGS, _split)
    member("substring", "string_substring_int", (STRING, INT), STRING, _substring)
    member("substring", "string_substring_int_int", (STRING, INT, INT), STRING, _substring_range)
    member("trim", "string_trim", (STRING,), STRING, lambda value: value.strip(_SPACE))
    member("upperAscii", "string_upper_ascii", (STRING,), STRING, lambda value: value.translate(_UPPER))
    values = types.list_of(types.DYN)
    functions.declare(
        "format", [Overload("string_format", (STRING, values), STRING, True, formatting.format_values, True)]
    )
    functions.free("strings.quote", "strings_quote", (STRING,), STRING, _quote)
    member("join", "list_join", (_STRINGS,), STRING, _join)
    member("join", "list_join_string", (_STRINGS, STRING), STRING, _join)
