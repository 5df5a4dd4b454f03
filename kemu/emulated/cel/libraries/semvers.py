"""Semantic versions."""

from __future__ import annotations

import re

from kemu.emulated.cel import types
from kemu.emulated.cel.declarations import Functions
from kemu.emulated.cel.numbers import quoted
from kemu.emulated.cel.types import BOOL, INT, STRING
from kemu.emulated.cel.values import NO_OVERLOAD, UINT_MAX, Error, Opaque, Value

_SEMVER = types.abstract("kubernetes.Semver")
_NUMBER = re.compile("[0-9]*")
_NAME = re.compile("[0-9A-Za-z-]*")


class _Malformed(Exception):
    """The message of Go's package semver."""


class Semver(Opaque):
    """A version; the parts of ``pre`` are numbers or texts."""

    __slots__ = ("build", "numbers", "pre")
    type_name = "kubernetes.Semver"
    constant_equality = True

    def __init__(self, numbers: tuple[int, int, int], pre: tuple[int | str, ...], build: tuple[str, ...]) -> None:
        self.numbers = numbers
        self.pre = pre
        self.build = build

    def equal(self, other: Value) -> Value:
        if type(other) is not Semver:
            return other if type(other) is Error else NO_OVERLOAD
        return compare(self, other) == 0

    def __str__(self) -> str:
        pre = f"-{'.'.join(map(str, self.pre))}" if self.pre else ""
        return ".".join(map(str, self.numbers)) + pre + (f"+{'.'.join(self.build)}" if self.build else "")


def compare(left: Semver, right: Semver) -> int:
    """-1, 0 or 1; builds do not matter."""
    if left.numbers != right.numbers:
        return 1 if left.numbers > right.numbers else -1
    if not left.pre or not right.pre:
        return bool(right.pre) - bool(left.pre)
    first, second = (tuple((type(part) is str, part) for part in version.pre) for version in (left, right))
    return (first > second) - (first < second)


def _number(name: str, text: str) -> int:
    if not _NUMBER.fullmatch(text):
        raise _Malformed(f"Invalid character(s) found in {name.lower()} number {quoted(text)}")
    if len(text) > 1 and text[0] == "0":
        raise _Malformed(f"{name} number must not contain leading zeroes {quoted(text)}")
    return _unsigned(text)


def _unsigned(text: str) -> int:
    if not text:
        raise _Malformed('strconv.ParseUint: parsing "": invalid syntax')
    if len(text) > 20 or int(text) > UINT_MAX:
        raise _Malformed(f"strconv.ParseUint: parsing {quoted(text)}: value out of range")
    return int(text)


def _pre_release(text: str) -> int | str:
    if not text:
        raise _Malformed("Prerelease is empty")
    if _NUMBER.fullmatch(text):
        if len(text) > 1 and text[0] == "0":
            raise _Malformed(f"Numeric PreRelease version must not contain leading zeroes {quoted(text)}")
        return _unsigned(text)
    if not _NAME.fullmatch(text):
        raise _Malformed(f"Invalid character(s) found in prerelease {quoted(text)}")
    return text


def _build(text: str) -> str:
    if not text:
        raise _Malformed("Build meta data is empty")
    if not _NAME.fullmatch(text):
        raise _Malformed(f"Invalid character(s) found in build meta data {quoted(text)}")
    return text


def _parse(text: str) -> Semver:
    if not text:
        raise _Malformed("Version string empty")
    parts = text.split(".", 2)
    if len(parts) != 3:
        raise _Malformed("No Major.Minor.Patch elements found")
    major, minor = _number("Major", parts[0]), _number("Minor", parts[1])
    rest, plus, build = parts[2].partition("+")
    patch_text, dash, pre = rest.partition("-")
    patch = _number("Patch", patch_text)
    pre_parts = tuple(_pre_release(part) for part in pre.split(".")) if dash else ()
    return Semver((major, minor, patch), pre_parts, tuple(_build(part) for part in build.split(".")) if plus else ())


def _normalized(text: str) -> str:
    """With three numbers, without ``v`` and leading zeros."""
    parts = text.removeprefix("v").split(".", 2)
    for index, part in enumerate(parts):
        if len(part) > 1:
            stripped = part.lstrip("0")
            parts[index] = stripped if stripped and stripped[0] in "0123456789" else f"0{stripped}"
    if len(parts) < 3:
        if "+" in parts[-1] or "-" in parts[-1]:
            raise _Malformed("short version cannot contain PreRelease/Build meta data")
        parts.extend(["0"] * (3 - len(parts)))
    return ".".join(parts)


def parse(text: Value, normalize: Value = False) -> Value:
    """The version, or the message of Go's package semver."""
    try:
        return _parse(_normalized(text) if normalize else text)
    except _Malformed as malformed:
        return Error(str(malformed))


def _is_semver(text: Value, normalize: Value = False) -> Value:
    return type(parse(text, normalize)) is not Error


def declare(functions: Functions) -> None:
    free, member = functions.free, functions.member
    pair = (_SEMVER, _SEMVER)
    free("semver", "string_to_semver", (STRING,), _SEMVER, parse)
    free("semver", "string_bool_to_semver", (STRING, BOOL), _SEMVER, parse)
    free("isSemver", "is_semver_string", (STRING,), BOOL, _is_semver)
    free("isSemver", "is_semver_string_bool", (STRING, BOOL), BOOL, _is_semver)
    member("isGreaterThan", "semver_is_greater_than", pair, BOOL, lambda left, right: compare(left, right) > 0)
    member("isLessThan", "semver_is_less_than", pair, BOOL, lambda left, right: compare(left, right) < 0)
    member("compareTo", "semver_compare_to", pair, INT, compare)
    for index, name in enumerate(("major", "minor", "patch")):
        member(name, f"semver_{name}", (_SEMVER,), INT, lambda version, index=index: version.numbers[index])
