"""Resource quantities, exactly: ``1500m``, ``1.5Gi``, ``1e3``.

Behaves as ``k8s.io/apimachinery/pkg/api/resource`` (v0.36): three formats, a canonical text in which no precision is
lost, amounts below a billionth rounded up to one. Amounts are integers in billionths, so sums and comparisons are
exact; rounding happens only in :func:`milli` and :func:`value`, always away from zero.

Objects hold the text of a quantity (``meta.v1.Quantity.string``) as :func:`held` makes it of what was given.
``requests`` turns it into the integers that scheduling works with.
"""

from __future__ import annotations

import enum
import re
from dataclasses import dataclass
from functools import total_ordering

from kemu.emulated.objects.caches import text_cache

NANO = 1_000_000_000
MAX_VALUE = 2**63 - 1
"""The largest whole amount that a quantity can stand for; larger ones are capped to it."""

_CACHE_SIZE = 65_536
_MAX_LENGTH = 1000


class Format(enum.Enum):
    """How a quantity is written."""

    DECIMAL_SI = "DecimalSI"
    BINARY_SI = "BinarySI"
    DECIMAL_EXPONENT = "DecimalExponent"


_DECIMAL_SUFFIXES = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_DECIMAL_SUFFIX_OF = {exponent: suffix for suffix, exponent in _DECIMAL_SUFFIXES.items()}
_BINARY_SUFFIXES = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_BINARY_SUFFIX_OF = {0: "", **{exponent: suffix for suffix, exponent in _BINARY_SUFFIXES.items()}}

_MAX_BARE_EXPONENT = {Format.DECIMAL_SI: 18, Format.DECIMAL_EXPONENT: MAX_VALUE, Format.BINARY_SI: 40}
"""A number without digits (``Mi``, ``.``) is 0 wherever ParseQuantity takes its short path, which depends on this."""
_NUMBER = re.compile(r"([+-]?)([0-9]*)(?:\.([0-9]*))?([eE][+-]?[0-9]+|[A-Za-z]*)", re.ASCII)
_SUFFIX_HINT = "n, u, m, k, M, G, T, P, E, Ki, Mi, Gi, Ti, Pi, Ei, or an exponent such as e3"


@total_ordering
@dataclass(frozen=True, slots=True, eq=False)
class Quantity:
    """An exact amount. Quantities of different formats are equal when their amounts are."""

    nano: int
    """The amount in billionths."""
    format: Format = Format.DECIMAL_SI

    @property
    def value(self) -> int:
        """Whole units, rounded away from zero, capped to an int64."""
        return max(-MAX_VALUE - 1, min(_divide_up(self.nano, NANO), MAX_VALUE))

    @property
    def milli(self) -> int:
        """Thousandths, rounded away from zero, capped to an int64 (where Kubernetes overflows)."""
        return max(-MAX_VALUE, min(_divide_up(self.nano, 1_000_000), MAX_VALUE))

    def __str__(self) -> str:
        """The canonical text: no precision lost, no fraction, the largest possible suffix."""
        if self.nano == 0:
            return "0"
        if self.format is Format.BINARY_SI and abs(self.nano) >= 1024 * NANO and self.nano % NANO == 0:
            number, exponent = self.nano // NANO, 0
            while exponent < 60 and number % 1024 == 0:
                number //= 1024
                exponent += 10
            return f"{number}{_BINARY_SUFFIX_OF[exponent]}"
        number, exponent = self.nano, -9
        highest = 18 if self.format is not Format.DECIMAL_EXPONENT else MAX_VALUE
        while exponent < highest and number % 1000 == 0:
            number //= 1000
            exponent += 3
        if self.format is Format.DECIMAL_EXPONENT:
            return f"{number}e{exponent}" if exponent else str(number)
        return f"{number}{_DECIMAL_SUFFIX_OF[exponent]}"

    def __add__(self, other: Quantity) -> Quantity:
        return Quantity(self.nano + other.nano, self.format if self.nano else other.format)

    def __sub__(self, other: Quantity) -> Quantity:
        return Quantity(self.nano - other.nano, self.format if self.nano else other.format)

    def __neg__(self) -> Quantity:
        return Quantity(-self.nano, self.format)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Quantity) and self.nano == other.nano

    def __lt__(self, other: Quantity) -> bool:
        return self.nano < other.nano

    def __hash__(self) -> int:
        return hash(self.nano)


ZERO = Quantity(0)


@text_cache(_CACHE_SIZE)
def parse(text: str) -> Quantity:
    """Read a quantity. Raises ValueError with a text that says what is wrong with it."""
    match = _NUMBER.fullmatch(text) if len(text) <= _MAX_LENGTH else None
    if match is None:
        raise ValueError(_what_is_wrong(text))
    sign, whole, fraction, suffix = match.groups()
    fraction = fraction or ""
    known = _interpreted(suffix)
    if known is None:
        if not whole and not fraction:
            raise ValueError(_what_is_wrong(text))
        what = f"unable to parse quantity's suffix: {text!r} ends in {suffix!r}"
        meant = _meant(suffix)
        if meant:
            number = text.removesuffix(suffix)
            raise ValueError(f"{what}; did you mean {' or '.join(f'{number}{unit}' for unit in meant)}?")
        raise ValueError(f"{what}, which is none of {_SUFFIX_HINT}")
    base, exponent, form = known
    if not text or (not (whole or fraction) and not -9 <= exponent <= _MAX_BARE_EXPONENT[form]):
        raise ValueError(_what_is_wrong(text))
    nano = _nano(int(whole + fraction or "0"), len(fraction), base, exponent)
    if form is Format.BINARY_SI and 0 < nano < NANO:
        form = Format.DECIMAL_SI
    return Quantity(-nano if sign == "-" else nano, form)


def _interpreted(suffix: str) -> tuple[int, int, Format] | None:
    """Base, exponent and format."""
    if suffix in _DECIMAL_SUFFIXES:
        return 10, _DECIMAL_SUFFIXES[suffix], Format.DECIMAL_SI
    if suffix in _BINARY_SUFFIXES:
        return 2, _BINARY_SUFFIXES[suffix], Format.BINARY_SI
    if suffix[1:] and suffix[0] in "eE" and suffix[-1].isdigit():
        return 10, int(suffix[1:]), Format.DECIMAL_EXPONENT
    return None


@text_cache(_CACHE_SIZE)
def held(text: str) -> str:
    """The text that Kubernetes goes on with: a short one without a fraction stays as it is (``1500m``, ``1e3``); of the
    others it writes the amount anew (``500m`` for ``0.5``, ``1Gi`` for ``1024Mi``), but here not of amounts beyond an
    int64. Raises ValueError."""
    text = text.strip()
    quantity = parse(text)
    if text == "0" or (abs(quantity.nano) == MAX_VALUE * NANO and quantity.format is not Format.BINARY_SI):
        return text
    match = _NUMBER.fullmatch(text)
    assert match is not None
    _, whole, fraction, suffix = match.groups()
    known = _interpreted(suffix)
    assert known is not None
    base, exponent, _ = known
    fraction = fraction or ""
    digits = (whole.lstrip("0") or "0") + fraction
    if base == 2:
        is_short = not fraction and len(digits) + exponent * 3 // 10 + 1 <= 15
        is_kept = is_short and int(digits) % 8 != 0
    else:
        scale = exponent - len(fraction)
        is_kept = len(digits) <= 18 and scale >= -9 and scale % 3 == 0 and digits[-3:] != "000" and digits[0] != "0"
    return text if is_kept else str(quantity)


def _meant(suffix: str) -> tuple[str, ...]:
    """Which suffixes are meant by ``GB``, ``gib``, ``mc`` or ``cores``; none if it is not known."""
    unit = re.fullmatch(r"([kmgtpe])(i?)(b|bytes?)?", suffix.lower())
    if unit is not None:
        decimal = "k" if unit[1] == "k" else unit[1].upper()
        binary = f"{unit[1].upper()}i"
        return (binary,) if unit[2] else (decimal, binary)
    if re.fullmatch(r"b|bytes?|c|cpus?|cores?|vcpus?", suffix.lower()):
        return ("",)
    if re.fullmatch(r"mc|mcpus?|mcores?|milli|millicores?|millicpus?", suffix.lower()):
        return ("m",)
    return ()


def _nano(digits: int, fraction_digits: int, base: int, exponent: int) -> int:
    """``digits`` / 10^fraction_digits * base^exponent in billionths: rounded up, capped at MAX_VALUE."""
    if digits == 0:
        return 0
    if base == 2:
        nano = _divide_up(digits * NANO << exponent, 10**fraction_digits)
    else:
        shift = exponent - fraction_digits + 9
        if shift < 0:
            # The least amount is a billionth; anything positive is worth at least that.
            nano = 1 if -shift > len(str(digits)) else _divide_up(digits, 10**-shift)
        else:
            nano = MAX_VALUE * NANO if shift > 40 else digits * 10**shift
    return min(nano, MAX_VALUE * NANO)


def _divide_up(number: int, by: int) -> int:
    return -(-number // by) if number >= 0 else number // by


def _what_is_wrong(text: str) -> str:
    if len(text) > _MAX_LENGTH:
        return f"quantities must be a number and an optional suffix: the text is too long ({len(text)} characters)"
    if not text:
        return "quantities must be a number and an optional suffix: the text is empty"
    if text != text.strip() or " " in text:
        return f"quantities must be a number and an optional suffix, without blanks: {text!r}"
    return f"quantities must be a number and an optional suffix ({_SUFFIX_HINT}): {text!r}"


@text_cache(_CACHE_SIZE)
def value(text: str) -> int:
    """Whole units of a quantity's text, rounded up. Raises ValueError."""
    return parse(text).value


@text_cache(_CACHE_SIZE)
def milli(text: str) -> int:
    """Thousandths of a quantity's text, rounded up: cpu in millicores. Raises ValueError."""
    return parse(text).milli


def approximate(text: str) -> float:
    """As ``AsApproximateFloat64`` gives it: the digits times a power, each a float. Raises ValueError."""
    match = _NUMBER.fullmatch(str(parse(text)))
    assert match is not None
    sign, digits, _, suffix = match.groups()
    number = float(sign + digits)
    if suffix in _BINARY_SUFFIXES:
        return number * 2.0 ** _BINARY_SUFFIXES[suffix]
    exponent = _DECIMAL_SUFFIXES[suffix] if suffix in _DECIMAL_SUFFIXES else int(suffix[1:])
    return number * 10.0**exponent if exponent else number


def format_milli(amount: int) -> str:
    """Canonical text of an amount in thousandths: 1500 is ``1500m``, 2000 is ``2``."""
    return str(Quantity(amount * 1_000_000))


def format_value(amount: int, form: Format = Format.DECIMAL_SI) -> str:
    """Canonical text of a whole amount: 1048576 is ``1Mi`` in BINARY_SI."""
    return str(Quantity(amount * NANO, form))


def shortest(amount: int) -> str:
    """Shortest of bytes, for people: ``100Mi``, ``500M``, whichever is shorter."""
    return min((format_value(amount, form) for form in (Format.BINARY_SI, Format.DECIMAL_SI)), key=len)
