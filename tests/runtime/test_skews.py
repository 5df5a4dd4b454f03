"""Wrong clocks: what the two clocks of a machine show, and that timers and the run log agree with them."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kemu.runtime.env import ActorSpec
from kemu.runtime.sim.simulation import SimRuntime
from kemu.runtime.skews import JUMP, SKEW, Skew
from kemu.testing import Recorder, sim
from tests.runtime.world import sleeper

S = 1_000_000_000

DRIFTS = st.floats(-0.9, 9.0, allow_nan=False)
TIMES = st.integers(0, 10_000 * S)


def test_skew_moves_the_wall_clock_and_drift_both() -> None:
    skew = Skew()
    skew.begin("a", SKEW, {"by": 30.0, "drift": 0.01}, 100 * S)
    assert (skew.own_ns(100 * S), skew.wall_ahead_ns) == (100 * S, 30 * S)
    assert skew.own_ns(200 * S) == 201 * S
    skew.end("a", 200 * S)
    assert skew.own_ns(300 * S) == 301 * S, "the monotonic clock never goes back"
    assert skew.own_ns(300 * S) + skew.wall_ahead_ns == 300 * S, "the wall clock is set right"


def test_a_jump_is_for_good_and_skews_add_up() -> None:
    skew = Skew()
    skew.begin("j", JUMP, {"by": -5.0}, 10 * S)
    skew.begin("a", SKEW, {"by": 1.0, "drift": 1.0}, 10 * S)
    skew.begin("b", SKEW, {"by": 2.0, "drift": 1.0}, 20 * S)
    assert skew.own_ns(30 * S) == 60 * S
    skew.end("a", 30 * S)
    skew.end("b", 30 * S)
    assert skew.wall_ahead_ns + skew.own_ns(30 * S) == 25 * S
    assert skew.own_ns(40 * S) == 70 * S


@given(DRIFTS, TIMES, TIMES)
def test_a_timer_fires_when_the_clock_shows_its_time(drift: float, begin_ns: int, wait_ns: int) -> None:
    skew = Skew()
    skew.begin("a", SKEW, {"by": 0.0, "drift": drift}, begin_ns)
    when_ns = begin_ns + wait_ns
    true_ns = skew.true_ns(when_ns)
    assert 0 <= skew.own_ns(true_ns) - when_ns <= 10


SLEEPER = sleeper("sleeper")


def woke(*faults: tuple[float, str, dict[str, Any], float | None], restart: bool = False) -> list[tuple[Any, ...]]:
    """True time, true begin of the sleep, and what the two clocks show, in seconds."""
    record = Recorder()

    async def main(runtime: SimRuntime) -> None:
        async def one(number: int, at_s: float, what: str, parameters: dict[str, Any], until_s: float | None) -> None:
            await runtime.clock.sleep_until_ns(round(at_s * S))
            await runtime.inject(f"f{number}", what, {"actor": ["sleeper"], "drift": 0.0, **parameters})
            if until_s is not None:
                await runtime.clock.sleep_until_ns(round(until_s * S))
                await runtime.heal(f"f{number}")

        for number, fault in enumerate(faults):
            runtime.env("user").spawn(one(number, *fault), "fault")
        if restart:
            await runtime.clock.sleep_until_ns(30 * S)
            await runtime.crash("sleeper")
            await runtime.restart("sleeper")
        await runtime.clock.sleep_until_ns(61 * S)

    sim(main, actors=[SLEEPER], sink=record)
    return [
        (now_ns / S, data["start"] / S, data["own_s"], data["wall_s"])
        for now_ns, _, kind, data in record.events
        if kind == "sleeper.woke"
    ]


def test_a_skewed_wall_clock_moves_no_timer() -> None:
    expected = [(10 * n, 10 * n - 10, 10 * n, 10 * n + (100 if 2 <= n <= 4 else 0)) for n in range(1, 7)]
    assert woke((15, SKEW, {"by": 100.0}, 45)) == expected


def test_a_jump_moves_no_timer_and_stays() -> None:
    assert [unix_s for *_, unix_s in woke((15, JUMP, {"by": -100.0}, None))] == [10, -80, -70, -60, -50, -40]
    assert [unix_s for *_, unix_s in woke((15, JUMP, {"by": -100.0}, None), restart=True)][-1] == -40


def test_a_clock_that_runs_fast_wakes_early_also_those_who_sleep_already() -> None:
    found = woke((15, SKEW, {"by": 0.0, "drift": 1.0}, 45))
    # Half of the second sleep passes at double speed; the times in the log are true.
    assert [when for when, *_ in found] == [10, 17.5, 22.5, 27.5, 32.5, 37.5, 42.5, 50, 60]
    assert [start for _, start, *_ in found] == [0, 10, 17.5, 22.5, 27.5, 32.5, 37.5, 42.5, 50]
    assert [own for _, _, own, _ in found] == [10 * n for n in range(1, 10)]
    assert [unix_s for *_, unix_s in found][-2:] == [50, 60], "the wall clock is right again"


def test_a_clock_that_runs_slow_wakes_late_and_never_before_its_time() -> None:
    found = woke((15, SKEW, {"by": 0.0, "drift": -0.5}, None))
    assert [(when, own) for when, _, own, _ in found] == [(10, 10), (25, 20), (45, 30)]


@pytest.mark.parametrize("what", [SKEW, JUMP])
def test_the_clock_of_a_machine_outlives_its_processes(what: str) -> None:
    found = woke((15, what, {"by": 100.0, "drift": 1.0}, None), restart=True)
    assert all(unix_s - own_s == pytest.approx(100, abs=1) for when, _, own_s, unix_s in found if when > 30)


def test_nobody_pays_for_clocks_that_are_right() -> None:
    async def main(runtime: SimRuntime) -> None:
        await runtime.inject("f", JUMP, {"actor": ["sleeper"], "by": 1.0})
        await asyncio.sleep(0)
        kinds = {name: type(runtime._envs[name].clock).__name__ for name in ("sleeper", "other")}
        assert kinds == {"sleeper": "SkewedClock", "other": "VirtualClock"}

    sim(main, actors=[SLEEPER, ActorSpec("other", SLEEPER.factory)])
