"""Settings that are declared once: their defaults, their keys, their values."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import pytest

from kemu.emulated.autoscaler.settings import Settings
from kemu.emulated.settings.declared import keys, read, rows, section, setting
from kemu.emulated.settings.documents import Document
from kemu.emulated.settings.shapes import INVALID, SECONDS, ListOf, Report, Text, Whole


@dataclass(frozen=True)
class Inner:
    pause: float = setting(SECONDS, "How long; {default}.", "1m30s")


@dataclass(frozen=True)
class Outer:
    count: int = setting(Whole(1), "How many; {default}.", 3)
    names: list[str] = setting(ListOf(Text()), "Which.", ["a"])
    inner: Inner = section(Inner, "The rest.")


def test_a_default_is_read_as_what_a_user_writes() -> None:
    assert Outer() == Outer(3, ["a"], Inner(90.0))
    assert Outer().names is not Outer().names


def test_a_default_stands_in_the_document() -> None:
    assert keys(Inner)["pause"].doc == "How long; 1m30s."
    assert list(rows(Outer)) == [
        ("count", "3", "How many; 3."),
        ("names", "['a']", "Which."),
        ("inner.pause", "1m30s", "How long; 1m30s."),
    ]


def test_values_are_read_and_the_rest_keeps_its_default() -> None:
    assert read(Outer, {"inner": {"pause": 5.0}, "nodeGroups": []}) == Outer(inner=Inner(5.0))


def test_all_mistakes_are_found_at_once() -> None:
    problems: list = []
    report = Report(Document("a.yaml", {}), problems)
    assert keys(Outer)["count"].shape.check(0, ("count",), report) is INVALID
    keys(Outer)["inner"].shape.check({"pause": 1, "pauze": "1s"}, ("inner",), report)
    assert [(each.path, each.message) for each in problems] == [
        ("count", "must be at least 1, but is 0"),
        ("inner.pause", "has no unit; did you mean 1s?"),
        ("inner.pauze", "is not a key that may stand here"),
    ]
    assert problems[2].suggestion == "did you mean pause?"


@pytest.mark.parametrize("default", [0, "3", 1.5, None])
def test_a_default_that_its_own_shape_refuses_is_an_error(default: object) -> None:
    with pytest.raises(ValueError, match="is no default"):
        setting(Whole(1), "How many.", default)


def test_every_flag_of_the_autoscaler_is_declared() -> None:
    assert [one.name for one in dataclasses.fields(Settings)] == [*keys(Settings)]
