"""Curves: their amounts, their bounds, what is refused, and the search for a second."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kemu.emulated.kubelet.usage import curves

AMOUNTS = st.integers(0, 10_000)
SECONDS = st.integers(0, 600)


@st.composite
def points(draw: st.DrawFn) -> list[dict[str, Any]]:
    seconds = sorted(draw(st.sets(SECONDS, min_size=1, max_size=5)))
    return [{"at": second, "value": draw(AMOUNTS)} for second in seconds]


@st.composite
def curve_data(draw: st.DrawFn) -> Any:
    kind = draw(st.sampled_from(curves.KINDS))
    if kind == "constant":
        return draw(AMOUNTS)
    if kind == "ramp":
        return {kind: {"from": draw(AMOUNTS), "to": draw(AMOUNTS), "over": draw(SECONDS), "after": draw(SECONDS)}}
    if kind == "sine":
        period = draw(st.integers(1, 300))
        return {kind: {"mean": draw(AMOUNTS), "amplitude": draw(AMOUNTS), "period": period, "phase": draw(SECONDS)}}
    if kind == "randomWalk":
        least, greatest = sorted((draw(AMOUNTS), draw(AMOUNTS)))
        every, step = draw(st.integers(1, 60)), draw(st.integers(0, 500))
        return {kind: {"from": draw(AMOUNTS), "step": step, "every": every, "min": least, "max": greatest}}
    return {kind: draw(points())}


class TestAmounts:
    @pytest.mark.parametrize(
        ("data", "expected"),
        [
            ("1Ki", {0: 1024, 1000: 1024}),
            ({"constant": 7}, {0: 7}),
            ({"ramp": {"from": 100, "to": 200, "over": "10s", "after": "5s"}}, {5: 100, 6: 110, 15: 200}),
            ({"ramp": {"from": 200, "to": 0, "over": "3s"}}, {0: 200, 1: 133, 2: 66, 3: 0, 4: 0}),
            ({"ramp": {"from": 5, "to": 9, "over": 0}}, {0: 9}),
            ({"sine": {"mean": 100, "amplitude": 50, "period": "4s"}}, {0: 100, 1: 150, 2: 100, 3: 50, 4: 100}),
            ({"sine": {"mean": 10, "amplitude": 50, "period": "4s", "phase": "1s"}}, {0: 60, 2: 0}),
            ({"steps": [{"at": "2s", "value": 5}, {"at": "4s", "value": 1}]}, {0: 0, 1: 0, 2: 5, 3: 5, 4: 1, 9: 1}),
            ({"trace": [{"at": "2s", "value": 10}, {"at": "6s", "value": 20}]}, {0: 10, 2: 10, 3: 12, 6: 20, 9: 20}),
        ],
    )  # fmt: skip
    def test_at_a_second(self, data: Any, expected: dict[int, int]) -> None:
        curve = curves.parse(data)
        assert {second: curve.at(second) for second in expected} == expected

    def test_cpu_is_in_thousandths(self) -> None:
        assert curves.parse("1.5", milli=True).at(0) == 1500

    def test_a_random_walk_goes_by_its_seed_and_keeps_within_its_bounds(self) -> None:
        data = {"randomWalk": {"from": 50, "step": 9, "every": "10s", "min": 20, "max": 80}}
        one, again, other = (curves.parse(data, seed=seed) for seed in ("a", "a", "b"))
        way = [one.at(second) for second in range(0, 3000, 10)]
        again.at(5000)
        assert way == [again.at(second) for second in range(0, 3000, 10)]
        assert way != [other.at(second) for second in range(0, 3000, 10)]
        assert min(way) >= 20
        assert max(way) <= 80
        assert len(set(way)) > 20
        assert all(abs(later - earlier) <= 9 for earlier, later in itertools.pairwise(way))
        assert one.at(19) == one.at(10)


class TestBounds:
    @given(curve_data(), SECONDS, st.integers(0, 200))
    def test_no_amount_is_above_the_most(self, data: Any, first: int, length: int) -> None:
        curve = curves.parse(data, seed="seed")
        amounts = [curve.at(second) for second in range(first, first + length + 1)]
        assert min(amounts) >= 0
        assert curve.most(first, first + length) >= max(amounts)

    @given(curve_data(), SECONDS)
    def test_it_is_exact_for_one_second(self, data: Any, second: int) -> None:
        curve = curves.parse(data, seed="seed")
        assert curve.most(second, second) == curve.at(second)

    @given(curve_data(), st.integers(0, 500))
    def test_nothing_changes_once_it_has_settled(self, data: Any, later: int) -> None:
        curve = curves.parse(data, seed="seed")
        if curve.settled_s is not None:
            assert curve.at(curve.settled_s + later) == curve.at(curve.settled_s)


class TestFirstSecond:
    @given(st.sets(st.integers(0, 300)), st.integers(0, 300), st.integers(0, 300), st.integers(0, 20))
    def test_is_the_first_however_vague_the_bounds(self, holds: set[int], begin: int, end: int, vague: int) -> None:
        def may_hold(first: int, last: int) -> bool:
            if first == last:
                return first in holds
            return any(first - vague <= second <= last + vague for second in holds)

        expected = min((second for second in holds if begin <= second <= end), default=None)
        assert curves.first_second(may_hold, begin, end) == expected

    def test_a_far_second_takes_few_questions(self) -> None:
        asked = []

        def may_hold(first: int, last: int) -> bool:
            asked.append(first)
            return last >= 1_000_000

        assert curves.first_second(may_hold, 0, 2_000_000) == 1_000_000
        assert len(asked) < 100


class TestMistakes:
    @pytest.mark.parametrize(
        ("data", "path", "message"),
        [
            ({}, "", "nothing"),
            ({"rampp": {}}, "", "rampp"),
            ({"ramp": {}, "sine": {}}, "", "ramp, sine"),
            (True, "", "must be an amount"),
            ("-1", "", "negative"),
            ("many", "", "not an amount"),
            ({"ramp": {"from": 1, "to": 2}}, "ramp", "over is missing"),
            ({"ramp": {"from": 1, "to": 2, "over": "5s", "oevr": 1}}, "ramp.oevr", "unknown field"),
            ({"ramp": {"from": 1, "to": 2, "over": "5m", "after": "1.5s"}}, "ramp.after", "whole seconds"),
            ({"ramp": {"from": 1, "to": 2, "over": "soon"}}, "ramp.over", "not a duration"),
            ({"sine": {"mean": 1, "amplitude": 1, "period": 0}}, "sine.period", "more than 0"),
            ({"steps": []}, "steps", "list"),
            ({"steps": [{"at": 5, "value": 1}, {"at": 5, "value": 2}]}, "steps[1].at", "later"),
            ({"trace": [{"at": 5}]}, "trace[0]", "value is missing"),
            ({"randomWalk": {"from": 1, "step": 1, "every": 1, "min": 5, "max": 4}}, "randomWalk.min", "more than max"),
        ],
    )  # fmt: skip
    def test_are_named_with_their_place(self, data: Any, path: str, message: str) -> None:
        with pytest.raises(curves.CurveError, match=message) as caught:
            curves.parse(data)
        assert caught.value.path == path
