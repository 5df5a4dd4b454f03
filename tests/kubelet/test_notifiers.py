"""With ``kernelMemcgNotification`` the eviction manager looks at once when memory crosses a threshold."""

from __future__ import annotations

import random
from functools import partial
from typing import Any

import pytest

from kemu.emulated.kubelet.pressure import eviction_loops
from kemu.runtime.env import SECOND_NS
from tests.kubelet.pressured import Bench, Times, node, pod

HARD = {"evictionHard": {"memory.available": "1Gi"}}


def steps(*points: tuple[int, str]) -> dict[str, Any]:
    return {"steps": [{"at": f"{second}s", "value": value} for second, value in points]}


def bench(**kubelet: Any) -> Bench:
    return Bench(node(memory="4Gi"), kubelet={**HARD, "kernelMemcgNotification": True, **kubelet})


@pytest.fixture
def passes(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """When the manager looked."""
    found: list[float] = []
    done = eviction_loops.EvictionLoop._pass

    def counted(self: Any) -> Any:
        found.append(self._clock.now_ns() / SECOND_NS)
        return done(self)

    monkeypatch.setattr(eviction_loops.EvictionLoop, "_pass", counted)
    return found


def test_it_evicts_when_the_threshold_is_crossed_instead_of_at_its_next_look() -> None:
    grows = {"memory": steps((0, "1Gi"), (13, "3500Mi"))}
    for notified, expected in ((True, 13), (False, 20)):
        made = bench(kernelMemcgNotification=notified)
        made.play(60, [(0, partial(made.run, pod("a", grows)))])
        assert made.evictions() == [(expected, "a")]


def test_it_is_in_time_where_the_kernel_would_kill_before_the_next_look() -> None:
    fast = {"memory": {"ramp": {"from": "1Gi", "to": "5Gi", "over": "8s", "after": "11s"}}}
    for notified, kills in ((True, []), (False, [(18, "a")])):
        made = bench(kernelMemcgNotification=notified)
        made.play(60, [(0, partial(made.run, pod("a", fast), Times(restart_s=None)))])
        assert made.oom_kills() == kills
        assert bool(made.evictions()) is notified


def test_a_peak_between_two_looks_is_seen(passes: list[float]) -> None:
    """Its end brings the manager to look again: the kernel tells of both directions."""
    peak = {"memory": steps((0, "1Gi"), (33, "3500Mi"), (36, "1Gi"))}
    soft = {"evictionSoft": {"memory.available": "1Gi"}, "evictionSoftGracePeriod": {"memory.available": "1m"}}
    made = bench(evictionHard={"memory.available": "100Mi"}, **soft)
    made.play(45, [(0, partial(made.run, pod("a", peak)))])
    assert made.conditions == [(33, ("MemoryPressure",))]
    assert passes == [0, 10, 20, 30, 33, 36, 40]


def test_a_run_does_not_end_before_a_peak_that_only_the_kernel_would_see() -> None:
    """Nothing else keeps the clock going."""
    peak = {"memory": steps((0, "1Gi"), (1003, "3500Mi"), (1006, "1Gi"))}
    made = bench()
    made.play(1100, [(0, partial(made.run, pod("a", peak)))])
    assert made.evictions() == [(1003, "a")]


def test_inactive_files_count_as_when_the_kernel_was_last_asked() -> None:
    """The kernel compares all that is charged. Files that have come since make it speak too early, and the manager
    finds nothing; when it has asked anew, it waits for as much more."""
    usage = {
        "memory": steps((0, "1Gi"), (27, "3500Mi")),
        "inactive_file": steps((0, "0"), (13, "2500Mi")),
    }
    made = bench()
    made.run(pod("a", usage))
    seen: list[tuple[float, int | None]] = []
    notified = made.pressures._notified

    def told(by: Any) -> None:
        seen.append((made.now, by.level))
        notified(by)

    made.pressures._notified = told  # type: ignore[method-assign]
    made.play(60)
    mebi = 1024 * 1024
    # Of the machine and of all pods, which may have as much. After 20 s, with 2500Mi inactive, it waits for 5572Mi,
    # which the machine does not have: the kernel gives up files instead, and the next look finds the pressure.
    assert seen[:2] == [(13, 3072 * mebi), (13, 3072 * mebi)]
    # Only the end of its victim makes it speak again.
    assert [at for at, _ in seen[2:]] == [30, 30]
    assert made.evictions() == [(30, "a")]


def test_each_threshold_speaks_for_itself() -> None:
    kubelet = {"evictionSoft": {"memory.available": "2Gi"}, "evictionSoftGracePeriod": {"memory.available": "4s"}}
    grows = {"memory": steps((0, "1Gi"), (13, "2500Mi"), (16, "3500Mi"))}
    made = bench(**kubelet)
    made.play(60, [(0, partial(made.run, pod("a", grows)))])
    assert made.conditions[0] == (13, ("MemoryPressure",))
    assert made.evictions() == [(16, "a")]


def test_it_looks_while_the_victim_of_a_regular_look_still_ends() -> None:
    """The regular loop waits for its victim, the notifiers do not wait for the loop."""
    kubelet = {
        "evictionSoft": {"memory.available": "4Gi"},
        "evictionSoftGracePeriod": {"memory.available": "1s"},
        "evictionMaxPodGracePeriod": 30,
    }
    made = Bench(node(memory="8Gi"), kubelet={**HARD, **kubelet, "kernelMemcgNotification": True})
    made.run(pod("slow", {"memory": steps((0, "1Gi"), (8, "4500Mi"), (14, "0"))}, priority=-1), Times(kill_s=25))
    made.run(pod("fast", {"memory": steps((0, "100Mi"), (15, "7500Mi"))}))
    made.play(60)
    assert made.evictions()[:2] == [(10, "slow"), (15, "fast")]


def test_no_notification_without_the_setting(passes: list[float]) -> None:
    made = Bench(node(memory="4Gi"), kubelet=HARD)
    made.play(60, [(0, partial(made.run, pod("a", {"memory": steps((0, "1Gi"), (13, "2500Mi"))})))])
    assert passes == []


def test_how_often_it_looks_can_be_told() -> None:
    for interval, expected in (("10s", 20), ("3s", 15), ("1m", 60)):
        made = Bench(node(memory="4Gi"), kubelet={**HARD, "housekeepingInterval": interval})
        made.play(100, [(0, partial(made.run, pod("a", {"memory": steps((0, "1Gi"), (13, "3500Mi"))})))])
        assert made.evictions() == [(expected, "a")]


@pytest.mark.parametrize("seed", range(20))
def test_whoever_is_notified_misses_no_second(seed: int) -> None:
    """Random curves: whenever more is used than the threshold leaves, a pod is evicted in that very second, unless
    the manager still waits for another one."""
    chance = random.Random(seed)
    made = Bench(node(memory="4Gi"), kubelet={**HARD, "kernelMemcgNotification": True})
    for number in range(4):
        points = sorted(chance.sample(range(1, 90), 5))
        values = [(at, f"{chance.choice((100, 400, 800, 1100))}Mi") for at in points]
        made.run(pod(f"p{number}", {"memory": steps((0, "300Mi"), *values)}))
    crossed: list[float] = []

    def look() -> None:
        if made.pressures._meter.working_set(made.clock.now_ns(), made.clock.now_ns()).available < 1024**3:
            crossed.append(made.now)

    made.play(100, [(second + 0.5, look) for second in range(100)])
    # What has crossed the threshold is gone within the same second: kills take no time here.
    assert crossed == []
