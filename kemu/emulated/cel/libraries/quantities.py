"""Resource quantities in expressions.

Amounts and texts are those of `kemu.emulated.objects.amounts.quantities`. Here it shows, too, how Go keeps an amount:
as an integer with a decimal exponent as long as that is enough, else as a decimal of any size; only the former may be
an integer.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from kemu.emulated.cel import types
from kemu.emulated.cel.declarations import Functions
from kemu.emulated.cel.types import BOOL, DOUBLE, INT, STRING
from kemu.emulated.cel.values import INT_MAX, INT_MIN, NO_OVERLOAD, Error, Opaque, Value
from kemu.emulated.objects.amounts import quantities

_QUANTITY = types.abstract("kubernetes.Quantity")
_TEXT = re.compile(r"([+-]?)([0-9]*)(?:\.([0-9]*))?([eE][+-]?[0-9]+|[A-Za-z]*)", re.ASCII)
_SHAPE = re.compile(r"[+-]?[0-9]*(?:\.[0-9]*)?[eEinumkKMGTP]*[-+]?[0-9]*", re.ASCII)
_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_LARGEST_EXPONENT = 100
_WRONG_FORMAT = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
_WRONG_SUFFIX = "unable to parse quantity's suffix"


class Quantity(Opaque):
    """An amount; ``small`` is Go's integer and decimal exponent, if it keeps the amount so.

    ``summed``: the result of a sum or a difference, with which Kubernetes compares no other quantity.
    """

    __slots__ = ("amount", "small", "summed")
    type_name = "kubernetes.Quantity"
    constant_equality = True

    def __init__(self, amount: quantities.Quantity, small: tuple[int, int] | None, summed: bool = False) -> None:
        self.amount = amount
        self.small = small
        self.summed = summed

    def equal(self, other: Value) -> Value:
        if type(other) is not Quantity or other.summed:
            return other if type(other) is Error else NO_OVERLOAD
        return self.amount == other.amount

    def __str__(self) -> str:
        return str(self.amount)


def parse(text: str) -> Quantity | Error:
    """The quantity, or Kubernetes' message."""
    try:
        amount = quantities.parse(text)
    except ValueError as error:
        of_suffix = str(error).startswith(_WRONG_SUFFIX) and _SHAPE.fullmatch(text)
        return Error(_WRONG_SUFFIX if of_suffix else _WRONG_FORMAT)
    small = _small(text)
    if small is not None and 9 < small[1] < _LARGEST_EXPONENT:
        # Amounts that Go keeps as an integer with an exponent are not capped.
        amount = quantities.Quantity(small[0] * 10 ** (small[1] + 9), amount.format)
    return Quantity(amount, small)


def _small(text: str) -> tuple[int, int] | None:
    found = _TEXT.fullmatch(text)
    assert found is not None, "the text was parsed before"
    sign, whole, fraction, suffix = found[1], found[2].lstrip("0"), found[3] or "", found[4]
    whole = whole or ("0" if found[2] else "")
    mantissa, scale = 1, 0
    if suffix in _BINARY:
        exponent = _BINARY[suffix]
        if fraction:
            return None
        mantissa = 1 << exponent
        precision = 15 - len(whole) - int(exponent * 3 / 10) - 1
    else:
        scale = _DECIMAL[suffix] if suffix in _DECIMAL else int(suffix[1:])
        precision = 18 - len(whole) - len(fraction)
    if precision < 0 or scale - len(fraction) < -9:
        return None
    value = int(sign + (whole + fraction or "0")) * mantissa
    return value, scale - len(fraction)


def _scaled(value: int, exponent: int) -> int | None:
    if exponent > 18:
        return 0 if value == 0 else None
    result = value * 10**exponent
    return result if INT_MIN <= result <= INT_MAX else None


def _sum(left: Quantity, right: Quantity, sign: int) -> Quantity:
    amount = left.amount + right.amount if sign > 0 else left.amount - right.amount
    if left.amount.nano == 0:
        amount = quantities.Quantity(amount.nano, right.amount.format)
    small: tuple[int, int] | None = None
    if left.small is not None and right.small is not None:
        (value, scale), (other, other_scale) = left.small, right.small
        other *= sign
        if other == 0:
            small = left.small
        elif value == 0:
            small = other, other_scale
        else:
            least = min(scale, other_scale)
            first, second = _scaled(value, scale - least), _scaled(other, other_scale - least)
            if first is not None and second is not None and INT_MIN <= first + second <= INT_MAX:
                small = first + second, least
    return Quantity(amount, small, summed=True)


def _of_int(value: int) -> Quantity:
    return Quantity(quantities.Quantity(value * quantities.NANO, quantities.Format.DECIMAL_EXPONENT), (value, 0))


def _as_integer(quantity: Quantity) -> int | None:
    if quantity.small is None or quantity.small[1] < 0:
        return None
    return _scaled(*quantity.small)


def _integer_or_error(quantity: Value) -> Value:
    number = _as_integer(quantity)
    return Error("cannot convert value to integer") if number is None else number


def _float(quantity: Value) -> Value:
    if quantity.small is not None:
        value, scale = quantity.small
        return float(value) * 10.0**scale if scale else float(value)
    return quantity.amount.nano / quantities.NANO


def _compare(left: Quantity, right: Quantity) -> int:
    return (left.amount.nano > right.amount.nano) - (left.amount.nano < right.amount.nano)


def _plus(sign: int, of_int: bool) -> Callable[[Value, Value], Value]:
    return lambda left, right: _sum(left, _of_int(right) if of_int else right, sign)


def declare(functions: Functions) -> None:
    free, member = functions.free, functions.member
    pair = (_QUANTITY, _QUANTITY)
    free("quantity", "string_to_quantity", (STRING,), _QUANTITY, parse)
    free("isQuantity", "is_quantity_string", (STRING,), BOOL, lambda text: not isinstance(parse(text), Error))
    free("sign", "quantity_sign", (_QUANTITY,), INT, lambda given: (given.amount.nano > 0) - (given.amount.nano < 0))
    member("isGreaterThan", "quantity_is_greater_than", pair, BOOL, lambda left, right: _compare(left, right) > 0)
    member("isLessThan", "quantity_is_less_than", pair, BOOL, lambda left, right: _compare(left, right) < 0)
    member("compareTo", "quantity_compare_to", pair, INT, _compare)
    member("asApproximateFloat", "quantity_get_float", (_QUANTITY,), DOUBLE, _float)
    member("asInteger", "quantity_get_int", (_QUANTITY,), INT, _integer_or_error)
    member("isInteger", "quantity_is_integer", (_QUANTITY,), BOOL, lambda given: _as_integer(given) is not None)
    for name, sign in (("add", 1), ("sub", -1)):
        member(name, f"quantity_{name}", pair, _QUANTITY, _plus(sign, False))
        member(name, f"quantity_{name}_int", (_QUANTITY, INT), _QUANTITY, _plus(sign, True))
