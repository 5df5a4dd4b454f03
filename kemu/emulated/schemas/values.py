"""Values against a schema, by Kubernetes' fork of go-openapi (``kube-openapi/pkg/validation/validate``).

A schema is compiled once. The work is bounded by the size of the schema times that of the value: each node below
``allOf``, ``anyOf``, ``oneOf`` and ``not`` is asked once for each value that it may apply to.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from kemu.emulated.objects import patterns
from kemu.emulated.schemas import formats, problems
from kemu.emulated.schemas.correlation import Pair, same
from kemu.emulated.schemas.problems import child
from kemu.emulated.schemas.structural import Node
from kemu.errors import Cause

_INT64 = 1 << 63
_LARGEST_JSON_INTEGER = float((1 << 53) - 1)
_EPSILON = 1e-9
_LARGEST_32_BIT = 3.4028235677973366e38
"""From here on ``ParseFloat(…, 32)`` says that it is out of range."""


@dataclass(frozen=True, slots=True)
class _Problem:
    """``path``: relative; None: the problem has no place of its own."""

    path: str | None
    text: str
    make: Callable[[str, str], Cause]
    """From the complete path and the text."""


class _Result:
    """What was found so far, each text once, and how many checks there were: of several alternatives that all fail, the
    one with the most checks is told."""

    __slots__ = ("checks", "found")

    def __init__(self) -> None:
        self.found: dict[str, _Problem] = {}
        self.checks = 0

    def add(self, path: str | None, text: str, make: Callable[[str, str], Cause]) -> None:
        if text not in self.found:
            self.found[text] = _Problem(path, text, make)

    def merge(self, other: _Result) -> None:
        for text, problem in other.found.items():
            self.found.setdefault(text, problem)
        self.checks += other.checks


def _composite(_path: str, text: str) -> Cause:
    raise NotImplementedError  # Such problems have no path: see Validator._tell.


def _wrong(value: Any) -> Callable[[str, str], Cause]:
    shown = "" if value is None else value
    return lambda path, text: problems.invalid(path, shown, text)


def _wrong_type(value: Any) -> Callable[[str, str], Cause]:
    shown = "" if value is None else value
    return lambda path, text: problems.type_invalid(path, shown, text)


class Validator:
    """A compiled schema (``NewSchemaValidator``)."""

    def __init__(self, node: Node, *, is_default: bool = False) -> None:
        """``is_default``: judges defaults, for which formats and types are not adapted (``ToKubeOpenAPI``)."""
        self._check = _Check(node, is_default)

    def check(self, value: Any, path: str, found: list[Cause]) -> None:
        """``path``: of the value, before all others."""
        result = _Result()
        self._check.run(value, "", result)
        _tell(result, path, found)

    def check_update(self, pair: Pair, path: str, found: list[Cause]) -> None:
        """What has not changed is right."""
        result = _Result()
        self._check.run_pair(pair, "", result)
        _tell(result, path, found)


def _tell(result: _Result, path: str, found: list[Cause]) -> None:
    for problem in result.found.values():
        if problem.path is None:
            found.append(problems.invalid(path, "", problem.text))
        else:
            name = problem.path.removeprefix(".")
            found.append(problem.make(child(path, name) if name else path, problem.text))


class _Check:
    """One node of a schema."""

    __slots__ = (
        "_all", "_any", "_bounds", "_enum", "_enum_texts", "_fields", "_format", "_known_format", "_node", "_not", "_one",
        "_other", "_forbids", "_items", "_types", "_number", "_nullable",
    )  # fmt: skip

    def __init__(self, node: Node, is_default: bool) -> None:
        self._node = node
        types = (node.type,) if node.type else ()
        if node.int_or_string and not is_default:
            types = ("integer", "string")
        self._types = types
        self._nullable = node.nullable
        self._format = node.format if is_default else _supported(node.format, types)
        self._known_format = formats.find(self._format)
        self._number = ("", "")
        if types in (("integer",), ("number",)):
            known = ("int32", "int64") if types[0] == "integer" else ("float", "double")
            self._number = types[0], self._format if self._format in known else ""
        self._bounds = node.multiple_of is not None or node.maximum is not None or node.minimum is not None
        self._enum = node.enum
        self._enum_texts = frozenset(one for one in node.enum if isinstance(one, str))
        self._any = [_Check(one, is_default) for one in node.any_of]
        self._one = [_Check(one, is_default) for one in node.one_of]
        self._all = [_Check(one, is_default) for one in node.all_of]
        self._not = _Check(node.not_, is_default) if node.not_ is not None else None
        self._fields = {name: _Check(one, is_default) for name, one in node.properties.items()}
        additional = node.additional
        self._forbids = additional is False
        self._other = _Check(additional, is_default) if isinstance(additional, Node) else None
        self._items = _Check(node.items, is_default) if node.items is not None else None

    # --- the walk -----------------------------------------------------------------------------------------------------

    def run_pair(self, pair: Pair, path: str, result: _Result) -> None:
        """:meth:`run`, unless it finds something and nothing has changed."""
        own = _Result()
        self.run(pair.value, path, own, pair)
        if own.found and pair.is_same:
            own.found = {}
        result.merge(own)

    def run(self, value: Any, path: str, result: _Result, pair: Pair | None = None) -> None:
        if value is None:
            self._run_null(path, result)
            return
        if self._types or self._format:
            self._check_type(value, path, result)
        result.checks += 3  # Types; junctors, which come now.
        if self._any or self._one or self._all or self._not is not None:
            self._check_junctors(value, path, result)
        if not (self._types or self._format):
            result.checks -= 1
        if isinstance(value, str):
            self._check_text(value, path, result)
        elif isinstance(value, list):
            self._check_list(value, path, result, pair)
        elif isinstance(value, int | float) and not isinstance(value, bool):
            self._check_number(value, path, result)
        if self._enum:
            self._check_enum(value, path, result)
        if isinstance(value, dict):
            self._check_fields(value, path, result, pair)
            result.checks += 1
        result.checks += 2  # The enum; the value as a whole.

    def _run_null(self, path: str, result: _Result) -> None:
        if self._types and "null" not in self._types and not self._nullable:
            wanted = ",".join(self._types)
            result.add(path, f'{path} in body must be of type {wanted}: "null"', _wrong_type("null"))
        else:
            result.checks += 1
        if self._enum:
            self._add_enum(None, path, result)

    # --- single keywords ----------------------------------------------------------------------------------------------

    def _check_type(self, value: Any, path: str, result: _Result) -> None:
        kind, format_ = _kind_of(value)
        types = self._types
        fits = (
            kind in types
            or (kind == "number" and "integer" in types and _is_json_integer(value))
            or (kind == "integer" and "number" in types)
        )
        is_text = isinstance(value, str | list)
        if self._format and not is_text and not fits and format_ != self._format:
            text = f"{path} in body must be of type {self._format}: {problems.quoted(format_)}"
            result.add(path, text, _wrong_type(format_))
        elif self._format and is_text and "number" not in types and "integer" not in types:
            result.checks += 1
        elif not fits:
            text = f"{path} in body must be of type {','.join(types)}: {problems.quoted(kind)}"
            result.add(path, text, _wrong_type(kind))
        else:
            result.checks += 1

    def _check_text(self, value: str, path: str, result: _Result) -> None:
        node = self._node
        if node.max_length is not None and len(value) > node.max_length:
            limit = node.max_length
            text = f"{path} in body should be at most {limit} chars long"
            result.add(path, text, lambda at, _: problems.too_long(at, limit))
        elif node.min_length is not None and len(value) < node.min_length:
            result.add(path, f"{path} in body should be at least {node.min_length} chars long", _wrong(value))
        elif node.pattern:
            self._check_pattern(value, path, result)
        result.checks += 1
        if self._known_format is not None:
            if not self._known_format(value):
                text = f"{path} in body must be of type {self._format}: {problems.quoted(value)}"
                result.add(path, text, _wrong_type(value))
            result.checks += 1

    def _check_pattern(self, value: str, path: str, result: _Result) -> None:
        pattern = self._node.pattern
        try:
            if patterns.matches(pattern, value):
                return
        except patterns.BadPattern as error:
            pattern = f"{pattern}, but pattern is invalid: {error}"
        result.add(path, f"{path} in body should match '{pattern}'", _wrong(value))

    def _check_number(self, value: int | float, path: str, result: _Result) -> None:
        result.checks += 2
        own = self._range_problem(value, "Checked", path)
        if own:
            result.add(None, own, _composite)
        if not self._bounds:
            return
        node = self._node
        if node.multiple_of is not None:
            wrong = self._range_problem(float(node.multiple_of), "MultipleOf", path)
            if wrong:
                result.add(None, wrong, _composite)
            is_native = not wrong and _is_int64(value)
            _check_multiple(value, float(node.multiple_of), path, result, is_native)
        for limit, exclusive, name, sign in (
            (node.minimum, node.exclusive_minimum, "Minimum", -1),
            (node.maximum, node.exclusive_maximum, "Maximum", 1),
        ):
            if limit is None:
                continue
            wrong = self._range_problem(float(limit), f"{name} boundary", path)
            if wrong:
                result.add(None, wrong, _composite)
            is_native = not wrong and _is_int64(value)
            _check_bound(value, float(limit), exclusive, sign, path, result, is_native)

    def _range_problem(self, value: int | float, prefix: str, path: str) -> str:
        """``IsValueValidAgainstRange``."""
        kind, format_ = self._number
        fits = True
        if kind == "integer":
            bits = 31 if format_ == "int32" else 63
            whole = isinstance(value, int) or value.is_integer()
            fits = whole and -(1 << bits) <= int(value) < 1 << bits
        elif kind == "number" and format_ == "float":
            fits = abs(value) < _LARGEST_32_BIT
        if fits:
            return ""
        what = f"with format {format_}" if format_ else "(default format)"
        return f"{prefix} value must be of type {kind} {what} in {path}"

    def _check_enum(self, value: Any, path: str, result: _Result) -> None:
        if isinstance(value, str):
            if value in self._enum_texts:
                return
        elif any(_is_enumerated(value, one) for one in self._enum):
            return
        self._add_enum(value, path, result)

    def _add_enum(self, value: Any, path: str, result: _Result) -> None:
        known = [one if isinstance(one, str) else problems.as_json(one) for one in self._enum]
        text = f"{path} in body should be one of {_go_list(self._enum)}"
        result.add(path, text, lambda at, _: problems.not_supported(at, value, known))

    # --- lists and objects --------------------------------------------------------------------------------------------

    def _check_list(self, value: list[Any], path: str, result: _Result, pair: Pair | None) -> None:
        items, node, size = self._items, self._node, len(value)
        if items is not None:
            for index, one in enumerate(value):
                below = pair.index(index) if pair is not None else None
                if below is None:
                    items.run(one, f"{path}[{index}]", result)
                else:
                    items.run_pair(below, f"{path}[{index}]", result)
        if node.min_items is not None and size < node.min_items:
            result.add(path, f"{path} in body should have at least {node.min_items} items", _wrong(size))
        if node.max_items is not None and size > node.max_items:
            limit = node.max_items
            text = f"{path} in body should have at most {limit} items"
            result.add(path, text, lambda at, _: problems.too_many(at, size, limit))
        result.checks += 2

    def _check_fields(self, value: dict[str, Any], path: str, result: _Result, pair: Pair | None) -> None:
        node, fields, other, size = self._node, self._fields, self._other, len(value)
        if node.min_properties is not None and size < node.min_properties:
            result.add(path, f"{path} in body should have at least {node.min_properties} properties", _wrong(size))
        if node.max_properties is not None and size > node.max_properties:
            limit = node.max_properties
            text = f"{path} in body should have at most {limit} properties"
            result.add(path, text, lambda at, _: problems.too_many(at, size, limit))
        for name, one in value.items():
            known = fields.get(name)
            if known is not None:
                here = f"{path}.{name}" if path else name
            elif self._forbids:
                result.add(path, f"{path}.{name} in body is a forbidden property", _wrong(name))
                continue
            elif other is not None:
                known, here = other, f"{path}.{name}"
            else:
                continue
            below = None
            if pair is not None and (path or name not in ("kind", "apiVersion")):
                below = pair.key(name)
            if below is None:
                known.run(one, here, result)
            else:
                known.run_pair(below, here, result)
        for name in node.required:
            if name not in value:
                here = f"{path}.{name}"
                result.add(here, f"{here} in body is required", lambda at, _: problems.required(at))

    # --- junctors -----------------------------------------------------------------------------------------------------

    def _check_junctors(self, value: Any, path: str, result: _Result) -> None:
        if self._any:
            self._check_any(value, path, result)
        if self._one:
            self._check_one(value, path, result)
        if self._all:
            valid = 0
            for check in self._all:
                own = _Result()
                check.run(value, path, own)
                valid += not own.found
                result.merge(own)
            if valid != len(self._all):
                none = "" if valid else ". None validated"
                text = f"{problems.quoted(path)} must validate all the schemas (allOf){none}"
                result.add(None, text, _composite)
        if self._not is not None:
            own = _Result()
            self._not.run(value, path, own)
            if not own.found:
                result.add(None, f"{problems.quoted(path)} must not validate the schema (not)", _composite)

    def _check_any(self, value: Any, path: str, result: _Result) -> None:
        best: _Result | None = None
        for check in self._any:
            own = _Result()
            check.run(value, path, own)
            if not own.found:
                result.merge(own)
                return
            if best is None or own.checks > best.checks:
                best = own
        result.add(None, f"{problems.quoted(path)} must validate at least one schema (anyOf)", _composite)
        if best is not None:
            result.merge(best)

    def _check_one(self, value: Any, path: str, result: _Result) -> None:
        best: _Result | None = None
        first: _Result | None = None
        valid = 0
        for check in self._one:
            own = _Result()
            check.run(value, path, own)
            if not own.found:
                valid += 1
                best = None
                first = first or own
            elif not valid and (best is None or own.checks > best.checks):
                best = own
        if valid == 1:
            assert first is not None
            result.merge(first)
            return
        found = f"Found {valid} valid alternatives" if valid else "Found none valid"
        text = f"{problems.quoted(path)} must validate one and only one schema (oneOf). {found}"
        result.add(None, text, _composite)
        if best is not None:
            result.merge(best)


# Values ---------------------------------------------------------------------------------------------------------------


def _is_int64(value: int | float) -> bool:
    """Go reads other numbers as float64."""
    return isinstance(value, int) and -_INT64 <= value < _INT64


def _kind_of(value: Any) -> tuple[str, str]:
    """The type and the format of a value (``schemaInfoForType``)."""
    if isinstance(value, str):
        return "string", ""
    if isinstance(value, bool):
        return "boolean", ""
    if isinstance(value, int | float):
        return ("integer", "int64") if _is_int64(value) else ("number", "float64")
    return ("array", "") if isinstance(value, list) else ("object", "")


def _is_json_integer(number: float) -> bool:
    """``IsFloat64AJSONInteger``."""
    if not math.isfinite(number) or abs(number) > _LARGEST_JSON_INTEGER:
        return False
    if float(number).is_integer():
        return True
    if number < 0:
        return False
    whole = math.floor(number)
    return whole != 0 and (number - whole) / (number + whole) < _EPSILON


def _to_int64(number: float) -> int:
    """``int64(…)`` on amd64."""
    if not math.isfinite(number) or not -_INT64 <= number < _INT64:
        return -_INT64
    return int(number)


def _check_multiple(value: int | float, factor: float, path: str, result: _Result, is_native: bool) -> None:
    if is_native:
        whole = _to_int64(factor)
        if whole <= 0:
            _add_factor(whole, path, result)
        elif int(value) % whole:
            result.add(path, f"{path} in body should be a multiple of {whole}", _wrong(value))
        return
    if factor <= 0:
        _add_factor(factor, path, result)
        return
    times = 1 / factor * value if factor < 1 else value / factor
    if not _is_json_integer(times):
        result.add(path, f"{path} in body should be a multiple of {problems.number(factor)}", _wrong(value))


def _add_factor(factor: int | float, path: str, result: _Result) -> None:
    text = f"factor MultipleOf declared for {path} must be positive: {problems.number(factor)}"
    result.add(path, text, _wrong(factor))


def _check_bound(
    value: int | float, limit: float, exclusive: bool, sign: int, path: str, result: _Result, is_native: bool
) -> None:
    bound = _to_int64(limit) if is_native else limit
    beyond = value > bound if sign > 0 else value < bound
    if not beyond and not (exclusive and value == bound):
        return
    word = "less than" if sign > 0 else "greater than"
    or_equal = "" if exclusive else " or equal to"
    result.add(path, f"{path} in body should be {word}{or_equal} {problems.number(bound)}", _wrong(value))


def _is_enumerated(value: Any, known: Any) -> bool:
    """Go converts the value to the type of the listed one, if it can."""
    if known is None:
        return False
    if isinstance(value, bool) or isinstance(known, bool):
        return isinstance(value, bool) and isinstance(known, bool) and value == known
    if isinstance(value, int | float):
        if isinstance(known, str):
            return isinstance(value, int) and 0 <= value < 0x110000 and chr(value) == known
        if isinstance(known, int):
            return _to_int64(value) == known if isinstance(value, float) else value == known
        return isinstance(known, float) and float(value) == known
    return same(value, known)


def _go_list(values: tuple[Any, ...]) -> str:
    from kemu.emulated.objects.managed_fields import go_texts

    return go_texts.plain(list(values))


def _supported(name: str, types: tuple[str, ...]) -> str:
    """Formats that do not belong to a type are ignored (``StripUnsupportedFormatsPostProcess``)."""
    kind = types[0] if len(types) == 1 else ""
    if kind in ("", "string"):
        return name if formats.is_supported(name) else ""
    known = {"integer": ("int32", "int64"), "number": ("float", "double")}.get(kind, ())
    return name if name in known else ""
