"""``'…'.format([…])``: clauses, what each takes, and the messages of the run time and of the validator."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from kemu.emulated.cel import numbers
from kemu.emulated.cel.bounds import bounded
from kemu.emulated.cel.libraries.conversions import to_string
from kemu.emulated.cel.parsing.syntax import ListOf, MapOf, Node
from kemu.emulated.cel.times import Duration, Timestamp
from kemu.emulated.cel.values import Error, Uint, Value, find, is_list, is_map, item, text, type_name

_PRECISION = 6
_WRONG = {
    "b": "only integers and bools can be formatted as binary, was given {}",
    "d": "decimal clause can only be used on integers, was given {}",
    "f": "fixed-point clause can only be used on doubles, was given {}",
    "x": "only integers, byte buffers, and strings can be formatted as hex, was given {}",
    "o": "octal clause can only be used on integers, was given {}",
    "e": "scientific clause can only be used on doubles, was given {}",
    "s": "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, durations, and "
    "timestamps, was given {}",
}
_KINDS = {
    "b": ("int", "uint", "bool"),
    "d": ("int", "uint"),
    "f": ("double", "string"),
    "x": ("int", "uint", "string", "bytes"),
    "o": ("int", "uint"),
    "e": ("double", "string"),
    "s": ("list", "map", "int", "uint", "double", "bool", "string", "timestamp", "bytes", "duration", "type", "null"),
}


class _Refused(Exception):
    """A clause or an argument is wrong; `at` is the node of the argument, for the validator."""

    def __init__(self, message: str, at: Node | None = None) -> None:
        super().__init__(message)
        self.at = at


def format_values(template: Value, values: Value) -> Value:
    """The template with its clauses replaced by the values."""
    try:
        return _expand(
            template, len(values), lambda letter, precision, index: _formatted(letter, precision, item(values, index))
        )
    except _Refused as refused:
        return Error(str(refused))


def check(template: str, arguments: Sequence[Node]) -> tuple[str, Node | None] | None:
    """What is wrong with a constant template and a list of arguments: a message, and the argument if it is one of
    them.
    """
    seen = 0

    def clause(letter: str, precision: int | None, index: int) -> str:
        nonlocal seen
        seen = index + 1
        wrong = _wrong_argument(letter.lower() if letter == "X" else letter, arguments[index])
        if wrong is not None:
            said = _WRONG[letter.lower()].format(wrong.type.name)
            raise _Refused(f"error during formatting: {said}", wrong)
        return ""

    try:
        _expand(template, len(arguments), clause)
    except _Refused as refused:
        return str(refused), refused.at
    if len(arguments) > seen:
        return f"too many arguments supplied to string.format (expected {seen}, got {len(arguments)})", None
    return None


def _wrong_argument(letter: str, argument: Node) -> Node | None:
    if argument.type.kind not in ("dyn", *_KINDS[letter]):
        return argument
    if letter != "s":
        return None
    inner: list[Node] = []
    if isinstance(argument, ListOf):
        inner = argument.elements
    elif isinstance(argument, MapOf):
        inner = [part for entry in argument.entries for part in (entry.key, entry.value)]
    return next((wrong for part in inner if (wrong := _wrong_argument("s", part)) is not None), None)


def _expand(template: str, count: int, clause: Callable[[str, int | None, int], str]) -> str:
    parts: list[str] = []
    at, index, built = 0, 0, 0
    while at < len(template):
        percent = template.find("%", at)
        if percent < 0:
            parts.append(template[at:])
            break
        parts.append(template[at:percent])
        at = percent + 1
        if template[at : at + 1] == "%":
            parts.append("%")
            at += 1
            continue
        if index >= count:
            raise _Refused(f"index {index} out of range")
        if at >= len(template):
            raise _Refused("unexpected end of string")
        letter, precision, at = _clause(template, at)
        parts.append(clause(letter, precision, index))
        built += len(parts[-1])
        bounded(built)
        index += 1
    return "".join(parts)


def _clause(template: str, at: int) -> tuple[str, int | None, int]:
    """The letter and the precision of a clause, and where it ends."""
    head = "could not parse formatting clause: "
    precision: int | None = None
    if template[at] == ".":
        end = at + 1
        while end < len(template) and template[end] in "0123456789":
            end += 1
        if end >= len(template):
            raise _Refused(f"{head}error while parsing precision: could not find end of precision specifier")
        digits = template[at + 1 : end]
        if not digits or len(digits) > 18:
            reason = "value out of range" if digits else "invalid syntax"
            said = f'strconv.Atoi: parsing "{digits}": {reason}'
            raise _Refused(f"{head}error while parsing precision: error while converting precision to integer: {said}")
        precision, at = int(digits), end
    letter = template[at]
    if letter not in "sdfebxXo":
        byte = chr(letter.encode()[0])
        raise _Refused(f'{head}unrecognized formatting clause "{byte}"')
    return letter, precision, at + 1


def _formatted(letter: str, precision: int | None, value: Value) -> str:
    try:
        return _CLAUSES[letter](value, _PRECISION if precision is None else precision)
    except _Refused as refused:
        raise _Refused(f"error during formatting: {refused}") from None


def _wrong(letter: str, value: Value) -> _Refused:
    return _Refused(_WRONG[letter].format(type_name(value)))


def _string(value: Value, precision: int) -> str:
    if is_list(value):
        return _list(value)
    if is_map(value):
        return _map(value)
    if value is None:
        return "null"
    if type_name(value) not in ("int", "uint", "double", "bool", "string", "bytes", "type") and not isinstance(
        value, Timestamp | Duration
    ):
        raise _wrong("s", value)
    shown = to_string(value)
    if type(shown) is Error:
        raise _Refused(f'could not convert argument "{shown.message}" to string')
    return str(shown)


def _decimal(value: Value, precision: int) -> str:
    if type(value) is int or type(value) is Uint:
        return str(int(value))
    raise _wrong("d", value)


def _double(letter: str, value: Value) -> float:
    if type(value) is float:
        return value
    if value in ("NaN", "Infinity", "-Infinity") and type(value) is str:
        return float(value)
    raise _wrong(letter, value)


def _special(number: float) -> str | None:
    if math.isnan(number):
        return "NaN"
    return None if not math.isinf(number) else "∞" if number > 0 else "-∞"


def _fixed(value: Value, precision: int) -> str:
    number = _double("f", value)
    bounded(precision)
    return _special(number) or f"{number + 0.0:,.{precision}f}"


def _scientific(value: Value, precision: int) -> str:
    """With six digits: cel-go takes a precision for a width."""
    number = _double("e", value)
    bounded(precision)
    shown = _special(number)
    if shown is None:
        mantissa, exponent = f"{number + 0.0:.{_PRECISION}e}".split("e")
        shown = f"{mantissa}\u00d710{exponent.removeprefix('+').translate(_SUPERSCRIPT)}"
    return shown.rjust(precision)


_SUPERSCRIPT = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")


def _binary(value: Value, precision: int) -> str:
    if type(value) is bool:
        return "1" if value else "0"
    if type(value) is int or type(value) is Uint:
        return f"{int(value):b}"
    raise _wrong("b", value)


def _hex(value: Value, precision: int) -> str:
    if type(value) is str:
        return value.encode().hex()
    if type(value) is bytes:
        return value.hex()
    if type(value) is int or type(value) is Uint:
        return f"{int(value):x}"
    raise _wrong("x", value)


def _octal(value: Value, precision: int) -> str:
    if type(value) is int or type(value) is Uint:
        return f"{int(value):o}"
    raise _wrong("o", value)


_CLAUSES: dict[str, Callable[[Value, int], str]] = {
    "s": _string,
    "d": _decimal,
    "f": _fixed,
    "e": _scientific,
    "b": _binary,
    "x": _hex,
    "X": lambda value, precision: _hex(value, precision).upper(),
    "o": _octal,
}


def _nested(value: Value) -> str:
    """A value within a list or a map, as an expression would state it."""
    kind = type(value)
    if kind is int or kind is Uint:
        return str(int(value))
    if kind is str:
        return numbers.quoted(value)
    if kind is bytes:
        return f"b{numbers.quoted(_string(value, 0))}"
    if kind is float:
        if math.isnan(value) or math.isinf(value):
            return f'"{numbers.shortest(value)}"'
        return f"{value:.{_PRECISION}f}"
    if isinstance(value, Timestamp | Duration):
        return f"{'timestamp' if kind is Timestamp else 'duration'}({numbers.quoted(str(value))})"
    if is_list(value):
        return _list(value)
    if is_map(value):
        return _map(value)
    if value is None or kind is bool or type_name(value) == "type":
        return _string(value, 0)
    raise _Refused(f"no formatting function for {type_name(value)}")


def _list(values: Value) -> str:
    return f"[{', '.join(_nested(value) for value in values)}]"


def _map(entries: Value) -> str:
    shown: list[tuple[str, str]] = []
    for key in entries:
        if type(key) not in (str, bool, int, Uint):
            raise _Refused(f"no formatting function for map key of type {type_name(key)}")
        value, present = find(entries, key)
        if not present:
            raise _Refused(f'could not find key: "{text(key)}"')
        shown.append((_nested(key), _nested(value)))
    return "{" + ", ".join(f"{key}:{value}" for key, value in sorted(shown, key=lambda pair: pair[0].encode())) + "}"
