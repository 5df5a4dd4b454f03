"""Which plans come first, and how their points are named."""

from __future__ import annotations

from typing import Any, cast

import pytest

from kemu.emulated.objects.conversion import convert
from kemu.lab.hunt import planning
from kemu.lab.hunt.courses import Course
from kemu.lab.hunt.perturbations import Kind, Perturbation, Point
from kemu.lab.hunt.running.interceptors import Interceptor
from kemu.lab.hunt.running.strikes import Controllers, Strikes
from kemu.runtime.runlog.events import Transaction
from tests.hunt.recorded import OPERATOR, Recording, config, going, pod, widget


def wish(found: Recording, at_s: float, one: dict[str, Any]) -> None:
    """The user writes an object, and the operator is told."""
    found.course.asking = found.key(one)
    found.put(at_s, one)
    found.told(at_s, one)


def write(found: Recording, at_s: float, one: dict[str, Any]) -> None:
    found.put(at_s, one, by=OPERATOR)
    found.told(at_s, one)


@pytest.fixture
def resized() -> Recording:
    """A widget is made smaller: the operator deletes what is too much, when it also hears of a pod that goes."""
    found = Recording()
    wish(found, 1, widget("wanted", 2))
    for name in ("first-part", "second-part"):
        write(found, 1.1, config(name))
    found.put(1.5, pod("passer-by"))
    found.told(1.5, pod("passer-by"))
    found.put(29.9, going(pod("passer-by")))
    found.told(29.9, pod("passer-by"))
    wish(found, 30, widget("wanted", 1))
    found.remove(30.1, config("second-part"), by=OPERATOR)
    found.told(30.1, config("second-part"))
    found.put(30.2, going(pod("passer-by", labels={"seen": "no"})))
    found.remove(30.3, pod("passer-by"))
    wish(found, 60, widget("wanted", 2))
    write(found, 60.1, config("second-part"))
    return found


def first(found: Recording, what: str) -> Perturbation:
    return next(one for (one,) in planning.plans(found.outcome) if one.what == what)


@pytest.mark.parametrize("what", [Kind.FREEZE, Kind.HIDE])
def test_what_the_user_has_asked_for_comes_first(resized: Recording, what: str) -> None:
    one = first(resized, what)
    assert (one.at.kind, one.at.nth, one.at.of) == ("Widget.example.com", 1, "asked")


def test_a_step_begins_a_new_spell(resized: Recording) -> None:
    hidden = [one.at for (one,) in planning.plans(resized.outcome) if one.what == Kind.HIDE]
    assert not any(at.kind == "Pod" for at in hidden)  # the deletion that follows is due to the step


def test_a_crash_between_things_that_are_made_once_comes_first() -> None:
    found = Recording()
    wish(found, 1, widget("wanted"))
    for name in ("repaired", "first", "second"):
        write(found, 1.1, config(name))
    found.wrote_nothing(30, config("repaired"))
    crashes = [one.at.name for (one,) in planning.plans(found.outcome) if one.what == Kind.CRASH]
    assert crashes == ["first", "repaired", "second", "repaired"]


class _Cut:
    """What ends watches."""

    def __init__(self) -> None:
        self.times = 0

    def cut(self, controller: str, resource: str) -> set[str]:
        self.times += 1
        return set()


@pytest.mark.parametrize("ends", ["xyz", "abc"])
def test_random_ends_of_names_do_not_count(ends: str) -> None:
    at = Point("Pod", "web-*", "default", 2, of="create")
    cut, course = _Cut(), Course()
    strikes = Strikes([Perturbation(Kind.END, OPERATOR, at)], course, cast(Controllers, None))
    strikes.interceptor = cast(Interceptor, cut)
    for revision, name in enumerate((f"web-{ends[0]}", "other", f"web-{ends[1]}", f"web-{ends[2]}"), 1):
        value = convert.from_manifest(pod(name)).SerializeToString()
        change = [0, f"/registry/pods/default/{name}", value, revision, 1]
        strikes.changed(revision, Transaction(rev=revision, changes=[change]))
        assert strikes.all_came == (revision >= 3)
    assert cut.times == 1


def test_points_are_named_without_random_ends() -> None:
    found = Recording()
    wish(found, 1, widget("wanted"))
    for name in ("web-x", "web-y"):
        found.put(2, pod(name, generateName="web-"))
        found.told(2, pod(name))
        write(found, 2.1, config(name))
    points = {one.at for (one,) in planning.plans(found.outcome) if one.what == Kind.END and one.at.kind == "Pod"}
    assert points == {Point("Pod", "web-*", "default", 1, of="create")}
