"""What Go says of JSON that is not of the types of a kind: the first mistake, in the words of its decoders.

:func:`of_json` is ``sigs.k8s.io/json``, which reads the bodies of requests and what JSON and merge patches made;
:func:`of_unstructured` is ``runtime.DefaultUnstructuredConverter``, which reads what strategic merge patches made.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Iterator
from typing import Any

from kemu.emulated.objects.managed_fields import fieldsets, go_texts, schemas
from kemu.emulated.objects.managed_fields.schemas import Field
from kemu.emulated.objects.plain import Json

_QUANTITY, _INT_OR_STRING = "resource.Quantity", "intstr.IntOrString"
_TIMES = {"v1.Time": "2006-01-02T15:04:05Z07:00", "v1.MicroTime": "2006-01-02T15:04:05.000000Z07:00"}
_RANGES = {"int32": range(-(1 << 31), 1 << 31), "int64": range(-(1 << 63), 1 << 63), "uint8": range(1 << 8)}
_NUMBER = re.compile(r"[+-]?[0-9.]+([eE][-+]?[0-9]+|[numkMGTPE]i?|Ki)?")
_WRONG_QUANTITY = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
_TIME = re.compile(
    r"[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])T([01]?[0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]([.,][0-9]+)?"
    r"(Z|[+-][0-9]{2}:[0-9]{2})"
)
_BYTES = "[]uint8"


_MOST_STRICT = 100
"""Mistakes that are told (``saveStrictError`` of ``sigs.k8s.io/json``)."""


class _Abort(Exception):
    """A type reads itself, and cannot: nothing after it is read."""


def of_json(expression: str | schemas.Type, value: Json, name: str = "") -> str | None:
    """``expression``: of the type, for :func:`.schemas.resolve`; ``name``: of one that stands in no table. None:
    nothing is wrong."""
    fields = schemas.resolve(expression).fields or {}
    root = name or _name(expression)
    try:
        if not isinstance(value, dict):
            return _mismatch(value, "", "", f"v1.{root}")
        found = list(_in_struct(fields, root, value, ""))
    except _Abort as error:
        return str(error)
    return found[0] if found else None


def _name(expression: str | schemas.Type) -> str:
    return expression.rstrip("!~").rpartition(".")[2] if isinstance(expression, str) else ""


def _mismatch(value: Json, struct: str, path: str, go: str) -> str:
    what = _kind(value)
    where = f"Go struct field {struct}.{path}" if struct or path else "Go value"
    return f"json: cannot unmarshal {what} into {where} of type {go}"


def _kind(value: Json) -> str:
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, str):
        return "string"
    if isinstance(value, int | float):
        return "number"
    return "array" if isinstance(value, list) else "object"


def _in_struct(fields: dict[str, Field], struct: str, value: dict[str, Any], path: str) -> Iterator[str]:
    for name, inner in _pairs(value):
        known = fields.get(name)
        if known is not None and inner is not None:
            steps = (path, known.embedded_in, name)
            yield from _problems(known.type, known.go, inner, struct, ".".join(step for step in steps if step))


def _problems(expression: str | schemas.Type, go: str, value: Json, struct: str, path: str) -> Iterator[str]:
    if value is None:
        return
    if go in (_QUANTITY, _INT_OR_STRING) or go in _TIMES:
        problem = _own_problem(go, value, struct, path)
        if problem:
            raise _Abort(problem)
        return
    kind = schemas.resolve(expression)
    if go == _BYTES:
        yield from _in_bytes(value, struct, path)
    elif kind.fields is not None:
        if isinstance(value, dict):
            yield from _in_struct(kind.fields, _name(expression), value, path)
        else:
            yield _mismatch(value, struct, path, go)
    elif kind.kind is schemas.LIST:
        if isinstance(value, list):
            for one in value:
                yield from _problems(kind.element, go.removeprefix("[]"), one, struct, path)
        else:
            yield _mismatch(value, struct, path, go)
    elif kind.kind is schemas.MAP:
        if isinstance(value, dict):
            for _, one in _pairs(value):
                yield from _problems(kind.element, _element_of_map(go), one, struct, path)
        else:
            yield _mismatch(value, struct, path, go)
    elif kind.kind is schemas.SCALAR:
        yield from _in_scalar(kind.scalar, go, value, struct, path)


def _pairs(value: dict[str, Any]) -> Iterable[tuple[str, Any]]:
    """Also those whose key comes once more. Objects with such keys have ``pairs``."""
    pairs: Iterable[tuple[str, Any]] | None = getattr(value, "pairs", None)
    return value.items() if pairs is None else pairs


def _element_of_map(go: str) -> str:
    if go == "v1.ResourceList":
        return _QUANTITY
    return go.partition("]")[2]


def _in_scalar(scalar: str, go: str, value: Json, struct: str, path: str) -> Iterator[str]:
    if scalar == "string":
        if not isinstance(value, str):
            yield _mismatch(value, struct, path, go)
    elif scalar == "boolean":
        if not isinstance(value, bool):
            yield _mismatch(value, struct, path, go)
    elif scalar == "numeric":
        if isinstance(value, bool) or not isinstance(value, int | float):
            yield _mismatch(value, struct, path, go)
        elif isinstance(value, float) or value not in _RANGES.get(go, _RANGES["int64"]):
            shown = fieldsets.write(value)
            yield f"json: cannot unmarshal number {shown} into Go struct field {struct}.{path} of type {go}"


def _in_bytes(value: Json, struct: str, path: str) -> Iterator[str]:
    if isinstance(value, list):
        for one in value:
            if one is not None:
                yield from _in_scalar("numeric", "uint8", one, struct, path)
    elif not isinstance(value, str):
        yield _mismatch(value, struct, path, _BYTES)
    elif problem := _base64_problem(value):
        yield problem


def _base64_problem(text: str) -> str | None:
    """``base64.CorruptInputError``."""
    try:
        base64.b64decode(text.replace("\n", "").replace("\r", ""), validate=True)
        return None
    except ValueError:  # of binascii, and where there is more than ASCII
        at = next((index for index, letter in enumerate(text) if not re.match(r"[A-Za-z0-9+/]", letter)), len(text))
        if at == len(text) or text[at] == "=":
            at = at - at % 4 if at == len(text) else at
        return f"illegal base64 data at input byte {at}"


def _own_problem(go: str, value: Json, struct: str = "", path: str = "") -> str | None:
    """Own problem of types that read themselves; of those that read numbers, the decoder knows where they stand."""
    if go == _QUANTITY:
        text = value if isinstance(value, str) else None if isinstance(value, bool | list | dict) else str(value)
        return None if text is not None and _NUMBER.fullmatch(text.strip()) else _WRONG_QUANTITY
    if go == _INT_OR_STRING:
        if isinstance(value, str):
            return None
        if isinstance(value, bool) or not isinstance(value, int | float):
            return _mismatch(value, struct, path, "int32")
        if isinstance(value, float) or not -(1 << 31) <= value < 1 << 31:
            where = f"Go struct field {struct}.{path}" if path else "Go value"
            return f"json: cannot unmarshal number {fieldsets.write(value)} into {where} of type int32"
        return None
    if not isinstance(value, str):
        return _mismatch(value, struct, path, "string")
    if _TIME.fullmatch(value):
        return _fraction_problem(value) if go == "v1.MicroTime" else None
    rest, wanted = value, "2006"
    date = re.match(r"([0-9]{4})(-(?:0[1-9]|1[0-2]))?(-[0-9]{2})?(T)?", value)
    if date is not None and date.group(1):
        rest, wanted = value[4:], "-"
        if date.group(2):
            rest, wanted = value[7:], "-"
            if date.group(3):
                rest, wanted = value[10:], "T"
                if date.group(4):
                    rest, wanted = value[11:], "15"
        elif value[4:5] == "-":
            rest, wanted = value[5:], "01"
    return _time_problem(value, go, rest, wanted)


def _fraction_problem(value: str) -> str | None:
    """A MicroTime has exactly six digits after the second."""
    rest = value[value.rindex(":", 0, 20) + 3 :]
    if re.match(r"[.,][0-9]{6}", rest):
        rest = rest[7:]
        if rest[:1] in "Z+-":
            return None
        wanted = "Z07:00"
    else:
        wanted = ".000000"
    return _time_problem(value, "v1.MicroTime", rest, wanted)


def _time_problem(value: str, go: str, rest: str, wanted: str) -> str:
    quoted = go_texts.syntax
    return f"parsing time {quoted(value)} as {quoted(_TIMES[go])}: cannot parse {quoted(rest)} as {quoted(wanted)}"


# Strictly -----------------------------------------------------------------------------------------------------------


def strict(expression: str | schemas.Type, value: Json) -> list[str]:
    """Unknown and repeated fields in the order of the text, each once."""
    found: dict[str, None] = {}
    for problem in _strict(expression, value, ""):
        found[problem] = None
        if len(found) >= _MOST_STRICT:
            break
    return list(found)


def _strict(expression: str | schemas.Type, value: Json, path: str) -> Iterator[str]:
    kind = schemas.resolve(expression)
    if isinstance(value, list) and kind.kind is schemas.LIST:
        for index, one in enumerate(value):
            yield from _strict(kind.element, one, f"{path}[{index}]")
    elif isinstance(value, dict) and kind.kind in (schemas.STRUCT, schemas.MAP):
        seen: set[str] = set()
        for name, inner in _pairs(value):
            here = f"{path}.{name}" if path else name
            known = schemas.element_of(kind, name)
            if known is None:
                yield f'unknown field "{here}"'
                continue
            if name in seen:
                yield f'duplicate field "{here}"'
            seen.add(name)
            yield from _strict(_type_below(kind, name), inner, here)


def _type_below(kind: schemas.Type, name: str) -> str | schemas.Type:
    return kind.fields[name].type if kind.fields is not None else kind.element


# Unstructured -------------------------------------------------------------------------------------------------------


def of_unstructured(expression: str | schemas.Type, value: Json) -> str | None:
    """As :func:`of_json`."""
    return next(_in_unstructured_struct(expression, value), None)


def _in_unstructured_struct(expression: str | schemas.Type, value: Json) -> Iterator[str]:
    if not isinstance(value, dict):
        yield f"cannot restore struct from: {_reflected(value)}"
        return
    fields = schemas.resolve(expression).fields or {}
    for name in schemas.names_in_order(expression) if isinstance(expression, str) else fields:
        if (inner := value.get(name)) is not None:
            yield from _unstructured(fields[name].type, fields[name].go, inner)


def _unstructured(expression: str | schemas.Type, go: str, value: Json) -> Iterator[str]:
    if value is None:
        return
    if go in (_QUANTITY, _INT_OR_STRING) or go in _TIMES:
        problem = _own_problem(go, value)
        if problem:
            yield problem
        return
    kind = schemas.resolve(expression)
    if go == _BYTES:
        if isinstance(value, str):
            problem = _base64_problem(value)
            if problem:
                yield f"error decoding from json: {problem}"
        elif isinstance(value, list):
            for one in value:
                if one is not None:
                    yield from _unstructured_scalar("numeric", "uint8", one)
        else:
            yield f"cannot restore slice from {_reflected(value)}"
    elif kind.fields is not None:
        yield from _in_unstructured_struct(expression, value)
    elif kind.kind is schemas.LIST:
        if isinstance(value, list):
            for one in value:
                yield from _unstructured(kind.element, go.removeprefix("[]"), one)
        else:
            yield f"cannot restore slice from {_reflected(value)}"
    elif kind.kind is schemas.MAP:
        if isinstance(value, dict):
            for one in value.values():
                yield from _unstructured(kind.element, _element_of_map(go), one)
        else:
            yield f"cannot restore map from {_reflected(value)}"
    elif kind.kind is schemas.SCALAR:
        yield from _unstructured_scalar(kind.scalar, go, value)


def _unstructured_scalar(scalar: str, go: str, value: Json) -> Iterator[str]:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if scalar == "string":
        fits, converts = isinstance(value, str), isinstance(value, int) and not isinstance(value, bool)
    elif scalar == "boolean":
        fits, converts = isinstance(value, bool), False
    else:
        is_whole = isinstance(value, int) or (isinstance(value, float) and value.is_integer())
        fits, converts = is_number and is_whole, is_number
    if not fits:
        kind = {"string": "string", "boolean": "bool"}.get(scalar, go)
        yield f"cannot convert {go_texts.type_of(value)} to {go}" if converts else f"unrecognized type: {kind}"


def _reflected(value: Json) -> str:
    """``reflect.Kind``."""
    if isinstance(value, list):
        return "slice"
    return "map" if isinstance(value, dict) else go_texts.type_of(value)
