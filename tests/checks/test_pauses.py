"""pauses-keep-the-order: it holds on a sound log, and fails when one step is done in another place, twice, or not."""

from __future__ import annotations

import pytest

from kemu.lab.checks import registry
from kemu.lab.checks.results import Result
from tests.checks.logs import SECOND, Log

CHECK = "pauses-keep-the-order"


def judged(*done: int) -> Result:
    """A scheduler goes on at 20 s; something had come at 15 s, at 16 s, and twice at 18 s."""
    log = Log()
    waited = [5 * SECOND, 4 * SECOND, 2 * SECOND, 2 * SECOND]
    log.add(20, "scheduler/default-scheduler/0", "actor.resumed", waited=waited, done=list(done))
    _, results = registry.judge(log.events)
    return next(result for result in results if result.id == CHECK)


def test_all_of_it_in_its_order() -> None:
    assert judged(0, 1, 2, 3).detail == "1 pause kept the order"


@pytest.mark.parametrize(
    ("done", "says"),
    [
        ((1, 0, 2, 3), "did that of 16.000 s before that of 15.000 s, which came earlier"),
        ((0, 1, 3, 2), "did that of 18.000 s before that of 18.000 s, which came earlier"),
        ((0, 2, 3), "has not done that of 16.000 s"),
        ((0, 1, 1, 2, 3), "has done some twice"),
    ],
)
def test_something_else(done: tuple[int, ...], says: str) -> None:
    result = judged(*done)
    assert result.holds is False
    assert result.detail == f"20.000 s: of 4 steps that a pause held back, scheduler/default-scheduler/0 {says}"


def test_no_pause() -> None:
    _, results = registry.judge([])
    assert next(result for result in results if result.id == CHECK).holds is None
