"""Settings that are declared once: their defaults, their keys, their values."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from kemu.emulated.settings.declared import REQUIRED, Complaint, Section, key_of, plain, restored, rows, setting
from kemu.emulated.settings.documents import Document
from kemu.emulated.settings.shapes import INVALID, SECONDS, ListOf, Report, Text, Whole


@dataclass(frozen=True)
class Inner:
    pause: float = setting(SECONDS, "How long; {default}.", "1m30s")


@dataclass(frozen=True)
class Outer:
    count: int = setting(Whole(1), "How many; {default}.", 3)
    names: list[str] = setting(ListOf(Text()), "Which.", ["a"])
    inner: Inner = setting(Section(Inner), "The rest.", {})
    others: list[Inner] = setting(ListOf(Section(Inner)), "More.", [])

    def complaints(self) -> Iterator[Complaint]:
        if self.count < len(self.names):
            yield Complaint(("names",), "are too many")


@dataclass(frozen=True, kw_only=True)
class Named:
    name: str = setting(Text(), "Which.", REQUIRED)
    delay_after_add_s: float = setting(SECONDS, "How long.", 0)


def check(cls: type, data: object) -> tuple[object, list[tuple[str, str]]]:
    """What came of it, and the mistakes with their paths."""
    problems: list = []
    found = Section(cls).check(data, (), Report(Document("a.yaml", data), problems))
    return found, [(each.path, each.message) for each in problems]


def test_a_default_is_read_as_what_a_user_writes() -> None:
    assert Outer() == Outer(3, ["a"], Inner(90.0))
    assert Outer().names is not Outer().names


def test_a_default_stands_in_the_document() -> None:
    assert list(rows(Outer)) == [
        ("count", "3", "How many; 3."),
        ("names", "['a']", "Which."),
        ("inner.pause", "1m30s", "How long; 1m30s."),
        ("others", "[]", "More."),
    ]
    assert Section(Inner).schema()["properties"]["pause"]["description"] == "How long; 1m30s."


def test_values_are_read_and_the_rest_keeps_its_default() -> None:
    assert check(Outer, {"inner": {"pause": "5s"}}) == (Outer(inner=Inner(5.0)), [])


def test_all_mistakes_are_found_at_once_and_leave_the_defaults() -> None:
    found, problems = check(Outer, {"count": 0, "inner": {"pause": 1, "pauze": "1s"}})
    assert found == Outer()
    assert problems == [
        ("count", "must be at least 1, but is 0"),
        ("inner.pause", "has no unit; did you mean 1s?"),
        ("inner.pauze", "is not a key that may stand here"),
    ]


def test_a_rule_about_several_settings_is_a_method() -> None:
    assert check(Outer, {"count": 1, "names": ["a", "b"]})[1] == [("names", "are too many")]


def test_without_a_required_setting_there_are_none() -> None:
    assert check(Named, {}) == (INVALID, [("", "name is missing")])
    assert check(Named, {"name": "a", "delayAfterAdd": "1s"}) == (Named(name="a", delay_after_add_s=1.0), [])


def test_a_key_is_the_name_of_its_field_without_the_unit() -> None:
    assert [key_of(name) for name in ("delay_after_add_s", "until_ns", "min")] == ["delayAfterAdd", "until", "min"]


def test_settings_travel_as_plain_data() -> None:
    one = Outer(2, ["b"], Inner(1.0), [Inner(2.0)])
    assert plain(one) == {"count": 2, "names": ["b"], "inner": {"pause": 1.0}, "others": [{"pause": 2.0}]}
    assert restored(Outer, plain(one)) == one


@pytest.mark.parametrize("default", [0, "3", 1.5, []])
def test_a_default_that_its_own_shape_refuses_is_an_error(default: object) -> None:
    with pytest.raises(ValueError, match="is no default"):
        setting(Whole(1), "How many.", default)
