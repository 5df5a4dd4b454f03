"""Quantities are exact, and written and rounded as Kubernetes does."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kemu.emulated.objects.amounts import quantities
from kemu.emulated.objects.amounts.quantities import Format, Quantity

# Text, canonical text, whole units, thousandths: as k8s.io/apimachinery v0.36.3 answers.
RECORDED = [
    ("0", "0", 0, 0),
    ("00", "0", 0, 0),
    ("0Gi", "0", 0, 0),
    ("0.0", "0", 0, 0),
    ("1", "1", 1, 1000),
    ("+5", "5", 5, 5000),
    ("-5", "-5", -5, -5000),
    ("-1.5", "-1500m", -2, -1500),
    ("5.", "5", 5, 5000),
    (".5", "500m", 1, 500),
    ("0.1", "100m", 1, 100),
    ("1500m", "1500m", 2, 1500),
    ("1000m", "1", 1, 1000),
    ("1.500", "1500m", 2, 1500),
    ("100k", "100k", 100_000, 100_000_000),
    ("1000k", "1M", 1_000_000, 1_000_000_000),
    ("1e3", "1e3", 1000, 1_000_000),
    ("1E3", "1e3", 1000, 1_000_000),
    ("1000e3", "1e6", 1_000_000, 1_000_000_000),
    ("12e-3", "12e-3", 1, 12),
    ("1e-20", "1e-9", 1, 1),
    ("256e6", "256e6", 256_000_000, 256_000_000_000),
    ("100500u", "100500u", 1, 101),
    ("1n", "1n", 1, 1),
    ("0.1n", "1n", 1, 1),
    ("1.5Gi", "1536Mi", 1_610_612_736, 1_610_612_736_000),
    ("1.5n", "2n", 1, 1),
    ("1024", "1024", 1024, 1_024_000),
    ("1024Ki", "1Mi", 1_048_576, 1_048_576_000),
    ("1.1Ki", "1126400m", 1127, 1_126_400),
    ("0.1Ki", "102400m", 103, 102_400),
    ("0.5Ki", "512", 512, 512_000),
    ("-0.5Gi", "-512Mi", -536_870_912, -536_870_912_000),
    ("1Ei", "1Ei", 2**60, None),
    ("16Ei", "9223372036854775807", 2**63 - 1, None),
    ("8123456789", "8123456789", 8_123_456_789, 8_123_456_789_000),
    ("123456789012345678", "123456789012345678", 123_456_789_012_345_678, None),
]


@pytest.mark.parametrize(("text", "canonical", "value", "milli"), RECORDED)
def test_as_kubernetes_answers(text: str, canonical: str, value: int, milli: int | None) -> None:
    quantity = quantities.parse(text)
    assert str(quantity) == canonical
    assert quantities.value(text) == value
    if milli is not None:
        assert quantities.milli(text) == milli


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "empty"),
        ("1Gii", "suffix"),
        ("1gi", "suffix"),
        ("1K", "suffix"),
        ("1e", "suffix"),
        ("1ee3", "number"),
        ("--1", "number"),
        ("1 Gi", "blanks"),
        (" 1", "blanks"),
        ("1\n", "blanks"),
        ("Pi", "number"),
        (".e-10", "number"),
        ("1.2.3", "number"),
        ("0x10", "number"),
        ("1,5", "number"),
        ("\u0661", "number"),
        ("1" * 5000, "long"),
        ("1e" + "9" * 5000, "long"),
    ],
)
def test_refuses_what_is_no_quantity(text: str, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        quantities.parse(text)


@pytest.mark.parametrize("text", [".", "-", "+.", "Mi", ".Ti", "m", "E", "e3", "-e-9"])
def test_a_number_without_digits_is_none(text: str) -> None:
    """``resource.ParseQuantity`` puts 0 in its place, on the path that it takes for short numbers."""
    assert quantities.parse(text).nano == 0


@pytest.mark.parametrize("text", ["12E", "1e100", "1e999999", "16Ei", "9223372036854775808"])
def test_caps_at_an_int64(text: str) -> None:
    assert quantities.value(text) == quantities.MAX_VALUE
    assert quantities.milli(text) == quantities.MAX_VALUE
    assert quantities.parse(f"-{text}").value == -quantities.MAX_VALUE


def test_a_hair_is_worth_the_least_amount() -> None:
    assert quantities.parse("1e-999999").nano == 1


SUFFIXES = {
    **{suffix: Fraction(10) ** exponent for suffix, exponent in zip("num", (-9, -6, -3), strict=True)},
    "": Fraction(1),
    **{suffix: Fraction(10) ** exponent for suffix, exponent in zip("kMGT", (3, 6, 9, 12), strict=True)},
    **{f"{suffix}i": Fraction(1024) ** power for power, suffix in enumerate("KMGT", start=1)},
    **{f"e{exponent}": Fraction(10) ** exponent for exponent in (-9, -3, 0, 2, 7)},
}

texts = st.builds(
    lambda sign, whole, fraction, suffix: f"{sign}{whole}{fraction and '.' + fraction}{suffix}",
    st.sampled_from(["", "-", "+"]),
    st.integers(0, 5000).map(str),
    st.one_of(st.just(""), st.from_regex(r"[0-9]{1,6}", fullmatch=True)),
    st.sampled_from(sorted(SUFFIXES)),
)
amounts = st.builds(Quantity, st.integers(-(10**24), 10**24), st.sampled_from(Format))


@given(texts)
def test_the_amount_is_exact_and_rounded_away_from_zero(text: str) -> None:
    number = text.rstrip("numkKMGTPi") if "e" not in text else text[: text.index("e")]
    exact = Fraction(number) * SUFFIXES[text[len(number) :]]
    quantity = quantities.parse(text)
    error = Fraction(quantity.nano) - exact * 10**9
    assert abs(error) < 1
    assert error == 0 or (error > 0) == (exact > 0)
    for rounded, unit in ((quantity.value, 10**9), (quantity.milli, 10**6)):
        assert abs(rounded) * unit >= abs(quantity.nano) > (abs(rounded) - 1) * unit


@given(amounts)
def test_the_canonical_text_loses_nothing(quantity: Quantity) -> None:
    text = str(quantity)
    again = quantities.parse(text)
    assert again == quantity
    # 125000 in BinarySI stays 125000, though it is read as DecimalSI.
    assert str(Quantity(again.nano, quantity.format)) == text
    assert "." not in text


@given(amounts, amounts)
def test_sums_and_order_are_those_of_the_amounts(one: Quantity, other: Quantity) -> None:
    assert (one + other).nano == one.nano + other.nano
    assert (one - other).nano == one.nano - other.nano
    assert (one < other) == (one.nano < other.nano)
    assert (one == other) == (one.nano == other.nano)
    assert (-one).nano == -one.nano


def test_a_sum_is_written_like_its_first_part() -> None:
    assert str(quantities.parse("1Gi") + quantities.parse("1000M")) == "2073741824"
    assert str(quantities.parse("1Gi") + quantities.parse("1073741824")) == "2Gi"
    assert str(quantities.ZERO + quantities.parse("1Gi")) == "1Gi"


def test_formatting_of_plain_numbers() -> None:
    assert quantities.format_milli(1500) == "1500m"
    assert quantities.format_milli(2000) == "2"
    assert quantities.format_value(1_048_576) == "1048576"
    assert quantities.format_value(1_048_576, Format.BINARY_SI) == "1Mi"
